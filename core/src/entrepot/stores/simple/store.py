"""`SimpleVectorStore`: the embedded default, in memory or in one SQLite file."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from entrepot.drafts import check_sizes
from entrepot.errors import (
    CollectionError,
    CollectionMismatchError,
    ConfigurationError,
    DuplicateIdError,
    UnsupportedError,
)
from entrepot.filters import TRUE
from entrepot.guards import changed, changed_inside, refuse_outside
from entrepot.metadata import decode_metadata, encode_metadata
from entrepot.records import CollectionInfo, Hit, IfExists, Page, Query, Record, StoredRecord
from entrepot.search import SearchMode
from entrepot.stores.plugin import SIMPLE_CAPABILITIES
from entrepot.stores.simple.database import Collection, Database, missing, open_database, release, write_file
from entrepot.stores.simple.rows import NewRows, Rows, Snapshot
from entrepot.vectorstore import VectorStore

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence

    from entrepot.capabilities import Capabilities
    from entrepot.filters import Normal


class SimpleVectorStore(VectorStore):
    """Documents in memory, searched exactly with numpy; with a path, every write is durable too.

    Searches run while others write, and see whole writes only. With a path, everything lies in one
    SQLite file (WAL, ``synchronous=FULL``): what `add` returned from survives a crash. One process
    writes to a file; others may open it with ``read_only=True`` and follow the writer's commits.

    Args:
        path: The file, or None to keep everything in memory.
        collection: Which of the file's collections.
        memory: A name: stores of this process with the same name share one database in memory.
            Without a name and without a path the store has a database of its own.
        read_only: Open the file for reading, beside a process that writes to it.
        options: What every store takes: embedding, metric, dimension, create, timeout,
            allow_other_model, batching (`VectorStoreHooks`).

    Raises:
        StoreInUseError: Another process writes to the file.
    """

    backend = "simple"
    capabilities: Capabilities = SIMPLE_CAPABILITIES

    def __init__(
        self,
        path: str | Path | None = None,
        *,
        collection: str = "default",
        memory: str | None = None,
        read_only: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(collection=collection, **options)
        if path is None and read_only:
            msg = "read_only needs a file"
            raise ConfigurationError(msg, hint="name its path")
        if path is not None and memory is not None:
            msg = "a store has either a path or a name in memory"
            raise ConfigurationError(msg)
        self.path = None if path is None else Path(path)
        self._memory = memory
        self._read_only = read_only
        self._database: Database | None = None
        # With create=False a mistyped path makes no file; should another process make it, it is opened then.
        if self.path is None or self._may_create or read_only:
            self._database = open_database(self.path, name=memory, read_only=read_only)

    # --- hooks ----------------------------------------------------------------------------------------

    def _close(self) -> None:
        if self._database is not None:
            release(self._database)

    def _opened(self) -> Database | None:
        """Return the database, or None as long as there is no file and none may be made."""
        if self._database is None and self.path is not None and self.path.exists():
            self._database = open_database(self.path, read_only=self._read_only)
        return self._database

    def _collection(self) -> Collection:
        found = self._found()
        if found is None:
            self._info = None
            raise missing(self.collection)
        return found

    @contextmanager
    def _writing(self, *, vectors: bool = False) -> Generator[Collection]:
        """Hold the collection for a write, so that nobody else writes to it or drops it meanwhile.

        Args:
            vectors: Whether the write brings vectors, which fit the collection that `_info` records.
                One that was made anew since is refused if it differs, and learnt of by the next try.
        """
        if self._read_only:
            msg = "the store was opened with read_only=true"
            raise UnsupportedError(msg, capability="write", hint="open it without read_only to write")
        collection = self._collection()
        with collection.writing:
            try:
                if collection.dropped:
                    raise missing(self.collection)
                if vectors and self._info is not None:
                    _refuse_another(self._info, collection.info)
                if self._info != collection.info:
                    self._accept(collection.info)
                yield collection
            except CollectionError:
                self._info = None
                raise

    def _found(self) -> Collection | None:
        database = self._opened()
        return None if database is None else database.collection(self.collection)

    def _describe(self) -> CollectionInfo | None:
        found = self._found()
        return None if found is None else found.info

    def _create(self, info: CollectionInfo) -> None:
        if self._database is None:
            self._database = open_database(self.path, name=self._memory, read_only=self._read_only)
        self._database.create(info)

    def _drop(self) -> None:
        database = self._opened()
        if database is not None:
            database.drop(self.collection)

    def _list_collections(self) -> list[str]:
        database = self._opened()
        return [] if database is None else database.names()

    def _write(self, records: Sequence[Record], if_exists: IfExists) -> object:
        with self._writing(vectors=True) as collection:
            if if_exists != "replace":
                row_of = collection.rows.row_of
                known = [record.id for record in records if record.id in row_of]
                if known and if_exists == "error":
                    msg = f"{len(known)} ids exist already, the first is {known[0]!r}"
                    raise DuplicateIdError(
                        msg, ids=known, hint="nothing was written; use if_exists='replace' or 'skip'"
                    )
                there = set(known)
                records = [record for record in records if record.id not in there]
            if records:
                ids, texts, _, metadata, vectors = zip(*records, strict=True)
                collection.write(NewRows(ids, texts, metadata, np.concatenate(vectors).reshape(len(ids), -1)))
        return None

    def _update(self, ids: Sequence[str], changes: Mapping[str, Any], unset: Sequence[str]) -> list[str]:
        with self._writing() as collection:
            rows = collection.rows
            known = [name for name in dict.fromkeys(ids) if name in rows.row_of]
            known.sort(key=rows.row_of.__getitem__)
            old = rows.take(rows.find(known))
            encoded: list[bytes] = []
            for name, text, raw in zip(known, old.texts, old.metadata, strict=True):
                metadata = changed(decode_metadata(raw), changes, unset)
                encoded.append(encode_metadata(metadata))
                check_sizes(name, text, metadata, encoded[-1], self.capabilities.limits)
            if known:
                collection.write(old._replace(metadata=encoded))
            there = set(known)
            return [name for name in ids if name in there]

    def _fetch(self, ids: Sequence[str], include: Sequence[str]) -> list[StoredRecord]:
        rows = self._collection().rows
        seen = rows.snapshot(ids)
        return _records(rows, seen.listed or [], include, seen)

    def _search(self, query: Query) -> list[Hit]:
        rows = self._collection().rows
        seen = rows.snapshot(query.ids)
        mask = rows.matching(query.filter, seen)
        if query.mode is SearchMode.FULLTEXT:
            best = rows.ranked(query.words or "", query.k, mask, seen)
        elif query.vector is None:
            best = []
        else:
            best = rows.nearest(query.vector, query.k, mask, seen)
        records = _records(rows, [row for _, row in best], query.include, seen)
        return [Hit(raw, record) for (raw, _), record in zip(best, records, strict=True)]

    def _search_batch(self, queries: Sequence[Query]) -> list[list[Hit]]:
        """Answer queries without filter by one product of matrices, all others one by one."""
        plain = [
            query
            for query in queries
            if query.vector is not None and query.filter is TRUE and query.ids is None
        ]
        if len(plain) < 2:  # noqa: PLR2004 - a batch
            return [self._search(query) for query in queries]
        rows = self._collection().rows
        seen = rows.snapshot()
        best = iter(
            rows.nearest_batch([(query.vector, query.k) for query in plain if query.vector is not None], seen)
        )
        answers: list[list[Hit]] = []
        together = {id(query) for query in plain}
        for query in queries:
            if id(query) not in together:
                answers.append(self._search(query))
                continue
            found = next(best)
            records = _records(rows, [row for _, row in found], query.include, seen)
            answers.append([Hit(raw, record) for (raw, _), record in zip(found, records, strict=True)])
        return answers

    def _write_inside(self, records: Sequence[Record], if_exists: IfExists, inside: Normal) -> object:
        with self._writing(vectors=True):
            refuse_outside(self._fetch([record.id for record in records], ("metadata",)), inside)
            return self._write(records, if_exists)

    def _update_inside(
        self, ids: Sequence[str], changes: Mapping[str, Any], unset: Sequence[str], inside: Normal
    ) -> list[str]:
        with self._writing():
            there = changed_inside(self._fetch(ids, ("metadata",)), changes, unset, inside)
            return self._update([name for name in ids if name in there], changes, unset)

    def _delete_inside(self, ids: Sequence[str], inside: Normal) -> None:
        with self._writing():
            refuse_outside(self._fetch(ids, ("metadata",)), inside)
            self._delete(ids)

    def _scan(self, query: Query, token: str | None, size: int) -> Page[StoredRecord]:
        """Read in the order of ids, so that a document that is replaced meanwhile comes once."""
        rows = self._collection().rows
        seen = rows.snapshot(query.ids)
        page, last = rows.page(rows.matching(query.filter, seen), token, size, seen)
        return Page(_records(rows, page, query.include, seen), last)

    def _count(self, query: Query) -> int:
        rows = self._collection().rows
        seen = rows.snapshot(query.ids)
        mask = rows.matching(query.filter, seen)
        return seen.size if mask is None else int(np.count_nonzero(mask))

    def _delete(self, target: Sequence[str] | Query) -> None:
        with self._writing() as collection:
            rows = collection.rows
            if isinstance(target, Query):
                seen = rows.snapshot(target.ids)
                mask = rows.matching(target.filter, seen)
                matching = range(seen.size) if mask is None else np.flatnonzero(mask).tolist()
                names = [rows.ids[row] for row in matching]
            else:
                names = [name for name in target if name in rows.row_of]
            if names:
                collection.write(None, names)

    def _details(self) -> dict[str, Any]:
        details: dict[str, Any] = dict(self._collection().rows.details())
        if self._database is not None and self._database.log is not None:
            details["file_bytes"] = self._database.log.file_bytes()
        return details

    # --- files ----------------------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write the collection to a new file, put in place in one step; an existing one is replaced.

        Raises:
            CollectionNotFoundError: There is nothing to save.
            StoreInUseError: A store, here or in another process, writes to that file.
            UnreachableError: The folder is missing, or cannot be written.
            ConfigurationError: The path is a folder, or cannot be one of a file.
        """
        self._check_usable()
        write_file(Path(path), [self._collection()])

    @classmethod
    def load(cls, path: str | Path, *, collection: str = "default", **options: Any) -> Self:
        """Return a store in memory with what a file holds; later writes do not reach the file.

        Raises:
            CollectionNotFoundError: The file holds no such collection.
        """
        source = open_database(Path(path), read_only=True)
        try:
            found = source.collection(collection)
            if found is None:
                raise missing(collection)
            store = cls(collection=collection, **options)
            store._accept(found.info)
            store._create(found.info)
            target = store._collection()
            with target.writing:
                target.write(found.rows.everything())
            return store
        finally:
            release(source)


def _records(rows: Rows, wanted: Sequence[int], include: Sequence[str], seen: Snapshot) -> list[StoredRecord]:
    """Return rows as records with the parts asked for; metadata and vectors are the caller's own copies."""
    text, metadata, vector = ("text" in include, "metadata" in include, "vector" in include)
    ids, texts, raws = rows.ids, rows.texts, rows.metadata
    return [
        StoredRecord(
            ids[row],
            texts[row] if text else None,
            decode_metadata(raws[row]) if metadata else None,
            seen.vectors.row(row) if vector else None,
        )
        for row in wanted
    ]


def _refuse_another(known: CollectionInfo, now: CollectionInfo) -> None:
    """Refuse vectors that were made for a collection of another dimension or metric (D5)."""
    if (known.dimension, known.metric) != (now.dimension, now.metric):
        msg = (
            f"collection {now.name!r} was made anew with dimension {now.dimension} and metric {now.metric},"
            f" the vectors are for {known.dimension} and {known.metric}"
        )
        raise CollectionMismatchError(msg, hint="nothing was written; the next try is for the new collection")
