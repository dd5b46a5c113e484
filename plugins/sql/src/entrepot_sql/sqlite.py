"""SQLite: one file, or one database in memory; write-ahead log, every commit synchronised to the disk."""

from __future__ import annotations

import sqlite3
import time
from contextlib import contextmanager, nullcontext
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, ClassVar, Final

from sqlalchemy import create_engine, event, func, inspect
from sqlalchemy.dialects.sqlite import insert
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import QueuePool, SingletonThreadPool, StaticPool

from entrepot.errors import (
    BackendError,
    ConfigurationError,
    CorruptDataError,
    EntrepotError,
    OperationTimeoutError,
    UnreachableError,
)
from entrepot_sql.dialects import Dialect
from entrepot_sql.turns import Turns
from entrepot_sql.writes import UpsertingWrites, Writes

if TYPE_CHECKING:
    from collections.abc import Generator
    from contextlib import AbstractContextManager

    from sqlalchemy import URL, ColumnElement, Connection, Engine
    from sqlalchemy.engine.interfaces import Dialect as Driver

    from entrepot_sql.schema import Schema

_MEMORY: Final = (None, "", ":memory:")
_KEPT_OPEN: Final = 5
"""Connections that the pool keeps; more are opened when more threads ask."""
_BUSY: Final = "entrepot_busy_timeout"
_PAUSE: Final = 0.01
_AT_ONCE: Final = nullcontext()
_PRIMARY: Final = 0xFF
"""SQLite's extended result codes have the primary code in their low byte."""


class SqliteDialect(Dialect):
    """One writer at a time and any number of readers, over the driver `sqlite3` of the standard library.

    Writers of this repository queue up in the process: SQLite itself lets waiters poll, which is
    slow and in no order. Other processes are waited for by SQLite's busy timeout.
    """

    name: ClassVar[str] = "sqlite"
    driver: ClassVar[str] = "pysqlite"

    def __init__(self) -> None:
        self._turns = Turns()
        self._alone = False

    # --- connecting -------------------------------------------------------------------------------------

    def make_engine(self, url: URL, timeout: float) -> Engine:
        """Make an engine whose connections commit only when told to, and then durably."""
        if url.host or url.port or url.username or url.password:
            msg = "sql+sqlite:// names a file and takes no host, port, user or password"
            raise ConfigurationError(
                msg, hint="a relative path has three slashes, sql+sqlite:///chat.db, an absolute one four"
            )
        if url.query:
            msg = "sql+sqlite:// takes no parameters of the driver"
            raise ConfigurationError(msg, hint="the options are timeout and ttl")
        _refuse_async(url.get_dialect())
        # A database in memory is its connection, so there is one, and threads take it in turns.
        memory = self._alone = url.database in _MEMORY
        engine = create_engine(
            url,
            hide_parameters=True,
            poolclass=QueuePool,
            pool_size=1 if memory else _KEPT_OPEN,
            max_overflow=0 if memory else -1,
            pool_timeout=timeout,
            connect_args={"isolation_level": None, "check_same_thread": False, "timeout": timeout},
        )
        event.listen(engine, "connect", _synchronise)
        return engine

    def check_engine(self, engine: Engine) -> None:
        """Refuse engines whose threads would share a connection, or have a database in memory each."""
        _refuse_async(engine.dialect)
        if isinstance(engine.pool, StaticPool | SingletonThreadPool):
            kind = type(engine.pool).__name__
            msg = f"the engine has a {kind}, which cannot keep the transactions of threads apart"
            raise ConfigurationError(
                msg, hint="use a file and a QueuePool, or the URL sql+sqlite:// without client for memory"
            )

    def label(self, url: URL) -> str:
        """Return the file's name without its folder."""
        return "memory" if url.database in _MEMORY else PurePath(str(url.database)).name

    def settle(self, connection: Connection, schema: Schema, timeout: float) -> None:
        """Refuse a file that holds tables and none of ours; switch to the write-ahead log."""
        # One look at the tables: between two, another process may make them.
        names = inspect(connection).get_table_names()
        if names and schema.layout.name not in names:
            msg = f"{self.label(connection.engine.url)!r} is a SQLite file of other software"
            raise CorruptDataError(
                msg, hint="choose another path; to share a database on purpose, give an Engine as client"
            )
        if connection.engine.url.database in _MEMORY:
            return
        if _switched(connection, time.monotonic() + timeout) != "wal":
            msg = f"the place of {self.label(connection.engine.url)!r} does not allow a write-ahead log"
            raise BackendError(msg, hint="put the file on a local disk")

    # --- transactions -----------------------------------------------------------------------------------

    @contextmanager
    def bounded(self, connection: Connection, timeout: float) -> Generator[None]:
        """Set SQLite's busy timeout, if the connection has not about that one already."""
        wanted = max(1, int(timeout * 1000))
        known = connection.info.get(_BUSY, 0)
        if not 0.9 * known <= wanted <= 1.1 * known:
            connection.exec_driver_sql(f"PRAGMA busy_timeout = {wanted}")
            connection.info[_BUSY] = wanted
        yield

    def turn(self, timeout: float, *, writing: bool) -> AbstractContextManager[None]:
        """Let writers go one after another, and readers too where there is one connection."""
        return self._turns.taken(timeout) if writing or self._alone else _AT_ONCE

    def begin(self, connection: Connection) -> None:
        """Take the write lock at once: a transaction that reads first might find it gone when it writes."""
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    # --- statements -------------------------------------------------------------------------------------

    def writes(self, schema: Schema) -> Writes:
        """Upsert."""
        return UpsertingWrites(schema, insert)

    def contains(self, column: ColumnElement[bytes], needle: ColumnElement[bytes]) -> ColumnElement[bool]:
        """Compare bytes, so that case counts and nothing is a wildcard."""
        return func.instr(column, needle) > 0

    # --- errors -----------------------------------------------------------------------------------------

    def fault(self, error: BaseException, where: str, *, ending: bool) -> EntrepotError:  # noqa: ARG002
        """Tell by SQLite's result code what happened. A statement or commit that fails is rolled back."""
        code = _code(error)
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            return OperationTimeoutError(
                f"another writer kept {where} locked",
                hint="try again, raise timeout, or keep transactions of other programs short",
                outcome="not_done",
            )
        if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
            return CorruptDataError(f"{where} is damaged, or no SQLite file", hint="restore it from a backup")
        if code == sqlite3.SQLITE_CANTOPEN:
            return UnreachableError(
                f"{where} cannot be opened",
                hint="check that its folder exists and may be written to",
                retryable=False,
            )
        if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH):
            return BackendError(f"{where} cannot be written", hint="check the permissions of file and folder")
        if code == sqlite3.SQLITE_FULL:
            return BackendError(f"there is no room left for {where}", hint="make room on the disk")
        if code == sqlite3.SQLITE_IOERR:
            return BackendError(
                f"reading or writing {where} failed", hint="check the disk", outcome="unknown"
            )
        return BackendError(f"SQLite failed with {type(error).__name__} on {where}")


def _code(error: BaseException | None) -> int | None:
    code = getattr(error, "sqlite_errorcode", None)
    return code & _PRIMARY if isinstance(code, int) else None


def _switched(connection: Connection, until: float) -> object:
    """Switch to the write-ahead log and return the mode that SQLite says it has."""
    while True:
        try:
            return connection.exec_driver_sql("PRAGMA journal_mode = WAL").scalar_one()
        except DBAPIError as error:
            # Two processes that switch at once would wait for each other: SQLite fails one at once.
            if _code(error.orig) != sqlite3.SQLITE_BUSY or time.monotonic() >= until:
                raise
        time.sleep(_PAUSE)


def _refuse_async(driver: Driver | type[Driver]) -> None:
    if driver.is_async:
        msg = f"the driver {driver.driver} is for asyncio only"
        raise ConfigurationError(msg, hint="use sql+sqlite://; async calls run in worker threads")


def _synchronise(connection: Any, _record: object) -> None:
    """Let a commit return when the disk has it: SQLite's builds differ in what they do by default."""
    connection.execute("PRAGMA synchronous = FULL")
