"""`QdrantVectorStore` and `QdrantLocalVectorStore`: documents in Qdrant, on a server or in the client's local mode."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeVar

from entrepot.errors import ConfigurationError
from entrepot.filters import TRUE
from entrepot.records import Query
from entrepot.scripted import ScriptedVectorStore, encode
from entrepot_qdrant import catalog, changing, reading
from entrepot_qdrant.catalog import Place, Plan
from entrepot_qdrant.filters import ConditionConverter, QdrantFilterConverter
from entrepot_qdrant.local import LocalEndpoint
from entrepot_qdrant.plugin import CAPABILITIES, LOCAL_CAPABILITIES
from entrepot_qdrant.servers import check_range, server_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from entrepot.capabilities import Capabilities
    from entrepot.filters import Normal
    from entrepot.records import CollectionInfo, Hit, IfExists, Page, Record, StoredRecord
    from entrepot_qdrant.commands import Script
    from entrepot_qdrant.sessions import Server

T = TypeVar("T")

_MOST = 1_000_000


class BaseStore(ScriptedVectorStore[Place]):
    """What all stores do: on a server and in local mode they differ in what they work on alone."""

    def __init__(self, endpoint: Server | LocalEndpoint, plan: Plan, collection: str, **options: Any) -> None:
        super().__init__(collection=collection, **options)
        if not 1.0 <= plan.average_words <= _MOST:
            msg = f"average_words must be a number from 1 to {_MOST}, not {plan.average_words!r}"
            raise ConfigurationError(msg)
        self._endpoint = endpoint
        self._plan = plan

    # --- connecting -------------------------------------------------------------------------------------

    def _open(self) -> None:
        self._endpoint.open()
        if not self._endpoint.is_local and self._endpoint.has_sync:
            self._endpoint.run(catalog.check_server())

    async def _aopen(self) -> None:
        if self._endpoint.has_async:
            await self._endpoint.arun(catalog.check_server())
        else:
            await super()._aopen()

    def _close(self) -> None:
        self._endpoint.close()

    async def _aclose(self) -> None:
        await self._endpoint.aclose()

    @property
    def native_client(self) -> object:
        """The client of qdrant-client: the one that was given, or a `QdrantClient`.

        In local mode no other thread may use it while the store is in use.
        """
        return self._endpoint.native

    def _answer(self, script: Script[T]) -> T:
        return self._endpoint.run(script, self.collection)

    async def _aanswer(self, script: Script[T]) -> T:
        if self._endpoint.is_local or self._endpoint.has_async:
            return await self._endpoint.arun(script, self.collection)
        return await super()._aanswer(script)  # the user's sync client

    def _kept(self, script: Script[T]) -> Script[T]:
        """Return the script, which in local mode first sees that the collection is still the one described."""
        if self._endpoint.is_local:
            yield from catalog.refuse_stale(self._here())
        return (yield from script)

    # --- collections ------------------------------------------------------------------------------------

    def _describe_script(self) -> Script[Place | None]:
        return catalog.describe(self.collection)

    def _create_script(self, info: CollectionInfo) -> Script[Place]:
        return catalog.create(info, self._plan)

    def _drop_script(self) -> Script[None]:
        return catalog.drop(self.collection)

    def _list_collections_script(self) -> Script[list[str]]:
        return catalog.list_collections()

    def _details_script(self) -> Script[dict[str, Any]]:
        return self._kept(catalog.details(self._here()))

    # --- reading ----------------------------------------------------------------------------------------

    def _converter(self) -> ConditionConverter:
        return QdrantFilterConverter()

    def _fetch_script(self, ids: Sequence[str], include: Sequence[str]) -> Script[list[StoredRecord]]:
        return self._kept(reading.fetch(self._here(), ids, include, self._plan))

    def _search_script(self, query: Query) -> Script[list[Hit]]:
        return self._kept(reading.search(self._here(), query, self._plan))

    def _scan_script(self, query: Query, token: str | None, size: int) -> Script[Page[StoredRecord]]:
        return self._kept(reading.scan(self._here(), query, token, size, self._plan))

    def _count_script(self, query: Query) -> Script[int]:
        return self._kept(reading.count(self._here(), query))

    # --- changing ---------------------------------------------------------------------------------------

    def _write_script(
        self, records: Sequence[Record], if_exists: IfExists, inside: Normal = TRUE
    ) -> Script[object]:
        batch = yield from encode(changing.batch_of, records, self._plan)
        yield from self._kept(changing.write(self._here(), batch, if_exists, self._plan, inside))
        return None

    def _update_script(
        self, ids: Sequence[str], changes: Mapping[str, Any], unset: Sequence[str], inside: Normal = TRUE
    ) -> Script[list[str]]:
        limits = self.capabilities.limits
        return self._kept(changing.update(self._here(), ids, changes, unset, limits, self._plan, inside))

    def _delete_script(self, target: Sequence[str] | Query, inside: Normal = TRUE) -> Script[None]:
        if isinstance(target, Query):
            return self._kept(changing.delete_matching(self._here(), target, self._plan))
        return self._kept(changing.delete_ids(self._here(), target, self._plan, inside))

    def _delete_unchanged_script(self, records: Sequence[StoredRecord]) -> Script[None]:
        return self._kept(changing.delete_unchanged(self._here(), records, self._plan))


class QdrantVectorStore(BaseStore):
    """Documents on a Qdrant server of version 1.17 or newer, over REST or gRPC.

    A collection that is made gets an approximate index (HNSW), unless ``index="flat"``; ``exact=True`` asks for
    an exact search in either. The collection records which it has.

    Args:
        collection: Name of the collection.
        host: The server, by default localhost.
        port: Its port for REST, by default 6333.
        api_key: The API key; by default that of the environment variable QDRANT_API_KEY.
        tls: Whether to use TLS.
        ca_file: TLS over REST: certificates to trust instead of the system's.
        prefix: What stands before the paths of the server, behind a proxy.
        grpc: Whether to use gRPC.
        grpc_port: The port for gRPC, by default 6334.
        pool_size: Most connections; for async use, in each event loop.
        index: The index of a collection that is made: ``"hnsw"`` or ``"flat"``.
        m: HNSW: edges of a node, 2 to 512.
        ef_construction: HNSW: candidates while the index is made, 4 to 4,096.
        ef_search: HNSW: candidates of a search, 1 to 4,096.
        quantization: HNSW: ``"scalar"`` or ``"binary"`` copies to search in; hits are scored by the vectors.
        oversampling: Quantization: how many times k candidates are scored, 1 to 100.
        shards: Shards of a collection that is made.
        replicas: Copies of each shard.
        ordering: The order of writes in a cluster: ``"weak"``, ``"medium"`` or ``"strong"``.
        consistency: From how many replicas is read: a number, ``"majority"``, ``"quorum"`` or ``"all"``.
        max_indexes: Most payload indexes, 0 to 1,000.
        average_words: FULLTEXT: the words of a text of average length.
        client: A `QdrantClient` or `AsyncQdrantClient` to use; it stays open when the store closes (E5). It
            says where the server is, so nothing else may.
        options: What every store takes: embedding, metric, dimension, create, timeout, allow_other_model,
            batching, max_completion_rows (`VectorStoreHooks`).

    Raises:
        ConfigurationError: An option is out of bounds, or two contradict each other.
    """

    backend = "qdrant"
    capabilities: Capabilities = CAPABILITIES

    def __init__(  # noqa: PLR0913 - the options of the backend
        self,
        *,
        collection: str = "default",
        host: str | None = None,
        port: int | None = None,
        api_key: str | None = None,
        tls: bool = False,
        ca_file: str | None = None,
        prefix: str | None = None,
        grpc: bool = False,
        grpc_port: int | None = None,
        pool_size: int = 8,
        index: Literal["flat", "hnsw"] = "hnsw",
        m: int = 16,
        ef_construction: int = 128,
        ef_search: int = 128,
        quantization: Literal["scalar", "binary"] | None = None,
        oversampling: float = 3.0,
        shards: int | None = None,
        replicas: int | None = None,
        ordering: Literal["weak", "medium", "strong"] = "weak",
        consistency: int | str | None = None,
        max_indexes: int = 64,
        average_words: float = 256.0,
        client: object = None,
        timeout: float = 10.0,
        **options: Any,
    ) -> None:
        for name, value, least, most in (
            ("m", m, 2, 512),
            ("ef_construction", ef_construction, 4, 4096),
            ("ef_search", ef_search, 1, 4096),
            ("max_indexes", max_indexes, 0, 1000),
        ):
            check_range(name, value, least, most)
        if quantization is not None and index == "flat":
            msg = "quantization is for an approximate index, and index is 'flat'"
            raise ConfigurationError(msg)
        if not 1.0 <= oversampling <= 100.0:  # noqa: PLR2004 - as the docstring says
            msg = f"oversampling must be a number from 1 to 100, not {oversampling!r}"
            raise ConfigurationError(msg)
        plan = Plan(
            served=True, kind=index, m=m, ef_construction=ef_construction, ef_search=ef_search,
            quantization=quantization, oversampling=oversampling, shards=shards, replicas=replicas,
            ordering=ordering, consistency=consistency, max_indexes=max_indexes, average_words=average_words,
        )  # fmt: skip
        server = server_of(
            host=host, port=port, api_key=api_key, tls=tls, ca_file=ca_file, prefix=prefix, grpc=grpc,
            grpc_port=grpc_port, pool_size=pool_size, timeout=timeout, client=client,
        )  # fmt: skip
        super().__init__(server, plan, collection, timeout=timeout, **options)


class QdrantLocalVectorStore(BaseStore):
    """Documents in the local mode of Qdrant's client: in memory or in a folder, for small collections.

    Searches are exact and read every document. Stores of one process on one place share its data and take turns;
    a folder belongs to one process at a time. In a folder each call of the client is one commit of SQLite with
    ``synchronous=FULL``, so what returned survives a power cut.

    The client keeps documents as Python objects, so a full run of Python's garbage collector takes longer the more
    there are, and all threads wait for it, an event loop too.

    Args:
        collection: Name of the collection.
        path: The folder. Open none that you do not trust: the client keeps points as pickles.
        memory: A name: stores of this process with the same name share one database in memory.
        average_words: FULLTEXT: the words of a text of average length.
        client: A `QdrantClient` in local mode to use; it stays open when the store closes (E5).
        options: What every store takes, as in `QdrantVectorStore`.

    Raises:
        ConfigurationError: Two options contradict each other.
    """

    backend = "qdrant-local"
    capabilities: Capabilities = LOCAL_CAPABILITIES

    def __init__(  # noqa: PLR0913 - the options of the backend
        self,
        *,
        collection: str = "default",
        path: str | None = None,
        memory: str | None = None,
        average_words: float = 256.0,
        client: object = None,
        timeout: float = 10.0,
        **options: Any,
    ) -> None:
        endpoint = LocalEndpoint(path=path, memory=memory, timeout=timeout, client=client)
        super().__init__(endpoint, Plan(average_words=average_words), collection, timeout=timeout, **options)

    def _search_batch(self, queries: Sequence[Query]) -> list[list[Hit]]:
        return [self._search(query) for query in queries]

    async def _asearch_batch(self, queries: Sequence[Query]) -> list[list[Hit]]:
        """Answer one query after the other: the event loop and other stores get a turn in between."""
        return [await self._asearch(query) for query in queries]
