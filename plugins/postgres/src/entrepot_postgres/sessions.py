"""Connections: pools, the time that statements may take, and how scripts run (E3 to E5).

What an operation asks the server stands once, as a script: a generator that yields statements and gets
their rows. `Server.run` carries it out on a connection of a pool, `Server.arun` on one of an async pool of
the running event loop.
"""

from __future__ import annotations

import asyncio
import math
import threading
import time
from contextlib import asynccontextmanager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias, TypeVar, cast

import psycopg
from psycopg import sql
from psycopg.pq import TransactionStatus
from psycopg.rows import tuple_row
from psycopg_pool import AsyncConnectionPool, ConnectionPool, PoolClosed, PoolTimeout

from entrepot.errors import ConfigurationError, EntrepotError
from entrepot.exchange import remaining
from entrepot_postgres import faults
from entrepot_postgres.vectors import register

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence

    from psycopg.abc import PQGen

    from entrepot.errors import Outcome

T = TypeVar("T")

Row: TypeAlias = tuple[Any, ...]
Rows: TypeAlias = "list[Row]"
Kind: TypeAlias = Literal["read", "write", "transaction"]
"""Whether a script reads, writes by one statement, or by several that hold together."""
if TYPE_CHECKING:
    Script: TypeAlias = Generator["Statement", Rows, T]
    """The statements of an operation that returns T."""
    Pool: TypeAlias = ConnectionPool[Any]
    AsyncPool: TypeAlias = AsyncConnectionPool[Any]

_GRACE: Final = 1.0
"""Seconds beyond the timeout after which a server that does not even cancel a statement is given up."""
_STEPS: Final = ((1000, 100), (100, 10))
"""Timeouts of at least so many milliseconds are rounded up to such steps, so that they need setting once."""
_IDLE: Final = 300.0
"""Seconds after which a connection that nobody needs is closed."""


class Statement(NamedTuple):
    """A statement to run.

    Attributes:
        query: The SQL; the parts that vary are `psycopg.sql.Identifier` or constants of this package.
        parameters: What is bound.
        settings: Settings of the server that it needs, by name.
    """

    query: sql.SQL | sql.Composed
    parameters: Sequence[object] = ()
    settings: Mapping[str, str] = {}


class Settings(dict[str, str]):
    """What a connection is known to be set to."""


class _Connection(psycopg.Connection[Any]):
    """A connection that stops waiting for a server that is silent, and remembers its settings."""

    give_up: float = math.inf
    known: Settings

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.known = Settings()

    def wait(self, gen: PQGen[T], *args: Any, **kwargs: Any) -> T:
        """Wait for the server, at most until `give_up` on the monotonic clock."""
        return super().wait(_bounded(gen, self), *args, **kwargs)


def _bounded(gen: PQGen[T], connection: _Connection) -> PQGen[T]:
    try:
        wanted = next(gen)
        while True:
            ready = yield wanted
            if not ready and time.monotonic() > connection.give_up:
                connection.pgconn.finish()
                msg = "no answer by the deadline"
                raise faults.DeadlineError(msg)
            wanted = gen.send(ready)
    except StopIteration as end:
        return cast("T", end.value)


class _AsyncConnection(psycopg.AsyncConnection[Any]):
    """An async connection that remembers its settings."""

    known: Settings

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.known = Settings()


class _Loop:
    """The connections of one event loop.

    A pool of psycopg_pool needs closing before its loop ends, or the loop may wait for its workers for ever;
    `asyncio.run` gives no occasion for that. These need no tasks of their own.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, target: Mapping[str, Any], size: int) -> None:
        self.loop = loop
        self._target = target
        self._turns = asyncio.Semaphore(size)
        self._idle: list[_AsyncConnection] = []
        self._taken: set[_AsyncConnection] = set()

    @asynccontextmanager
    async def connection(self, left: float, where: str) -> AsyncGenerator[_AsyncConnection]:
        try:
            async with asyncio.timeout(left):
                await self._turns.acquire()
        except TimeoutError as error:
            raise faults.no_connection(error, where, None) from error
        try:
            connection = self._idle.pop() if self._idle else await self.connect(left, where)
            self._taken.add(connection)
            try:
                yield connection
            finally:
                self._taken.discard(connection)
                if connection.info.transaction_status is TransactionStatus.IDLE:
                    self._idle.append(connection)
                else:  # broken, or cancelled at a moment that leaves its state unknown
                    connection.pgconn.finish()
        finally:
            self._turns.release()

    async def connect(self, left: float, where: str) -> _AsyncConnection:
        try:
            async with asyncio.timeout(left):
                return await _AsyncConnection.connect(**self._target, connect_timeout=_whole(left))
        except Exception as error:
            raise faults.connecting(error, where) from error

    def forget_idle(self) -> None:
        """Drop connections that nobody uses: one was broken, so they are likely to be."""
        for connection in self._idle:
            connection.pgconn.finish()
        self._idle.clear()

    def finish(self) -> None:
        """Drop all connections, also where the loop has ended and nobody can await their close."""
        self.forget_idle()
        for connection in self._taken:
            connection.pgconn.finish()
        self._taken.clear()

    async def close(self) -> None:
        """Close the connections that nobody uses, with a goodbye."""
        while self._idle:
            await self._idle.pop().close()


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
        self._loops: dict[int, _Loop] = {}

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
            if self._pool is None:
                self._pool = ConnectionPool(
                    kwargs=self._target,
                    connection_class=_Connection,
                    min_size=0,
                    max_size=self._pool_size,
                    max_idle=_IDLE,
                    num_workers=1,
                    reconnect_timeout=self.timeout,
                    open=False,
                )
                self._pool.open()
            return self._pool

    def _here(self) -> _Loop:
        """Return the connections of the running event loop."""
        loop = asyncio.get_running_loop()
        with self._lock:
            known = self._loops.get(id(loop))
            if known is None or known.loop is not loop:
                self._forget_closed_loops()
                known = self._loops[id(loop)] = _Loop(loop, self._target, self._pool_size)
            return known

    def _forget_closed_loops(self) -> None:
        for number, known in list(self._loops.items()):
            if known.loop.is_closed():
                del self._loops[number]
                known.finish()

    def close(self) -> None:
        """Close the pools of this library; those of event loops that still run close with `aclose`."""
        with self._lock:
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
            connection = _Connection.connect(**self._target, connect_timeout=_whole(left))
        except Exception as error:
            raise faults.connecting(error, self.where) from error
        with connection:
            script = script_of()
            return self._on(connection, next(script), script, left)

    async def acheck(self, script_of: Callable[[], Script[T]]) -> T:
        """As `check`; the connection stays for the running event loop."""
        return await self.arun(script_of())

    # --- scripts ----------------------------------------------------------------------------------------

    def run(self, script: Script[T], kind: Kind = "read", collection: str = "") -> T:
        """Carry out a script; a transaction commits or rolls back with it."""
        try:
            first = next(script)
        except StopIteration as end:  # there is nothing to ask
            return cast("T", end.value)
        left = remaining(self.timeout)
        until = time.monotonic() + left
        with self._session(left) as connection:
            left = max(until - time.monotonic(), 0.001)
            return self._on(connection, first, script, left, kind, collection)

    async def arun(self, script: Script[T], kind: Kind = "read", collection: str = "") -> T:
        """As `run`."""
        try:
            first = next(script)
        except StopIteration as end:
            return cast("T", end.value)
        left = remaining(self.timeout)
        until = time.monotonic() + left
        async with self._asession(left) as connection:
            left = max(until - time.monotonic(), 0.001)
            return await self._aon(connection, first, script, left, kind, collection)

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
        statement: Statement,
        script: Script[T],
        left: float,
        kind: Kind = "read",
        collection: str = "",
    ) -> T:
        lost: Outcome = "not_done"
        known = connection.known if isinstance(connection, _Connection) else None
        if isinstance(connection, _Connection):
            connection.give_up = time.monotonic() + left + _GRACE
        try:
            cursor = connection.cursor(binary=True, row_factory=tuple_row)
            register(cursor)
            if known is not None:
                # Before the transaction: settings made within one would be gone if it is rolled back.
                _arm(cursor, known, _wanted(left, statement))
            # On a connection of the user's, settings are made for a transaction and end with it.
            with connection.transaction() if kind == "transaction" or known is None else nullcontext():
                while True:
                    lost = "unknown" if kind == "write" else "not_done"
                    if known is None:
                        cursor.execute(*_set(_wanted(left, statement), lasting=False))
                    elif statement.settings:
                        _arm(cursor, known, statement.settings)
                    cursor.execute(statement.query, statement.parameters, prepare=False)
                    answer = cursor.fetchall() if cursor.description else []
                    try:
                        statement = script.send(answer)
                    except StopIteration as end:
                        lost = "not_done" if kind == "read" else "unknown"  # the commit is still to come
                        return cast("T", end.value)
        except EntrepotError:
            raise
        except (psycopg.Error, OSError) as error:
            if connection.closed and self._pool is not None:
                self._pool.drain()  # others that nobody uses are likely to be broken as well
            raise faults.running(error, self.where, collection, lost) from error
        finally:
            script.close()

    async def _aon(  # noqa: PLR0913, PLR0917 - what it works with
        self,
        connection: psycopg.AsyncConnection[Any],
        statement: Statement,
        script: Script[T],
        left: float,
        kind: Kind = "read",
        collection: str = "",
    ) -> T:
        lost: Outcome = "not_done"
        known = connection.known if isinstance(connection, _AsyncConnection) else None
        try:
            async with asyncio.timeout(left + _GRACE):
                cursor = connection.cursor(binary=True, row_factory=tuple_row)
                register(cursor)
                if known is not None:
                    await _aarm(cursor, known, _wanted(left, statement))
                async with (
                    connection.transaction() if kind == "transaction" or known is None else nullcontext()
                ):
                    while True:
                        lost = "unknown" if kind == "write" else "not_done"
                        if known is None:
                            await cursor.execute(*_set(_wanted(left, statement), lasting=False))
                        elif statement.settings:
                            await _aarm(cursor, known, statement.settings)
                        await cursor.execute(statement.query, statement.parameters, prepare=False)
                        answer = await cursor.fetchall() if cursor.description else []
                        try:
                            statement = script.send(answer)
                        except StopIteration as end:
                            lost = "not_done" if kind == "read" else "unknown"  # the commit is still to come
                            return cast("T", end.value)
        except EntrepotError:
            raise
        except (psycopg.Error, OSError) as error:
            if connection.closed and self.client is None:
                self._here().forget_idle()
            raise faults.running(error, self.where, collection, lost) from error
        finally:
            script.close()


def _shown(target: Mapping[str, Any]) -> str:
    """Return the address for errors: no user, no password."""
    host, port = target.get("host") or "the default host", target.get("port")
    database = target.get("dbname")
    address = f"{host}:{port}" if port is not None else str(host)
    return f"PostgreSQL at {address}" + (f", database {database!r}" if database else "")


def _whole(seconds: float) -> int:
    """Return seconds as libpq takes them: whole, and at least 2, which is its own least."""
    return max(2, math.ceil(seconds))


# --- settings of the server -------------------------------------------------------------------------------


def _wanted(left: float, statement: Statement) -> dict[str, str]:
    milliseconds = max(1, math.ceil(left * 1000))
    for least, step in _STEPS:
        if milliseconds >= least:
            milliseconds = math.ceil(milliseconds / step) * step
            break
    return {"statement_timeout": str(milliseconds), **statement.settings}


def _arm(cursor: psycopg.Cursor[Any], known: Settings, wanted: Mapping[str, str]) -> None:
    """Make the settings that a connection of ours does not have yet; they last."""
    missing = {name: value for name, value in wanted.items() if known.get(name) != value}
    if missing:
        cursor.execute(*_set(missing, lasting=True))
        known.update(missing)


async def _aarm(cursor: psycopg.AsyncCursor[Any], known: Settings, wanted: Mapping[str, str]) -> None:
    """As `_arm`."""
    missing = {name: value for name, value in wanted.items() if known.get(name) != value}
    if missing:
        await cursor.execute(*_set(missing, lasting=True))
        known.update(missing)


def _set(settings: Mapping[str, str], *, lasting: bool) -> tuple[sql.Composed, list[object]]:
    """Return the statement that makes settings: for the connection, or for the transaction alone."""
    call = sql.SQL("set_config(%s, %s, %s)")
    values: list[object] = []
    for name, value in settings.items():
        values += (name, value, not lasting)
    return sql.SQL("SELECT ") + sql.SQL(", ").join([call] * len(settings)), values
