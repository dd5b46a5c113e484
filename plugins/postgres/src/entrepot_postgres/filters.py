"""From filters to SQL over the jsonb column `terms`: exact for every leaf (F1 to F6, F9, F10).

The SQL is made of the words of this module alone; keys and values are bound parameters. A key becomes a
string of JSON by `terms.json_string`, within a bound JSON value or a bound jsonpath.

- Equality asks ``@>`` for the scalar and for a list with it: jsonb containment holds within one kind, compares
  numbers exactly, and finds an element in a list (F2, F4). The GIN index serves it.
- A range asks a jsonpath in lax mode, which unwraps lists (F2) and drops comparisons of unlike kinds (F4).
- Both are true or false and never NULL, so NOT is the complement, absent keys included (F3).
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from entrepot.encoding import iso_instant
from entrepot.filters import AbstractFilterExpressionConverter, FilterOp, Translation, exact
from entrepot_postgres.terms import TAG, json_scalar, json_string

if TYPE_CHECKING:
    from collections.abc import Sequence

    from entrepot.filters import Leaf, Scalar

Bound: TypeAlias = object

SIGNS: Final = {FilterOp.LT: "<", FilterOp.LTE: "<=", FilterOp.GT: ">", FilterOp.GTE: ">="}
"""SQL's comparisons, which are jsonpath's as well."""


class PostgresClause(NamedTuple):
    """A condition on a row of a collection's table, which goes by the name ``doc``.

    Attributes:
        sql: The condition, with psycopg's placeholders.
        bound: What is bound to them, in order.
    """

    sql: str
    bound: tuple[Bound, ...] = ()


class PostgresFilterConverter(AbstractFilterExpressionConverter[PostgresClause]):
    """Translate filters into SQL; every leaf is exact."""

    def leaf(self, leaf: Leaf) -> Translation[PostgresClause]:
        """Ask whether some element of the key satisfies the comparison, or none (F2, F3)."""
        clause = _plain(leaf)
        # An empty list is not among the terms, so a key is there exactly if it is not absent (F1).
        if leaf.negated is not (leaf.op is FilterOp.ISNULL):
            return exact(PostgresClause(f"NOT {clause.sql}", clause.bound))
        return exact(clause)

    def and_(self, parts: Sequence[PostgresClause]) -> PostgresClause:
        """Join with AND."""
        return joined(" AND ", parts)

    def or_(self, parts: Sequence[PostgresClause]) -> PostgresClause:
        """Join with OR."""
        return joined(" OR ", parts)

    def true(self) -> PostgresClause:
        """Hold for every document."""
        return PostgresClause("true")

    def false(self) -> PostgresClause:
        """Hold for no document."""
        return PostgresClause("false")


def _plain(leaf: Leaf) -> PostgresClause:
    """Return the leaf without its negation; for ISNULL whether the key is there."""
    key, value = leaf.key, leaf.value
    if value is None:
        return PostgresClause("(doc.terms ? %s::text)", (key,))
    if leaf.op in SIGNS and not isinstance(value, tuple):
        path, operand = _range(key, leaf.op, value)
        return PostgresClause("jsonb_path_exists(doc.terms, %s::jsonpath, %s::jsonb)", (path, operand))
    values = value if isinstance(value, tuple) else (value,)
    return PostgresClause("(doc.terms @> ANY(%s::text[]::jsonb[]))", (_forms(key, values),))


def _forms(key: str, values: Sequence[Scalar]) -> list[str]:
    """Return what contains an equal element: the scalar, and a list with it among others."""
    name = json_string(key)
    forms: list[str] = []
    for value in values:
        operand = json_scalar(value)
        forms += (f"{{{name}:{operand}}}", f"{{{name}:[{operand}]}}")
    return forms


def _range(key: str, op: FilterOp, value: Scalar) -> tuple[str, str]:
    """Return a jsonpath with the variable v, and the object that gives its value."""
    path = f"$.{json_string(key)}"
    if isinstance(value, datetime):
        path, operand = f'{path}."{TAG}"', f'"{iso_instant(value)}"'
    else:
        operand = json_scalar(value)
    return f"{path} ? (@ {SIGNS[op]} $v)", f'{{"v":{operand}}}'


def joined(word: str, parts: Sequence[PostgresClause]) -> PostgresClause:
    """Join clauses with a word of SQL."""
    bound = tuple(value for part in parts for value in part.bound)
    return PostgresClause(f"({word.join(part.sql for part in parts)})", bound)
