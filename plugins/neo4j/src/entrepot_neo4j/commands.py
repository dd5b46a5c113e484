"""What a script is made of: statements, written once for sync and async code.

A script is a generator that yields statements, or units of them, and gets their rows. A statement alone is a
transaction of its own; a unit is one of several, and is begun anew where the server gave it up for another one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from entrepot.scripted import Script as Script  # noqa: PLC0414 - for the modules of this package

ROWS: Final = 100
"""Rows that come at a time, so that the event loop is free in between (E3)."""


class Statement(NamedTuple):
    """A statement of Cypher.

    Attributes:
        text: Its text, which holds no value of the user's.
        parameters: All values.
        writes: Whether it changes anything.
        rows: Rows that come at a time.
    """

    text: str
    parameters: Mapping[str, Any]
    writes: bool = False
    rows: int = ROWS

    def __repr__(self) -> str:
        """Return the statement without its parameters."""
        return f"<{self.text}>"


class Unit(NamedTuple):
    """Statements that are one transaction.

    Attributes:
        script: Makes the script that yields them; again where the transaction is begun anew.
        writes: Whether they change anything, or take locks.
        changes: Whether they change anything.
        rows: Rows that come at a time, of each.
    """

    script: Callable[[], Script[Any]]
    writes: bool = True
    changes: bool = True
    rows: int = ROWS


def read(text: str, *, rows: int = ROWS, **parameters: Any) -> Statement:
    """Return a statement that changes nothing."""
    return Statement(text, parameters, rows=rows)


def change(text: str, **parameters: Any) -> Statement:
    """Return a statement that changes something."""
    return Statement(text, parameters, writes=True)
