"""`Neo4jVectorStore`: documents in Neo4j."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from entrepot.errors import ConfigurationError
from entrepot.filters import TRUE
from entrepot.records import Query
from entrepot.scripted import ScriptedVectorStore
from entrepot_neo4j import catalog, changing, reading, searching
from entrepot_neo4j.catalog import Place, Plan
from entrepot_neo4j.filters import Neo4jFilterConverter
from entrepot_neo4j.plugin import NEO4J_CAPABILITIES
from entrepot_neo4j.servers import check_range, server_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from entrepot.capabilities import Capabilities
    from entrepot.filters import Normal
    from entrepot.records import CollectionInfo, Hit, IfExists, Page, Record, StoredRecord
    from entrepot_neo4j.catalog import Version
    from entrepot_neo4j.commands import Script

T = TypeVar("T")


class Neo4jVectorStore(ScriptedVectorStore[Place]):
    """Documents as nodes of Neo4j 2026, or 5.18 and newer.

    Metadata needs no schema: a node has the same few properties whatever keys documents bring. A collection that is
    made gets an approximate index (HNSW), unless ``index="flat"``, which searches without a filter use; those with one
    are exact, and so are all that ask for ``exact=True``. Vectors are indexed without quantisation. Every write is one
    transaction, and every read sees it whole or not at all.

    Args:
        collection: Name of the collection, and the label of its documents if it is a plain name.
        host: The server, by default localhost.
        port: Its port, by default 7687.
        user: Who logs in, by default neo4j where there is a password; without either there is no login.
        password: The password; by default that of ENTREPOT_NEO4J_PASSWORD, where a user is named.
        database: The database, by default the user's home database; it must exist.
        routing: Whether the server is asked for the others of its cluster, as ``neo4j://`` does.
        tls: Whether to use TLS.
        ca_file: TLS: certificates to trust instead of the system's.
        pool_size: Most connections; for async use, in each event loop.
        index: The index of a collection that is made: ``"hnsw"`` or ``"flat"``.
        m: HNSW: edges of a node, 1 to 512.
        ef_construction: HNSW: candidates while the index is made, 1 to 3,200.
        ef_search: HNSW: least candidates of a search, 1 to 10,000.
        client: A `neo4j.Driver` or `neo4j.AsyncDriver` to use; it stays open when the store closes (E5). It says
            where the server is, so nothing else may, but for the database.
        options: What every store takes: embedding, metric, dimension, create, timeout, allow_other_model,
            batching, max_completion_rows (`VectorStoreHooks`).

    Raises:
        ConfigurationError: An option is out of bounds, or two contradict each other.
    """

    backend = "neo4j"
    capabilities: Capabilities = NEO4J_CAPABILITIES

    def __init__(  # noqa: PLR0913 - the options of the backend
        self,
        *,
        collection: str = "default",
        host: str | None = None,
        port: int | None = None,
        user: str | None = None,
        password: str | None = None,
        database: str | None = None,
        routing: bool = True,
        tls: bool = False,
        ca_file: str | None = None,
        pool_size: int = 8,
        index: Literal["flat", "hnsw"] = "hnsw",
        m: int = 16,
        ef_construction: int = 100,
        ef_search: int = 100,
        client: object = None,
        **options: Any,
    ) -> None:
        super().__init__(collection=collection, **options)
        for name, value, least, most in (
            ("m", m, 1, 512),
            ("ef_construction", ef_construction, 1, 3200),
            ("ef_search", ef_search, 1, 10_000),
        ):
            check_range(name, value, least, most)
        if index not in {"flat", "hnsw"}:
            msg = f"index must be 'flat' or 'hnsw', not {index!r}"
            raise ConfigurationError(msg)
        self.namespace = database
        self._plan = Plan(index, m, ef_construction, ef_search)
        self._version: Version | None = None
        self._server = server_of(
            host=host, port=port, user=user, password=password, database=database, routing=routing, tls=tls,
            ca_file=ca_file, pool_size=pool_size, timeout=self.timeout, client=client,
        )  # fmt: skip

    # --- connecting -------------------------------------------------------------------------------------

    def _open(self) -> None:
        if self._server.has_sync:
            self._version = self._server.run(catalog.check_server())

    async def _aopen(self) -> None:
        if self._server.has_async:
            self._version = await self._server.arun(catalog.check_server())
        else:
            await super()._aopen()

    def _close(self) -> None:
        self._server.close()

    async def _aclose(self) -> None:
        await self._server.aclose()

    @property
    def native_client(self) -> object:
        """The driver: the one that was given, or a `neo4j.Driver`."""
        return self._server.native

    def _answer(self, script: Script[T]) -> T:
        return self._server.run(script)

    async def _aanswer(self, script: Script[T]) -> T:
        if not self._server.has_async:
            return await asyncio.to_thread(self._answer, script)
        return await self._server.arun(script)

    # --- collections ------------------------------------------------------------------------------------

    def _describe_script(self) -> Script[Place | None]:
        if self._version is None:
            self._version = yield from catalog.check_server()
        return (yield from catalog.describe(self.collection, self._version))

    def _create_script(self, info: CollectionInfo) -> Script[Place]:
        if self._version is None:
            self._version = yield from catalog.check_server()
        return (yield from catalog.create(info, self._plan, self._version))

    def _drop_script(self) -> Script[None]:
        return catalog.drop(self.collection)

    def _list_collections_script(self) -> Script[list[str]]:
        return catalog.list_collections()

    def _details_script(self) -> Script[dict[str, Any]]:
        return catalog.details(self._here())

    # --- reading ----------------------------------------------------------------------------------------

    def _converter(self) -> Neo4jFilterConverter:
        return Neo4jFilterConverter()

    def _fetch_script(self, ids: Sequence[str], include: Sequence[str]) -> Script[list[StoredRecord]]:
        return reading.fetch(self._here(), ids, include)

    def _search_script(self, query: Query) -> Script[list[Hit]]:
        return searching.search(self._here(), query, self._plan)

    def _scan_script(self, query: Query, token: str | None, size: int) -> Script[Page[StoredRecord]]:
        return reading.scan(self._here(), query, token, size)

    def _count_script(self, query: Query) -> Script[int]:
        return reading.count(self._here(), query)

    # --- changing ---------------------------------------------------------------------------------------

    def _write_script(
        self, records: Sequence[Record], if_exists: IfExists, inside: Normal = TRUE
    ) -> Script[object]:
        return changing.write(self._here(), records, if_exists, inside)

    def _update_script(
        self,
        ids: Sequence[str],
        changes: Mapping[str, Any],
        unset: Sequence[str],
        inside: Normal = TRUE,
    ) -> Script[list[str]]:
        return changing.update(self._here(), ids, changes, unset, self.capabilities.limits, inside)

    def _delete_script(self, target: Sequence[str] | Query, inside: Normal = TRUE) -> Script[None]:
        if isinstance(target, Query):
            return changing.delete_matching(self._here(), target)
        return changing.delete_ids(self._here(), target, inside)

    def _delete_unchanged_script(self, records: Sequence[StoredRecord]) -> Script[None]:
        return changing.delete_unchanged(self._here(), records)
