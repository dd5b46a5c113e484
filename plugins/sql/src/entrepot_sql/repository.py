"""`SqlChatMemoryRepository`: conversations in a SQL database."""

from __future__ import annotations

import logging
import random
import re
import time
from contextlib import closing, contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import URL, Engine, inspect, make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError

from entrepot.capabilities import Capabilities
from entrepot.errors import (
    ConfigurationError,
    CorruptDataError,
    DriverNotFoundError,
    EntrepotError,
    MessageError,
    OperationTimeoutError,
)
from entrepot.exchange import DEFAULT_TIMEOUT, remaining
from entrepot.memory.cursors import name_behind, page_of
from entrepot.memory.questions import Question, answers
from entrepot.memory.repository import ChatMemoryRepository, Entry
from entrepot.messages import decode_message
from entrepot_sql.dialects import dialect_of, translated, with_driver
from entrepot_sql.finding import candidates, microseconds
from entrepot_sql.schema import LAYOUT_NAME, LAYOUT_VERSION, ROLES, schema_of

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from sqlalchemy import Connection, Result

    from entrepot.messages import Role
    from entrepot.records import Page

_ANYWHERE: Final = "-1"
"""Where the first look for what has expired begins: a program that runs briefly shall not always see the same."""
_SWEEP_CONVERSATIONS: Final = 1000
"""Conversations that one look passes over."""
_SWEEP_MESSAGES: Final = 500
"""Messages that one transaction removes."""
_LOWEST: Final = b"\0"
"""Stands before every id: none holds a NUL. Nothing empty is compared with, as Oracle takes it for NULL."""
_PAUSE: Final = 0.05
"""Seconds before tables are looked for again that another process may be making."""
_LONGEST: Final = 2.0**62
"""Microseconds that a conversation lives at most: what is left of 64 bits beside the time of day."""

_NAME: Final = re.compile("[a-z][a-z0-9_-]{0,43}")
"""Names of tables and schemas: no system folds, shortens or refuses them once they are quoted."""

_log = logging.getLogger(__name__)


class SqlChatMemoryRepository(ChatMemoryRepository):
    """Conversations in a SQL database, over SQLAlchemy Core.

    Thread-safe; every operation is one transaction. Expiry is a property of the conversation: a write
    by a repository with `ttl` sets it, one without `ttl` keeps what is set, and each write starts it
    anew (M8). What has expired is removed a little at a time by later writes, or by `remove_expired`.

    Args:
        database: A SQLAlchemy URL such as ``sqlite:///chat.db``, or an Engine, which stays open when
            this is closed (E5) and whose settings decide how durable a commit is.
        table: What the names of the tables begin with: several memories can lie in one database.
        schema: The database's schema to put them in; None for the one that the login has.
        ttl: Seconds after the last write at which a conversation is unknown (M8), or None.
        timeout: Seconds for each exchange with the database, waiting for other writers included (E4).
        clock: Seconds since 1970; replaced in tests.
    """

    capabilities = Capabilities(ttl=True, memory_search=True)
    sweeps = True

    def __init__(  # noqa: PLR0913 - the options of the backend
        self,
        database: str | URL | Engine,
        *,
        table: str = "entrepot",
        schema: str | None = None,
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
            url = with_driver(_url(database))
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
        _check_name("table", table)
        if schema is not None:
            _check_name("schema", schema)
        self._schema = schema_of(table, schema)
        self._writes = self._dialect.writes(self._schema)
        self.backend = self._dialect.name
        self.namespace = self._dialect.label(self._engine.url)
        self._where = f"the {self._dialect.name} database {self.namespace!r}{_at(self._engine.url)}"
        self._swept_until = _ANYWHERE

    @property
    def native_client(self) -> Engine:
        """The SQLAlchemy Engine."""
        return self._engine

    # --- connections ------------------------------------------------------------------------------------

    def _open(self) -> None:
        """Connect, and make the tables if they are not there; several processes may do so at once."""
        with self._session() as connection:
            if self._owned:
                self._dialect.settle(connection, self._schema, remaining(self.timeout))
            version = self._layout(connection)
        until = time.monotonic() + remaining(self.timeout)
        while version is None:
            try:
                version = self._make()
            except EntrepotError as error:
                # Several processes may make the tables at once, and not every system does so in a transaction.
                if not error.retryable or time.monotonic() > until:
                    raise
                time.sleep(_PAUSE)
        if version != LAYOUT_VERSION:
            msg = f"{self._where} has layout {version}; this version reads layout {LAYOUT_VERSION}"
            raise CorruptDataError(msg, hint="use the version of entrepot-sql that wrote it, or a newer one")

    def _layout(self, connection: Connection) -> int | None:
        if not inspect(connection).has_table(self._schema.layout.name, schema=self._schema.schema):
            return None
        return connection.execute(self._schema.read_layout, {"layout": LAYOUT_NAME}).scalar()

    def _make(self) -> int:
        with self._writing() as connection:
            version = self._layout(connection)  # another process may have been faster
            if version is None:
                self._schema.tables.create_all(connection)
                connection.execute(self._schema.write_layout)
                version = LAYOUT_VERSION
        return version

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
            try:
                with self._dialect.bounded(connection, remaining(self.timeout)):
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
            with translated(self._dialect, self._where, ending=True):
                connection.commit()

    def _now(self) -> int:
        return int(self._clock() * 1_000_000)

    # --- writing ----------------------------------------------------------------------------------------

    def _append(self, conversation_id: str, entries: Sequence[Entry]) -> None:
        self._check_ids(conversation_id, *(entry.id for entry in entries))
        with self._writing() as connection:
            number, place = self._claim(connection, conversation_id, len(entries))
            self._writes.store(connection, _rows(number, place, entries))

    def _replace(self, conversation_id: str, entries: Sequence[Entry]) -> None:
        self._check_ids(conversation_id, *(entry.id for entry in entries))
        with self._writing() as connection:
            number, place = self._claim(connection, conversation_id, len(entries))
            connection.execute(self._schema.delete_before, {"in_number": number, "before": place})
            self._writes.store(connection, _rows(number, place, entries))

    def _truncate(self, conversation_id: str, after: str) -> bool:
        now = self._now()
        with self._writing() as connection:
            asked = {"name": conversation_id.encode(), "now": now}
            number = connection.execute(self._schema.lock, asked).scalar()
            if number is None:
                return False
            found = {"in_number": number, "message_id": after.encode()}
            place = connection.execute(self._schema.find_place, found).scalar()
            if place is None:
                return False
            connection.execute(self._schema.delete_after, {"in_number": number, "after": place})
            connection.execute(self._schema.touch, {"in_number": number, "now": now, "ttl": self._ttl})
        return True

    def _delete(self, conversation_id: str) -> None:
        with self._writing() as connection:
            asked = {"name": conversation_id.encode()}
            self._remove(connection, connection.execute(self._schema.lock_any, asked).scalar())

    @property
    def _ttl(self) -> int | None:
        return None if self.ttl is None else max(1, int(min(self.ttl * 1_000_000, _LONGEST)))

    def _check_ids(self, *names: str) -> None:
        longest = self._dialect.id_bytes
        if longest is None:
            return
        for name in names:
            if len(name.encode()) > longest:
                msg = f"the id {name[:32]!r}... takes {len(name.encode())} bytes in UTF-8"
                raise MessageError(msg, hint=f"an index of {self._dialect.name} takes at most {longest}")

    def _claim(self, connection: Connection, conversation_id: str, count: int) -> tuple[int, int]:
        """Return the conversation's number and the first of `count` places in it, making it if need be."""
        name, now = conversation_id.encode(), self._now()
        wanted = {"name": name, "count": count, "now": now, "ttl": self._ttl}
        while (claimed := self._writes.claim(connection, wanted)) is None:
            # It has expired: what follows is a new conversation of that name.
            asked = {"name": name, "now": now}
            self._remove(connection, connection.execute(self._schema.lock_expired, asked).scalar())
        number, next_place = claimed
        return number, next_place - count

    def _remove(self, connection: Connection, number: int | None) -> None:
        """Remove a conversation whose row is locked; nothing if there is none."""
        if number is not None:
            connection.execute(self._schema.delete_all, {"in_number": number})
            connection.execute(self._schema.delete_conversation, {"in_number": number})

    # --- reading ----------------------------------------------------------------------------------------

    def _tail(self, conversation_id: str, last: int | None) -> list[bytes]:
        asked = {"name": conversation_id.encode(), "now": self._now()}
        with self._session() as connection:
            if last is None:
                return _texts(connection.execute(self._schema.read_all, asked))
            newest = _texts(connection.execute(self._schema.read_last, {**asked, "last": last}))
        return newest[::-1]

    def _latest(self, conversation_id: str, role: Role) -> bytes | None:
        asked = {"name": conversation_id.encode(), "now": self._now(), "role": ROLES[role]}
        with self._session() as connection:
            texts = _texts(connection.execute(self._schema.read_latest, asked))
        return texts[0] if texts else None

    def _ids(self, limit: int, cursor: str | None) -> Page[str]:
        asked = {"after": name_behind(cursor) or _LOWEST, "now": self._now(), "most": limit + 1}
        with self._session() as connection:
            names = _texts(connection.execute(self._schema.list_names, asked))
        return page_of(names, limit)

    def _find(self, question: Question) -> list[tuple[str, bytes]]:
        """Read candidates newest first, and ask each whether it answers: SQL only leaves most others out."""
        found: list[tuple[str, bytes]] = []
        with (
            self._session() as connection,
            closing(candidates(connection, self._dialect, self._schema, question, self._now())) as newest,
        ):
            for name, text in newest:
                if answers(question, decode_message(text)):
                    found.append((name.decode(), text))
                    if len(found) == question.limit:
                        break
        return found

    # --- what has expired -------------------------------------------------------------------------------

    def _sweep(self, after: str | None) -> tuple[int, str | None]:
        """Pass over some conversations by their numbers, removing the expired ones."""
        with self._session() as connection:
            start = int(after or 0)
            if start < 0:
                highest = connection.execute(self._schema.highest_number).scalar() or 0
                start = random.randrange(highest + 1)  # noqa: S311 - no secret
            asked = {"after": start, "now": self._now(), "most": _SWEEP_CONVERSATIONS}
            rows = connection.execute(self._schema.window, asked).all()
        removed = sum(self._remove_if_expired(bytes(name)) for _, name, alive in rows if not alive)
        return removed, str(rows[-1][0]) if len(rows) == _SWEEP_CONVERSATIONS else None

    def _remove_if_expired(self, name: bytes) -> bool:
        while True:
            with self._writing() as connection:
                # Someone may have written to it since it was found.
                asked = {"name": name, "now": self._now()}
                number = connection.execute(self._schema.lock_expired, asked).scalar()
                if number is None:
                    return False
                piece = {"in_number": number, "most": _SWEEP_MESSAGES}
                end = connection.execute(self._schema.piece_end, piece).scalar()
                if end is None:
                    self._remove(connection, number)
                    return True
                connection.execute(self._schema.delete_before, {"in_number": number, "before": end})


def _url(database: str | URL) -> URL:
    try:
        return make_url(database)
    except (ArgumentError, ValueError):
        # Neither the text nor SQLAlchemy's message, which repeats it: it may hold a password.
        msg = "the database is named by a SQLAlchemy URL such as sqlite:///chat.db"
        raise ConfigurationError(msg) from None


def _at(url: URL) -> str:
    """Return where a server is, for errors; nothing for a file."""
    return "" if url.host is None else f" at {url.host}" + ("" if url.port is None else f":{url.port}")


def _check_name(what: str, name: str) -> None:
    """Refuse a name that a system could shorten, fold or take for something else."""
    if not _NAME.fullmatch(name):
        msg = f"{what} must be at most 44 lower-case letters, digits, _ and -, a letter first, not {name!r}"
        raise ConfigurationError(msg)


def _texts(result: Result[bytes]) -> list[bytes]:
    """Return the one column of a result; some drivers give bytes in a type of their own."""
    return [text if type(text) is bytes else bytes(text) for text in result.scalars()]


def _rows(number: int, place: int, entries: Sequence[Entry]) -> list[dict[str, Any]]:
    return [
        {
            "conversation": number,
            "place": place + offset,
            "id": entry.id.encode(),
            "role": ROLES[entry.role],
            "created": microseconds(entry.message.created),
            "body": entry.json,
        }
        for offset, entry in enumerate(entries)
    ]
