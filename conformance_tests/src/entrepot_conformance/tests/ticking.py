"""How long an event loop stands still (E3)."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

LONGEST_GAP: Final = 0.05
"""Seconds that the event loop may stand still (E3)."""


class _Collections:
    """When the garbage collector ran: it stops all threads, for as long as the process's heap is large."""

    def __init__(self) -> None:
        self._runs: list[tuple[float, float]] = []
        self._began = 0.0

    def __call__(self, phase: str, _info: dict[str, int]) -> None:
        if phase == "start":
            self._began = time.perf_counter()
        else:
            self._runs.append((self._began, time.perf_counter()))

    def during(self, start: float, end: float) -> float:
        """Return how many seconds of a time it took."""
        return sum(max(0.0, min(end, stop) - max(start, begin)) for begin, stop in self._runs)


async def longest_gap(awaitable: Awaitable[object]) -> float:
    """Return the longest time in which the event loop did nothing else while this was awaited."""
    collections = _Collections()
    pauses: list[tuple[float, float]] = []
    last = time.perf_counter()

    def noted() -> None:
        nonlocal last
        now = time.perf_counter()
        pauses.append((last, now))
        last = now

    async def tick() -> None:
        while True:
            await asyncio.sleep(0.001)
            noted()

    ticker = asyncio.ensure_future(tick())
    await asyncio.sleep(0)
    gc.callbacks.append(collections)
    try:
        last = time.perf_counter()
        await awaitable
        noted()
    finally:
        gc.callbacks.remove(collections)
    ticker.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await ticker
    return max(end - start - collections.during(start, end) for start, end in pauses)


def least_gaps(gaps: Callable[[], Awaitable[dict[str, float]]]) -> dict[str, float]:
    """Return the least gap of each operation in some runs: the machine itself may be held up, what blocks blocks always."""

    async def once() -> dict[str, float]:
        return await gaps()

    # What the tests before this one left behind would be gone through by the garbage collector meanwhile.
    gc.collect()
    gc.freeze()
    try:
        best = asyncio.run(once())
        for _ in range(12):
            if max(best.values()) <= LONGEST_GAP:
                break
            again = asyncio.run(once())
            best = {name: min(gap, again[name]) for name, gap in best.items()}
    finally:
        gc.unfreeze()
    return best
