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

from entrepot.clients import Clients
from entrepot.errors import ConfigurationError
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


class _Pool:
    """The connections of one event loop, or a pool of the user's.

    Attributes:
        pool: The pool.
        turns: Bounds how many are in use; None where the pool is the user's.
    """

    def __init__(self, pool: AsyncConnectionPool, size: int | None) -> None:
        self.pool = pool
        self.turns = None if size is None else asyncio.Semaphore(size)

    async def close(self) -> None:
        await self.pool.disconnect()


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
        self._clients: Clients[Any, _Pool] = Clients(
            where=self.where,
            make=self._made,
            close=ConnectionPool.disconnect,
            amake=self._amade,
            aclose=_Pool.close,
            given=client.connection_pool if isinstance(client, redis.Redis) else None,
            agiven=_Pool(client.connection_pool, None) if isinstance(client, redis.asyncio.Redis) else None,
        )
        self._native: redis.Redis | None = None
        self.has_sync = self._clients.has_sync
        self.has_async = self._clients.has_async

    @property
    def db(self) -> int:
        """The database."""
        if self.client is None:
            return self._address.db
        return int(self.client.connection_pool.connection_kwargs.get("db") or 0)

    # --- pools ------------------------------------------------------------------------------------------

    @property
    def native(self) -> object:
        """The driver's client: the user's, or one over the connections of sync operations."""
        if self.client is not None:
            return self.client
        pool = self._clients.sync()
        if self._native is None:
            self._native = redis.Redis(connection_pool=pool)
        return self._native

    def _made(self) -> Any:
        return ConnectionPool(
            connection_class=_Bounded if self._address.tls is None else _BoundedSSL,
            retry=Retry(NoBackoff(), 0),
            socket_timeout=self.timeout,
            **self._address.keywords(self.timeout),
        )

    def _amade(self) -> _Pool:
        pool = AsyncConnectionPool(
            connection_class=AsyncConnection if self._address.tls is None else AsyncSSLConnection,
            retry=AsyncRetry(NoBackoff(), 0),
            socket_timeout=None,
            **self._address.keywords(self.timeout),
        )
        return _Pool(pool, self._size)

    def close(self) -> None:
        """Close the connections of this library; those of event loops that still run follow soon."""
        self._clients.close()

    async def aclose(self) -> None:
        """As `close`, and waits for the connections of the running loop."""
        await self._clients.aclose()

    # --- connections ------------------------------------------------------------------------------------

    @contextmanager
    def _session(self, until: float) -> Generator[Any]:
        pool = self._clients.sync()
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
                if own and self._clients.is_closed:  # meanwhile
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
        here = await self._clients.here()
        if here.turns is None:
            async with self._lent(here.pool, until) as connection:
                yield connection
            return
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
