"""M2: what was written comes back as it was."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from entrepot import AssistantMessage, MessageError, Role, ToolCall, UserMessage
from entrepot_conformance.tests.memory.messages import batch, every_kind, exchange

if TYPE_CHECKING:
    from entrepot_conformance.endpoints import Memories


def test_every_kind_comes_back_whole(memories: Memories) -> None:
    # M2: equal, and of equal types: 1 is not 1.0 or True, -0.0 keeps its sign
    memory = memories()
    written = every_kind()
    memory.append("c", written)
    read = memory.messages("c")
    assert read == written
    assert [repr(message) for message in read] == [repr(message) for message in written]
    assert all(message.created.tzinfo is UTC for message in read)


def test_each_kind_comes_back_alone_and_by_every_reading(memories: Memories) -> None:
    # M2, M7
    memory = memories()
    for number, message in enumerate(exchange("a")):
        memory.append(str(number), [message])
        assert memory.messages(str(number)) == [message]
        assert memory.messages(str(number), last=1) == [message]
        assert memory.latest(str(number), message.role) == message
        assert all(memory.latest(str(number), role) is None for role in Role if role is not message.role)


def test_replace_keeps_messages_whole(memories: Memories) -> None:
    # M2, M4
    memory = memories()
    memory.append("c", batch("old", 0))
    memory.replace("c", every_kind())
    written = every_kind()
    memory.replace("c", written)
    assert [repr(message) for message in memory.messages("c")] == [repr(message) for message in written]


def test_id_and_time_do_not_change(memories: Memories) -> None:
    # M2
    memory = memories()
    before = datetime.now(UTC)
    message = UserMessage("hello")
    after = datetime.now(UTC)
    memory.append("c", [message])
    for _ in range(2):
        (read,) = memory.messages("c")
        assert (read.id, read.created) == (message.id, message.created)
        assert before <= read.created <= after


@pytest.mark.parametrize(
    "bad",
    [
        UserMessage("a NUL \0"),
        UserMessage("a lone surrogate \ud800"),
        UserMessage("bad id", id=""),
        UserMessage("bad id", id="x" * 513),
        UserMessage("bad id", id="\udfff"),
        UserMessage("bad metadata", metadata={"x": float("nan")}),
        UserMessage("bad metadata", metadata={"x": [float("inf")]}),
        UserMessage("bad metadata", metadata={"x": 2**63}),
        UserMessage("bad metadata", metadata={"x": (1, 2)}),
        UserMessage("bad metadata", metadata={"x": b"bytes"}),
        UserMessage("bad metadata", metadata={"x": datetime(2026, 1, 1)}),  # noqa: DTZ001 - that is what is wrong
        UserMessage("bad metadata", metadata={"x": {1: 2}}),
        AssistantMessage(tool_calls=(ToolCall("1", "t", "\ud800"),)),
        "a str",
        {"role": "user", "text": "a dict"},
        None,
    ],
    ids=lambda bad: getattr(bad, "text", "") or type(bad).__name__,
)
def test_a_batch_with_a_bad_message_is_refused_whole(memories: Memories, bad: Any) -> None:
    # M2, M4: and the error is also a ValueError (E1)
    memory = memories()
    good = batch("good", 0)
    for operation in (memory.append, memory.replace):
        with pytest.raises(MessageError) as caught:
            operation("new", [*batch("other", 1), bad, *batch("other", 2)])
        assert isinstance(caught.value, ValueError)
        assert caught.value.outcome == "not_done"
    assert memory.messages("new") == []
    assert memory.conversation_ids().items == []
    memory.append("c", good)
    for operation in (memory.append, memory.replace):
        with pytest.raises(MessageError):
            operation("c", [*batch("other", 1), bad])
    assert memory.messages("c") == good


def test_one_id_twice_in_a_batch_is_refused_whole(memories: Memories) -> None:
    # M3
    memory = memories()
    twice = [UserMessage("a", id="1"), UserMessage("b", id="2"), UserMessage("c", id="1")]
    for operation in (memory.append, memory.replace):
        with pytest.raises(MessageError, match="twice"):
            operation("c", twice)
    assert memory.messages("c") == []


def test_a_batch_must_be_a_list_of_messages(memories: Memories) -> None:
    # M2: a bare message or a text is no batch
    memory = memories()
    bare: Any
    for bare in (UserMessage("a"), "text", 5, None):
        with pytest.raises(MessageError):
            memory.append("c", bare)
    assert memory.conversation_ids().items == []
