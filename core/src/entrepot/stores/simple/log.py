"""One SQLite file that holds collections: a log of writes, each durable when it is committed.

A row of the table `segment` is one write: the documents it stored and the ids it deleted. Reading
a collection is reading its segments in order, a later one winning. Large writes are one row, so
opening reads blobs, not documents; only what one row of SQLite cannot hold becomes several, in one
transaction. Journal WAL, ``synchronous=FULL``: what `commit` returned from
survives a crash of the process and of the machine.
"""

from __future__ import annotations

import os
import sqlite3
import sys
from contextlib import closing, contextmanager, suppress
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec
import numpy as np

from entrepot.capabilities import Metric
from entrepot.errors import (
    BackendError,
    CorruptDataError,
    SizeLimitError,
    StoreInUseError,
    UnreachableError,
    UnsupportedError,
)
from entrepot.records import LAYOUT_VERSION, CollectionInfo
from entrepot.stores.simple.rows import NewRows, Write

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from pathlib import Path

APPLICATION_ID: Final = 0x656E7472
"""Marks a file as ours (SQLite's ``PRAGMA application_id``); the letters ``entr``."""
_PAGE_SIZE: Final = 16_384
_LARGEST_SEGMENT: Final = 256 * 1024 * 1024
"""Bytes of one segment: well under the 1e9 that a row of SQLite takes unless it was built otherwise."""

_TABLES: Final = """
CREATE TABLE collection (
    name TEXT PRIMARY KEY, number INTEGER NOT NULL UNIQUE, generation INTEGER NOT NULL,
    dimension INTEGER NOT NULL, metric TEXT NOT NULL, model TEXT, layout INTEGER NOT NULL
) STRICT;
CREATE TABLE segment (
    sequence INTEGER PRIMARY KEY AUTOINCREMENT, collection INTEGER NOT NULL,
    deleted BLOB, ids BLOB, texts BLOB, metadata BLOB, vectors BLOB
) STRICT;
CREATE INDEX segment_of_collection ON segment (collection, sequence);
"""

_pack = msgspec.msgpack.Encoder().encode
_strings = msgspec.msgpack.Decoder(list[str]).decode
_texts = msgspec.msgpack.Decoder(list[str | None]).decode
_blobs = msgspec.msgpack.Decoder(list[bytes]).decode


class Segment(NamedTuple):
    """One write, as it is read back."""

    sequence: int
    write: Write


class Stored(NamedTuple):
    """What the file tells of a collection."""

    number: int
    generation: int
    info: CollectionInfo


class Log:
    """The file. Not thread-safe: its owner holds a lock around every call.

    Args:
        path: The file itself, links followed, so that it has one lock and one WAL under every name.
        read_only: Whether another process may write to it meanwhile.

    Raises:
        StoreInUseError: Another process has the file open for writing, or could under another name.
        CorruptDataError: The file is not one of ours.
    """

    def __init__(self, path: Path, *, read_only: bool) -> None:
        self.path = path
        self.read_only = read_only
        self._lock = None if read_only else WriterLock(path)
        try:
            if not read_only:
                _refuse_hard_links(path)
            self._connection = self._connect()
            try:
                self._file = _identity(path)
            except BaseException:
                self._connection.close()
                raise
        except BaseException:
            if self._lock is not None:
                self._lock.release()
            raise
        _open.add(self)

    def _connect(self) -> sqlite3.Connection:
        if self.read_only and not self.path.exists():
            msg = f"there is no file {self.path.name!r} to open for reading"
            raise UnreachableError(msg, hint="a writer makes it; check the path", retryable=False)
        mode = "ro" if self.read_only else "rwc"
        with _errors(self.path):
            connection = sqlite3.connect(
                f"{self.path.absolute().as_uri()}?mode={mode}",
                uri=True,
                isolation_level=None,
                check_same_thread=False,
            )
            try:
                self._prepare(connection)
            except BaseException:
                connection.close()
                raise
        return connection

    def _prepare(self, connection: sqlite3.Connection) -> None:
        connection.execute("PRAGMA busy_timeout = 10000")
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if application != APPLICATION_ID and tables:
            msg = f"{self.path.name!r} is a SQLite file of other software"
            raise CorruptDataError(msg, hint="choose another path")
        if self.read_only:
            if application != APPLICATION_ID:
                msg = f"{self.path.name!r} holds no collections yet"
                raise UnreachableError(msg, hint="a writer makes them", retryable=True)
            return
        if not tables:
            connection.execute(f"PRAGMA page_size = {_PAGE_SIZE}")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        if not tables:
            connection.executescript(f"BEGIN; PRAGMA application_id = {APPLICATION_ID}; {_TABLES} COMMIT;")

    def pragma(self, name: str) -> object:
        """Return a setting of the connection, such as ``synchronous`` (2 is FULL)."""
        if not name.isidentifier():
            msg = f"no pragma {name!r}"
            raise ValueError(msg)
        return self._connection.execute(f"PRAGMA {name}").fetchone()[0]

    def close(self) -> None:
        """Close the file and let another process write."""
        _open.discard(self)
        try:
            with _errors(self.path):
                self._connection.close()
        finally:
            if self._lock is not None:
                self._lock.release()

    def abandon(self) -> None:
        """In a forked child, let go of the parent's lock; SQLite's connection must not even be closed there."""
        if self._lock is not None:
            self._lock.abandon()

    def file_bytes(self) -> int:
        """Return the size of the file.

        Raises:
            UnreachableError: It was removed, or another one is in its place.
        """
        self._refuse_if_gone()
        with file_errors(self.path):
            return self.path.stat().st_size

    def refuse_read_only(self) -> None:
        """Refuse a write to a file that was opened for reading.

        Raises:
            UnsupportedError: It was.
        """
        if self.read_only:
            msg = f"{self.path.name!r} was opened with read_only=true"
            raise UnsupportedError(msg, capability="write", hint="open it without read_only to write")

    def _refuse_if_gone(self) -> None:
        """Refuse to write into a file that nobody will find again."""
        if _identity(self.path) != self._file:
            msg = f"another file is in the place of {self.path.name!r} since it was opened"
            raise UnreachableError(msg, hint="close the store and open it anew", retryable=False)

    # --- collections ------------------------------------------------------------------------------------

    def collections(self) -> list[str]:
        """Return the names, sorted."""
        with _errors(self.path):
            return [name for (name,) in self._connection.execute("SELECT name FROM collection ORDER BY name")]

    def stored(self, name: str) -> Stored | None:
        """Return what the file tells of a collection, or None."""
        with _errors(self.path):
            row = self._connection.execute(
                "SELECT number, generation, dimension, metric, model, layout FROM collection WHERE name = ?",
                (name,),
            ).fetchone()
        if row is None:
            return None
        number, generation, dimension, metric, model, layout = row
        if layout != LAYOUT_VERSION:
            msg = f"collection {name!r} has layout {layout}; this version reads layout {LAYOUT_VERSION}"
            raise CorruptDataError(msg, hint="use the version of entrepot that wrote it, or a newer one")
        info = CollectionInfo(
            name=name, dimension=dimension, metric=Metric(metric), model=model, layout=layout
        )
        return Stored(number, generation, info)

    def create(self, info: CollectionInfo) -> None:
        """Record a new collection."""
        with _errors(self.path), self._transaction():
            (last,) = self._connection.execute("SELECT coalesce(max(number), 0) FROM collection").fetchone()
            # Sequence numbers never repeat in a file, so that a reader notices a collection made anew.
            generation = self._insert(last + 1, Write((), None))
            self._connection.execute(
                "INSERT INTO collection VALUES (?, ?, ?, ?, ?, ?, ?)",
                (info.name, last + 1, generation, info.dimension, str(info.metric), info.model, info.layout),
            )

    def drop(self, name: str) -> None:
        """Remove a collection."""
        with _errors(self.path), self._transaction():
            self._connection.execute(
                "DELETE FROM segment WHERE collection = (SELECT number FROM collection WHERE name = ?)",
                (name,),
            )
            self._connection.execute("DELETE FROM collection WHERE name = ?", (name,))

    # --- writes -----------------------------------------------------------------------------------------

    def commit(self, number: int, write: Write) -> int:
        """Store a write; when this returns it is durable. Returns the sequence number of its last segment."""
        with _errors(self.path), self._transaction():
            return self._insert(number, write)

    def rewrite(self, number: int, rows: NewRows) -> int:
        """Replace all segments of a collection, in one transaction; returns the last sequence number."""
        with _errors(self.path), self._transaction():
            self._connection.execute("DELETE FROM segment WHERE collection = ?", (number,))
            sequence = self._insert(number, Write((), rows))
            self._connection.execute(
                "UPDATE collection SET generation = ? WHERE number = ?", (sequence, number)
            )
            return sequence

    def _insert(self, number: int, write: Write) -> int:
        sequence = 0
        largest = min(_LARGEST_SEGMENT, self._connection.getlimit(sqlite3.SQLITE_LIMIT_LENGTH) // 2)
        for blobs in _segments(write, largest):
            cursor = self._connection.execute(
                "INSERT INTO segment (collection, deleted, ids, texts, metadata, vectors)"
                " VALUES (?, ?, ?, ?, ?, ?)",
                (number, *blobs),
            )
            sequence = cursor.lastrowid or 0
        return sequence

    @contextmanager
    def _transaction(self) -> Generator[None]:
        self.refuse_read_only()
        self._refuse_if_gone()
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._connection.execute("COMMIT")
        except BaseException:
            # Some failures, a full disk among them, have ended it already.
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise

    # --- reads ------------------------------------------------------------------------------------------

    @contextmanager
    def reading(self) -> Generator[None]:
        """Let everything that is read within be of one instant, whatever another process commits."""
        with _errors(self.path):
            self._connection.execute("BEGIN")
            try:
                yield
            finally:
                if self._connection.in_transaction:
                    self._connection.execute("COMMIT")

    def data_version(self) -> int:
        """Return a number that changes when another process has committed."""
        with _errors(self.path):
            return int(self._connection.execute("PRAGMA data_version").fetchone()[0])

    def segments(self, stored: Stored, after: int) -> Iterator[Segment]:
        """Return the segments of a collection after a sequence number, in order."""
        with _errors(self.path):
            cursor = self._connection.execute(
                "SELECT sequence, deleted, ids, texts, metadata, vectors FROM segment"
                " WHERE collection = ? AND sequence > ? ORDER BY sequence",
                (stored.number, after),
            )
            for sequence, deleted, ids, texts, metadata, vectors in cursor:
                new = None
                try:
                    gone = _strings(deleted) if deleted is not None else []
                    if ids is not None:
                        matrix = np.frombuffer(vectors, dtype="<f4").reshape(-1, stored.info.dimension)
                        new = NewRows(_strings(ids), _texts(texts), _blobs(metadata), matrix)
                except (ValueError, msgspec.MsgspecError) as error:
                    msg = f"segment {sequence} of {self.path.name!r} is damaged"
                    raise CorruptDataError(msg, hint="restore the file from a copy") from error
                yield Segment(sequence, Write(gone, new))


def _segments(write: Write, largest: int) -> Iterator[tuple[bytes | None, ...]]:
    """Return a write as the blobs of a segment, or of several if it has more bytes than `largest`."""
    deleted, new = write
    rows = 0 if new is None else len(new.ids)
    alone = len(deleted) + rows <= 1
    if alone or new is None or new.vectors.nbytes <= largest:
        blobs: tuple[bytes | None, ...] = (None, None, None, None)
        if new is not None and rows:
            vectors = np.ascontiguousarray(new.vectors, dtype="<f4")
            blobs = (_pack(new.ids), _pack(new.texts), _pack(new.metadata), vectors.tobytes())
        blobs = (_pack(deleted) if deleted else None, *blobs)
        if alone or sum(len(blob) for blob in blobs if blob is not None) <= largest:
            yield blobs
            return
    if new is None or not rows:
        half = len(deleted) // 2
        parts = [Write(deleted[:half], None), Write(deleted[half:], None)]
    elif deleted:
        parts = [Write(deleted, None), Write((), new)]
    else:
        half = rows // 2
        parts = [Write((), new.part(0, half)), Write((), new.part(half, rows))]
    for part in parts:
        yield from _segments(part, largest)


def settle(path: Path) -> None:
    """Move what a crashed writer left beside a file into it, so that another file can take its place.

    The caller holds the file's `WriterLock`.
    """
    beside = [path.with_name(path.name + end) for end in ("-wal", "-shm")]
    if path.exists() and beside[0].exists():
        # A file that is no database needs no care: it is about to be replaced.
        with suppress(sqlite3.Error), closing(sqlite3.connect(path, timeout=1.0)) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    for left in beside:
        left.unlink(missing_ok=True)


def _identity(path: Path) -> tuple[int, int]:
    """Return what tells a file from any other, whatever its name."""
    with file_errors(path):
        found = path.stat()
        return found.st_dev, found.st_ino


def _refuse_hard_links(path: Path) -> None:
    """Refuse a file with a second name: SQLite would keep a WAL for each, and neither would know the other."""
    with file_errors(path):
        names = path.stat().st_nlink if path.exists() else 1
    if names > 1:
        msg = f"{path.name!r} has {names} names (hard links), under each of which a process could write"
        raise StoreInUseError(
            msg, hint="keep one name, or open a copy; read_only=true reads it as it is", retryable=False
        )


class WriterLock:
    """The exclusive lock of a file between processes, held by the system until release or death."""

    def __init__(self, path: Path) -> None:
        with file_errors(path):
            self._descriptor = os.open(path.with_name(path.name + ".lock"), os.O_RDWR | os.O_CREAT, 0o644)
        try:
            _lock(self._descriptor)
        except OSError as error:
            os.close(self._descriptor)
            msg = f"another process writes to {path.name!r}"
            raise StoreInUseError(msg) from error

    def release(self) -> None:
        """Let go, also where a child process that was forked still has the descriptor."""
        if self._descriptor >= 0:
            try:
                _unlock(self._descriptor)
            finally:
                self.abandon()

    def abandon(self) -> None:
        """Close the descriptor; where a fork made two of them, the lock stays with the other one."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


_open: set[Log] = set()
"""The files that are open; in a forked child also those of its parent, so that they are never closed there."""


def _abandon_all() -> None:
    for log in _open:
        log.abandon()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_abandon_all)


if sys.platform == "win32":  # Windows has its own call

    def _lock(descriptor: int) -> None:
        import msvcrt  # noqa: PLC0415 - exists on Windows alone

        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)

    def _unlock(descriptor: int) -> None:
        import msvcrt  # noqa: PLC0415 - exists on Windows alone

        msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)

else:

    def _lock(descriptor: int) -> None:
        import fcntl  # noqa: PLC0415 - does not exist on Windows

        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _unlock(descriptor: int) -> None:
        import fcntl  # noqa: PLC0415 - does not exist on Windows

        fcntl.flock(descriptor, fcntl.LOCK_UN)


@contextmanager
def file_errors(path: Path) -> Generator[None]:
    """Let what the system says of a file be an `UnreachableError`."""
    try:
        yield
    except OSError as error:
        msg = f"cannot use {path.name!r}: {error.strerror}"
        raise UnreachableError(
            msg, hint="check that it was not removed, and that its folder may be written", retryable=False
        ) from error


@contextmanager
def _errors(path: Path) -> Generator[None]:
    try:
        yield
    except sqlite3.DatabaseError as error:
        code = getattr(error, "sqlite_errorname", "")
        if code in ("SQLITE_NOTADB", "SQLITE_CORRUPT"):
            msg = f"{path.name!r} is damaged or no store: {error}"
            raise CorruptDataError(msg, hint="restore it from a copy") from error
        if code == "SQLITE_TOOBIG":
            msg = f"a document is larger than SQLite takes: {error}"
            raise SizeLimitError(msg) from error
        if code.startswith("SQLITE_CANTOPEN"):
            msg = f"cannot open {path.name!r}: {error}"
            raise UnreachableError(
                msg, hint="check that the folder exists and may be written", retryable=False
            ) from error
        msg = f"SQLite failed on {path.name!r}: {error}"
        raise BackendError(msg, hint="check free space and permissions", outcome="not_done") from error
