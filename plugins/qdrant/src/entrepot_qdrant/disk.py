"""Folders of the local mode: what makes a write last.

The client commits each point by itself, and SQLite waits for the disk each time. Here each call of the client is
one transaction of each collection, under SQLite's own settings (a rollback journal, ``synchronous=FULL``): what
returned survives the end of the process and a power cut, and of a call all or nothing is on the disk.

The client offers no way to its databases, so they are taken where they are; where they are not found, it commits
each point as ever.
"""

from __future__ import annotations

import os
import sqlite3
import warnings
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Self

from qdrant_client import QdrantClient

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path


def open_folder(path: Path) -> QdrantClient:
    """Return a client on a folder."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it is for small collections is on the documentation's page
        return QdrantClient(path=str(path), force_disable_check_same_thread=True)


class _Connection:
    """A connection of SQLite as the client uses it; the end of a ``with`` block does not commit."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        """Leave the transaction open."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)


@contextmanager
def one_commit(client: QdrantClient) -> Generator[None]:
    """Commit what the block writes when it ends, whatever way it does: the client's memory has it by then.

    Raises:
        sqlite3.Error: The disk did not take it.
    """
    connections = list(_connections(client))
    try:
        yield
    finally:
        for connection in connections:
            with suppress(sqlite3.ProgrammingError):  # closed: its collection was dropped
                connection.commit()


def _connections(client: Any) -> Generator[_Connection]:
    for collection in getattr(getattr(client, "_client", None), "collections", {}).values():
        storage: Any = getattr(collection, "storage", None)
        connection = getattr(storage, "storage", None)
        if isinstance(connection, sqlite3.Connection):
            connection = storage.storage = _Connection(connection)
        if isinstance(connection, _Connection):
            yield connection


def settle(path: Path) -> None:
    """Wait until the disk has the list of collections, and the folders of new ones."""
    for each in (
        path / "meta.json",
        *(path / "collection").glob("*"),
        path / "collection",
        path,
        path.parent,
    ):
        # Systems that cannot open a folder keep its entries by themselves.
        with suppress(OSError):
            number = os.open(each, os.O_RDONLY)
            try:
                os.fsync(number)
            finally:
                os.close(number)
