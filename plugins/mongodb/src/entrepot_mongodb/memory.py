"""`MongoDBChatMemoryRepository`: conversations in MongoDB."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, TypeVar

from entrepot.errors import ConfigurationError
from entrepot.exchange import DEFAULT_TIMEOUT
from entrepot.memory.scripted import ScriptedChatMemoryRepository
from entrepot.metadata import name_fault
from entrepot.scripted import work
from entrepot_mongodb import catalog, conversations
from entrepot_mongodb.log import Clock, batch_of
from entrepot_mongodb.names import memory_names
from entrepot_mongodb.plugin import MEMORY_CAPABILITIES
from entrepot_mongodb.servers import server_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from entrepot.capabilities import Capabilities
    from entrepot.memory.repository import Entry
    from entrepot.messages import Role
    from entrepot.records import Page
    from entrepot_mongodb.commands import Script
    from entrepot_mongodb.log import Messages

T = TypeVar("T")

_LONGEST: Final = 10**14
"""Milliseconds, about 3,000 years."""
_AT_ONCE: Final = 100
"""Messages that are taken apart on the event loop; more are done beside it (E3)."""


class MongoDBChatMemoryRepository(ScriptedChatMemoryRepository):
    """Conversations in two collections of MongoDB, over PyMongo in sync and async code.

    Every write is one insert, whole or not at all, without a transaction, and changes nothing that is stored (M3). Expiry
    is a property of the conversation: a write by a repository with `ttl` sets it, one without `ttl` keeps what is set, and
    each write starts it anew, by the server's clock (M8). What has expired is removed a little at a time by later writes,
    or by `remove_expired`.

    Thread-safe. Async operations run on connections of the event loop they are called in.

    Args:
        memory: The memory's name; conversations of another name are another memory.
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
        ttl: Seconds after the last write at which a conversation is unknown (M8), or None.
        timeout: Seconds for each exchange with the server (E4).
        client: A `MongoClient` or `AsyncMongoClient` to use; it stays open when this is closed (E5). It says
            where the server is, so nothing else may.

    Raises:
        ConfigurationError: An option is out of bounds, or two contradict each other.
    """

    backend = "mongodb"
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
        self._names = memory_names(memory)
        self._server = server_of(
            host=host, port=port, user=user, password=password, database=database, hosts=hosts, srv=srv,
            replica_set=replica_set, direct=direct, auth_source=auth_source, auth_mechanism=auth_mechanism,
            tls=tls, ca_file=ca_file, cert_file=cert_file, check_hostname=check_hostname, pool_size=pool_size,
            timeout=timeout, client=client,
        )  # fmt: skip
        self.namespace = database
        self._clock = Clock()
        self._made = False

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
        return self._server.run(script, self.memory)

    async def _aanswer(self, script: Script[T]) -> T:
        if not self._server.has_async:
            return await super()._aanswer(script)
        return await self._server.arun(script, self.memory)

    # --- writing ----------------------------------------------------------------------------------------

    @property
    def _life(self) -> int | None:
        """Milliseconds that a conversation lives."""
        return None if self.ttl is None else math.ceil(min(max(self.ttl * 1000, 1), _LONGEST))

    def _ready_script(self) -> Script[None]:
        """Make the indexes, once."""
        if not self._made:
            yield from conversations.make(self._names)
            self._made = True

    def _batch_script(self, entries: Sequence[Entry]) -> Script[Messages]:
        yield from self._ready_script()
        return (yield from work(batch_of, entries, at_once=len(entries) <= _AT_ONCE))

    def _append_script(self, conversation_id: str, entries: Sequence[Entry]) -> Script[None]:
        batch = yield from self._batch_script(entries)
        yield from conversations.append(self._names, conversation_id, batch, self._life, self._clock)

    def _replace_script(self, conversation_id: str, entries: Sequence[Entry]) -> Script[None]:
        batch = yield from self._batch_script(entries)
        yield from conversations.replace(self._names, conversation_id, batch, self._life, self._clock)

    def _truncate_script(self, conversation_id: str, after: str) -> Script[bool]:
        return conversations.truncate(self._names, conversation_id, after, self._life, self._clock)

    def _delete_script(self, conversation_id: str) -> Script[None]:
        yield from conversations.remove(self._names, conversation_id, self._clock)

    def _sweep_script(self, after: str | None) -> Script[tuple[int, str | None]]:  # noqa: ARG002 - oldest first
        return conversations.sweep(self._names, self._clock)

    # --- reading ----------------------------------------------------------------------------------------

    def _tail_script(self, conversation_id: str, last: int | None) -> Script[list[bytes]]:
        return conversations.tail(self._names, conversation_id, last, self._clock)

    def _latest_script(self, conversation_id: str, role: Role) -> Script[bytes | None]:
        return conversations.latest(self._names, conversation_id, role, self._clock)

    def _ids_script(self, limit: int, cursor: str | None) -> Script[Page[str]]:
        return conversations.ids(self._names, limit, cursor, self._clock)
