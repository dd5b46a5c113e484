"""`Neo4jChatMemoryRepository`: conversations in Neo4j."""

from __future__ import annotations

import asyncio
import math
from typing import TYPE_CHECKING, Final, TypeVar

from entrepot.errors import ConfigurationError
from entrepot.exchange import DEFAULT_TIMEOUT
from entrepot.memory.scripted import ScriptedChatMemoryRepository
from entrepot.metadata import name_fault
from entrepot.scripted import work
from entrepot_neo4j import catalog, conversations
from entrepot_neo4j.conversations import Conversation
from entrepot_neo4j.plugin import NEO4J_MEMORY_CAPABILITIES
from entrepot_neo4j.servers import server_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from entrepot.capabilities import Capabilities
    from entrepot.memory.repository import Entry
    from entrepot.messages import Role
    from entrepot.records import Page
    from entrepot_neo4j.commands import Script
    from entrepot_neo4j.conversations import Batch

T = TypeVar("T")

_LONGEST: Final = 10**14
"""Milliseconds, about 3,000 years."""
_AT_ONCE: Final = 100
"""Messages that are encoded on the event loop; more are done beside it (E3)."""


class Neo4jChatMemoryRepository(ScriptedChatMemoryRepository):
    """Conversations as nodes of Neo4j.

    An append is one transaction, and rewrites nothing (M3). The indexes are made when the memory is opened, if they are
    not there. Expiry is a property of the conversation: a write by a repository with `ttl` sets it, one without `ttl`
    keeps what is set, and each write starts it anew, by the server's clock (M8). What has expired is removed a little
    at a time by later writes, or by `remove_expired`. Thread-safe.

    Args:
        memory: The memory's name: several can lie in one database.
        host: The server, by default localhost.
        port: Its port, by default 7687.
        user: Who logs in, by default neo4j where there is a password; without either there is no login.
        password: The password; by default that of ENTREPOT_NEO4J_PASSWORD, where a user is named.
        database: The database, by default the user's home database; it must exist.
        routing: Whether the server is asked for the others of its cluster, as ``neo4j://`` does.
        tls: Whether to use TLS.
        ca_file: TLS: certificates to trust instead of the system's.
        pool_size: Most connections; for async use, in each event loop.
        ttl: Seconds after the last write at which a conversation is unknown (M8), or None.
        timeout: Seconds for each exchange with the server, waiting for other writers included (E4).
        client: A `neo4j.Driver` or `neo4j.AsyncDriver` to use; it stays open when this is closed (E5). It says where
            the server is, so nothing else may, but for the database.

    Raises:
        ConfigurationError: An option is out of bounds, or two contradict each other.
    """

    backend = "neo4j"
    capabilities: Capabilities = NEO4J_MEMORY_CAPABILITIES
    sweeps = True

    def __init__(  # noqa: PLR0913 - the options of the backend
        self,
        *,
        memory: str = "chat",
        host: str | None = None,
        port: int | None = None,
        user: str | None = None,
        password: str | None = None,
        database: str | None = None,
        routing: bool = True,
        tls: bool = False,
        ca_file: str | None = None,
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
        self.namespace = database
        self._server = server_of(
            host=host, port=port, user=user, password=password, database=database, routing=routing, tls=tls,
            ca_file=ca_file, pool_size=pool_size, timeout=timeout, client=client,
        )  # fmt: skip

    # --- connecting -------------------------------------------------------------------------------------

    def _prepare(self) -> Script[None]:
        yield from catalog.check_server()
        yield from conversations.make()

    def _open(self) -> None:
        if self._server.has_sync:
            self._server.run(self._prepare())

    async def _aopen(self) -> None:
        if self._server.has_async:
            await self._server.arun(self._prepare())
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

    def _of(self, conversation_id: str) -> Conversation:
        return Conversation(self.memory, conversation_id)

    # --- writing ----------------------------------------------------------------------------------------

    @property
    def _life(self) -> int | None:
        """Milliseconds that a conversation lives, as far as the server's calendar goes."""
        return None if self.ttl is None else math.ceil(min(max(self.ttl * 1000, 1), _LONGEST))

    def _append_script(self, conversation_id: str, entries: Sequence[Entry]) -> Script[None]:
        batch = yield from _encoded(entries)
        yield from conversations.append(self._of(conversation_id), batch, self._life)

    def _replace_script(self, conversation_id: str, entries: Sequence[Entry]) -> Script[None]:
        batch = yield from _encoded(entries)
        yield from conversations.replace(self._of(conversation_id), batch, self._life)

    def _truncate_script(self, conversation_id: str, after: str) -> Script[bool]:
        return conversations.truncate(self._of(conversation_id), after, self._life)

    def _delete_script(self, conversation_id: str) -> Script[None]:
        return conversations.delete(self._of(conversation_id))

    def _sweep_script(self, after: str | None) -> Script[tuple[int, str | None]]:  # noqa: ARG002 - oldest first
        return conversations.sweep(self.memory)

    # --- reading ----------------------------------------------------------------------------------------

    def _tail_script(self, conversation_id: str, last: int | None) -> Script[list[bytes]]:
        return conversations.tail(self._of(conversation_id), last)

    def _latest_script(self, conversation_id: str, role: Role) -> Script[bytes | None]:
        return conversations.latest(self._of(conversation_id), role)

    def _ids_script(self, limit: int, cursor: str | None) -> Script[Page[str]]:
        return conversations.ids(self.memory, limit, cursor)


def _encoded(entries: Sequence[Entry]) -> Script[Batch]:
    """Encode messages, beside the event loop if that takes more than a moment (E3)."""
    return work(conversations.batch_of, entries, at_once=len(entries) <= _AT_ONCE)
