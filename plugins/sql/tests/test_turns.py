"""Turns go round in the order in which threads came, and none is lost when one gives up (E4)."""

from __future__ import annotations

import threading
import time

import pytest

from entrepot.errors import OperationTimeoutError
from entrepot_sql.turns import Turns


def waiting(turns: Turns) -> int:
    return len(turns._waiting)  # pyright: ignore[reportPrivateUsage]


def test_whoever_waited_longest_is_next() -> None:
    turns = Turns()
    order: list[int] = []

    def work(me: int) -> None:
        with turns.taken(10):
            order.append(me)

    threads = [threading.Thread(target=work, args=(me,)) for me in range(10)]
    with turns.taken(10):
        for me, thread in enumerate(threads):
            thread.start()
            while waiting(turns) <= me:
                time.sleep(0.001)
    for thread in threads:
        thread.join(10)
    assert order == list(range(10))


def test_who_gives_up_holds_up_nobody() -> None:
    # E4
    turns = Turns()
    with turns.taken(1):
        started = time.monotonic()
        with pytest.raises(OperationTimeoutError) as caught, turns.taken(0.05):
            raise AssertionError("two at once")
        assert 0.04 <= time.monotonic() - started < 5
        assert (caught.value.outcome, caught.value.retryable) == ("not_done", True)
        assert waiting(turns) == 0
    with turns.taken(0.01):
        pass


def test_many_threads_with_short_patience() -> None:
    turns = Turns()
    inside, most, done = 0, 0, 0
    guard = threading.Lock()

    def work() -> None:
        nonlocal inside, most, done
        for number in range(200):
            try:
                with turns.taken(0.0001 * (number % 5)):
                    with guard:
                        inside += 1
                        most = max(most, inside)
                    with guard:
                        inside -= 1
                        done += 1
            except OperationTimeoutError:
                pass

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert most == 1
    assert done > 0
    with turns.taken(0.1):  # nobody has kept it
        pass
