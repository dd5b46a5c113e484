"""`DuckdbVectorStore`: the hooks of `entrepot.VectorStore`, each one transaction.

The core has checked everything before it calls a hook, and makes scores, thresholds, order and completion
of what comes back. Each hook has an async twin that runs it in a worker thread.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

import duckdb
from entrepot import VectorStore
from entrepot.capabilities import Capabilities
from entrepot.drafts import check_sizes
from entrepot.errors import DuplicateIdError
from entrepot.exchange import remaining
from entrepot.filters import TRUE, Normal
from entrepot.guards import changed, changed_inside, refuse_outside
from entrepot.metadata import Metadata, encode_metadata
from entrepot.records import CollectionInfo, Hit, IfExists, Page, Query, Record, StoredRecord

from entrepot_duckdb import catalogue
from entrepot_duckdb.config import SHARED_MEMORY
from entrepot_duckdb.database import Database, Transaction
from entrepot_duckdb.documents import Documents, where, with_ids
from entrepot_duckdb.filters import DuckdbFilterConverter
from entrepot_duckdb.plugin import CAPABILITIES


class DuckdbVectorStore(VectorStore):
    """A collection in a DuckDB database.

    Args:
        database: The path of a file, or ``:memory:name``, which all objects of the process share.
        client: A connection to use instead; it stays open when the store is closed.
        collection: The collection.
        options: What every store takes: embedding, metric, dimension, create, timeout and so on.

    Raises:
        StoreInUseError: Another process has the file open.
        UnreachableError: The file cannot be opened.
    """

    backend = "duckdb"
    capabilities: Capabilities = CAPABILITIES

    def __init__(
        self,
        *,
        database: str = SHARED_MEMORY,
        client: duckdb.DuckDBPyConnection | None = None,
        collection: str = "default",
        **options: Any,
    ) -> None:
        super().__init__(collection=collection, **options)
        self._place = database
        self._client = client
        self._database: Database | None = None
        self._connecting = threading.Lock()

    # --- the connection -------------------------------------------------------------------------------

    @property
    def native_client(self) -> duckdb.DuckDBPyConnection:
        """DuckDB's connection."""
        return self._connected().connection

    def _open(self) -> None:
        """Open the database now, so that a wrong path shows at once."""
        self._connected()

    def _close(self) -> None:
        with self._connecting:
            if self._database is not None:
                self._database.close()

    def _connected(self) -> Database:
        with self._connecting:  # threads may begin at once, and `_open` need not have been called
            if self._database is None:
                client = self._client
                self._database = Database.open(self._place) if client is None else Database.around(client)
            return self._database

    def _reading(self) -> Transaction:
        return self._connected().reading(remaining(self.timeout))

    def _writing(self) -> Transaction:
        return self._connected().writing(remaining(self.timeout))

    def _documents(self, cursor: duckdb.DuckDBPyConnection) -> Documents:
        return Documents(cursor, catalogue.existing(cursor, self.collection))

    # --- collections (D5) -----------------------------------------------------------------------------

    def _describe(self) -> CollectionInfo | None:
        with self._reading() as cursor:
            found = catalogue.find(cursor, self.collection)
            return found and found.info

    def _create(self, info: CollectionInfo) -> None:
        with self._writing() as cursor:
            catalogue.make(cursor, info)

    def _drop(self) -> None:
        with self._writing() as cursor:
            catalogue.drop(cursor, self.collection)

    def _list_collections(self) -> list[str]:
        with self._reading() as cursor:
            return catalogue.names(cursor)

    # --- reading --------------------------------------------------------------------------------------

    def _converter(self) -> DuckdbFilterConverter:
        return DuckdbFilterConverter()

    def _fetch(self, ids: Sequence[str], include: Sequence[str]) -> list[StoredRecord]:
        with self._reading() as cursor:
            return self._documents(cursor).fetch(ids, include)

    def _count(self, query: Query) -> int:
        with self._reading() as cursor:
            return self._documents(cursor).count(query)

    def _scan(self, query: Query, token: str | None, size: int) -> Page[StoredRecord]:
        """Read in the order of ids, so that what is there throughout comes exactly once (D7)."""
        with self._reading() as cursor:
            found = self._documents(cursor).page(query, token, size + 1)
        return Page(found[:size], found[size - 1].id if len(found) > size else None)

    def _search(self, query: Query) -> list[Hit]:
        with self._reading() as cursor:
            return self._documents(cursor).nearest(query)

    def _details(self) -> dict[str, Any]:
        return {"database": self._place if self._client is None else "client", "duckdb": duckdb.__version__}

    # --- writing --------------------------------------------------------------------------------------

    def _write(self, records: Sequence[Record], if_exists: IfExists) -> object:
        return self._write_inside(records, if_exists, TRUE)

    def _update(self, ids: Sequence[str], changes: Mapping[str, Any], unset: Sequence[str]) -> list[str]:
        return self._update_inside(ids, changes, unset, TRUE)

    def _delete(self, target: Sequence[str] | Query) -> None:
        with self._writing() as cursor:
            self._documents(cursor).remove(where(target) if isinstance(target, Query) else with_ids(target))

    # The next three check a view's filter and write in one transaction (T2). Without a view everything lies
    # inside.

    def _write_inside(self, records: Sequence[Record], if_exists: IfExists, inside: Normal) -> object:
        ids = [record.id for record in records]
        with self._writing() as cursor:
            documents = self._documents(cursor)
            # The collection may have been made anew since these vectors were prepared.
            if self._info is not None:
                catalogue.refuse_another(self._info, documents.collection.info)
            stored = documents.fetch(ids, ("metadata",))
            refuse_outside(stored, inside)
            known = {found.id for found in stored}
            if known and if_exists == "error":
                first = next(name for name in ids if name in known)
                msg = f"{len(known)} ids exist already, the first is {first!r}"
                raise DuplicateIdError(msg, ids=sorted(known), hint="nothing was written")
            if if_exists == "skip":
                records = [record for record in records if record.id not in known]
            elif known:
                documents.remove(with_ids(known))
            documents.insert(records)
        return None

    def _update_inside(
        self, ids: Sequence[str], changes: Mapping[str, Any], unset: Sequence[str], inside: Normal
    ) -> list[str]:
        with self._writing() as cursor:
            documents = self._documents(cursor)
            stored = documents.fetch(ids, ("text", "metadata"))
            there = changed_inside(stored, changes, unset, inside)
            new: dict[str, Metadata] = {}
            for name, text, old, _ in stored:
                if name in there:
                    new[name] = changed(old or {}, changes, unset)
                    check_sizes(name, text, new[name], encode_metadata(new[name]), self.capabilities.limits)
            documents.change(new)
        return [name for name in ids if name in new]

    def _delete_inside(self, ids: Sequence[str], inside: Normal) -> None:
        with self._writing() as cursor:
            documents = self._documents(cursor)
            refuse_outside(documents.fetch(ids, ("metadata",)), inside)
            documents.remove(with_ids(ids))
