"""`ElasticsearchVectorStore`: documents in an index of Elasticsearch."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from entrepot.errors import ConfigurationError
from entrepot.filters import TRUE
from entrepot.records import Query
from entrepot.scripted import ScriptedVectorStore
from entrepot_elasticsearch import catalog, changing, reading, searching
from entrepot_elasticsearch.catalog import Place, Plan
from entrepot_elasticsearch.filters import ElasticsearchFilterConverter
from entrepot_elasticsearch.plugin import CAPABILITIES
from entrepot_elasticsearch.servers import check_range, server_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from entrepot.capabilities import Capabilities
    from entrepot.filters import Normal
    from entrepot.records import CollectionInfo, Hit, IfExists, Page, Record, StoredRecord
    from entrepot_elasticsearch.catalog import Version
    from entrepot_elasticsearch.commands import Script

T = TypeVar("T")


class ElasticsearchVectorStore(ScriptedVectorStore[Place]):
    """Documents in an index of Elasticsearch 8.15 or newer, or 9.

    Metadata needs no schema: an index has the same few fields whatever keys documents bring. A collection that is made
    gets an approximate index (HNSW), unless ``index="flat"``; ``exact=True`` asks for an exact search in either, and
    needs no script on the server. Vectors are stored without quantisation.

    Args:
        collection: Name of the collection.
        host: The server, by default localhost.
        port: Its port, by default 9200.
        user: Who logs in.
        password: The password; by default that of ENTREPOT_ELASTICSEARCH_PASSWORD, where a user is named.
        api_key: An API key instead; by default that of ENTREPOT_ELASTICSEARCH_API_KEY, where no user is named.
        tls: Whether to use TLS.
        ca_file: TLS: certificates to trust instead of the system's.
        cert_file: TLS: the client's own certificate.
        key_file: TLS: its key.
        fingerprint: TLS: the SHA-256 of the certificate to trust.
        prefix: What stands before the paths of the server, behind a proxy.
        pool_size: Connections that stay open; for async use, in each event loop.
        index: The index of a collection that is made: ``"hnsw"`` or ``"flat"``.
        m: HNSW: edges of a node, 2 to 512.
        ef_construction: HNSW: candidates while the index is made, 2 to 3,200.
        ef_search: HNSW: least candidates of a search, 1 to 10,000.
        shards: Shards of a collection that is made, 1 to 1,024.
        replicas: Copies of each shard, 0 to 100.
        client: An `Elasticsearch` or `AsyncElasticsearch` to use; it stays open when the store closes (E5). It
            says where the server is, so nothing else may.
        options: What every store takes: embedding, metric, dimension, create, timeout, allow_other_model,
            batching, max_completion_rows (`VectorStoreHooks`).

    Raises:
        ConfigurationError: An option is out of bounds, or two contradict each other.
    """

    backend = "elasticsearch"
    capabilities: Capabilities = CAPABILITIES

    def __init__(  # noqa: PLR0913 - the options of the backend
        self,
        *,
        collection: str = "default",
        host: str | None = None,
        port: int | None = None,
        user: str | None = None,
        password: str | None = None,
        api_key: str | None = None,
        tls: bool = False,
        ca_file: str | None = None,
        cert_file: str | None = None,
        key_file: str | None = None,
        fingerprint: str | None = None,
        prefix: str | None = None,
        pool_size: int = 8,
        index: Literal["flat", "hnsw"] = "hnsw",
        m: int = 16,
        ef_construction: int = 128,
        ef_search: int = 200,
        shards: int = 1,
        replicas: int = 0,
        client: object = None,
        **options: Any,
    ) -> None:
        super().__init__(collection=collection, **options)
        for name, value, least, most in (
            ("m", m, 2, 512),
            ("ef_construction", ef_construction, 2, 3200),
            ("ef_search", ef_search, 1, searching.MOST),
            ("shards", shards, 1, 1024),
            ("replicas", replicas, 0, 100),
        ):
            check_range(name, value, least, most)
        if index not in {"flat", "hnsw"}:
            msg = f"index must be 'flat' or 'hnsw', not {index!r}"
            raise ConfigurationError(msg)
        self._plan = Plan(index, m, ef_construction, ef_search, shards, replicas)
        self._version: Version | None = None
        self._server = server_of(
            host=host, port=port, user=user, password=password, api_key=api_key, tls=tls, ca_file=ca_file,
            cert_file=cert_file, key_file=key_file, fingerprint=fingerprint, prefix=prefix, pool_size=pool_size,
            timeout=self.timeout, client=client,
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
        """The client of elasticsearch-py: the one that was given, or an `Elasticsearch`."""
        return self._server.native

    def _answer(self, script: Script[T]) -> T:
        return self._server.run(script, self.collection)

    async def _aanswer(self, script: Script[T]) -> T:
        if not self._server.has_async:
            return await asyncio.to_thread(self._answer, script)
        return await self._server.arun(script, self.collection)

    # --- collections ------------------------------------------------------------------------------------

    def _describe_script(self) -> Script[Place | None]:
        return catalog.describe(self.collection)

    def _create_script(self, info: CollectionInfo) -> Script[Place]:
        return catalog.create(info, self._plan, self._version)

    def _drop_script(self) -> Script[None]:
        return catalog.drop(self.collection)

    def _list_collections_script(self) -> Script[list[str]]:
        return catalog.list_collections()

    def _details_script(self) -> Script[dict[str, Any]]:
        return catalog.details(self._here())

    # --- reading ----------------------------------------------------------------------------------------

    def _converter(self) -> ElasticsearchFilterConverter:
        return ElasticsearchFilterConverter()

    def _fetch_script(self, ids: Sequence[str], include: Sequence[str]) -> Script[list[StoredRecord]]:
        return reading.fetch(self._here(), ids, include)

    def _search_script(self, query: Query) -> Script[list[Hit]]:
        return searching.search(self._here(), query, self._plan)

    def _search_batch_script(self, queries: Sequence[Query]) -> Script[list[list[Hit]]]:
        return searching.search_all(self._here(), queries, self._plan)

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
