"""Hostile inputs wherever a caller gives a string: kept and found as they are, with no other effect: F10, M2, M6, M10."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from entrepot import UserMessage
from entrepot_conformance.hostile import HOSTILE

if TYPE_CHECKING:
    from entrepot_conformance.endpoints import Memories

SHARES = 4
"""Tests that share the inputs between them, so that they run beside each other."""


@pytest.mark.parametrize("share", range(SHARES))
def test_conversations_and_messages_are_data(memories: Memories, share: int) -> None:
    # F10, M2, M6
    inputs = HOSTILE[share::SHARES]
    memory = memories()
    memory.append("canary", [UserMessage("a bird")])
    for odd in inputs:
        memory.append(odd, [UserMessage(odd, id=odd, metadata={odd: odd})])
    for odd in inputs:
        (message,) = memory.messages(odd)
        assert (message.id, message.text, message.metadata) == (odd, odd, {odd: odd})
    names: list[str] = []
    cursor: str | None = None
    while True:
        page = memory.conversation_ids(limit=40, cursor=cursor)
        names += page.items
        cursor = page.token
        if cursor is None:
            break
    assert sorted(names) == sorted([*inputs, "canary"])
    for odd in inputs[::2]:
        memory.delete(odd)
    for odd in inputs[1::2]:
        assert len(memory.messages(odd)) == 1
    assert [message.text for message in memory.messages("canary")] == ["a bird"]


def test_questions_are_data(memories: Memories) -> None:
    # F10, M10
    memory = memories()
    inputs = HOSTILE[::9]
    for odd in inputs:
        memory.append("c", [UserMessage(odd, metadata={"k": odd, odd: 1})])
    if not memory.capabilities.memory_search:
        return
    for odd in inputs:
        found = memory.search(text=odd, limit=100)
        assert {hit.message.text for hit in found} == {text for text in inputs if odd in text}
        assert [hit.message.text for hit in memory.search(metadata={"k": odd})] == [odd]
        assert [hit.message.text for hit in memory.search(metadata={odd: 1})] == [odd]
    assert len(memory.messages("c")) == len(inputs)
