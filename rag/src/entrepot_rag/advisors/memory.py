"""Conversations that are remembered, whole turn by whole turn."""

from __future__ import annotations

from typing import TYPE_CHECKING

from entrepot.errors import ConfigurationError
from entrepot.memory import ChatMemoryRepository, MessageWindowChatMemory
from entrepot.messages import Role
from entrepot.steps import call
from entrepot_rag.advisors.base import MEMORY, BaseAdvisor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from entrepot.memory import ChatMemory
    from entrepot.messages import Message
    from entrepot_rag.advice import Advice
    from entrepot_rag.chat import ChatResponse
    from entrepot_rag.requests import Chain, ChatRequest


class MessageChatMemoryAdvisor(BaseAdvisor):
    """Shows the model what was said before, and keeps what is said now.

    A turn is what the user says, the calls of tools and their answers, and the model's first answer. It is kept in
    one append, after the answer is whole: if anything fails before, is cancelled, or a stream is left, nothing of the
    turn is kept. If keeping fails the error is raised, and the answer is lost with it.

    The prompt's system message stands first and is never kept; without one the conversation's own stands first. Messages
    of the prompt that the conversation shows already are not doubled.

    Args:
        memory: A window over a repository, or a repository, which gets one of 20 messages.
        order: Its place. It must stand outside of the advisor that calls tools.
        name: As of `BaseAdvisor`.
    """

    default_order = MEMORY
    keeps_turns = True

    def __init__(
        self,
        memory: ChatMemory | ChatMemoryRepository,
        *,
        order: int | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(order=order, name=name)
        self.memory: ChatMemory = (
            MessageWindowChatMemory(memory) if isinstance(memory, ChatMemoryRepository) else memory
        )

    def advise(self, request: ChatRequest, chain: Chain) -> Advice[ChatResponse]:
        """Ask with what was said before, then keep the turn.

        Raises:
            ConfigurationError: The request names no conversation.
        """
        conversation = conversation_of(request, self.name)
        memory = self.memory
        history = yield from call(memory.get, memory.aget, conversation)
        shown = with_history(request.messages, history)
        response = yield from chain.proceed(request.with_messages(shown))
        turn = [*new_ones(request.messages, history), *response.exchange, response.message]
        yield from call(memory.add, memory.aadd, conversation, turn)
        return response


def conversation_of(request: ChatRequest, advisor: str) -> str:
    """Return which conversation a request is a turn of.

    Raises:
        ConfigurationError: It does not say.
    """
    if request.conversation_id is None:
        msg = f"{advisor} needs to know which conversation this is"
        raise ConfigurationError(msg, hint="give one by .conversation(id)")
    return request.conversation_id


def with_history(messages: Sequence[Message], history: Sequence[Message]) -> list[Message]:
    """Return the messages of a prompt behind those that were said before; a system message stands first."""
    system = [message for message in messages if message.role is Role.SYSTEM] or [
        message for message in history if message.role is Role.SYSTEM
    ]
    earlier = [message for message in history if message.role is not Role.SYSTEM]
    return [*system, *earlier, *new_ones(messages, history)]


def new_ones(messages: Sequence[Message], history: Sequence[Message]) -> list[Message]:
    """Return the messages of a prompt that a history does not hold, without instructions to the model."""
    known = {message.id for message in history}
    return [message for message in messages if message.role is not Role.SYSTEM and message.id not in known]
