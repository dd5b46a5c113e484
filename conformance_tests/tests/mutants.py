"""Memories that break one rule each. The suite must notice every one of them."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from entrepot import InMemoryChatMemoryRepository
from entrepot.capabilities import Capabilities
from entrepot.records import Page

if TYPE_CHECKING:
    from collections.abc import Sequence

    from entrepot.memory import Entry, Question
    from entrepot.messages import Role


class Sorted(InMemoryChatMemoryRepository):
    """Orders messages by their timestamps (M1)."""

    def _tail(self, conversation_id: str, last: int | None) -> list[bytes]:
        with self._lock:
            conversation = self._living(conversation_id)
            entries = [] if conversation is None else conversation.entries
            ordered = sorted(entries, key=lambda entry: entry.message.created)
            return [entry.json for entry in ordered[-last if last else 0 :]]


class Trimming(InMemoryChatMemoryRepository):
    """Loses the white space at the end of ids, as padded columns do (M6)."""

    def _append(self, conversation_id: str, entries: Sequence[Entry]) -> None:
        super()._append(conversation_id.rstrip() or conversation_id, entries)

    def _tail(self, conversation_id: str, last: int | None) -> list[bytes]:
        return super()._tail(conversation_id.rstrip() or conversation_id, last)


class Folding(InMemoryChatMemoryRepository):
    """Takes ids that differ in case for the same (M6)."""

    def _append(self, conversation_id: str, entries: Sequence[Entry]) -> None:
        super()._append(conversation_id.lower(), entries)

    def _tail(self, conversation_id: str, last: int | None) -> list[bytes]:
        return super()._tail(conversation_id.lower(), last)


class Losing(InMemoryChatMemoryRepository):
    """Reads all and writes all, so that concurrent appends overwrite each other (M3)."""

    def _append(self, conversation_id: str, entries: Sequence[Entry]) -> None:
        with self._lock:
            conversation = self._living(conversation_id)
            known = [] if conversation is None else list(conversation.entries)
        ids = {entry.id for entry in known}
        time.sleep(0.0005)
        super()._replace(conversation_id, [*known, *(entry for entry in entries if entry.id not in ids)])


class Splitting(InMemoryChatMemoryRepository):
    """Appends the messages of a batch one by one (M3)."""

    def _append(self, conversation_id: str, entries: Sequence[Entry]) -> None:
        for entry in entries:
            super()._append(conversation_id, [entry])
            time.sleep(0.0002)


class Torn(InMemoryChatMemoryRepository):
    """Replaces by deleting and then appending (M4)."""

    def _replace(self, conversation_id: str, entries: Sequence[Entry]) -> None:
        super()._delete(conversation_id)
        time.sleep(0.001)
        if entries:
            super()._append(conversation_id, entries)


class Ghost(InMemoryChatMemoryRepository):
    """Lists a conversation that was emptied (M4)."""

    def _replace(self, conversation_id: str, entries: Sequence[Entry]) -> None:
        super()._replace(conversation_id, entries)
        if not entries:
            with self._lock:
                self._fresh(conversation_id)


class Skipping(InMemoryChatMemoryRepository):
    """Pages by position, so that a removal makes it skip (M9)."""

    def _ids(self, limit: int, cursor: str | None) -> Page[str]:
        start = int(cursor or 0)
        names = super()._ids(10**9, None).items
        more = len(names) > start + limit
        return Page(names[start : start + limit], str(start + limit) if more else None)


class Immortal(InMemoryChatMemoryRepository):
    """Forgets the expiry when a conversation is replaced (M8)."""

    def _replace(self, conversation_id: str, entries: Sequence[Entry]) -> None:
        super()._replace(conversation_id, entries)
        with self._lock:
            conversation = self._living(conversation_id)
            if conversation is not None:
                conversation.expires = float("inf")


class Sliding(InMemoryChatMemoryRepository):
    """Puts the expiry off whenever it is read (M8)."""

    def _tail(self, conversation_id: str, last: int | None) -> list[bytes]:
        with self._lock:
            conversation = self._living(conversation_id)
            if conversation is not None:
                self._add(conversation, [])
        return super()._tail(conversation_id, last)


class Ignoring(InMemoryChatMemoryRepository):
    """Takes a time to live and does nothing with it (M8)."""

    def _living(self, name: str) -> Any:
        return self._conversations.get(name)


class Pattern(InMemoryChatMemoryRepository):
    """Searches without regard to case (M10)."""

    def _find(self, question: Question) -> list[tuple[str, bytes]]:
        if question.text is None:
            return super()._find(question)
        wanted = question.text.lower()
        found = super()._find(question._replace(text=None, limit=10**9))
        return [hit for hit in found if wanted in hit[1].decode().lower()][: question.limit]


class Cut(InMemoryChatMemoryRepository):
    """Applies the limit before the question (M10)."""

    def _find(self, question: Question) -> list[tuple[str, bytes]]:
        some = super()._find(question._replace(text=None, role=None, metadata={}))
        return [hit for hit in super()._find(question) if hit in some]


class Declaring(InMemoryChatMemoryRepository):
    """Declares questions and answers none (M10)."""

    def _find(self, question: Question) -> list[tuple[str, bytes]]:
        return super()._find(question._replace(limit=1))[:0]


class Oldest(InMemoryChatMemoryRepository):
    """Gives the first message of a role for the newest (W2)."""

    def _latest(self, conversation_id: str, role: Role) -> bytes | None:
        with self._lock:
            conversation = self._living(conversation_id)
            entries = [] if conversation is None else conversation.entries
            return next((entry.json for entry in entries if entry.role is role), None)


class Blocking(InMemoryChatMemoryRepository):
    """Works in the event loop (E3)."""

    async def _areplace(self, conversation_id: str, entries: Sequence[Entry]) -> None:
        time.sleep(0.06)  # noqa: ASYNC251 - that is what is wrong
        self._replace(conversation_id, entries)


class Declining(InMemoryChatMemoryRepository):
    """Declines what may be declined: no mutant, the suite must pass."""

    capabilities = Capabilities(ttl=False, memory_search=False)


NOTICED_BY: dict[type[InMemoryChatMemoryRepository], str] = {
    Sorted: "test_order",
    Trimming: "test_conversation_ids",
    Folding: "test_conversation_ids",
    Losing: "test_append",
    Splitting: "test_append",
    Torn: "test_replace",
    Ghost: "test_replace",
    Skipping: "test_conversation_ids",
    Immortal: "test_expiry",
    Sliding: "test_expiry",
    Ignoring: "test_expiry",
    Pattern: "test_questions",
    Cut: "test_questions",
    Declaring: "test_questions",
    Oldest: "test_tail",
    Blocking: "test_lifecycle",
}
"""Each mutant, and the module of the suite that must fail on it."""
