"""Conversations in two tables: what is written and how, and what is read. Scripts (M1 to M10).

A conversation is a row; its messages are rows of another table in the order of `place`, which the
conversation's row hands out. Every write takes the lock of that row first and keeps it until it is
committed, so the places of later writes are higher, and no reader sees a place before those below it (M1).

Ids are the bytes of their UTF-8, which no collation folds (M6). Whether a conversation has expired the
server's clock tells, when it is read and when its lock has been taken (M8).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from psycopg import sql

from entrepot_postgres import scripts
from entrepot_postgres.binary import pack_bytes, pack_instants, pack_smallints

if TYPE_CHECKING:
    from collections.abc import Sequence

    from entrepot.memory.repository import Entry
    from entrepot.messages import Role
    from entrepot_postgres.names import MemoryNames
    from entrepot_postgres.scripts import Script

ROLES: Final = {"system": 0, "user": 1, "assistant": 2, "tool": 3}
"""What stands in the column `role`."""
SWEPT: Final = 100
"""Expired conversations that one transaction removes."""

_LIVING: Final = sql.SQL("(conversation.expires IS NULL OR conversation.expires > clock_timestamp())")
_TTL: Final = sql.SQL("coalesce(excluded.ttl, conversation.ttl)")
# A conversation that has expired begins anew: its expiry is the writer's.
_TTL_ANEW: Final = sql.SQL("CASE WHEN {} THEN {} ELSE excluded.ttl END").format(_LIVING, _TTL)
_NUMBER: Final = (
    "(SELECT conversation.number FROM {conversations} AS conversation"
    " WHERE conversation.name = %s AND {living})"
)
_CLAIM: Final = (
    "INSERT INTO {conversations} AS conversation (name, next_place, ttl, expires)"
    " VALUES (%s, %s, make_interval(secs => %s::float8), clock_timestamp() + make_interval(secs => %s::float8))"
    " ON CONFLICT (name) DO UPDATE SET next_place = conversation.next_place + %s,"
    " ttl = {ttl}, expires = clock_timestamp() + {ttl}"
)
_STORE: Final = (
    "INSERT INTO {messages} (conversation, place, id, role, created, body)"
    " SELECT claimed.number, claimed.next_place - %s + given.place, given.id, given.role, given.created,"
    " convert_from(given.body, 'UTF8')"
    " FROM {claimed}, unnest(%b::bytea[], %b::smallint[], %b::timestamptz[], %b::bytea[])"
    " WITH ORDINALITY AS given(id, role, created, body, place)"
    " ON CONFLICT (conversation, id) DO NOTHING"
)
_TEXTS: Final = {
    "append": (
        "WITH claimed AS ({claim} WHERE {living} RETURNING conversation.number, conversation.next_place),"
        " stored AS ({store}) SELECT claimed.number FROM claimed"
    ),
    "claim": "{claim_anew} RETURNING conversation.number, conversation.next_place",
    "store": "{store_at}",
    "forget": "DELETE FROM {messages} WHERE conversation = %s AND place <= %s",
    "lock": (
        "SELECT conversation.number FROM {conversations} AS conversation"
        " WHERE conversation.name = %s AND {living} FOR UPDATE"
    ),
    "cut": (
        "WITH kept AS (SELECT conversation, place FROM {messages} WHERE conversation = %s AND id = %s),"
        " gone AS (DELETE FROM {messages} AS message USING kept"
        " WHERE message.conversation = kept.conversation AND message.place > kept.place)"
        " UPDATE {conversations} AS conversation"
        " SET ttl = coalesce(make_interval(secs => %s::float8), conversation.ttl),"
        " expires = clock_timestamp() + coalesce(make_interval(secs => %s::float8), conversation.ttl)"
        " FROM kept WHERE conversation.number = kept.conversation AND conversation.name = %s"
        " RETURNING conversation.number"
    ),
    "remove": (
        "DELETE FROM {conversations} AS conversation WHERE conversation.name = %s RETURNING conversation.number"
    ),
    "remove_expired": (
        "DELETE FROM {conversations} AS conversation WHERE conversation.name = %s AND NOT {living}"
        " RETURNING conversation.number"
    ),
    "sweep": (
        "DELETE FROM {conversations} AS conversation WHERE conversation.number IN (SELECT old.number"
        " FROM {conversations} AS old WHERE old.expires <= clock_timestamp() ORDER BY old.expires LIMIT %s"
        " FOR UPDATE SKIP LOCKED) RETURNING conversation.number"
    ),
    "clear": "DELETE FROM {messages} WHERE conversation = ANY(%s::bigint[])",
    "all": "SELECT convert_to(body, 'UTF8') FROM {messages} WHERE conversation = {number} ORDER BY place",
    "last": "SELECT convert_to(body, 'UTF8') FROM {messages} WHERE conversation = {number} ORDER BY place DESC LIMIT %s::bigint",
    "latest": (
        "SELECT convert_to(body, 'UTF8') FROM {messages} WHERE conversation = {number} AND role = %s::smallint"
        " ORDER BY place DESC LIMIT 1"
    ),
    "names": (
        "SELECT conversation.name FROM {conversations} AS conversation"
        " WHERE conversation.name > %s AND {living} ORDER BY conversation.name LIMIT %s::bigint"
    ),
}


class Statements(NamedTuple):
    """The statements of one chat memory, put together once."""

    append: sql.SQL
    claim: sql.SQL
    store: sql.SQL
    forget: sql.SQL
    lock: sql.SQL
    cut: sql.SQL
    remove: sql.SQL
    remove_expired: sql.SQL
    sweep: sql.SQL
    clear: sql.SQL
    all: sql.SQL
    last: sql.SQL
    latest: sql.SQL
    names: sql.SQL


def statements_of(names: MemoryNames) -> Statements:
    """Return the statements with the names of a memory's tables in them, quoted."""
    conversations, messages = names.conversations, names.messages
    number = sql.SQL(_NUMBER).format(conversations=conversations, living=_LIVING)
    parts: dict[str, sql.Composable] = {
        "conversations": conversations,
        "messages": messages,
        "living": _LIVING,
        "number": number,
        "claim": sql.SQL(_CLAIM).format(conversations=conversations, ttl=_TTL),
        "claim_anew": sql.SQL(_CLAIM).format(conversations=conversations, ttl=_TTL_ANEW),
        "store": sql.SQL(_STORE).format(messages=messages, claimed=sql.SQL("claimed")),
        "store_at": sql.SQL(_STORE).format(
            messages=messages,
            claimed=sql.SQL("(VALUES (%s::bigint, %s::bigint)) AS claimed(number, next_place)"),
        ),
    }
    return Statements(
        **{name: constant(sql.SQL(cast("Any", text)).format(**parts)) for name, text in _TEXTS.items()}
    )


def constant(composed: sql.Composed) -> sql.SQL:
    """Return a statement as one piece, so that it is not put together at each call."""
    return sql.SQL(cast("Any", composed.as_string(None)))


def _sent(query: sql.SQL, parameters: Sequence[object]) -> scripts.Statement:
    return scripts.Statement(query, parameters, prepare=None)


# --- writing ----------------------------------------------------------------------------------------------


class Batch(NamedTuple):
    """Messages ready to be bound."""

    size: int
    columns: tuple[object, ...]


def batch_of(entries: Sequence[Entry]) -> Batch:
    """Encode messages; takes about a millisecond for each 1,000."""
    columns = (
        pack_bytes([entry.id.encode() for entry in entries]),
        pack_smallints([ROLES[entry.role] for entry in entries]),
        pack_instants([entry.message.created for entry in entries]),
        pack_bytes([entry.json for entry in entries]),
    )
    return Batch(len(entries), columns)


def append(statements: Statements, name: bytes, batch: Batch, ttl: float | None) -> Script[bool]:
    """Append by one statement; return False where the conversation has expired, and nothing was done."""
    bound = (name, batch.size, ttl, ttl, batch.size, batch.size, *batch.columns)
    return bool((yield _sent(statements.append, bound)))


def append_anew(statements: Statements, name: bytes, batch: Batch, ttl: float | None) -> Script[None]:
    """Append to a conversation that has expired by now, unless another writer was faster: then as `append`."""
    done = False
    while not done:
        yield from _clear(statements, (yield _sent(statements.remove_expired, (name,))))
        done = yield from append(statements, name, batch, ttl)


def replace(statements: Statements, name: bytes, batch: Batch, ttl: float | None) -> Script[None]:
    """Put messages in the place of all."""
    claim = _sent(statements.claim, (name, batch.size, ttl, ttl, batch.size))
    [(number, next_place)] = yield claim
    yield _sent(statements.forget, (number, next_place - batch.size))
    yield _sent(statements.store, (batch.size, number, next_place, *batch.columns))


def truncate(statements: Statements, name: bytes, after: bytes, ttl: float | None) -> Script[bool]:
    """Remove what stands after a message; return whether that message is there."""
    locked = yield _sent(statements.lock, (name,))
    if not locked:
        return False
    return bool((yield _sent(statements.cut, (locked[0][0], after, ttl, ttl, name))))


def remove(statements: Statements, name: bytes) -> Script[None]:
    """Remove a conversation."""
    yield from _clear(statements, (yield _sent(statements.remove, (name,))))


def sweep(statements: Statements) -> Script[int]:
    """Remove some of what has expired and nobody is writing to; return how many conversations."""
    gone = yield _sent(statements.sweep, (SWEPT,))
    yield from _clear(statements, gone)
    return len(gone)


def _clear(statements: Statements, gone: Sequence[tuple[Any, ...]]) -> Script[None]:
    """Remove the messages of conversations, by a statement that sees all: their rows were locked before."""
    if gone:
        yield _sent(statements.clear, ([row[0] for row in gone],))


# --- reading ----------------------------------------------------------------------------------------------


def tail(statements: Statements, name: bytes, last: int | None) -> Script[list[bytes]]:
    """Return the texts of all messages, or of the newest, in order; by one statement, so of one state."""
    if last is None:
        rows = yield _sent(statements.all, (name,))
    else:
        rows = yield _sent(statements.last, (name, min(last, _MOST)))
        rows.reverse()
    return [row[0] for row in rows]


def latest(statements: Statements, name: bytes, role: Role) -> Script[bytes | None]:
    """Return the newest message of a role."""
    rows = yield _sent(statements.latest, (name, ROLES[role]))
    return rows[0][0] if rows else None


def names_after(statements: Statements, place: bytes, limit: int) -> Script[list[bytes]]:
    """Return ids of conversations in the order of their bytes, one more than asked if there are more."""
    rows = yield _sent(statements.names, (place, min(limit, _MOST - 1) + 1))
    return [row[0] for row in rows]


_MOST: Final = 2**63 - 1
