"""`QdrantVectorStore` and `QdrantLocalVectorStore`: documents in Qdrant, on a server or in the client's local mode."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import msgspec

from entrepot import VectorStore
from entrepot.errors import CollectionMismatchError, CollectionNotFoundError, ConfigurationError
from entrepot.records import Query
from entrepot_qdrant import catalog, changing, reading
from entrepot_qdrant.catalog import Place, Plan
from entrepot_qdrant.filters import QdrantFilterConverter
from entrepot_qdrant.local import LocalEndpoint
from entrepot_qdrant.plugin import CAPABILITIES, LOCAL_CAPABILITIES
from entrepot_qdrant.servers import check_range, server_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from entrepot.capabilities import Capabilities
    from entrepot.filters import Normal
    from entrepot.records import CollectionInfo, Hit, IfExists, Page, Record, StoredRecord
    from entrepot_qdrant.changing import Batch
    from entrepot_qdrant.commands import Script
    from entrepot_qdrant.sessions import Server

T = TypeVar("T")

_AT_ONCE = 20_000
"""Characters of documents that are encoded in the event loop: a few milliseconds."""
_MOST = 1_000_000


class _QdrantStore(VectorStore):
    """What both stores do: they differ in what they work on alone."""

    def __init__(self, endpoint: Server | LocalEndpoint, plan: Plan, collection: str, **options: Any) -> None:
        super().__init__(collection=collection, **options)
        if not 1.0 <= plan.average_words <= _MOST:
            msg = f"average_words must be a number from 1 to {_MOST}, not {plan.average_words!r}"
            raise ConfigurationError(msg)
        self._endpoint = endpoint
        self._plan = plan
        self._place: Place | None = None

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
        try:
            return self._endpoint.run(self._checked(script), self.collection)
        except (CollectionNotFoundError, CollectionMismatchError):
            self._forget()
            raise

    async def _aanswer(self, script: Script[T]) -> T:
        if not self._endpoint.has_async:
            return await asyncio.to_thread(self._answer, script)
        try:
            return await self._endpoint.arun(self._checked(script), self.collection)
        except (CollectionNotFoundError, CollectionMismatchError):
            self._forget()
            raise

    def _checked(self, script: Script[T]) -> Script[T]:
        """Return the script, which in local mode first sees that the collection is still the one described."""
        if self._place is not None and self._endpoint.is_local:
            yield from catalog.refuse_stale(self._place)
        return (yield from script)

    def _forget(self) -> None:
        """Look at the collection anew before the next operation: it is not what it was."""
        self._place = self._info = None

    # --- collections ------------------------------------------------------------------------------------

    def _here(self) -> Place:
        if self._place is None:
            msg = f"there is no collection {self.collection!r}"
            raise CollectionNotFoundError(msg)
        return self._place

    def _seen(self, place: Place | None) -> CollectionInfo | None:
        self._place = place
        if place is None:
            self._info = None
            return None
        ann = place.kind == "hnsw"
        if ann is not self.capabilities.ann:
            self.capabilities = msgspec.structs.replace(self.capabilities, ann=ann)
        return place.info

    def _describe(self) -> CollectionInfo | None:
        return self._seen(self._endpoint.run(catalog.describe(self.collection), self.collection))

    async def _adescribe(self) -> CollectionInfo | None:
        return self._seen(await self._endpoint.arun(catalog.describe(self.collection), self.collection))

    def _create(self, info: CollectionInfo) -> None:
        self._seen(self._endpoint.run(catalog.create(info, self._plan), self.collection))

    async def _acreate(self, info: CollectionInfo) -> None:
        self._seen(await self._endpoint.arun(catalog.create(info, self._plan), self.collection))

    def _drop(self) -> None:
        self._endpoint.run(catalog.drop(self.collection), self.collection)
        self._place = None

    async def _adrop(self) -> None:
        await self._endpoint.arun(catalog.drop(self.collection), self.collection)
        self._place = None

    def _list_collections(self) -> list[str]:
        return self._endpoint.run(catalog.list_collections(), self.collection)

    async def _alist_collections(self) -> list[str]:
        return await self._endpoint.arun(catalog.list_collections(), self.collection)

    def _details(self) -> dict[str, Any]:
        return self._answer(catalog.details(self._here()))

    async def _adetails(self) -> dict[str, Any]:
        return await self._aanswer(catalog.details(self._here()))

    # --- reading ----------------------------------------------------------------------------------------

    def _converter(self) -> QdrantFilterConverter:
        return QdrantFilterConverter()

    def _fetch(self, ids: Sequence[str], include: Sequence[str]) -> list[StoredRecord]:
        return self._answer(reading.fetch(self._here(), ids, include, self._plan))

    async def _afetch(self, ids: Sequence[str], include: Sequence[str]) -> list[StoredRecord]:
        return await self._aanswer(reading.fetch(self._here(), ids, include, self._plan))

    def _search(self, query: Query) -> list[Hit]:
        return self._answer(reading.search(self._here(), query, self._plan))

    async def _asearch(self, query: Query) -> list[Hit]:
        return await self._aanswer(reading.search(self._here(), query, self._plan))

    def _scan(self, query: Query, token: str | None, size: int) -> Page[StoredRecord]:
        return self._answer(reading.scan(self._here(), query, token, size, self._plan))

    async def _ascan(self, query: Query, token: str | None, size: int) -> Page[StoredRecord]:
        return await self._aanswer(reading.scan(self._here(), query, token, size, self._plan))

    def _count(self, query: Query) -> int:
        return self._answer(reading.count(self._here(), query))

    async def _acount(self, query: Query) -> int:
        return await self._aanswer(reading.count(self._here(), query))

    # --- changing ---------------------------------------------------------------------------------------

    def _write(self, records: Sequence[Record], if_exists: IfExists) -> object:
        batch = changing.batch_of(records, self._plan)
        return self._answer(changing.write(self._here(), batch, if_exists, self._plan))

    async def _awrite(self, records: Sequence[Record], if_exists: IfExists) -> object:
        batch = await self._abatch(records)
        return await self._aanswer(changing.write(self._here(), batch, if_exists, self._plan))

    def _write_inside(self, records: Sequence[Record], if_exists: IfExists, inside: Normal) -> object:
        batch = changing.batch_of(records, self._plan)
        return self._answer(changing.write(self._here(), batch, if_exists, self._plan, inside))

    async def _awrite_inside(self, records: Sequence[Record], if_exists: IfExists, inside: Normal) -> object:
        batch = await self._abatch(records)
        return await self._aanswer(changing.write(self._here(), batch, if_exists, self._plan, inside))

    async def _abatch(self, records: Sequence[Record]) -> Batch:
        """Encode documents, beside the event loop if that takes more than a moment (E3)."""
        size = sum(
            len(record.text or "") + len(record.metadata_json) + 4 * len(record.vector) for record in records
        )
        if size <= _AT_ONCE:
            return changing.batch_of(records, self._plan)
        return await asyncio.to_thread(changing.batch_of, records, self._plan)

    def _update_script(
        self, ids: Sequence[str], changes: Mapping[str, Any], unset: Sequence[str], *inside: Normal
    ) -> Script[list[str]]:
        limits = self.capabilities.limits
        return changing.update(self._here(), ids, changes, unset, limits, self._plan, *inside)

    def _update(self, ids: Sequence[str], changes: Mapping[str, Any], unset: Sequence[str]) -> list[str]:
        return self._answer(self._update_script(ids, changes, unset))

    async def _aupdate(
        self, ids: Sequence[str], changes: Mapping[str, Any], unset: Sequence[str]
    ) -> list[str]:
        return await self._aanswer(self._update_script(ids, changes, unset))

    def _update_inside(
        self, ids: Sequence[str], changes: Mapping[str, Any], unset: Sequence[str], inside: Normal
    ) -> list[str]:
        return self._answer(self._update_script(ids, changes, unset, inside))

    async def _aupdate_inside(
        self, ids: Sequence[str], changes: Mapping[str, Any], unset: Sequence[str], inside: Normal
    ) -> list[str]:
        return await self._aanswer(self._update_script(ids, changes, unset, inside))

    def _delete_script(self, target: Sequence[str] | Query) -> Script[None]:
        if isinstance(target, Query):
            return changing.delete_matching(self._here(), target, self._plan)
        return changing.delete_ids(self._here(), target, self._plan)

    def _delete(self, target: Sequence[str] | Query) -> None:
        self._answer(self._delete_script(target))

    async def _adelete(self, target: Sequence[str] | Query) -> None:
        await self._aanswer(self._delete_script(target))

    def _delete_unchanged(self, records: Sequence[StoredRecord]) -> None:
        self._answer(changing.delete_unchanged(self._here(), records, self._plan))

    async def _adelete_unchanged(self, records: Sequence[StoredRecord]) -> None:
        await self._aanswer(changing.delete_unchanged(self._here(), records, self._plan))

    def _delete_inside(self, ids: Sequence[str], inside: Normal) -> None:
        self._answer(changing.delete_ids(self._here(), ids, self._plan, inside))

    async def _adelete_inside(self, ids: Sequence[str], inside: Normal) -> None:
        await self._aanswer(changing.delete_ids(self._here(), ids, self._plan, inside))


class QdrantVectorStore(_QdrantStore):
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


class QdrantLocalVectorStore(_QdrantStore):
    """Documents in the local mode of Qdrant's client: in memory or in a folder, for small collections.

    Searches are exact and read every document. Stores of one process on one place share its data and take turns;
    a folder belongs to one process at a time.

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
