"""Windows by tokens: what a counter may answer (W4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from entrepot import InMemoryChatMemoryRepository, TokenWindowChatMemory, UserMessage
from entrepot.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class Counter:
    """Answers whatever it is told to."""

    def __init__(self, answer: Callable[[Sequence[str]], Any]) -> None:
        self._answer = answer

    def count(self, texts: Sequence[str]) -> list[int]:
        return self._answer(texts)  # type: ignore[no-any-return]


def window(answer: Callable[[Sequence[str]], Any]) -> TokenWindowChatMemory:
    memory = TokenWindowChatMemory(InMemoryChatMemoryRepository(), max_tokens=3, counter=Counter(answer))
    memory.add("c", [UserMessage("one"), UserMessage("two")])
    return memory


def fail(texts: Sequence[str]) -> list[int]:
    raise RuntimeError(texts[0])


async def test_a_counter_that_raises_is_the_cause_and_its_words_stay_there() -> None:  # E1
    for text in ("one", "two"):
        with pytest.raises(ConfigurationError, match="Counter failed: RuntimeError") as caught:
            window(fail).get("c")
        assert isinstance(caught.value.__cause__, RuntimeError)
        assert text not in caught.value.message
    with pytest.raises(ConfigurationError, match="Counter failed"):
        await window(fail).aget("c")


@pytest.mark.parametrize(
    "answer", [[], [1], [1, 2, 3], None, 5, "12", [1, "2"], [1, -2], [1, 2.5], [1, None]]
)
def test_an_answer_that_is_no_count_of_each_text_is_refused(answer: object) -> None:  # W4
    with pytest.raises(ConfigurationError, match="numbers of tokens"):
        window(lambda _: answer).get("c")


@pytest.mark.parametrize("kind", [list, tuple, np.array])
def test_counts_may_come_in_any_sequence(kind: Any) -> None:  # W4
    memory = window(lambda texts: kind([2] * len(texts)))
    assert [message.text for message in memory.get("c")] == ["two"]
