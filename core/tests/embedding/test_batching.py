"""Counting tokens and cutting texts into batches."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from entrepot.batching import EstimatingTokenCounter, TokenCountBatchingStrategy
from entrepot.errors import ConfigurationError, SizeLimitError


class WordCounter:
    """Counts words, so that tests can say how many tokens a text has."""

    def count(self, texts: Sequence[str]) -> list[int]:
        return [len(text.split()) for text in texts]


def words(count: int) -> str:
    return "w " * count


def test_the_defaults_leave_a_tenth_free() -> None:
    assert TokenCountBatchingStrategy().limit == 7372
    assert TokenCountBatchingStrategy(max_tokens=8191, reserve=0.0).limit == 8191
    assert TokenCountBatchingStrategy(max_tokens=100, reserve=0.5).limit == 50
    assert TokenCountBatchingStrategy(max_tokens=1, reserve=0, max_texts=1).limit == 1


def test_a_batch_is_filled_up_to_the_limit_and_not_beyond() -> None:
    strategy = TokenCountBatchingStrategy(max_tokens=10, reserve=0, counter=WordCounter())
    assert strategy.batches([words(4), words(6), words(1)]) == [range(2), range(2, 3)]
    assert strategy.batches([words(4), words(7), words(3)]) == [range(1), range(1, 3)]
    assert strategy.batches([words(10), words(10)]) == [range(1), range(1, 2)]
    assert strategy.batches([]) == []
    assert strategy.batches([""]) == [range(1)]


def test_the_number_of_texts_is_bounded_too() -> None:
    strategy = TokenCountBatchingStrategy(max_texts=3)
    assert strategy.batches([""] * 7) == [range(3), range(3, 6), range(6, 7)]
    assert len(TokenCountBatchingStrategy().batches(["x"] * 257)) == 2


def test_a_text_above_the_limit_is_refused_by_its_label() -> None:
    # D6: before anything is sent
    strategy = TokenCountBatchingStrategy(max_tokens=10, reserve=0.1, counter=WordCounter())
    with pytest.raises(
        SizeLimitError, match=r"document 'b': its text has 10 tokens.* takes 9 \(10 less a reserve of 10%\)"
    ):
        strategy.batches([words(1), words(10)], ["document 'a'", "document 'b'"])
    with pytest.raises(SizeLimitError, match="text 1: "):
        strategy.batches([words(9), words(10)])


def test_an_estimate_calls_itself_one() -> None:
    with pytest.raises(SizeLimitError, match=r"about 7500 tokens \(estimated\)") as caught:
        TokenCountBatchingStrategy().batches(["a" * 30_000])
    assert "counter=" in caught.value.hint


def test_a_text_above_the_limit_can_travel_alone() -> None:
    # D8: a model without a limit takes any text
    strategy = TokenCountBatchingStrategy(max_tokens=5, reserve=0, counter=WordCounter(), oversize="alone")
    assert strategy.batches([words(1), words(9), words(1), words(2)]) == [range(1), range(1, 2), range(2, 4)]


@given(st.lists(st.integers(0, 12), max_size=30), st.integers(1, 5))
def test_batches_cover_all_texts_in_order_within_both_bounds(counts: list[int], max_texts: int) -> None:
    strategy = TokenCountBatchingStrategy(
        max_tokens=10, reserve=0, counter=WordCounter(), max_texts=max_texts, oversize="alone"
    )
    batches = strategy.batches([words(count) for count in counts])
    assert [index for batch in batches for index in batch] == list(range(len(counts)))
    for batch in batches:
        assert 1 <= len(batch) <= max_texts
        assert sum(counts[i] for i in batch) <= 10 or len(batch) == 1
    for batch, following in pairwise(batches):  # no batch is cut too early
        assert len(batch) == max_texts or sum(counts[i] for i in batch) + counts[following.start] > 10


@pytest.mark.parametrize(
    "arguments",
    [
        {"max_tokens": 0},
        {"reserve": 1.0},
        {"reserve": -0.1},
        {"reserve": float("nan")},
        {"max_texts": 0},
        {"oversize": "cut"},
        {"max_tokens": 1, "reserve": 0.9},
    ],
)
def test_arguments_out_of_range_are_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        TokenCountBatchingStrategy(**arguments)


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        ("a", 1),
        ("abcd", 1),
        ("abcde", 2),
        ("ABCD", 2),
        ("2026", 2),
        ("a b\tc\nd\r", 2),
        ("град", 3),  # 4 x 0.75
        ("文字列文", 5),  # 4 x 1.125, rounded up
        ("😀😀", 3),  # 2 x 1.5
        ("abcd文", 3),  # 1 + 1.125, rounded up
    ],
)
def test_the_estimate_follows_its_rule(text: str, tokens: int) -> None:
    assert EstimatingTokenCounter().count([text]) == [tokens]


@given(st.text(st.characters()), st.text(st.characters()))
def test_the_estimate_grows_with_the_text(a: str, b: str) -> None:
    whole, first, second = EstimatingTokenCounter().count([a + b, a, b])
    assert max(first, second) <= whole <= first + second


def test_text_without_spaces_is_counted_like_any_other() -> None:
    spaced, joined = EstimatingTokenCounter().count(["word " * 400, "words" * 400])
    assert spaced == joined == 500


def test_counters_can_be_compared_with_a_tokenizer() -> None:
    """Estimates of ordinary text stay within half and twice of a real tokenizer (that of Llama 2)."""
    from entrepot.embeddings.wordllama import WordLlamaEmbeddingModel

    samples = [
        "The capital of Bulgaria is Sofia, a city at the foot of Vitosha mountain with a long history.",
        "Столицата на България е София, град в подножието на Витоша с дълга история.",  # noqa: RUF001
        "Die Hauptstadt von Bulgarien ist Sofia, eine Stadt am Fuße des Witoscha-Gebirges.",
        "保加利亚的首都是索非亚,一座位于维托沙山脚下、历史悠久的城市。",
        "def embed(texts: list[str]) -> list[list[float]]:\n    return [model(text) for text in texts]\n",
    ]
    exact = WordLlamaEmbeddingModel().token_counter.count(samples)
    for estimate, count in zip(EstimatingTokenCounter().count(samples), exact, strict=True):
        assert count / 2 <= estimate <= count * 2
