"""Connections to a server: clients, the time that a call may take, and how scripts run (E3 to E5).

`Server.run` carries a script out on a `MongoClient`, `Server.arun` on an `AsyncMongoClient` of the running event loop.
Every call may take as long as the exchange has left; the driver hands that on to its waits and to the server.

Whatever client is used, writes are confirmed by the majority of a replica set and reads are asked of its primary, of what
the majority has: so a read sees every write that returned (S7), and nothing that a failover could take back.
"""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar, cast

import pymongo
from bson.codec_options import CodecOptions
from pymongo import AsyncMongoClient, MongoClient, ReadPreference
from pymongo.driver_info import DriverInfo
from pymongo.errors import ConfigurationError as DriverConfigurationError
from pymongo.errors import InvalidURI, PyMongoError
from pymongo.read_concern import ReadConcern
from pymongo.write_concern import WriteConcern

from entrepot.clients import Clients
from entrepot.errors import ClosedError, ConfigurationError, EntrepotError, OperationTimeoutError
from entrepot.exchange import remaining
from entrepot.scripted import acarry_out, carry_out
from entrepot_mongodb import faults
from entrepot_mongodb.commands import Aggregate, Call, Find, Open, Pause, Take
from entrepot_mongodb.watch import Watch

if TYPE_CHECKING:
    from collections.abc import Coroutine, Generator

    from entrepot.errors import Outcome
    from entrepot_mongodb.commands import Script

T = TypeVar("T")

_MAJORITY: Final[dict[str, Any]] = {
    "codec_options": CodecOptions(),
    "read_preference": ReadPreference.PRIMARY,
    "write_concern": WriteConcern("majority"),
    "read_concern": ReadConcern("majority"),
}
_PATIENCE: Final = 2.0
"""Seconds after which a server that was not there is looked for again."""


class Address(NamedTuple):
    """Where a server is, and how to log in.

    Attributes:
        host: The server.
        port: Its port; None is MongoDB's own.
        hosts: Other members, each with or without a port.
        srv: Whether the host names a DNS record.
        database: The database.
        options: Further keywords of the driver's client.
        login: User and password.
        pool_size: Most connections.
    """

    host: str
    port: int | None
    hosts: tuple[str, ...]
    srv: bool
    database: str
    options: dict[str, Any]
    login: tuple[str, str | None] | None
    pool_size: int

    def __repr__(self) -> str:
        """Return the address without user and password."""
        return f"<{self.where}>"

    @property
    def where(self) -> str:
        """The address for errors: no user, no password."""
        port = "" if self.srv else f":{self.port or 27017}"
        return f"MongoDB at {self.host}{port}"

    def keywords(self, timeout: float) -> dict[str, Any]:
        """Return the keywords of a client of the driver."""
        first = f"[{self.host}]" if ":" in self.host else self.host
        if self.srv:
            host: Any = f"mongodb+srv://{first}/"
        else:
            host = [f"{first}:{self.port or 27017}", *self.hosts]
        milliseconds = max(1, round(timeout * 1000))
        login: dict[str, Any] = {}
        if self.login is not None:
            login = {"username": self.login[0]}
            if self.login[1] is not None:
                login["password"] = self.login[1]
        return {
            "host": host,
            "connect": False,
            "maxPoolSize": self.pool_size,
            "connectTimeoutMS": milliseconds,
            "serverSelectionTimeoutMS": milliseconds,
            "retryWrites": True,
            "retryReads": True,
            "appname": "entrepot",
            "driver": DriverInfo("entrepot"),
            **login,
            **self.options,
        }


# --- the driver's own log ---------------------------------------------------------------------------------

_ours: ContextVar[bool] = ContextVar("entrepot_mongodb_ours", default=False)


class _WithoutValues(logging.Filter):
    """Drops what the driver would log of the commands of this library: they hold texts and values (O1)."""

    def filter(self, record: logging.LogRecord) -> bool:  # noqa: ARG002 - whatever it says
        return not _ours.get()


logging.getLogger("pymongo.command").addFilter(_WithoutValues())


@contextmanager
def _within(seconds: float) -> Generator[None]:
    """Bound what the driver does within, and keep it out of the driver's log."""
    token = _ours.set(True)
    try:
        with pymongo.timeout(seconds):
            yield
    finally:
        _ours.reset(token)


# --- the server -------------------------------------------------------------------------------------------


class Server:
    """A server, reached by clients that are made when they are needed.

    Args:
        address: Where it is, and the database.
        timeout: Seconds for what is outside of an exchange.
        client: A client of the user's, which is used and not closed.
    """

    def __init__(self, address: Address, *, timeout: float, client: object = None) -> None:
        if client is not None and not isinstance(client, MongoClient | AsyncMongoClient):
            msg = f"client must be a MongoClient or an AsyncMongoClient, not {type(client).__name__}"
            raise ConfigurationError(msg)
        self.where = address.where if client is None else "the client's MongoDB"
        self.timeout = timeout
        self.database = address.database
        self._address = address
        self._clients: Clients[Any, Any] = Clients(
            where=self.where,
            make=lambda: self._made(MongoClient),
            close=lambda made: made.close(),
            amake=self._made_here,
            aclose=self._close_here,
            given=cast("Any", client) if isinstance(client, MongoClient) else None,
            agiven=cast("Any", client) if isinstance(client, AsyncMongoClient) else None,
        )
        self._calls: set[asyncio.Task[Any]] = set()
        self._guards: dict[int, _Guard] = {}
        self.has_sync = self._clients.has_sync
        self.has_async = self._clients.has_async

    @property
    def native(self) -> object:
        """The driver's client: the user's, or that of sync operations."""
        return self._clients.native

    def _made(self, kind: Any, **more: Any) -> Any:
        """Return a new client, which connects when it is used.

        Raises:
            ConfigurationError: The driver does not take what the options say, such as a file that is not there.
        """
        try:
            return kind(**self._address.keywords(self.timeout), **more)
        except (DriverConfigurationError, InvalidURI, ValueError, TypeError, OSError) as error:
            msg = f"the driver refuses the options of {self.where} ({type(error).__name__})"
            raise ConfigurationError(
                msg, hint="check host, hosts, srv, the login and the files of certificates"
            ) from error
        except PyMongoError as error:
            raise faults.remote(error, self.where, "", "not_done") from error

    def _made_here(self) -> Any:
        """Return a new client of the running event loop."""
        watch = Watch()
        made = self._made(AsyncMongoClient, event_listeners=[watch])
        end = asyncio.get_running_loop().create_task(_close_at_the_end(made))
        self._guards[id(made)] = _Guard(end, watch)
        return made

    async def _close_here(self, made: Any) -> None:
        """Close a client of the running event loop."""
        guard = self._guards.pop(id(made), None)
        if guard is not None and not guard.end.done():  # else the loop ends, and has cancelled all
            await guard.watch.at_rest()
            guard.end.cancel()
            await asyncio.wait([guard.end])
        await made.close()

    def close(self) -> None:
        """Close the clients of this library; those of event loops that still run follow soon."""
        self._clients.close()

    async def aclose(self) -> None:
        """As `close`, and waits for the client of the running loop, and for calls that nobody awaits any more."""
        loop = asyncio.get_running_loop()
        left = [task for task in tuple(self._calls) if task.get_loop() is loop]
        if left:
            await asyncio.wait(left, timeout=_PATIENCE)
        await self._clients.aclose()

    @property
    def is_closed(self) -> bool:
        """Whether it was closed, perhaps under a call."""
        return self._clients.is_closed

    # --- scripts ----------------------------------------------------------------------------------------

    def run(self, script: Script[T], collection: str = "") -> T:
        """Carry out a script within what is left of the exchange."""
        state = _State(self, collection)
        database = self._clients.sync().get_database(self.database, **_MAJORITY)

        def ask(step: Any) -> Any:
            left = state.sending(step)
            if isinstance(step, Pause):
                time.sleep(min(step.seconds, left))
                return None
            try:
                with _within(left):
                    answer = _do(database, step, state)
            except Exception as error:
                raise state.fault(error) from error
            state.answered()
            return answer

        try:
            return carry_out(script, ask)
        finally:
            for cursor in state.cursors:
                with suppress(PyMongoError), _within(_PATIENCE):
                    cursor.close()

    async def arun(self, script: Script[T], collection: str = "") -> T:
        """As `run`."""
        state = _State(self, collection)
        client = await self._clients.here()
        database = client.get_database(self.database, **_MAJORITY)

        async def ask(step: Any) -> Any:
            left = state.sending(step)
            if isinstance(step, Pause):
                await asyncio.sleep(min(step.seconds, left))
                return None
            try:
                with _within(left):
                    answer = await self._to_its_end(_ado(database, step, state))
            except Exception as error:
                if (guard := self._guards.get(id(client))) is not None:
                    await guard.watch.at_rest()  # the loop may end with this
                raise state.fault(error) from error
            state.answered()
            return answer

        try:
            return await acarry_out(script, ask)
        finally:
            for cursor in state.cursors:
                with suppress(PyMongoError), _within(_PATIENCE):
                    await self._to_its_end(cursor.close())

    async def _to_its_end(self, call: Coroutine[Any, Any, T]) -> T:
        """Return what a call of the driver returns; if it is not awaited any more, it ends all the same.

        A call that is cancelled would cost its connection, and one that connects would leave its socket open.
        """
        task = asyncio.get_running_loop().create_task(call)
        self._calls.add(task)
        task.add_done_callback(self._calls.discard)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            task.add_done_callback(_ignore)
            raise


class _Guard(NamedTuple):
    """What belongs to a client of an event loop.

    Attributes:
        end: The task that closes it when the loop ends.
        watch: Tells when it can be closed.
    """

    end: asyncio.Task[None]
    watch: Watch


async def _close_at_the_end(made: Any) -> None:
    """Close a client when its event loop ends, which cancels all tasks first.

    A task of the driver that watches a server may miss that it was cancelled, and keep the loop for ten seconds more.
    """
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        await made.close()
        raise


def _ignore(task: asyncio.Task[Any]) -> None:
    """Take note of an error that nobody waits for, so that asyncio does not log it."""
    if not task.cancelled():
        task.exception()


def _do(database: Any, step: Any, state: _State) -> Any:
    """Carry out one step of a script."""
    if isinstance(step, Call):
        return getattr(_target(database, step), step.method)(*step.given, **step.options)
    if isinstance(step, Find):
        return _cursor(database, step).to_list()
    if isinstance(step, Open):
        return state.opened(_cursor(database, step.find))
    if isinstance(step, Take):
        return state.taken(step, step.cursor.to_list(step.most))
    return _plain(database, step).aggregate(step.pipeline).to_list()


async def _ado(database: Any, step: Any, state: _State) -> Any:
    """As `_do`."""
    if isinstance(step, Call):
        return await getattr(_target(database, step), step.method)(*step.given, **step.options)
    if isinstance(step, Find):
        return await _cursor(database, step).to_list()
    if isinstance(step, Open):
        return state.opened(_cursor(database, step.find))
    if isinstance(step, Take):
        return state.taken(step, await step.cursor.to_list(step.most))
    return await (await _plain(database, step).aggregate(step.pipeline)).to_list()


def _target(database: Any, call: Call) -> Any:
    return database if call.collection is None else database[call.collection]


def _plain(database: Any, step: Aggregate) -> Any:
    return database[step.collection].with_options(read_concern=ReadConcern())


def _cursor(database: Any, find: Find) -> Any:
    return database[find.collection].find(
        find.filter, find.fields, sort=find.sort, limit=find.limit, batch_size=find.batch
    )


class _State:
    """What is known of an exchange under way: until when it may go on, whether it wrote, and its cursors."""

    def __init__(self, server: Server, collection: str) -> None:
        self._server = server
        self._collection = collection
        self._until = time.monotonic() + remaining(server.timeout)
        self._lost: Outcome = "not_done"
        self._writes = self._wrote = False
        self.cursors: list[Any] = []

    def sending(self, step: Any) -> float:
        """Note that a call is made; return the seconds it may take.

        Raises:
            OperationTimeoutError: None are left.
        """
        left = self._until - time.monotonic()
        if left <= 0.0:
            msg = f"{self._server.where} had no time left for all that was to be done"
            raise OperationTimeoutError(msg, outcome=self._lost)
        self._writes = isinstance(step, Call) and step.writes
        if self._writes:
            self._lost = "unknown"
        return left

    def answered(self) -> None:
        """Note that an answer came."""
        self._wrote = self._wrote or self._writes

    def opened(self, cursor: Any) -> Any:
        """Note a cursor that is to be closed."""
        self.cursors.append(cursor)
        return cursor

    def taken(self, step: Take, found: list[Any]) -> list[Any]:
        """Return what a cursor gave, and let go of one that is at its end."""
        if not step.cursor.alive:
            self.cursors = [one for one in self.cursors if one is not step.cursor]
        return found

    def fault(self, error: Exception) -> EntrepotError:
        """Return the error of entrepot for one of the driver's."""
        if self._server.is_closed:  # the client was closed under it
            return ClosedError(f"the store on {self._server.where} was closed", outcome=self._lost)
        told = faults.remote(error, self._server.where, self._collection, self._lost)
        if self._wrote and not isinstance(told, faults.DuplicateKeyError):
            told.outcome = "unknown"  # whatever became of this call, an earlier one changed something
        return told
