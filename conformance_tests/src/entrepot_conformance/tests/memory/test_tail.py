"""M7: the newest messages, and only they."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from entrepot import AssistantMessage, SystemMessage, UserMessage
from entrepot_conformance.tests.memory.messages import batch, exchange

if TYPE_CHECKING:
    from entrepot import Message
    from entrepot_conformance.endpoints import Memories


def test_the_tail_is_the_end_in_order(memories: Memories) -> None:
    # M7
    memory = memories()
    written = batch("a", 0, size=23)
    memory.append("c", written[:10])
    memory.append("c", written[10:])
    for last in (1, 2, 12, 13, 14, 22, 23, 24, 1000):
        assert memory.messages("c", last=last) == written[-last:]
    assert memory.messages("c", last=None) == written


def test_a_tail_of_none_is_empty(memories: Memories) -> None:
    # M7
    memory = memories()
    assert memory.messages("c", last=0) == []
    memory.append("c", batch("a", 0))
    assert memory.messages("c", last=0) == []


@pytest.mark.parametrize("last", [-1, -1000, 1.0, "1", True, float("nan")], ids=repr)
def test_a_tail_has_a_length(memories: Memories, last: Any) -> None:
    # M7: a ValueError
    memory = memories()
    memory.append("c", batch("a", 0))
    with pytest.raises(ValueError, match="last"):
        memory.messages("c", last=last)


def test_the_newest_of_a_role(memories: Memories) -> None:
    # W2: what windows ask for
    memory = memories()
    memory.append("c", [SystemMessage("old"), *exchange("a"), SystemMessage("new"), *exchange("b")])
    memory.append("c", [AssistantMessage("end", id="end")])
    system = memory.latest("c", "system")
    assert system is not None
    assert system.text == "new"
    end = memory.latest("c", "assistant")
    assert end is not None
    assert end.id == "end"
    response = memory.latest("c", "tool")
    assert response is not None
    assert response.id == "b response"
    with pytest.raises(ValueError, match="role"):
        memory.latest("c", "robot")


def test_the_newest_of_a_role_after_changes(memories: Memories) -> None:
    # M4, W2
    memory = memories()
    written: list[Message] = [
        SystemMessage("1", id="1"),
        UserMessage("2", id="2"),
        SystemMessage("3", id="3"),
    ]
    memory.append("c", written)
    memory.truncate("c", after="2")
    assert memory.latest("c", "system") == written[0]
    memory.replace("c", [written[2], written[1]])
    assert memory.latest("c", "system") == written[2]
    memory.replace("c", [written[1]])
    assert memory.latest("c", "system") is None
