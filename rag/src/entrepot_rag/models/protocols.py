"""What a chat model is: an object with these methods. Nothing needs to inherit from anything here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from entrepot_rag.chat import ChatResponse, Chunk, Prompt


class ChatModel(Protocol):
    """Answers prompts.

    Attributes:
        name: The model's name, for spans and errors.
    """

    @property
    def name(self) -> str:
        """The model's name."""
        ...

    def call(self, prompt: Prompt, /) -> ChatResponse:
        """Return the answer."""
        ...

    async def acall(self, prompt: Prompt, /) -> ChatResponse:
        """As `call`."""
        ...


@runtime_checkable
class StreamingChatModel(ChatModel, Protocol):
    """Answers prompts piece by piece as well."""

    def stream(self, prompt: Prompt, /) -> Iterator[Chunk]:
        """Return the pieces of the answer. Closing the iterator ends the request."""
        ...

    def astream(self, prompt: Prompt, /) -> AsyncIterator[Chunk]:
        """As `stream`."""
        ...
