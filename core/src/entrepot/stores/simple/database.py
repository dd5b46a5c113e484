"""Databases of the embedded store: collections in memory, with or without a file behind them.

Store objects of one process that name the same file share one `Database`, so each sees what the
others wrote at once (S7). The last one that closes it closes the file.
"""

from __future__ import annotations

import logging
import os
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Final

from entrepot.errors import (
    CollectionMismatchError,
    CollectionNotFoundError,
    ConfigurationError,
    EntrepotError,
    StoreInUseError,
)
from entrepot.stores.simple.log import Log, Stored, WriterLock, file_errors, settle
from entrepot.stores.simple.rows import Rows, Write

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from entrepot.records import CollectionInfo
    from entrepot.stores.simple.rows import NewRows

_log: Final = logging.getLogger(__name__)


class Collection:
    """One collection: its rows, and where its writes go before readers see them."""

    def __init__(self, database: Database, info: CollectionInfo, stored: Stored | None) -> None:
        self.info = info
        self.rows = Rows(info.dimension, info.metric)
        self.writing = threading.RLock()
        self.dropped = False
        self._database = database
        self._stored: Stored | None = None
        self._sequence = 0
        if stored is not None:
            self._catch_up(stored)

    def write(self, new: NewRows | None, deleted: Sequence[str] = ()) -> None:
        """Store rows or delete ids: durable first, then visible. The caller holds `writing`.

        Raises:
            CollectionNotFoundError: The collection was dropped.
            CollectionMismatchError: The vectors have another dimension; nothing was written.
        """
        if self.dropped:
            raise missing(self.info.name)
        if new is not None:
            self._refuse_misfit(new)
        write = Write(deleted, new)
        log = self._database.log
        if log is not None:
            if self._stored is None:
                raise missing(self.info.name)
            with self._database.lock:
                self._sequence = log.commit(self._stored.number, write)
        self.rows.apply([write])
        if self.rows.wasteful:
            self._compact()

    def _refuse_misfit(self, new: NewRows) -> None:
        """Refuse what could be committed and then neither be shown nor read again."""
        count, dimension = new.vectors.shape
        if dimension != self.info.dimension:
            msg = (
                f"collection {self.info.name!r} has dimension {self.info.dimension}, the vectors {dimension}"
            )
            raise CollectionMismatchError(
                msg, hint="use another collection, or the model that filled this one"
            )
        if not count == len(new.ids) == len(new.texts) == len(new.metadata):
            msg = "rows need an id, a text, metadata and a vector each"
            raise ValueError(msg)

    def _compact(self) -> None:
        """Clear dead rows. The write before it is done already, so it does not fail with this."""
        try:
            rows = self.rows.compacted()
            # Should the file refuse, it holds more segments and says the same; it is asked again when
            # as many rows have died anew.
            self.rows = rows
            log = self._database.log
            if log is not None and self._stored is not None:
                with self._database.lock:
                    self._sequence = log.rewrite(self._stored.number, rows.everything())
        except (EntrepotError, MemoryError) as error:
            _log.warning("collection %r could not be compacted: %s", self.info.name, type(error).__name__)

    def _catch_up(self, stored: Stored) -> None:
        """Read the segments that another process, or an earlier one, has written."""
        log = self._database.log
        if log is None:
            return
        rows, last = self.rows, self._sequence
        if self._stored is None or stored.generation != self._stored.generation:
            rows, last = Rows(stored.info.dimension, stored.info.metric), 0

        def writes() -> Iterator[Write]:
            nonlocal last
            for segment in log.segments(stored, last):
                last = segment.sequence
                yield segment.write

        # All at once to readers: where one segment ends need not be where a write ends.
        rows.apply(writes(), keep=True)
        self._stored, self._sequence, self.rows = stored, last, rows

    def follow(self, stored: Stored) -> None:
        """Take in what the writing process has committed since; the caller holds the database's lock.

        For read-only openers, where `writing` guards nothing: no write comes so far as to take it.
        """
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
            with self.log.reading():
                stored = self.log.stored(name)
                if stored is None:
                    return None
                collection = self._collections[name] = Collection(self, stored.info, stored)
            return collection

    def _refresh(self, log: Log) -> None:
        if log.data_version() == self._data_version:
            return
        try:
            with log.reading():
                version = log.data_version()
                for name, collection in list(self._collections.items()):
                    stored = log.stored(name)
                    if stored is None or stored.info != collection.info:
                        collection.dropped = True
                        del self._collections[name]
                    else:
                        collection.follow(stored)
            self._data_version = version
        except BaseException:
            # What was taken in by half is of no use: read it all anew next time.
            self._collections.clear()
            self._data_version = -1
            raise

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
        if self.log is not None:
            self.log.refuse_read_only()
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
        ConfigurationError: The system cannot have a file of that name.
    """
    if path is None and name is None:
        return Database(None, None)
    path = None if path is None else _resolved(path)
    key = f"memory:{name}" if path is None else _key(path, read_only=read_only)
    with _shared_lock:
        known = _shared.get(key)
        if known is not None:
            known.users += 1
            return known
        log = None if path is None else Log(path, read_only=read_only)
        database = _shared[key] = Database(key, log)
        return database


def _key(path: Path, *, read_only: bool) -> str:
    return f"{'ro' if read_only else 'rw'}:{path}"


def _resolved(path: Path) -> Path:
    """Return the file itself, so that it has one lock and one database whatever link leads to it."""
    try:
        return path.resolve()
    except (OSError, ValueError, RuntimeError) as error:  # a zero byte, a surrogate, links in a circle
        msg = f"{str(path)!r} cannot be the path of a file"
        raise ConfigurationError(msg, hint="choose another path") from error


def release(database: Database) -> None:
    """Give a database back; the last user closes it."""
    with _shared_lock:
        # In a child process the databases of its parent are not shared, and not the child's to close.
        if database.key is None or _shared.get(database.key) is not database:
            return
        database.users -= 1
        if database.users:
            return
        del _shared[database.key]
        with database.lock:
            if database.log is not None:
                database.log.close()


def _forget() -> None:
    """A child process shares nothing with its parent: the file's lock and connection stay there."""
    global _shared_lock  # noqa: PLW0603 - another thread of the parent may have held it
    _shared_lock = threading.Lock()
    _shared.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def write_file(path: Path, collections: Sequence[Collection]) -> None:
    """Write collections into a new file, put in place in one step.

    Raises:
        StoreInUseError: The file exists, and somebody writes to it.
        UnreachableError: The folder is missing, or cannot be written.
    """
    path = _resolved(path)
    if path.is_dir():
        msg = f"{path.name!r} is a folder"
        raise ConfigurationError(msg, hint="name a file in it")
    with _shared_lock:
        if _key(path, read_only=False) in _shared:
            msg = f"this process writes to {path.name!r}"
            raise StoreInUseError(msg, hint="choose another file, or close the store", retryable=False)
    lock = WriterLock(path)
    try:
        with file_errors(path):
            _write_beside(path, collections)
    finally:
        lock.release()


def _write_beside(path: Path, collections: Sequence[Collection]) -> None:
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    os.close(handle)
    target = Path(temporary)
    try:
        log = Log(target, read_only=False)
        try:
            for collection in collections:
                log.create(collection.info)
                stored = log.stored(collection.info.name)
                if stored is not None:
                    log.commit(stored.number, Write((), collection.rows.everything()))
        finally:
            log.close()
        settle(path)
        target.replace(path)
    finally:
        for leftover in (target, *(target.with_name(target.name + end) for end in (".lock", "-wal", "-shm"))):
            leftover.unlink(missing_ok=True)
