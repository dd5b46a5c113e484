"""Conversations in Redis: what is read and written (M1 to M9). Scripts.

A conversation is two keys that expire together: a list of its messages, and a HASH with the place of each
message by id. Beside them, for the whole memory: a sorted set of all conversation ids, and for questions (M10)
a HASH for each message, which its generation and place name, and a set of the generations that hold messages
without one, written by a memory that answers no questions. A conversation gets a new generation when it
begins and when it is replaced; what belongs to another one is as good as gone (`entrepot_redis.questions`).

An entry of the list is the place of the newest earlier message of the same role, if there is one, a letter for
the role, NUL, the message's id, NUL, and its JSON. The HASH also holds, under names that begin with NUL as
no id does, the generation (g), the milliseconds that the conversation lives (l), and the place of the newest message
of each role: so `latest` reads one entry, and cutting the tail finds what came before.

Every operation is one Lua script or one command: whole, or not at all. How durable it is, is the server's
business (appendonly, appendfsync).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from entrepot.memory.cursors import name_behind, page_of
from entrepot.messages import Role
from entrepot_redis.commands import Ask, Lua
from entrepot_redis.questions import NOTHING, notes_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from entrepot.memory.repository import Entry
    from entrepot.records import Page
    from entrepot_redis.commands import Command, Script
    from entrepot_redis.names import MemoryNames

ROLES: Final = {Role.SYSTEM: "s", Role.USER: "u", Role.ASSISTANT: "a", Role.TOOL: "t"}
_LOOKED_AT: Final = 5000
"""Conversation ids that one script passes over to find some that have not expired."""
_SWEPT: Final = 500
"""Messages that one script removes of conversations that have expired."""

_COMMON: Final = """
local log, ids, conversations, heads, due, unsaid = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local function said(generation, place)
    return ARGV[2] .. 'said/' .. generation .. '/' .. string.format('%d', place)
end
local function forget()
    local generation = redis.call('HGET', ids, '\\0g')
    if generation then
        for place = 0, redis.call('LLEN', log) - 1 do redis.call('DEL', said(generation, place)) end
        redis.call('HDEL', heads, generation)
        redis.call('ZREM', due, generation)
        redis.call('SREM', unsaid, generation)
    end
    redis.call('DEL', log, ids)
end
local function renew(generation, given)
    redis.call('HSET', heads, generation, string.format('%d', redis.call('LLEN', log)) .. '\\0' .. ARGV[1])
    local life = given
    if life == '' then life = redis.call('HGET', ids, '\\0l') else redis.call('HSET', ids, '\\0l', life) end
    if life then
        local now = redis.call('TIME')
        local at = string.format('%d', now[1] * 1000 + math.ceil(now[2] / 1000) + life)
        redis.call('PEXPIREAT', log, at)
        redis.call('PEXPIREAT', ids, at)
        redis.call('ZADD', due, at, generation)
    end
end
"""
"""KEYS: log, ids, conversations, heads, due, unsaid. ARGV: conversation, base of the memory's keys."""

_STORE: Final = Lua(
    _COMMON
    + """
local life, questions = ARGV[3], ARGV[5] == '1'
if questions and redis.call('HEXISTS', heads, 'index') == 0 then
    local made = redis.pcall('FT.CREATE', ARGV[2] .. 'said', 'ON', 'HASH', 'PREFIX', '1', ARGV[2] .. 'said/',
        'STOPWORDS', '0', 'NOOFFSETS', 'SKIPINITIALSCAN', 'SCHEMA', 't', 'TAG', 'SEPARATOR', ',', 'CASESENSITIVE',
        'c', 'NUMERIC', 'SORTABLE', 'w', 'TEXT', 'NOSTEM')
    if made.err and not string.find(string.lower(made.err), 'already exists', 1, true) then return made end
    redis.call('HSET', heads, 'index', '1')
end
if ARGV[4] == 'replace' then
    if life == '' then life = redis.call('HGET', ids, '\\0l') or '' end
    forget()
end
local generation = redis.call('HGET', ids, '\\0g')
if not generation then
    generation = string.format('%d', redis.call('INCR', KEYS[7]))
    redis.call('HSET', ids, '\\0g', generation)
    redis.call('ZADD', conversations, '0', ARGV[1])
end
local place = redis.call('LLEN', log)
for at = 6, #ARGV, 6 do
    local id, role = ARGV[at], '\\0' .. ARGV[at + 1]
    local text = string.format('%d', place)
    if redis.call('HSETNX', ids, id, text) == 1 then
        local before = redis.call('HGET', ids, role) or ''
        redis.call('RPUSH', log, before .. ARGV[at + 1] .. '\\0' .. id .. '\\0' .. ARGV[at + 2])
        redis.call('HSET', ids, role, text)
        if questions then
            redis.call('HSET', said(generation, place), 't', ARGV[at + 3], 'c', ARGV[at + 4], 'k', ARGV[at + 4],
                'w', ARGV[at + 5])
        else
            redis.call('SADD', unsaid, generation)
        end
        place = place + 1
    end
end
renew(generation, life)
"""
)
"""Behind the common ones, KEYS: counter. ARGV: milliseconds to live or nothing, append or replace, whether
to index messages; then for each its id, role, JSON, tokens, time and words."""

_TRUNCATE: Final = Lua(
    _COMMON
    + """
local kept = redis.call('HGET', ids, ARGV[4])
if not kept then return 0 end
local generation = redis.call('HGET', ids, '\\0g')
local place, seen = tonumber(kept), {}
for _, entry in ipairs(redis.call('LRANGE', log, place + 1, -1)) do
    place = place + 1
    local first = string.find(entry, '\\0', 1, true)
    local second = string.find(entry, '\\0', first + 1, true)
    local before, role = string.sub(entry, 1, first - 2), '\\0' .. string.sub(entry, first - 1, first - 1)
    redis.call('HDEL', ids, string.sub(entry, first + 1, second - 1))
    redis.call('DEL', said(generation, place))
    if not seen[role] then
        seen[role] = true
        if before == '' then redis.call('HDEL', ids, role) else redis.call('HSET', ids, role, before) end
    end
end
redis.call('LTRIM', log, 0, kept)
renew(generation, ARGV[3])
return 1
"""
)
"""ARGV behind the common ones: milliseconds to live or nothing, the id of the message to keep."""

_DELETE: Final = Lua(
    _COMMON
    + """
forget()
redis.call('ZREM', conversations, ARGV[1])
"""
)

_LATEST: Final = Lua("""
local place = redis.call('HGET', KEYS[2], ARGV[1])
return place and redis.call('LINDEX', KEYS[1], place)
""")
"""KEYS: log, ids. ARGV: the name of the role's entry."""

_LIST: Final = Lua("""
local found, from, looked = {}, ARGV[2], 0
local most, budget = tonumber(ARGV[3]), tonumber(ARGV[4])
local last = false
while #found < most and looked < budget do
    local page = redis.call('ZRANGEBYLEX', KEYS[1], from, '+', 'LIMIT', '0', most - #found)
    if #page == 0 then return {'', unpack(found)} end
    for _, name in ipairs(page) do
        if redis.call('EXISTS', ARGV[1] .. 'log/' .. name) == 1 then found[#found + 1] = name end
        last = name
    end
    looked = looked + #page
    from = '(' .. last
end
return {from, unpack(found)}
""")
"""KEYS: conversations. ARGV: base, where to begin, most ids, ids to look at. Returns where to go on, nothing at the
end, and ids of conversations that have not expired."""

_SWEEP: Final = Lua("""
local now = redis.call('TIME')
local removed, budget = 0, tonumber(ARGV[2])
local expired = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', string.format('%d', now[1] * 1000), 'LIMIT', '0', '100')
for _, generation in ipairs(expired) do
    local head = redis.call('HGET', KEYS[2], generation)
    local name = false
    local left = 0
    if head then
        local zero = string.find(head, '\\0', 1, true)
        left, name = tonumber(string.sub(head, 1, zero - 1)), string.sub(head, zero + 1)
    end
    local ids = name and ARGV[1] .. 'ids/' .. name
    if name and redis.call('HGET', ids, '\\0g') == generation then
        -- It lives: what was noted of its end is corrected.
        local at = redis.call('PEXPIRETIME', ids)
        if at > 0 then redis.call('ZADD', KEYS[1], string.format('%d', at), generation)
        else redis.call('ZREM', KEYS[1], generation) end
        left = 0
        head = false
    end
    local stop = math.max(0, left - budget)
    for place = stop, left - 1 do
        redis.call('DEL', ARGV[1] .. 'said/' .. generation .. '/' .. string.format('%d', place))
    end
    budget = budget - (left - stop)
    if stop > 0 then
        redis.call('HSET', KEYS[2], generation, string.format('%d', stop) .. '\\0' .. name)
        return {removed, 1}
    end
    if head then
        redis.call('HDEL', KEYS[2], generation)
        redis.call('ZREM', KEYS[1], generation)
        redis.call('SREM', KEYS[4], generation)
        if redis.call('EXISTS', ARGV[1] .. 'log/' .. name) == 0 then redis.call('ZREM', KEYS[3], name) end
        removed = removed + 1
    elseif not name then
        redis.call('ZREM', KEYS[1], generation)
    end
    if budget <= 0 then return {removed, 1} end
end
return {removed, #expired == 100 and 1 or 0}
""")
"""KEYS: due, heads, conversations, unsaid. ARGV: base, messages to remove at most. Returns how many conversations are
removed for good, and whether there is more."""


def _keys(names: MemoryNames, conversation: str) -> list[str | bytes]:
    return [
        names.log(conversation),
        names.ids(conversation),
        names.conversations,
        names.heads,
        names.due,
        names.unsaid,
    ]


def stored(  # noqa: PLR0913 - what a write is
    names: MemoryNames,
    conversation: str,
    entries: Sequence[Entry],
    *,
    life: int | None,
    replace: bool,
    questions: bool,
) -> Command:
    """Return the command that appends entries, or puts them in the place of all.

    Args:
        names: Keys of the memory.
        conversation: Its id.
        entries: At least one.
        life: Milliseconds after which the conversation expires; None keeps what is set.
        replace: Whether what there is goes first.
        questions: Whether messages are indexed.
    """
    parts: list[str | bytes | int] = []
    for entry in entries:
        notes = notes_of(entry.message) if questions else NOTHING
        parts += (entry.id, ROLES[entry.role], entry.json, notes.tokens, notes.created, notes.words)
    return _STORE(
        [*_keys(names, conversation), names.counter],
        conversation,
        names.base,
        "" if life is None else life,
        "replace" if replace else "append",
        "1" if questions else "0",
        *parts,
    )


def write(command: Command) -> Script[None]:
    """Carry out a command that writes."""
    yield Ask([command], writes=True)


def truncate(names: MemoryNames, conversation: str, after: str, life: int | None) -> Script[bool]:
    """Remove what stands after a message; return whether it is there (M4)."""
    command = _TRUNCATE(
        _keys(names, conversation), conversation, names.base, "" if life is None else life, after
    )
    [found] = yield Ask([command], writes=True)
    return bool(found)


def delete(names: MemoryNames, conversation: str) -> Script[None]:
    """Remove a conversation (M5)."""
    yield Ask([_DELETE(_keys(names, conversation), conversation, names.base)], writes=True)


def tail(names: MemoryNames, conversation: str, last: int | None) -> Script[list[bytes]]:
    """Return the JSON texts of all messages or of the newest `last`, in order (M7)."""
    first = 0 if last is None else -last
    [entries] = yield Ask([("LRANGE", names.log(conversation), first, -1)])
    return [json_of(entry) for entry in entries]


def latest(names: MemoryNames, conversation: str, role: Role) -> Script[bytes | None]:
    """Return the newest message of a role (W2)."""
    keys = [names.log(conversation), names.ids(conversation)]
    [entry] = yield Ask([_LATEST(keys, f"\0{ROLES[role]}")])
    return None if entry is None else json_of(entry)


def json_of(entry: bytes) -> bytes:
    """Return the message of an entry of a conversation's list."""
    return entry.split(b"\0", 2)[2]


def ids(names: MemoryNames, limit: int, cursor: str | None) -> Script[Page[str]]:
    """Return a page of conversation ids, in the order of their bytes (M9)."""
    found: list[bytes] = []
    behind = name_behind(cursor)
    start = b"-" if behind is None else b"(" + behind
    while start and len(found) <= limit:
        most = min(limit + 1 - len(found), _LOOKED_AT)
        [[start, *more]] = yield Ask([_LIST([names.conversations], names.base, start, most, _LOOKED_AT)])
        found += more
    return page_of(found, limit)


def sweep(names: MemoryNames) -> Script[tuple[int, str | None]]:
    """Remove what is left of conversations that have expired; return how many, and a place if there is more."""
    command = _SWEEP([names.due, names.heads, names.conversations, names.unsaid], names.base, _SWEPT)
    [[removed, more]] = yield Ask([command], writes=True)
    return removed, "more" if more else None
