"""The connection to a database, and transactions on it (E4, E5)."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TypeAlias

import duckdb
from entrepot.errors import ClosedError
from entrepot.exchange import remaining

from entrepot_duckdb.faults import opening, too_late, working

Transaction: TypeAlias = AbstractContextManager[duckdb.DuckDBPyConnection]

_LOCKS: dict[str, threading.Lock] = {}
_LOCKS_LOCK = threading.Lock()


class Database:
    """A database that threads share; each transaction runs on a cursor, a connection of its own.

    DuckDB gives every transaction a snapshot, so that readers see whole writes only, and refuses the second
    of two transactions that change the same rows. Writers therefore take turns: one lock for each file, and
    one for all databases in memory, which DuckDB does not tell apart.

    Attributes:
        connection: The driver's connection, for the caller.
        name: What messages call the database.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection, name: str, *, owned: bool) -> None:
        self.connection = connection
        self.name = name
        self._owned = owned
        # A connection refuses a call while another one runs on it: the caller's stays out of this.
        self._source = connection.cursor()
        self._running = 0
        self._closed = False
        self._turn = threading.Condition()
        place = self._source.execute(
            "SELECT path FROM duckdb_databases() WHERE database_name = current_database()"
        ).fetchone()
        with _LOCKS_LOCK:
            self._lock = _LOCKS.setdefault(str(place[0]) if place else "", threading.Lock())

    @classmethod
    def open(cls, database: str) -> Database:
        """Open a file, or a database in memory; both are shared within the process."""
        in_memory = database.startswith(":memory:")
        with opening(database):
            # One spelling for each file: DuckDB finds by it that this process has the file open already.
            path = database if in_memory else str(Path(database).resolve())
            return cls(duckdb.connect(path), database, owned=True)

    @classmethod
    def around(cls, client: duckdb.DuckDBPyConnection) -> Database:
        """Take a connection of the caller's, which stays open."""
        with opening("the client's database"):
            return cls(client, "the client's database", owned=False)

    def close(self) -> None:
        """Wait for what is under way, and close what was opened here; the caller's connection stays open."""
        with self._turn, working(self.name):
            self._closed = True
            self._turn.wait_for(lambda: self._running == 0)
            self._source.close()
            if self._owned:
                self.connection.close()

    @contextmanager
    def _cursor(self) -> Iterator[duckdb.DuckDBPyConnection]:
        with self._turn:
            if self._closed:
                msg = f"the connection to {self.name} was closed meanwhile"
                raise ClosedError(msg)
            cursor = self._source.cursor()
            self._running += 1
        try:
            yield cursor
        finally:
            cursor.close()
            with self._turn:
                self._running -= 1
                self._turn.notify_all()

    @contextmanager
    def reading(self, seconds: float) -> Iterator[duckdb.DuckDBPyConnection]:
        """Run what is within as one transaction, which sees one state of the database."""
        with working(self.name), self._cursor() as cursor:
            # DuckDB has no timeout of its own.
            timer = threading.Timer(seconds, cursor.interrupt)
            timer.daemon = True
            timer.start()
            try:
                cursor.begin()
                yield cursor
                timer.cancel()
                cursor.commit()
            finally:
                timer.cancel()  # what was not committed is rolled back when the cursor closes

    @contextmanager
    def writing(self, seconds: float) -> Iterator[duckdb.DuckDBPyConnection]:
        """Run what is within as one transaction, with no other writer of this process beside it."""
        if not self._lock.acquire(timeout=seconds):
            raise too_late(self.name)
        try:
            with self.reading(remaining(seconds)) as cursor:
                yield cursor
        finally:
            self._lock.release()
