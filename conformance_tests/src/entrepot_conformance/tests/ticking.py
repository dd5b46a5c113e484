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


class _Clock:
    """Time but for what the garbage collector takes: it stops all threads, for as long as the process's heap is large."""

    def __init__(self) -> None:
        self._collecting = 0.0
        self._began = 0.0

    def now(self) -> float:
        return time.perf_counter() - self._collecting

    def collected(self, phase: str, _info: dict[str, int]) -> None:
        if phase == "start":
            self._began = time.perf_counter()
        else:
            self._collecting += time.perf_counter() - self._began


async def longest_gap(awaitable: Awaitable[object]) -> float:
    """Return the longest time in which the event loop did nothing else while this was awaited."""
    clock = _Clock()
    gap, last = 0.0, clock.now()

    async def tick() -> None:
        nonlocal gap, last
        while True:
            await asyncio.sleep(0.001)
            now = clock.now()
            gap, last = max(gap, now - last), now

    ticker = asyncio.ensure_future(tick())
    await asyncio.sleep(0)
    gc.callbacks.append(clock.collected)
    try:
        last = clock.now()
        await awaitable
        gap = max(gap, clock.now() - last)
    finally:
        gc.callbacks.remove(clock.collected)
    ticker.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await ticker
    return gap


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
