"""Databases of the embedded store: collections in memory, with or without a file behind them.

Store objects of one process that name the same file share one `Database`, so each sees what the
others wrote at once (S7). The last one that closes it closes the file.
"""

from __future__ import annotations

import os
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Final

from entrepot.errors import CollectionNotFoundError
from entrepot.stores.simple.log import Log, Stored
from entrepot.stores.simple.rows import Rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from entrepot.records import CollectionInfo
    from entrepot.stores.simple.rows import NewRows

_LARGEST_SEGMENT: Final = 256 * 1024 * 1024
"""Bytes of vectors in one segment of a rewritten file: well under what SQLite puts into one blob."""


class Collection:
    """One collection: its rows, and where its writes go before readers see them."""

    def __init__(self, database: Database, info: CollectionInfo, stored: Stored | None) -> None:
        self.info = info
        self.rows = Rows(info.dimension, info.metric)
        self.writing = threading.RLock()
        self.dropped = False
        self._database = database
        self._stored = stored
        self._sequence = 0
        if stored is not None:
            self._catch_up(stored)

    def write(self, new: NewRows | None, deleted: Sequence[str] = ()) -> None:
        """Store rows or delete ids: durable first, then visible. The caller holds `writing`."""
        if self.dropped:
            raise missing(self.info.name)
        log = self._database.log
        if log is not None:
            if self._stored is None:
                raise missing(self.info.name)
            with self._database.lock:
                self._sequence = log.commit(self._stored.number, deleted, new)
        self._apply(new, deleted)
        if self.rows.wasteful:
            self._compact()

    def _apply(self, new: NewRows | None, deleted: Sequence[str], *, keep: bool = False) -> None:
        if deleted:
            self.rows.kill(self.rows.find(deleted))
        if new is not None and len(new.ids):
            self.rows.append(new, keep=keep)

    def _compact(self) -> None:
        rows = self.rows.compacted()
        log = self._database.log
        if log is not None and self._stored is not None:
            with self._database.lock:
                self._sequence = log.rewrite(self._stored.number, rows.everything())
        self.rows = rows

    def _catch_up(self, stored: Stored) -> None:
        """Read the segments that another process, or an earlier one, has written."""
        log = self._database.log
        if log is None:
            return
        if self._stored is None or stored.generation != self._stored.generation:
            self.rows = Rows(stored.info.dimension, stored.info.metric)
            self._sequence = 0
        self._stored = stored
        for segment in log.segments(stored, self._sequence):
            self._apply(segment.new, segment.deleted, keep=True)
            self._sequence = segment.sequence

    def follow(self, stored: Stored) -> None:
        """Take in what the writing process has committed since (read-only openers)."""
        with self.writing:
            self._catch_up(stored)


class Database:
    """Collections by name. `key` is the file, the name in memory, or None for a private one."""

    def __init__(self, key: str | None, log: Log | None) -> None:
        self.key = key
        self.log = log
        self.users = 1
        self.lock = threading.RLock()
        self._collections: dict[str, Collection] = {}
        self._data_version = -1

    def collection(self, name: str) -> Collection | None:
        """Return a collection as it is now, or None."""
        with self.lock:
            if self.log is not None and self.log.read_only:
                self._refresh(self.log)
            known = self._collections.get(name)
            if known is not None or self.log is None:
                return known
            stored = self.log.stored(name)
            if stored is None:
                return None
            collection = self._collections[name] = Collection(self, stored.info, stored)
            return collection

    def _refresh(self, log: Log) -> None:
        version = log.data_version()
        if version == self._data_version:
            return
        self._data_version = version
        for name, collection in list(self._collections.items()):
            stored = log.stored(name)
            if stored is None or stored.info != collection.info:
                collection.dropped = True
                del self._collections[name]
            else:
                collection.follow(stored)

    def create(self, info: CollectionInfo) -> None:
        """Make a collection if there is none of that name."""
        with self.lock:
            if self.collection(info.name) is not None:
                return
            stored = None
            if self.log is not None:
                self.log.create(info)
                stored = self.log.stored(info.name)
            self._collections[info.name] = Collection(self, info, stored)

    def drop(self, name: str) -> None:
        """Remove a collection, if it is there."""
        collection = self.collection(name)
        if collection is None:
            return
        with collection.writing, self.lock:
            if self.log is not None:
                self.log.drop(name)
            collection.dropped = True
            self._collections.pop(name, None)

    def names(self) -> list[str]:
        """Return the names of all collections, sorted."""
        with self.lock:
            return sorted(self._collections) if self.log is None else self.log.collections()


def missing(name: str) -> CollectionNotFoundError:
    """Return the error for a collection that is not there."""
    return CollectionNotFoundError(f"there is no collection {name!r}")


_shared: dict[str, Database] = {}
_shared_lock = threading.Lock()


def open_database(path: Path | None, *, name: str | None = None, read_only: bool = False) -> Database:
    """Return the database of a file, of a name in this process's memory, or a private one.

    Raises:
        StoreInUseError: Another process writes to the file.
    """
    if path is None and name is None:
        return Database(None, None)
    key = f"memory:{name}" if path is None else f"{'ro' if read_only else 'rw'}:{path.resolve()}"
    with _shared_lock:
        known = _shared.get(key)
        if known is not None:
            known.users += 1
            return known
        log = None if path is None else Log(path, read_only=read_only)
        database = _shared[key] = Database(key, log)
        return database


def release(database: Database) -> None:
    """Give a database back; the last user closes it."""
    with _shared_lock:
        database.users -= 1
        if database.users or database.key is None:
            return
        del _shared[database.key]
        with database.lock:
            if database.log is not None:
                database.log.close()


def _forget() -> None:
    """A child process shares nothing with its parent: the file's lock and connection stay there."""
    _shared.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def write_file(path: Path, collections: Sequence[Collection]) -> None:
    """Write collections into a new file, put in place in one step."""
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    os.close(handle)
    target = Path(temporary)
    try:
        log = Log(target, read_only=False)
        try:
            for collection in collections:
                log.create(collection.info)
                stored = log.stored(collection.info.name)
                rows = collection.rows.everything()
                step = max(1, _LARGEST_SEGMENT // (4 * collection.info.dimension))
                for start in range(0, len(rows.ids), step):
                    part = rows.part(start, start + step)
                    if stored is not None:
                        log.commit(stored.number, [], part)
        finally:
            log.close()
        target.replace(path)
    finally:
        for leftover in (target, *(target.with_name(target.name + end) for end in (".lock", "-wal", "-shm"))):
            leftover.unlink(missing_ok=True)
