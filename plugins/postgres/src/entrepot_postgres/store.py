"""`PostgresVectorStore`: documents in PostgreSQL, compared by pgvector."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar, cast

from entrepot.errors import ConfigurationError
from entrepot.filters import TRUE
from entrepot.metadata import name_fault
from entrepot.records import Query
from entrepot.scripted import ScriptedVectorStore, encode
from entrepot_postgres import catalog, changing, reading
from entrepot_postgres.catalog import IndexPlan, Place
from entrepot_postgres.config import check_pool_size, check_range, check_schema, connection_target
from entrepot_postgres.filters import PostgresFilterConverter
from entrepot_postgres.mapped_table import Table
from entrepot_postgres.names import names_of
from entrepot_postgres.plugin import POSTGRES_CAPABILITIES
from entrepot_postgres.scripts import as_a
from entrepot_postgres.sessions import Server

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from entrepot.capabilities import Capabilities
    from entrepot.filters import Normal
    from entrepot.records import CollectionInfo, Hit, IfExists, Page, Record, StoredRecord
    from entrepot_postgres.scripts import Script

T = TypeVar("T")

_CONVERTER: Final = PostgresFilterConverter()


class PostgresVectorStore(ScriptedVectorStore[Place | Table]):
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

    def _answer(self, script: Script[T]) -> T:
        return self._server.run(script, self.collection)

    async def _aanswer(self, script: Script[T]) -> T:
        if not self._server.has_async:
            return await super()._aanswer(script)
        return await self._server.arun(script, self.collection)

    # --- collections ------------------------------------------------------------------------------------

    def _describe_script(self) -> Script[Place | Table | None]:
        return catalog.describe(self._names, self.schema, self.collection)

    def _create_script(self, info: CollectionInfo) -> Script[Place | Table]:
        return as_a("transaction", catalog.create(self._names, self.schema, info, self._plan))

    def _drop_script(self) -> Script[None]:
        return as_a("transaction", catalog.drop(self._names, self.schema, self.collection))

    def _list_collections_script(self) -> Script[list[str]]:
        return catalog.list_collections(self._names)

    def _details_script(self) -> Script[dict[str, Any]]:
        return catalog.details(self._names.table, indexed=self._here().indexed)

    # --- reading ----------------------------------------------------------------------------------------

    def _converter(self) -> PostgresFilterConverter | None:
        return _CONVERTER

    def _fetch_script(self, ids: Sequence[str], include: Sequence[str]) -> Script[list[StoredRecord]]:
        return reading.fetch(self._names, ids, include)

    def _search_script(self, query: Query) -> Script[list[Hit]]:
        return reading.search(self._names, self._own(), query, self._ef_search)

    def _scan_script(self, query: Query, token: str | None, size: int) -> Script[Page[StoredRecord]]:
        return reading.scan(self._names, query, token, size)

    def _count_script(self, query: Query) -> Script[int]:
        return reading.count(self._names, query)

    # --- changing ---------------------------------------------------------------------------------------

    def _own(self) -> Place:
        return cast("Place", self._here())

    def _write_script(
        self, records: Sequence[Record], if_exists: IfExists, inside: Normal = TRUE
    ) -> Script[object]:
        batch = yield from encode(changing.batch_of, records, self._own())
        together = if_exists == "error" or inside is not TRUE  # what may have to be undone
        script = changing.write(self._names, batch, if_exists, inside)
        yield from as_a("transaction" if together else "write", script)
        return None

    def _update_script(
        self, ids: Sequence[str], changes: Mapping[str, Any], unset: Sequence[str], inside: Normal = TRUE
    ) -> Script[list[str]]:
        limits = self.capabilities.limits
        return as_a("transaction", changing.update(self._names, ids, changes, unset, limits, inside))

    def _delete_script(self, target: Sequence[str] | Query, inside: Normal = TRUE) -> Script[None]:
        if isinstance(target, Query):
            return as_a("write", changing.delete_matching(self._names, target))
        return as_a("transaction", changing.delete_ids(self._names, target, inside))
