"""What a chain of advisors hands on: the request, and the chain itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from entrepot.messages import Message, Role, SystemMessage, UserMessage
from entrepot_rag.advice import Emit, altered
from entrepot_rag.chat import ChatOptions
from entrepot_rag.observation import chained
from entrepot_rag.tools.tool import Tool

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from entrepot_rag.advice import Advice, Item
    from entrepot_rag.chat import ChatResponse, Chunk
    from entrepot_rag.observation import Span


class ChatRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What was asked, on its way to the model.

    Attributes:
        messages: What the model shall see, oldest first.
        options: How to answer.
        tools: What the model may call.
        conversation_id: Which conversation this is a turn of.
        context: Values for advisors and tools; it never reaches the model.
    """

    messages: tuple[Message, ...]
    options: ChatOptions = ChatOptions()
    tools: tuple[Tool, ...] = ()
    conversation_id: str | None = None
    context: dict[str, Any] = {}

    @property
    def question(self) -> UserMessage | None:
        """The newest message of the user's."""
        for message in reversed(self.messages):
            if isinstance(message, UserMessage):
                return message
        return None

    def with_messages(self, messages: Sequence[Message]) -> ChatRequest:
        """Return the request with other messages."""
        return msgspec.structs.replace(self, messages=tuple(messages))

    def with_question(self, text: str) -> ChatRequest:
        """Return the request with another text in the place of the user's newest."""
        question = self.question
        return self.with_messages(
            [
                msgspec.structs.replace(message, text=text) if message is question else message
                for message in self.messages
            ]
        )

    def with_system(self, text: str) -> ChatRequest:
        """Return the request with a text after its system message, or as one."""
        for place, message in enumerate(self.messages):
            if message.role is Role.SYSTEM:
                longer = msgspec.structs.replace(message, text=f"{message.text}\n\n{text}")
                return self.with_messages([*self.messages[:place], longer, *self.messages[place + 1 :]])
        return self.with_messages([SystemMessage(text), *self.messages])


class Advisor(Protocol):
    """Stands around the model: sees each request on its way in and each response on its way out.

    Attributes:
        name: For spans and logs.
        order: Lower ones stand further outside; of equal ones the first that was given.
    """

    @property
    def name(self) -> str:
        """The advisor's name."""
        ...

    @property
    def order(self) -> int:
        """Its place."""
        ...

    def advise(self, request: ChatRequest, chain: Chain) -> Advice[ChatResponse]:
        """Return the response; ``yield from chain.proceed(request)`` asks whatever stands further inside."""
        ...


@dataclass(frozen=True, slots=True)
class Chain:
    """What stands inside of an advisor: further ones, and the model at last.

    Attributes:
        advisors: In order, the outermost first.
        innermost: What asks the model.
        streaming: Whether the caller wants pieces.
        span: The span that theirs are children of, if there is one.
    """

    advisors: tuple[Advisor, ...]
    innermost: Callable[[ChatRequest, Chain], Advice[ChatResponse]]
    streaming: bool = False
    span: Span | None = None

    def proceed(
        self, request: ChatRequest, *, each: Callable[[Chunk], Chunk | None] | None = None
    ) -> Advice[ChatResponse]:
        """Ask what stands inside; it can be asked more than once.

        Args:
            request: What to ask.
            each: What becomes of each piece of a stream; None leaves it out.
        """
        inner = chained(self, request) if self.advisors else self.innermost(request, self)
        if each is None or not self.streaming:
            return (yield from inner)
        return (yield from altered(inner, _piecewise(each)))

    def emit(self, chunk: Chunk) -> Advice[None]:
        """Give the caller of a stream a piece; nothing in a call."""
        if self.streaming:
            yield Emit(chunk)


def _piecewise(each: Callable[[Chunk], Chunk | None]) -> Callable[[Item], Item | None]:
    def alter(item: Item) -> Item | None:
        if not isinstance(item, Emit):
            return item
        chunk = each(item.chunk)
        return None if chunk is None else Emit(chunk)

    return alter
