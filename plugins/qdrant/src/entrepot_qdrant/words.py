"""Words of texts and queries, as sparse vectors for FULLTEXT (S9). Pure functions.

A word's place in the vector is 32 bits of a digest, its weight is that of BM25 (Robertson and Zaragoza, "The
Probabilistic Relevance Framework: BM25 and Beyond", 2009) without the factor for how rare the word is, which the
engine knows and multiplies in (its modifier IDF). The average length of texts is a setting, as no document could
know it when it is written.

Two words may share a place; so what the engine finds is held against the text here.
"""

from __future__ import annotations

import re
from collections import Counter
from hashlib import blake2b
from typing import Final, NamedTuple

_WORD: Final = re.compile(r"[^\W_]+")
_SATURATION: Final = 1.2
_LENGTH: Final = 0.75


class Sparse(NamedTuple):
    """A sparse vector: places in order, and a weight for each."""

    places: list[int]
    weights: list[float]


def words_in(text: str) -> list[str]:
    """Return the words of a text in order: runs of letters and digits, lower-cased."""
    return _WORD.findall(text.lower())


def place_of(word: str) -> int:
    """Return the place of a word, of 32 bits."""
    return int.from_bytes(blake2b(word.encode(), digest_size=4, person=b"entrepot").digest(), "big")


def weighted(text: str, average: float) -> Sparse | None:
    """Return the vector of a document's text; None without a word.

    Args:
        text: The text.
        average: How many words a text of average length has.
    """
    words = words_in(text)
    if not words:
        return None
    norm = _SATURATION * (1.0 - _LENGTH + _LENGTH * len(words) / average)
    counts: Counter[int] = Counter()
    for word, count in Counter(words).items():
        counts[place_of(word)] += count
    places = sorted(counts)
    return Sparse(places, [counts[at] * (_SATURATION + 1.0) / (counts[at] + norm) for at in places])


def asked(words: frozenset[str]) -> Sparse:
    """Return the vector of a query: every word counts once."""
    places = sorted({place_of(word) for word in words})
    return Sparse(places, [1.0] * len(places))
