"""The client's local mode: databases of this process, in memory or in folders.

The client is not made for several threads, and a folder belongs to one client. So stores on one place share a
client and a lock, and a script runs whole under that lock: nothing comes between what it reads and what it writes.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import threading
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from qdrant_client import QdrantClient

from entrepot.errors import ClosedError, ConfigurationError, EntrepotError, OperationTimeoutError
from entrepot.exchange import remaining
from entrepot.scripted import carry_out
from entrepot_qdrant import faults
from entrepot_qdrant.disk import one_commit, open_folder, settle

if TYPE_CHECKING:
    from entrepot_qdrant.commands import Call, Script

T = TypeVar("T")


class Database:
    """A client in local mode, its lock, and how many stores use it.

    Attributes:
        client: The client.
        folder: The folder that it was opened on here; None in memory, and for a client of the user's.
        lock: Held for a whole script.
        users: Stores on it.
    """

    def __init__(self, client: QdrantClient, folder: Path | None = None) -> None:
        self.client = client
        self.folder = folder
        self.lock = threading.RLock()
        self.users = 0

    def is_used(self) -> bool:
        """Return whether a store is on it."""
        return self.users > 0

    def called(self, call: Call) -> Any:
        """Make a call of the client."""
        method = getattr(self.client, call.method)
        if self.folder is None or not call.writes:
            return method(**call.arguments)
        try:
            with one_commit(self.client):
                answer = method(**call.arguments)
        except sqlite3.Error:
            # What the client has in memory is not what the disk has: from now on it is.
            self.client.close()
            self.client = open_folder(self.folder)
            raise
        if call.method in _LISTED:
            settle(self.folder)
        return answer


_LISTED: Final = ("create_collection", "delete_collection")
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

    def open(self) -> Database:
        """Take hold of the database, unless that was done; return it.

        Raises:
            ClosedError: The store was closed.
            StoreInUseError: Another process has the folder open.
        """
        with _shared_lock:
            if self._closed:
                raise self._closed_error()
            if self._database is not None:
                return self._database
            if self._client is not None:
                database = _given.setdefault(self._client, Database(self._client))
            else:
                key = self._key
                known = None if key is None else _shared.get(key)
                database = Database(self._made(), self._path) if known is None else known
                if key is not None:
                    _shared[key] = database
            database.users += 1
            self._database = database
            return database

    def _made(self) -> QdrantClient:
        if self._path is None:
            return QdrantClient(":memory:")
        try:
            return open_folder(self._path)
        except (RuntimeError, ValueError, OSError, sqlite3.Error) as error:
            raise faults.local(error, self.where, "") from error

    def close(self) -> None:
        """Give the database back; the last store closes it. A client of the user's stays open."""
        key = self._key
        with _shared_lock:
            self._closed = True
            database, self._database = self._database, None
            if database is None:
                return
            database.users -= 1
            if database.is_used() or self._client is not None:
                return
            if key is not None and _shared.get(key) is not database:  # in a fork: it is the parent's
                return
        # What runs on it ends first, and nobody who opens another one waits for that.
        with database.lock, _shared_lock:
            if database.is_used():  # another store took hold of it meanwhile
                return
            if key is not None:
                if _shared.get(key) is not database:
                    return
                del _shared[key]
            database.client.close()

    async def aclose(self) -> None:
        """As `close`."""
        await asyncio.to_thread(self.close)

    @property
    def native(self) -> object:
        """The driver's client, which no thread may use beside the store."""
        return self.open().client

    def run(self, script: Script[T], collection: str = "") -> T:
        """Carry out a script, alone on its database.

        Raises:
            ClosedError: The store was closed, also while this waited for other operations.
            OperationTimeoutError: Others took too long.
        """
        database = self._database or self.open()
        if not database.lock.acquire(timeout=remaining(self.timeout)):
            msg = f"{self.where} was busy with other operations"
            raise OperationTimeoutError(msg, outcome="not_done")
        try:
            return self._worked(database, script, collection)
        finally:
            database.lock.release()

    async def arun(self, script: Script[T], collection: str = "") -> T:
        """As `run`, in a worker thread."""
        return await asyncio.to_thread(self.run, script, collection)

    def _worked(self, database: Database, script: Script[T], collection: str) -> T:
        """Carry out a script; the lock is held."""
        if self._database is not database:  # closed while this waited
            raise self._closed_error()

        def ask(call: Call) -> object:
            try:
                return database.called(call)
            except EntrepotError:
                raise
            except Exception as error:  # the local mode raises what Python raises
                raise faults.local(error, self.where, collection) from error

        return carry_out(script, ask)


def _resolved(path: str) -> Path:
    """Return the folder itself, so that it has one client whatever link leads to it."""
    try:
        return Path(path).resolve()
    except (OSError, ValueError, RuntimeError) as error:
        msg = f"{path!r} cannot be the path of a folder"
        raise ConfigurationError(msg, hint="choose another path") from error
