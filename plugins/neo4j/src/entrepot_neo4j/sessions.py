"""Connections to a server: clients, the time that a transaction may take, and how scripts run (E3 to E5).

`Server.run` carries a script out on a `neo4j.Driver`, `Server.arun` on an `AsyncDriver` of the running event loop. Every
transaction is a managed one, tells the server how long it may take, and is cut off here if no answer comes. All sessions
of a server share their bookmarks, so that each sees what the others wrote, on whichever server of a cluster it is.
"""

from __future__ import annotations

import asyncio
import logging
import random
import socket
import threading
import time
from contextlib import asynccontextmanager, contextmanager, suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar, cast

import neo4j
from neo4j import AsyncDriver, AsyncGraphDatabase, Driver, GraphDatabase, TrustCustomCAs, unit_of_work
from neo4j.api import AsyncBookmarkManager, BookmarkManager

from entrepot.clients import Clients
from entrepot.errors import ClosedError, ConfigurationError, EntrepotError, OperationTimeoutError
from entrepot.exchange import remaining
from entrepot.scripted import acarry_out, carry_out
from entrepot_neo4j import faults
from entrepot_neo4j.commands import Unit

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Collection, Coroutine, Generator

    from entrepot.errors import Outcome
    from entrepot_neo4j.commands import Script, Statement

T = TypeVar("T")

_ours: ContextVar[bool] = ContextVar("entrepot_neo4j_ours", default=False)


def _tells_no_values(_: logging.LogRecord) -> bool:
    """Whether a record may be logged: those of what is sent here hold texts and values, and may not (O1)."""
    return not _ours.get()


logging.getLogger("neo4j.io").addFilter(_tells_no_values)

_GRACE: Final = 0.3
"""Seconds beyond the timeout after which a server that does not even end a transaction is given up."""
_FIRST_PAUSE: Final = 0.005
_LONGEST_PAUSE: Final = 0.2
"""Seconds between two tries of a transaction that the server gave up for another one."""


class Address(NamedTuple):
    """Where a server is, and how to log in.

    Attributes:
        host: The server.
        port: Its port.
        routing: Whether it is asked for the others of its cluster.
        login: User and password; None for a server without logins.
        database: The database; None for the user's home database.
        tls: Whether to use TLS.
        ca_file: TLS: what to trust instead of the system's certificates.
        pool_size: Most connections.
    """

    host: str
    port: int
    routing: bool
    login: tuple[str, str] | None
    database: str | None
    tls: bool
    ca_file: str | None
    pool_size: int

    def __repr__(self) -> str:
        """Return the address without user and password."""
        return f"<{self.where}>"

    @property
    def where(self) -> str:
        """The address for errors: no user, no password."""
        return f"Neo4j at {self.host}:{self.port}"

    @property
    def uri(self) -> str:
        """The address as the driver takes it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'neo4j' if self.routing else 'bolt'}://{host}:{self.port}"

    def keywords(self, timeout: float) -> dict[str, Any]:
        """Return the keywords of a driver."""
        trust = {} if self.ca_file is None else {"trusted_certificates": TrustCustomCAs(self.ca_file)}
        return {
            "auth": self.login,
            "encrypted": self.tls,
            "connection_timeout": timeout,
            "max_connection_pool_size": self.pool_size,
            "telemetry_disabled": True,
            **trust,
        }


class _Bookmarks(BookmarkManager):
    """What all sessions of a server have seen, for sync and async ones alike."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: frozenset[str] = frozenset()

    def update_bookmarks(self, previous_bookmarks: Collection[str], new_bookmarks: Collection[str]) -> None:
        """Put what a transaction ended with in the place of what it began with."""
        with self._lock:
            self._known = (self._known - frozenset(previous_bookmarks)) | frozenset(new_bookmarks)

    def get_bookmarks(self) -> Collection[str]:
        """Return what a transaction is to wait for."""
        return self._known

    def forget(self) -> None:
        """Wait for nothing any more."""
        with self._lock:
            self._known = frozenset()


class _AsyncBookmarks(AsyncBookmarkManager):
    """The same, as async sessions want it."""

    def __init__(self, bookmarks: _Bookmarks) -> None:
        self._bookmarks = bookmarks

    async def update_bookmarks(
        self, previous_bookmarks: Collection[str], new_bookmarks: Collection[str]
    ) -> None:
        """As `_Bookmarks.update_bookmarks`."""
        self._bookmarks.update_bookmarks(previous_bookmarks, new_bookmarks)

    async def get_bookmarks(self) -> Collection[str]:
        """As `_Bookmarks.get_bookmarks`."""
        return self._bookmarks.get_bookmarks()


class Server:
    """A database of a server, reached by clients that are made when they are needed.

    Args:
        address: Where it is.
        timeout: Seconds for what is outside of an exchange.
        client: A client of the user's, which is used and not closed.
    """

    def __init__(self, address: Address, *, timeout: float, client: object = None) -> None:
        if client is not None and not isinstance(client, Driver | AsyncDriver):
            msg = f"client must be a neo4j.Driver or a neo4j.AsyncDriver, not {type(client).__name__}"
            raise ConfigurationError(msg)
        self.where = address.where if client is None else "the client's Neo4j"
        self.timeout = timeout
        self._address = address
        self._bookmarks = _Bookmarks()
        self._async_bookmarks = _AsyncBookmarks(self._bookmarks)
        self._clients: Clients[Driver, AsyncDriver] = Clients(
            where=self.where,
            make=lambda: self._made(cast("Any", GraphDatabase).driver),
            close=lambda driver: driver.close(),
            amake=lambda: self._made(cast("Any", AsyncGraphDatabase).driver),
            aclose=lambda driver: driver.close(),
            given=client if isinstance(client, Driver) else None,
            agiven=client if isinstance(client, AsyncDriver) else None,
        )
        self.has_sync = self._clients.has_sync
        self.has_async = self._clients.has_async
        self._closing = False
        self._idle = threading.Condition()
        self._busy = 0
        self._running: set[asyncio.Future[None]] = set()

    @property
    def native(self) -> object:
        """The driver's client: the user's, or that of sync operations."""
        return self._clients.native

    def _made(self, kind: Any) -> Any:
        """Return a new client; it does not connect yet.

        Raises:
            ConfigurationError: The driver does not take what the options say, such as a file that is not there.
        """
        try:
            return kind(self._address.uri, **self._address.keywords(self.timeout))
        except (neo4j.exceptions.DriverError, ValueError, TypeError, OSError) as error:
            msg = f"the driver refuses the options of {self.where} ({type(error).__name__})"
            raise ConfigurationError(msg, hint="check host, port and the file of certificates") from error

    def close(self) -> None:
        """Close the clients of this library; those of event loops that still run follow soon.

        What is under way ends first: the driver's client may not be closed beside it.
        """
        self._closing = True
        self._wait()
        self._clients.close()

    def _wait(self) -> None:
        with self._idle:
            self._idle.wait_for(lambda: self._busy == 0, self.timeout + _GRACE)

    async def aclose(self) -> None:
        """As `close`, and waits for the client of the running loop."""
        self._closing = True
        here = asyncio.get_running_loop()
        if running := {one for one in self._running if one.get_loop() is here}:
            await asyncio.wait(running, timeout=self.timeout + _GRACE)
        await asyncio.to_thread(self._wait)
        await self._clients.aclose()

    # --- scripts ----------------------------------------------------------------------------------------

    def run(self, script: Script[T]) -> T:
        """Carry out a script within what is left of the exchange."""
        driver = self._clients.sync()
        exchange = _Exchange(self)

        def ask(asked: Statement | Unit) -> Any:
            unit = _as_unit(asked)
            while True:
                attempt = exchange.attempt(unit)
                try:
                    with (
                        self._under_way(),
                        _opened(driver, self._session(unit, attempt, self._bookmarks)) as session,
                    ):
                        begin = session.execute_write if unit.writes else session.execute_read
                        with _cut_off(session, attempt):
                            answer = begin(attempt.timed(attempt.carried_out))
                except EntrepotError:
                    raise
                except Exception as error:
                    if (pause := exchange.pause(attempt, error)) is None:
                        raise exchange.fault(attempt, error) from error
                    time.sleep(pause)
                else:
                    exchange.done(unit)
                    return answer

        return carry_out(script, ask)

    async def arun(self, script: Script[T]) -> T:
        """As `run`."""
        driver = await self._clients.here()
        exchange = _Exchange(self)

        async def ask(asked: Statement | Unit) -> Any:
            unit = _as_unit(asked)
            while True:
                attempt = exchange.attempt(unit)
                options = self._session(unit, attempt, self._async_bookmarks)
                try:
                    async with self._aunder_way(), asyncio.timeout(attempt.left + _GRACE):
                        answer = await _to_the_end(attempt, _transaction(driver, options, unit, attempt))
                except EntrepotError:
                    raise
                except Exception as error:
                    if (pause := exchange.pause(attempt, error)) is None:
                        raise exchange.fault(attempt, error) from error
                    await asyncio.sleep(pause)
                else:
                    exchange.done(unit)
                    return answer

        return await acarry_out(script, ask)

    @contextmanager
    def _under_way(self) -> Generator[None]:
        """Keep `close` waiting.

        Raises:
            ClosedError: It was called already.
        """
        with self._idle:
            self._check_open()
            self._busy += 1
        token = _ours.set(True)
        try:
            yield
        finally:
            _ours.reset(token)
            with self._idle:
                self._busy -= 1
                self._idle.notify_all()

    @asynccontextmanager
    async def _aunder_way(self) -> AsyncGenerator[None]:
        """As `_under_way`, for `aclose`."""
        self._check_open()
        over = asyncio.get_running_loop().create_future()
        self._running.add(over)
        token = _ours.set(True)
        try:
            yield
        finally:
            _ours.reset(token)
            self._running.discard(over)
            if not over.done():
                over.set_result(None)

    def _check_open(self) -> None:
        if self._closing:
            msg = f"the connections to {self.where} are closed"
            raise ClosedError(msg)

    def _session(self, unit: Unit, attempt: _Attempt, bookmarks: object) -> dict[str, Any]:
        """Return the options of a session; tries are counted here, so the driver makes none of its own."""
        return {
            "database": self._address.database,
            "bookmark_manager": bookmarks,
            "fetch_size": unit.rows,
            "connection_acquisition_timeout": attempt.left,
            "max_transaction_retry_time": -1.0,
            "notifications_min_severity": "OFF",
        }

    @property
    def is_closed(self) -> bool:
        """Whether it was closed, perhaps under a call."""
        return self._closing

    def forget_bookmarks(self) -> None:
        """Wait for no earlier transaction any more."""
        self._bookmarks.forget()


def _opened(driver: Driver, options: dict[str, Any]) -> neo4j.Session:
    return cast("neo4j.Session", cast("Any", driver).session(**options))


def _aopened(driver: AsyncDriver, options: dict[str, Any]) -> neo4j.AsyncSession:
    return cast("neo4j.AsyncSession", cast("Any", driver).session(**options))


async def _transaction(driver: AsyncDriver, options: dict[str, Any], unit: Unit, attempt: _Attempt) -> Any:
    async with _aopened(driver, options) as session:
        begin = session.execute_write if unit.writes else session.execute_read
        return await begin(attempt.timed(attempt.acarried_out))


async def _to_the_end(attempt: _Attempt, transaction: Coroutine[Any, Any, T]) -> T:
    """Return what a transaction returns; one that is cancelled has its connection first.

    The driver forgets the socket of a connection that is cancelled before it is made.
    """
    task = asyncio.ensure_future(transaction)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        begun = asyncio.ensure_future(attempt.begun.wait())
        await asyncio.wait({task, begun}, return_when=asyncio.FIRST_COMPLETED)
        begun.cancel()
        task.cancel()
        await asyncio.wait({task})
        if not task.cancelled():
            task.exception()  # nobody asks for it any more
        raise


def _as_unit(asked: Statement | Unit) -> Unit:
    if isinstance(asked, Unit):
        return asked

    def alone() -> Script[Any]:
        return (yield asked)

    return Unit(alone, asked.writes, asked.writes, asked.rows)


class _Attempt:
    """One try of a transaction: its time, and how far it came."""

    def __init__(self, unit: Unit, left: float) -> None:
        self._unit = unit
        self.left = left
        self.changes = unit.changes
        self.begun = asyncio.Event()
        self.ending = False
        self.cut = False

    def timed(self, function: Any) -> Any:
        """Return a function that the driver gives a transaction, with the time that the server allows it."""
        return unit_of_work(timeout=max(self.left, 0.001))(function)

    def carried_out(self, transaction: Any) -> Any:
        """Carry out the unit in a transaction."""
        answer = carry_out(
            self._unit.script(), lambda asked: transaction.run(asked.text, asked.parameters).values()
        )
        self.ending = True
        return answer

    async def acarried_out(self, transaction: Any) -> Any:
        """As `carried_out`."""
        self.begun.set()

        async def ask(asked: Statement) -> Any:
            result = await transaction.run(asked.text, asked.parameters)
            return await result.values()

        answer = await acarry_out(self._unit.script(), ask)
        self.ending = True
        return answer


class _Exchange:
    """What is known of an exchange under way: until when it may go on, and whether it wrote."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._until = time.monotonic() + remaining(server.timeout)
        self._wrote = False
        self._tries = 0

    def attempt(self, unit: Unit) -> _Attempt:
        """Begin a transaction.

        Raises:
            OperationTimeoutError: There is no time left for it.
        """
        left = self._until - time.monotonic()
        if left <= 0.0:
            msg = f"{self._server.where} had no time left for all that was to be done"
            raise OperationTimeoutError(msg, outcome="unknown" if self._wrote else "not_done")
        return _Attempt(unit, left)

    def done(self, unit: Unit) -> None:
        """Note that a transaction is over."""
        self._wrote = self._wrote or unit.changes
        self._tries = 0

    def pause(self, attempt: _Attempt, error: Exception) -> float | None:
        """Return the seconds after which to begin a transaction anew, or None to give up."""
        if attempt.cut or not faults.gave_way(error):
            return None
        pause = min(_FIRST_PAUSE * 2**self._tries, _LONGEST_PAUSE) * random.uniform(0.5, 1.0)  # noqa: S311
        self._tries += 1
        return pause if time.monotonic() + pause < self._until else None

    def fault(self, attempt: _Attempt, error: Exception) -> EntrepotError:
        """Return the error of entrepot for one of the driver's."""
        lost: Outcome = "unknown" if attempt.ending and attempt.changes else "not_done"
        told: EntrepotError
        if self._server.is_closed:
            told = ClosedError(f"the store on {self._server.where} was closed", outcome=lost)
        elif attempt.cut or isinstance(error, TimeoutError):
            told = OperationTimeoutError(f"no answer from {self._server.where} in time", outcome=lost)
        else:
            if faults.is_stale(error):
                self._server.forget_bookmarks()
            told = faults.remote(error, self._server.where, lost)
        if self._wrote:  # whatever became of this transaction, an earlier one changed something
            told.outcome = "unknown"
        return told


@contextmanager
def _cut_off(session: neo4j.Session, attempt: _Attempt) -> Generator[None]:
    """Break the connection of a session when a transaction has had its time: the driver waits without end.

    It is broken from a timer's thread, which the driver has no call for; so this reaches into it for the socket.
    """
    over = threading.Event()

    def cut() -> None:
        attempt.cut = True
        while not over.is_set():
            with suppress(AttributeError, OSError):
                _socket_of(session).shutdown(socket.SHUT_RDWR)
            over.wait(0.05)

    timer = threading.Timer(attempt.left + _GRACE, cut)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        over.set()
        timer.cancel()


def _socket_of(session: neo4j.Session) -> Any:
    """Return the socket of a session's connection.

    Raises:
        AttributeError: It has none at the moment.
    """
    connection: Any = session
    for name in ("_connection", "socket", "_socket"):
        connection = getattr(connection, name)
    return connection
