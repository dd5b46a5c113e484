"""What a script is made of: calls of the driver, written once for sync and async code.

A script is a generator that yields these and gets the answers; an error comes as one of entrepot's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from entrepot.scripted import Script as Script  # noqa: PLC0414 - for the modules of this package

Filter = dict[str, Any]
Document = dict[str, Any]


class Call(NamedTuple):
    """A method of a collection, or of the database, that answers at once.

    Attributes:
        collection: The engine's name of the collection; None for the database.
        method: The driver's method.
        given: Its arguments.
        options: Its keyword arguments.
        writes: Whether it changes anything.
    """

    collection: str | None
    method: str
    given: tuple[Any, ...] = ()
    options: Mapping[str, Any] = {}
    writes: bool = False

    def __repr__(self) -> str:
        """Return the call without its arguments, which hold values."""
        return f"<{self.method} on {self.collection}>"


class Find(NamedTuple):
    """Documents that satisfy a filter: a list, or with `Open` piece by piece.

    Attributes:
        collection: The engine's name of the collection.
        filter: What they satisfy.
        fields: What to return of each.
        sort: Fields and directions.
        limit: Most of them; 0 for all.
        batch: How many the server sends at a time; 0 leaves it to the server.
    """

    collection: str
    filter: Filter
    fields: Mapping[str, Any] | None = None
    sort: Sequence[tuple[str, int]] | None = None
    limit: int = 0
    batch: int = 0

    def __repr__(self) -> str:
        """Return the call without its filter, which holds values."""
        return f"<find on {self.collection}>"


class Aggregate(NamedTuple):
    """What an aggregation returns: a list. For what the search beside the database answers, which knows no concerns."""

    collection: str
    pipeline: list[dict[str, Any]]

    def __repr__(self) -> str:
        """Return the call without its stages, which hold values."""
        return f"<aggregate on {self.collection}>"


class Open(NamedTuple):
    """Begin to find; the answer is a cursor, which ends with its script."""

    find: Find


class Take(NamedTuple):
    """Return the next documents of a cursor, at most so many; none at the end."""

    cursor: Any
    most: int


class Pause(NamedTuple):
    """Wait for so many seconds."""

    seconds: float


def insert(collection: str, document: Mapping[str, Any]) -> Call:
    """Return the call that inserts a document."""
    return Call(collection, "insert_one", (document,), writes=True)


def bulk(collection: str, operations: Sequence[Any]) -> Call:
    """Return the call that carries out operations, each whether or not others fail."""
    return Call(collection, "bulk_write", (list(operations),), {"ordered": False}, writes=True)


def delete(collection: str, filter: Filter) -> Call:  # noqa: A002 - the driver's word
    """Return the call that deletes what satisfies a filter."""
    return Call(collection, "delete_many", (filter,), writes=True)


def change(collection: str, filter: Filter, what: Document, *, upsert: bool = False) -> Call:  # noqa: A002
    """Return the call that changes one document, or makes it."""
    return Call(collection, "update_one", (filter, what), {"upsert": upsert}, writes=True)
