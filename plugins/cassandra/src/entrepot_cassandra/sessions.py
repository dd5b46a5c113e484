"""The driver's session: how statements are sent, and how scripts run on it (E3 to E5).

The driver answers by callbacks, from a thread of its own. `Server.run` waits for them in a queue, `Server.arun` in its
event loop, which the callback wakes; so one session serves threads and all event loops. Connecting and preparing a
statement for the first time block, and are done in a thread for async callers.

Every statement waits for as long as the exchange has left, and the driver never tries again by itself: only the
scripts know what may be done twice.
"""

from __future__ import annotations

import asyncio
import queue
import ssl
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from entrepot.errors import (
    ClosedError,
    ConfigurationError,
    EntrepotError,
    OperationTimeoutError,
    UnreachableError,
)
from entrepot.exchange import remaining
from entrepot.scripted import acarry_out, carry_out
from entrepot_cassandra import faults
from entrepot_cassandra.commands import Ask, Batch, Pause, Rows, Schema, Together
from entrepot_cassandra.connections import connection_class
from entrepot_cassandra.driver import (
    EXEC_PROFILE_DEFAULT,
    BatchStatement,
    BatchType,
    Cluster,
    ConsistencyLevel,
    DCAwareRoundRobinPolicy,
    DriverException,
    ExecutionProfile,
    ExponentialReconnectionPolicy,
    FallthroughRetryPolicy,
    NoHostAvailable,
    PlainTextAuthProvider,
    ResultSet,
    Session,
    SimpleStatement,
    tuple_factory,
)
from entrepot_cassandra.names import quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from entrepot.errors import Outcome
    from entrepot_cassandra.commands import Script

    Command = Ask | Together | Batch | Schema | Pause

T = TypeVar("T")

PROTOCOL: Final = 5
"""The version of the native protocol: that of Cassandra 4 and newer."""
_MOST_PREPARED: Final = 2000
_FIRST_WAIT: Final = 1.0
_LONGEST_WAIT: Final = 60.0
_STEP: Final = 0.05
_AT_ONCE: Final = 100
"""Statements of a batch that are made in the event loop."""
_BURST: Final = 4
"""Statements that are sent from the event loop at a time."""


class Address(NamedTuple):
    """Where a server is, and how to log in.

    Attributes:
        host: A node.
        port: Its port.
        login: User and password.
        datacenter: The data centre whose nodes are asked.
        tls: Whether to use TLS.
        ca_file: TLS: what to trust instead of the system's certificates.
        cert_file: TLS: the client's own certificate.
        key_file: TLS: its key.
        check_hostname: TLS: whether the certificate must be the host's.
    """

    host: str
    port: int
    login: tuple[str, str] | None
    datacenter: str | None
    tls: bool
    ca_file: str | None
    cert_file: str | None
    key_file: str | None
    check_hostname: bool

    def __repr__(self) -> str:
        """Return the address without the password."""
        return f"<{self.where}>"

    @property
    def where(self) -> str:
        """The address for errors: no user, no password."""
        return f"Cassandra at {self.host}:{self.port}"

    def cluster(self, timeout: float) -> Any:
        """Return the driver's cluster, which is not connected yet.

        Raises:
            ConfigurationError: A file of certificates cannot be read.
        """
        more: dict[str, Any] = {}
        if self.tls:
            try:
                context = ssl.create_default_context(cafile=self.ca_file)
                if self.cert_file is not None:
                    context.load_cert_chain(self.cert_file, self.key_file)
            except (OSError, ssl.SSLError) as error:
                msg = f"the files of certificates cannot be read ({type(error).__name__})"
                raise ConfigurationError(msg, hint="check ca_file, cert_file and key_file") from error
            context.check_hostname = self.check_hostname
            more = {"ssl_context": context, "ssl_options": {"server_hostname": self.host}}
        if self.login is not None:
            more["auth_provider"] = PlainTextAuthProvider(*self.login)
        profile = ExecutionProfile(
            load_balancing_policy=DCAwareRoundRobinPolicy(local_dc=self.datacenter or ""),
            retry_policy=FallthroughRetryPolicy(),
            row_factory=tuple_factory,
            request_timeout=timeout,
        )
        return Cluster(
            [self.host],
            port=self.port,
            protocol_version=PROTOCOL,
            execution_profiles={EXEC_PROFILE_DEFAULT: profile},
            connect_timeout=timeout,
            control_connection_timeout=timeout,
            max_schema_agreement_wait=timeout,
            connection_class=connection_class(),
            reconnection_policy=ExponentialReconnectionPolicy(_FIRST_WAIT, _LONGEST_WAIT),
            # What tables there are, the scripts know; to read all of them takes long where there are many.
            schema_metadata_enabled=False,
            token_metadata_enabled=False,
            prepare_on_all_hosts=False,
            reprepare_on_up=False,
            **more,
        )


class Server:
    """A server, reached by one session that is made when it is needed.

    Args:
        address: Where it is.
        keyspace: The keyspace that is worked in.
        local: Whether only replicas of this data centre count.
        replication: Replicas of a keyspace that is missing and shall be made; None makes none.
        concurrency: Statements of one call that are under way at a time.
        timeout: Seconds for what is outside of an exchange.
        client: A session of the user's, which is used and not closed.
    """

    def __init__(  # noqa: PLR0913 - what a session needs
        self,
        address: Address,
        *,
        keyspace: str,
        local: bool,
        replication: int | None,
        concurrency: int,
        timeout: float,
        client: object = None,
    ) -> None:
        if client is not None and not isinstance(client, Session):
            msg = f"client must be a cassandra.cluster.Session, not {type(client).__name__}"
            raise ConfigurationError(msg)
        self.where = address.where if client is None else "the client's Cassandra"
        self.timeout = timeout
        self.keyspace = keyspace
        self.concurrency = concurrency
        self._address = address
        self._replication = replication
        self._quorum = ConsistencyLevel.LOCAL_QUORUM if local else ConsistencyLevel.QUORUM
        self._serial = ConsistencyLevel.LOCAL_SERIAL if local else ConsistencyLevel.SERIAL
        self._given: Any = client
        self._lock = threading.Lock()
        self._cluster: Any = None
        self._session: Any = None
        self._profile: Any = None
        self._prepared: dict[tuple[str, str], Any] = {}
        self._closed = False

    # --- connecting -------------------------------------------------------------------------------------

    @property
    def is_closed(self) -> bool:
        """Whether it was closed, perhaps under a call."""
        return self._closed

    @property
    def native(self) -> object:
        """The driver's session: the user's, or this library's."""
        return self._connected(self.timeout)

    def connect(self) -> None:
        """Connect, and see that the keyspace is there.

        Raises:
            UnreachableError: No node answers.
            AuthenticationError: The login was refused.
            ConfigurationError: There is no such keyspace.
        """
        self.run(self._keyspace())

    async def aconnect(self) -> None:
        """As `connect`."""
        await self.arun(self._keyspace())

    def _keyspace(self) -> Script[None]:
        found = yield Ask(
            "SELECT durable_writes FROM system_schema.keyspaces WHERE keyspace_name = ?",
            (self.keyspace,),
            level="one",
        )
        if found.rows:
            return
        if self._replication is None:
            msg = f"{self.where} has no keyspace {self.keyspace!r}"
            raise ConfigurationError(msg, hint="make it, or open with create_keyspace=True and replication=")
        yield Schema(
            f"CREATE KEYSPACE IF NOT EXISTS {quoted(self.keyspace)} WITH replication = "
            f"{{'class': 'NetworkTopologyStrategy', 'replication_factor': {self._replication:d}}}"
        )

    def _connected(self, timeout: float) -> Any:
        """Return the session; blocks until it is there."""
        if self._session is not None and not self._closed:
            return self._session
        if not self._lock.acquire(timeout=timeout):
            msg = f"no connection to {self.where} in time"
            raise UnreachableError(msg)
        try:
            if self._closed:
                msg = f"the connections to {self.where} are closed"
                raise ClosedError(msg)
            if self._session is None:
                self._session = self._given if self._given is not None else self._made(timeout)
                self._profile = _profile_of(self._session)
            return self._session
        finally:
            self._lock.release()

    def _made(self, timeout: float) -> Any:
        cluster: Any = None
        try:
            cluster = self._address.cluster(timeout)
            session = cluster.connect()
        except Exception as error:
            if cluster is not None:
                cluster.shutdown()
            raise faults.remote(error, self.where, "not_done") from error
        cluster.connect_timeout = self.timeout
        session._default_timeout = self.timeout  # noqa: SLF001 - of preparing; the option cannot be set with profiles
        self._cluster = cluster
        return session

    @property
    def reconnects(self) -> bool:
        """Whether a session without a node is given up for a new one; the driver's own way is to try now and then."""
        return self._given is None and not self._closed

    def _leave(self, session: object) -> None:
        """Give up a session, if it is still the one in use."""
        with self._lock:
            if session is None or self._session is not session or self._given is not None:
                return
            cluster, self._cluster, self._session = self._cluster, None, None
            self._prepared = {}
        threading.Thread(target=cluster.shutdown, daemon=True).start()  # it may wait for what it tries

    def close(self) -> None:
        """Close the session, unless it is the user's."""
        with self._lock:
            self._closed = True
            cluster, self._cluster = self._cluster, None
            self._session = None
            self._prepared = {}
        if cluster is not None:
            cluster.shutdown()

    # --- statements -------------------------------------------------------------------------------------

    def _prepare(self, session: Any, command: Command) -> None:
        """Prepare what statements a command has and were not prepared yet; blocks."""
        for ask in _asks(command):
            if (ask.cql, ask.level) in self._prepared:
                continue
            prepared = session.prepare(ask.cql)
            prepared.consistency_level = ConsistencyLevel.LOCAL_ONE if ask.level == "one" else self._quorum
            if ask.level == "serial":
                prepared.consistency_level = self._serial
            if ask.writes:
                prepared.serial_consistency_level = self._serial
            with self._lock:
                if len(self._prepared) >= _MOST_PREPARED:
                    self._prepared = {}
                self._prepared[ask.cql, ask.level] = prepared

    def _ready(self, command: Command, state: _State, dead: object = None) -> Any:
        """Return a session on which a command is prepared; a new one, if no node is there any more. Blocks.

        Args:
            command: What is to be sent.
            state: The exchange.
            dead: A session on which no node took it.
        """
        try:
            if dead is not None:
                self._leave(dead)
            session = self._connected(max(state.left(), _STEP))
            self._prepare(session, command)
        except EntrepotError:
            raise
        except Exception as error:
            if dead is None and self.reconnects and isinstance(error, NoHostAvailable):
                return self._ready(command, state, self._session)
            raise state.fault(error, sent=False) from error
        return session

    def _is_prepared(self, command: Command) -> bool:
        return all((ask.cql, ask.level) in self._prepared for ask in _asks(command))

    def send(
        self,
        session: Any,
        ask: Ask | Batch | Schema,
        left: float,
        answer: Callable[[object], object],
    ) -> None:
        """Send a statement; what comes of it, `Rows` or the driver's exception, goes to `answer`, in any thread."""
        try:
            future = session.execute_async(
                self._statement(ask),
                timeout=left,
                execution_profile=self._profile,
                paging_state=ask.state if isinstance(ask, Ask) else None,
            )
        except Exception as error:  # noqa: BLE001 - as if it had come as an answer
            answer(error)
            return

        def arrived(rows: Any) -> None:
            found: Any = ResultSet(future, rows)
            answer(Rows([tuple(row) for row in found.current_rows], found.paging_state))

        future.add_callbacks(arrived, answer)

    def _statement(self, ask: Ask | Batch | Schema) -> Any:
        if isinstance(ask, Schema):
            return SimpleStatement(ask.cql)
        if isinstance(ask, Ask):
            bound = self._prepared[ask.cql, ask.level].bind(ask.values)
            if ask.page is not None:
                bound.fetch_size = ask.page
            return bound
        batch: Any = BatchStatement(
            BatchType.UNLOGGED, consistency_level=self._quorum, serial_consistency_level=self._serial
        )
        for part in ask.asks:
            batch.add(self._prepared[part.cql, part.level].bind(part.values))
        return batch

    # --- scripts ----------------------------------------------------------------------------------------

    def run(self, script: Script[T]) -> T:
        """Carry out a script within what is left of the exchange."""
        state = _State(self)

        def ask(command: Command) -> Any:
            left = state.sending(command)
            if isinstance(command, Pause):
                time.sleep(min(command.seconds, left))
                return None
            flight = _Flight(self, command, state, self._ready(command, state))
            arrived: queue.SimpleQueue[tuple[int, object]] = queue.SimpleQueue()
            flight.start(arrived.put)
            while True:
                while flight.under_way:
                    try:
                        flight.take(arrived.get(timeout=max(state.left(), 0.0) + _STEP))
                    except queue.Empty:
                        flight.give_up()
                if not flight.is_stranded():
                    return flight.answer()
                flight.send_stranded(self._ready(command, state, flight.session))

        return carry_out(script, ask)

    async def arun(self, script: Script[T]) -> T:
        """As `run`."""
        state = _State(self)
        loop = asyncio.get_running_loop()

        async def ask(command: Command) -> Any:
            left = state.sending(command)
            if isinstance(command, Pause):
                await asyncio.sleep(min(command.seconds, left))
                return None
            session = self._session
            if session is None or not self._is_prepared(command):
                session = await asyncio.to_thread(self._ready, command, state)
            flight = _Flight(self, command, state, session)
            arrived: asyncio.Queue[tuple[int, object]] = asyncio.Queue()

            def put(what: tuple[int, object]) -> None:
                with suppress(RuntimeError):  # the loop is closed: nobody waits any more
                    loop.call_soon_threadsafe(arrived.put_nowait, what)

            long = isinstance(command, Batch) and len(command.asks) > _AT_ONCE

            async def fly() -> None:
                if long:
                    await asyncio.to_thread(flight.start, put)
                else:
                    for _ in flight.starting(put):
                        await asyncio.sleep(0)
                while True:
                    while flight.under_way:
                        try:
                            async with asyncio.timeout(max(state.left(), 0.0) + _STEP):
                                what = await arrived.get()
                        except TimeoutError:
                            flight.give_up()
                        else:
                            flight.take(what)
                            await asyncio.sleep(0)  # a queue that holds more would not let others run
                    if not flight.is_stranded():
                        return
                    fresh = await asyncio.to_thread(self._ready, command, state, flight.session)
                    await asyncio.to_thread(flight.send_stranded, fresh)

            if not command.writes:
                await fly()
            else:
                # A write is ended before a cancelled caller goes on, so that no part of a batch is left out (E4).
                flying = loop.create_task(fly())
                try:
                    await asyncio.shield(flying)
                except asyncio.CancelledError:
                    await asyncio.wait([flying])
                    flying.exception()  # nobody asks for it any more
                    raise
            return flight.answer()

        return await acarry_out(script, ask)


def _asks(command: Command) -> Sequence[Ask]:
    if isinstance(command, Ask):
        return (command,)
    return command.asks if isinstance(command, Together | Batch) else ()


def _profile_of(session: Any) -> Any:
    """Return the profile of our statements: that of the session, rows as tuples, and nothing tried again."""
    try:
        profile = session.execution_profile_clone_update(
            EXEC_PROFILE_DEFAULT, row_factory=tuple_factory, retry_policy=FallthroughRetryPolicy()
        )
    except (ValueError, DriverException, AttributeError) as error:
        msg = "the client's cluster has no execution profiles"
        raise ConfigurationError(msg, hint="make it with Cluster(execution_profiles=...)") from error
    return profile


class _Flight:
    """A command under way: what is still to be sent, what was answered, and what is waited for.

    All but the callbacks happens in one thread at a time: the caller's, or the event loop's and one that it waits for.
    """

    def __init__(
        self, server: Server, command: Ask | Together | Batch | Schema, state: _State, session: Any
    ) -> None:
        self.session = session
        self._server = server
        self._state = state
        self._command = command
        self._parts: Sequence[Ask | Batch | Schema] = (
            command.asks if isinstance(command, Together) else (command,)
        )
        self._waiting: Iterator[int] = iter(range(len(self._parts)))
        self._answers: list[object] = [None] * len(self._parts)
        self._open: set[int] = set()
        self._put: Callable[[tuple[int, object]], object] = lambda _: None
        self._stranded: list[int] = []
        self._may_strand = True

    @property
    def under_way(self) -> bool:
        """Whether an answer is still waited for."""
        return bool(self._open)

    def start(self, put: Callable[[tuple[int, object]], object]) -> None:
        """Send the first statements; answers go to `put`, in any thread, with the number of the statement."""
        for _ in self.starting(put):
            pass

    def starting(self, put: Callable[[tuple[int, object]], object]) -> Iterator[None]:
        """As `start`; stops after some statements, as making each takes time (E3)."""
        self._put = put
        for number in range(1, self._server.concurrency + 1):
            if not self._next():
                return
            if number % _BURST == 0:
                yield

    def _next(self) -> bool:
        """Send a statement; return whether there was one."""
        number = next(self._waiting, None)
        if number is None:
            return False
        self._open.add(number)
        if self._state.left() <= 0.0:
            self._put((number, self._state.late(sent=False)))
        else:
            self._again(number)
        return True

    def _again(self, number: int) -> None:
        self._server.send(
            self.session,
            self._parts[number],
            max(self._state.left(), _STEP),
            lambda what: self._put((number, what)),
        )

    def take(self, arrived: tuple[int, object]) -> None:
        """Take an answer, and send the next statement."""
        number, what = arrived
        if number not in self._open:
            return
        if self._may_strand and self._server.reconnects and isinstance(what, NoHostAvailable):
            self._open.discard(number)
            self._stranded.append(number)
            self._next()
            return
        self._open.discard(number)
        if isinstance(what, BaseException):
            told = self._state.fault(what, sent=True)
            if told is not what:
                told.__cause__ = what
            what = told
        self._answers[number] = what
        self._next()

    def is_stranded(self) -> bool:
        """Whether no node was there to take some statements: then they are sent once more, on a new session."""
        return bool(self._stranded)

    def send_stranded(self, session: Any) -> None:
        """Send them again, on another session."""
        self.session = session
        self._may_strand = False
        self._waiting = iter(self._stranded)
        self._stranded = []
        for _ in range(self._server.concurrency):
            self._next()

    def give_up(self) -> None:
        """Wait no longer: the time is up."""
        for number in self._open:
            self._answers[number] = self._state.late(sent=True)
        self._open = set()
        for number in self._waiting:
            self._answers[number] = self._state.late(sent=False)

    def answer(self) -> Any:
        """Return what came, or raise the error of a single statement."""
        if isinstance(self._command, Together):
            if self._command.writes and any(isinstance(one, Rows) for one in self._answers):
                self._state.wrote = True
            return self._answers
        only = self._answers[0]
        if isinstance(only, EntrepotError):
            raise only from only.__cause__
        if self._command.writes:
            self._state.wrote = True
        return only


class _State:
    """What is known of an exchange under way: until when it may go on, and whether it wrote."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._until = time.monotonic() + remaining(server.timeout)
        self._writes = False
        self.wrote = False

    def left(self) -> float:
        """Return the seconds that are left."""
        return self._until - time.monotonic()

    def sending(self, command: Command) -> float:
        """Note that a command is sent; return the seconds it may take.

        Raises:
            OperationTimeoutError: None are left.
        """
        left = self.left()
        if left <= 0.0:
            raise self.late(sent=False)
        self._writes = command.writes
        return left

    def late(self, *, sent: bool) -> OperationTimeoutError:
        """Return the error for what had no time left."""
        msg = f"no answer from {self._server.where} in time"
        return OperationTimeoutError(msg, outcome=self._lost(sent=sent))

    def _lost(self, *, sent: bool) -> Outcome:
        return "unknown" if self.wrote or (sent and self._writes) else "not_done"

    def fault(self, error: BaseException, *, sent: bool) -> EntrepotError:
        """Return the error of entrepot for one of the driver's."""
        lost = self._lost(sent=sent)
        if self._server.is_closed and not isinstance(error, ClosedError):
            return ClosedError(f"the connections to {self._server.where} were closed", outcome=lost)
        if isinstance(error, KeyError | AttributeError):  # another thread gave the session up in between
            return faults.broken(self._server.where, lost)
        told = faults.remote(error, self._server.where, lost)
        if self.wrote:  # whatever became of this statement, an earlier one changed something
            told.outcome = "unknown"
        return told
