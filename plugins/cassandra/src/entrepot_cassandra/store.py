"""`CassandraVectorStore`: documents in a table of Apache Cassandra."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from entrepot.filters import TRUE
from entrepot.records import Query
from entrepot.scripted import ScriptedVectorStore
from entrepot_cassandra import catalog, changing, reading, searching
from entrepot_cassandra.catalog import Place
from entrepot_cassandra.faults import MissingError
from entrepot_cassandra.filters import CassandraFilterConverter
from entrepot_cassandra.plugin import CAPABILITIES
from entrepot_cassandra.servers import check_range, server_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from entrepot.capabilities import Capabilities
    from entrepot.errors import EntrepotError
    from entrepot.filters import Normal
    from entrepot.records import CollectionInfo, Hit, IfExists, Page, Record, StoredRecord
    from entrepot_cassandra.commands import Script

T = TypeVar("T")

MOST_SLOTS = 32


class CassandraVectorStore(ScriptedVectorStore[Place]):
    """Documents in a table of Apache Cassandra 5, over the driver's session, in sync and async code alike.

    Metadata needs no schema: a table has the same columns whatever keys documents bring. Searches ask the engine's
    approximate index; ``exact=True`` compares all that match. Every write is a lightweight transaction.

    Args:
        collection: Name of the collection.
        host: A node, by default localhost; the driver finds the others.
        port: Its port, by default 9042.
        user: Who logs in.
        password: The password; by default that of ENTREPOT_CASSANDRA_PASSWORD, where a user is named.
        keyspace: The keyspace.
        datacenter: The data centre whose nodes are asked; by default that of the first node.
        consistency: ``"quorum"`` counts the replicas of all data centres, ``"local_quorum"`` those of one: then all
            writers of a collection must be in that one.
        create_keyspace: Whether to make a missing keyspace.
        replication: Replicas of each row in a keyspace that is made.
        concurrency: Statements under way at a time, for one call, 1 to 1,000.
        slots: Keys of a collection that is made whose ranges the engine answers, as they first come, 0 to 32.
        tls: Whether to use TLS.
        ca_file: TLS: certificates to trust instead of the system's.
        cert_file: TLS: the client's own certificate.
        key_file: TLS: its key.
        check_hostname: TLS: whether the certificate must be the host's.
        client: A `cassandra.cluster.Session` to use; it stays open when the store closes (E5). It says where the
            server is, so nothing else may.
        options: What every store takes: embedding, metric, dimension, create, timeout, allow_other_model,
            batching, max_completion_rows (`VectorStoreHooks`).

    Raises:
        ConfigurationError: An option is out of bounds, or two contradict each other.
    """

    backend = "cassandra"
    capabilities: Capabilities = CAPABILITIES

    def __init__(  # noqa: PLR0913 - the options of the backend
        self,
        *,
        collection: str = "default",
        host: str | None = None,
        port: int | None = None,
        user: str | None = None,
        password: str | None = None,
        keyspace: str | None = None,
        datacenter: str | None = None,
        consistency: str = "quorum",
        create_keyspace: bool = False,
        replication: int = 1,
        concurrency: int = 4,
        slots: int = 8,
        tls: bool = False,
        ca_file: str | None = None,
        cert_file: str | None = None,
        key_file: str | None = None,
        check_hostname: bool = True,
        client: object = None,
        **options: Any,
    ) -> None:
        super().__init__(collection=collection, **options)
        check_range("slots", slots, 0, MOST_SLOTS)
        self._slots = slots
        self._server = server_of(
            host=host, port=port, user=user, password=password, keyspace=keyspace, datacenter=datacenter,
            consistency=consistency, create_keyspace=create_keyspace, replication=replication,
            concurrency=concurrency, tls=tls, ca_file=ca_file, cert_file=cert_file, key_file=key_file,
            check_hostname=check_hostname, timeout=self.timeout, client=client,
        )  # fmt: skip
        self.namespace = self._server.keyspace

    # --- connecting -------------------------------------------------------------------------------------

    def _open(self) -> None:
        self._server.connect()

    async def _aopen(self) -> None:
        await self._server.aconnect()

    def _close(self) -> None:
        self._server.close()

    @property
    def native_client(self) -> object:
        """The driver's session: the one that was given, or this store's."""
        return self._server.native

    def _answer(self, script: Script[T]) -> T:
        try:
            return self._server.run(script)
        except MissingError as error:
            raise self._without(error) from error.__cause__

    async def _aanswer(self, script: Script[T]) -> T:
        try:
            return await self._server.arun(script)
        except MissingError as error:
            raise self._without(error) from error.__cause__

    def _without(self, error: MissingError) -> EntrepotError:
        """Return the error for a statement on a table that is not there."""
        return error if self._place is None else reading.within(self._place, error)

    # --- collections ------------------------------------------------------------------------------------

    def _describe_script(self) -> Script[Place | None]:
        return catalog.describe(self._server.keyspace, self.collection)

    def _create_script(self, info: CollectionInfo) -> Script[Place]:
        return catalog.create(self._server.keyspace, info, self._slots)

    def _drop_script(self) -> Script[None]:
        return catalog.drop(self._server.keyspace, self.collection)

    def _list_collections_script(self) -> Script[list[str]]:
        return catalog.list_collections(self._server.keyspace)

    def _details_script(self) -> Script[dict[str, Any]]:
        return catalog.details(self._here())

    # --- reading ----------------------------------------------------------------------------------------

    def _converter(self) -> CassandraFilterConverter:
        return CassandraFilterConverter(None if self._place is None else dict(self._place.keys))

    def _fetch_script(self, ids: Sequence[str], include: Sequence[str]) -> Script[list[StoredRecord]]:
        return reading.fetch(self._here(), ids, include)

    def _search_script(self, query: Query) -> Script[list[Hit]]:
        return searching.search(self._here(), query)

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
