"""`ChatMemory` and its windows: what a model is shown of a conversation (W1 to W4).

A window is computed on reading and rewrites nothing: the newest messages are read from the log's
end, the newest system message beside them, so the cost does not grow with the conversation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol, cast

from entrepot.batching import EstimatingTokenCounter
from entrepot.errors import ConfigurationError, EntrepotError
from entrepot.messages import AssistantMessage, Role, ToolResponseMessage
from entrepot.steps import arun, call, run

if TYPE_CHECKING:
    from collections.abc import Sequence

    from entrepot.batching import TokenCounter
    from entrepot.memory.repository import ChatMemoryRepository
    from entrepot.messages import Message
    from entrepot.steps import Steps

DEFAULT_MAX_MESSAGES: Final = 20
"""Messages that a window shows unless told otherwise."""
_FIRST_READ: Final = 64
_GROWTH: Final = 4


class ChatMemory(Protocol):
    """What a chat is shown of its conversation. Every method has an async twin with the prefix ``a``."""

    def add(self, conversation_id: str, messages: Sequence[Message]) -> None:
        """Append messages to the conversation."""
        ...

    def get(self, conversation_id: str) -> list[Message]:
        """Return what the model shall see."""
        ...

    def clear(self, conversation_id: str) -> None:
        """Remove the conversation."""
        ...

    async def aadd(self, conversation_id: str, messages: Sequence[Message]) -> None:
        """As `add`."""
        ...

    async def aget(self, conversation_id: str) -> list[Message]:
        """As `get`."""
        ...

    async def aclear(self, conversation_id: str) -> None:
        """As `clear`."""
        ...


class WindowChatMemory:
    """A window of the newest messages, measured in whatever `_weights` counts.

    The newest system message always stands first, older ones are not shown (W2). If the rest does
    not fit, the oldest messages are cut, and the cut moves forward to the next user message, so that
    a window starts with a whole turn and no tool exchange is split (W3).
    """

    def __init__(self, repository: ChatMemoryRepository, *, limit: int, first_read: int) -> None:
        self.repository = repository
        self._limit = limit
        self._first_read = first_read

    def _weights(self, messages: Sequence[Message]) -> list[int]:
        """Return how much of the limit each message takes."""
        raise NotImplementedError

    def add(self, conversation_id: str, messages: Sequence[Message]) -> None:
        """Append messages to the conversation; concurrent adds lose nothing (M3)."""
        self.repository.append(conversation_id, messages)

    async def aadd(self, conversation_id: str, messages: Sequence[Message]) -> None:
        """As `add`."""
        await self.repository.aappend(conversation_id, messages)

    def get(self, conversation_id: str) -> list[Message]:
        """Return the window; an unknown conversation is empty."""
        return run(self._window(conversation_id))

    async def aget(self, conversation_id: str) -> list[Message]:
        """As `get`."""
        return await arun(self._window(conversation_id))

    def clear(self, conversation_id: str) -> None:
        """Remove the conversation from the repository."""
        self.repository.delete(conversation_id)

    async def aclear(self, conversation_id: str) -> None:
        """As `clear`."""
        await self.repository.adelete(conversation_id)

    def _window(self, conversation_id: str) -> Steps[list[Message]]:
        repository = self.repository
        asked = self._first_read
        while True:
            tail = yield from call(repository.messages, repository.amessages, conversation_id, last=asked)
            whole = len(tail) < asked
            system = [message for message in tail if message.role is Role.SYSTEM][-1:]
            others = [message for message in tail if message.role is not Role.SYSTEM]
            if not system and not whole:
                newest = yield from call(repository.latest, repository.alatest, conversation_id, Role.SYSTEM)
                system = [] if newest is None else [newest]
            room = self._limit - sum(self._weights(system))
            weights = self._weights(others)
            if whole or sum(weights) > room:
                return system + others[_cut(others, weights, room) :]
            asked *= _GROWTH


def _cut(messages: Sequence[Message], weights: Sequence[int], room: int) -> int:
    """Return where a window begins: 0 if all fits, else at a user message, or behind the last one (W3)."""
    total = sum(weights)
    if total <= room:
        return 0
    start = 0
    while start < len(messages) and total > room:
        total -= weights[start]
        start += 1
    while start < len(messages) and messages[start].role is not Role.USER:
        start += 1
    return start


class MessageWindowChatMemory(WindowChatMemory):
    """Shows the newest messages, at most `max_messages` of them with the system message (W1).

    Args:
        repository: Where the conversation is kept whole.
        max_messages: At least 1.
    """

    def __init__(self, repository: ChatMemoryRepository, max_messages: int = DEFAULT_MAX_MESSAGES) -> None:
        if type(max_messages) is not int or max_messages < 1:
            msg = f"max_messages must be an int of at least 1, not {max_messages!r}"
            raise ConfigurationError(msg)
        super().__init__(repository, limit=max_messages, first_read=max_messages + 1)
        self.max_messages = max_messages

    def _weights(self, messages: Sequence[Message]) -> list[int]:
        return [1] * len(messages)


class TokenWindowChatMemory(WindowChatMemory):
    """Shows the newest messages that fit into `max_tokens` together with the system message (W4).

    A message counts its text, its tool calls (name and arguments) and its tool responses. A system
    message that is larger than the limit is shown all the same, alone.

    Args:
        repository: Where the conversation is kept whole.
        max_tokens: At least 1.
        counter: How tokens are counted; by default `EstimatingTokenCounter`.

    Raises:
        ConfigurationError: `max_tokens` is out of range; on reading, the counter failed (its
            exception is the cause) or did not return one number for each text.
    """

    def __init__(
        self, repository: ChatMemoryRepository, max_tokens: int, *, counter: TokenCounter | None = None
    ) -> None:
        if type(max_tokens) is not int or max_tokens < 1:
            msg = f"max_tokens must be an int of at least 1, not {max_tokens!r}"
            raise ConfigurationError(msg)
        super().__init__(repository, limit=max_tokens, first_read=_FIRST_READ)
        self.max_tokens = max_tokens
        self._counter = EstimatingTokenCounter() if counter is None else counter

    def _weights(self, messages: Sequence[Message]) -> list[int]:
        if not messages:
            return []
        texts = [_said(message) for message in messages]
        name = type(self._counter).__name__
        try:
            counts: object = self._counter.count(texts)
        except EntrepotError:
            raise
        except Exception as error:
            msg = f"the token counter {name} failed: {type(error).__name__}"
            raise ConfigurationError(msg, hint="the cause below says more") from error
        if not _counts(counts, len(texts)):
            msg = f"{name}.count() must return a list of {len(texts)} numbers of tokens, one for each text"
            raise ConfigurationError(msg, hint="a window would show too much otherwise")
        return list(cast("Sequence[int]", counts))


def _counts(answer: object, number: int) -> bool:
    """Whether an answer is as many whole numbers of at least 0 (also numpy's) as were asked."""
    if not hasattr(answer, "__len__") or isinstance(answer, str | bytes | dict):
        return False
    counts = cast("Sequence[object]", answer)
    return len(counts) == number and all(
        hasattr(count, "__index__") and cast("int", count) >= 0 for count in counts
    )


def _said(message: Message) -> str:
    parts = [message.text]
    if isinstance(message, AssistantMessage):
        parts += [f"{call_.name} {call_.arguments}" for call_ in message.tool_calls]
    if isinstance(message, ToolResponseMessage):
        parts += [f"{response.name} {response.text}" for response in message.responses]
    return "\n".join(part for part in parts if part)
