"""Connections: pools, the time that an exchange may take, and how scripts run (E3 to E5).

What an operation asks the server stands once, as a script: a generator that yields commands and gets their
replies. `Server.run` carries it out on a connection of a pool, `Server.arun` on one of the running event loop.

Commands go over the connections themselves and not over redis-py's client: so their replies are bytes in
the shape that the server gave them, whatever a client of the user's is set to, and each waits for as long
as the exchange has left.
"""

from __future__ import annotations

import asyncio
import threading
import time
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import redis
import redis.asyncio
from redis.asyncio.connection import Connection as AsyncConnection
from redis.asyncio.connection import ConnectionPool as AsyncConnectionPool
from redis.asyncio.connection import SSLConnection as AsyncSSLConnection
from redis.asyncio.retry import Retry as AsyncRetry
from redis.backoff import NoBackoff
from redis.connection import Connection, ConnectionPool, SSLConnection
from redis.exceptions import RedisError
from redis.retry import Retry

from entrepot.errors import ClosedError, ConfigurationError
from entrepot.exchange import remaining
from entrepot.scripted import Result, aadvance, advance
from entrepot_redis import faults
from entrepot_redis.exchanges import State, aadvanced, advanced, aexchange, exchange, left_until

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator, Mapping

    from entrepot_redis.commands import Ask, Script

T = TypeVar("T")


class Address(NamedTuple):
    """Where a server is, and how to log in.

    Attributes:
        host: The server.
        port: Its port.
        db: The database.
        user: Who logs in.
        password: The password.
        protocol: The version of the protocol.
        tls: What redis-py is told about TLS; None without it.
    """

    host: str
    port: int
    db: int
    user: str | None
    password: str | None
    protocol: int
    tls: Mapping[str, Any] | None

    def __repr__(self) -> str:
        """Return the address without the password: a debugger or a report shows local variables."""
        return f"Address({self.where})"

    @property
    def where(self) -> str:
        """The address for errors: no user, no password."""
        return f"Redis at {self.host}:{self.port}" + (f", database {self.db}" if self.db else "")

    def keywords(self, timeout: float) -> dict[str, Any]:
        """Return the keywords of a connection of redis-py."""
        return {
            "host": self.host,
            "port": self.port,
            "db": self.db,
            "username": self.user,
            "password": self.password,
            "protocol": self.protocol,
            "socket_connect_timeout": timeout,
            **(self.tls or {}),
        }


class _Bounded(Connection):
    """A connection that is made within what is left of the exchange."""

    def connect(self) -> None:
        """Connect; the driver's own timeouts are the exchange's."""
        usual = self.socket_timeout
        self.socket_timeout = self.socket_connect_timeout = remaining(usual or 10.0)
        try:
            super().connect()  # type: ignore[no-untyped-call]
        finally:
            self.socket_timeout = usual


class _BoundedSSL(_Bounded, SSLConnection):
    """The same over TLS."""


class _Loop:
    """The connections of one event loop.

    They are closed when the loop ends: it then closes its async generators, and one of them is ours.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, pool: AsyncConnectionPool, size: int) -> None:
        self.loop = loop
        self.pool = pool
        self.turns = asyncio.Semaphore(size)
        self._end: AsyncGenerator[None] | None = None

    async def begin(self) -> None:
        """Let the loop close the connections when it ends."""
        if self._end is None:
            self._end = self._closing()
            await anext(self._end)

    async def _closing(self) -> AsyncGenerator[None]:
        try:
            yield
        finally:
            await self.pool.disconnect()

    async def close(self) -> None:
        """Close all connections; the loop's end finds nothing to do then."""
        await self.pool.disconnect()

    def close_soon(self) -> None:
        """Have the connections closed from outside of the loop."""
        if not self.loop.is_closed():
            self.loop.call_soon_threadsafe(lambda: self.loop.create_task(self.close()))


class Server:
    """A Redis server, reached through connections that are made when they are needed.

    Args:
        address: Where it is.
        pool_size: Most connections of a pool.
        timeout: Seconds for what is outside of an exchange.
        client: A client of the user's, which is used and not closed.
    """

    def __init__(self, address: Address, *, pool_size: int, timeout: float, client: object = None) -> None:
        if client is not None and not isinstance(client, redis.Redis | redis.asyncio.Redis):
            msg = f"client must be a redis.Redis or a redis.asyncio.Redis, not {type(client).__name__}"
            raise ConfigurationError(
                msg, hint="redis.Redis.from_url makes one; clients of clusters are not used"
            )
        self.client: Any = client
        self.where = address.where if client is None else "the client's Redis"
        self.timeout = timeout
        self._address = address
        self._size = pool_size
        self._turns = threading.BoundedSemaphore(pool_size)
        self._lock = threading.Lock()
        self._pool: Any = None
        self._native: redis.Redis | None = None
        self._closed = False
        self._loops: dict[int, _Loop] = {}

    @property
    def db(self) -> int:
        """The database."""
        if self.client is None:
            return self._address.db
        return int(self.client.connection_pool.connection_kwargs.get("db") or 0)

    # --- pools ------------------------------------------------------------------------------------------

    @property
    def has_sync(self) -> bool:
        """Whether sync operations have a client."""
        return not isinstance(self.client, redis.asyncio.Redis)

    @property
    def has_async(self) -> bool:
        """Whether async operations have a client of their own."""
        return not isinstance(self.client, redis.Redis)

    @property
    def native(self) -> object:
        """The driver's client: the user's, or one over the connections of sync operations."""
        if self.client is not None:
            return self.client
        with self._lock:
            if self._native is None:
                self._native = redis.Redis(connection_pool=self._own_pool())
            return self._native

    def _own_pool(self) -> Any:
        """Return the pool of sync operations; the lock is held."""
        self._check_open()
        if self._pool is None:
            self._pool = ConnectionPool(
                connection_class=_Bounded if self._address.tls is None else _BoundedSSL,
                retry=Retry(NoBackoff(), 0),
                socket_timeout=self.timeout,
                **self._address.keywords(self.timeout),
            )
        return self._pool

    def _sync_pool(self) -> Any:
        if self.client is not None:
            if not self.has_sync:
                msg = "the client is a redis.asyncio.Redis, which sync operations cannot use"
                raise ConfigurationError(msg, hint="use the async twin, or give a redis.Redis")
            return self.client.connection_pool
        with self._lock:
            return self._own_pool()

    def _check_open(self) -> None:
        """Refuse to connect anew for a call that was under way when everything was closed (E5)."""
        if self._closed:
            msg = f"the connections to {self.where} are closed"
            raise ClosedError(msg)

    async def _here(self) -> _Loop:
        """Return the connections of the running event loop."""
        loop = asyncio.get_running_loop()
        with self._lock:
            self._check_open()
            known = self._loops.get(id(loop))
            if known is None or known.loop is not loop:
                self._loops = {key: other for key, other in self._loops.items() if not other.loop.is_closed()}
                pool = AsyncConnectionPool(
                    connection_class=AsyncConnection if self._address.tls is None else AsyncSSLConnection,
                    retry=AsyncRetry(NoBackoff(), 0),
                    socket_timeout=None,
                    **self._address.keywords(self.timeout),
                )
                known = self._loops[id(loop)] = _Loop(loop, pool, self._size)
        await known.begin()
        return known

    def close(self) -> None:
        """Close the connections of this library; those of event loops that still run follow soon."""
        with self._lock:
            self._closed = True
            pool, self._pool, self._native = self._pool, None, None
            loops, self._loops = self._loops, {}
        for known in loops.values():
            known.close_soon()
        if pool is not None:
            pool.disconnect()

    async def aclose(self) -> None:
        """As `close`, and waits for the connections of the running loop."""
        loop = asyncio.get_running_loop()
        with self._lock:
            known = self._loops.pop(id(loop), None)
        if known is not None and known.loop is loop:
            await known.close()
        self.close()

    # --- connections ------------------------------------------------------------------------------------

    @contextmanager
    def _session(self, until: float) -> Generator[Any]:
        pool = self._sync_pool()
        own = self.client is None
        if own and not self._turns.acquire(timeout=left_until(until)):
            raise faults.no_connection(self.where)
        try:
            connection = self._connected(pool)
            try:
                yield connection
            finally:
                if not own:
                    connection.update_current_socket_timeout(-1)
                if own and self._pool is not pool:  # closed meanwhile
                    connection.disconnect()
                pool.release(connection)
        finally:
            if own:
                self._turns.release()

    def _connected(self, pool: Any) -> Any:
        try:
            return pool.get_connection()
        except (RedisError, OSError) as error:
            raise faults.connecting(error, self.where) from error

    @asynccontextmanager
    async def _asession(self, until: float) -> AsyncGenerator[Any]:
        if self.client is not None:
            async with self._lent(self.client.connection_pool, until) as connection:
                yield connection
            return
        here = await self._here()
        try:
            async with asyncio.timeout(left_until(until)):
                await here.turns.acquire()
        except TimeoutError as error:
            raise faults.no_connection(self.where) from error
        try:
            async with self._lent(here.pool, until) as connection:
                yield connection
        finally:
            here.turns.release()

    @asynccontextmanager
    async def _lent(self, pool: Any, until: float) -> AsyncGenerator[Any]:
        try:
            async with asyncio.timeout(left_until(until)):
                connection = await pool.get_connection()
        except (RedisError, OSError) as error:
            raise faults.connecting(error, self.where) from error
        try:
            yield connection
        finally:
            await pool.release(connection)

    # --- scripts ----------------------------------------------------------------------------------------

    def run(self, script: Script[T], collection: str = "") -> T:
        """Carry out a script within what is left of the exchange."""
        until = time.monotonic() + remaining(self.timeout)
        state = State(self.where, collection)
        step: Ask | Result[T] = advance(script)
        try:
            if not isinstance(step, Result):
                with self._session(until) as connection, state.faults():
                    while not isinstance(step, Result):
                        step = advanced(script, exchange(connection, state.sending(step), until))
            answer: T = step.value
            return answer
        finally:
            script.close()

    async def arun(self, script: Script[T], collection: str = "") -> T:
        """As `run`."""
        until = time.monotonic() + remaining(self.timeout)
        state = State(self.where, collection)
        step: Ask | Result[T] = await aadvance(script)
        try:
            if not isinstance(step, Result):
                async with self._asession(until) as connection:
                    with state.faults():
                        while not isinstance(step, Result):
                            replies = await aexchange(connection, state.sending(step), until)
                            step = await aadvanced(script, replies)
            answer: T = step.value
            return answer
        finally:
            script.close()
