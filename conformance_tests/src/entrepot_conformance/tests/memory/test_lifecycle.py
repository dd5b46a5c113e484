"""E1 to E5, as they bind memories: errors, async twins, cancelling, closing, forks, threads and loops."""

from __future__ import annotations

import asyncio
import contextlib
import os
import pickle
import random
import threading
import time
import warnings
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from entrepot import ClosedError, EntrepotError, ForkError, UnknownOptionError, UserMessage
from entrepot_conformance.tests.memory.messages import at_once, batch, exchange, ids
from entrepot_conformance.tests.ticking import LONGEST_GAP, least_gaps, longest_gap

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

    from entrepot import ChatMemoryRepository
    from entrepot_conformance.endpoints import Memories


def operations(
    memory: ChatMemoryRepository,
) -> list[tuple[Callable[[], Any], Callable[[], Coroutine[Any, Any, Any]]]]:
    """Return every operation with its twin; both do the same to the conversation of the name."""
    pairs: list[tuple[Callable[[], Any], Callable[[], Coroutine[Any, Any, Any]]]] = [
        (lambda: memory.append("c", exchange("a")), lambda: memory.aappend("c", exchange("a"))),
        (lambda: memory.append("c", exchange("b")), lambda: memory.aappend("c", exchange("b"))),
        (lambda: ids(memory.messages("c")), lambda: _aids(memory)),
        (lambda: ids(memory.messages("c", last=3)), lambda: _aids(memory, 3)),
        (lambda: memory.messages("unknown"), lambda: memory.amessages("unknown")),
        (lambda: memory.latest("c", "system"), lambda: memory.alatest("c", "system")),
        (lambda: memory.truncate("c", after="b call"), lambda: memory.atruncate("c", after="b call")),
        (lambda: ids(memory.messages("c")), lambda: _aids(memory)),
        (lambda: memory.replace("c", exchange("d")), lambda: memory.areplace("c", exchange("d"))),
        (lambda: memory.append("e", exchange("e")), lambda: memory.aappend("e", exchange("e"))),
        (lambda: sorted(memory.conversation_ids().items), lambda: _alisted(memory)),
        (lambda: memory.delete("c"), lambda: memory.adelete("c")),
        (lambda: ids(memory.messages("c")), lambda: _aids(memory)),
        # What is refused is refused by both, by the same class.
        (lambda: memory.append("", exchange("a")), lambda: memory.aappend("", exchange("a"))),
        (lambda: memory.truncate("e", after="x"), lambda: memory.atruncate("e", after="x")),
        (lambda: memory.messages("e", last=-1), lambda: memory.amessages("e", last=-1)),
        (lambda: memory.latest("e", "robot"), lambda: memory.alatest("e", "robot")),
        (lambda: memory.conversation_ids(limit=0), lambda: memory.aconversation_ids(limit=0)),
        (lambda: _said(memory.search(text="question")), lambda: _asaid(memory)),
        (lambda: memory.search(limit=0), lambda: memory.asearch(limit=0)),
        (lambda: memory.delete("e"), lambda: memory.adelete("e")),
    ]
    return pairs


async def _aids(memory: ChatMemoryRepository, last: int | None = None) -> list[str]:
    return ids(await memory.amessages("c", last=last))


async def _alisted(memory: ChatMemoryRepository) -> list[str]:
    return sorted((await memory.aconversation_ids()).items)


def _said(found: Any) -> list[str]:
    return [hit.message.id for hit in found]


async def _asaid(memory: ChatMemoryRepository) -> list[str]:
    return _said(await memory.asearch(text="question"))


def outcome(function: Callable[[], object]) -> object:
    try:
        return function()
    except EntrepotError as error:
        return type(error), str(error)


async def aoutcome(function: Callable[[], Awaitable[object]]) -> object:
    try:
        return await function()
    except EntrepotError as error:
        return type(error), str(error)


def test_every_operation_has_a_twin_that_does_alike(memories: Memories) -> None:
    # E3
    memory = memories()
    said = [outcome(function) for function, _ in operations(memory)]
    assert memory.conversation_ids().items == []

    async def all_twins() -> list[object]:
        async with await memories.aopen() as other:
            return [await aoutcome(twin) for _, twin in operations(other)]

    assert asyncio.run(all_twins()) == said


@pytest.mark.alone
def test_no_twin_blocks_the_event_loop(memories: Memories) -> None:
    # E3: the best of some runs, as the machine itself may be held up; what blocks, blocks every time
    memory = memories()
    many = batch("many", 0, size=4000)

    async def gaps() -> dict[str, float]:
        return {
            "areplace": await longest_gap(memory.areplace("c", many)),
            "aappend": await longest_gap(memory.aappend("c", many)),
            "amessages": await longest_gap(memory.amessages("c")),
            "alatest": await longest_gap(memory.alatest("c", "system")),
            "atruncate": await longest_gap(memory.atruncate("c", after=many[10].id)),
            "aconversation_ids": await longest_gap(memory.aconversation_ids()),
            "adelete": await longest_gap(memory.adelete("c")),
        }

    best = least_gaps(gaps)
    assert max(best.values()) <= LONGEST_GAP, str(best)


def test_cancelling_leaves_whole_batches_and_a_usable_memory(memories: Memories) -> None:
    # E4
    memory = memories()
    rng = random.Random(7)

    async def cancelled() -> None:
        for number in range(25):
            task = asyncio.ensure_future(memory.aappend("c", batch("a", number)))
            await asyncio.sleep(rng.choice([0, 0, 0.0001, 0.0005, 0.002]))
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        await memory.aappend("c", batch("last", 0))

    asyncio.run(cancelled())
    read = ids(memory.messages("c"))
    pieces = [read[start : start + 3] for start in range(0, len(read), 3)]
    assert all(piece in [ids(batch("a", n)) for n in range(25)] + [ids(batch("last", 0))] for piece in pieces)
    assert ids(batch("last", 0)) in pieces
    memory.append("c", batch("after", 0))
    assert ids(memory.messages("c", last=3)) == ids(batch("after", 0))


def test_two_event_loops_one_after_the_other_and_at_once(memories: Memories) -> None:
    # E5: async clients are per event loop
    memory = memories()

    async def work(me: int) -> None:
        for number in range(6):
            await memory.aappend(f"c{me}", batch(me, number))
            assert len(await memory.amessages(f"c{me}")) == 3 * (number + 1)
        await asyncio.gather(*(memory.aappend("shared", batch(me, number)) for number in range(4)))

    asyncio.run(work(1))
    asyncio.run(work(2))
    at_once(lambda: asyncio.run(work(3)), lambda: asyncio.run(work(4)))
    assert len(memory.messages("shared")) == 4 * 4 * 3
    assert sorted(memory.conversation_ids().items) == ["c1", "c2", "c3", "c4", "shared"]


def test_threads_share_one_memory(memories: Memories) -> None:
    # E5
    memory = memories()

    def work(me: int) -> None:
        for number in range(10):
            memory.append(f"c{me}", batch(me, number))
            assert memory.messages(f"c{me}", last=3) == memory.messages(f"c{me}")[-3:]
            memory.truncate(f"c{me}", after=f"{me}/{number}/1")
            assert f"c{me}" in memory.conversation_ids().items

    at_once(*(partial(work, me) for me in range(6)))
    for me in range(6):
        assert len(memory.messages(f"c{me}")) == 10 * 2


def test_closing(memories: Memories) -> None:
    # E5: idempotent in both colours; afterwards every operation says so
    memory = memories()
    memory.append("c", exchange("a"))
    memory.close()
    memory.close()
    asyncio.run(memory.aclose())
    for function, twin in operations(memory):
        with pytest.raises(ClosedError):
            function()
        with pytest.raises(ClosedError):
            asyncio.run(twin())
    assert "closed" in repr(memory)


def test_with_and_async_with_close(memories: Memories) -> None:
    # E5
    with memories() as memory:
        memory.append("c", exchange("a"))
        assert len(memory.messages("c")) == 4
    with pytest.raises(ClosedError):
        memory.messages("c")

    async def in_loop() -> ChatMemoryRepository:
        async with await memories.aopen() as opened:
            await opened.aappend("d", exchange("d"))
            assert len(await opened.amessages("d")) == 4
        return opened

    closed = asyncio.run(in_loop())
    with pytest.raises(ClosedError):
        closed.messages("d")


def test_closing_one_leaves_the_others_open(memories: Memories) -> None:
    # E5
    one, other = memories(), memories()
    one.append("c", exchange("a"))
    one.close()
    other.append("c", exchange("a"))
    assert len(other.messages("c")) == 4


def test_what_was_written_outlives_the_object(memories: Memories) -> None:
    # E5, M2; a memory that says it is not durable begins empty
    with memories() as memory:
        memory.append("c", exchange("a"))
        memory.append("d", exchange("d"))
        memory.truncate("d", after="d question")
    with memories() as again:
        if not memories.spec.durable:
            assert again.conversation_ids().items == []
            return
        assert ids(again.messages("c")) == ids(exchange("a"))
        assert ids(again.messages("d")) == ["d question"]
        assert sorted(again.conversation_ids().items) == ["c", "d"]


def test_objects_on_one_endpoint_see_the_same_at_once(memories: Memories) -> None:
    # M1; or, if the target says that they share nothing, nothing of each other's
    one, other = memories(), memories()
    for number in range(10):
        one.append("c", batch("a", number))
        seen = ids(other.messages("c", last=3))
        assert seen == (ids(batch("a", number)) if memories.spec.shared else [])


def test_pickling_is_refused(memories: Memories) -> None:
    # E5
    memory = memories()
    with pytest.raises(ForkError, match="hint"):
        pickle.dumps(memory)
    memory.append("c", exchange("a"))


if hasattr(os, "fork"):

    def test_use_after_fork_is_refused(memories: Memories) -> None:
        # E5: in the child with a hint; the parent goes on
        memory = memories()
        memory.append("c", exchange("a"))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of forking beside threads
            child = os.fork()
        if child == 0:
            status = 1
            try:
                memory.messages("c")
            except ForkError as error:
                status = 0 if "hint" in str(error) else 2
            finally:
                os._exit(status)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        memory.append("c", exchange("b"))
        assert len(memory.messages("c")) == 8


def test_an_unknown_option_names_the_nearest(memories: Memories) -> None:
    # E1, E2: for targets that are opened by URL
    if "://" not in memories.spec.opens:
        return
    with pytest.raises(UnknownOptionError, match="timeout") as caught:
        memories(timeot=3)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize("timeout", [0, -1, float("nan"), "5"], ids=repr)
def test_a_timeout_is_a_positive_number(memories: Memories, timeout: Any) -> None:
    # E4
    with pytest.raises(ValueError, match="timeout"):
        memories(timeout=timeout)


def test_closing_while_others_append_ends_in_answers_or_closed_errors(memories: Memories) -> None:
    # E5, M3: what returned is stored, and what did not is told
    memory = memories()
    started = threading.Barrier(4)
    stored: list[list[str]] = [[], [], []]

    def write(writer: int) -> None:
        started.wait()
        try:
            while True:
                message = UserMessage(f"{writer}")
                memory.append(str(writer), [message])
                stored[writer].append(message.id)
        except ClosedError:
            return

    def close() -> None:
        started.wait()
        while sum(map(len, stored)) < 10:
            time.sleep(0)
        memory.close()

    at_once(*(partial(write, writer) for writer in range(3)), close)
    if memories.spec.shared and memories.spec.durable:
        again = memories()
        for writer in range(3):
            kept = ids(again.messages(str(writer)))
            assert kept[: len(stored[writer])] == stored[writer]
            assert len(kept) <= len(stored[writer]) + 1  # one may have been under way
