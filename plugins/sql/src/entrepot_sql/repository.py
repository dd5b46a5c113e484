"""`SqlChatMemoryRepository`: conversations in a SQL database."""

from __future__ import annotations

import logging
import random
import time
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import msgspec
from sqlalchemy import URL, Engine, LargeBinary, inspect, literal, make_url, select
from sqlalchemy.exc import ArgumentError, NoSuchModuleError

from entrepot.capabilities import Capabilities
from entrepot.errors import (
    ConfigurationError,
    CorruptDataError,
    DriverNotFoundError,
    OperationTimeoutError,
)
from entrepot.exchange import DEFAULT_TIMEOUT, remaining
from entrepot.memory.cursors import name_behind, page_of
from entrepot.memory.questions import Question, answers
from entrepot.memory.repository import ChatMemoryRepository, Entry
from entrepot.messages import decode_message
from entrepot_sql import schema
from entrepot_sql.dialects import dialect_of, translated

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from sqlalchemy import Connection

    from entrepot.messages import Role
    from entrepot.records import Page

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_ANYWHERE: Final = "-1"
"""Where the first look for what has expired begins: a program that runs briefly shall not always see the same."""
_SWEEP_CONVERSATIONS: Final = 1000
"""Conversations that one look passes over."""
_SWEEP_MESSAGES: Final = 500
"""Messages that one transaction removes."""
_FETCHED: Final = 100
"""Messages that a question reads at a time."""
_LONGEST: Final = 2.0**62
"""Microseconds that a conversation lives at most: what is left of 64 bits beside the time of day."""

_log = logging.getLogger(__name__)


class SqlChatMemoryRepository(ChatMemoryRepository):
    """Conversations in a SQL database, over SQLAlchemy Core.

    Thread-safe; every operation is one transaction. Expiry is a property of the conversation: a write
    by a repository with `ttl` sets it, one without `ttl` keeps what is set, and each write starts it
    anew (M8). What has expired is removed a little at a time by later writes, or by `remove_expired`.

    Args:
        database: A SQLAlchemy URL such as ``sqlite:///chat.db``, or an Engine, which stays open when
            this is closed (E5) and whose settings decide how durable a commit is.
        ttl: Seconds after the last write at which a conversation is unknown (M8), or None.
        timeout: Seconds for each exchange with the database, waiting for other writers included (E4).
        clock: Seconds since 1970; replaced in tests.
    """

    capabilities = Capabilities(ttl=True, memory_search=True)
    sweeps = True

    def __init__(
        self,
        database: str | URL | Engine,
        *,
        ttl: float | None = None,
        timeout: float = DEFAULT_TIMEOUT,
        clock: Callable[[], float] = time.time,
    ) -> None:
        super().__init__(ttl=ttl, timeout=timeout)
        self._clock = clock
        self._owned = not isinstance(database, Engine)
        if isinstance(database, Engine):
            self._dialect = dialect_of(database.dialect.name)
            self._dialect.check_engine(database)
            self._engine = database
        else:
            url = _url(database)
            self._dialect = dialect_of(url.get_backend_name())
            try:
                self._engine = self._dialect.make_engine(url, timeout)
            except ModuleNotFoundError as error:
                msg = f"sql+{url.drivername}:// needs the package {error.name!r}, which is not installed"
                raise DriverNotFoundError(msg, hint=f"pip install {error.name}") from error
            except NoSuchModuleError:
                msg = f"SQLAlchemy knows no driver {url.drivername!r}"
                raise ConfigurationError(
                    msg, hint=f"sql+{url.get_backend_name()}:// takes the usual one"
                ) from None
        self.backend = self._dialect.name
        self.namespace = self._dialect.label(self._engine.url)
        self._where = f"the {self._dialect.name} database {self.namespace!r}"
        self._swept_until = _ANYWHERE

    @property
    def native_client(self) -> Engine:
        """The SQLAlchemy Engine."""
        return self._engine

    # --- connections ------------------------------------------------------------------------------------

    def _open(self) -> None:
        """Connect, and make the tables if they are not there; several processes may do so at once."""
        with self._session() as connection:
            # One look at the tables: between two, another process may make them.
            names = inspect(connection).get_table_names()
            ours = schema.layout.name in names
            if self._owned:
                foreign = bool(names) and not ours
                self._dialect.settle(connection, foreign=foreign, timeout=remaining(self.timeout))
            version = self._layout(connection) if ours else None
        if version is None:
            with self._writing() as connection:
                version = self._layout(connection)  # another process may have been faster
                if version is None:
                    schema.tables.create_all(connection, checkfirst=False)
                    connection.execute(schema.write_layout)
                    version = schema.LAYOUT_VERSION
        if version != schema.LAYOUT_VERSION:
            msg = f"{self._where} has layout {version}; this version reads layout {schema.LAYOUT_VERSION}"
            raise CorruptDataError(msg, hint="use the version of entrepot-sql that wrote it, or a newer one")

    def _layout(self, connection: Connection) -> int | None:
        if not inspect(connection).has_table(schema.layout.name):
            return None
        return connection.execute(schema.read_layout).scalar()

    def _close(self) -> None:
        if not self._owned:
            return
        # What is under way ends first: where there is one connection, it is that one.
        with suppress(OperationTimeoutError), self._dialect.turn(self.timeout, writing=True):
            pass
        self._engine.dispose()

    def _connected(self) -> Connection:
        """Return a connection, unless all was closed while the turn was waited for (E5)."""
        self._check_usable()
        return self._engine.connect()

    @contextmanager
    def _session(self, *, writing: bool = False) -> Generator[Connection]:
        """Lend a connection; what was not committed is rolled back."""
        with (
            self._dialect.turn(remaining(self.timeout), writing=writing),
            translated(self._dialect, self._where),
            self._connected() as connection,
        ):
            self._dialect.arm(connection, remaining(self.timeout))
            try:
                yield connection
            finally:
                if self._closed and self._owned:
                    connection.invalidate()  # closed meanwhile: the pool is gone, so this one is closed here

    @contextmanager
    def _writing(self) -> Generator[Connection]:
        """Lend a connection inside of a transaction that writes, and commit it."""
        with self._session(writing=True) as connection:
            self._dialect.begin(connection)
            yield connection
            connection.commit()

    def _now(self) -> int:
        return int(self._clock() * 1_000_000)

    # --- writing ----------------------------------------------------------------------------------------

    def _append(self, conversation_id: str, entries: Sequence[Entry]) -> None:
        with self._writing() as connection:
            number, place = self._claim(connection, conversation_id, len(entries))
            connection.execute(self._dialect.store, _rows(number, place, entries))

    def _replace(self, conversation_id: str, entries: Sequence[Entry]) -> None:
        with self._writing() as connection:
            number, place = self._claim(connection, conversation_id, len(entries))
            connection.execute(schema.delete_before, {"in_number": number, "before": place})
            connection.execute(self._dialect.store, _rows(number, place, entries))

    def _truncate(self, conversation_id: str, after: str) -> bool:
        now = self._now()
        with self._writing() as connection:
            found = connection.execute(
                schema.find_place,
                {"name": conversation_id.encode(), "now": now, "message_id": after.encode()},
            ).first()
            if found is None:
                return False
            number, place = found
            connection.execute(schema.delete_after, {"in_number": number, "after": place})
            connection.execute(schema.touch, {"in_number": number, "now": now, "ttl": self._ttl})
        return True

    def _delete(self, conversation_id: str) -> None:
        with self._writing() as connection:
            self._remove(connection, conversation_id.encode())

    @property
    def _ttl(self) -> int | None:
        return None if self.ttl is None else max(1, int(min(self.ttl * 1_000_000, _LONGEST)))

    def _claim(self, connection: Connection, conversation_id: str, count: int) -> tuple[int, int]:
        """Return the conversation's number and the first of `count` places in it, making it if need be."""
        name = conversation_id.encode()
        wanted = {"name": name, "count": count, "now": self._now(), "ttl": self._ttl}
        claimed = connection.execute(self._dialect.claim, wanted).first()
        if claimed is None:  # it has expired: what follows is a new conversation of that name
            self._remove(connection, name)
            claimed = connection.execute(self._dialect.claim, wanted).one()
        number, next_place = claimed
        return number, next_place - count

    def _remove(self, connection: Connection, name: bytes) -> None:
        connection.execute(schema.delete_messages, {"name": name})
        connection.execute(schema.delete_conversation, {"name": name})

    # --- reading ----------------------------------------------------------------------------------------

    def _tail(self, conversation_id: str, last: int | None) -> list[bytes]:
        asked = {"name": conversation_id.encode(), "now": self._now()}
        with self._session() as connection:
            if last is None:
                return list(connection.execute(schema.read_all, asked).scalars().all())
            newest = connection.execute(schema.read_last, {**asked, "last": last}).scalars().all()
        return list(reversed(newest))

    def _latest(self, conversation_id: str, role: Role) -> bytes | None:
        asked = {"name": conversation_id.encode(), "now": self._now(), "role": schema.ROLES[role]}
        with self._session() as connection:
            return connection.execute(schema.read_latest, asked).scalar()

    def _ids(self, limit: int, cursor: str | None) -> Page[str]:
        asked = {"after": name_behind(cursor) or b"", "now": self._now(), "most": limit + 1}
        with self._session() as connection:
            names = list(connection.execute(schema.list_names, asked).scalars())
        return page_of(names, limit)

    def _find(self, question: Question) -> list[tuple[str, bytes]]:
        """Read candidates newest first, and ask each whether it answers: SQL only leaves most others out."""
        message, conversation = schema.message, schema.conversation
        wanted = [conversation.c.number == message.c.conversation, schema.living]
        if question.role is not None:
            wanted.append(message.c.role == schema.ROLES[question.role])
        if question.since is not None:
            wanted.append(message.c.created >= _microseconds(question.since))
        if question.until is not None:
            wanted.append(message.c.created < _microseconds(question.until))
        wanted += [
            self._dialect.contains(message.c.body, literal(needle, LargeBinary))
            for needle in _needles(question)
        ]
        statement = (
            select(conversation.c.name, message.c.body)
            .where(*wanted)
            .order_by(message.c.created.desc(), conversation.c.name, message.c.place.desc())
        )
        found: list[tuple[str, bytes]] = []
        with self._session() as connection:
            rows = connection.execute(
                statement, {"now": self._now()}, execution_options={"yield_per": _FETCHED}
            )
            for name, body in rows:
                if answers(question, decode_message(body)):
                    found.append((name.decode(), body))
                    if len(found) == question.limit:
                        break
        return found

    # --- what has expired -------------------------------------------------------------------------------

    def _sweep(self, after: str | None) -> tuple[int, str | None]:
        """Pass over some conversations by their numbers, removing the expired ones."""
        with self._session() as connection:
            start = int(after or 0)
            if start < 0:
                highest = connection.execute(schema.highest_number).scalar() or 0
                start = random.randrange(highest + 1)  # noqa: S311 - no secret
            asked = {"after": start, "now": self._now(), "most": _SWEEP_CONVERSATIONS}
            rows = connection.execute(schema.window, asked).all()
        removed = sum(self._remove_if_expired(name) for _, name, alive in rows if not alive)
        return removed, str(rows[-1][0]) if len(rows) == _SWEEP_CONVERSATIONS else None

    def _remove_if_expired(self, name: bytes) -> bool:
        while True:
            with self._writing() as connection:
                # Someone may have written to it since it was found.
                number = connection.execute(
                    schema.expired_number, {"name": name, "now": self._now()}
                ).scalar()
                if number is None:
                    return False
                piece = {"in_number": number, "most": _SWEEP_MESSAGES}
                end = connection.execute(schema.piece_end, piece).scalar()
                if end is None:
                    self._remove(connection, name)
                    return True
                connection.execute(schema.delete_before, {"in_number": number, "before": end})


def _url(database: str | URL) -> URL:
    try:
        return make_url(database)
    except (ArgumentError, ValueError):
        # Neither the text nor SQLAlchemy's message, which repeats it: it may hold a password.
        msg = "the database is named by a SQLAlchemy URL such as sqlite:///chat.db"
        raise ConfigurationError(msg) from None


def _rows(number: int, place: int, entries: Sequence[Entry]) -> list[dict[str, Any]]:
    return [
        {
            "conversation": number,
            "place": place + offset,
            "id": entry.id.encode(),
            "role": schema.ROLES[entry.role],
            "created": _microseconds(entry.message.created),
            "body": entry.json,
        }
        for offset, entry in enumerate(entries)
    ]


def _microseconds(instant: datetime) -> int:
    return (instant - _EPOCH) // _MICROSECOND


# --- questions --------------------------------------------------------------------------------------------


def _needles(question: Question) -> list[bytes]:
    """Return what stands in the JSON text of every message that answers.

    JSON is written one character after another, so a part of a text is a part of its JSON.
    """
    texts = [_written(question.text)] if question.text else []
    return texts + [b'"' + _written(key) + b'":' for key in question.metadata]


def _written(text: str) -> bytes:
    return msgspec.json.encode(text)[1:-1]
