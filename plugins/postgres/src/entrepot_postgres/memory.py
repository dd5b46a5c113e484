"""`PostgresChatMemoryRepository`: conversations in PostgreSQL."""

from __future__ import annotations

import asyncio
import base64
import binascii
import logging
import time
from typing import TYPE_CHECKING, Final, TypeVar

from entrepot.errors import (
    BackendError,
    CollectionNotFoundError,
    ConfigurationError,
    EntrepotError,
    RequestError,
)
from entrepot.exchange import DEFAULT_TIMEOUT
from entrepot.memory.repository import ChatMemoryRepository
from entrepot.metadata import name_fault
from entrepot.records import Page
from entrepot.steps import tell
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
    from entrepot.steps import Steps
    from entrepot_postgres.conversations import Batch
    from entrepot_postgres.scripts import Kind, Script

T = TypeVar("T")

_SWEEP_SECONDS: Final = 10.0
"""Between two looks for what has expired, in a repository that writes."""
_LONGEST: Final = 1e11
"""Seconds, about 3,000 years: PostgreSQL's calendar ends."""
_SHORTEST: Final = 1e-6

_AT_ONCE: Final = 500
"""Messages that are encoded on the event loop: about half a millisecond."""

_log = logging.getLogger(__name__)


class PostgresChatMemoryRepository(ChatMemoryRepository):
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
        self._next_sweep = 0.0

    # --- connecting -------------------------------------------------------------------------------------

    def _open(self) -> None:
        if not self._server.check(lambda: memory_tables.is_ready(self._names, self.name)):
            self._answer(memory_tables.make(self._names, self.name), "transaction")

    async def _aopen(self) -> None:
        if not self._server.has_async:
            await super()._aopen()
        elif not await self._server.acheck(lambda: memory_tables.is_ready(self._names, self.name)):
            await self._aanswer(memory_tables.make(self._names, self.name), "transaction")

    def _close(self) -> None:
        self._server.close()

    async def _aclose(self) -> None:
        await self._server.aclose()

    @property
    def native_client(self) -> object:
        """The pool of connections: psycopg_pool's, for sync use unless an async one was given."""
        return self._server.client if self._server.client is not None else self._server.pool()

    def _answer(self, script: Script[T], kind: Kind = "read") -> T:
        try:
            return self._server.run(as_a(kind, script))
        except CollectionNotFoundError as error:
            raise self._gone() from error.__cause__

    async def _aanswer(self, script: Script[T], kind: Kind = "read") -> T:
        if not self._server.has_async:
            return await asyncio.to_thread(self._answer, script, kind)
        try:
            return await self._server.arun(as_a(kind, script))
        except CollectionNotFoundError as error:
            raise self._gone() from error.__cause__

    def _gone(self) -> BackendError:
        msg = f"the tables of the memory {self.name!r} are not there any more"
        return BackendError(msg, hint="restore them; another program dropped them, or their schema")

    # --- writing ----------------------------------------------------------------------------------------

    def _append(self, conversation_id: str, entries: Sequence[Entry]) -> None:
        asked = (self._statements, conversation_id.encode(), conversations.batch_of(entries), self._seconds)
        if not self._answer(conversations.append(*asked), "write"):
            self._answer(conversations.append_anew(*asked), "transaction")
        if self._sweep_is_due():
            try:
                self._sweep()
            except EntrepotError as error:
                _log.debug("removing expired conversations failed: %s", type(error).__name__)

    async def _aappend(self, conversation_id: str, entries: Sequence[Entry]) -> None:
        asked = (self._statements, conversation_id.encode(), await _abatch(entries), self._seconds)
        if not await self._aanswer(conversations.append(*asked), "write"):
            await self._aanswer(conversations.append_anew(*asked), "transaction")
        if self._sweep_is_due():
            try:
                await self._asweep()
            except EntrepotError as error:
                _log.debug("removing expired conversations failed: %s", type(error).__name__)

    def _replace_script(self, conversation_id: str, batch: Batch) -> Script[None]:
        return conversations.replace(self._statements, conversation_id.encode(), batch, self._seconds)

    def _replace(self, conversation_id: str, entries: Sequence[Entry]) -> None:
        if not entries:
            self._delete(conversation_id)
            return
        script = self._replace_script(conversation_id, conversations.batch_of(entries))
        self._answer(script, "transaction")

    async def _areplace(self, conversation_id: str, entries: Sequence[Entry]) -> None:
        if not entries:
            await self._adelete(conversation_id)
            return
        script = self._replace_script(conversation_id, await _abatch(entries))
        await self._aanswer(script, "transaction")

    def _truncate_script(self, conversation_id: str, after: str) -> Script[bool]:
        name = conversation_id.encode()
        return conversations.truncate(self._statements, name, after.encode(), self._seconds)

    def _truncate(self, conversation_id: str, after: str) -> bool:
        return self._answer(self._truncate_script(conversation_id, after), "transaction")

    async def _atruncate(self, conversation_id: str, after: str) -> bool:
        return await self._aanswer(self._truncate_script(conversation_id, after), "transaction")

    def _delete(self, conversation_id: str) -> None:
        self._answer(conversations.remove(self._statements, conversation_id.encode()), "transaction")

    async def _adelete(self, conversation_id: str) -> None:
        await self._aanswer(conversations.remove(self._statements, conversation_id.encode()), "transaction")

    # --- reading ----------------------------------------------------------------------------------------

    def _tail(self, conversation_id: str, last: int | None) -> list[bytes]:
        return self._answer(conversations.tail(self._statements, conversation_id.encode(), last))

    async def _atail(self, conversation_id: str, last: int | None) -> list[bytes]:
        return await self._aanswer(conversations.tail(self._statements, conversation_id.encode(), last))

    def _latest(self, conversation_id: str, role: Role) -> bytes | None:
        return self._answer(conversations.latest(self._statements, conversation_id.encode(), role))

    async def _alatest(self, conversation_id: str, role: Role) -> bytes | None:
        return await self._aanswer(conversations.latest(self._statements, conversation_id.encode(), role))

    def _ids_script(self, limit: int, cursor: str | None) -> Script[list[bytes]]:
        return conversations.names_after(self._statements, _place_of(cursor), limit)

    def _ids(self, limit: int, cursor: str | None) -> Page[str]:
        return _page(self._answer(self._ids_script(limit, cursor)), limit)

    async def _aids(self, limit: int, cursor: str | None) -> Page[str]:
        return _page(await self._aanswer(self._ids_script(limit, cursor)), limit)

    def _find(self, question: Question) -> list[tuple[str, bytes]]:
        return self._answer(questions.find(self._names, question), "snapshot")

    async def _afind(self, question: Question) -> list[tuple[str, bytes]]:
        return await self._aanswer(questions.find(self._names, question), "snapshot")

    # --- what has expired -------------------------------------------------------------------------------

    def remove_expired(self) -> int:
        """Remove conversations that have expired from the database, and return how many they were.

        They read as unknown before that already (M8); this frees their room, 100 in a transaction.
        """
        return self._run("remove_expired", self._remove_expired_steps())

    async def aremove_expired(self) -> int:
        """As `remove_expired`."""
        return await self._arun("remove_expired", self._remove_expired_steps())

    def _remove_expired_steps(self) -> Steps[int]:
        removed = 0
        while True:
            count = yield from tell(self._sweep, self._asweep)
            removed += count
            if count < SWEPT:
                return removed

    def _sweep(self) -> int:
        return self._answer(conversations.sweep(self._statements), "transaction")

    async def _asweep(self) -> int:
        return await self._aanswer(conversations.sweep(self._statements), "transaction")

    def _sweep_is_due(self) -> bool:
        """Whether to look for what has expired, after a write that succeeded."""
        if self.ttl is None or time.monotonic() < self._next_sweep:
            return False
        self._next_sweep = time.monotonic() + _SWEEP_SECONDS
        return True


async def _abatch(entries: Sequence[Entry]) -> Batch:
    """Encode messages, beside the event loop if that takes more than a moment (E3)."""
    if len(entries) <= _AT_ONCE:
        return conversations.batch_of(entries)
    return await asyncio.to_thread(conversations.batch_of, entries)


# --- cursors of the listing -------------------------------------------------------------------------------


def _page(names: Sequence[bytes], limit: int) -> Page[str]:
    more = len(names) > limit
    token = base64.urlsafe_b64encode(names[limit - 1]).decode() if more else None
    return Page([name.decode() for name in names[:limit]], token)


def _place_of(cursor: str | None) -> bytes:
    if cursor is None:
        return b""
    try:
        name = base64.b64decode(cursor, altchars=b"-_", validate=True)
        name.decode()
    except (binascii.Error, ValueError, TypeError):
        raise RequestError(
            "the cursor is none of this repository's", hint="pass the token of a page"
        ) from None
    return name
