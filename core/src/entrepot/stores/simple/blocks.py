"""Vectors in blocks of fixed size: they grow without being copied, and readers need no lock."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

_BLOCK_BYTES: Final = 32 * 1024 * 1024
_FIRST_ROWS: Final = 64
_ADOPTED_ROWS: Final = 1024
"""Rows from which on an array that will not change becomes a block as it is."""


class Blocks:
    """Float32 vectors of shape (d,) by row number. Rows are written once and never changed.

    Block n holds the rows from `_starts[n]` up to the start of the next one; the last one grows.
    """

    def __init__(self, dimension: int) -> None:
        self.dimension = dimension
        self._most = max(_BLOCK_BYTES // (4 * dimension), _FIRST_ROWS)
        self._blocks: list[NDArray[np.float32]] = []
        self._starts: list[int] = []
        self._growing = False

    def write(self, start: int, vectors: NDArray[np.float32], *, keep: bool = False) -> None:
        """Write rows from `start` on; the rows before it are written already.

        With `keep` the array is nobody else's, and may be kept instead of copied.
        """
        if keep and len(vectors) >= _ADOPTED_ROWS:
            self._append(start, vectors, growing=False)
            return
        done = 0
        while done < len(vectors):
            if not self._growing or start + done == self._starts[-1] + self._most:
                rows = min(
                    max(self._most // 8 if self._blocks else _FIRST_ROWS, len(vectors) - done), self._most
                )
                self._append(start + done, np.empty((rows, self.dimension), dtype=np.float32), growing=True)
            offset = start + done - self._starts[-1]
            part = vectors[done : done + self._most - offset]
            block = self._with_room(offset, offset + len(part))
            block[offset : offset + len(part)] = part
            done += len(part)

    def _append(self, start: int, block: NDArray[np.float32], *, growing: bool) -> None:
        self._blocks.append(block)
        self._starts.append(start)
        self._growing = growing

    def _with_room(self, used: int, size: int) -> NDArray[np.float32]:
        """Return the last block with room for `size` rows; it doubles, so little lies idle."""
        block = self._blocks[-1]
        if len(block) < size:
            grown = np.empty((min(max(2 * len(block), size), self._most), self.dimension), dtype=np.float32)
            grown[:used] = block[:used]
            self._blocks[-1] = block = grown
        return block

    def _parts(self, size: int) -> Iterator[tuple[int, NDArray[np.float32]]]:
        """Return the first `size` rows as the start and the rows of each block."""
        starts = self._starts
        for place, start in enumerate(starts):
            if start >= size:
                return
            stop = min(starts[place + 1] if place + 1 < len(starts) else size, size)
            yield start, self._blocks[place][: stop - start]

    def times(self, query: NDArray[np.float32], size: int) -> NDArray[np.float32]:
        """Return the products of the first `size` rows with a vector (d,), shape (size,)."""
        products = np.empty(size, dtype=np.float32)
        for start, rows in self._parts(size):
            np.dot(rows, query, out=products[start : start + len(rows)])
        return products

    def times_all(self, queries: NDArray[np.float32], size: int) -> NDArray[np.float32]:
        """Return the products of the first `size` rows with vectors (q, d), shape (size, q)."""
        products = np.empty((size, len(queries)), dtype=np.float32)
        for start, rows in self._parts(size):
            np.dot(rows, queries.T, out=products[start : start + len(rows)])
        return products

    def squares(self, start: int, stop: int) -> NDArray[np.float64]:
        """Return the squared lengths of the rows from `start` up to `stop`, in float64."""
        lengths = np.empty(stop - start)
        for first, rows in self._parts(stop):
            if first + len(rows) > start:
                rows_wanted = rows[max(start - first, 0) :]
                place = max(first, start) - start
                lengths[place : place + len(rows_wanted)] = np.einsum(
                    "ij,ij->i", rows_wanted, rows_wanted, dtype=np.float64
                )
        return lengths

    def take(self, rows: NDArray[np.intp] | Sequence[int]) -> NDArray[np.float32]:
        """Return some rows, in ascending order of their numbers, as a matrix (n, d)."""
        wanted = np.asarray(rows, dtype=np.intp)
        taken = np.empty((wanted.size, self.dimension), dtype=np.float32)
        edges = [*np.searchsorted(wanted, self._starts).tolist(), wanted.size]
        for place, block in enumerate(self._blocks[: len(edges) - 1]):
            first, last = edges[place], edges[place + 1]
            if first < last:
                # The numbers are in range, so that numpy need not buffer in case they were not.
                inside = wanted[first:last] - self._starts[place]
                block.take(inside, axis=0, out=taken[first:last], mode="clip")
        return taken

    def row(self, number: int) -> NDArray[np.float32]:
        """Return one row as a copy."""
        place = bisect_right(self._starts, number) - 1
        vector: NDArray[np.float32] = self._blocks[place][number - self._starts[place]]
        return vector.copy()

    @property
    def nbytes(self) -> int:
        """Bytes set aside, the unwritten end of the last block included."""
        return sum(block.nbytes for block in self._blocks)
