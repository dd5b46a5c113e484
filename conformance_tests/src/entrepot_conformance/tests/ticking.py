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


async def longest_gap(awaitable: Awaitable[object]) -> float:
    """Return the longest time in which the event loop did nothing else while this was awaited."""
    gap, last = 0.0, time.perf_counter()

    async def tick() -> None:
        nonlocal gap, last
        while True:
            await asyncio.sleep(0.001)
            now = time.perf_counter()
            gap, last = max(gap, now - last), now

    ticker = asyncio.ensure_future(tick())
    await asyncio.sleep(0)
    last = time.perf_counter()
    await awaitable
    gap = max(gap, time.perf_counter() - last)
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
