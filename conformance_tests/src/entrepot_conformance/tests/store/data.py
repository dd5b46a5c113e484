"""What the tests of stores share: models and documents plain enough to compute by hand, and one comparator."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pytest

from entrepot import Document, FunctionEmbeddingModel
from entrepot.errors import UnsupportedSearchModeError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from entrepot import VectorStore

NEAR: Final = 1e-6
"""Scores this close may swap between backends (S1)."""
SCORE: Final = 1e-4
"""A score is the same number on every backend within this (S2)."""


TEXTS: Final = {
    "1": "the wing of an aircraft",
    "2": "wing wing wing",
    "3": "heat transfer in slabs; Wing-tip",
    "4": "nothing of the kind",
    "5": "AIRCRAFT heat",
}
"""Texts by id, for searches by words."""


def letters(texts: Sequence[str]) -> list[list[int]]:
    """Embed a text as its counts of the letters a to h."""
    return [[text.count(letter) for letter in "abcdefgh"] for text in texts]


def letter_model(name: str = "letters") -> FunctionEmbeddingModel:
    """Return the model of `letters`, with 8 dimensions."""
    return FunctionEmbeddingModel(letters, name, 8)


def document(name: str, number: int = 1, **metadata: Any) -> Document:
    """Return a document with a vector of its own, (1, number)."""
    return Document(f"text {number}", id=name, metadata=metadata, vector=[1.0, float(number)])


def expected_scores(metric: str, vectors: Any, query: Any) -> Any:
    """Return S2, computed plainly in float64, shape (n,)."""
    vectors, query = np.asarray(vectors, dtype=np.float64), np.asarray(query, dtype=np.float64)
    if metric == "euclidean":
        return 1 / (1 + ((vectors - query) ** 2).sum(axis=1))
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return (1 + unit @ (query / np.linalg.norm(query))) / 2


def declined(store: VectorStore, mode: str) -> bool:
    """Return whether a store declines a mode; if so, check that it refuses it loudly (S9)."""
    if getattr(store.capabilities, mode):
        return False
    with pytest.raises(UnsupportedSearchModeError) as caught:
        store.similarity_search("text", mode=mode)
    assert caught.value.capability == mode
    return True


def check_hits(hits: Sequence[Document], scores: Mapping[str, float], k: int) -> None:
    """Check the hits of an exact search against the score of every document that matches (S1, S2, S4).

    There are min(k, matches) of them, none twice, each with its score; they come in order, equal
    scores by id; and none that was left out is better than the last by more than near ties.
    """
    assert len(hits) == min(k, len(scores)), f"{len(hits)} hits of {len(scores)} matches, asked for {k}"
    ids = [hit.id for hit in hits]
    assert len(set(ids)) == len(ids)
    for hit in hits:
        assert hit.id in scores, f"{hit.id} does not match"
        assert hit.score is not None
        assert abs(hit.score - scores[hit.id]) <= SCORE, f"{hit.id}: {hit.score}, expected {scores[hit.id]}"
    given = [(-(hit.score or 0.0), hit.id) for hit in hits]
    assert given == sorted(given), "equal scores are ordered by id, all others by score"
    true = [scores[name] for name in ids]
    for better, worse in pairwise(true):
        assert better >= worse - NEAR, "the order is not that of the scores"
    left_out = [score for name, score in scores.items() if name not in set(ids)]
    if left_out and true:
        assert max(left_out) <= min(true) + NEAR, "a better document was left out"
