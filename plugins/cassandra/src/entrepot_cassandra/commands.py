"""What a script is made of: statements, written once for sync and async code.

A script is a generator that yields one of these and gets its answer; an error comes as one of entrepot's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from entrepot.scripted import Script as Script  # noqa: PLC0414 - for the modules of this package

Level = Literal["quorum", "one", "serial"]
"""Whom a read asks: most replicas, any one, or all that take part in Paxos."""


class Ask(NamedTuple):
    """A statement, which is prepared, and its values; answered by `Rows`, the first page of them.

    Attributes:
        cql: The statement, with a question mark for each value.
        values: The values.
        writes: Whether it changes anything.
        level: Whom a read asks.
        page: Rows of a page; None for the driver's own.
        state: Where the page begins: what `Rows` of the page before says.
    """

    cql: str
    values: tuple[Any, ...] = ()
    writes: bool = False
    level: Level = "quorum"
    page: int | None = None
    state: bytes | None = None

    def __repr__(self) -> str:
        """Return the statement without its values."""
        return f"<{self.cql}>"


class Together(NamedTuple):
    """Statements of which some are under way at a time; answered by a list of `Rows` or errors, in order."""

    asks: Sequence[Ask]

    @property
    def writes(self) -> bool:
        """Whether one of them changes anything."""
        return any(ask.writes for ask in self.asks)


class Batch(NamedTuple):
    """Statements on one partition that are done in one step, or not at all; answered by `Rows`."""

    asks: Sequence[Ask]
    writes: bool = True


class Schema(NamedTuple):
    """A statement without values that changes the schema; answered when all nodes know of it."""

    cql: str
    writes: bool = True


class Pause(NamedTuple):
    """Seconds to wait, no longer than the exchange has; answered by None."""

    seconds: float
    writes: bool = False


class Rows(NamedTuple):
    """Rows of an answer.

    Attributes:
        rows: The rows of this page.
        state: Where the next page begins; None at the end.
    """

    rows: list[tuple[Any, ...]]
    state: bytes | None = None

    @property
    def applied(self) -> bool:
        """Whether the conditions of a conditional write held."""
        return bool(self.rows and self.rows[0][0])


def change(cql: str, *values: Any) -> Ask:
    """Return a statement that changes something."""
    return Ask(cql, values, writes=True)


def everything(ask: Ask) -> Script[list[tuple[Any, ...]]]:
    """Return the rows of all pages."""
    found: list[tuple[Any, ...]] = []
    while True:
        answer = yield ask
        found += answer.rows
        if answer.state is None:
            return found
        ask = ask._replace(state=answer.state)


def has_table(keyspace: str, table: str) -> Script[bool]:
    """Return whether a table is there: asked of the schema, as preparing a statement on a missing one fails loudly."""
    found = yield Ask(
        "SELECT table_name FROM system_schema.tables WHERE keyspace_name = ? AND table_name = ?",
        (keyspace, table),
        level="one",
    )
    return bool(found.rows)
