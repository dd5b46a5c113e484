"""E1, E4, O1: errors of memories, retries, and what spans and logs tell."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

import pytest

from entrepot import UserMessage
from entrepot.errors import EntrepotError, MessageError, UnreachableError
from entrepot_conformance.tests.memory.messages import batch, ids
from entrepot_conformance.tests.raising import raised_by
from entrepot_conformance.tests.spans import SECRET, Recorder, attributes_of, everything_told

if TYPE_CHECKING:
    from collections.abc import Callable

    from entrepot import ChatMemoryRepository
    from entrepot_conformance.endpoints import Memories


def mistakes(memory: ChatMemoryRepository) -> list[Callable[[], object]]:
    """Return calls that the caller got wrong."""
    anything: Any = memory
    return [
        lambda: anything.append("", batch("a", 0)),
        lambda: anything.append("c", "text"),
        lambda: anything.append("c", [UserMessage("a", id="")]),
        lambda: anything.append("c", [UserMessage("a", id="1"), UserMessage("b", id="1")]),
        lambda: anything.replace("c", [None]),
        lambda: anything.truncate("c", after="unknown"),
        lambda: anything.messages("c", last=-1),
        lambda: anything.messages(5),
        lambda: anything.latest("c", "robot"),
        lambda: anything.conversation_ids(limit=0),
        lambda: anything.delete("\0"),
    ]


def test_the_callers_mistakes_are_value_errors_of_the_one_tree(memories: Memories) -> None:
    # E1, E4: nothing was done, and the same call again helps nobody
    memory = memories()
    memory.append("c", batch("a", 0))
    for number, mistake in enumerate(mistakes(memory)):
        error = raised_by(mistake, f"mistake {number}")
        assert isinstance(error, EntrepotError), (number, error)
        assert isinstance(error, ValueError | TypeError), (number, error)
        assert (error.outcome, error.retryable) == ("not_done", False), (number, error)
    assert ids(memory.messages("c")) == ids(batch("a", 0))


def test_an_exception_of_the_driver_becomes_the_cause(
    memories: Memories, monkeypatch: pytest.MonkeyPatch
) -> None:
    # E1, E4: nobody knows what became of a write that it broke, and what it says stays in it
    memory = memories()

    def broken(*_: object) -> Any:
        raise OSError(SECRET)

    async def abroken(*_: object) -> Any:
        raise OSError(SECRET)

    for name in ("append", "tail"):
        monkeypatch.setattr(memory, f"_{name}", broken)
        monkeypatch.setattr(memory, f"_a{name}", abroken)
    calls: list[tuple[Callable[[], object], str]] = [
        (lambda: memory.append("c", batch("a", 0)), "unknown"),
        (lambda: asyncio.run(memory.aappend("c", batch("a", 0))), "unknown"),
        (lambda: memory.messages("c"), "not_done"),
        (lambda: asyncio.run(memory.amessages("c")), "not_done"),
    ]
    for call, outcome in calls:
        error = raised_by(call)
        assert isinstance(error, EntrepotError)
        assert isinstance(error.__cause__, OSError)
        assert error.outcome == outcome
        assert SECRET not in str(error)


def test_a_retry_inside_stores_a_batch_once(memories: Memories, monkeypatch: pytest.MonkeyPatch) -> None:
    # E4, M3: the first try was done, and its answer was lost
    memory = memories()
    append = memory._append  # pyright: ignore[reportPrivateUsage]
    tried: list[int] = []

    def unanswered(*arguments: Any) -> None:
        append(*arguments)
        tried.append(1)
        if len(tried) % 2:
            message = "the answer was lost"
            raise UnreachableError(message, retryable=True, outcome="unknown")

    async def aunanswered(*arguments: Any) -> None:
        await asyncio.to_thread(unanswered, *arguments)

    monkeypatch.setattr(memory, "_append", unanswered)
    monkeypatch.setattr(memory, "_aappend", aunanswered)
    memory.append("c", batch("a", 0))
    assert ids(memory.messages("c")) == ids(batch("a", 0))
    asyncio.run(memory.aappend("c", batch("b", 0)))
    assert ids(memory.messages("c")) == [*ids(batch("a", 0)), *ids(batch("b", 0))]
    assert len(tried) == 4


def test_each_operation_is_one_span_without_ids_and_texts(
    memories: Memories, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    # O1
    caplog.set_level(logging.DEBUG)
    memory = memories()
    recorder = Recorder(monkeypatch)
    memory.append(SECRET, [UserMessage(SECRET, id="1"), UserMessage("b", id="2")])
    memory.messages(SECRET, last=1)
    memory.latest(SECRET, "user")
    memory.truncate(SECRET, after="1")
    memory.replace(SECRET, [UserMessage(SECRET, metadata={SECRET: SECRET})])
    memory.conversation_ids()
    with pytest.raises(MessageError):
        memory.append(SECRET, [UserMessage(SECRET, id="\0")])
    memory.delete(SECRET)
    spans = recorder.spans()
    expected = ["append", "messages", "latest", "truncate", "replace", "conversation_ids", "append", "delete"]
    assert [attributes_of(span)["db.operation.name"] for span in spans] == expected
    assert {attributes_of(span)["db.system.name"] for span in spans} == {memory.backend}
    assert recorder.measured()["messages"] == 1
    assert SECRET not in everything_told(spans)
    assert SECRET not in caplog.text
