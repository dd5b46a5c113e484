# ruff: noqa: SLF001 - mutants do what their bases do, but for one thing within
# pyright: reportPrivateUsage=false, reportUnknownArgumentType=false, reportUnknownLambdaType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
"""A converter into SQL broken: filters answered by SQLite as `entrepot.filters.sqlite` translates them."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from typing import TYPE_CHECKING, Any, ClassVar, cast
from unittest.mock import patch

from entrepot.filters import FilterOp, Leaf, Translation, exact, sqlite
from entrepot.filters.sqlite import SCHEMA, SqliteClause, SqliteFilterConverter
from entrepot_conformance.mutants.engine import ConvertingStore
from entrepot_conformance.mutants.model import breaks_core

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from entrepot.filters.sqlite import Bound
    from entrepot.metadata import Metadata


def _database() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:", check_same_thread=False)
    connection.executescript(SCHEMA)
    return connection


class Sql(ConvertingStore):
    """Keeps the elements of metadata in a table, and asks in SQL."""

    databases: ClassVar[dict[str, sqlite3.Connection]] = defaultdict(_database)

    def index(self, metadata: Metadata) -> Any:
        """Return the rows of a document."""
        return list(sqlite.element_rows(metadata))

    def indexed(self, ids: Sequence[str]) -> None:
        """Put the rows of documents in the place of their older ones."""
        super().indexed(ids)
        connection = self.databases[self.collection]
        for name in ids:
            rows = self.indexes[self.collection].get(name, [])
            for (number,) in connection.execute("SELECT doc FROM document WHERE id = ?", (name,)).fetchall():
                connection.execute("DELETE FROM element WHERE doc = ?", (number,))
                connection.execute("DELETE FROM document WHERE doc = ?", (number,))
            number = connection.execute("INSERT INTO document (id) VALUES (?)", (name,)).lastrowid
            connection.executemany(
                "INSERT INTO element VALUES (?, ?, ?, ?)", [(number, *row) for row in rows]
            )

    def converter(self) -> Any:
        """Return the core's converter."""
        return SqliteFilterConverter()

    def select(self, query: Any) -> list[str]:
        """Ask SQLite."""
        statement, bound = query.statement()
        return [name for (name,) in self.databases[self.collection].execute(statement, bound)]


def _leaf(
    change: Callable[[SqliteFilterConverter, Leaf], Translation[SqliteClause]],
) -> AbstractContextManager[object]:
    return patch.object(SqliteFilterConverter, "leaf", change)


def _conditions(change: Callable[[str], str]) -> AbstractContextManager[object]:
    """Change the SQL of conditions."""
    condition = sqlite._condition

    def changed(op: FilterOp, operand: Any) -> tuple[str, tuple[Bound, ...]]:
        text, bound = condition(op, operand)
        return change(text), bound

    return patch.object(sqlite, "_condition", changed)


def _bound(change: Callable[[Any], Any]) -> AbstractContextManager[object]:
    """Change what is stored and what is asked for, alike."""
    bind = sqlite._bind
    return patch.object(sqlite, "_bind", lambda value: change(bind(value)))


@breaks_core("F3", Sql)
def guard_dropped() -> AbstractContextManager[object]:
    """Asks negated comparisons of the documents that have the key."""
    leaf_of = SqliteFilterConverter.leaf

    def guarded(self: SqliteFilterConverter, leaf: Leaf) -> Translation[SqliteClause]:
        (pieces, bound, _) = cast("SqliteClause", leaf_of(self, leaf).clause)
        if not leaf.negated or leaf.op is FilterOp.ISNULL:
            return exact(SqliteClause(pieces, bound))
        there = " AND doc IN (SELECT doc FROM element WHERE key=?)"
        return exact(SqliteClause(("(", *pieces, there, ")"), (*bound, leaf.key), 1))

    return _leaf(guarded)


@breaks_core("F1", Sql)
def null_turned() -> AbstractContextManager[object]:
    """Takes IS NULL for IS NOT NULL."""
    leaf_of = SqliteFilterConverter.leaf

    def turned(self: SqliteFilterConverter, leaf: Leaf) -> Translation[SqliteClause]:
        return leaf_of(self, leaf.complement() if leaf.op is FilterOp.ISNULL else leaf)

    return _leaf(turned)


@breaks_core("F3", Sql)
def negated_sql_ranges_turned() -> AbstractContextManager[object]:
    """Writes a negated range as the other range."""
    leaf_of = SqliteFilterConverter.leaf
    turned = {
        FilterOp.LT: FilterOp.GTE,
        FilterOp.LTE: FilterOp.GT,
        FilterOp.GT: FilterOp.LTE,
        FilterOp.GTE: FilterOp.LT,
    }

    def other(self: SqliteFilterConverter, leaf: Leaf) -> Translation[SqliteClause]:
        if leaf.negated and leaf.op in turned:
            leaf = Leaf(turned[leaf.op], leaf.key, leaf.value)
        return leaf_of(self, leaf)

    return _leaf(other)


@breaks_core("F4", Sql)
def bound_included() -> AbstractContextManager[object]:
    """Writes <= for <."""
    return patch.dict(sqlite._SIGNS, {FilterOp.LT: "<="})


@breaks_core("F4", Sql)
def bound_excluded() -> AbstractContextManager[object]:
    """Writes > for >=."""
    return patch.dict(sqlite._SIGNS, {FilterOp.GTE: ">"})


@breaks_core("F4", Sql)
def kinds_merged() -> AbstractContextManager[object]:
    """Keeps booleans and numbers as one kind."""
    return patch.dict(cast("dict[str, str]", sqlite._KINDS), {"bool": "n"})


@breaks_core("F4", Sql)
def no_kinds() -> AbstractContextManager[object]:
    """Compares values of any kind, in the order that the engine gives kinds."""
    import re  # noqa: PLC0415 - used here alone

    return _conditions(lambda text: re.sub(r"kind='.'", "1", text))


@breaks_core("F4", Sql)
def bound_as_floats() -> AbstractContextManager[object]:
    """Binds numbers as doubles."""
    return _bound(lambda value: float(value) if type(value) is int and abs(value) < 2**63 else value)


@breaks_core("F4", Sql)
def bound_in_milliseconds() -> AbstractContextManager[object]:
    """Binds instants in milliseconds."""
    from datetime import timedelta  # noqa: PLC0415 - used here alone

    return patch.object(sqlite, "_MICROSECOND", timedelta(milliseconds=1))


@breaks_core("F4", Sql)
def folding_collation() -> AbstractContextManager[object]:
    """Compares strings by a collation that folds their case."""
    return _conditions(
        lambda text: text.replace("value=?", "value=? COLLATE NOCASE") if "kind='s'" in text else text
    )


@breaks_core("F9", Sql)
def parentheses_lost() -> AbstractContextManager[object]:
    """Writes chains without their parentheses."""
    pair = sqlite._pair

    def bare(word: str, left: SqliteClause, right: SqliteClause) -> SqliteClause:
        clause = pair(word, left, right)
        return clause._replace(pieces=clause.pieces[1:-1])

    return patch.object(sqlite, "_pair", bare)


@breaks_core("F9", Sql)
def and_for_or() -> AbstractContextManager[object]:
    """Writes AND for OR."""

    def joined(_: SqliteFilterConverter, parts: Sequence[SqliteClause]) -> SqliteClause:
        return sqlite._join(" AND ", parts)

    return patch.object(SqliteFilterConverter, "or_", joined)


@breaks_core("F9", Sql)
def odd_part_lost() -> AbstractContextManager[object]:
    """Loses the last part of a chain of odd length."""

    def join(word: str, clauses: Sequence[SqliteClause]) -> SqliteClause:
        level = list(clauses)
        while len(level) > 1:
            level = [sqlite._pair(word, *level[at : at + 2]) for at in range(0, len(level) - 1, 2)]
        return level[0]

    return patch.object(sqlite, "_join", join)


@breaks_core("F9", Sql)
def parameters_swapped() -> AbstractContextManager[object]:
    """Binds the parameters of a pair the other way round."""
    pair = sqlite._pair

    def swapped(word: str, left: SqliteClause, right: SqliteClause) -> SqliteClause:
        return pair(word, left, right)._replace(bound=right.bound + left.bound)

    return patch.object(sqlite, "_pair", swapped)


@breaks_core("F6", Sql)
def nothing_lifted() -> AbstractContextManager[object]:
    """Writes a deep filter as it is, deeper than the engine's parser goes."""
    return patch.object(sqlite, "_MAX_NESTING", 10**6)


@breaks_core("F5", Sql)
def one_kind_of_sql_in() -> AbstractContextManager[object]:
    """Writes of a list after IN the values of one kind."""
    condition = sqlite._condition

    def first(op: FilterOp, operand: Any) -> tuple[str, tuple[Bound, ...]]:
        if not isinstance(operand, tuple):
            return condition(op, operand)
        values: tuple[Any, ...] = operand
        return condition(op, tuple(value for value in values if type(value) is type(values[0])))

    return patch.object(sqlite, "_condition", first)


@breaks_core("F2", Sql)
def first_rows_only() -> AbstractContextManager[object]:
    """Keeps one row for a list."""
    return _rows(lambda value: value[:1] if isinstance(value, list) else value)


@breaks_core("F2", Sql)
def lists_as_text() -> AbstractContextManager[object]:
    """Keeps a list as one string."""
    return _rows(lambda value: ",".join(map(str, value)) if isinstance(value, list) else value)


def _rows(change: Callable[[Any], Any]) -> AbstractContextManager[object]:
    element_rows = sqlite.element_rows

    def changed(metadata: Mapping[str, object]) -> Iterator[tuple[str, str, Bound]]:
        return element_rows({key: change(value) for key, value in metadata.items()})

    return patch.object(sqlite, "element_rows", changed)


@breaks_core("F10", Sql)
def values_written_in() -> AbstractContextManager[object]:
    """Writes strings into the SQL between quotes."""
    condition = sqlite._condition

    def written(op: FilterOp, operand: Any) -> tuple[str, tuple[Bound, ...]]:
        text, bound = condition(op, operand)
        if not isinstance(operand, str):
            return text, bound
        return text.replace("?", f"'{operand}'"), ()

    return patch.object(sqlite, "_condition", written)


@breaks_core("F10", Sql)
def like_for_equal() -> AbstractContextManager[object]:
    """Asks with GLOB where strings are to be equal."""
    return _conditions(lambda text: text.replace("value=?", "value GLOB ?") if "kind='s'" in text else text)


@breaks_core("F10", Sql)
def keys_cut() -> AbstractContextManager[object]:
    """Cuts keys at 63 bytes, as identifiers are."""
    leaf_of = SqliteFilterConverter.leaf
    element_rows = sqlite.element_rows

    def cut(self: SqliteFilterConverter, leaf: Leaf) -> Translation[SqliteClause]:
        return leaf_of(self, Leaf(leaf.op, leaf.key[:63], leaf.value, leaf.negated))

    def rows(metadata: Mapping[str, object]) -> Iterator[tuple[str, str, Bound]]:
        return ((key[:63], kind, value) for key, kind, value in element_rows(metadata))

    from contextlib import ExitStack, contextmanager  # noqa: PLC0415 - used here alone

    @contextmanager
    def both() -> Generator[None]:
        with ExitStack() as stack:
            stack.enter_context(_leaf(cut))
            stack.enter_context(patch.object(sqlite, "element_rows", rows))
            yield

    return both()
