"""From filters to SQL over columns that other software made: exact for every leaf (F1 to F5, F10).

A key has a typed column of its own, or stands in the object of a json or jsonb column. The SQL is made of
the words of this package and of quoted columns; keys and values are bound parameters. A leaf without NOT may
be NULL, which stands for false; NOT asks ``IS NOT TRUE``, so it is the complement (F3).
"""

from __future__ import annotations

import math
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Final, TypeAlias
from uuid import UUID

from entrepot.filters import AbstractFilterExpressionConverter, FilterOp, Translation, exact
from entrepot_postgres.columns import NUMBER, VALID, VALUE
from entrepot_postgres.filters import SIGNS, PostgresClause, joined
from entrepot_postgres.terms import json_scalar, json_string

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from entrepot.filters import Leaf, Scalar
    from entrepot_postgres.columns import Column

_FALSE: Final = PostgresClause("false")
_NOT_SCALAR: Final = ("{", "[")
_INT64: Final = 2**63

Condition: TypeAlias = PostgresClause
"""A condition on one element, which goes by the name ``{0}``."""


class MappedFilterConverter(AbstractFilterExpressionConverter[PostgresClause]):
    """Translate filters into SQL over a table's own columns; every leaf is exact.

    Args:
        columns: The typed columns, by metadata key.
        json: The column whose object holds all other keys, as SQL of type jsonb; None if there is none.
    """

    def __init__(self, columns: Mapping[str, Column], json: str | None) -> None:
        self._columns = columns
        self._json = json

    def leaf(self, leaf: Leaf) -> Translation[PostgresClause]:
        """Ask whether some element of the key satisfies the comparison, or none (F2, F3)."""
        clause = self._plain(leaf)
        # For ISNULL the plain clause says that there is an element.
        if leaf.negated is not (leaf.op is FilterOp.ISNULL):
            return exact(PostgresClause(f"({clause.sql}) IS NOT TRUE", clause.bound))
        return exact(PostgresClause(f"({clause.sql})", clause.bound))

    def _plain(self, leaf: Leaf) -> PostgresClause:
        column = self._columns.get(leaf.key)
        if column is not None:
            return of_column(column, leaf.op, leaf.value)
        if self._json is not None:
            return _of_json(self._json, leaf)
        return _FALSE

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
        return _FALSE


# --- typed columns ----------------------------------------------------------------------------------------


def of_column(column: Column, op: FilterOp, value: Scalar | tuple[Scalar, ...] | None) -> PostgresClause:
    """Return whether some value of a column satisfies a comparison; with None, whether it has one."""
    if value is None:
        condition = PostgresClause(VALID[column.kind])
    elif op in SIGNS and not isinstance(value, tuple):
        condition = _range(column, op, value)
    else:
        condition = _equal(column, value if isinstance(value, tuple) else (value,))
    if condition is _FALSE:
        return _FALSE
    if not column.array:
        return PostgresClause(condition.sql.format(column.sql), condition.bound)
    inner = condition.sql.format("e.x")
    return PostgresClause(f"EXISTS (SELECT FROM unnest({column.sql}) AS e(x) WHERE {inner})", condition.bound)


def _range(column: Column, op: FilterOp, value: Scalar) -> Condition:
    sign = SIGNS[op]
    kind = column.kind
    if isinstance(value, bool):
        return _FALSE
    if isinstance(value, str):
        if kind in ("text", "uuid", "string", "local", "date"):
            return PostgresClause(f'({VALUE[kind]}) COLLATE "C" {sign} %s::text', (value,))
        return _FALSE
    if isinstance(value, datetime):
        if kind == "instant":
            return PostgresClause(f"{VALID[kind]} AND {{0}} {sign} %s::timestamptz", (value,))
        return _FALSE
    if kind == "int" and isinstance(value, int):
        return PostgresClause(f"{{0}} {sign} %s::int8", (value,))
    if kind == "int":
        return PostgresClause(f"{{0}}::numeric {sign} %s::numeric", (format(Decimal(value), "f"),))
    if kind == "float":
        sign, bound = _float_bound(sign, value)
        return PostgresClause(f"{VALID[kind]} AND {{0}} {sign} %s::float8", (bound,))
    if kind == "numeric":
        return PostgresClause(f"({NUMBER}) {sign} %s::numeric", (_digits(value),))
    return _FALSE


def _float_bound(sign: str, value: float) -> tuple[str, float]:
    """Return a comparison with a float that holds for the same floats as one with an int or float."""
    near = float(value)
    if near == value:
        return sign, near
    if near < value:  # no float lies between the two
        return (">" if ">" in sign else "<="), near
    return (">=" if ">" in sign else "<"), near


def _equal(column: Column, values: Sequence[Scalar]) -> Condition:
    kind = column.kind
    if kind == "bool":
        return _any("{0} = ANY(%s::bool[])", [value for value in values if isinstance(value, bool)])
    if kind == "instant":
        return _any("{0} = ANY(%s::timestamptz[])", [v for v in values if isinstance(v, datetime)])
    texts = [value for value in values if isinstance(value, str)]
    if kind == "text":
        # The first finds the index, the second is exact where the collation folds what it compares.
        both = _any('{0} = ANY(%s::text[]) AND {0} COLLATE "C" = ANY(%s::text[])', texts)
        return both if both is _FALSE else PostgresClause(both.sql, both.bound * 2)
    if kind == "uuid":
        return _any("{0} = ANY(%s::uuid[])", [text for text in texts if is_uuid(text)])
    if kind in ("string", "local", "date"):
        return _any(f'({VALUE[kind]}) COLLATE "C" = ANY(%s::text[])', texts)
    numbers = _numbers(values)
    if kind == "int":
        whole = [int(number) for number in numbers if number == math.floor(number)]
        return _any("{0} = ANY(%s::int8[])", [number for number in whole if -_INT64 <= number < _INT64])
    if kind == "float":
        near = [float(number) for number in numbers if float(number) == number]
        return _any("{0} = ANY(%s::float8[])", near)
    return _any(f"({NUMBER}) = ANY(%s::numeric[])", [_digits(number) for number in numbers])


def _numbers(values: Sequence[Scalar]) -> list[int | float]:
    return [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]


def _any(text: str, values: Sequence[object]) -> Condition:
    return PostgresClause(text, (list(values),)) if values else _FALSE


def _digits(value: Scalar) -> str:
    """Return a number as `NUMBER` has the same one."""
    if isinstance(value, float) and 2.0**53 <= abs(value) < 2.0**63:
        return str(int(value))
    return repr(value)


def is_uuid(text: str) -> bool:
    """Whether a text is a UUID as PostgreSQL writes it."""
    try:
        return str(UUID(text)) == text
    except ValueError:
        return False


# --- an object of JSON ------------------------------------------------------------------------------------

_ELEMENTS: Final = (
    "EXISTS (SELECT FROM (SELECT {0} -> %s::text AS v) AS given,"
    " jsonb_array_elements(CASE jsonb_typeof(given.v) WHEN 'array' THEN given.v"
    " ELSE jsonb_build_array(given.v) END) AS e(x),"
    " LATERAL (SELECT CASE jsonb_typeof(e.x) WHEN 'number' THEN e.x::numeric END AS n) AS number"
    " WHERE {1})"
)
_NUMBER: Final = f"({NUMBER.format('number.n')})"
_STRING: Final = (
    "(CASE WHEN jsonb_typeof(e.x) IN ('string', 'object', 'array') THEN e.x #>> '{}' END) COLLATE \"C\""
)
_SOME: Final = f"jsonb_typeof(e.x) IN ('string', 'boolean', 'object', 'array') OR {_NUMBER} IS NOT NULL"


def _of_json(json: str, leaf: Leaf) -> PostgresClause:
    key, value = leaf.key, leaf.value
    if value is None:
        return _some(json, key, _SOME)
    if leaf.op in SIGNS and not isinstance(value, tuple):
        sign = SIGNS[leaf.op]
        if isinstance(value, str):
            return _some(json, key, f"{_STRING} {sign} %s::text", value)
        if isinstance(value, bool | datetime):
            return _FALSE
        return _some(json, key, f"{_NUMBER} {sign} %s::numeric", _digits(value))
    return _json_equal(json, key, value if isinstance(value, tuple) else (value,))


def _json_equal(json: str, key: str, values: Sequence[Scalar]) -> PostgresClause:
    """Ask for strings and booleans by containment, which an index serves, and for others by each element.

    A datetime equals no element: JSON has none. A number is compared by what it is read as.
    """
    forms: list[str] = []
    texts: list[str] = []
    numbers: list[str] = []
    name = json_string(key)
    for value in values:
        if isinstance(value, str) and value.startswith(_NOT_SCALAR):
            texts.append(value)
        elif isinstance(value, str | bool):
            forms += (f"{{{name}:{json_scalar(value)}}}", f"{{{name}:[{json_scalar(value)}]}}")
        elif not isinstance(value, datetime):
            numbers.append(_digits(value))
    clauses: list[PostgresClause] = []
    if forms:
        clauses.append(PostgresClause(f"{json} @> ANY(%s::text[]::jsonb[])", (forms,)))
    if texts:
        clauses.append(_some(json, key, f"{_STRING} = ANY(%s::text[])", texts))
    if numbers:
        clauses.append(_some(json, key, f"{_NUMBER} = ANY(%s::numeric[])", numbers))
    return joined(" OR ", clauses) if clauses else _FALSE


def _some(json: str, key: str, condition: str, *bound: object) -> PostgresClause:
    return PostgresClause(_ELEMENTS.format(json, condition), (key, *bound))
