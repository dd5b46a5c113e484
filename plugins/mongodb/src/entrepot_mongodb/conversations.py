"""Conversations as a log of operations: what is read and written (M1 to M9). Scripts.

Every operation on a conversation, an append, a replace or a delete, is one document of the collection ``log``, whose key is
the conversation's id, a NUL and a number. The numbers of a conversation have no gaps: whoever writes reads the newest and
inserts the next, and of two that insert the same number the engine refuses one, which looks again. So all operations have
one order, each is there whole or not at all, nothing that is stored is changed, and no transaction is needed.

An entry holds `i`, `r` and `m`: ids, roles and JSON texts of its messages; `b`, the number of the entry that its conversation
begins with, its own where it replaces; `n`, the number of the newest entry that has messages, as one that renews the expiry
alone has none; `p`, where the newest message of each role stands; `l` and `x`, the milliseconds
that the conversation lives and when it ends; `o`, a name of its own. An entry that deletes has `d`, and is kept for a day
(`z`): one that knows no newer number could else write behind what others have read. Messages that are too many for one
document are written before, in documents of their own under the name `u`, in `q` parts; until the entry names them, nobody
reads them.

The collection ``heads`` has a document for each conversation, for listing: made before the first entry, it holds the number
`s` of the newest entry that began, ended, or expires. What it says is held against the log.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from entrepot.errors import BackendError, CorruptDataError, UnreachableError
from entrepot.memory.cursors import name_behind, page_of
from entrepot_mongodb.commands import Call, Find, change, delete, insert
from entrepot_mongodb.faults import DuplicateKeyError
from entrepot_mongodb.log import (
    ROLES,
    STATE,
    Clock,
    Messages,
    below,
    chain_of,
    is_there,
    key,
    newest_of,
    texts_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from entrepot.messages import Role
    from entrepot.records import Page
    from entrepot_mongodb.commands import Script
    from entrepot_mongodb.names import MemoryNames

_MOST_BYTES: Final = 8 * 1024 * 1024
"""Bytes of messages of one document, unless a single one is longer; the engine takes 16 MiB in all."""
_MOST_SLICED: Final = 2**31 - 1
_LISTED: Final = 1000
_SWEPT: Final = 100
_KEPT: Final = timedelta(days=1)


# --- indexes ----------------------------------------------------------------------------------------------


def make(names: MemoryNames) -> Script[None]:
    """Make the indexes, where they are not there; what they serve is right without them, and slower."""
    yield Call(names.log, "create_index", ([("c", 1), ("i", 1)],), writes=True)
    yield Call(
        names.log, "create_index", ([("z", 1)],), {"expireAfterSeconds": 0, "sparse": True}, writes=True
    )
    yield Call(names.heads, "create_index", ([("x", 1)],), {"sparse": True}, writes=True)


# --- writing ----------------------------------------------------------------------------------------------


def append(
    names: MemoryNames, conversation: str, batch: Messages, life: int | None, clock: Clock
) -> Script[None]:
    """Append messages that are not there yet (M3)."""
    name = uuid4().hex
    while True:
        newest = yield from newest_of(names, conversation)
        lives = yield from is_there(newest, clock)
        fresh = batch
        if lives:
            fresh = yield from _unknown(names, conversation, newest, batch)
            if not fresh.ids and life is None and newest.get("l") is None:
                return
        entry = yield from _following(conversation, newest, fresh, life, clock, lives=lives, anew=not lives)
        if (yield from _put(names, conversation, entry, fresh, name)):
            if newest is not None and not lives:
                yield from _clear(names, conversation, entry["s"])
            return


def _unknown(names: MemoryNames, conversation: str, newest: Any, batch: Messages) -> Script[Messages]:
    """Return the messages whose ids the conversation does not hold."""
    wanted = {
        "c": conversation,
        "s": {"$gte": newest["b"], "$lte": newest["s"]},
        "i": {"$in": batch.ids},
    }
    found = yield Find(names.log, wanted, {"i": 1})
    known = {name for entry in found for name in entry["i"]}
    return _some(batch, [row for row, name in enumerate(batch.ids) if name not in known])


def _some(batch: Messages, rows: Sequence[int]) -> Messages:
    return Messages(
        [batch.ids[row] for row in rows],
        "".join(batch.roles[row] for row in rows),
        [batch.texts[row] for row in rows],
    )


def replace(
    names: MemoryNames, conversation: str, batch: Messages, life: int | None, clock: Clock
) -> Script[None]:
    """Put messages in the place of all (M4)."""
    name = uuid4().hex
    while True:
        newest = yield from newest_of(names, conversation)
        lives = yield from is_there(newest, clock)
        entry = yield from _following(conversation, newest, batch, life, clock, lives=lives, anew=True)
        if (yield from _put(names, conversation, entry, batch, name)):
            if newest is not None:
                yield from _clear(names, conversation, entry["s"])
            return


def truncate(
    names: MemoryNames, conversation: str, after: str, life: int | None, clock: Clock
) -> Script[bool]:
    """Remove what stands after a message; return whether it is there (M4)."""
    name = uuid4().hex
    fields = {**STATE, "i": 1, "r": 1, "m": 1, "q": 1}
    while True:
        chain = yield from chain_of(names, conversation, fields)
        if chain is None:
            continue
        newest = chain[0] if chain else None
        if not (yield from is_there(newest, clock)):
            return False
        kept = yield from _until(names, chain, after)
        if kept is None:
            if any(after in entry["i"] for entry in chain):  # its parts are gone by now
                continue
            return False
        entry = yield from _following(conversation, newest, kept, life, clock, lives=True, anew=True)
        if (yield from _put(names, conversation, entry, kept, name)):
            yield from _clear(names, conversation, entry["s"])
            return True


def _until(names: MemoryNames, chain: Sequence[Any], after: str) -> Script[Messages | None]:
    """Return the messages of a conversation up to one, that one included."""
    ids: list[str] = []
    roles: list[str] = []
    texts: list[str] = []
    for entry in reversed(chain):
        found = yield from texts_of(names, entry)
        if found is None:
            return None
        for row, name in enumerate(entry["i"]):
            ids.append(name)
            roles.append(entry["r"][row])
            texts.append(found[row])
            if name == after:
                return Messages(ids, "".join(roles), texts)
    return None


def remove(names: MemoryNames, conversation: str, clock: Clock, *, expired: bool = False) -> Script[bool]:
    """Remove a conversation (M5), or one that has expired; return whether it was there."""
    name = uuid4().hex
    while True:
        newest = yield from newest_of(names, conversation)
        if newest is None:
            return False
        if expired and (newest.get("d") or (yield from is_there(newest, clock))):
            return False
        number = newest["s"]
        if not newest.get("d"):
            number += 1
            entry = {
                "_id": key(conversation, number),
                "c": conversation,
                "s": number,
                "b": number,
                "n": number,
                "d": True,
            }
            entry |= {"r": "", "i": [], "m": [], "z": datetime.now(UTC) + _KEPT}
            if not (yield from _put(names, conversation, entry, Messages([], "", []), name)):
                continue
        yield from _clear(names, conversation, number)
        yield delete(names.heads, {"_id": conversation, "s": {"$lte": number}})
        return not newest.get("d")


def _following(  # noqa: PLR0913 - what an entry is made of
    conversation: str,
    newest: Any,
    batch: Messages,
    life: int | None,
    clock: Clock,
    *,
    lives: bool,
    anew: bool,
) -> Script[dict[str, Any]]:
    """Return the entry behind the newest: with messages for a conversation that lives, or that begins anew."""
    before: dict[str, Any] = newest or {"s": 0}
    number = before["s"] + 1
    places: dict[str, Any] = {} if anew else dict(before["p"])
    for row, role in enumerate(batch.roles):
        places[role] = [number, row]
    entry: dict[str, Any] = {
        "_id": key(conversation, number),
        "c": conversation,
        "s": number,
        "b": number if anew else before["b"],
        "n": number if batch.ids else before["n"],
        "i": batch.ids,
        "r": batch.roles,
        "m": batch.texts,
        "p": places,
    }
    kept = life if life is not None or not lives else before.get("l")
    if kept is not None:
        entry["l"] = kept
        entry["x"] = (yield from clock.now()) + kept
    return entry


def _put(
    names: MemoryNames, conversation: str, entry: dict[str, Any], batch: Messages, name: str
) -> Script[bool]:
    """Insert an entry; return False if another writer has taken its number."""
    entry["o"] = name
    if entry["s"] == entry["b"] or "x" in entry:
        yield from _announce(names, conversation, entry)
    if sum(map(len, batch.texts)) > _MOST_BYTES // 4:
        yield from _put_parts(names, entry, batch)
    try:
        yield insert(names.log, entry)
    except DuplicateKeyError:
        return (yield from _is_ours(names, entry))
    except UnreachableError as error:
        # Perhaps it was done before the connection broke: then doing it again would undo what others did since.
        if error.outcome == "unknown" and (yield from _is_ours_perhaps(names, entry)):
            return True
        raise
    return True


def _put_parts(names: MemoryNames, entry: dict[str, Any], batch: Messages) -> Script[None]:
    """Write messages into documents of their own, if they are too long for one."""
    parts = list(_parts(batch.texts))
    if len(parts) < 2:  # noqa: PLR2004 - one is the entry itself
        return
    name = f"\0{uuid4().hex}"
    for number, part in enumerate(parts):
        yield insert(names.log, {"_id": key(name, number), "m": part})
    entry |= {"m": [], "u": name, "q": len(parts)}
    for role in set(batch.roles):
        row, number = batch.roles.rindex(role), 0
        while row >= len(parts[number]):
            row -= len(parts[number])
            number += 1
        entry["p"][role] = [key(name, number), row]


def _parts(texts: Sequence[str]) -> Iterator[list[str]]:
    part: list[str] = []
    size = 0
    for text in texts:
        own = len(text.encode()) + 16
        if part and size + own > _MOST_BYTES:
            yield part
            part, size = [], 0
        part.append(text)
        size += own
    if part:
        yield part


def _is_ours(names: MemoryNames, entry: Mapping[str, Any]) -> Script[bool]:
    found = yield Call(names.log, "find_one", ({"_id": entry["_id"]}, {"o": 1}))
    return found is not None and found.get("o") == entry["o"]


def _is_ours_perhaps(names: MemoryNames, entry: Mapping[str, Any]) -> Script[bool]:
    try:
        return (yield from _is_ours(names, entry))
    except BackendError:
        return False


def _announce(names: MemoryNames, conversation: str, entry: Mapping[str, Any]) -> Script[None]:
    """Have the conversation listed, before there is anything to list."""
    what: dict[str, Any] = {"$max": {"s": entry["s"]}}
    what |= {"$set": {"x": entry["x"]}} if "x" in entry else {"$unset": {"x": ""}}
    while True:
        try:
            yield change(names.heads, {"_id": conversation}, what, upsert=True)
        except DuplicateKeyError:  # another made it at the same time
            continue
        return


def _clear(names: MemoryNames, conversation: str, number: int) -> Script[None]:
    """Free the room of entries below a number, which nobody reads any more."""
    gone = below(conversation, number)
    for entry in (yield Find(names.log, {**gone, "u": {"$exists": True}}, {"u": 1})):
        yield delete(names.log, below(entry["u"]))
    yield delete(names.log, gone)


# --- reading ----------------------------------------------------------------------------------------------


def tail(names: MemoryNames, conversation: str, last: int | None, clock: Clock) -> Script[list[bytes]]:
    """Return the JSON texts of all messages or of the newest `last`, in order (M7)."""
    fields: dict[str, Any] = {
        **STATE,
        "r": 1,
        "q": 1,
        "m": 1 if last is None else {"$slice": -min(last, _MOST_SLICED)},
    }
    while True:
        chain = yield from chain_of(names, conversation, fields, last)
        if chain is None:
            continue
        if not (yield from is_there(chain[0] if chain else None, clock)):
            return []
        found: list[str] = []
        whole = True
        for entry in reversed(chain):
            texts = yield from texts_of(names, entry)
            whole = whole and texts is not None
            found += texts or ()
        if whole:
            return [text.encode() for text in (found if last is None else found[-last:])]


def latest(names: MemoryNames, conversation: str, role: Role, clock: Clock) -> Script[bytes | None]:
    """Return the newest message of a role (W2)."""
    while True:
        newest = yield from newest_of(names, conversation)
        if not (yield from is_there(newest, clock)):
            return None
        place = newest["p"].get(ROLES[role])
        if place is None:
            return None
        where, row = place
        held = where if isinstance(where, str) else key(conversation, where)
        found = yield Call(names.log, "find_one", ({"_id": held}, {"m": {"$slice": [row, 1]}}))
        if found is not None:
            if not found["m"]:
                msg = f"the log of conversation {conversation!r} lacks a message"
                raise CorruptDataError(msg, hint="other software changed it")
            return str(found["m"][0]).encode()
        # A replace removed it meanwhile.


# --- listing ----------------------------------------------------------------------------------------------


def ids(names: MemoryNames, limit: int, cursor: str | None, clock: Clock) -> Script[Page[str]]:
    """Return a page of conversation ids, in the engine's order (M9)."""
    behind = name_behind(cursor)
    after = None if behind is None else behind.decode()
    found: list[bytes] = []
    while len(found) <= limit:
        wanted = {} if after is None else {"_id": {"$gt": after}}
        most = min(limit + 1 - len(found), _LISTED)
        heads = yield Find(names.heads, wanted, {"s": 1}, [("_id", 1)], limit=most)
        living = yield from _living(names, heads, clock)
        found += [head["_id"].encode() for head in heads if head["_id"] in living]
        if len(heads) < most:
            break
        after = heads[-1]["_id"]
    return page_of(found, limit)


def _living(names: MemoryNames, heads: Sequence[Any], clock: Clock) -> Script[set[str]]:
    """Return which of some conversations are there."""
    keys = [key(head["_id"], head["s"]) for head in heads]
    entries: list[Any] = yield Find(names.log, {"_id": {"$in": keys}}, {"c": 1, "d": 1, "x": 1})
    there = {entry["c"]: entry for entry in entries}
    found: set[str] = set()
    for head in heads:
        name = head["_id"]
        # Missing where a writer announced an entry that is not there yet, or never came.
        entry: Any = there.get(name) or (yield from newest_of(names, name))
        if (yield from is_there(entry, clock)):
            found.add(name)
    return found


def sweep(names: MemoryNames, clock: Clock) -> Script[tuple[int, str | None]]:
    """Remove some conversations that have expired; return how many, and a place if there is more."""
    now = yield from clock.now()
    heads = yield Find(names.heads, {"x": {"$lte": now}}, {"s": 1, "x": 1}, [("x", 1)], limit=_SWEPT)
    removed = 0
    for head in heads:
        name = head["_id"]
        newest = yield from newest_of(names, name)
        if newest is None or newest.get("d"):
            yield delete(names.heads, {"_id": name, "s": head["s"]})
        elif (yield from is_there(newest, clock)):
            said = {"$set": {"x": newest["x"]}} if newest.get("x") is not None else {"$unset": {"x": ""}}
            yield change(names.heads, {"_id": name, "s": head["s"], "x": head["x"]}, said)
        else:
            removed += yield from remove(names, name, clock, expired=True)
    return removed, "more" if len(heads) == _SWEPT else None
