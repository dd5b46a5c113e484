"""`ScriptedChatMemoryRepository`: a memory whose plugin writes each hook once, for sync and async use (E3).

What scripts are stands in `entrepot.scripted`.
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from typing import TYPE_CHECKING, TypeVar

from entrepot.memory.repository import ChatMemoryRepository, Entry

if TYPE_CHECKING:
    from collections.abc import Sequence

    from entrepot.memory.questions import Question
    from entrepot.messages import Role
    from entrepot.records import Page
    from entrepot.scripted import Script

T = TypeVar("T")


class ScriptedChatMemoryRepository(ChatMemoryRepository):
    """A memory whose hooks are scripts, named after the hooks of `ChatMemoryRepository`, which say what each does."""

    @abstractmethod
    def _answer(self, script: Script[T]) -> T:
        """Carry out a script with the sync client; raises the errors of `entrepot.errors`."""

    async def _aanswer(self, script: Script[T]) -> T:
        """Carry out a script with the async client; without one, in a worker thread."""
        return await asyncio.to_thread(self._answer, script)

    @abstractmethod
    def _append_script(self, conversation_id: str, entries: Sequence[Entry]) -> Script[None]:
        """Append the entries whose ids are not stored yet, in one step."""

    @abstractmethod
    def _tail_script(self, conversation_id: str, last: int | None) -> Script[list[bytes]]:
        """Return the JSON texts of all messages or of the newest `last`, in order."""

    @abstractmethod
    def _replace_script(self, conversation_id: str, entries: Sequence[Entry]) -> Script[None]:
        """Put entries, at least one, in the place of all messages, in one step."""

    @abstractmethod
    def _truncate_script(self, conversation_id: str, after: str) -> Script[bool]:
        """Remove what stands after a message, in one step; return whether that message is there."""

    @abstractmethod
    def _delete_script(self, conversation_id: str) -> Script[None]:
        """Remove a conversation."""

    @abstractmethod
    def _ids_script(self, limit: int, cursor: str | None) -> Script[Page[str]]:
        """Return some conversation ids and the cursor of the next page."""

    @abstractmethod
    def _latest_script(self, conversation_id: str, role: Role) -> Script[bytes | None]:
        """Return the newest message of a role."""

    def _find_script(self, question: Question) -> Script[list[tuple[str, bytes]]]:
        """Return conversation ids and messages that a question finds, newest first; where declared."""
        raise NotImplementedError(question)

    def _sweep_script(self, after: str | None) -> Script[tuple[int, str | None]]:  # noqa: ARG002 - as its hook
        """Remove some conversations that have expired; where `sweeps`."""
        yield from ()
        return 0, None

    # --- the hooks --------------------------------------------------------------------------------------

    def _append(self, conversation_id: str, entries: Sequence[Entry]) -> None:
        self._answer(self._append_script(conversation_id, entries))

    async def _aappend(self, conversation_id: str, entries: Sequence[Entry]) -> None:
        await self._aanswer(self._append_script(conversation_id, entries))

    def _tail(self, conversation_id: str, last: int | None) -> list[bytes]:
        return self._answer(self._tail_script(conversation_id, last))

    async def _atail(self, conversation_id: str, last: int | None) -> list[bytes]:
        return await self._aanswer(self._tail_script(conversation_id, last))

    def _replace(self, conversation_id: str, entries: Sequence[Entry]) -> None:
        self._answer(self._replace_script(conversation_id, entries))

    async def _areplace(self, conversation_id: str, entries: Sequence[Entry]) -> None:
        await self._aanswer(self._replace_script(conversation_id, entries))

    def _truncate(self, conversation_id: str, after: str) -> bool:
        return self._answer(self._truncate_script(conversation_id, after))

    async def _atruncate(self, conversation_id: str, after: str) -> bool:
        return await self._aanswer(self._truncate_script(conversation_id, after))

    def _delete(self, conversation_id: str) -> None:
        self._answer(self._delete_script(conversation_id))

    async def _adelete(self, conversation_id: str) -> None:
        await self._aanswer(self._delete_script(conversation_id))

    def _ids(self, limit: int, cursor: str | None) -> Page[str]:
        return self._answer(self._ids_script(limit, cursor))

    async def _aids(self, limit: int, cursor: str | None) -> Page[str]:
        return await self._aanswer(self._ids_script(limit, cursor))

    def _latest(self, conversation_id: str, role: Role) -> bytes | None:
        return self._answer(self._latest_script(conversation_id, role))

    async def _alatest(self, conversation_id: str, role: Role) -> bytes | None:
        return await self._aanswer(self._latest_script(conversation_id, role))

    def _find(self, question: Question) -> list[tuple[str, bytes]]:
        return self._answer(self._find_script(question))

    async def _afind(self, question: Question) -> list[tuple[str, bytes]]:
        return await self._aanswer(self._find_script(question))

    def _sweep(self, after: str | None) -> tuple[int, str | None]:
        return self._answer(self._sweep_script(after))

    async def _asweep(self, after: str | None) -> tuple[int, str | None]:
        return await self._aanswer(self._sweep_script(after))
