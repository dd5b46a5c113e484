"""`PostgresChatMemoryRepository`: conversations in PostgreSQL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

from entrepot.errors import BackendError, CollectionNotFoundError, ConfigurationError
from entrepot.exchange import DEFAULT_TIMEOUT
from entrepot.memory.cursors import name_behind, page_of
from entrepot.memory.scripted import ScriptedChatMemoryRepository
from entrepot.metadata import name_fault
from entrepot.scripted import work
from entrepot_postgres import conversations, memory_tables, questions
from entrepot_postgres.config import check_pool_size, check_schema, connection_target
from entrepot_postgres.conversations import SWEPT, statements_of
from entrepot_postgres.names import memory_names_of
from entrepot_postgres.plugin import POSTGRES_MEMORY_CAPABILITIES
from entrepot_postgres.scripts import as_a
from entrepot_postgres.sessions import Server

if TYPE_CHECKING:
    from collections.abc import Sequence

    from entrepot.capabilities import Capabilities
    from entrepot.memory.questions import Question
    from entrepot.memory.repository import Entry
    from entrepot.messages import Role
    from entrepot.records import Page
    from entrepot_postgres.conversations import Batch
    from entrepot_postgres.scripts import Script

T = TypeVar("T")

_LONGEST: Final = 1e11
"""Seconds, about 3,000 years: PostgreSQL's calendar ends."""
_SHORTEST: Final = 1e-6

_AT_ONCE: Final = 500
"""Messages that are encoded on the event loop: about half a millisecond."""


class PostgresChatMemoryRepository(ScriptedChatMemoryRepository):
    """Conversations in two tables of PostgreSQL, over psycopg 3; pgvector is not needed.

    An append is one statement, and rewrites nothing (M3). The tables are made when the memory is opened, if
    they are not there. Expiry is a property of the conversation: a write by a repository with `ttl` sets
    it, one without `ttl` keeps what is set, and each write starts it anew, by the server's clock (M8). What
    has expired is removed a little at a time by later appends, or by `remove_expired`.

    Thread-safe. Async operations run on connections of the event loop they are called in.

    Args:
        name: The memory's name: several can lie in one schema.
        host: The server, or the folder of its socket; what is left out is what libpq makes of it.
        port: Its port.
        user: Who logs in.
        password: The password; by default that of the environment variable PGPASSWORD.
        database: The database.
        schema: The schema of the tables.
        sslmode: libpq's way of using TLS.
        pool_size: Most connections; for async use, in each event loop.
        ttl: Seconds after the last write at which a conversation is unknown (M8), or None.
        timeout: Seconds for each exchange with the server, waiting for other writers included (E4).
        client: A `psycopg_pool.ConnectionPool` or `AsyncConnectionPool` to use; it stays open when this
            closes (E5). Its transactions must be READ COMMITTED, PostgreSQL's default.

    Raises:
        ConfigurationError: An option is out of bounds, or two contradict each other.
    """

    backend = "postgresql"
    capabilities: Capabilities = POSTGRES_MEMORY_CAPABILITIES
    sweeps = True

    def __init__(  # noqa: PLR0913 - the options of the backend
        self,
        *,
        name: str = "chat",
        host: str | None = None,
        port: int | None = None,
        user: str | None = None,
        password: str | None = None,
        database: str | None = None,
        schema: str = "public",
        sslmode: str | None = None,
        pool_size: int = 8,
        ttl: float | None = None,
        timeout: float = DEFAULT_TIMEOUT,
        client: object = None,
    ) -> None:
        super().__init__(ttl=ttl, timeout=timeout)
        fault = name_fault(name)
        if fault is not None:
            msg = f"the name of the memory {fault}"
            raise ConfigurationError(msg)
        check_schema(schema)
        check_pool_size(pool_size)
        target = connection_target(client, host, port, user, password, database, sslmode)
        self.name = name
        self.namespace = database
        self._names = memory_names_of(schema, name)
        self._statements = statements_of(self._names)
        self._server = Server(target, pool_size=pool_size, timeout=self.timeout, client=client)
        self._seconds = None if ttl is None else min(max(float(ttl), _SHORTEST), _LONGEST)

    # --- connecting -------------------------------------------------------------------------------------

    def _open(self) -> None:
        if not self._server.check(lambda: memory_tables.is_ready(self._names, self.name)):
            self._answer(as_a("transaction", memory_tables.make(self._names, self.name)))

    async def _aopen(self) -> None:
        if not self._server.has_async:
            await super()._aopen()
        elif not await self._server.acheck(lambda: memory_tables.is_ready(self._names, self.name)):
            await self._aanswer(as_a("transaction", memory_tables.make(self._names, self.name)))

    def _close(self) -> None:
        self._server.close()

    async def _aclose(self) -> None:
        await self._server.aclose()

    @property
    def native_client(self) -> object:
        """The pool of connections: psycopg_pool's, for sync use unless an async one was given."""
        return self._server.client if self._server.client is not None else self._server.pool()

    def _answer(self, script: Script[T]) -> T:
        try:
            return self._server.run(script)
        except CollectionNotFoundError as error:
            raise self._gone() from error.__cause__

    async def _aanswer(self, script: Script[T]) -> T:
        if not self._server.has_async:
            return await super()._aanswer(script)
        try:
            return await self._server.arun(script)
        except CollectionNotFoundError as error:
            raise self._gone() from error.__cause__

    def _gone(self) -> BackendError:
        msg = f"the tables of the memory {self.name!r} are not there any more"
        return BackendError(msg, hint="restore them; another program dropped them, or their schema")

    # --- writing ----------------------------------------------------------------------------------------

    def _append_script(self, conversation_id: str, entries: Sequence[Entry]) -> Script[None]:
        batch = yield from _encoded(entries)
        asked = (self._statements, conversation_id.encode(), batch, self._seconds)
        if not (yield from as_a("write", conversations.append(*asked))):
            yield from as_a("transaction", conversations.append_anew(*asked))

    def _replace_script(self, conversation_id: str, entries: Sequence[Entry]) -> Script[None]:
        batch = yield from _encoded(entries)
        asked = (self._statements, conversation_id.encode(), batch, self._seconds)
        yield from as_a("transaction", conversations.replace(*asked))

    def _truncate_script(self, conversation_id: str, after: str) -> Script[bool]:
        asked = (self._statements, conversation_id.encode(), after.encode(), self._seconds)
        return as_a("transaction", conversations.truncate(*asked))

    def _delete_script(self, conversation_id: str) -> Script[None]:
        return as_a("transaction", conversations.remove(self._statements, conversation_id.encode()))

    def _sweep_script(self, after: str | None) -> Script[tuple[int, str | None]]:  # noqa: ARG002 - oldest first
        count = yield from as_a("transaction", conversations.sweep(self._statements))
        return count, "more" if count == SWEPT else None

    # --- reading ----------------------------------------------------------------------------------------

    def _tail_script(self, conversation_id: str, last: int | None) -> Script[list[bytes]]:
        return conversations.tail(self._statements, conversation_id.encode(), last)

    def _latest_script(self, conversation_id: str, role: Role) -> Script[bytes | None]:
        return conversations.latest(self._statements, conversation_id.encode(), role)

    def _ids_script(self, limit: int, cursor: str | None) -> Script[Page[str]]:
        names = yield from conversations.names_after(self._statements, name_behind(cursor) or b"", limit)
        return page_of(names, limit)

    def _find_script(self, question: Question) -> Script[list[tuple[str, bytes]]]:
        return as_a("snapshot", questions.find(self._names, question))


def _encoded(entries: Sequence[Entry]) -> Script[Batch]:
    """Encode messages, beside the event loop if that takes more than a moment (E3)."""
    return work(conversations.batch_of, entries, at_once=len(entries) <= _AT_ONCE)
