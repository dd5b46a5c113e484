"""Questions across conversations (M10): what is indexed of a message, and how hits become answers. Scripts.

The index narrows: by tokens of role and metadata, by time, and by words that stand whole in the text asked for.
Whether a message answers is decided here, on the message itself. A hit of a conversation that has expired, or
was deleted or replaced, names a generation that the conversation no longer has, and is dropped.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from entrepot.encoding import digest, equality_token, microseconds, presence_token
from entrepot.memory.questions import answers
from entrepot.messages import decode_message
from entrepot_redis.commands import Ask, Lua
from entrepot_redis.reading import ALWAYS
from entrepot_redis.replies import found
from entrepot_redis.words import words_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from entrepot.memory.questions import Question
    from entrepot.messages import Message
    from entrepot_redis.commands import Script
    from entrepot_redis.names import MemoryNames
    from entrepot_redis.replies import Row

_PAGE: Final = 200
"""Messages that a question looks at, at least, in one step."""
_PICKED: Final = 1000
"""Messages that one script reads."""
_ALL: Final = 1_000_000
"""The most that the engine gives."""
_MOST_WORDS: Final = 8
_WORD: Final = re.compile(r"[^\W_]+")
_INT64: Final = 2**63

_PICK: Final = Lua("""
local picked = {}
for at = 2, #ARGV, 2 do
    local entry = false
    local head = redis.call('HGET', KEYS[1], ARGV[at])
    if head then
        local name = string.sub(head, string.find(head, '\\0', 1, true) + 1)
        if redis.call('HGET', ARGV[1] .. 'ids/' .. name, '\\0g') == ARGV[at] then
            local message = redis.call('LINDEX', ARGV[1] .. 'log/' .. name, ARGV[at + 1])
            if message then entry = {name, message} end
        end
    end
    picked[#picked + 1] = entry
end
return picked
""")
"""KEYS: heads. ARGV: base, then generations and places. Returns conversations and entries, or nothing for those
that are gone."""


_READ: Final = Lua("""
local head = redis.call('HGET', KEYS[1], ARGV[2])
if not head then return false end
local name = string.sub(head, string.find(head, '\\0', 1, true) + 1)
if redis.call('HGET', ARGV[1] .. 'ids/' .. name, '\\0g') ~= ARGV[2] then return false end
return {name, redis.call('LRANGE', ARGV[1] .. 'log/' .. name, 0, -1)}
""")
"""KEYS: heads. ARGV: base, generation. Returns a conversation and all its entries, or nothing if it is gone."""


class Notes(NamedTuple):
    """What the index has of a message: tokens, microseconds since 1970, and words."""

    tokens: str
    created: int
    words: str


NOTHING: Final = Notes("", 0, "")


def notes_of(message: Message) -> Notes:
    """Return what is indexed of a message."""
    tokens = [_role_token(message.role)]
    for key, value in message.metadata.items():
        tokens += _tokens(key, value)
    return Notes(",".join(tokens), microseconds(message.created), " ".join(words_of(message.text)))


def _role_token(role: str) -> str:
    return digest("role", str(role))


def _tokens(key: str, value: Any) -> list[str]:
    """Return the tokens of a key and its value: values that are equal as JSON have the same."""
    tokens = [presence_token(key)]
    simple = isinstance(value, str | bool | float) or (isinstance(value, int) and -_INT64 <= value < _INT64)
    if simple:
        tokens.append(equality_token(key, value))
    return tokens


def _asked(question: Question) -> list[str]:
    """Return the conditions of a question but for its end, each a part of a query."""
    tokens = [] if question.role is None else [_role_token(question.role)]
    for key, value in question.metadata.items():
        tokens += _tokens(key, value)
    parts = [f"@t:{{{token}}}" for token in dict.fromkeys(tokens)]
    if question.since is not None:
        parts.append(f"@c:[{microseconds(question.since)} inf]")
    if question.until is not None:
        parts.append(f"@c:[-inf {microseconds(question.until)}]")
    if question.text:
        parts += [f"@w:({word})" for word in _whole_words(question.text)]
    return parts


def _whole_words(text: str) -> list[str]:
    """Return words that a message's text has if it has this text: those that end within it on both sides."""
    lowered = text.lower()
    whole = [
        part[0]
        for part in _WORD.finditer(lowered)
        if part.start() > 0 and part.end() < len(lowered) and part[0].isascii()
    ]
    words = [word for part in whole for word in words_of(part)]
    return sorted(set(words), key=lambda word: (-len(word), word))[:_MOST_WORDS]


class _Answer(NamedTuple):
    created: datetime
    conversation: str
    place: int
    text: bytes


def find(names: MemoryNames, question: Question) -> Script[list[tuple[str, bytes]]]:
    """Return conversations and messages that a question finds, newest first.

    Raises:
        CollectionNotFoundError: The index over messages was made, and is gone.
    """
    [has_index, unsaid] = yield Ask([("HEXISTS", names.heads, "index"), ("SMEMBERS", names.unsaid)])
    answered = yield from _read(names, sorted(unsaid), question)
    if has_index:
        answered += yield from _found(names, question, frozenset(unsaid))
    answered.sort(key=_rank)
    return [(answer.conversation, answer.text) for answer in answered[: question.limit]]


def _rank(answer: _Answer) -> tuple[int, str, int]:
    """Return what answers are sorted by: newest first."""
    return -microseconds(answer.created), answer.conversation, -answer.place


def _read(names: MemoryNames, unsaid: Sequence[bytes], question: Question) -> Script[list[_Answer]]:
    """Return answers among conversations that the index does not have whole, by reading them."""
    answered: list[_Answer] = []
    for generation in unsaid:
        [read] = yield Ask([_READ([names.heads], names.base, generation)])
        name, entries = read or (b"", ())
        answered += _answering(((name, place, entry) for place, entry in enumerate(entries)), question)
    return answered


def _answering(entries: Iterable[tuple[bytes, int, bytes]], question: Question) -> list[_Answer]:
    """Return those of conversations, places and entries that answer."""
    answered: list[_Answer] = []
    for name, place, entry in entries:
        text = entry.split(b"\0", 2)[2]
        message = decode_message(text)
        if answers(question, message):
            answered.append(_Answer(message.created, name.decode(), place, text))
    return answered


def _found(names: MemoryNames, question: Question, unsaid: frozenset[bytes]) -> Script[list[_Answer]]:
    """Return the newest answers by the index, at least as many as asked if there are, beside those read already."""
    parts = _asked(question)
    answered: list[_Answer] = []
    before: float | None = None
    size = max(_PAGE, 2 * question.limit)
    while True:
        bounded = parts if before is None else [*parts, f"@c:[-inf ({before!r}]"]
        rows = yield from _hits(names, bounded, size)
        last = _time(rows[-1]) if len(rows) == size else None
        if last is not None:
            # There may be more of the last instant than the page took: they belong together.
            same = yield from _hits(names, [*parts, f"@c:[{last!r} {last!r}]"], _ALL)
            rows = [row for row in rows if _time(row) != last] + same
        answered += yield from _picked(names, rows, question, unsaid)
        if last is None or len(answered) >= question.limit:
            return answered
        before = last


def _time(row: Row) -> float:
    return float(row.fields[b"k"])


def _hits(names: MemoryNames, parts: Sequence[str], most: int) -> Script[list[Row]]:
    command = (
        "FT.SEARCH", names.said, " ".join(parts) or "*", "VERBATIM", "SORTBY", "c", "DESC",
        "RETURN", "1", "k", "LIMIT", "0", most, *ALWAYS,
    )  # fmt: skip
    [reply] = yield Ask([command])
    return found(reply).rows


def _picked(
    names: MemoryNames, rows: Sequence[Row], question: Question, unsaid: frozenset[bytes]
) -> Script[list[_Answer]]:
    """Return the messages of hits that are still there and answer."""
    answered: list[_Answer] = []
    hits = [row.key.rsplit(b"/", 2)[1:] for row in rows]
    hits = [hit for hit in hits if hit[0] not in unsaid]
    for at in range(0, len(hits), _PICKED):
        part = hits[at : at + _PICKED]
        [picked] = yield Ask([_PICK([names.heads], names.base, *(value for hit in part for value in hit))])
        entries = (
            (entry[0], int(place), entry[1])
            for (_, place), entry in zip(part, picked, strict=True)
            if entry is not None
        )
        answered += _answering(entries, question)
    return answered
