"""Sessions: pools, and how scripts run on a connection of theirs (E3 to E5).

`Server.run` carries a script out on a connection of a pool, `Server.arun` on one of the running event loop.
"""

from __future__ import annotations

import asyncio
import threading
import time
from contextlib import asynccontextmanager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar, cast

import psycopg
from psycopg.pq import Format
from psycopg.rows import tuple_row
from psycopg_pool import AsyncConnectionPool, ConnectionPool, PoolClosed, PoolTimeout

from entrepot.errors import ClosedError, ConfigurationError, EntrepotError
from entrepot.exchange import remaining
from entrepot.scripted import Result, Work, aadvance, advance
from entrepot_postgres import faults
from entrepot_postgres.binary import register
from entrepot_postgres.pools import AsyncConnection, Connection, Loop, whole
from entrepot_postgres.scripts import Begin, Course

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator, Mapping

    from entrepot_postgres.scripts import Kind, Script, Sending, Statement

    Pool: TypeAlias = ConnectionPool[Any]
    AsyncPool: TypeAlias = AsyncConnectionPool[Any]

T = TypeVar("T")

_GRACE: Final = 1.0
"""Seconds beyond the timeout after which a server that does not even cancel a statement is given up."""
_IDLE: Final = 300.0
"""Seconds after which a connection that nobody needs is closed."""


class Server:
    """A PostgreSQL database, reached through pools that are opened when they are first used.

    Args:
        target: Keywords of `psycopg.connect`.
        pool_size: Most connections of a pool.
        timeout: Seconds for what is outside of an exchange.
        client: A pool of the user's, which is used and not closed.
    """

    def __init__(
        self, target: Mapping[str, Any], *, pool_size: int, timeout: float, client: object = None
    ) -> None:
        if client is not None and not isinstance(client, ConnectionPool | AsyncConnectionPool):
            msg = f"client must be a ConnectionPool or an AsyncConnectionPool, not {type(client).__name__}"
            raise ConfigurationError(msg, hint="psycopg_pool has both")
        self.client: Pool | AsyncPool | None = cast("Any", client)
        self.where = _shown(target) if client is None else "the client's server"
        self.timeout = timeout
        self._target: dict[str, Any] = {"client_encoding": "utf8", "autocommit": True, **target}
        self._pool_size = pool_size
        self._lock = threading.Lock()
        self._pool: Pool | None = None
        self._closed = False
        self._loops: dict[int, Loop] = {}

    # --- pools ------------------------------------------------------------------------------------------

    @property
    def has_sync(self) -> bool:
        """Whether sync operations have a pool."""
        return not isinstance(self.client, AsyncConnectionPool)

    @property
    def has_async(self) -> bool:
        """Whether async operations have a pool of their own."""
        return not isinstance(self.client, ConnectionPool)

    def pool(self) -> Pool:
        """Return the pool for sync use, opening it if need be."""
        if isinstance(self.client, ConnectionPool):
            return self.client
        if self.client is not None:
            msg = "the client is an AsyncConnectionPool, which sync operations cannot use"
            raise ConfigurationError(msg, hint="use the async twin, or give a ConnectionPool")
        with self._lock:
            self._check_open()
            if self._pool is None:
                self._pool = ConnectionPool(
                    kwargs=self._target,
                    connection_class=Connection,
                    min_size=0,
                    max_size=self._pool_size,
                    max_idle=_IDLE,
                    num_workers=1,
                    reconnect_timeout=self.timeout,
                    open=False,
                )
                self._pool.open()
            return self._pool

    def _here(self) -> Loop:
        """Return the connections of the running event loop."""
        loop = asyncio.get_running_loop()
        with self._lock:
            self._check_open()
            known = self._loops.get(id(loop))
            if known is None or known.loop is not loop:
                self._forget_closed_loops()
                known = self._loops[id(loop)] = Loop(loop, self._target, self._pool_size)
            return known

    def _check_open(self) -> None:
        """Refuse to connect anew for a call that was under way when everything was closed (E5)."""
        if self._closed:
            raise ClosedError(f"the connections to {self.where} are closed")

    def _forget_closed_loops(self) -> None:
        for number, known in list(self._loops.items()):
            if known.loop.is_closed():
                del self._loops[number]
                known.finish()

    def close(self) -> None:
        """Close the pools of this library; those of event loops that still run close with `aclose`."""
        with self._lock:
            self._closed = True
            pool, self._pool = self._pool, None
            for known in self._loops.values():
                known.finish()
            self._loops.clear()
        if pool is not None:
            pool.close()

    async def aclose(self) -> None:
        """As `close`, and lets the connections of the running loop say goodbye."""
        loop = asyncio.get_running_loop()
        with self._lock:
            known = self._loops.pop(id(loop), None)
        if known is not None and known.loop is loop:
            await known.close()
            known.finish()
        await asyncio.to_thread(self.close)

    # --- the first connection ---------------------------------------------------------------------------

    def check(self, script_of: Callable[[], Script[T]]) -> T:
        """Connect once and run a script, so that a wrong address or login shows as what it is (E2)."""
        if self.client is not None:
            return self.run(script_of())
        left = remaining(self.timeout)
        try:
            connection = Connection.connect(**self._target, connect_timeout=whole(left))
        except Exception as error:
            raise faults.connecting(error, self.where) from error
        script = script_of()
        with connection:
            step = self._on(connection, cast("Statement", next(script)), script, left)
            return cast("Result[T]", step).value

    async def acheck(self, script_of: Callable[[], Script[T]]) -> T:
        """As `check`; the connection stays for the running event loop."""
        return await self.arun(script_of())

    # --- scripts ----------------------------------------------------------------------------------------

    def run(self, script: Script[T], collection: str = "") -> T:
        """Carry out a script; a transaction commits or rolls back with it."""
        step: Any = advance(script)
        left = remaining(self.timeout)
        until = time.monotonic() + left
        try:
            while not isinstance(step, Result):
                kind: Kind = "read"
                if isinstance(step, Begin):
                    kind, step = step.kind, advance(script)
                if isinstance(step, Result):  # there is nothing to ask
                    break
                with self._session(left) as connection:
                    left = max(until - time.monotonic(), 0.001)
                    step = self._on(connection, step, script, left, kind, collection)
            return cast("Result[T]", step).value
        finally:
            script.close()

    async def arun(self, script: Script[T], collection: str = "") -> T:
        """As `run`."""
        step: Any = await aadvance(script)
        left = remaining(self.timeout)
        until = time.monotonic() + left
        try:
            while not isinstance(step, Result):
                kind: Kind = "read"
                if isinstance(step, Begin):
                    kind, step = step.kind, await aadvance(script)
                if isinstance(step, Result):
                    break
                async with self._asession(left) as connection:
                    left = max(until - time.monotonic(), 0.001)
                    step = await self._aon(connection, step, script, left, kind, collection)
            return cast("Result[T]", step).value
        finally:
            script.close()

    @contextmanager
    def _session(self, left: float) -> Generator[psycopg.Connection[Any]]:
        pool = self.pool()
        try:
            connection = pool.getconn(timeout=left)
        except (PoolTimeout, PoolClosed) as error:
            raise faults.no_connection(error, self.where, self._reason(pool)) from error
        try:
            yield connection
        finally:
            pool.putconn(connection)

    @asynccontextmanager
    async def _asession(self, left: float) -> AsyncGenerator[psycopg.AsyncConnection[Any]]:
        if self.client is None:
            async with self._here().connection(left, self.where) as own:
                yield own
            return
        pool = cast("AsyncPool", self.client)
        try:
            connection = await pool.getconn(timeout=left)
        except (PoolTimeout, PoolClosed) as error:
            raise faults.no_connection(error, self.where, self._reason(pool)) from error
        try:
            yield connection
        finally:
            await pool.putconn(connection)

    def _reason(self, pool: Pool | AsyncPool) -> Exception | None:
        """Return why the pool has no connection, if it could not make one; a full pool is no reason."""
        stats = pool.get_stats()
        if stats.get("connections_errors", 0) and stats.get("pool_size", 0) < pool.max_size:
            return psycopg.OperationalError("the pool could not connect")
        return None

    def _on(  # noqa: PLR0913, PLR0917 - what it works with
        self,
        connection: psycopg.Connection[Any],
        first: Statement,
        script: Script[T],
        left: float,
        kind: Kind = "read",
        collection: str = "",
    ) -> Begin | Result[T]:
        own = connection if isinstance(connection, Connection) else None
        course = Course(script, first, left, kind, None if own is None else own.known)
        if own is not None:
            own.give_up = time.monotonic() + left + _GRACE
        try:
            cursor = psycopg.Cursor(
                connection, row_factory=tuple_row
            )  # whatever a pool's connections are set to
            cursor.format = Format.BINARY
            if own is None:
                register(cursor)
            _send(cursor, course.before())
            with connection.transaction() if course.in_transaction else nullcontext():
                return _send(cursor, course.within())
        except EntrepotError:
            raise
        except (psycopg.Error, OSError) as error:
            if connection.closed and self._pool is not None:
                self._pool.drain()  # others that nobody uses are likely to be broken as well
            raise faults.running(error, self.where, collection, course.lost) from error

    async def _aon(  # noqa: PLR0913, PLR0917 - what it works with
        self,
        connection: psycopg.AsyncConnection[Any],
        first: Statement,
        script: Script[T],
        left: float,
        kind: Kind = "read",
        collection: str = "",
    ) -> Begin | Result[T]:
        own = connection if isinstance(connection, AsyncConnection) else None
        course = Course(script, first, left, kind, None if own is None else own.known)
        try:
            async with asyncio.timeout(left + _GRACE):
                cursor = psycopg.AsyncCursor(connection, row_factory=tuple_row)
                cursor.format = Format.BINARY
                if own is None:
                    register(cursor)
                await _asend(cursor, course.before())
                async with connection.transaction() if course.in_transaction else nullcontext():
                    return await _asend(cursor, course.within())
        except EntrepotError:
            raise
        except (psycopg.Error, OSError) as error:
            if connection.closed and self.client is None:
                self._here().forget_idle()
            raise faults.running(error, self.where, collection, course.lost) from error


def _send(cursor: psycopg.Cursor[Any], script: Sending[T]) -> T:
    """Run the statements of a script, handing it their rows."""
    try:
        step = next(script)
        while True:
            if isinstance(step, Work):
                step = script.send(step.function())
                continue
            cursor.execute(step.query, step.parameters, prepare=step.prepare)
            step = script.send(cursor.fetchall() if cursor.description else [])
    except StopIteration as end:
        return cast("T", end.value)


async def _asend(cursor: psycopg.AsyncCursor[Any], script: Sending[T]) -> T:
    """As `_send`; what takes long on the CPU is done in a thread."""
    try:
        step = next(script)
        while True:
            if isinstance(step, Work):
                step = script.send(await asyncio.to_thread(step.function))
                continue
            await cursor.execute(step.query, step.parameters, prepare=step.prepare)
            step = script.send(await cursor.fetchall() if cursor.description else [])
    except StopIteration as end:
        return cast("T", end.value)


def _shown(target: Mapping[str, Any]) -> str:
    """Return the address for errors: no user, no password."""
    host, port = target.get("host") or "the default host", target.get("port")
    database = target.get("dbname")
    address = f"{host}:{port}" if port is not None else str(host)
    return f"PostgreSQL at {address}" + (f", database {database!r}" if database else "")
