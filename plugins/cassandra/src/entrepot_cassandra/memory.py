"""`CassandraChatMemoryRepository`: conversations in Apache Cassandra."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, TypeVar

from entrepot.errors import BackendError, ConfigurationError
from entrepot.exchange import DEFAULT_TIMEOUT
from entrepot.memory.scripted import ScriptedChatMemoryRepository
from entrepot.metadata import name_fault
from entrepot_cassandra import conversations
from entrepot_cassandra.faults import MissingError
from entrepot_cassandra.plugin import MEMORY_CAPABILITIES
from entrepot_cassandra.servers import server_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from entrepot.capabilities import Capabilities
    from entrepot.memory.repository import Entry
    from entrepot.messages import Role
    from entrepot.records import Page
    from entrepot_cassandra.commands import Script

T = TypeVar("T")

_LONGEST: Final = 10**14
"""Milliseconds, about 3,000 years."""


class CassandraChatMemoryRepository(ScriptedChatMemoryRepository):
    """Conversations in a table of Apache Cassandra, each a partition.

    Every write is one lightweight transaction, whole or not at all, and an append rewrites nothing (M3). The table is made
    when the memory is opened, if it is not there. Expiry is a property of the conversation: a write by a repository with
    `ttl` sets it, one without `ttl` keeps what is set, and each write starts it anew, by the servers' clocks (M8). What has
    expired is removed a little at a time by later appends, or by `remove_expired`.

    Thread-safe; async operations use the same session.

    Args:
        memory: The memory's name: several can lie in one keyspace.
        host: A node, by default localhost; the driver finds the others.
        port: Its port, by default 9042.
        user: Who logs in.
        password: The password; by default that of ENTREPOT_CASSANDRA_PASSWORD, where a user is named.
        keyspace: The keyspace.
        datacenter: The data centre whose nodes are asked; by default that of the first node.
        consistency: ``"quorum"`` counts the replicas of all data centres, ``"local_quorum"`` those of one: then all
            writers of a conversation must be in that one.
        create_keyspace: Whether to make a missing keyspace.
        replication: Replicas of each row in a keyspace that is made.
        tls: Whether to use TLS.
        ca_file: TLS: certificates to trust instead of the system's.
        cert_file: TLS: the client's own certificate.
        key_file: TLS: its key.
        check_hostname: TLS: whether the certificate must be the host's.
        ttl: Seconds after the last write at which a conversation is unknown (M8), or None.
        timeout: Seconds for each exchange with the server (E4).
        client: A `cassandra.cluster.Session` to use; it stays open when this is closed (E5). It says where the server
            is, so nothing else may.

    Raises:
        ConfigurationError: An option is out of bounds, or two contradict each other.
    """

    backend = "cassandra"
    capabilities: Capabilities = MEMORY_CAPABILITIES
    sweeps = True

    def __init__(  # noqa: PLR0913 - the options of the backend
        self,
        *,
        memory: str = "chat",
        host: str | None = None,
        port: int | None = None,
        user: str | None = None,
        password: str | None = None,
        keyspace: str | None = None,
        datacenter: str | None = None,
        consistency: str = "quorum",
        create_keyspace: bool = False,
        replication: int = 1,
        tls: bool = False,
        ca_file: str | None = None,
        cert_file: str | None = None,
        key_file: str | None = None,
        check_hostname: bool = True,
        ttl: float | None = None,
        timeout: float = DEFAULT_TIMEOUT,
        client: object = None,
    ) -> None:
        super().__init__(ttl=ttl, timeout=timeout)
        fault = name_fault(memory)
        if fault is not None:
            msg = f"the name of the memory {fault}"
            raise ConfigurationError(msg)
        self.memory = memory
        self._server = server_of(
            host=host, port=port, user=user, password=password, keyspace=keyspace, datacenter=datacenter,
            consistency=consistency, create_keyspace=create_keyspace, replication=replication, concurrency=1, tls=tls,
            ca_file=ca_file, cert_file=cert_file, key_file=key_file, check_hostname=check_hostname,
            timeout=timeout, client=client,
        )  # fmt: skip
        self.namespace = self._server.keyspace
        self._table = conversations.table_of(self._server.keyspace, memory)
        self._life = None if ttl is None else math.ceil(min(max(ttl * 1000, 1), _LONGEST))

    # --- connecting -------------------------------------------------------------------------------------

    def _open(self) -> None:
        self._server.connect()
        self._server.run(conversations.make(self._table))

    async def _aopen(self) -> None:
        await self._server.aconnect()
        await self._server.arun(conversations.make(self._table))

    def _close(self) -> None:
        self._server.close()

    @property
    def native_client(self) -> object:
        """The driver's session: the one that was given, or this memory's."""
        return self._server.native

    def _answer(self, script: Script[T]) -> T:
        try:
            return self._server.run(script)
        except MissingError as error:
            raise self._gone() from error.__cause__

    async def _aanswer(self, script: Script[T]) -> T:
        try:
            return await self._server.arun(script)
        except MissingError as error:
            raise self._gone() from error.__cause__

    def _gone(self) -> BackendError:
        msg = f"the table of the memory {self.memory!r} is not there any more"
        return BackendError(msg, hint="restore it; another program dropped it, or its keyspace")

    # --- writing ----------------------------------------------------------------------------------------

    def _append_script(self, conversation_id: str, entries: Sequence[Entry]) -> Script[None]:
        return conversations.append(self._table, conversation_id, entries, self._life)

    def _replace_script(self, conversation_id: str, entries: Sequence[Entry]) -> Script[None]:
        return conversations.replace(self._table, conversation_id, entries, self._life)

    def _truncate_script(self, conversation_id: str, after: str) -> Script[bool]:
        return conversations.truncate(self._table, conversation_id, after, self._life)

    def _delete_script(self, conversation_id: str) -> Script[None]:
        yield from conversations.delete(self._table, conversation_id)

    def _sweep_script(self, after: str | None) -> Script[tuple[int, str | None]]:
        return conversations.sweep(self._table, after)

    # --- reading ----------------------------------------------------------------------------------------

    def _tail_script(self, conversation_id: str, last: int | None) -> Script[list[bytes]]:
        return conversations.tail(self._table, conversation_id, last)

    def _latest_script(self, conversation_id: str, role: Role) -> Script[bytes | None]:
        return conversations.latest(self._table, conversation_id, role)

    def _ids_script(self, limit: int, cursor: str | None) -> Script[Page[str]]:
        return conversations.ids(self._table, limit, cursor)
