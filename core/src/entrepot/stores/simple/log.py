"""One SQLite file that holds collections: a log of writes, each durable when it is committed.

A row of the table `segment` is one write: the documents it stored and the ids it deleted. Reading
a collection is reading its segments in order, a later one winning. Large writes are one row, so
opening reads blobs, not documents. Journal WAL, ``synchronous=FULL``: what `commit` returned from
survives a crash of the process and of the machine.
"""

from __future__ import annotations

import os
import sqlite3
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec
import numpy as np

from entrepot.capabilities import Metric
from entrepot.errors import (
    BackendError,
    CorruptDataError,
    StoreInUseError,
    UnreachableError,
    UnsupportedError,
)
from entrepot.records import LAYOUT_VERSION, CollectionInfo
from entrepot.stores.simple.rows import NewRows

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence
    from pathlib import Path

APPLICATION_ID: Final = 0x656E7472
"""Marks a file as ours (SQLite's ``PRAGMA application_id``); the letters ``entr``."""
_PAGE_SIZE: Final = 16_384

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
    deleted: list[str]
    new: NewRows | None


class Stored(NamedTuple):
    """What the file tells of a collection."""

    number: int
    generation: int
    info: CollectionInfo


class Log:
    """The file. Not thread-safe: its owner holds a lock around every call.

    Raises:
        StoreInUseError: Another process has the file open for writing.
        CorruptDataError: The file is not one of ours.
    """

    def __init__(self, path: Path, *, read_only: bool) -> None:
        self.path = path
        self.read_only = read_only
        self._lock = None if read_only else WriterLock(path.with_name(path.name + ".lock"))
        try:
            self._connection = self._connect()
        except BaseException:
            if self._lock is not None:
                self._lock.release()
            raise

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
        with _errors(self.path):
            self._connection.close()
        if self._lock is not None:
            self._lock.release()

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
            # Generations never repeat in a file, so that a reader notices a collection made anew.
            (generation,) = self._connection.execute(
                "SELECT coalesce(max(sequence), 0) FROM segment"
            ).fetchone()
            self._connection.execute(
                "INSERT INTO collection VALUES (?, ?, ?, ?, ?, ?, ?)",
                (info.name, last + 1, generation, info.dimension, str(info.metric), info.model, info.layout),
            )
            self._insert(last + 1, [], None)

    def drop(self, name: str) -> None:
        """Remove a collection."""
        with _errors(self.path), self._transaction():
            self._connection.execute(
                "DELETE FROM segment WHERE collection = (SELECT number FROM collection WHERE name = ?)",
                (name,),
            )
            self._connection.execute("DELETE FROM collection WHERE name = ?", (name,))

    # --- writes -----------------------------------------------------------------------------------------

    def commit(self, number: int, deleted: Sequence[str], new: NewRows | None) -> int:
        """Write one segment; when this returns it is durable. Returns its sequence number."""
        with _errors(self.path), self._transaction():
            return self._insert(number, deleted, new)

    def rewrite(self, number: int, rows: NewRows) -> int:
        """Replace all segments of a collection by one, in one transaction; returns its sequence number."""
        with _errors(self.path), self._transaction():
            self._connection.execute("DELETE FROM segment WHERE collection = ?", (number,))
            sequence = self._insert(number, [], rows)
            self._connection.execute(
                "UPDATE collection SET generation = ? WHERE number = ?", (sequence, number)
            )
            return sequence

    def _insert(self, number: int, deleted: Sequence[str], new: NewRows | None) -> int:
        blobs: tuple[bytes | None, ...] = (None, None, None, None)
        if new is not None and len(new.ids):
            vectors = np.ascontiguousarray(new.vectors, dtype="<f4")
            blobs = (_pack(new.ids), _pack(new.texts), _pack(new.metadata), vectors.tobytes())
        cursor = self._connection.execute(
            "INSERT INTO segment (collection, deleted, ids, texts, metadata, vectors) VALUES (?, ?, ?, ?, ?, ?)",
            (number, _pack(deleted) if deleted else None, *blobs),
        )
        return cursor.lastrowid or 0

    @contextmanager
    def _transaction(self) -> Generator[None]:
        if self.read_only:
            msg = f"{self.path.name!r} was opened with read_only=true"
            raise UnsupportedError(msg, capability="write", hint="open it without read_only to write")
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._connection.execute("ROLLBACK")
            raise
        self._connection.execute("COMMIT")

    # --- reads ------------------------------------------------------------------------------------------

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
                if ids is not None:
                    matrix = np.frombuffer(vectors, dtype="<f4").reshape(-1, stored.info.dimension)
                    new = NewRows(_strings(ids), _texts(texts), _blobs(metadata), matrix)
                yield Segment(sequence, _strings(deleted) if deleted is not None else [], new)


class WriterLock:
    """An exclusive lock between processes, held by the operating system until release or death."""

    def __init__(self, path: Path) -> None:
        try:
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            msg = f"cannot open {path.name!r}: {error.strerror}"
            raise UnreachableError(
                msg, hint="check that the folder exists and may be written", retryable=False
            ) from error
        try:
            _lock(self._descriptor)
        except OSError as error:
            os.close(self._descriptor)
            msg = f"another process writes to {path.name.removesuffix('.lock')!r}"
            raise StoreInUseError(msg) from error

    def release(self) -> None:
        """Let go; closing the descriptor releases the lock."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


if sys.platform == "win32":  # Windows has its own call

    def _lock(descriptor: int) -> None:
        import msvcrt  # noqa: PLC0415 - exists on Windows alone

        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)

else:

    def _lock(descriptor: int) -> None:
        import fcntl  # noqa: PLC0415 - does not exist on Windows

        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


@contextmanager
def _errors(path: Path) -> Generator[None]:
    try:
        yield
    except sqlite3.DatabaseError as error:
        code = getattr(error, "sqlite_errorname", "")
        if code in ("SQLITE_NOTADB", "SQLITE_CORRUPT"):
            msg = f"{path.name!r} is damaged or no store: {error}"
            raise CorruptDataError(msg, hint="restore it from a copy") from error
        if code.startswith("SQLITE_CANTOPEN"):
            msg = f"cannot open {path.name!r}: {error}"
            raise UnreachableError(
                msg, hint="check that the folder exists and may be written", retryable=False
            ) from error
        msg = f"SQLite failed on {path.name!r}: {error}"
        raise BackendError(msg, hint="check free space and permissions", outcome="not_done") from error
