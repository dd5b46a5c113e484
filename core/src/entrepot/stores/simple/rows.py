"""The rows of one collection in memory: append-only arrays, with versions instead of locks for readers.

A write appends rows and marks the rows it replaces as dead since a version. A reader takes a
`Snapshot`, the number of rows and the version of one instant, and sees exactly the whole writes
up to it, however many follow. Dead rows are cleared by `compacted`, into new arrays.
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from entrepot.capabilities import Metric
from entrepot.filters import TRUE
from entrepot.search import raw_scores, scores
from entrepot.stores.simple.blocks import Blocks
from entrepot.stores.simple.columns import Columns
from entrepot.stores.simple.fulltext import FullTextIndex
from entrepot.stores.simple.nearest import candidates, folded

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from entrepot.filters import Normal

_LIVING: Final = np.iinfo(np.int64).max
_COMPACT_ABOVE: Final = 1000
_RESCORED_AT_ONCE: Final = 4096
_PRODUCTS_AT_ONCE: Final = 16 * 1024 * 1024
"""Products of a batch of queries that are held at once, float32: 64 MiB."""
_EPSILON: Final = float(np.finfo(np.float32).eps)
_OVERFLOWS: Final = 1e36
"""Squared lengths beyond which a float32 product may overflow; then every row is scored exactly."""
_WIDE: Final = 0.4
"""Share of matching rows above which the product over all rows beats gathering the matching ones."""


class NewRows(NamedTuple):
    """Rows to append; all sequences have one length, vectors are float32 of shape (n, d)."""

    ids: Sequence[str]
    texts: Sequence[str | None]
    metadata: Sequence[bytes]
    vectors: NDArray[np.float32]

    def part(self, start: int, stop: int) -> NewRows:
        """Return the rows from `start` up to `stop`."""
        span = slice(start, stop)
        return NewRows(self.ids[span], self.texts[span], self.metadata[span], self.vectors[span])


class Write(NamedTuple):
    """One write: ids that it deletes, then rows that it stores in place of those of the same ids."""

    deleted: Sequence[str]
    new: NewRows | None


class Snapshot(NamedTuple):
    """What a reader sees: the first `size` rows, those of them that live at `version`."""

    size: int
    version: int
    vectors: Blocks
    died: NDArray[np.int64] | None
    listed: list[int] | None = None
    """The rows of the ids that were asked for, if any were."""

    def alive(self) -> NDArray[np.bool_] | None:
        """Return which rows live, shape (count,), or None if all do."""
        return None if self.died is None else self.died[: self.size] > self.version


class Rows:
    """The rows of one collection.

    One writer at a time (the collection's lock is around `apply`); readers need none.
    """

    def __init__(self, dimension: int, metric: Metric) -> None:
        self.dimension = dimension
        self.metric = metric
        self.ids: list[str] = []
        self.texts: list[str | None] = []
        self.metadata: list[bytes] = []
        self.row_of: dict[str, int] = {}
        self._vectors = Blocks(dimension)
        self._died = np.empty(0, dtype=np.int64)
        self._count = 0
        self._version = 0
        self._dead = 0
        self._publish = threading.Lock()
        self._derived = threading.Lock()
        self._columns = Columns()
        self._fulltext = FullTextIndex()
        self._norms = np.empty(0)
        self._order: tuple[int, list[str], NDArray[np.intp]] | None = None

    # --- writing, by one thread at a time ---------------------------------------------------------------

    def apply(self, writes: Iterable[Write], *, keep: bool = False) -> None:
        """Carry out writes in their order, all together as one step to readers.

        With `keep` the vectors are nobody else's and need not be copied.
        """
        steps: list[tuple[Sequence[str], int, int]] = []
        end = self._count
        for write in writes:
            start = end
            if write.new is not None and len(write.new.ids):
                end += len(write.new.ids)
                self._append(start, write.new, keep=keep)
            steps.append((write.deleted, start, end))
        with self._publish:
            self._version += 1
            for deleted, start, stop in steps:
                self._retire(deleted)
                names = self.ids[start:stop]
                self._retire(names)
                self.row_of.update(zip(names, range(start, stop), strict=True))
            self._count = end

    def _append(self, start: int, new: NewRows, *, keep: bool) -> None:
        """Put rows behind the last one, where no reader looks yet."""
        self._reserve(start + len(new.ids))
        self._vectors.write(start, new.vectors, keep=keep)
        self.ids += new.ids
        self.texts += new.texts
        self.metadata += new.metadata

    def _retire(self, names: Sequence[str]) -> None:
        row_of = self.row_of
        rows = [row_of.pop(name) for name in names if name in row_of]
        if rows:
            self._died[rows] = self._version
            self._dead += len(rows)

    def _reserve(self, size: int) -> None:
        capacity = len(self._died)
        if size <= capacity:
            return
        died = np.full(max(size, 2 * capacity, 64), _LIVING, dtype=np.int64)
        died[: self._count] = self._died[: self._count]
        with self._publish:
            self._died = died

    @property
    def wasteful(self) -> bool:
        """Whether more than half of the rows are dead, and enough of them to care."""
        return self._dead > max(_COMPACT_ABOVE, self._count // 2)

    def compacted(self) -> Rows:
        """Return the living rows in new arrays, in their order; readers of the old ones go on undisturbed."""
        fresh = Rows(self.dimension, self.metric)
        fresh.apply([Write((), self.everything())], keep=True)
        return fresh

    def everything(self) -> NewRows:
        """Return all living rows, in their order."""
        with self._publish:
            rows = sorted(self.row_of.values())
        return self.take(rows)

    def take(self, rows: Sequence[int]) -> NewRows:
        """Return rows, given in ascending order, as they could be appended elsewhere."""
        return NewRows(
            [self.ids[row] for row in rows],
            [self.texts[row] for row in rows],
            [self.metadata[row] for row in rows],
            self._vectors.take(rows),
        )

    # --- reading ----------------------------------------------------------------------------------------

    def snapshot(self, ids: Iterable[str] | None = None) -> Snapshot:
        """Return what is there now, with the rows of some ids."""
        with self._publish:
            died = self._died if self._dead else None
            row_of = self.row_of
            listed = None if ids is None else [row_of[name] for name in ids if name in row_of]
            return Snapshot(self._count, self._version, self._vectors, died, listed)

    def find(self, names: Iterable[str]) -> list[int]:
        """Return the rows of the ids that are there."""
        with self._publish:
            return [self.row_of[name] for name in names if name in self.row_of]

    def __len__(self) -> int:
        """Return how many rows live."""
        return self._count - self._dead

    def matching(self, normal: Normal, seen: Snapshot) -> NDArray[np.bool_] | None:
        """Return which rows live, match a filter and are listed, shape (count,), or None if all are."""
        mask = seen.alive()
        if normal is not TRUE:
            with self._derived:
                found = self._columns.mask(normal, self.metadata, seen.size)
            mask = found if mask is None else np.logical_and(mask, found, out=mask)
        if seen.listed is not None:
            listed = np.zeros(seen.size, dtype=np.bool_)
            listed[seen.listed] = True
            mask = listed if mask is None else np.logical_and(mask, listed, out=mask)
        return mask

    def nearest(
        self, query: NDArray[np.float32], k: int, mask: NDArray[np.bool_] | None, seen: Snapshot
    ) -> list[tuple[float, int]]:
        """Return the k nearest rows with their raw scores, best first, equal scores by id (S1).

        The float32 product only chooses candidates, with a margin that covers its error; their
        scores are computed in float64, each row alone.
        """
        rows: NDArray[np.intp] | None = None
        if mask is not None:
            rows = np.flatnonzero(mask)
            if rows.size >= _WIDE * seen.size and rows.size > k:
                rows = None
        gathered = None if rows is None else seen.vectors.take(rows)
        with np.errstate(over="ignore", invalid="ignore"):  # `_margin` knows what to do with an overflow
            values: NDArray[np.floating] = (
                seen.vectors.times(query, seen.size) if gathered is None else gathered @ query
            )
        margin = self._margin(query, seen)
        if self.metric is Metric.EUCLIDEAN:
            norms = self._squares(seen)
            values = _closeness(values, norms if rows is None else norms[rows], margin)
        if rows is None and mask is not None:
            values[~mask] = -np.inf
        places = candidates(values, k, margin)
        if rows is None or gathered is None:
            return self._best(places, self._raw(query, places, seen), k)
        return self._best(rows[places], raw_scores(self.metric, gathered[places], query), k)

    def nearest_batch(
        self, queries: Sequence[tuple[NDArray[np.float32], int]], seen: Snapshot
    ) -> list[list[tuple[float, int]]]:
        """As `nearest` for several queries over all rows, by products of matrices."""
        alive = seen.alive()
        at_once = max(_PRODUCTS_AT_ONCE // max(seen.size, 1), 1)
        found: list[list[tuple[float, int]]] = []
        for start in range(0, len(queries), at_once):
            part = queries[start : start + at_once]
            with np.errstate(over="ignore", invalid="ignore"):
                products = seen.vectors.times_all(np.stack([query for query, _ in part]), seen.size)
            margins = [self._margin(query, seen) for query, _ in part]
            if self.metric is Metric.EUCLIDEAN:
                products = _closeness(products, self._squares(seen)[:, None], max(margins))
            if alive is not None:
                products[~alive] = -np.inf
            maxima = folded(products)
            for place, (query, k) in enumerate(part):
                rows = candidates(products[:, place], k, margins[place], maxima[:, place])
                found.append(self._best(rows, self._raw(query, rows, seen), k))
        return found

    def _margin(self, query: NDArray[np.float32], seen: Snapshot) -> float:
        """Return how far a float32 product may lead astray, twice its error; infinity if it may overflow.

        The error of a product of d terms is at most d times the unit roundoff times the sum of the
        absolute terms, which for unit vectors is at most 1 (Higham, "Accuracy and Stability of
        Numerical Algorithms", 3.1).
        """
        unit = _EPSILON * self.dimension
        if self.metric is not Metric.EUCLIDEAN:
            return unit
        scale = float(self._squares(seen).max(initial=0.0)) + float(np.dot(query.astype(np.float64), query))
        return 4.0 * unit * scale if scale <= _OVERFLOWS else float("inf")

    def _best(self, rows: NDArray[np.intp], raw: NDArray[np.float64], k: int) -> list[tuple[float, int]]:
        """Return the k best of candidate rows by their exact raw scores (S1)."""
        value = scores(self.metric, raw)
        if rows.size > k:
            keep = np.flatnonzero(value >= np.partition(value, rows.size - k)[rows.size - k])
            rows, raw, value = rows[keep], raw[keep], value[keep]
        places: list[int] = rows.tolist()
        ranked = sorted(
            (-number, self.ids[row], row, exact)
            for number, row, exact in zip(value.tolist(), places, raw.tolist(), strict=True)
        )
        return [(exact, row) for _, _, row, exact in ranked[:k]]

    def page(
        self, mask: NDArray[np.bool_] | None, token: str | None, size: int, seen: Snapshot
    ) -> tuple[list[int], str | None]:
        """Return the next rows in the order of ids after `token`, and the token after them."""
        ids, order = self.in_order(seen)
        start = 0 if token is None else bisect_right(ids, token)
        places = np.arange(start, len(ids)) if mask is None else start + np.flatnonzero(mask[order[start:]])
        chosen = places[:size]
        after = ids[int(chosen[-1])] if places.size > size else None
        return [int(row) for row in order[chosen]], after

    def _raw(self, query: NDArray[np.float32], rows: NDArray[np.intp], seen: Snapshot) -> NDArray[np.float64]:
        if rows.size <= _RESCORED_AT_ONCE:
            return raw_scores(self.metric, seen.vectors.take(rows), query)
        parts = [rows[start : start + _RESCORED_AT_ONCE] for start in range(0, rows.size, _RESCORED_AT_ONCE)]
        return np.concatenate([raw_scores(self.metric, seen.vectors.take(part), query) for part in parts])

    def _squares(self, seen: Snapshot) -> NDArray[np.float64]:
        """Return the squared lengths of the rows, float64 of shape (count,)."""
        with self._derived:
            known = self._norms.size
            if known < seen.size:
                more = seen.vectors.squares(known, seen.size)
                self._norms = np.concatenate([self._norms, more])
            return self._norms[: seen.size]

    def ranked(
        self, words: str, k: int, mask: NDArray[np.bool_] | None, seen: Snapshot
    ) -> list[tuple[float, int]]:
        """Return the k best rows for some words with their BM25 values, best first, equal ones by id (S9)."""
        alive = seen.alive()
        with self._derived:
            self._fulltext.extend(self.texts, seen.size)
            rows, values = self._fulltext.rank(words, seen.size, alive)
        if mask is not None:
            kept = mask[rows]
            rows, values = rows[kept], values[kept]
        if rows.size > k:
            kept = values >= np.partition(values, rows.size - k)[rows.size - k]
            rows, values = rows[kept], values[kept]
        places: list[int] = rows.tolist()
        found = sorted(
            (-value, self.ids[row], row) for row, value in zip(places, values.tolist(), strict=True)
        )
        return [(-negative, row) for negative, _, row in found[:k]]

    def in_order(self, seen: Snapshot) -> tuple[list[str], NDArray[np.intp]]:
        """Return the ids that live, sorted, and their rows; kept until the next write."""
        known = self._order
        if known is None or known[0] != seen.version:
            alive = seen.alive()
            rows = range(seen.size) if alive is None else np.flatnonzero(alive).tolist()
            pairs = sorted((self.ids[row], row) for row in rows)
            order = np.array([row for _, row in pairs], dtype=np.intp)
            known = self._order = (seen.version, [name for name, _ in pairs], order)
        return known[1], known[2]

    def details(self) -> dict[str, int]:
        """Return bytes held: vectors and columns, texts and metadata apart."""
        return {
            "vector_bytes": self._vectors.nbytes,
            "column_bytes": self._columns.nbytes,
            "text_bytes": sum(len(text.encode()) for text in self.texts if text is not None),
            "metadata_bytes": sum(map(len, self.metadata)),
            "dead_rows": self._dead,
        }


def _closeness(
    products: NDArray[np.float32], norms: NDArray[np.float64], margin: float
) -> NDArray[np.floating]:
    """Return what grows as the distance falls, ``2 x.q - |x|²``; all alike where it would overflow."""
    if margin == float("inf"):
        return np.zeros_like(products)
    return 2.0 * products - norms
