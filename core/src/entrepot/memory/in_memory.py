"""`InMemoryChatMemoryRepository`: conversations of this process, gone with it."""

from __future__ import annotations

import threading
import time
from bisect import bisect_right, insort
from typing import TYPE_CHECKING, Final

from entrepot.capabilities import Capabilities
from entrepot.exchange import DEFAULT_TIMEOUT
from entrepot.memory.questions import Question, answers
from entrepot.memory.repository import ChatMemoryRepository, Entry
from entrepot.messages import Role, decode_message
from entrepot.records import Page

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


_SWEPT: Final = 1000
"""Conversations that are looked at together for what has expired."""


class _Conversation:
    __slots__ = ("entries", "expires", "places")

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.places: dict[str, int] = {}
        self.expires = float("inf")


class InMemoryChatMemoryRepository(ChatMemoryRepository):
    """Conversations in memory, for tests and for programs that need not remember.

    Thread-safe. `native_client` is None: there is no driver.

    Args:
        ttl: Seconds after the last write at which a conversation is unknown (M8).
        clock: Seconds, growing; replaced in tests.
    """

    backend = "simple"
    capabilities = Capabilities(ttl=True, memory_search=True)
    sweeps = True

    def __init__(
        self,
        *,
        ttl: float | None = None,
        timeout: float = DEFAULT_TIMEOUT,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(ttl=ttl, timeout=timeout)
        self._clock = clock
        self._lock = threading.Lock()
        self._conversations: dict[str, _Conversation] = {}
        self._names: list[str] = []

    def _living(self, name: str) -> _Conversation | None:
        """Return a conversation that has not expired; one that has is removed. The lock is held."""
        conversation = self._conversations.get(name)
        if conversation is not None and conversation.expires <= self._clock():
            self._forget(name)
            return None
        return conversation

    def _forget(self, name: str) -> None:
        if self._conversations.pop(name, None) is not None:
            del self._names[bisect_right(self._names, name) - 1]

    def _fresh(self, name: str) -> _Conversation:
        conversation = self._conversations[name] = _Conversation()
        insort(self._names, name)
        return conversation

    def _add(self, conversation: _Conversation, entries: Sequence[Entry]) -> None:
        for entry in entries:
            if entry.id not in conversation.places:
                conversation.places[entry.id] = len(conversation.entries)
                conversation.entries.append(entry)
        if self.ttl is not None:
            conversation.expires = self._clock() + self.ttl

    def _append(self, conversation_id: str, entries: Sequence[Entry]) -> None:
        with self._lock:
            self._add(self._living(conversation_id) or self._fresh(conversation_id), entries)

    def _tail(self, conversation_id: str, last: int | None) -> list[bytes]:
        with self._lock:
            conversation = self._living(conversation_id)
            entries = [] if conversation is None else conversation.entries[-last if last else 0 :]
        return [entry.json for entry in entries]

    def _replace(self, conversation_id: str, entries: Sequence[Entry]) -> None:
        with self._lock:
            self._forget(conversation_id)
            self._add(self._fresh(conversation_id), entries)

    def _truncate(self, conversation_id: str, after: str) -> bool:
        with self._lock:
            conversation = self._living(conversation_id)
            if conversation is None or after not in conversation.places:
                return False
            keep = conversation.places[after] + 1
            for entry in conversation.entries[keep:]:
                del conversation.places[entry.id]
            del conversation.entries[keep:]
            self._add(conversation, [])
            return True

    def _delete(self, conversation_id: str) -> None:
        with self._lock:
            self._forget(conversation_id)

    def _ids(self, limit: int, cursor: str | None) -> Page[str]:
        with self._lock:
            start = 0 if cursor is None else bisect_right(self._names, cursor)
            found: list[str] = []
            more = False
            for name in self._names[start:]:
                if self._conversations[name].expires <= self._clock():
                    continue
                if len(found) == limit:
                    more = True
                    break
                found.append(name)
        return Page(found, found[-1] if more else None)

    def _latest(self, conversation_id: str, role: Role) -> bytes | None:
        with self._lock:
            conversation = self._living(conversation_id)
            entries = [] if conversation is None else conversation.entries
            return next((entry.json for entry in reversed(entries) if entry.role is role), None)

    def _find(self, question: Question) -> list[tuple[str, bytes]]:
        with self._lock:
            names = [name for name in self._names if self._conversations[name].expires > self._clock()]
            everything = [(name, list(self._conversations[name].entries)) for name in names]
        found = [
            (entry.message.created, name, place, entry.json)
            for name, entries in everything
            for place, entry in enumerate(entries)
            if answers(question, decode_message(entry.json))  # the caller's own object may have changed
        ]
        found.sort(key=lambda hit: (hit[1], -hit[2]))
        found.sort(key=lambda hit: hit[0], reverse=True)  # stable; a float of it would lose microseconds
        return [(name, text) for _, name, _, text in found[: question.limit]]

    def _sweep(self, after: str | None) -> tuple[int, str | None]:
        with self._lock:
            start = 0 if after is None else bisect_right(self._names, after)
            looked = self._names[start : start + _SWEPT]
            gone = [name for name in looked if self._living(name) is None]
        return len(gone), looked[-1] if len(looked) == _SWEPT else None

    def _close(self) -> None:
        self._conversations.clear()
        self._names.clear()
