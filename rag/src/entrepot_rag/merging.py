"""From the pieces of a stream to a whole answer.

Servers cut tool calls as they like, and count them in three ways: each with an index and its id once (OpenAI, vLLM),
each whole under the index 0 (some gateways), or without an index. So a piece belongs to the call of its index, unless
it brings another id; without an index it belongs to the call of its id, or to the last one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from entrepot.messages import AssistantMessage, ToolCall
from entrepot_rag.chat import ChatResponse, Generation, Usage
from entrepot_rag.errors import ChatModelError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from entrepot_rag.chat import Chunk, ToolCallFragment


@dataclass
class _Call:
    index: int | None
    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list[str])

    def takes(self, piece: ToolCallFragment) -> bool:
        if piece.id and self.id and piece.id != self.id:
            return False
        if piece.index is not None and self.index is not None:
            return piece.index == self.index
        return not piece.id or piece.id == self.id

    def add(self, piece: ToolCallFragment) -> None:
        self.id = self.id or piece.id or ""
        # Some servers send the whole name with every piece.
        if piece.name and piece.name != self.name:
            self.name += piece.name
        if piece.arguments:
            self.arguments.append(piece.arguments)

    def made(self, place: int) -> ToolCall:
        return ToolCall(self.id or f"call_{place}", self.name, "".join(self.arguments) or "{}")


@dataclass
class _Answer:
    texts: list[str] = field(default_factory=list[str])
    calls: list[_Call] = field(default_factory=list[_Call])
    finish_reason: str | None = None

    def add(self, chunk: Chunk) -> None:
        if chunk.text:
            self.texts.append(chunk.text)
        for piece in chunk.fragments:
            call = next((call for call in reversed(self.calls) if call.takes(piece)), None)
            if call is None:
                call = _Call(piece.index)
                self.calls.append(call)
            call.add(piece)
        self.finish_reason = chunk.finish_reason or self.finish_reason

    def made(self) -> Generation:
        message = AssistantMessage(
            "".join(self.texts), tool_calls=tuple(call.made(place) for place, call in enumerate(self.calls))
        )
        return Generation(message=message, finish_reason=self.finish_reason)


class Merger:
    """Puts chunks together, as they come."""

    def __init__(self) -> None:
        self._answers: dict[int, _Answer] = {}
        self._usage = Usage()
        self._model: str | None = None
        self._id: str | None = None

    def add(self, chunk: Chunk) -> None:
        """Take the next piece."""
        if chunk.text or chunk.fragments or chunk.finish_reason is not None:
            self._answers.setdefault(chunk.generation, _Answer()).add(chunk)
        # A server that tells usage more than once tells how much it has come to.
        self._usage = chunk.usage or self._usage
        self._model = chunk.model or self._model
        self._id = chunk.id or self._id

    @property
    def is_finished(self) -> bool:
        """Whether every answer has said why it ended."""
        answers = self._answers.values()
        return bool(answers) and all(answer.finish_reason is not None for answer in answers)

    def response(self) -> ChatResponse:
        """Return the whole answer.

        Raises:
            ChatModelError: Nothing came, or a call without a name.
        """
        if not self._answers:
            msg = "the model's stream ended without an answer"
            raise ChatModelError(msg, retryable=True)
        generations = tuple(answer.made() for _, answer in sorted(self._answers.items()))
        if any(not call.name for one in generations for call in one.message.tool_calls):
            msg = "the model's stream holds a tool call without a name"
            raise ChatModelError(msg)
        return ChatResponse(generations=generations, usage=self._usage, model=self._model, id=self._id)


def merged(chunks: Iterable[Chunk]) -> ChatResponse:
    """Return the answer that chunks make.

    Raises:
        ChatModelError: As `Merger.response`.
    """
    merger = Merger()
    for chunk in chunks:
        merger.add(chunk)
    return merger.response()
