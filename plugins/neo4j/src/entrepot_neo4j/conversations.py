"""Conversations as nodes: what is read and written (M1 to M9). Scripts.

A conversation is a node, whose id begins with the name of its memory; each of its messages is one, which names the
conversation by a key that was made with it. A message has a place, which is never given twice, the place of the message before it, and that of the newest earlier
message of its role. The conversation's node has the place of its newest message, the next free place, and the newest
place of each role. Properties of a node that are read together may be of two versions, so what is read together stands
in one property, `h`, a list of numbers and the key.

Every write takes the lock of the conversation's node first and is one transaction. A reader takes no lock: it reads the
node, then the messages from the newest back, and has the conversation as it was when it read the node if each message
is the one before the next. If the chain is broken, others wrote in between, and it reads again.

Whether a conversation has expired the server's clock tells, when it is read and when its lock has been taken (M8).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple
from uuid import uuid4

from entrepot.encoding import utf16_ordered
from entrepot.errors import BackendError
from entrepot.memory.cursors import name_behind, page_of
from entrepot.messages import Role
from entrepot_neo4j.commands import Statement, Unit, change, read
from entrepot_neo4j.names import CONVERSATIONS, MESSAGES, quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from entrepot.memory.repository import Entry
    from entrepot.records import Page
    from entrepot_neo4j.commands import Script

ROLES: Final = {Role.SYSTEM: 0, Role.USER: 1, Role.ASSISTANT: 2, Role.TOOL: 3}
"""What stands in the property `role` of a message, and where in a head."""
SWEPT: Final = 100
"""Expired conversations that one call removes at most."""
_TOGETHER: Final = 500
"""Messages that one statement sends."""
_TRIES: Final = 200
_NONE: Final = -1
_CONVERSATION: Final = quoted(CONVERSATIONS)
_MESSAGE: Final = quoted(MESSAGES)
_NEVER: Final = 2**62
"""The expiry of what does not expire, in milliseconds."""


class Head(NamedTuple):
    """What a conversation's node says of its messages.

    Attributes:
        key: What its messages are found by.
        free: The next place.
        newest: The place of its newest message.
        of_role: The place of the newest message of each role, in the order of `ROLES`.
    """

    key: str
    free: int
    newest: int
    of_role: tuple[int, ...]

    @property
    def stored(self) -> list[str]:
        """The head as a property; a list has one type only."""
        return [self.key, str(self.free), str(self.newest), *map(str, self.of_role)]


def _head(stored: Sequence[str]) -> Head:
    free, newest, *of_role = map(int, stored[1:])
    return Head(stored[0], free, newest, tuple(of_role))


def _new_head() -> Head:
    return Head(uuid4().hex, 0, _NONE, (_NONE,) * len(ROLES))


class Conversation(NamedTuple):
    """Which conversation of which memory."""

    memory: str
    name: str

    @property
    def id(self) -> str:
        """The property `id` of its node: no name holds what stands between the two."""
        return begin_of(self.memory) + utf16_ordered(self.name)


def begin_of(memory: str) -> str:
    """Return what the ids of a memory's conversations begin with."""
    return utf16_ordered(memory) + "\0"


# --- the indexes ------------------------------------------------------------------------------------------

_INDEXES: Final = {
    "EntrepotConversation_id": f"CONSTRAINT {{}} IF NOT EXISTS FOR (c:{_CONVERSATION}) REQUIRE c.id IS UNIQUE",
    "EntrepotConversation_expiry": f"INDEX {{}} IF NOT EXISTS FOR (c:{_CONVERSATION}) ON (c.memory, c.expires)",
    "EntrepotMessage_id": f"CONSTRAINT {{}} IF NOT EXISTS FOR (m:{_MESSAGE}) REQUIRE (m.c, m.id) IS UNIQUE",
    "EntrepotMessage_place": f"INDEX {{}} IF NOT EXISTS FOR (m:{_MESSAGE}) ON (m.c, m.place)",
}


def make() -> Script[None]:
    """Make the indexes of a database's memories, unless they are there."""
    there = yield read(
        "SHOW INDEXES YIELD name, state WHERE name IN $names AND state = 'ONLINE' RETURN name",
        names=list(_INDEXES),
    )
    missing = _INDEXES.keys() - {row[0] for row in there}
    for name, text in _INDEXES.items():
        if name in missing:
            yield change("CREATE " + text.format(quoted(name)))
    if missing:
        # These alone: others of the database may take as long as they like.
        yield read(
            "UNWIND $names AS name CALL db.awaitIndex(name, 300) RETURN count(*)", names=sorted(missing)
        )


# --- writing ----------------------------------------------------------------------------------------------


class _Found(NamedTuple):
    """What a writer finds under its lock.

    Attributes:
        head: What the conversation's node says, or None where there is no conversation.
        life: How long it lives, in milliseconds.
        known: Which of some ids of messages are there.
    """

    head: Head | None
    life: int | None
    known: set[str]


def _locked(conversation: Conversation, ids: Sequence[str], *, made: bool) -> Script[_Found]:
    """Lock a conversation and look at it; what has expired is removed.

    Args:
        conversation: Which one.
        ids: Ids of messages to look for.
        made: Whether its node is made if there is none.
    """
    if made:
        text = f"MERGE (c:{_CONVERSATION} {{id: $id}}) ON CREATE SET c.name = $name, c.memory = $memory"
    else:
        text = f"MATCH (c:{_CONVERSATION} {{id: $id}})"
    rows = yield change(
        # What stands behind SET is read when the lock that it takes is there.
        f"{text} SET c.lock = true WITH c OPTIONAL MATCH (m:{_MESSAGE}) WHERE m.c = c.h[0] AND m.id IN $ids"
        " RETURN c.h, c.life, coalesce(c.expires, $never) > timestamp(), collect(m.id)",
        id=conversation.id,
        name=conversation.name,
        memory=conversation.memory,
        ids=ids[:_TOGETHER],
        never=_NEVER,
    )
    if not rows or rows[0][0] is None:
        return _Found(None, None, set())
    stored, life, lives, there = rows[0]
    head, known = _head(stored), set(there)
    if not lives:
        yield _forgetting(head.key, _NONE)
        return _Found(None, None, set())
    for at in range(_TOGETHER, len(ids), _TOGETHER):
        more = yield read(
            f"MATCH (m:{_MESSAGE}) WHERE m.c = $c AND m.id IN $ids RETURN m.id",
            c=head.key,
            ids=ids[at : at + _TOGETHER],
        )
        known |= {row[0] for row in more}
    return _Found(head, life, known)


def _forgetting(key: str, after: int) -> Statement:
    """Return what removes the messages behind a place."""
    return change(f"MATCH (m:{_MESSAGE}) WHERE m.c = $c AND m.place > $after DELETE m", c=key, after=after)


_PUT: Final = (
    f"MATCH (c:{_CONVERSATION} {{id: $id}}) SET c.h = $h, c.life = $life,"
    " c.expires = CASE WHEN $life IS NULL THEN null ELSE timestamp() + $life END REMOVE c.lock"
)
"""Writes what a conversation's node says, and sets its expiry anew."""


def _putting(conversation: Conversation, head: Head, life: int | None) -> Statement:
    return change(_PUT, id=conversation.id, h=head.stored, life=life)


class Batch(NamedTuple):
    """Messages ready to be written.

    Attributes:
        ids: Their ids.
        roles: Their roles, as numbers.
        texts: Each as JSON.
    """

    ids: list[str]
    roles: list[int]
    texts: list[str]


def batch_of(entries: Sequence[Entry]) -> Batch:
    """Encode messages."""
    return Batch(
        [entry.id for entry in entries],
        [ROLES[entry.role] for entry in entries],
        [entry.json.decode() for entry in entries],
    )


def _adding(
    conversation: Conversation, head: Head, batch: Batch, known: set[str], life: int | None
) -> Script[None]:
    """Create the messages of a batch that are not known, and write what the conversation's node then says."""
    free, newest, of_role = head.free, head.newest, list(head.of_role)
    rows: list[list[Any]] = []
    for name, role, text in zip(batch.ids, batch.roles, batch.texts, strict=True):
        if name in known:
            continue
        rows.append([name, role, text, free, newest, of_role[role]])
        newest = of_role[role] = free
        free += 1
    created = (
        f"UNWIND $rows AS r CREATE (:{_MESSAGE}"
        " {c: $c, id: r[0], role: r[1], j: r[2], place: r[3], before: r[4], earlier: r[5]})"
    )
    last = max(0, (len(rows) - 1) // _TOGETHER * _TOGETHER)
    for at in range(0, last, _TOGETHER):
        yield change(created, c=head.key, rows=rows[at : at + _TOGETHER])
    after = Head(head.key, free, newest, tuple(of_role))
    yield change(
        f"{created} WITH count(*) AS made {_PUT}",
        c=head.key,
        rows=rows[last:],
        id=conversation.id,
        h=after.stored,
        life=life,
    )


def append(conversation: Conversation, batch: Batch, life: int | None) -> Script[None]:
    """Append the messages that are not there (M3)."""

    def unit() -> Script[None]:
        head, lived, known = yield from _locked(conversation, batch.ids, made=True)
        yield from _adding(conversation, head or _new_head(), batch, known, lived if life is None else life)

    yield Unit(unit)


def replace(conversation: Conversation, batch: Batch, life: int | None) -> Script[None]:
    """Put messages in the place of all (M4)."""

    def unit() -> Script[None]:
        head, lived, _ = yield from _locked(conversation, (), made=True)
        if head is not None:
            yield _forgetting(head.key, _NONE)
        # Under a new key: a reader of the old messages never meets a new one.
        yield from _adding(conversation, _new_head(), batch, set(), lived if life is None else life)

    yield Unit(unit)


def truncate(conversation: Conversation, after: str, life: int | None) -> Script[bool]:
    """Remove what stands after a message; return whether it is there (M4)."""

    def unit() -> Script[bool]:
        head, lived, _ = yield from _locked(conversation, (), made=False)
        if head is None:
            yield from _vanish(conversation)
            return False
        found = yield read(f"MATCH (m:{_MESSAGE} {{c: $c, id: $id}}) RETURN m.place", c=head.key, id=after)
        if not found:
            yield from _unlock(conversation)
            return False
        kept: int = found[0][0]
        cut = yield read(
            f"MATCH (m:{_MESSAGE}) WHERE m.c = $c AND m.place > $after RETURN m.place, m.role, m.earlier",
            c=head.key,
            after=kept,
        )
        of_role = list(head.of_role)
        # The first message of a role that goes knows which one of it stays.
        for _, role, earlier in sorted(cut, reverse=True):
            of_role[role] = earlier
        yield _forgetting(head.key, kept)
        after_cut = Head(head.key, head.free, kept, tuple(of_role))
        yield _putting(conversation, after_cut, lived if life is None else life)
        return True

    return bool((yield Unit(unit)))


def _unlock(conversation: Conversation) -> Script[None]:
    yield change(f"MATCH (c:{_CONVERSATION} {{id: $id}}) REMOVE c.lock", id=conversation.id)


def _vanish(conversation: Conversation) -> Script[None]:
    yield change(f"MATCH (c:{_CONVERSATION} {{id: $id}}) DELETE c", id=conversation.id)


def delete(conversation: Conversation) -> Script[None]:
    """Remove a conversation (M5)."""

    def unit() -> Script[None]:
        head, _, _ = yield from _locked(conversation, (), made=False)
        if head is not None:
            yield _forgetting(head.key, _NONE)
        yield from _vanish(conversation)

    yield Unit(unit)


def sweep(memory: str) -> Script[tuple[int, str | None]]:
    """Remove some conversations that have expired; return how many, and whether there are more."""
    rows = yield read(
        f"MATCH (c:{_CONVERSATION}) WHERE c.memory = $memory AND c.expires <= timestamp()"
        " RETURN c.name LIMIT $most",
        memory=memory,
        most=SWEPT,
    )
    removed = 0
    for row in rows:
        if row[0] is not None and (yield Unit(_swept(Conversation(memory, row[0])))):
            removed += 1
    return removed, "more" if len(rows) == SWEPT else None


def _swept(conversation: Conversation) -> Callable[[], Script[bool]]:
    def unit() -> Script[bool]:
        head, _, _ = yield from _locked(conversation, (), made=False)
        if head is not None:  # another writer was faster
            yield from _unlock(conversation)
            return False
        yield from _vanish(conversation)
        return True

    return unit


# --- reading ----------------------------------------------------------------------------------------------


_LIVING: Final = (
    f"MATCH (c:{_CONVERSATION} {{id: $id}}) WHERE coalesce(c.expires, $never) > timestamp()"
    " WITH c.h AS h WHERE h IS NOT NULL"
)


def tail(conversation: Conversation, last: int | None) -> Script[list[bytes]]:
    """Return the JSON texts of all messages or of the newest `last`, in order, as they were at one moment (M7)."""
    text = (
        f"{_LIVING} OPTIONAL MATCH (m:{_MESSAGE}) WHERE m.c = h[0] AND m.place <= toInteger(h[2])"
        " RETURN h, m.place, m.before, m.j ORDER BY m.c DESC, m.place DESC"
    )
    parameters: dict[str, Any] = {"id": conversation.id, "never": _NEVER}
    if last is not None:
        text += " LIMIT $last"
        parameters["last"] = min(last, _NEVER)
    for _ in range(_TRIES):
        rows = yield read(text, **parameters)
        if not rows:
            return []
        if _is_whole(rows, last):
            return [str(row[3]).encode() for row in reversed(rows)]
    raise _restless()


def _is_whole(rows: Sequence[Sequence[Any]], last: int | None) -> bool:
    """Whether these are the newest messages of a head, each before the next, up to the first or as many as wanted."""
    expected = _head(rows[0][0]).newest
    for _, place, before, text in rows:
        if place != expected or text is None:
            return False
        expected = before
    return expected == _NONE or len(rows) == last


def _restless() -> BackendError:
    msg = "the conversation changes faster than it can be read"
    return BackendError(msg, retryable=True)


def latest(conversation: Conversation, role: Role) -> Script[bytes | None]:
    """Return the newest message of a role (W2)."""
    text = (
        f"{_LIVING} OPTIONAL MATCH (m:{_MESSAGE})"
        " WHERE m.c = h[0] AND m.place = toInteger(h[$at]) RETURN h[$at], m.j"
    )
    for _ in range(_TRIES):
        rows = yield read(text, id=conversation.id, never=_NEVER, at=3 + ROLES[role])
        if not rows or int(rows[0][0]) == _NONE:
            return None
        if rows[0][1] is not None:
            return str(rows[0][1]).encode()
    raise _restless()


def ids(memory: str, limit: int, cursor: str | None) -> Script[Page[str]]:
    """Return a page of conversation ids, in the order of code points (M9)."""
    behind = name_behind(cursor)
    begin = begin_of(memory)
    after = begin if behind is None else begin + utf16_ordered(behind.decode())
    most = min(limit, _NEVER) + 1
    found: list[str] = []
    while True:
        rows = yield read(
            f"MATCH (c:{_CONVERSATION}) WHERE c.id > $after AND c.id < $end AND c.h IS NOT NULL"
            " AND coalesce(c.expires, $never) > timestamp()"
            " WITH c ORDER BY c.id LIMIT $most RETURN c.id, c.name",
            after=after,
            end=utf16_ordered(memory) + "\1",
            never=_NEVER,
            most=most,
        )
        # What was deleted meanwhile has no name any more, and leaves a page that is not full.
        there = sorted((row[0], row[1]) for row in rows if row[0] is not None and row[1] is not None)
        found += [name for _, name in there]
        if len(rows) < most or len(found) > limit:
            return page_of([name.encode() for name in found], limit)
        if there:
            after = there[-1][0]
