"""W1 to W4: what a model is shown of a conversation."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from entrepot import (
    AssistantMessage,
    MessageWindowChatMemory,
    SystemMessage,
    TokenWindowChatMemory,
    ToolResponse,
    ToolResponseMessage,
    UserMessage,
)
from entrepot_conformance.tests.memory.messages import exchange, ids

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from entrepot import ChatMemoryRepository, Message
    from entrepot_conformance.endpoints import Memories

MAKE: Final[dict[str, Callable[[str, str], Message]]] = {
    "s": lambda text, name: SystemMessage(text, id=name),
    "u": lambda text, name: UserMessage(text, id=name),
    "a": lambda text, name: AssistantMessage(text, id=name),
    "t": lambda text, name: ToolResponseMessage(id=name, responses=(ToolResponse("1", "", text),)),
}


def expected_window(
    messages: Sequence[Message], limit: int, weight: Callable[[Message], int]
) -> list[Message]:
    """Return what W1 to W4 say, written as they are written."""
    system = [message for message in messages if message.role == "system"][-1:]  # W2
    others = [message for message in messages if message.role != "system"]
    if sum(map(weight, [*system, *others])) <= limit:
        return [*system, *others]
    while others and sum(map(weight, [*system, *others])) > limit:  # W3: the oldest others are cut
        del others[0]
    while others and others[0].role != "user":  # and the cut moves forward to the next user message
        del others[0]
    return [*system, *others]


class Recording:
    """A repository that tells what was read of it."""

    def __init__(self, memory: ChatMemoryRepository) -> None:
        self._memory = memory
        self.asked: list[int | None] = []

    def messages(self, conversation_id: str, *, last: int | None = None) -> list[Message]:
        self.asked.append(last)
        return self._memory.messages(conversation_id, last=last)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._memory, name)


@settings(deadline=None, max_examples=40)
@given(roles=st.text("suuaat", max_size=40), limit=st.integers(1, 14))
def check_message_windows(memory: ChatMemoryRepository, roles: str, limit: int) -> None:
    messages = [MAKE[role](f"{role}{place}", str(place)) for place, role in enumerate(roles)]
    memory.replace("c", messages)
    window = MessageWindowChatMemory(memory, limit).get("c")
    assert window == expected_window(messages, limit, lambda _: 1)
    assert len(window) <= limit
    assert memory.messages("c") == messages  # W1: rewrites nothing


def test_a_window_of_messages(memories: Memories) -> None:
    # W1, W2, W3
    check_message_windows(memories())


class Letters:
    """Counts a letter as a token."""

    def count(self, texts: Sequence[str]) -> list[int]:
        return [len(text) for text in texts]


def letters(message: Message) -> int:
    """Return the tokens of a message of this module's making: its text, or that of its one response, and a space."""
    if isinstance(message, ToolResponseMessage):
        return 1 + sum(len(response.text) for response in message.responses)
    return len(message.text)


@settings(deadline=None, max_examples=40)
@given(
    said=st.lists(st.tuples(st.sampled_from("suuaat"), st.integers(0, 12)), max_size=90),
    limit=st.integers(1, 120),
)
def check_token_windows(memory: ChatMemoryRepository, said: list[tuple[str, int]], limit: int) -> None:
    messages = [MAKE[role]("x" * size, str(place)) for place, (role, size) in enumerate(said)]
    memory.replace("c", messages)
    window = TokenWindowChatMemory(memory, limit, counter=Letters()).get("c")
    assert window == expected_window(messages, limit, letters)
    assert memory.messages("c") == messages


def test_a_window_of_tokens(memories: Memories) -> None:
    # W4
    check_token_windows(memories())


def test_no_tool_exchange_is_split(memories: Memories) -> None:
    # W3: by hand
    memory = memories()
    memory.append("c", [SystemMessage("s", id="s"), *exchange("a"), *exchange("b")])
    for limit in range(5, 9):
        assert ids(MessageWindowChatMemory(memory, limit).get("c")) == ["s", *ids(exchange("b"))]
    for limit in range(1, 5):
        assert ids(MessageWindowChatMemory(memory, limit).get("c")) == ["s"]
    assert ids(MessageWindowChatMemory(memory, 9).get("c")) == ["s", *ids(exchange("a")), *ids(exchange("b"))]


def test_the_newest_system_message_stands_first_however_old_it_is(memories: Memories) -> None:
    # W2
    memory = memories()
    memory.append("c", [SystemMessage("oldest", id="s1"), SystemMessage("newest", id="s2")])
    memory.append("c", [message for number in range(150) for message in exchange(str(number))])
    window = ids(MessageWindowChatMemory(memory, 10).get("c"))
    assert window == ["s2", *ids(exchange("148")), *ids(exchange("149"))]
    memory.append("c", [SystemMessage("changed", id="s3")])
    assert ids(MessageWindowChatMemory(memory, 10).get("c")) == ["s3", *window[1:]]


def test_the_cost_does_not_grow_with_the_conversation(memories: Memories) -> None:
    # W1: a window never reads the conversation whole, and not more of a longer one
    memory = memories()
    asked: list[list[int | None]] = []
    for turns in (40, 160):
        messages = [message for number in range(turns) for message in exchange(str(number))]
        memory.replace("c", [SystemMessage("s"), *messages])
        recording = Recording(memory)
        repository = cast("ChatMemoryRepository", recording)
        assert len(MessageWindowChatMemory(repository, 9).get("c")) == 9
        assert TokenWindowChatMemory(repository, 100, counter=Letters()).get("c")
        asked.append(recording.asked)
    assert None not in asked[0]
    assert asked[0] == asked[1]
    assert max(last or 0 for last in asked[0]) < 40 * 4  # and not the shorter one to its end


def test_a_window_writes_through(memories: Memories) -> None:
    # W1, M3, M5, E3
    memory = memories()
    chat = MessageWindowChatMemory(memory, 5)
    chat.add("c", exchange("a"))
    chat.add("c", exchange("a"))
    assert ids(memory.messages("c")) == ids(exchange("a"))

    async def twins() -> None:
        await chat.aadd("c", exchange("b"))
        assert await chat.aget("c") == chat.get("c")
        assert ids(chat.get("c")) == ids(exchange("b"))
        assert await chat.aget("unknown") == chat.get("unknown") == []
        await chat.aclear("c")

    asyncio.run(twins())
    assert memory.messages("c") == []
    chat.add("c", exchange("a"))
    chat.clear("c")
    assert memory.conversation_ids().items == []


@pytest.mark.parametrize("limit", [0, -1, 1.5, "5", None, True], ids=repr)
def test_a_window_has_a_size(memories: Memories, limit: Any) -> None:
    # W1, E1: N is at least 1
    with pytest.raises(ValueError, match="max_messages"):
        MessageWindowChatMemory(memories(), limit)
    with pytest.raises(ValueError, match="max_tokens"):
        TokenWindowChatMemory(memories(), limit)
