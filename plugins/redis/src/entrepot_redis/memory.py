"""`RedisChatMemoryRepository`: conversations in Redis."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Final, Literal, TypeVar

import msgspec

from entrepot.errors import CollectionNotFoundError, ConfigurationError, CorruptDataError
from entrepot.exchange import DEFAULT_TIMEOUT
from entrepot.memory.scripted import ScriptedChatMemoryRepository
from entrepot.metadata import name_fault
from entrepot.scripted import work
from entrepot_redis import catalog, conversations, questions
from entrepot_redis.names import memory_names
from entrepot_redis.plugin import MEMORY_CAPABILITIES
from entrepot_redis.servers import server_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from entrepot.capabilities import Capabilities
    from entrepot.memory.questions import Question
    from entrepot.memory.repository import Entry
    from entrepot.messages import Role
    from entrepot.records import Page
    from entrepot_redis.commands import Script

T = TypeVar("T")

_LONGEST: Final = 10**14
"""Milliseconds, about 3,000 years: what is much longer a script cannot add to the time of day."""
_AT_ONCE: Final = 100
"""Messages that are encoded on the event loop; more are done beside it (E3)."""


class RedisChatMemoryRepository(ScriptedChatMemoryRepository):
    """Conversations in Redis.

    Thread-safe; every write is one Lua script, whole or not at all. Expiry is a property of the conversation:
    a write by a repository with `ttl` sets it, one without `ttl` keeps what is set, and each write starts it
    anew (M8). The server's clock counts. How durable a write is, is the server's business.

    Args:
        memory: What the keys of the memory begin with; conversations of another name are another memory.
        host: The server, by default localhost.
        port: Its port, by default 6379.
        user: Who logs in.
        password: The password; by default that of the environment variable ENTREPOT_REDIS_PASSWORD.
        db: The database.
        tls: Whether to use TLS.
        ca_file: TLS: certificates to trust instead of the system's.
        cert_file: TLS: the client's own certificate.
        key_file: TLS: its key.
        check_hostname: TLS: whether the certificate must be the host's.
        pool_size: Most connections; for async use, in each event loop.
        protocol: The version of the protocol, 3 or 2.
        questions: Whether messages are indexed, so that `search` finds them (M10). None: where the server has a
            search engine and the database is 0; True insists on it.
        ttl: Seconds after the last write at which a conversation is unknown (M8), or None.
        timeout: Seconds for each exchange with the server (E4).
        client: A `redis.Redis` or `redis.asyncio.Redis` to use; it stays open when this is closed (E5). It
            says where the server is, so nothing else may.

    Raises:
        ConfigurationError: An option is out of bounds, or two contradict each other.
    """

    backend = "redis"
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
        db: int = 0,
        tls: bool = False,
        ca_file: str | None = None,
        cert_file: str | None = None,
        key_file: str | None = None,
        check_hostname: bool = True,
        pool_size: int = 8,
        protocol: Literal[2, 3] = 3,
        questions: bool | None = None,
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
            host=host, port=port, user=user, password=password, db=db, tls=tls, ca_file=ca_file,
            cert_file=cert_file, key_file=key_file, check_hostname=check_hostname, pool_size=pool_size,
            protocol=protocol, timeout=timeout, client=client,
        )  # fmt: skip
        self.namespace = str(self._server.db)
        self._wanted = questions

    @property
    def native_client(self) -> object:
        """The client of redis-py: the one that was given, or a `redis.Redis`."""
        return self._server.native

    # --- connecting -------------------------------------------------------------------------------------

    def _open(self) -> None:
        if self._server.has_sync:
            self._settle(self._server.run(catalog.has_search()))

    async def _aopen(self) -> None:
        if self._server.has_async:
            self._settle(await self._server.arun(catalog.has_search()))
        else:
            await super()._aopen()

    def _settle(self, able: bool) -> None:  # noqa: FBT001 - the answer of the server
        """Take questions where they are wanted and the server can answer them."""
        able = able and self._server.db == 0  # there are indexes in no other database
        if self._wanted and not able:
            msg = "the server has no search engine, or not in this database, and questions=True asks for one"
            raise ConfigurationError(msg, hint="use Redis 8 and database 0, or leave questions out")
        answers = able and self._wanted is not False
        if answers is not self.capabilities.memory_search:
            self.capabilities = msgspec.structs.replace(self.capabilities, memory_search=answers)

    def _close(self) -> None:
        self._server.close()

    async def _aclose(self) -> None:
        await self._server.aclose()

    def _answer(self, script: Script[T]) -> T:
        return self._server.run(script, self.memory)

    async def _aanswer(self, script: Script[T]) -> T:
        if not self._server.has_async:
            return await super()._aanswer(script)
        return await self._server.arun(script, self.memory)

    # --- writing ----------------------------------------------------------------------------------------

    @property
    def _life(self) -> int | None:
        """Milliseconds that a conversation lives, as far as the server's calendar goes."""
        return None if self.ttl is None else math.ceil(min(max(self.ttl * 1000, 1), _LONGEST))

    def _write_script(self, conversation_id: str, entries: Sequence[Entry], *, replace: bool) -> Script[None]:
        stored = partial(
            conversations.stored,
            self._names,
            conversation_id,
            entries,
            life=self._life,
            replace=replace,
            questions=self.capabilities.memory_search,
        )
        command = yield from work(stored, at_once=len(entries) <= _AT_ONCE)
        yield from conversations.write(command)

    def _append_script(self, conversation_id: str, entries: Sequence[Entry]) -> Script[None]:
        return self._write_script(conversation_id, entries, replace=False)

    def _replace_script(self, conversation_id: str, entries: Sequence[Entry]) -> Script[None]:
        return self._write_script(conversation_id, entries, replace=True)

    def _truncate_script(self, conversation_id: str, after: str) -> Script[bool]:
        return conversations.truncate(self._names, conversation_id, after, self._life)

    def _delete_script(self, conversation_id: str) -> Script[None]:
        return conversations.delete(self._names, conversation_id)

    def _sweep_script(self, after: str | None) -> Script[tuple[int, str | None]]:  # noqa: ARG002 - oldest first
        return conversations.sweep(self._names)

    # --- reading ----------------------------------------------------------------------------------------

    def _tail_script(self, conversation_id: str, last: int | None) -> Script[list[bytes]]:
        return conversations.tail(self._names, conversation_id, last)

    def _latest_script(self, conversation_id: str, role: Role) -> Script[bytes | None]:
        return conversations.latest(self._names, conversation_id, role)

    def _ids_script(self, limit: int, cursor: str | None) -> Script[Page[str]]:
        return conversations.ids(self._names, limit, cursor)

    def _find_script(self, question: Question) -> Script[list[tuple[str, bytes]]]:
        return questions.find(self._names, question)

    def _find(self, question: Question) -> list[tuple[str, bytes]]:
        try:
            return super()._find(question)
        except CollectionNotFoundError as error:
            raise self._no_index() from error.__cause__

    async def _afind(self, question: Question) -> list[tuple[str, bytes]]:
        try:
            return await super()._afind(question)
        except CollectionNotFoundError as error:
            raise self._no_index() from error.__cause__

    def _no_index(self) -> CorruptDataError:
        msg = f"the index over the messages of the memory {self.memory!r} is gone"
        return CorruptDataError(
            msg,
            hint=f"other software dropped {self._names.said!r}; conversations are there, questions have no answer",
        )
