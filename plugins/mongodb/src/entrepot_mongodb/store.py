"""`MongoDBVectorStore`: documents in a collection of MongoDB."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from entrepot.errors import ConfigurationError
from entrepot.filters import TRUE
from entrepot.records import Query
from entrepot.scripted import ScriptedVectorStore
from entrepot_mongodb import catalog, changing, indexes, reading, searching
from entrepot_mongodb.catalog import Place, Plan
from entrepot_mongodb.changing import Written
from entrepot_mongodb.filters import MongoDBFilterConverter
from entrepot_mongodb.plugin import CAPABILITIES
from entrepot_mongodb.servers import check_range, server_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from entrepot.capabilities import Capabilities
    from entrepot.filters import Normal
    from entrepot.records import CollectionInfo, Hit, IfExists, Page, Record, StoredRecord
    from entrepot_mongodb.commands import Script

T = TypeVar("T")


class MongoDBVectorStore(ScriptedVectorStore[Place]):
    """Documents in a collection of MongoDB, over PyMongo in sync and async code.

    Metadata needs no schema: one index serves every filter, whatever keys documents bring. Searches are exact, and read
    the vectors of all that match; where the server has a vector search beside it, new collections get an index for
    ``$vectorSearch``, and searches are approximate unless they ask for ``exact=True``. Writes are confirmed by the
    majority of a replica set, reads are asked of its primary.

    Each document is written in one step. The documents of one `add` are not: readers may see a part of them first.

    Args:
        collection: Name of the collection.
        host: The server, by default localhost.
        port: Its port, by default 27017.
        user: Who logs in.
        password: The password; by default that of ENTREPOT_MONGODB_PASSWORD, where a user is named.
        database: The database.
        hosts: Other members of the replica set, or other routers, with commas between them.
        srv: Whether the host names a DNS record that tells the servers.
        replica_set: The name that the replica set must have.
        direct: Whether to speak with this server alone; None leaves it to the driver.
        auth_source: The database that knows the user.
        auth_mechanism: How to log in.
        tls: Whether to use TLS.
        ca_file: TLS: certificates to trust instead of the system's.
        cert_file: TLS: the client's own certificate and its key, in one file.
        check_hostname: TLS: whether the certificate must be the host's.
        pool_size: Most connections to each server; for async use, in each event loop.
        index: The index of a collection that is made: ``"hnsw"`` for ``$vectorSearch``, ``"flat"`` for none, ``"auto"``
            for the first where the server has that search.
        ef_search: Least candidates of an approximate search, 1 to 10,000.
        binary: How vectors are written: ``"vector"``, ``"plain"`` or ``"auto"``; all are read.
        client: A `MongoClient` or `AsyncMongoClient` to use; it stays open when the store closes (E5). It says
            where the server is, so nothing else may.
        options: What every store takes: embedding, metric, dimension, create, timeout, allow_other_model,
            batching, max_completion_rows (`VectorStoreHooks`).

    Raises:
        ConfigurationError: An option is out of bounds, or two contradict each other.
    """

    backend = "mongodb"
    capabilities: Capabilities = CAPABILITIES

    def __init__(  # noqa: PLR0913 - the options of the backend
        self,
        *,
        collection: str = "default",
        host: str | None = None,
        port: int | None = None,
        user: str | None = None,
        password: str | None = None,
        database: str = "entrepot",
        hosts: str | None = None,
        srv: bool = False,
        replica_set: str | None = None,
        direct: bool | None = None,
        auth_source: str | None = None,
        auth_mechanism: str | None = None,
        tls: bool | None = None,
        ca_file: str | None = None,
        cert_file: str | None = None,
        check_hostname: bool = True,
        pool_size: int = 8,
        index: Literal["auto", "flat", "hnsw"] = "auto",
        ef_search: int = 200,
        binary: Literal["auto", "plain", "vector"] = "auto",
        client: object = None,
        **options: Any,
    ) -> None:
        super().__init__(collection=collection, **options)
        check_range("ef_search", ef_search, 1, indexes.MOST)
        for name, value, known in (
            ("index", index, ("auto", "flat", "hnsw")),
            ("binary", binary, ("auto", "plain", "vector")),
        ):
            if value not in known:
                msg = f"{name} must be one of {', '.join(known)}, not {value!r}"
                raise ConfigurationError(msg)
        self._plan = Plan(index, binary, ef_search, self.timeout)
        self._server = server_of(
            host=host, port=port, user=user, password=password, database=database, hosts=hosts, srv=srv,
            replica_set=replica_set, direct=direct, auth_source=auth_source, auth_mechanism=auth_mechanism,
            tls=tls, ca_file=ca_file, cert_file=cert_file, check_hostname=check_hostname, pool_size=pool_size,
            timeout=self.timeout, client=client,
        )  # fmt: skip
        self.namespace = database

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
        """The client of PyMongo: the one that was given, or a `MongoClient`."""
        return self._server.native

    def _answer(self, script: Script[T]) -> T:
        return self._server.run(script, self.collection)

    async def _aanswer(self, script: Script[T]) -> T:
        if not self._server.has_async:
            return await asyncio.to_thread(self._answer, script)
        return await self._server.arun(script, self.collection)

    # --- collections ------------------------------------------------------------------------------------

    def _describe_script(self) -> Script[Place | None]:
        return catalog.describe(self.collection, self._plan)

    def _create_script(self, info: CollectionInfo) -> Script[Place]:
        return catalog.create(info, self._plan)

    def _drop_script(self) -> Script[None]:
        return catalog.drop(self.collection, self._plan)

    def _list_collections_script(self) -> Script[list[str]]:
        return catalog.list_collections()

    def _details_script(self) -> Script[dict[str, Any]]:
        return catalog.details(self._here())

    # --- reading ----------------------------------------------------------------------------------------

    def _converter(self) -> MongoDBFilterConverter:
        return MongoDBFilterConverter()

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
        limits = self.capabilities.limits
        return changing.update(self._here(), ids, changes, unset, limits, self.timeout, inside)

    def _delete_script(self, target: Sequence[str] | Query, inside: Normal = TRUE) -> Script[None]:
        if isinstance(target, Query):
            return changing.delete_matching(self._here(), target)
        return changing.delete_ids(self._here(), target, inside)

    def _delete_unchanged_script(self, records: Sequence[StoredRecord]) -> Script[None]:
        return changing.delete_unchanged(self._here(), records)

    def _visible_script(self, marker: object) -> Script[None]:
        place = self._here()
        version = marker.version if isinstance(marker, Written) else ""
        return indexes.visible(place.name, place.info, version, self.timeout)
