"""Full-text search over the texts of a collection: an inverted index and BM25 (S9).

Words are runs of letters and digits, lower-cased; no stemming and no stop words. Ranking is Okapi
BM25 (Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond", 2009) with
k1 = 1.2, b = 0.75 and the idf ``ln(1 + (N - df + 0.5) / (df + 0.5))``, which is never negative.
N, df and the mean length count the documents that are there, whatever the filter.
"""

from __future__ import annotations

import re
from array import array
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

K1: Final = 1.2
B: Final = 0.75

_WORD: Final = re.compile(r"[^\W_]+")


def words_of(text: str) -> list[str]:
    """Return the words of a text, lower-cased, in order."""
    return _WORD.findall(text.lower())


class FullTextIndex:
    """Postings by word, extended row by row. Not thread-safe: the collection holds its lock around it."""

    def __init__(self) -> None:
        self._postings: dict[str, tuple[array[int], array[int]]] = {}
        self._lengths = array("I")

    def extend(self, texts: Sequence[str | None], count: int) -> None:
        """Index the rows from the last one known up to `count`."""
        for row in range(len(self._lengths), count):
            words = words_of(texts[row] or "")
            self._lengths.append(len(words))
            counts: dict[str, int] = {}
            for word in words:
                counts[word] = counts.get(word, 0) + 1
            for word, times in counts.items():
                posting = self._postings.get(word)
                if posting is None:
                    posting = self._postings[word] = (array("I"), array("I"))
                posting[0].append(row)
                posting[1].append(times)

    def rank(
        self, query: str, count: int, alive: NDArray[np.bool_] | None
    ) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
        """Return the rows, of the first `count`, that hold a word of the query, and their BM25 values."""
        lengths = np.array(self._lengths[:count], dtype=np.float64)
        total = count if alive is None else int(alive[:count].sum())
        values = np.zeros(count)
        found = np.zeros(count, dtype=np.bool_)
        if not total:
            return np.flatnonzero(found), values[:0]
        mean = float((lengths if alive is None else lengths[alive[:count]]).sum()) / total or 1.0
        for word in dict.fromkeys(words_of(query)):
            posting = self._postings.get(word)
            if posting is None:
                continue
            rows = np.array(posting[0], dtype=np.intp)
            times = np.array(posting[1], dtype=np.float64)
            known = int(np.searchsorted(rows, count))
            rows, times = rows[:known], times[:known]
            if alive is not None:
                here = alive[rows]
                rows, times = rows[here], times[here]
            idf = np.log1p((total - rows.size + 0.5) / (rows.size + 0.5))
            damped = times + K1 * (1.0 - B + B * lengths[rows] / mean)
            values[rows] += idf * times * (K1 + 1.0) / damped
            found[rows] = True
        rows = np.flatnonzero(found)
        return rows, values[rows]
