"""The log of a conversation's operations, as `entrepot_mongodb.conversations` says what it is: entries, and what is there."""

from __future__ import annotations

import time
from datetime import UTC
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from entrepot.messages import Role
from entrepot_mongodb.commands import Call, Find

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from entrepot.memory.repository import Entry
    from entrepot_mongodb.commands import Script
    from entrepot_mongodb.names import MemoryNames

ROLES: Final = {Role.SYSTEM: "s", Role.USER: "u", Role.ASSISTANT: "a", Role.TOOL: "t"}
_DIGITS: Final = 12
_PAGE: Final = 200
"""Entries that are read at a time."""
_STALE: Final = 60.0
"""Seconds after which the server's clock is asked for again."""
STATE: Final[dict[str, Any]] = dict.fromkeys(("s", "b", "n", "p", "l", "x", "d", "u"), 1)
"""What a writer reads of the newest entry."""


class Messages(NamedTuple):
    """Messages ready to be stored: ids, roles as one letter each, JSON texts."""

    ids: list[str]
    roles: str
    texts: list[str]


class Clock:
    """The server's clock, as far as it is known here (M8)."""

    def __init__(self) -> None:
        self._ahead = 0.0
        self._asked = float("-inf")

    def now(self) -> Script[int]:
        """Return the server's time in milliseconds since 1970."""
        if time.monotonic() - self._asked > _STALE:
            before = time.time()
            hello = yield Call(None, "command", ("hello",))
            after = time.time()
            told = hello["localTime"].replace(tzinfo=UTC).timestamp()
            self._ahead, self._asked = told - (before + after) / 2, time.monotonic()
        return round((time.time() + self._ahead) * 1000)


def batch_of(entries: Sequence[Entry]) -> Messages:
    """Return messages ready to be stored."""
    return Messages(
        [entry.id for entry in entries],
        "".join(ROLES[entry.role] for entry in entries),
        [entry.json.decode() for entry in entries],
    )


def key(conversation: str, number: int) -> str:
    """Return the key of an entry; the keys of a conversation sort as its numbers do."""
    return f"{conversation}\0{number:0{_DIGITS}x}"


def below(conversation: str, number: int | None = None) -> dict[str, Any]:
    """Return the filter of a conversation's entries, or of those below a number."""
    end = f"{conversation}\1" if number is None else key(conversation, number)
    return {"_id": {"$gte": f"{conversation}\0", "$lt": end}}


def newest_of(names: MemoryNames, conversation: str, fields: Mapping[str, Any] = STATE) -> Script[Any]:
    """Return the newest entry, or None."""
    found = yield Find(names.log, below(conversation), fields, [("_id", -1)], limit=1)
    return found[0] if found else None


def is_there(entry: Any, clock: Clock) -> Script[bool]:
    """Whether a conversation of which this is the newest entry is there: neither deleted nor expired (M5, M8)."""
    if entry is None or entry.get("d"):
        return False
    if entry.get("x") is None:
        return True
    return bool((yield from clock.now()) < entry["x"])


def chain_of(
    names: MemoryNames, conversation: str, fields: Mapping[str, Any], last: int | None = None
) -> Script[list[Any] | None]:
    """Return entries of a conversation, newest first, down to its first or until they hold `last` messages.

    None if one is missing: a replace removed it meanwhile.
    """
    found: list[Any] = []
    count = 0
    size = _PAGE if last is None else min(last, _PAGE)
    expected: int | None = None
    while True:
        page = yield Find(
            names.log,
            below(conversation, None if expected is None else expected + 1),
            fields,
            [("_id", -1)],
            limit=size,
        )
        for entry in page:
            if expected is not None and entry["s"] > expected:
                continue  # one without messages, which a newer one has told
            if expected is not None and entry["s"] < expected:
                return None
            found.append(entry)
            expected = entry["s"] - 1 if entry["n"] == entry["s"] else entry["n"]
            count += len(entry.get("r", ""))
            if entry["s"] == found[0]["b"] or (last is not None and count >= last):
                return found
        if len(page) < size:
            return None if found else []


def texts_of(names: MemoryNames, entry: Any) -> Script[list[str] | None]:
    """Return the JSON texts of an entry, those of its parts too; None if a replace removed them meanwhile."""
    if "u" not in entry:
        return list(entry["m"])
    parts = yield Find(names.log, below(entry["u"]), {"m": 1}, [("_id", 1)], batch=1)
    if len(parts) != entry["q"]:
        return None
    return [text for part in parts for text in part["m"]]
