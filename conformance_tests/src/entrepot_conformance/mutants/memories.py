# ruff: noqa: D102, SLF001 - mutants do what their bases do, but for one thing within
"""Chat memories, and windows over them, that break one rule each."""

from __future__ import annotations

import asyncio
import json
import time
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from entrepot import InMemoryChatMemoryRepository
from entrepot.memory import windows
from entrepot.messages import Role
from entrepot.records import Page
from entrepot_conformance.mutants.model import breaks, breaks_core

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractContextManager

    from entrepot.memory import Entry, Question
    from entrepot.messages import Message
    from entrepot.steps import Steps


@breaks("M1", "memory")
class Sorted(InMemoryChatMemoryRepository):
    """Orders messages by their timestamps."""

    def _tail(self, conversation_id: str, last: int | None) -> list[bytes]:
        with self._lock:
            conversation = self._living(conversation_id)
            entries = [] if conversation is None else conversation.entries
            ordered = sorted(entries, key=lambda entry: entry.message.created)
            return [entry.json for entry in ordered[-last if last else 0 :]]


@breaks("M6", "memory")
class Trimming(InMemoryChatMemoryRepository):
    """Loses the white space at the end of ids, as padded columns do."""

    def _append(self, conversation_id: str, entries: Sequence[Entry]) -> None:
        super()._append(conversation_id.rstrip() or conversation_id, entries)

    def _tail(self, conversation_id: str, last: int | None) -> list[bytes]:
        return super()._tail(conversation_id.rstrip() or conversation_id, last)


@breaks("M6", "memory")
class Folding(InMemoryChatMemoryRepository):
    """Takes ids that differ in case for the same."""

    def _append(self, conversation_id: str, entries: Sequence[Entry]) -> None:
        super()._append(conversation_id.lower(), entries)

    def _tail(self, conversation_id: str, last: int | None) -> list[bytes]:
        return super()._tail(conversation_id.lower(), last)


@breaks("M3", "memory")
class Losing(InMemoryChatMemoryRepository):
    """Reads all and writes all, so that concurrent appends overwrite each other."""

    def _append(self, conversation_id: str, entries: Sequence[Entry]) -> None:
        with self._lock:
            conversation = self._living(conversation_id)
            known = [] if conversation is None else list(conversation.entries)
        ids = {entry.id for entry in known}
        time.sleep(0.0005)
        super()._replace(conversation_id, [*known, *(entry for entry in entries if entry.id not in ids)])


@breaks("M3", "memory")
class Splitting(InMemoryChatMemoryRepository):
    """Appends the messages of a batch one by one."""

    def _append(self, conversation_id: str, entries: Sequence[Entry]) -> None:
        for entry in entries:
            super()._append(conversation_id, [entry])
            time.sleep(0.0002)


@breaks("M4", "memory")
class Torn(InMemoryChatMemoryRepository):
    """Replaces by deleting and then appending."""

    def _replace(self, conversation_id: str, entries: Sequence[Entry]) -> None:
        super()._delete(conversation_id)
        time.sleep(0.001)
        if entries:
            super()._append(conversation_id, entries)


@breaks("M4", "memory")
class Ghost(InMemoryChatMemoryRepository):
    """Lists a conversation that was emptied."""

    def _replace_steps(self, conversation_id: str, messages: Sequence[Message]) -> Steps[None]:
        yield from super()._replace_steps(conversation_id, messages)
        if not messages:
            with self._lock:
                self._fresh(conversation_id)


@breaks("M9", "memory")
class Skipping(InMemoryChatMemoryRepository):
    """Pages by position, so that a removal makes it skip."""

    def _ids(self, limit: int, cursor: str | None) -> Page[str]:
        start = int(cursor or 0)
        names = super()._ids(10**9, None).items
        more = len(names) > start + limit
        return Page(names[start : start + limit], str(start + limit) if more else None)


@breaks("M8", "memory")
class Immortal(InMemoryChatMemoryRepository):
    """Forgets the expiry when a conversation is replaced."""

    def _replace(self, conversation_id: str, entries: Sequence[Entry]) -> None:
        super()._replace(conversation_id, entries)
        with self._lock:
            conversation = self._living(conversation_id)
            if conversation is not None:
                conversation.expires = float("inf")


@breaks("M8", "memory")
class Sliding(InMemoryChatMemoryRepository):
    """Puts the expiry off whenever it is read."""

    def _tail(self, conversation_id: str, last: int | None) -> list[bytes]:
        with self._lock:
            conversation = self._living(conversation_id)
            if conversation is not None:
                self._add(conversation, [])
        return super()._tail(conversation_id, last)


@breaks("M8", "memory")
class Ignoring(InMemoryChatMemoryRepository):
    """Takes a time to live and does nothing with it."""

    def _living(self, name: str) -> Any:
        return self._conversations.get(name)


@breaks("M8", "memory")
class Broom(InMemoryChatMemoryRepository):
    """Sweeps out the living with those that have expired."""

    def _sweep(self, after: str | None) -> tuple[int, str | None]:
        swept = super()._sweep(after)
        for name in list(self._names):
            self._delete(name)
        return swept


@breaks("M10", "memory")
class Pattern(InMemoryChatMemoryRepository):
    """Searches without regard to case."""

    def _find(self, question: Question) -> list[tuple[str, bytes]]:
        if question.text is None:
            return super()._find(question)
        wanted = question.text.lower()
        found = super()._find(question._replace(text=None, limit=10**9))
        return [hit for hit in found if wanted in hit[1].decode().lower()][: question.limit]


@breaks("M10", "memory")
class Cut(InMemoryChatMemoryRepository):
    """Applies the limit before the question."""

    def _find(self, question: Question) -> list[tuple[str, bytes]]:
        some = super()._find(question._replace(text=None, role=None, metadata={}))
        return [hit for hit in super()._find(question) if hit in some]


@breaks("M10", "memory")
class Declaring(InMemoryChatMemoryRepository):
    """Declares questions and answers none."""

    def _find(self, question: Question) -> list[tuple[str, bytes]]:
        return super()._find(question._replace(limit=1))[:0]


@breaks("W2", "memory")
class Oldest(InMemoryChatMemoryRepository):
    """Gives the first message of a role for the newest."""

    def _latest(self, conversation_id: str, role: Role) -> bytes | None:
        with self._lock:
            conversation = self._living(conversation_id)
            entries = [] if conversation is None else conversation.entries
            return next((entry.json for entry in entries if entry.role is role), None)


@breaks("E3", "memory")
class Blocking(InMemoryChatMemoryRepository):
    """Works in the event loop."""

    async def _areplace(self, conversation_id: str, entries: Sequence[Entry]) -> None:
        time.sleep(0.06)  # noqa: ASYNC251 - that is what is wrong
        self._replace(conversation_id, entries)


@breaks("M1", "memory")
class Reversed(InMemoryChatMemoryRepository):
    """Keeps the messages of a batch the other way round."""

    def _append(self, conversation_id: str, entries: Sequence[Entry]) -> None:
        super()._append(conversation_id, entries[::-1])


@breaks("M2", "memory")
class Reparsing(InMemoryChatMemoryRepository):
    """Reads the arguments of tool calls as JSON, and writes them anew."""

    def _tail(self, conversation_id: str, last: int | None) -> list[bytes]:
        return [_with_calls(text) for text in super()._tail(conversation_id, last)]


def _with_calls(text: bytes) -> bytes:
    message = json.loads(text)
    for call in message.get("tool_calls", ()):
        try:
            call["arguments"] = json.dumps(json.loads(call["arguments"]))
        except ValueError:
            continue
    return json.dumps(message).encode()


@breaks("M2", "memory")
class Coarse(InMemoryChatMemoryRepository):
    """Keeps whole numbers as doubles, as JavaScript would."""

    def _tail(self, conversation_id: str, last: int | None) -> list[bytes]:
        return [
            json.dumps(json.loads(text, parse_int=float)).encode()
            for text in super()._tail(conversation_id, last)
        ]


@breaks("M3", "memory")
class Repeating(InMemoryChatMemoryRepository):
    """Appends a message again that is stored already."""

    def _append(self, conversation_id: str, entries: Sequence[Entry]) -> None:
        with self._lock:
            conversation = self._living(conversation_id) or self._fresh(conversation_id)
            for entry in entries:
                conversation.places.pop(entry.id, None)
            self._add(conversation, entries)


@breaks("M3", "memory")
class Updating(InMemoryChatMemoryRepository):
    """Takes another message of a known id for a correction."""

    def _append(self, conversation_id: str, entries: Sequence[Entry]) -> None:
        super()._append(conversation_id, entries)
        with self._lock:
            conversation = self._conversations[conversation_id]
            for entry in entries:
                conversation.entries[conversation.places[entry.id]] = entry


@breaks("M4", "memory")
class Silent(InMemoryChatMemoryRepository):
    """Truncates after an unknown message by doing nothing."""

    def _truncate(self, conversation_id: str, after: str) -> bool:
        super()._truncate(conversation_id, after)
        return True


@breaks("M4", "memory")
class Including(InMemoryChatMemoryRepository):
    """Cuts off the message after which it was to cut, too."""

    def _truncate(self, conversation_id: str, after: str) -> bool:
        if not super()._truncate(conversation_id, after):
            return False
        with self._lock:
            conversation = self._conversations[conversation_id]
            del conversation.places[conversation.entries.pop().id]
        return True


@breaks("M5", "memory")
class Emptying(InMemoryChatMemoryRepository):
    """Deletes the messages of a conversation, and leaves its name in the listing."""

    def _delete(self, conversation_id: str) -> None:
        super()._delete(conversation_id)
        with self._lock:
            self._fresh(conversation_id)


@breaks("M5", "memory")
class Hiding(InMemoryChatMemoryRepository):
    """Takes a deleted conversation off the listing, and keeps its messages."""

    def _delete(self, conversation_id: str) -> None:
        with self._lock:
            if conversation_id in self._names:
                self._names.remove(conversation_id)


@breaks("M6", "memory")
class Shortening(InMemoryChatMemoryRepository):
    """Cuts ids at 255 characters, as an index on text does."""

    def _append(self, conversation_id: str, entries: Sequence[Entry]) -> None:
        super()._append(conversation_id[:255], entries)

    def _tail(self, conversation_id: str, last: int | None) -> list[bytes]:
        return super()._tail(conversation_id[:255], last)


@breaks("M7", "memory")
class Everything(InMemoryChatMemoryRepository):
    """Returns one message more than was asked for."""

    def _tail(self, conversation_id: str, last: int | None) -> list[bytes]:
        return super()._tail(conversation_id, None if last is None else last + 1)


@breaks("M7", "memory")
class Backwards(InMemoryChatMemoryRepository):
    """Returns the newest messages newest first, as the index gives them."""

    def _tail(self, conversation_id: str, last: int | None) -> list[bytes]:
        found = super()._tail(conversation_id, last)
        return found if last is None else found[::-1]


@breaks("M9", "memory")
class OnePage(InMemoryChatMemoryRepository):
    """Says that the first page is all there is."""

    def _ids(self, limit: int, cursor: str | None) -> Page[str]:
        return Page(super()._ids(limit, cursor).items, None)


@breaks("E1", "memory")
class Bare(InMemoryChatMemoryRepository):
    """Lets the exception of a broken driver through as it is."""

    def append(self, conversation_id: str, messages: Sequence[Message]) -> None:
        try:
            super().append(conversation_id, messages)
        except OSError:
            raise
        except Exception as error:
            if isinstance(error.__cause__, OSError):
                raise error.__cause__ from None
            raise


@breaks("E3", "memory")
class Unlike(InMemoryChatMemoryRepository):
    """Has an async twin that does something else."""

    async def alatest(self, conversation_id: str, role: Role | str) -> Message | None:
        return await super().alatest(conversation_id, Role.USER if role == "system" else role)


@breaks("E4", "memory")
class Halving(InMemoryChatMemoryRepository):
    """Leaves half of a batch when it is cancelled between two statements."""

    async def _aappend(self, conversation_id: str, entries: Sequence[Entry]) -> None:
        for entry in entries:
            self._append(conversation_id, [entry])
            await asyncio.sleep(0.0005)


@breaks("E4", "memory")
class Unsure(InMemoryChatMemoryRepository):
    """Says of a batch that it refused that nobody knows what became of it."""

    def append(self, conversation_id: str, messages: Sequence[Message]) -> None:
        try:
            super().append(conversation_id, messages)
        except Exception as error:
            error.outcome = "unknown"  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
            raise


@breaks("E5", "memory")
class Zombie(InMemoryChatMemoryRepository):
    """Goes on after it was closed."""

    @property
    def is_closed(self) -> bool:
        return False

    def close(self) -> None:
        self._closed = False

    async def aclose(self) -> None:
        self._closed = False


@breaks("E5", "memory")
class ClosedTwice(InMemoryChatMemoryRepository):
    """Takes it amiss to be closed a second time."""

    def close(self) -> None:
        self._check_usable()
        super().close()


# --- windows ----------------------------------------------------------------------------------------------


@breaks_core("W1", InMemoryChatMemoryRepository, "memory")
def window_that_rewrites() -> AbstractContextManager[object]:
    """A window that puts what it shows in the place of the conversation, as trimmed histories do."""
    get = windows.WindowChatMemory.get

    def trimming(self: windows.WindowChatMemory, conversation_id: str) -> list[Message]:
        shown = get(self, conversation_id)
        self.repository.replace(conversation_id, shown)
        return shown

    return patch.object(windows.WindowChatMemory, "get", trimming)


@breaks_core("W1", InMemoryChatMemoryRepository, "memory")
def window_that_reads_all() -> AbstractContextManager[object]:
    """A window that reads the whole conversation."""
    return patch.object(windows, "_FIRST_READ", 10**6)


@breaks_core("W2", InMemoryChatMemoryRepository, "memory")
def window_without_its_system_message() -> AbstractContextManager[object]:
    """A window that shows a system message only while it is among the newest messages."""
    return patch.object(InMemoryChatMemoryRepository, "_latest", return_value=None)


@breaks_core("W3", InMemoryChatMemoryRepository, "memory")
def window_that_splits_a_turn() -> AbstractContextManager[object]:
    """A window that begins wherever the count cuts it."""

    def cut(messages: Sequence[Message], weights: Sequence[int], room: int) -> int:
        total = sum(weights)
        start = 0
        while start < len(messages) and total > room:
            total -= weights[start]
            start += 1
        return start

    return patch.object(windows, "_cut", cut)


@breaks_core("W3", InMemoryChatMemoryRepository, "memory")
def window_that_always_cuts() -> AbstractContextManager[object]:
    """A window that moves its cut to a user message although everything fits."""
    cut = windows._cut  # pyright: ignore[reportPrivateUsage]

    def moving(messages: Sequence[Message], weights: Sequence[int], room: int) -> int:
        start = cut(messages, weights, room)
        while start < len(messages) and messages[start].role is not Role.USER:
            start += 1
        return start

    return patch.object(windows, "_cut", moving)


@breaks_core("W4", InMemoryChatMemoryRepository, "memory")
def window_that_counts_messages() -> AbstractContextManager[object]:
    """A window of tokens that counts messages."""

    def ones(_: object, messages: Sequence[Message]) -> list[int]:
        return [1] * len(messages)

    return patch.object(windows.TokenWindowChatMemory, "_weights", ones)


@breaks_core("W4", InMemoryChatMemoryRepository, "memory")
def window_that_forgets_responses() -> AbstractContextManager[object]:
    """A window of tokens that does not count the responses of tools."""

    def said(message: Message) -> str:
        return message.text

    return patch.object(windows, "_said", said)
