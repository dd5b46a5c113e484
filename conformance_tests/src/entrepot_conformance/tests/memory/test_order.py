"""M1: batches of one conversation have one total order, consistent with real time."""

from __future__ import annotations

import threading
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

from entrepot import UserMessage
from entrepot_conformance.tests.memory.messages import NOON, at_once, batch, ids

if TYPE_CHECKING:
    from entrepot import Message
    from entrepot_conformance.endpoints import Memories


def test_messages_come_in_the_order_in_which_they_were_appended(memories: Memories) -> None:
    # M1
    memory = memories()
    written: list[Message] = []
    for number in range(30):
        appended = batch("only", number, size=1 + number % 4)
        memory.append("c", appended)
        written += appended
        assert memory.messages("c") == written


def test_timestamps_order_nothing(memories: Memories) -> None:
    # M1
    memory = memories()
    backwards = [UserMessage(str(n), id=str(n), created=NOON - timedelta(seconds=n)) for n in range(10)]
    equal = [UserMessage(str(n), id=str(n), created=NOON) for n in range(10, 20)]
    for message in backwards:
        memory.append("c", [message])
    memory.append("c", equal)
    assert memory.messages("c") == [*backwards, *equal]
    assert memory.messages("c", last=12) == [*backwards, *equal][-12:]
    assert memory.latest("c", "user") == equal[-1]


def test_what_returned_before_comes_first(memories: Memories) -> None:
    # M1: two threads in turns; each append begins after the other's has returned
    memory = memories()
    turns = [threading.Semaphore(1), threading.Semaphore(0)]
    rounds = 25

    def writer(me: int) -> None:
        for number in range(rounds):
            assert turns[me].acquire(timeout=30)
            memory.append("c", batch(number, me))
            turns[1 - me].release()

    at_once(lambda: writer(0), lambda: writer(1))
    expected = [name for number in range(rounds) for me in (0, 1) for name in ids(batch(number, me))]
    assert ids(memory.messages("c")) == expected


def test_nothing_later_appears_before_what_was_read(memories: Memories) -> None:
    # M1: each reading begins with the whole reading before it
    memory = memories()
    done = threading.Event()
    writers = 4

    def writer(me: int) -> None:
        for number in range(15):
            memory.append("c", batch(me, number))

    def write_all() -> None:
        try:
            at_once(*(partial(writer, me) for me in range(writers)))
        finally:
            done.set()

    def reader() -> None:
        seen: list[str] = []
        while True:
            last = done.is_set()
            now = ids(memory.messages("c"))
            assert now[: len(seen)] == seen
            tail = ids(memory.messages("c", last=5))
            later = ids(memory.messages("c"))
            end = later.index(tail[-1]) + 1 if tail else 0
            assert end >= len(now)  # the tail is as new as what was read before it
            assert tail == later[max(0, end - 5) : end]
            assert later[: len(now)] == now
            seen = now
            if last:
                break
        assert len(seen) == writers * 15 * 3

    at_once(write_all, reader, reader)
