"""How things are timed: in turns, so that a busy moment of the machine hits both sides of a ratio."""

from __future__ import annotations

import gc
import statistics
import time
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable


class Line(NamedTuple):
    """One figure and its goal.

    Attributes:
        name: What was measured.
        goal: The figure shall be at most this, or at least this if `more` is set.
        ratio: Time or size as a multiple of the plain piece that was measured in the same run.
        value: An absolute figure, where a ratio makes no sense.
        unit: Of the value.
        more: Whether more is better.
        plain: What the plain piece took, for reading.
    """

    name: str
    goal: float
    ratio: float | None = None
    value: float | None = None
    unit: str = ""
    more: bool = False
    plain: str = ""

    @property
    def ok(self) -> bool:
        """Whether the goal is reached."""
        figure = self.ratio if self.ratio is not None else self.value
        if figure is None:
            return False
        return figure >= self.goal if self.more else figure <= self.goal

    def record(self) -> dict[str, object]:
        """Return the line as it is written to JSON."""
        figure = {"ratio": round(self.ratio, 3)} if self.ratio is not None else {"value": self.value}
        record: dict[str, object] = {"name": self.name, **figure, "goal": self.goal, "ok": self.ok}
        if self.unit:
            record["unit"] = self.unit
        if self.more:
            record["at_least"] = True
        if self.plain:
            record["plain"] = self.plain
        return record


def seconds(function: Callable[[], object]) -> float:
    """Return how long one call took."""
    started = time.perf_counter()
    function()
    return time.perf_counter() - started


def medians(*functions: Callable[[], object], repetitions: int) -> list[float]:
    """Return the median time of each function in seconds; they are called in turns."""
    times: list[list[float]] = [[] for _ in functions]
    for function in functions:
        function()
    gc.collect()
    for _ in range(repetitions):
        for place, function in enumerate(functions):
            times[place].append(seconds(function))
    return [statistics.median(each) for each in times]


def ratio(
    name: str, goal: float, ours: Callable[[], object], plain: Callable[[], object], *, repetitions: int = 30
) -> Line:
    """Return the line of our time as a multiple of the plain piece's."""
    mine, theirs = medians(ours, plain, repetitions=repetitions)
    return Line(name, goal, ratio=mine / theirs, plain=f"{theirs * 1e6:,.0f} us")
