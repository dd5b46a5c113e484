"""`MilvusVectorStore` and `MilvusLiteVectorStore`: documents in Milvus, on a server or within the process."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

from msgspec.structs import replace

from entrepot.errors import ConfigurationError
from entrepot.filters import TRUE
from entrepot.metadata import name_fault
from entrepot.records import Query
from entrepot.scripted import ScriptedVectorStore
from entrepot_milvus import catalog, changing, reading, searching
from entrepot_milvus.catalog import LEVELS, Place, Plan
from entrepot_milvus.commands import read
from entrepot_milvus.config import LITE_TIMEOUT
from entrepot_milvus.filters import MilvusFilterConverter
from entrepot_milvus.lite import LiteEndpoint
from entrepot_milvus.plugin import CAPABILITIES, LITE_CAPABILITIES, WORDED_LIMITS
from entrepot_milvus.servers import check_range, server_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from entrepot.capabilities import Capabilities
    from entrepot.filters import Normal
    from entrepot.records import CollectionInfo, Hit, IfExists, Page, Record, StoredRecord
    from entrepot.scripted import Script
    from entrepot_milvus.filters import LimitedConverter
    from entrepot_milvus.sessions import Server

T = TypeVar("T")

_VERSION: Final = re.compile(r"v?(\d+)\.(\d+)")
_OLDEST: Final = (2, 3)
_RANKS_WORDS: Final = (2, 5)


class BaseStore(ScriptedVectorStore[Place]):
    """What both stores do: they differ in what they work on alone."""

    def __init__(self, endpoint: Server | LiteEndpoint, plan: Plan, collection: str, **options: Any) -> None:
        super().__init__(collection=collection, **options)
        if plan.kind not in {"flat", "hnsw"}:
            msg = f"index must be 'flat' or 'hnsw', not {plan.kind!r}"
            raise ConfigurationError(msg)
        check_range("m", plan.m, 4, 64)
        check_range("ef_construction", plan.ef_construction, 8, 512)
        check_range("ef_search", plan.ef_search, 1, 32_768)
        self._endpoint = endpoint
        self._plan = plan

    # --- connecting -------------------------------------------------------------------------------------

    def _close(self) -> None:
        self._endpoint.close()

    async def _aclose(self) -> None:
        await self._endpoint.aclose()

    @property
    def native_client(self) -> object:
        """The client of pymilvus: the one that was given, or a `MilvusClient`."""
        return self._endpoint.native

    def _answer(self, script: Script[T]) -> T:
        return self._endpoint.run(self._watched(script), self.collection)

    async def _aanswer(self, script: Script[T]) -> T:
        if not self._endpoint.has_async:
            return await asyncio.to_thread(self._answer, script)
        return await self._endpoint.arun(self._watched(script), self.collection)

    def _watched(self, script: Script[T]) -> Script[T]:
        return catalog.watched(script, self.collection, self._place, self._plan)

    # --- collections ------------------------------------------------------------------------------------

    def _describe_script(self) -> Script[Place | None]:
        return catalog.describe(self.collection, self._plan)

    def _create_script(self, info: CollectionInfo) -> Script[Place]:
        return catalog.create(info, self._plan)

    def _drop_script(self) -> Script[None]:
        return catalog.drop(self.collection, self._plan)

    def _list_collections_script(self) -> Script[list[str]]:
        return catalog.list_collections(self._plan)

    def _details_script(self) -> Script[dict[str, Any]]:
        return catalog.details(self._here(), self._plan)

    # --- reading ----------------------------------------------------------------------------------------

    def _converter(self) -> LimitedConverter:
        return MilvusFilterConverter()

    def _fetch_script(self, ids: Sequence[str], include: Sequence[str]) -> Script[list[StoredRecord]]:
        return reading.fetch(self._here(), ids, include, self._plan)

    def _search_script(self, query: Query) -> Script[list[Hit]]:
        return searching.search(self._here(), query, self._plan)

    def _search_batch_script(self, queries: Sequence[Query]) -> Script[list[list[Hit]]]:
        return searching.search_all(self._here(), queries, self._plan)

    def _scan_script(self, query: Query, token: str | None, size: int) -> Script[Page[StoredRecord]]:
        return reading.scan(self._here(), query, token, size, self._plan)

    def _count_script(self, query: Query) -> Script[int]:
        return reading.count(self._here(), query, self._plan)

    # --- changing ---------------------------------------------------------------------------------------

    def _write_script(
        self, records: Sequence[Record], if_exists: IfExists, inside: Normal = TRUE
    ) -> Script[object]:
        return changing.write(self._here(), records, if_exists, self._plan, inside)

    def _visible_script(self, marker: object) -> Script[None]:
        if marker:
            yield from reading.await_all(self._here(), self._plan)

    def _update_script(
        self,
        ids: Sequence[str],
        changes: Mapping[str, Any],
        unset: Sequence[str],
        inside: Normal = TRUE,
    ) -> Script[list[str]]:
        limits = self.capabilities.limits
        return changing.update(self._here(), ids, changes, unset, limits, self._plan, inside)

    def _delete_script(self, target: Sequence[str] | Query, inside: Normal = TRUE) -> Script[None]:
        if isinstance(target, Query):
            return changing.delete_matching(self._here(), target, self._plan)
        return changing.delete_ids(self._here(), target, self._plan, inside)


class MilvusVectorStore(BaseStore):
    """Documents on a Milvus server.

    A collection that is made is searched exactly; one that is made with ``index="hnsw"`` approximately, unless a
    search says ``exact=True``. The collection records which it has.

    Args:
        collection: Name of the collection.
        host: The server, by default localhost.
        port: Its port, by default 19,530.
        user: Who logs in.
        password: The password.
        token: Instead of them: a token; by default that of the environment variable MILVUS_TOKEN.
        database: The database, which must be there.
        partition: A partition of the collection: its documents are found by stores that name it alone.
        tls: Whether to use TLS.
        ca_file: TLS: certificates to trust instead of the system's.
        cert_file: TLS: the client's own certificate.
        key_file: TLS: its key.
        server_name: TLS: the name in the server's certificate.
        index: The index of a collection that is made: ``"flat"`` or ``"hnsw"``.
        m: HNSW: edges of a node, 4 to 64.
        ef_construction: HNSW: candidates while the index is made, 8 to 512.
        ef_search: HNSW: candidates of a search, 1 to 32,768.
        shards: Shards of a collection that is made, 1 to 16.
        replicas: Copies in memory, 1 to 64.
        consistency: What reads wait for: ``"strong"``, or less with ``"bounded"``, ``"session"`` and
            ``"eventually"``; writes then return when they are seen by every read.
        client: A `MilvusClient` or `AsyncMilvusClient` to use; it stays open when the store closes (E5). It
            says where the server is, so nothing else may.
        options: What every store takes: embedding, metric, dimension, create, timeout, allow_other_model,
            batching, max_completion_rows (`VectorStoreHooks`).

    Raises:
        ConfigurationError: An option is out of bounds, or two contradict each other.
    """

    backend = "milvus"
    capabilities: Capabilities = CAPABILITIES

    def __init__(  # noqa: PLR0913 - the options of the backend
        self,
        *,
        collection: str = "default",
        host: str | None = None,
        port: int | None = None,
        user: str | None = None,
        password: str | None = None,
        token: str | None = None,
        database: str | None = None,
        partition: str | None = None,
        tls: bool = False,
        ca_file: str | None = None,
        cert_file: str | None = None,
        key_file: str | None = None,
        server_name: str | None = None,
        index: Literal["flat", "hnsw"] = "flat",
        m: int = 16,
        ef_construction: int = 200,
        ef_search: int = 200,
        shards: int | None = None,
        replicas: int | None = None,
        consistency: Literal["strong", "bounded", "session", "eventually"] = "strong",
        client: object = None,
        timeout: float = 10.0,
        **options: Any,
    ) -> None:
        for name, value, most in (("shards", shards, 16), ("replicas", replicas, 64)):
            if value is not None:
                check_range(name, value, 1, most)
        if consistency not in LEVELS:
            msg = f"consistency must be one of {', '.join(LEVELS)}, not {consistency!r}"
            raise ConfigurationError(msg)
        if consistency != "strong" and replicas is not None and replicas > 1:
            msg = "with several replicas only a strong consistency sees every write"
            raise ConfigurationError(msg, hint="leave consistency out, or take one replica")
        fault = None if partition is None else name_fault(partition)
        if fault is not None:
            msg = f"the name of the partition {fault}"
            raise ConfigurationError(msg)
        plan = Plan(
            partition=partition, kind=index, m=m, ef_construction=ef_construction, ef_search=ef_search,
            shards=shards, replicas=replicas, consistency=consistency,
        )  # fmt: skip
        server = server_of(
            host=host, port=port, user=user, password=password, token=token, database=database, tls=tls,
            ca_file=ca_file, cert_file=cert_file, key_file=key_file, server_name=server_name, timeout=timeout,
            client=client,
        )  # fmt: skip
        super().__init__(server, plan, collection, timeout=timeout, **options)
        self.namespace = database

    def _open(self) -> None:
        if self._endpoint.has_sync:
            self._meet(self._endpoint.run(_version(self.namespace)))

    async def _aopen(self) -> None:
        if self._endpoint.has_async:
            self._meet(await self._endpoint.arun(_version(self.namespace)))
        else:
            await super()._aopen()

    def _meet(self, version: str) -> None:
        """Find what a server of this version can do.

        Raises:
            ConfigurationError: It is older than 2.3, or it is Milvus Lite.
        """
        found = _VERSION.match(version)
        numbers = (int(found[1]), int(found[2])) if found else None
        if version.startswith("milvus_lite"):
            msg = "the client is one of Milvus Lite"
            raise ConfigurationError(msg, hint="clients of Milvus Lite go with milvus-lite://")
        if numbers is not None and numbers < _OLDEST:
            msg = f"the server has version {version}"
            raise ConfigurationError(msg, hint="use Milvus 2.3.5 or newer")
        if numbers is not None and numbers >= _RANKS_WORDS:
            self._plan = self._plan._replace(words=True)
            self.capabilities = replace(self.capabilities, fulltext=True, hybrid=True, limits=WORDED_LIMITS)


def _version(database: str | None = None) -> Script[str]:
    """Return the engine's version, and see that the database is there: elsewhere a server only misses collections."""
    if database is not None:
        yield read("list_collections")
    return str((yield read("get_server_version")))


class MilvusLiteVectorStore(BaseStore):
    """Documents in Milvus Lite: the engine within this process, in a folder.

    Stores of one process on one folder share an engine and take turns; a folder belongs to one process at a time.

    Args:
        collection: Name of the collection.
        path: The folder.
        index: The index of a collection that is made: ``"flat"`` or ``"hnsw"``.
        m: HNSW: edges of a node, 4 to 64.
        ef_construction: HNSW: candidates while the index is made, 8 to 512.
        ef_search: HNSW: candidates of a search, 1 to 32,768.
        client: A `MilvusClient` on a file; it stays open when the store closes (E5).
        options: What every store takes, as in `MilvusVectorStore`.

    Raises:
        ConfigurationError: An option is out of bounds, or neither path nor client is given, or both.
    """

    backend = "milvus-lite"
    capabilities: Capabilities = LITE_CAPABILITIES

    def __init__(  # noqa: PLR0913 - the options of the backend
        self,
        *,
        collection: str = "default",
        path: str | None = None,
        index: Literal["flat", "hnsw"] = "flat",
        m: int = 16,
        ef_construction: int = 200,
        ef_search: int = 200,
        client: object = None,
        timeout: float = LITE_TIMEOUT,
        **options: Any,
    ) -> None:
        plan = Plan(
            served=False, kind=index, m=m, ef_construction=ef_construction, ef_search=ef_search, words=True
        )
        endpoint = LiteEndpoint(path=path, timeout=timeout, client=client)
        super().__init__(endpoint, plan, collection, timeout=timeout, **options)

    def _open(self) -> None:
        version = self._endpoint.run(_version())
        if not version.startswith("milvus_lite"):
            msg = "the client is one of a Milvus server"
            raise ConfigurationError(msg, hint="clients of servers go with milvus://")
