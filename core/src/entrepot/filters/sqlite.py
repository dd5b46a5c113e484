"""A translator into SQLite: the example to read before writing one, and exact for every filter.

It works on two tables. `document` holds one row a document; `element` holds one row for each element
of each key, so a list of three has three rows and an absent key or an empty list has none (F1, F2):

```sql
CREATE TABLE document (doc INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE);
CREATE TABLE element (doc INTEGER NOT NULL REFERENCES document, key TEXT NOT NULL, kind TEXT NOT NULL, value NOT NULL);
CREATE INDEX element_value ON element (key, kind, value, doc);
```

`value` has no declared type, so SQLite converts nothing on the way in. What stands in it, by `kind`:

- ``s``: a string. The default collation compares the bytes of UTF-8, which is code point order (F4);
  a database with UTF-16 encoding would not do.
- ``n``: an integer or a real. SQLite compares the two without rounding, also beyond 2^53.
- ``b``: 0 or 1.
- ``t``: an instant, as microseconds since 1970 in UTC.

Keys and values are always bound, never written into the SQL (F10). SQLite bounds the height of an expression
(1,000) and the stack of its parser (100), so chains are joined in a balanced tree and what is nested deeply is
lifted into a common table expression. At most 20,000 parameters are bound; SQLite takes 32,766 since 3.32.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias, cast

from entrepot.filters.convert import AbstractFilterExpressionConverter, Translation, exact
from entrepot.filters.expression import FilterOp
from entrepot.filters.values import by_kind

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from entrepot.filters.normalise import Leaf
    from entrepot.filters.values import Kind, Scalar

SCHEMA: Final = """
CREATE TABLE document (doc INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE);
CREATE TABLE element (doc INTEGER NOT NULL REFERENCES document, key TEXT NOT NULL, kind TEXT NOT NULL, value NOT NULL);
CREATE INDEX element_value ON element (key, kind, value, doc);
"""
"""The two tables; run it with `executescript`."""

Bound: TypeAlias = str | int | float

_KINDS: Final[dict[Kind, str]] = {"str": "s", "number": "n", "bool": "b", "datetime": "t"}
_SIGNS: Final = {
    FilterOp.EQ: "=",
    FilterOp.LT: "<",
    FilterOp.LTE: "<=",
    FilterOp.GT: ">",
    FilterOp.GTE: ">=",
}
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_MAX_NESTING: Final = 12
"""Levels of brackets in one piece of SQL; each takes several places of the parser's 100."""


class SqliteClause(NamedTuple):
    """A condition on a row of `document`.

    Attributes:
        pieces: Its SQL; a clause among the pieces stands for a common table expression of its own.
        bound: What is bound to the question marks of its own SQL, in order.
        nesting: Levels of brackets in its own SQL.
    """

    pieces: tuple[str | SqliteClause, ...]
    bound: tuple[Bound, ...]
    nesting: int = 0

    def statement(self, columns: str = "id") -> tuple[str, tuple[Bound, ...]]:
        """Return SQL that selects the matching documents, and the parameters to bind.

        Args:
            columns: The select list, such as ``"doc, id"`` or ``"count(*)"``. It is written into the SQL as it
                stands, so it is for the program's own text and never for input.
        """
        tables: list[str] = []
        bound: list[Bound] = []
        where = _write(self, tables, bound)
        with_tables = f"WITH {', '.join(tables)} " if tables else ""
        return f"{with_tables}SELECT {columns} FROM document WHERE {where}", tuple(bound)  # noqa: S608 - see the class


class SqliteFilterConverter(AbstractFilterExpressionConverter[SqliteClause]):
    """Translate filters into SQL over the tables `document` and `element`; every leaf is exact.

    ```python
    sql, parameters = SqliteFilterConverter().convert(F.year >= 2020).query.statement()
    ids = [row[0] for row in connection.execute(sql, parameters)]
    ```
    """

    def leaf(self, leaf: Leaf) -> Translation[SqliteClause]:
        """Ask whether some element of the key satisfies the comparison, or none (F2, F3)."""
        condition, bound = ("", ()) if leaf.value is None else _condition(leaf.op, leaf.value)
        # An absent key has no element: plain comparisons miss it and negated ones find it, as F2 and F3 want.
        # IS NULL is the one leaf that asks for no element when it is plain.
        word = "NOT IN" if leaf.negated is not (leaf.op is FilterOp.ISNULL) else "IN"
        sql = f"doc {word} (SELECT doc FROM element WHERE key=?{condition})"  # noqa: S608 - words of this module
        return exact(SqliteClause((sql,), (leaf.key, *bound)))

    def and_(self, parts: Sequence[SqliteClause]) -> SqliteClause:
        """Join with AND."""
        return _join(" AND ", parts)

    def or_(self, parts: Sequence[SqliteClause]) -> SqliteClause:
        """Join with OR."""
        return _join(" OR ", parts)

    def true(self) -> SqliteClause:
        """Hold for every document."""
        return SqliteClause(("1",), ())

    def false(self) -> SqliteClause:
        """Hold for no document."""
        return SqliteClause(("0",), ())


def element_rows(metadata: Mapping[str, object]) -> Iterator[tuple[str, str, Bound]]:
    """Give the rows of `element` for valid metadata (D3): key, kind and value."""
    for key, value in metadata.items():
        if value is None:
            continue
        elements = cast("list[Scalar]", value if isinstance(value, list) else [value])
        for kind, group in by_kind(elements).items():
            for element in group:
                yield key, _KINDS[kind], _bind(element)


def _condition(op: FilterOp, operand: Scalar | tuple[Scalar, ...]) -> tuple[str, tuple[Bound, ...]]:
    if not isinstance(operand, tuple):
        [kind] = by_kind([operand])
        return f" AND kind='{_KINDS[kind]}' AND value{_SIGNS[op]}?", (_bind(operand),)
    choices: list[str] = []
    bound: list[Bound] = []
    for kind, group in by_kind(operand).items():
        choices.append(f"kind='{_KINDS[kind]}' AND value IN ({','.join('?' * len(group))})")
        bound += map(_bind, group)
    return f" AND ({' OR '.join(choices)})", tuple(bound)


def _bind(value: Scalar) -> Bound:
    if isinstance(value, datetime):
        return (value - _EPOCH) // _MICROSECOND
    return int(value) if isinstance(value, bool) else value


def _join(word: str, clauses: Sequence[SqliteClause]) -> SqliteClause:
    """Join pairwise, then the pairs, and so on: the height grows with the logarithm of the number."""
    level = list(clauses)
    while len(level) > 1:
        pairs = [_pair(word, *level[start : start + 2]) for start in range(0, len(level) - 1, 2)]
        level = pairs if len(level) % 2 == 0 else [*pairs, level[-1]]
    return level[0]


def _pair(word: str, left: SqliteClause, right: SqliteClause) -> SqliteClause:
    if max(left.nesting, right.nesting) >= _MAX_NESTING:
        left, right = (_lifted(side) if side.nesting >= _MAX_NESTING else side for side in (left, right))
    return SqliteClause(
        ("(", *left.pieces, word, *right.pieces, ")"),
        left.bound + right.bound,
        1 + max(left.nesting, right.nesting),
    )


def _lifted(clause: SqliteClause) -> SqliteClause:
    return SqliteClause((clause,), ())


def _write(clause: SqliteClause, tables: list[str], bound: list[Bound]) -> str:
    # Recursion is one call for each lifted piece within another: a dozen levels of brackets each.
    written: list[str] = []
    for piece in clause.pieces:
        if isinstance(piece, str):
            written.append(piece)
        else:
            condition = _write(piece, tables, bound)
            tables.append(f"t{len(tables)}(doc) AS (SELECT doc FROM document WHERE {condition})")  # noqa: S608
            written.append(f"doc IN t{len(tables) - 1}")
    bound += clause.bound
    return "".join(written)
