"""What the chat client and its advisors add to a model's own work; how tool search finds, and what it saves."""

from __future__ import annotations

import statistics
import time
from typing import TYPE_CHECKING

from benchmarks.measure import Line

import entrepot_rag as rag
from entrepot.messages import UserMessage
from entrepot.observation import without_observation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

CALLS, ROUNDS, ADVISORS = 200, 30, 5


class Passing(rag.BaseAdvisor):
    """Does nothing, before and after."""


def lines() -> Iterator[Line]:
    """Measure a call through five advisors, the one that calls tools among them."""
    model = rag.ScriptedChatModel(_answer)
    client = rag.ChatClient(model, advisors=[Passing(name=str(number)) for number in range(ADVISORS - 1)])
    prompt = rag.Prompt(messages=(UserMessage("question"),))
    with without_observation():
        plain = _seconds(lambda: model.call(prompt), model)
        through = _seconds(lambda: client.prompt("question").call(), model)
    yield Line(
        "overhead of a call through five advisors",
        100,
        value=(through - plain) * 1e6,
        unit="us",
        plain=f"{plain * 1e6:,.1f} us",
    )


def _answer(prompt: rag.Prompt) -> str:
    return prompt.messages[-1].text


def _seconds(call: Callable[[], object], model: rag.ScriptedChatModel) -> float:
    """Return the median of rounds of calls, for one call."""
    found: list[float] = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        for _ in range(CALLS):
            call()
        found.append((time.perf_counter() - began) / CALLS)
        model.prompts.clear()
    return statistics.median(found)
