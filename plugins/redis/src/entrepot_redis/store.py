"""`RedisVectorStore`: documents in Redis, found by its search engine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeVar

from entrepot.errors import CollectionNotFoundError, ConfigurationError
from entrepot.filters import TRUE
from entrepot.metadata import name_fault
from entrepot.records import Query
from entrepot.scripted import ScriptedVectorStore, encode
from entrepot_redis import catalog, changing, reading, searching
from entrepot_redis.catalog import MOST_COLUMNS, IndexPlan
from entrepot_redis.commands import Ask
from entrepot_redis.filters import RedisFilterConverter
from entrepot_redis.names import store_names
from entrepot_redis.plugin import REDIS_CAPABILITIES
from entrepot_redis.servers import server_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from entrepot.capabilities import Capabilities
    from entrepot.filters import Normal
    from entrepot.records import CollectionInfo, Hit, IfExists, Page, Record, StoredRecord
    from entrepot_redis.catalog import Place
    from entrepot_redis.commands import Script

T = TypeVar("T")


class RedisVectorStore(ScriptedVectorStore["Place"]):
    """Documents in Redis, searched with its own search engine.

    Metadata needs no schema: what filters ask of a document goes into index fields that are added when a
    key is first seen. Searches compare all documents that match, exactly; a collection made with
    ``index="hnsw"`` is searched approximately where a search has no filter.

    Writes are Lua scripts, whole or not at all. How durable they are is the server's business.

    Args:
        collection: Name of the collection.
        host: The server, by default localhost.
        port: Its port, by default 6379.
        user: Who logs in.
        password: The password; by default that of the environment variable ENTREPOT_REDIS_PASSWORD.
        db: The database, 0: Redis has indexes in no other.
        namespace: What the keys of all collections begin with.
        tls: Whether to use TLS.
        ca_file: TLS: certificates to trust instead of the system's.
        cert_file: TLS: the client's own certificate.
        key_file: TLS: its key.
        check_hostname: TLS: whether the certificate must be the host's.
        pool_size: Most connections; for async use, in each event loop.
        protocol: The version of the protocol, 3 or 2.
        index: The index of a collection that is made: ``"flat"`` or ``"hnsw"``.
        m: HNSW: edges of a node, 2 to 512.
        ef_construction: HNSW: candidates while the index is made, 1 to 4,096.
        ef_search: HNSW: candidates of a search, 1 to 4,096.
        max_columns: Most numeric fields for ranges of a collection that is made, 0 to 1,000.
        client: A `redis.Redis` or `redis.asyncio.Redis` to use; it stays open when the store closes (E5). It
            says where the server is, so nothing else may.
        options: What every store takes: embedding, metric, dimension, create, timeout, allow_other_model,
            batching, max_completion_rows (`VectorStoreHooks`).

    Raises:
        ConfigurationError: An option is out of bounds, or two contradict each other.
    """

    backend = "redis"
    capabilities: Capabilities = REDIS_CAPABILITIES

    def __init__(  # noqa: PLR0913 - the options of the backend
        self,
        *,
        collection: str = "default",
        host: str | None = None,
        port: int | None = None,
        user: str | None = None,
        password: str | None = None,
        db: int = 0,
        namespace: str = "entrepot",
        tls: bool = False,
        ca_file: str | None = None,
        cert_file: str | None = None,
        key_file: str | None = None,
        check_hostname: bool = True,
        pool_size: int = 8,
        protocol: Literal[2, 3] = 3,
        index: Literal["flat", "hnsw"] = "flat",
        m: int = 16,
        ef_construction: int = 200,
        ef_search: int = 200,
        max_columns: int = MOST_COLUMNS,
        client: object = None,
        **options: Any,
    ) -> None:
        super().__init__(collection=collection, **options)
        fault = name_fault(namespace)
        if fault is not None:
            msg = f"the name of the namespace {fault}"
            raise ConfigurationError(msg)
        _check_range("m", m, 2, 512)
        _check_range("ef_construction", ef_construction, 1, 4096)
        _check_range("ef_search", ef_search, 1, 4096)
        _check_range("max_columns", max_columns, 0, MOST_COLUMNS)
        if index not in {"flat", "hnsw"}:
            msg = f"index must be 'flat' or 'hnsw', not {index!r}"
            raise ConfigurationError(msg)
        self.namespace = namespace
        self._plan = IndexPlan(index, m, ef_construction, max_columns)
        self._ef_search = ef_search
        self._names = store_names(namespace, collection)
        self._server = server_of(
            host=host, port=port, user=user, password=password, db=db, tls=tls, ca_file=ca_file,
            cert_file=cert_file, key_file=key_file, check_hostname=check_hostname, pool_size=pool_size,
            protocol=protocol, timeout=self.timeout, client=client,
        )  # fmt: skip
        if self._server.db != 0:
            msg = f"a vector store needs database 0, where Redis has its indexes, not {self._server.db}"
            raise ConfigurationError(msg, hint="tell collections apart by namespace=")

    # --- connecting -------------------------------------------------------------------------------------

    def _open(self) -> None:
        if self._server.has_sync:
            self._server.run(catalog.check_server())

    async def _aopen(self) -> None:
        if self._server.has_async:
            await self._server.arun(catalog.check_server())
        else:
            await super()._aopen()

    def _close(self) -> None:
        self._server.close()

    async def _aclose(self) -> None:
        await self._server.aclose()

    @property
    def native_client(self) -> object:
        """The client of redis-py: the one that was given, or a `redis.Redis`."""
        return self._server.native

    def _answer(self, script: Script[T]) -> T:
        try:
            return self._server.run(script, self.collection)
        except CollectionNotFoundError:
            if self._place is not None:  # an index that is gone may have been made anew
                self._server.run(catalog.refuse_stale(self._names, self._place), self.collection)
            raise

    async def _aanswer(self, script: Script[T]) -> T:
        if not self._server.has_async:
            return await super()._aanswer(script)
        try:
            return await self._server.arun(script, self.collection)
        except CollectionNotFoundError:
            if self._place is not None:
                await self._server.arun(catalog.refuse_stale(self._names, self._place), self.collection)
            raise

    # --- collections ------------------------------------------------------------------------------------

    def _describe_script(self) -> Script[Place | None]:
        return catalog.describe(self._names, self.collection)

    def _create_script(self, info: CollectionInfo) -> Script[Place]:
        return catalog.create(self._names, info, self._plan)

    def _drop_script(self) -> Script[None]:
        return catalog.drop(self._names, self.collection)

    def _list_collections_script(self) -> Script[list[str]]:
        return catalog.list_collections(self._names)

    def _details_script(self) -> Script[dict[str, Any]]:
        return catalog.details(self._names, self._here())

    # --- reading ----------------------------------------------------------------------------------------

    def _converter(self) -> RedisFilterConverter:
        return RedisFilterConverter(None if self._place is None else self._place.columns)

    def _fetch_script(self, ids: Sequence[str], include: Sequence[str]) -> Script[list[StoredRecord]]:
        return reading.fetch(self._names, self._here(), ids, include)

    def _search_script(self, query: Query) -> Script[list[Hit]]:
        return searching.search(self._names, self._here(), query, self._ef_search)

    def _search_batch_script(self, queries: Sequence[Query]) -> Script[list[list[Hit]]]:
        return _together([self._search_script(query) for query in queries])

    def _scan_script(self, query: Query, token: str | None, size: int) -> Script[Page[StoredRecord]]:
        return reading.scan(self._names, self._here(), query, token, size)

    def _count_script(self, query: Query) -> Script[int]:
        return reading.count(self._names, self._here(), query)

    # --- changing ---------------------------------------------------------------------------------------

    def _write_script(
        self, records: Sequence[Record], if_exists: IfExists, inside: Normal = TRUE
    ) -> Script[object]:
        batch = yield from encode(changing.batch_of, records, self._here())
        yield from changing.write(self._names, batch, if_exists, inside)
        return None

    def _update_script(
        self,
        ids: Sequence[str],
        changes: Mapping[str, Any],
        unset: Sequence[str],
        inside: Normal = TRUE,
    ) -> Script[list[str]]:
        limits = self.capabilities.limits
        return changing.update(self._names, self._here(), ids, changes, unset, limits, inside)

    def _delete_script(self, target: Sequence[str] | Query, inside: Normal = TRUE) -> Script[None]:
        if isinstance(target, Query):
            return changing.delete_matching(self._names, self._here(), target)
        return changing.delete_ids(self._names, self._here(), target, inside)

    def _delete_unchanged_script(self, records: Sequence[StoredRecord]) -> Script[None]:
        return changing.delete_unchanged(self._names, self._here(), records)


def _together(scripts: Sequence[Script[T]]) -> Script[list[T]]:
    """Carry out scripts side by side: what they ask at the same time goes to the server together."""
    answers: dict[int, T] = {}
    asked: dict[int, Ask] = {}

    def advance(number: int, replies: list[Any] | None) -> None:
        script = scripts[number]
        try:
            asked[number] = next(script) if replies is None else script.send(replies)
        except StopIteration as end:
            answers[number] = end.value

    for number in range(len(scripts)):
        advance(number, None)
    while asked:
        now, asked = asked, {}
        replies = yield Ask([command for each in now.values() for command in each.commands])
        start = 0
        for number, each in now.items():
            end = start + len(each.commands)
            advance(number, replies[start:end])
            start = end
    return [answers[number] for number in range(len(scripts))]


def _check_range(name: str, value: object, least: int, most: int) -> None:
    if type(value) is not int or not least <= value <= most:
        msg = f"{name} must be an int from {least} to {most}, not {value!r}"
        raise ConfigurationError(msg)
