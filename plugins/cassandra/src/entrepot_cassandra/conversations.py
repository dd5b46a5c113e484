# ruff: noqa: S608 - names come from `names.quoted`, columns from this package; every value is bound
"""Conversations in a table: what is read and written (M1 to M9). Scripts.

A conversation is one partition. Its static columns are its head: `epoch`, which replacing changes, `next`, the place of
the next message, `cut`, which cutting the tail changes, and `life`, the milliseconds that it lives. Its rows have a kind:

- 0: messages, by place, the newest first, with their JSON;
- 1: places by message id, so that an id is found without reading messages (M3);
- 2 to 5: places by role (W2).

Every write is one conditional batch in the partition: ``IF next = .. AND epoch = .. AND cut = ..`` of a head that was read
before, and the rows. Paxos orders all of them, so places are the order, and no clock is (M1). Appending rewrites no row. A
new epoch is a random number: no reader can take a row of a conversation that was removed for one of its successor.

The head is read at the level SERIAL, which ends what another writer has begun. What was read in several pages is held
against the head once more, and read anew if the conversation was replaced or cut in between: a page goes on by its
position, whatever stands there now.

Whether a conversation has expired, the server's clock tells: the time of the last write of `next`, which Paxos gives,
and the time of reading (M8).
"""

from __future__ import annotations

import random
import re
import secrets
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from entrepot.errors import RequestError, SizeLimitError
from entrepot.memory.cursors import name_behind, page_of
from entrepot.messages import Role
from entrepot.records import Page
from entrepot.scripted import work
from entrepot_cassandra.commands import Ask, Batch, Pause, Schema, change, has_table
from entrepot_cassandra.names import memory_table, quoted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from entrepot.memory.repository import Entry
    from entrepot_cassandra.commands import Rows, Script

MESSAGE: Final = 0
ID: Final = 1
ROLES: Final = {Role.SYSTEM: 2, Role.USER: 3, Role.ASSISTANT: 4, Role.TOOL: 5}
_BY_PLACE: Final = (MESSAGE, *ROLES.values())
_KINDS: Final = (MESSAGE, ID, *ROLES.values())
_PAGE: Final = 1000
_SWEPT: Final = 200
"""Conversations that one call of `sweep` looks at."""
_AT_ONCE: Final = 100
"""Messages that are encoded on the event loop; more are done beside it (E3)."""
_MOST_IDS: Final = 200
"""Message ids that one statement asks for."""
_NUMBER: Final = re.compile(rb"-?[0-9]{1,19}")
_FIRST_WAIT: Final = 0.005
_LONGEST_WAIT: Final = 0.2
LARGEST: Final = 4 * 1024 * 1024
"""Bytes of one batch: a server takes a mutation of half a segment of its log, 16 MiB unless it is told otherwise."""


class Table(NamedTuple):
    """The table of a memory."""

    keyspace: str
    name: str

    @property
    def path(self) -> str:
        """The table as it stands in a statement."""
        return f"{quoted(self.keyspace)}.{quoted(self.name)}"


class Head(NamedTuple):
    """What a conversation says of itself.

    Attributes:
        epoch: Which of the conversations of this id it is; None if there never was one.
        next: The place of the next message; None if there is no conversation.
        cut: Changes when the tail is cut.
        life: Milliseconds that it lives after a write; None is without end.
        living: Whether it is there and has not expired.
    """

    epoch: int | None
    next: int | None
    cut: int | None
    life: int | None
    living: bool


_NONE: Final = Head(None, None, None, None, living=False)


def table_of(keyspace: str, memory: str) -> Table:
    """Return the table of a memory."""
    return Table(keyspace, memory_table(memory))


def make(table: Table) -> Script[None]:
    """Make the table, if it is not there."""
    if (yield from has_table(table.keyspace, table.name)):
        return
    yield Schema(
        f"CREATE TABLE IF NOT EXISTS {table.path} (conversation text, kind tinyint, epoch bigint, place bigint,"
        " id text, body text, current bigint static, next bigint static, cut bigint static, life bigint static,"
        " PRIMARY KEY (conversation, kind, epoch, place, id))"
        " WITH CLUSTERING ORDER BY (kind ASC, epoch DESC, place DESC, id ASC)"
    )


def drop(table: Table) -> Script[None]:
    """Remove the table with all conversations, if it is there."""
    yield Schema(f"DROP TABLE IF EXISTS {table.path}")


# --- the head ---------------------------------------------------------------------------------------------

_HEAD: Final = "current, next, cut, life, writetime(next), toUnixTimestamp(now())"


def _head_of(row: Sequence[Any]) -> Head:
    current, place, cut, life, written, now = row
    living = place is not None and (life is None or written // 1000 + life > now)
    return Head(current, place, cut, life, living)


def head(table: Table, conversation: str) -> Script[Head]:
    """Return the head of a conversation."""
    found: Rows = yield Ask(
        f"SELECT {_HEAD} FROM {table.path} WHERE conversation = ? LIMIT 1", (conversation,), level="serial"
    )
    return _head_of(found.rows[0]) if found.rows else _NONE


class _Write:
    """A batch that is made: the head that it sets, and rows."""

    def __init__(self, table: Table, conversation: str, seen: Head) -> None:
        self._table = table
        self._conversation = conversation
        self._seen = seen
        self.asks: list[Ask] = []
        self.size = 0

    def head(self, epoch: int | None, place: int | None, cut: int | None, life: int | None) -> None:
        """Set the head, if it is still what was read."""
        conditions: list[str] = []
        values: list[int] = []
        for name, value in (
            ("current", self._seen.epoch),
            ("next", self._seen.next),
            ("cut", self._seen.cut),
        ):
            if value is None:
                conditions.append(f"{name} = null")
            else:
                conditions.append(f"{name} = ?")
                values.append(value)
        self.asks.insert(
            0,
            change(
                f"UPDATE {self._table.path} SET current = ?, next = ?, cut = ?, life = ? WHERE conversation = ?"
                f" IF {' AND '.join(conditions)}",
                epoch,
                place,
                cut,
                life,
                self._conversation,
                *values,
            ),
        )

    def add(self, epoch: int, first: int, entries: Sequence[Entry]) -> None:
        """Put messages at places from the first on."""
        cql = f"INSERT INTO {self._table.path} (conversation, kind, epoch, place, id, body) VALUES (?, ?, ?, ?, ?, ?)"
        for place, entry in enumerate(entries, first):
            self.size += len(entry.json) + 4 * len(entry.id) + 200
            for kind, at, text in (
                (MESSAGE, place, entry.json.decode()),
                (ID, 0, str(place)),
                (ROLES[entry.role], place, None),
            ):
                self.asks.append(change(cql, self._conversation, kind, epoch, at, entry.id, text))

    def clear(self, epoch: int) -> None:
        """Remove all rows of an epoch."""
        cql = f"DELETE FROM {self._table.path} WHERE conversation = ? AND kind = ? AND epoch = ?"
        self.asks += [change(cql, self._conversation, kind, epoch) for kind in _KINDS]

    def cut_behind(self, epoch: int, place: int, ids: Sequence[str]) -> None:
        """Remove what stands behind a place."""
        cql = (
            f"DELETE FROM {self._table.path} WHERE conversation = ? AND kind = ? AND epoch = ? AND place > ?"
        )
        self.asks += [change(cql, self._conversation, kind, epoch, place) for kind in _BY_PLACE]
        cql = f"DELETE FROM {self._table.path} WHERE conversation = ? AND kind = ? AND epoch = ? AND place = 0 AND id = ?"
        self.asks += [change(cql, self._conversation, ID, epoch, name) for name in ids]

    def send(self) -> Script[bool]:
        """Carry it out; return whether the head was still what was read.

        Raises:
            SizeLimitError: The messages are larger than a server takes at a time.
        """
        if self.size > LARGEST:
            msg = f"the messages have {self.size} bytes, and one batch may have {LARGEST}"
            raise SizeLimitError(msg, hint="append fewer messages at a time")
        told = yield Batch(self.asks)
        return bool(told.applied)


def _again(wait: float) -> Script[float]:
    """Wait a random moment, as another writer came first; return how long to wait the next time."""
    yield Pause(wait * random.uniform(0.2, 1.0))  # noqa: S311 - no secret
    return min(2 * wait, _LONGEST_WAIT)


def _new_epoch() -> int:
    return secrets.randbelow(2**62) + 1


# --- writing ----------------------------------------------------------------------------------------------


def append(table: Table, conversation: str, entries: Sequence[Entry], life: int | None) -> Script[None]:
    """Append the entries whose ids are not stored yet, in one step (M1, M3), and set the expiry anew (M8)."""
    wait = _FIRST_WAIT
    while True:
        seen = yield from head(table, conversation)
        known: set[str] = set()
        batch = _Write(table, conversation, seen)
        epoch, place, cut = seen.epoch, seen.next, seen.cut
        if seen.living and epoch is not None:
            known = yield from _known(table, conversation, epoch, [entry.id for entry in entries])
        else:
            if epoch is not None and seen.next is not None:
                batch.clear(epoch)
            epoch, place, cut = _new_epoch(), 0, 0
        fresh = [entry for entry in entries if entry.id not in known]
        place = place or 0
        yield from work(batch.add, epoch, place, fresh, at_once=len(fresh) <= _AT_ONCE)
        place += len(fresh)
        kept = seen.life if seen.living else None
        batch.head(epoch, place, cut, kept if life is None else life)
        if (yield from batch.send()):
            return
        wait = yield from _again(wait)


def _known(table: Table, conversation: str, epoch: int, ids: Sequence[str]) -> Script[set[str]]:
    """Return those of some message ids that are stored."""
    found: set[str] = set()
    for at in range(0, len(ids), _MOST_IDS):
        answer = yield Ask(
            f"SELECT id FROM {table.path} WHERE conversation = ? AND kind = ? AND epoch = ? AND place = 0 AND id IN ?",
            (conversation, ID, epoch, list(ids[at : at + _MOST_IDS])),
            level="serial",
        )
        found.update(row[0] for row in answer.rows)
    return found


def replace(table: Table, conversation: str, entries: Sequence[Entry], life: int | None) -> Script[None]:
    """Put entries in the place of all messages, in one step (M4)."""
    wait = _FIRST_WAIT
    while True:
        seen = yield from head(table, conversation)
        batch = _Write(table, conversation, seen)
        if seen.epoch is not None and seen.next is not None:
            batch.clear(seen.epoch)
        epoch = _new_epoch()
        yield from work(batch.add, epoch, 0, entries, at_once=len(entries) <= _AT_ONCE)
        kept = seen.life if seen.living else None
        batch.head(epoch, len(entries), 0, kept if life is None else life)
        if (yield from batch.send()):
            return
        wait = yield from _again(wait)


def truncate(table: Table, conversation: str, after: str, life: int | None) -> Script[bool]:
    """Remove what stands after a message, in one step; return whether it is there (M4)."""
    wait = _FIRST_WAIT
    while True:
        seen = yield from head(table, conversation)
        if not seen.living or seen.epoch is None:
            return False
        answer = yield Ask(
            f"SELECT body FROM {table.path} WHERE conversation = ? AND kind = ? AND epoch = ? AND place = 0 AND id = ?",
            (conversation, ID, seen.epoch, after),
            level="serial",
        )
        if not answer.rows:
            now = yield from head(table, conversation)
            if (now.epoch, now.cut) == (seen.epoch, seen.cut):
                return False
            continue
        place = int(answer.rows[0][0])
        ids = yield from _ids_behind(table, conversation, seen.epoch, place)
        batch = _Write(table, conversation, seen)
        yield from work(batch.cut_behind, seen.epoch, place, ids, at_once=len(ids) <= _AT_ONCE)
        # Places are never given twice: a reader between two pages would take new messages for old ones.
        batch.head(seen.epoch, (seen.next or 0) + 1, (seen.cut or 0) + 1, seen.life if life is None else life)
        if (yield from batch.send()):
            return True
        wait = yield from _again(wait)


def _ids_behind(table: Table, conversation: str, epoch: int, place: int) -> Script[list[str]]:
    found: list[str] = []
    ask = Ask(
        f"SELECT id FROM {table.path} WHERE conversation = ? AND kind = ? AND epoch = ? AND place > ?",
        (conversation, MESSAGE, epoch, place),
        level="serial",
        page=_PAGE,
    )
    while True:
        answer = yield ask
        found += [row[0] for row in answer.rows]
        if answer.state is None:
            return found
        ask = ask._replace(state=answer.state)


def delete(table: Table, conversation: str, *, expired: bool = False) -> Script[bool]:
    """Remove a conversation (M5); return whether there was one.

    Args:
        table: The memory's.
        conversation: Its id.
        expired: Leave one that is living.
    """
    wait = _FIRST_WAIT
    while True:
        seen = yield from head(table, conversation)
        if seen.epoch is None or (expired and seen.living):
            return False
        batch = _Write(table, conversation, seen)
        batch.clear(seen.epoch)
        batch.head(None, None, None, None)
        if (yield from batch.send()):
            return True
        wait = yield from _again(wait)


def sweep(table: Table, after: str | None) -> Script[tuple[int, str | None]]:
    """Remove some conversations that have expired; return how many, and where to go on (M8)."""
    found = yield from _listed(table, _behind(after), _SWEPT)
    removed = 0
    for one in found[:_SWEPT]:
        if one.head.next is not None and not one.head.living:
            removed += yield from delete(table, one.name, expired=True)
    return removed, _cursor(found, _SWEPT)


# --- reading ----------------------------------------------------------------------------------------------


def tail(table: Table, conversation: str, last: int | None) -> Script[list[bytes]]:
    """Return the JSON texts of all messages or of the newest `last`, in order (M7)."""
    limit = "" if last is None else " LIMIT ?"
    given = (conversation, MESSAGE) if last is None else (conversation, MESSAGE, min(last, 2**31 - 1))
    cql = f"SELECT body, epoch, {_HEAD} FROM {table.path} WHERE conversation = ? AND kind = ?{limit}"
    wait = _FIRST_WAIT
    while True:
        answer = yield Ask(cql, given, level="serial", page=_PAGE)
        rows = [row for row in answer.rows if row[0] is not None]
        if not rows:
            return []
        seen = _head_of(rows[0][2:])
        pages = 1
        while answer.state is not None:
            answer = yield Ask(cql, given, level="serial", page=_PAGE, state=answer.state)
            rows += [row for row in answer.rows if row[0] is not None]
            pages += 1
        if pages > 1:
            now = yield from head(table, conversation)
            if (now.epoch, now.cut) != (seen.epoch, seen.cut):
                wait = yield from _again(wait)
                continue
        if not seen.living:
            return []
        return (yield from work(_texts, rows, seen.epoch, at_once=len(rows) <= _PAGE))


def _texts(rows: Sequence[Sequence[Any]], epoch: int | None) -> list[bytes]:
    return [row[0].encode() for row in reversed(rows) if row[1] == epoch]


def latest(table: Table, conversation: str, role: Role) -> Script[bytes | None]:
    """Return the newest message of a role (W2)."""
    while True:
        answer = yield Ask(
            f"SELECT epoch, place, id, {_HEAD} FROM {table.path} WHERE conversation = ? AND kind = ? LIMIT 1",
            (conversation, ROLES[role]),
            level="serial",
        )
        rows = [row for row in answer.rows if row[2] is not None]
        if not rows or not _head_of(rows[0][3:]).living:
            return None
        epoch, place, name = rows[0][:3]
        answer = yield Ask(
            f"SELECT body FROM {table.path} WHERE conversation = ? AND kind = ? AND epoch = ? AND place = ? AND id = ?",
            (conversation, MESSAGE, epoch, place, name),
            level="serial",
        )
        if answer.rows:
            return bytes(answer.rows[0][0].encode())
        yield Pause(_FIRST_WAIT)  # it was replaced or cut in between


# --- listing ----------------------------------------------------------------------------------------------


class _Listed(NamedTuple):
    """A conversation in the order of the listing: that of tokens, and of names where these meet."""

    token: int
    name: str
    head: Head

    @property
    def place(self) -> tuple[int, bytes]:
        """Where it stands."""
        return self.token, self.name.encode()


def ids(table: Table, limit: int, cursor: str | None) -> Script[Page[str]]:
    """Return a page of conversation ids, in the order of their tokens (M9)."""
    behind = _behind(cursor)
    living: list[_Listed] = []
    while len(living) <= limit:
        size = min(limit + 1 - len(living), _PAGE)
        found = yield from _listed(table, behind, size)
        living += [one for one in found if one.head.living]
        if len(found) <= size:
            break
        behind = found[-1].place
    return Page([one.name for one in living[:limit]], _cursor(living, limit))


def _cursor(found: Sequence[_Listed], limit: int) -> str | None:
    """Return the cursor behind the last of a page; None if there are no more."""
    return page_of([f"{one.token} {one.name}".encode() for one in found[: limit + 1]], limit).token


def _behind(cursor: str | None) -> tuple[int, bytes] | None:
    """Return where a page begins; None for the first.

    Raises:
        RequestError: The cursor is none of `_cursor`.
    """
    text = name_behind(cursor)
    if text is None:
        return None
    number, _, name = text.partition(b" ")
    if not name or not _NUMBER.fullmatch(number):
        msg = "the cursor is none of this repository's"
        raise RequestError(msg, hint="pass the token of a page")
    return int(number), name


def _listed(table: Table, behind: tuple[int, bytes] | None, size: int) -> Script[list[_Listed]]:
    """Return conversations in order: more than `size`, or all that are left."""
    what = f"SELECT DISTINCT token(conversation), conversation, {_HEAD} FROM {table.path}"
    ask = Ask(what, page=_PAGE)
    if behind is not None:
        ask = Ask(f"{what} WHERE token(conversation) >= ?", (behind[0],), page=_PAGE)
    found: list[_Listed] = []
    while True:
        answer = yield ask
        rows = [_Listed(row[0], row[1], _head_of(row[2:])) for row in answer.rows]
        found += [one for one in rows if behind is None or one.place > behind]
        if answer.state is None or len(found) > size:
            return found
        ask = ask._replace(state=answer.state)
