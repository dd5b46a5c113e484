"""What an operation asks of the server, as a script: a generator that yields statements and gets their rows.

`Course` is the part of carrying out a script that sync and async share: which statements are sent, the
settings that they need, and what is known if the connection breaks.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, NamedTuple, TypeAlias, TypeVar

from psycopg import sql

from entrepot.scripted import Result, Work, work

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping, Sequence

    from entrepot.errors import Outcome
    from entrepot_postgres.pools import Settings

T = TypeVar("T")

Row: TypeAlias = tuple[Any, ...]
Rows: TypeAlias = "list[Row]"
Kind: TypeAlias = Literal["read", "snapshot", "write", "transaction"]
"""Whether a script reads, reads one state of the database by several statements, writes by one statement, or
writes by several that hold together."""
if TYPE_CHECKING:
    Script: TypeAlias = Generator["Begin | Statement | Work", Any, T]
    """The statements of an operation that returns T, and what it computes of their rows."""
    Sending: TypeAlias = Generator["Statement | Work", Any, T]
    """What is sent for a script, which returns T."""

_STEPS: Final = ((1000, 100), (100, 10))
"""Timeouts of at least so many milliseconds are rounded up to such steps, so that they need setting once."""
_LOCKING: Final = {"default_transaction_isolation": "read committed"}
"""Scripts take locks and look again: a statement must see what was committed while it waited."""
_LENT: Final = {"client_encoding": "UTF8"}
"""What a connection of the user's is set to as well; those of this library are made with it."""


class Statement(NamedTuple):
    """A statement to run.

    Attributes:
        query: The SQL; the parts that vary are `psycopg.sql.Identifier` or constants of this package.
        parameters: What is bound.
        settings: Settings of the server that it needs, by name.
        prepare: None lets the driver prepare it once it has been sent often, which saves the server's
            planning: for statements of which there are few. Else it is planned for its parameters.
    """

    query: sql.SQL | sql.Composed
    parameters: Sequence[object] = ()
    settings: Mapping[str, str] = {}
    prepare: bool | None = False


class Begin(NamedTuple):
    """What the statements that follow are, if they do more than read.

    A script may have several such parts, each a transaction of its own; those before the last change nothing.
    """

    kind: Kind


def as_a(kind: Kind, script: Script[T]) -> Script[T]:
    """Return a script that says what it is."""
    yield Begin(kind)
    return (yield from script)


_AT_ONCE: Final = 500
"""Rows that are decoded on the event loop: a few milliseconds."""


def decoded(rows: Rows, function: Callable[[Rows], T]) -> Script[T]:
    """Return what a function makes of rows."""
    return work(function, rows, at_once=len(rows) <= _AT_ONCE)


class Course(Generic[T]):
    """A script on its way through a connection.

    Args:
        script: The script, whose first statement has been taken.
        first: That statement.
        left: Seconds that each statement may take.
        kind: What the script does.
        known: What a connection of this library is set to; None for a connection of the user's, on which
            settings are made for a transaction and end with it.

    Attributes:
        lost: What is known if the connection breaks now.
        in_transaction: Whether its statements stand in a transaction.
    """

    def __init__(
        self, script: Script[T], first: Statement, left: float, kind: Kind, known: Settings | None
    ) -> None:
        self.lost: Outcome = "not_done"
        self.in_transaction = known is None or kind in ("transaction", "snapshot")
        self._script = script
        self._first = first
        self._kind = kind
        self._known = known
        milliseconds = max(1, math.ceil(left * 1000))
        for least, step in _STEPS:
            if milliseconds >= least:
                milliseconds = math.ceil(milliseconds / step) * step
                break
        self._lasting = {"statement_timeout": str(milliseconds)}

    def before(self) -> Sending[None]:
        """Make settings that last, outside of the transaction: a rollback would undo them."""
        if self._known is None:
            return
        wanted = {**_LOCKING, **self._lasting}
        if not self.in_transaction:
            wanted |= self._first.settings
        yield from self._arm(self._known, wanted)

    def within(self) -> Sending[Begin | Result[T]]:
        """Send the statements of the script, each behind the settings that it needs, until it ends or begins anew."""
        statement: Any = self._first
        while True:
            if isinstance(statement, Work):
                pass
            elif self._known is None:
                yield _set({**_LENT, **self._lasting, **statement.settings}, lasting=False)
            elif statement.settings and self.in_transaction:
                yield _set(statement.settings, lasting=False)
            elif statement.settings:
                yield from self._arm(self._known, statement.settings)
            self.lost = "unknown" if self._kind == "write" else "not_done"
            answer = yield statement
            try:
                statement = self._script.send(answer)
            except StopIteration as end:
                statement = Result(end.value)
            if isinstance(statement, Begin | Result):
                if self._kind in ("write", "transaction"):
                    self.lost = "unknown"  # the commit is still to come
                return statement

    @staticmethod
    def _arm(known: Settings, wanted: Mapping[str, str]) -> Sending[None]:
        missing = {name: value for name, value in wanted.items() if known.get(name) != value}
        if missing:
            yield _set(missing, lasting=True)
            known.update(missing)


def _set(settings: Mapping[str, str], *, lasting: bool) -> Statement:
    """Return the statement that makes settings: for the connection, or for the transaction alone."""
    call = sql.SQL("set_config(%s, %s, %s)")
    values: list[object] = []
    for name, value in settings.items():
        values += (name, value, not lasting)
    return Statement(sql.SQL("SELECT ") + sql.SQL(", ").join([call] * len(settings)), values)
