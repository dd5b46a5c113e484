"""The client's local mode: databases of this process, in memory or in folders.

The client is not made for several threads, and a folder belongs to one client. So stores on one place share a
client and a lock, and a script runs whole under that lock: nothing comes between what it reads and what it writes.
"""

from __future__ import annotations

import asyncio
import gc
import os
import sqlite3
import threading
import warnings
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from qdrant_client import QdrantClient

from entrepot.errors import ClosedError, ConfigurationError, EntrepotError, OperationTimeoutError
from entrepot.exchange import remaining
from entrepot_qdrant import faults

if TYPE_CHECKING:
    from entrepot_qdrant.commands import Call, Script

T = TypeVar("T")


class Database:
    """A client in local mode, its lock, and how many stores use it.

    Attributes:
        client: The client.
        lock: Held for a whole script.
        users: Stores on it.
    """

    def __init__(self, client: QdrantClient) -> None:
        self.client = client
        self.lock = threading.RLock()
        self.users = 0


class _Uncollected:
    """Holds the garbage collector back during scripts, on all threads: it stops the event loop, too (E3).

    The client keeps documents as Python objects, some hundred each, and a full collection goes through all of them
    while a script makes the next thousands. What a script leaves is collected after it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._depth = 0
        self._was_on = False

    def __enter__(self) -> None:
        with self._lock:
            if self._depth == 0:
                self._was_on = gc.isenabled()
                gc.disable()
            self._depth += 1

    def __exit__(self, *_error: object) -> None:
        with self._lock:
            self._depth -= 1
            if self._depth == 0 and self._was_on:
                gc.enable()


_UNCOLLECTED: Final = _Uncollected()

_shared: dict[tuple[str, str, int], Database] = {}
"""Databases that stores share, by what they are, their name, and the process: a fork shares none."""
_given: weakref.WeakKeyDictionary[QdrantClient, Database] = weakref.WeakKeyDictionary()
_shared_lock: Final = threading.Lock()


def is_local(client: object) -> bool:
    """Whether a client of the driver is in local mode."""
    options = cast("dict[str, Any]", getattr(client, "init_options", {}))
    return options.get("location") == ":memory:" or options.get("path") is not None


class LocalEndpoint:
    """One store's hold on a database.

    Args:
        path: The folder, if it is in one.
        memory: The name in memory, if stores share it; a private one otherwise.
        timeout: Seconds to wait for other stores, outside of an exchange.
        client: A client of the user's, which is used and not closed.
    """

    is_local = True
    has_sync = True
    has_async = False

    def __init__(
        self, *, path: str | None, memory: str | None, timeout: float, client: object = None
    ) -> None:
        if (path is not None) + (memory is not None) + (client is not None) > 1:
            msg = "a store has one of a folder, a name in memory, and a client"
            raise ConfigurationError(msg)
        if client is not None and not (isinstance(client, QdrantClient) and is_local(client)):
            msg = f"client must be a QdrantClient in local mode, not {type(client).__name__}"
            raise ConfigurationError(msg, hint="clients of servers go with qdrant://")
        self.where = "Qdrant in memory" if path is None else f"Qdrant in {path!r}"
        self.timeout = timeout
        self._client: QdrantClient | None = client
        self._path = None if path is None else _resolved(path)
        self._memory = memory
        self._database: Database | None = None
        self._closed = False

    def _closed_error(self) -> ClosedError:
        return ClosedError(f"the store in {self.where} was closed")

    @property
    def _key(self) -> tuple[str, str, int] | None:
        if self._path is not None:
            return ("folder", str(self._path), os.getpid())
        return None if self._memory is None else ("memory", self._memory, os.getpid())

    def open(self) -> None:
        """Take hold of the database.

        Raises:
            StoreInUseError: Another process has the folder open.
        """
        with _shared_lock:
            if self._closed:
                raise self._closed_error()
            if self._database is not None:
                return
            if self._client is not None:
                database = _given.setdefault(self._client, Database(self._client))
            else:
                key = self._key
                known = None if key is None else _shared.get(key)
                database = Database(self._made()) if known is None else known
                if key is not None:
                    _shared[key] = database
            database.users += 1
            self._database = database

    def _made(self) -> QdrantClient:
        if self._path is None:
            return QdrantClient(":memory:")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # that it is for small collections is on the page
                client = QdrantClient(path=str(self._path), force_disable_check_same_thread=True)
                _quicken(client)
                return client
        except (RuntimeError, ValueError, OSError, sqlite3.Error) as error:
            raise faults.local(error, self.where, "") from error

    def close(self) -> None:
        """Give the database back; the last store closes it. A client of the user's stays open."""
        with _shared_lock:
            self._closed = True
            database, self._database = self._database, None
            if database is None:
                return
            database.users -= 1
            if database.users or self._client is not None:
                return
            key = self._key
            if key is not None:
                if _shared.get(key) is not database:  # in a fork: it is the parent's
                    return
                del _shared[key]
            with database.lock:
                database.client.close()

    async def aclose(self) -> None:
        """As `close`."""
        await asyncio.to_thread(self.close)

    @property
    def native(self) -> object:
        """The driver's client, which no thread may use beside the store."""
        self.open()
        return None if self._database is None else self._database.client

    def run(self, script: Script[T], collection: str = "") -> T:
        """Carry out a script, alone on its database."""
        self.open()
        database = self._database
        if database is None:
            raise self._closed_error()
        if not database.lock.acquire(timeout=remaining(self.timeout)):
            msg = f"{self.where} was busy with other operations"
            raise OperationTimeoutError(msg, outcome="not_done")
        try:
            with _UNCOLLECTED:
                return self._worked(database, script, collection)
        finally:
            database.lock.release()

    def _worked(self, database: Database, script: Script[T], collection: str) -> T:
        """Carry out a script; the lock is held."""
        if self._database is not database:  # closed while this waited
            raise self._closed_error()
        try:
            call: Call = next(script)
            while True:
                try:
                    answer = _called(database.client, call)
                except EntrepotError:
                    raise
                except Exception as error:  # noqa: BLE001 - the local mode raises what Python raises
                    fault = faults.local(error, self.where, collection)
                    fault.__cause__ = error
                    call = script.throw(fault)
                else:
                    call = script.send(answer)
        except StopIteration as end:
            return cast("T", end.value)

    async def arun(self, script: Script[T], collection: str = "") -> T:
        """As `run`, in a worker thread."""
        return await asyncio.to_thread(self.run, script, collection)


def _called(client: QdrantClient, call: Call) -> Any:
    answer = getattr(client, call.method)(**call.arguments)
    if call.method == "create_collection":
        _quicken(client)
    return answer


def _quicken(client: Any) -> None:
    """Let SQLite commit to a log: the client commits each point, and would wait for the disk each time.

    What returned survives the end of the process; a power cut may take the last commits and damages nothing. The
    client offers no way to its databases; where they are not found, writes are as slow as they were.
    """
    for collection in getattr(getattr(client, "_client", None), "collections", {}).values():
        connection = getattr(getattr(collection, "storage", None), "storage", None)
        if isinstance(connection, sqlite3.Connection):
            connection.execute("PRAGMA journal_mode=WAL").close()
            connection.execute("PRAGMA synchronous=NORMAL").close()


def _resolved(path: str) -> Path:
    """Return the folder itself, so that it has one client whatever link leads to it."""
    try:
        return Path(path).resolve()
    except (OSError, ValueError, RuntimeError) as error:
        msg = f"{path!r} cannot be the path of a folder"
        raise ConfigurationError(msg, hint="choose another path") from error
