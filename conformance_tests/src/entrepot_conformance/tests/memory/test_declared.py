"""What a memory declares works, what it declines is refused, and what works is declared: M8, M10."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from entrepot import UserMessage
from entrepot.errors import UnsupportedError
from entrepot.exchange import deadline
from entrepot.memory.questions import Question

if TYPE_CHECKING:
    from entrepot_conformance.endpoints import Memories

PATIENCE = 10.0


def test_questions_are_declared_or_do_not_work(memories: Memories) -> None:
    # M10
    memory = memories()
    memory.append("one", [UserMessage("a needle"), UserMessage("hay")])
    if memory.capabilities.memory_search:
        assert [found.message.text for found in memory.search(text="needle")] == ["a needle"]
    else:
        with pytest.raises(UnsupportedError):
            memory.search(text="needle")
        assert found_by(memory, "needle") != ["one"], "it works: declare memory_search"


def found_by(hooks: Any, text: str) -> list[str]:
    """Return where the plugin's hook finds a text, whatever it declares; nothing if it fails."""
    question = Question(text=text, role=None, since=None, until=None, metadata={}, limit=10)
    with suppress(Exception), deadline(PATIENCE):
        return [name for name, _ in hooks._find(question)]
    return []


def test_expiry_is_declared_or_refused(memories: Memories) -> None:
    # M8
    if memories().capabilities.ttl:
        memory = memories(ttl=3600)
        memory.append("one", [UserMessage("a")])
        assert [message.text for message in memory.messages("one")] == ["a"]
    else:
        with pytest.raises(UnsupportedError, match="ttl"):
            memories(ttl=3600)
