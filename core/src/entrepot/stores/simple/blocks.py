"""Vectors in blocks of fixed size: they grow without being copied, and readers need no lock."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

_BLOCK_BYTES: Final = 32 * 1024 * 1024
_FIRST_ROWS: Final = 64


class Blocks:
    """Float32 vectors of shape (d,) by row number. Rows are written once and never changed."""

    def __init__(self, dimension: int) -> None:
        self.dimension = dimension
        rows = max(_BLOCK_BYTES // (4 * dimension), _FIRST_ROWS)
        self._shift = rows.bit_length() - 1
        self._rows = 1 << self._shift
        self._blocks: list[NDArray[np.float32]] = []

    def write(self, start: int, vectors: NDArray[np.float32]) -> None:
        """Write rows from `start` on; the rows before it are written already."""
        done = 0
        while done < len(vectors):
            place, offset = divmod(start + done, self._rows)
            part = vectors[done : done + self._rows - offset]
            block = self._block(place, offset, offset + len(part))
            block[offset : offset + len(part)] = part
            done += len(part)

    def _block(self, place: int, used: int, size: int) -> NDArray[np.float32]:
        """Return a block with room for `size` rows. The first one starts small and doubles."""
        if place == len(self._blocks):
            rows = self._rows if place else max(_FIRST_ROWS, size)
            self._blocks.append(np.empty((min(rows, self._rows), self.dimension), dtype=np.float32))
        block = self._blocks[place]
        if len(block) < size:
            grown = np.empty((min(max(2 * len(block), size), self._rows), self.dimension), dtype=np.float32)
            grown[:used] = block[:used]
            self._blocks[place] = block = grown
        return block

    def _parts(self, size: int) -> Iterator[tuple[int, NDArray[np.float32]]]:
        """Return the first `size` rows as the start and the rows of each block."""
        for place in range((size + self._rows - 1) >> self._shift):
            start = place << self._shift
            yield start, self._blocks[place][: size - start]

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
        edges = np.searchsorted(wanted, np.arange(len(self._blocks) + 1) << self._shift).tolist()
        for place, block in enumerate(self._blocks):
            first, last = edges[place], edges[place + 1]
            if first < last:
                # The numbers are in range, so that numpy need not buffer in case they were not.
                inside = wanted[first:last] - (place << self._shift)
                block.take(inside, axis=0, out=taken[first:last], mode="clip")
        return taken

    def row(self, number: int) -> NDArray[np.float32]:
        """Return one row as a copy."""
        vector: NDArray[np.float32] = self._blocks[number >> self._shift][number & (self._rows - 1)]
        return vector.copy()

    @property
    def nbytes(self) -> int:
        """Bytes set aside, the unwritten end of the last block included."""
        return sum(block.nbytes for block in self._blocks)
