"""Metadata as dictionary-coded columns, built for a key when a filter first names it.

A column gives each row one integer: the code of its value among the distinct values of the key,
`ABSENT`, or `LISTED` with the codes of its elements beside. A comparison is decided once for each
distinct value, and the rows follow by one numpy operation. Ranges bisect the sorted distinct
values of their kind with Python's own comparison, which is exact for int against float (F4).
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np

from entrepot.filters import TRUE, And, FilterOp, Leaf, Or, kind_of
from entrepot.metadata import decode_metadata, elements, encode_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from entrepot.filters import Normal
    from entrepot.metadata import Scalar

    Mask = NDArray[np.bool_]

ABSENT: Final = -1
"""The code of a row that lacks the key, or holds an empty list (F1)."""
LISTED: Final = -2
"""The code of a row that holds a list; its elements stand in the side table."""
_FEW: Final = 1024
"""Distinct values that are sorted anew whenever one is added; of more, a quarter may wait unsorted."""
_UNRANKED: Final = -1


class _Sorted:
    """The distinct values of one kind, sorted, and the rank of each code of the key among them."""

    __slots__ = ("codes", "rank_of_code", "rows", "values")

    def __init__(self, pairs: Iterable[tuple[Any, int]], codes: int) -> None:
        ordered = sorted(pairs)
        self.values = [value for value, _ in ordered]
        self.codes = np.array([code for _, code in ordered], dtype=np.intp)
        # Two more places, for ABSENT and LISTED, which index from the end.
        self.rank_of_code = np.full(codes + 2, _UNRANKED, dtype=np.int32)
        self.rank_of_code[self.codes] = np.arange(len(ordered), dtype=np.int32)
        self.rows = np.empty(0, dtype=np.int32)

    def bound(self, op: FilterOp, operand: Any) -> int:
        """Return the rank below which values satisfy LT or LTE, and from which on they satisfy GT or GTE."""
        find = bisect_left if op in (FilterOp.LT, FilterOp.GTE) else bisect_right
        return find(self.values, operand)

    def where(self, op: FilterOp, operand: Any) -> NDArray[np.intp]:
        """Return the codes of the values for which ``value op operand`` holds."""
        bound = self.bound(op, operand)
        return self.codes[:bound] if op in _BELOW else self.codes[bound:]

    def holds(self, op: FilterOp, operand: Any, ranks: NDArray[np.int32]) -> Mask:
        """Return for which ranks the comparison holds; never for `_UNRANKED`."""
        bound = self.bound(op, operand)
        if op in _BELOW:
            # Read as unsigned, the rank of what is not of this kind is larger than any.
            below: Mask = ranks.view(np.uint32) < np.uint32(bound)
            return below
        above: Mask = ranks >= bound
        return above

    def ranks_of(self, codes: NDArray[np.intp]) -> NDArray[np.int32]:
        """Return the rank of each row, kept for the next question."""
        known = self.rows.size
        if known < codes.size:
            self.rows = np.concatenate([self.rows, self.rank_of_code[codes[known:]]])
        return self.rows[: codes.size]


_BELOW: Final = (FilterOp.LT, FilterOp.LTE)


class Column:
    """The values of one key, for all rows so far."""

    def __init__(self, key: str) -> None:
        self.key = key
        self._codes = np.empty(0, dtype=np.intp)
        self._filled = 0
        self._code_of: dict[tuple[str, Scalar], int] = {}
        self._values: list[tuple[str, Scalar]] = []
        self._list_rows = array("q")
        self._list_codes = array("q")
        self._list_arrays: tuple[NDArray[np.intp], NDArray[np.intp]] | None = None
        self._sorted: dict[str, _Sorted] = {}
        self._sorted_count = 0

    def extend(self, metadata: Sequence[bytes], count: int) -> None:
        """Read the rows from the last one known up to `count`."""
        start = self._filled
        if start >= count:
            return
        codes = np.empty(count - start, dtype=np.intp)
        key = self.key
        written = encode_key(key)
        for offset, raw in enumerate(metadata[start:count]):
            # A cheap look before decoding.
            value = decode_metadata(raw).get(key) if written in raw else None
            if value is None or value == []:
                codes[offset] = ABSENT
            elif type(value) is list:
                codes[offset] = LISTED
                for element in elements(value):
                    self._list_rows.append(start + offset)
                    self._list_codes.append(self._code(element))
                self._list_arrays = None
            else:
                codes[offset] = self._code(cast("Scalar", value))
        self._codes = np.concatenate([self._codes[:start], codes])
        self._filled = count

    def _code(self, value: Scalar) -> int:
        typed = (kind_of(value), value)
        code = self._code_of.get(typed)
        if code is None:
            code = self._code_of[typed] = len(self._values)
            self._values.append(typed)
        return code

    def mask(self, leaf: Leaf, count: int) -> Mask:
        """Return which of the first `count` rows satisfy a leaf, shape (count,)."""
        codes = self._codes[:count]
        found: Mask
        if leaf.op is FilterOp.ISNULL:
            found = codes == ABSENT
        elif leaf.op is FilterOp.EQ:
            code = self._code_of.get((kind_of(cast("Scalar", leaf.value)), cast("Scalar", leaf.value)))
            if code is None:
                return np.full(count, leaf.negated)
            found = codes == code
            if self._list_rows:
                rows, listed = self._lists(count)
                found[rows[listed == code]] = True
        elif leaf.op is not FilterOp.IN and self._is_sorted():
            found = self._in_range(leaf, codes)
        else:
            hit = np.zeros(len(self._values) + 2, dtype=np.bool_)
            hit[self._holding(leaf)] = True
            found = hit[codes]
            if self._list_rows:
                rows, listed = self._lists(count)
                found[rows[hit[listed]]] = True
        return np.logical_not(found, out=found) if leaf.negated else found

    def _in_range(self, leaf: Leaf, codes: NDArray[np.intp]) -> Mask:
        ordered = self._sorted.get(kind_of(cast("Scalar", leaf.value)))
        if ordered is None:
            return np.zeros(codes.size, dtype=np.bool_)
        found = ordered.holds(leaf.op, leaf.value, ordered.ranks_of(codes))
        if self._list_rows:
            rows, listed = self._lists(codes.size)
            found[rows[ordered.holds(leaf.op, leaf.value, ordered.rank_of_code[listed])]] = True
        return found

    def _is_sorted(self) -> bool:
        """Whether all distinct values are in sorted order, which is made anew if that is due."""
        size, known = len(self._values), self._sorted_count
        if known < size and (size <= _FEW or size - known > known // 4):
            self._sort()
        return self._sorted_count == size

    def _holding(self, leaf: Leaf) -> NDArray[np.intp]:
        """Return the codes of the distinct values that satisfy an IN or a range."""
        if leaf.op is FilterOp.IN:
            wanted = ((kind_of(value), value) for value in cast("tuple[Scalar, ...]", leaf.value))
            found = (self._code_of.get(typed) for typed in wanted)
            return np.array([code for code in found if code is not None], dtype=np.intp)
        kind = kind_of(cast("Scalar", leaf.value))
        new = [
            code
            for code in range(self._sorted_count, len(self._values))
            if self._values[code][0] == kind and _compare(leaf.op, self._values[code][1], leaf.value)
        ]
        ordered = self._sorted.get(kind)
        if ordered is None:
            return np.array(new, dtype=np.intp)
        return np.concatenate([ordered.where(leaf.op, leaf.value), np.array(new, dtype=np.intp)])

    def _sort(self) -> None:
        pairs: dict[str, list[tuple[Scalar, int]]] = {}
        for code, (kind, value) in enumerate(self._values):
            pairs.setdefault(kind, []).append((value, code))
        size = len(self._values)
        self._sorted = {kind: _Sorted(values, size) for kind, values in pairs.items() if kind != "bool"}
        self._sorted_count = size

    def _lists(self, count: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        if self._list_arrays is None:
            rows = np.array(self._list_rows, dtype=np.intp)
            self._list_arrays = rows, np.array(self._list_codes, dtype=np.intp)
        rows, listed = self._list_arrays
        known = int(np.searchsorted(rows, count))
        return rows[:known], listed[:known]

    @property
    def nbytes(self) -> int:
        """Bytes of codes and ranks; the distinct values are not counted."""
        ranks = sum(ordered.rows.nbytes for ordered in self._sorted.values())
        return self._codes.nbytes + ranks + 16 * len(self._list_rows)


def _compare(op: FilterOp, value: Any, operand: Any) -> bool:
    if op is FilterOp.LT:
        return bool(value < operand)
    if op is FilterOp.LTE:
        return bool(value <= operand)
    if op is FilterOp.GT:
        return bool(value > operand)
    return bool(value >= operand)


class Columns:
    """The columns of a collection, by key. Not thread-safe: the collection holds its lock around it."""

    def __init__(self) -> None:
        self._columns: dict[str, Column] = {}

    def mask(self, normal: Normal, metadata: Sequence[bytes], count: int) -> Mask:
        """Return which of the first `count` rows satisfy a filter, a fresh array of shape (count,).

        Walks with a stack of its own, so that no filter is too deep.
        """
        done: list[Mask] = []
        todo: list[tuple[Normal, bool]] = [(normal, False)]
        while todo:
            node, visited = todo.pop()
            if isinstance(node, And | Or):
                if not visited:
                    todo.append((node, True))
                    todo += [(part, False) for part in node.parts]
                    continue
                size = len(node.parts)
                total = done[-size]
                combine = np.logical_and if isinstance(node, And) else np.logical_or
                for part in done[len(done) - size + 1 :]:
                    combine(total, part, out=total)
                del done[len(done) - size + 1 :]
            elif isinstance(node, Leaf):
                done.append(self._column(node.key, metadata, count).mask(node, count))
            else:
                done.append(np.full(count, node is TRUE))
        return done[0]

    def _column(self, key: str, metadata: Sequence[bytes], count: int) -> Column:
        column = self._columns.get(key)
        if column is None:
            column = self._columns[key] = Column(key)
        column.extend(metadata, count)
        return column

    @property
    def nbytes(self) -> int:
        """Bytes of all columns so far."""
        return sum(column.nbytes for column in self._columns.values())
