"""`PostgresVectorStore`: documents in PostgreSQL, compared by pgvector."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

import msgspec

from entrepot.errors import CollectionMismatchError, CollectionNotFoundError, ConfigurationError
from entrepot.metadata import name_fault
from entrepot.records import Query
from entrepot.vectorstore import VectorStore
from entrepot_postgres import catalog, changing, reading
from entrepot_postgres.catalog import IndexPlan, Place
from entrepot_postgres.config import check_pool_size, check_range, check_schema, connection_target
from entrepot_postgres.filters import PostgresFilterConverter
from entrepot_postgres.names import names_of
from entrepot_postgres.plugin import POSTGRES_CAPABILITIES
from entrepot_postgres.sessions import Server

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from entrepot.capabilities import Capabilities
    from entrepot.filters import Normal
    from entrepot.records import CollectionInfo, Hit, IfExists, Page, Record, StoredRecord
    from entrepot_postgres.changing import Batch
    from entrepot_postgres.scripts import Kind, Script

T = TypeVar("T")

_AT_ONCE: Final = 20_000
"""Characters of text and metadata that are encoded on the event loop: about a millisecond."""
_CONVERTER: Final = PostgresFilterConverter()


class PostgresVectorStore(VectorStore):
    """Documents in a table of PostgreSQL, searched with pgvector.

    Every filter is answered by the server, exactly. Searches use pgvector's HNSW index where the collection
    has one, or compare all that match: on demand (``exact=True``), in small collections, where a filter
    leaves few documents, and for more than 500 hits. Above 2,000 dimensions the index holds 16-bit floats,
    and what it finds is compared in full; above 4,000 there is none.

    Async operations run on connections of the event loop they are called in. Connections are made when
    they are needed, at most `pool_size` for sync use and as many for each event loop.

    Args:
        collection: Name of the collection; its table has the same name where that is a plain one.
        host: The server, or the folder of its socket; what is left out is what libpq makes of it.
        port: Its port.
        user: Who logs in.
        password: The password; by default that of the environment variable PGPASSWORD.
        database: The database.
        schema: The schema of the tables.
        sslmode: libpq's way of using TLS.
        pool_size: Most connections.
        index: The index of a collection that is made: ``"hnsw"`` or ``"none"``.
        m: HNSW: edges of a node, 2 to 100.
        ef_construction: HNSW: candidates while the index is made, 4 to 1,000 and at least twice `m`.
        ef_search: HNSW: candidates of a search, 1 to 1,000.
        client: A `psycopg_pool.ConnectionPool` or `AsyncConnectionPool` to use; it stays open when the store
            closes (E5). It says where the server is, so nothing else may.
        options: What every store takes: embedding, metric, dimension, create, timeout, allow_other_model,
            batching, max_completion_rows (`VectorStoreHooks`).

    Raises:
        ConfigurationError: An option is out of bounds, or two contradict each other.
    """

    backend = "postgresql"
    capabilities: Capabilities = POSTGRES_CAPABILITIES

    def __init__(  # noqa: PLR0913 - the options of the backend
        self,
        *,
        collection: str = "default",
        host: str | None = None,
        port: int | None = None,
        user: str | None = None,
        password: str | None = None,
        database: str | None = None,
        schema: str = "public",
        sslmode: str | None = None,
        pool_size: int = 8,
        index: Literal["hnsw", "none"] = "hnsw",
        m: int = 16,
        ef_construction: int = 64,
        ef_search: int = 200,
        client: object = None,
        **options: Any,
    ) -> None:
        super().__init__(collection=collection, **options)
        fault = name_fault(collection)
        if fault is not None:
            msg = f"the name of the collection {fault}"
            raise ConfigurationError(msg)
        check_schema(schema)
        check_pool_size(pool_size)
        check_range("m", m, 2, 100)
        check_range("ef_construction", ef_construction, max(4, 2 * m), 1000)
        check_range("ef_search", ef_search, 1, 1000)
        if index not in ("hnsw", "none"):
            msg = f"index must be 'hnsw' or 'none', not {index!r}"
            raise ConfigurationError(msg)
        target = connection_target(client, host, port, user, password, database, sslmode)
        self.namespace = database
        self.schema = schema
        self._plan = IndexPlan(m, ef_construction) if index == "hnsw" else None
        self._ef_search = ef_search
        self._names = names_of(schema, collection)
        self._server = Server(target, pool_size=pool_size, timeout=self.timeout, client=client)
        self._place: Place | None = None

    # --- connecting -------------------------------------------------------------------------------------

    def _open(self) -> None:
        if self._server.has_sync:
            self._server.check(catalog.check_server)

    async def _aopen(self) -> None:
        if self._server.has_async:
            await self._server.acheck(catalog.check_server)
        else:
            await super()._aopen()

    def _close(self) -> None:
        self._server.close()

    async def _aclose(self) -> None:
        await self._server.aclose()

    @property
    def native_client(self) -> object:
        """The pool of connections: psycopg_pool's, for sync use unless an async one was given."""
        return self._server.client if self._server.client is not None else self._server.pool()

    def _answer(self, script: Script[T], kind: Kind = "read") -> T:
        try:
            return self._server.run(script, kind, self.collection)
        except (CollectionNotFoundError, CollectionMismatchError):
            self._forget()
            raise

    async def _aanswer(self, script: Script[T], kind: Kind = "read") -> T:
        if not self._server.has_async:
            return await asyncio.to_thread(self._answer, script, kind)
        try:
            return await self._server.arun(script, kind, self.collection)
        except (CollectionNotFoundError, CollectionMismatchError):
            self._forget()
            raise

    def _forget(self) -> None:
        """Look at the collection anew before the next operation: it is not what it was."""
        self._info = None
        self._place = None

    # --- collections ------------------------------------------------------------------------------------

    def _here(self) -> Place:
        if self._place is None:
            msg = f"there is no collection {self.collection!r}"
            raise CollectionNotFoundError(msg)
        return self._place

    def _seen(self, place: Place | None) -> CollectionInfo | None:
        self._place = place
        if place is None:
            return None
        ann = place.indexed
        if ann is not self.capabilities.ann:
            self.capabilities = msgspec.structs.replace(self.capabilities, ann=ann)
        return place.info

    def _describe_script(self) -> Script[Place | None]:
        return catalog.describe(self._names, self.schema, self.collection)

    def _describe(self) -> CollectionInfo | None:
        return self._seen(self._answer(self._describe_script()))

    async def _adescribe(self) -> CollectionInfo | None:
        return self._seen(await self._aanswer(self._describe_script()))

    def _create_script(self, info: CollectionInfo) -> Script[Place]:
        return catalog.create(self._names, self.schema, info, self._plan)

    def _create(self, info: CollectionInfo) -> None:
        self._seen(self._answer(self._create_script(info), "transaction"))

    async def _acreate(self, info: CollectionInfo) -> None:
        self._seen(await self._aanswer(self._create_script(info), "transaction"))

    def _drop(self) -> None:
        self._answer(catalog.drop(self._names, self.schema, self.collection), "transaction")
        self._place = None

    async def _adrop(self) -> None:
        await self._aanswer(catalog.drop(self._names, self.schema, self.collection), "transaction")
        self._place = None

    def _list_collections(self) -> list[str]:
        return self._answer(catalog.list_collections(self._names))

    async def _alist_collections(self) -> list[str]:
        return await self._aanswer(catalog.list_collections(self._names))

    def _details_script(self) -> Script[dict[str, Any]]:
        return catalog.details(self._names.table, indexed=self._here().indexed)

    def _details(self) -> dict[str, Any]:
        return self._answer(self._details_script())

    async def _adetails(self) -> dict[str, Any]:
        return await self._aanswer(self._details_script())

    # --- reading ----------------------------------------------------------------------------------------

    # What a store of another kind of table does in other ways.

    def _converter(self) -> PostgresFilterConverter | None:
        return _CONVERTER

    def _search_script(self, query: Query) -> Script[list[Hit]]:
        return reading.search(self._names, self._here(), query, self._ef_search)

    def _fetch_script(self, ids: Sequence[str], include: Sequence[str]) -> Script[list[StoredRecord]]:
        return reading.fetch(self._names, ids, include)

    def _scan_script(self, query: Query, token: str | None, size: int) -> Script[Page[StoredRecord]]:
        return reading.scan(self._names, query, token, size)

    def _count_script(self, query: Query) -> Script[int]:
        return reading.count(self._names, query)

    # What is the same for all.

    def _fetch(self, ids: Sequence[str], include: Sequence[str]) -> list[StoredRecord]:
        return self._answer(self._fetch_script(ids, include))

    async def _afetch(self, ids: Sequence[str], include: Sequence[str]) -> list[StoredRecord]:
        return await self._aanswer(self._fetch_script(ids, include))

    def _search(self, query: Query) -> list[Hit]:
        return self._answer(self._search_script(query))

    async def _asearch(self, query: Query) -> list[Hit]:
        return await self._aanswer(self._search_script(query))

    def _searches_script(self, queries: Sequence[Query]) -> Script[list[list[Hit]]]:
        found: list[list[Hit]] = []
        for query in queries:
            hits = yield from self._search_script(query)
            found.append(hits)
        return found

    def _search_batch(self, queries: Sequence[Query]) -> list[list[Hit]]:
        return self._answer(self._searches_script(queries))

    async def _asearch_batch(self, queries: Sequence[Query]) -> list[list[Hit]]:
        return await self._aanswer(self._searches_script(queries))

    def _scan(self, query: Query, token: str | None, size: int) -> Page[StoredRecord]:
        return self._answer(self._scan_script(query, token, size))

    async def _ascan(self, query: Query, token: str | None, size: int) -> Page[StoredRecord]:
        return await self._aanswer(self._scan_script(query, token, size))

    def _count(self, query: Query) -> int:
        return self._answer(self._count_script(query))

    async def _acount(self, query: Query) -> int:
        return await self._aanswer(self._count_script(query))

    # --- changing ---------------------------------------------------------------------------------------

    def _write(self, records: Sequence[Record], if_exists: IfExists) -> object:
        batch = changing.batch_of(records, self._here())
        return self._answer(changing.write(self._names, batch, if_exists), _kind_of(if_exists))

    async def _awrite(self, records: Sequence[Record], if_exists: IfExists) -> object:
        batch = await self._abatch(records)
        return await self._aanswer(changing.write(self._names, batch, if_exists), _kind_of(if_exists))

    def _write_inside(self, records: Sequence[Record], if_exists: IfExists, inside: Normal) -> object:
        batch = changing.batch_of(records, self._here())
        return self._answer(changing.write(self._names, batch, if_exists, inside), "transaction")

    async def _awrite_inside(self, records: Sequence[Record], if_exists: IfExists, inside: Normal) -> object:
        batch = await self._abatch(records)
        return await self._aanswer(changing.write(self._names, batch, if_exists, inside), "transaction")

    async def _abatch(self, records: Sequence[Record]) -> Batch:
        """Encode documents, beside the event loop if that takes more than a moment (E3)."""
        size = sum(len(record.text or "") + len(record.metadata_json) for record in records)
        if size <= _AT_ONCE:
            return changing.batch_of(records, self._here())
        return await asyncio.to_thread(changing.batch_of, records, self._here())

    def _update(self, ids: Sequence[str], changes: Mapping[str, Any], unset: Sequence[str]) -> list[str]:
        script = changing.update(self._names, ids, changes, unset, self.capabilities.limits)
        return self._answer(script, "transaction")

    async def _aupdate(
        self, ids: Sequence[str], changes: Mapping[str, Any], unset: Sequence[str]
    ) -> list[str]:
        script = changing.update(self._names, ids, changes, unset, self.capabilities.limits)
        return await self._aanswer(script, "transaction")

    def _update_inside(
        self, ids: Sequence[str], changes: Mapping[str, Any], unset: Sequence[str], inside: Normal
    ) -> list[str]:
        script = changing.update(self._names, ids, changes, unset, self.capabilities.limits, inside)
        return self._answer(script, "transaction")

    async def _aupdate_inside(
        self, ids: Sequence[str], changes: Mapping[str, Any], unset: Sequence[str], inside: Normal
    ) -> list[str]:
        script = changing.update(self._names, ids, changes, unset, self.capabilities.limits, inside)
        return await self._aanswer(script, "transaction")

    def _delete_script(self, target: Sequence[str] | Query) -> tuple[Script[None], Kind]:
        if isinstance(target, Query):
            return changing.delete_matching(self._names, target), "write"
        return changing.delete_ids(self._names, target), "transaction"

    def _delete(self, target: Sequence[str] | Query) -> None:
        self._answer(*self._delete_script(target))

    async def _adelete(self, target: Sequence[str] | Query) -> None:
        await self._aanswer(*self._delete_script(target))

    def _delete_inside(self, ids: Sequence[str], inside: Normal) -> None:
        self._answer(changing.delete_ids(self._names, ids, inside), "transaction")

    async def _adelete_inside(self, ids: Sequence[str], inside: Normal) -> None:
        await self._aanswer(changing.delete_ids(self._names, ids, inside), "transaction")


def _kind_of(if_exists: IfExists) -> Kind:
    """Return how documents are written: what may have to be undone is a transaction."""
    return "transaction" if if_exists == "error" else "write"
