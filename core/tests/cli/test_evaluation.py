"""Evaluation formulas against values computed by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from entrepot.cli.evaluation import dcg, mean, ndcg, recall

GAINS = {"a": 3.0, "b": 0.0, "c": 2.0, "d": 1.0}


def test_dcg_discounts_by_the_logarithm_of_the_rank() -> None:
    # 3 / log2(2) + 2 / log2(3) + 3 / log2(4) = 3 + 1.2618595 + 1.5
    assert dcg([3, 2, 3]) == pytest.approx(5.7618595071)
    assert dcg([]) == 0


def test_ndcg_by_hand() -> None:
    # DCG of a, b, c = 3 + 0 + 2 / 2 = 4; ideal 3, 2, 1 = 3 + 1.2618595 + 0.5 = 4.7618595
    assert ndcg(["a", "b", "c"], GAINS, 3) == pytest.approx(4 / 4.7618595071)


def test_ndcg_cuts_ranking_and_ideal_at_k() -> None:
    # k = 1: the ranking has c (2), the ideal a (3).
    assert ndcg(["c", "a"], GAINS, 1) == pytest.approx(2 / 3)


def test_ndcg_ideal_counts_judged_documents_that_were_not_found() -> None:
    # Only d is found: 1 of an ideal of 4.7618595.
    assert ndcg(["d"], GAINS, 10) == pytest.approx(1 / 4.7618595071)


def test_ndcg_documents_without_judgement_gain_nothing_but_take_a_rank() -> None:
    # unknown at rank 1, a at rank 2: 3 / log2(3) = 1.8927893
    assert ndcg(["unknown", "a"], GAINS, 10) == pytest.approx(1.8927892607 / 4.7618595071)


def test_ndcg_of_the_ideal_ranking_is_one_and_of_nothing_zero() -> None:
    assert ndcg(["a", "c", "d"], GAINS, 10) == pytest.approx(1)
    assert ndcg([], GAINS, 10) == 0
    assert ndcg(["a"], {}, 10) == 0
    assert ndcg(["b"], {"b": 0.0}, 10) == 0


def test_recall_by_hand() -> None:
    # Relevant are a, c and d; b gains nothing.
    assert recall(["a", "b", "x", "c"], GAINS, 3) == pytest.approx(1 / 3)
    assert recall(["a", "b", "x", "c"], GAINS, 4) == pytest.approx(2 / 3)
    assert recall(["b"], {"b": 0.0}, 4) == 0


def test_mean() -> None:
    assert mean([0.25, 0.75]) == 0.5
    assert mean([]) == 0


@given(
    gains=st.dictionaries(st.sampled_from("abcdefgh"), st.integers(0, 4).map(float)),
    ranking=st.lists(st.sampled_from("abcdefghxyz"), unique=True),
    k=st.integers(1, 12),
)
def test_figures_stay_between_0_and_1(gains: dict[str, float], ranking: list[str], k: int) -> None:
    assert 0 <= ndcg(ranking, gains, k) <= 1 + 1e-12
    assert 0 <= recall(ranking, gains, k) <= 1
