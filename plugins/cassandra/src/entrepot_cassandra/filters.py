"""From filters to conditions of CQL (F1 to F6, F9, F10).

CQL has AND alone: no OR, no NOT, no ``!=``. So a filter becomes at most eight conjunctions, each a query of its own whose
answers are united. A conjunction holds tokens, which a document's set must contain, and intervals of integer columns:
for a key that has a *slot*, one column has the code of its least element and one that of its greatest, or -1 where the key is
absent. "Some element is below v" is "the least is below v" (F2), so each comparison is a condition on one column, and
conditions on one column fold into one interval.

What cannot be said so is left out, which is a superset, and completed by the core.

Nothing of a key or a value stands in a statement: tokens are 24 characters of ``0-9a-v``, codes are integers, and both are
bound. The text of a statement depends on the number of tokens and on columns alone.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias, cast

from entrepot.encoding import (
    certain,
    equality_token,
    possible,
    presence_token,
    scalar_band,
    scalar_code,
)
from entrepot.filters import (
    AbstractFilterExpressionConverter,
    And,
    FilterOp,
    Leaf,
    Or,
    Translation,
    exact,
    normalise,
    nothing,
    superset,
)
from entrepot.filters.convert import Pushdown
from entrepot.filters.values import kind_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from entrepot.filters import Converted, Expression, Normal, Scalar

MOST_WAYS: Final = 8
"""Conjunctions that a filter may become."""
MOST_TOKENS: Final = 32
"""Tokens of a conjunction, at most."""
ABSENT: Final = -1
"""What stands in the columns of a slot whose key a document has not."""
_RANGES: Final = frozenset({FilterOp.LT, FilterOp.LTE, FilterOp.GT, FilterOp.GTE})


class Interval(NamedTuple):
    """Integers that a column may have, the bounds included; None is no bound."""

    low: int | None
    high: int | None

    def within(self, other: Interval) -> Interval:
        """Return the integers that both have."""
        lows = [one for one in (self.low, other.low) if one is not None]
        highs = [one for one in (self.high, other.high) if one is not None]
        return Interval(max(lows, default=None), min(highs, default=None))

    @property
    def is_empty(self) -> bool:
        """Whether there is no such integer."""
        return self.low is not None and self.high is not None and self.low > self.high


class Way(NamedTuple):
    """A conjunction; without conditions it holds for every document.

    Attributes:
        tokens: What the document's tokens must contain, sorted.
        bounds: Columns and what they may have, sorted by column.
    """

    tokens: tuple[str, ...] = ()
    bounds: tuple[tuple[str, Interval], ...] = ()

    @property
    def cql(self) -> str:
        """The conditions as they stand behind WHERE, with a question mark for each value; empty without any."""
        parts = ["t CONTAINS ?"] * len(self.tokens)
        for column, (low, high) in self.bounds:
            if low is not None and low == high:
                parts.append(f"{column} = ?")
                continue
            parts += [f"{column} >= ?"] * (low is not None)
            parts += [f"{column} <= ?"] * (high is not None)
        return " AND ".join(parts)

    @property
    def values(self) -> tuple[object, ...]:
        """The values of the question marks."""
        found: list[object] = list(self.tokens)
        for _, (low, high) in self.bounds:
            if low is not None and low == high:
                found.append(low)
            else:
                found += [one for one in (low, high) if one is not None]
        return tuple(found)


Ways: TypeAlias = tuple[Way, ...]
"""A union of conjunctions; without any it holds for no document."""


def least(slot: int) -> str:
    """Return the column of the least element of a slot's key."""
    return f"lo{slot}"


def greatest(slot: int) -> str:
    """Return the column of the greatest element of a slot's key."""
    return f"hi{slot}"


class CassandraFilterConverter(AbstractFilterExpressionConverter[Ways]):
    """Translate filters into conjunctions.

    Exact are ``==``, ``IN`` of up to eight elements and ``IS NOT NULL``; for keys that have a slot also ``IS NULL``, and
    ranges and their negations but those of strings of more than 15 bytes. ``!=`` and ``NOT IN`` are never sent.

    Args:
        slots: The keys that have a slot, and its number.
    """

    def __init__(self, slots: Mapping[str, int] | None = None) -> None:
        self._slots: Mapping[str, int] = MappingProxyType({}) if slots is None else slots
        self._left_out: frozenset[int] = frozenset()

    def convert(self, filter: Expression | Normal) -> Converted[Ways]:  # noqa: A002 - as in the base
        """Translate a filter, given as a tree or in normal form."""
        normal = normalise(filter)
        beyond = self._beyond(normal)
        if not beyond:
            return super().convert(normal)
        limited = CassandraFilterConverter(self._slots)
        limited._left_out = beyond
        return super(CassandraFilterConverter, limited).convert(normal)

    def leaf(self, leaf: Leaf) -> Translation[Ways]:
        """Ask whether some element of the key satisfies the comparison, or none (F2, F3)."""
        if id(leaf) in self._left_out:
            return nothing()
        slot = self._slots.get(leaf.key)
        if leaf.op is FilterOp.ISNULL:
            if leaf.negated:
                return exact((_present(leaf.key),))
            return nothing() if slot is None else exact((_bounded(least(slot), ABSENT, ABSENT),))
        if leaf.op in _RANGES:
            return _range(leaf, slot)
        if leaf.negated:
            return nothing()
        values = cast("tuple[Scalar, ...]", leaf.value if leaf.op is FilterOp.IN else (leaf.value,))
        tokens = dict.fromkeys(equality_token(leaf.key, value) for value in values)
        if len(tokens) > MOST_WAYS:
            return superset((_present(leaf.key),))
        return exact(tuple(Way((token,)) for token in tokens))

    def and_(self, parts: Sequence[Ways]) -> Ways:
        """Join one conjunction of each part, in every way."""
        joined: Ways = self.true()
        for part in parts:
            both = (_both(left, right) for left in joined for right in part)
            joined = _distinct(way for way in both if way is not None)
        return joined

    def or_(self, parts: Sequence[Ways]) -> Ways:
        """Return the conjunctions of all parts."""
        return _distinct(way for part in parts for way in part)

    def true(self) -> Ways:
        """Return what every document satisfies."""
        return (Way(),)

    def false(self) -> Ways:
        """Return what no document satisfies."""
        return ()

    def _beyond(self, normal: Normal) -> frozenset[int]:
        """Return the identities of leaves to leave out, so that there are not too many conjunctions or tokens."""
        found: set[int] = set()
        self._cost(normal, found)
        return frozenset(found)

    def _cost(self, node: Normal, found: set[int]) -> tuple[int, int] | None:
        """Return the conjunctions of a node and the tokens of the longest; None if it holds for every document."""
        if isinstance(node, Leaf):
            answer = self.leaf(node)
            if answer.pushdown is Pushdown.NOTHING:
                return None
            ways = answer.clause or ()
            return len(ways), max((len(way.tokens) for way in ways), default=0)
        if isinstance(node, Or):
            parts = [self._cost(part, found) for part in node.parts]
            number = sum(part[0] for part in parts if part is not None)
            if number > MOST_WAYS:
                found.update(_leaves(node))
            if None in parts or number > MOST_WAYS:
                return None
            return number, max(part[1] for part in parts if part is not None)
        if not isinstance(node, And):
            return 1, 0
        number, tokens, kept = 1, 0, False
        costs = [(self._cost(part, found), part) for part in node.parts]
        for cost, part in sorted(
            ((cost, part) for cost, part in costs if cost is not None), key=lambda pair: pair[0]
        ):
            if number * max(cost[0], 1) > MOST_WAYS or tokens + cost[1] > MOST_TOKENS:
                found.update(_leaves(part))
                continue
            number, tokens, kept = number * max(cost[0], 1), tokens + cost[1], True
        return (number, tokens) if kept else None


def _leaves(node: Normal) -> list[int]:
    """Return the identities of a node's leaves."""
    found: list[int] = []
    pending: list[Normal] = [node]
    while pending:
        one = pending.pop()
        if isinstance(one, And | Or):
            pending += one.parts
        else:
            found.append(id(one))
    return found


def _range(leaf: Leaf, slot: int | None) -> Translation[Ways]:
    """Compare a column with the code of the operand; codes of other kinds lie outside of its band (F4)."""
    if slot is None:
        return nothing() if leaf.negated else superset((_present(leaf.key),))
    value = cast("Scalar", leaf.value)
    code, is_exact = scalar_code(value)
    band = scalar_band(kind_of(value))
    answer = exact if is_exact else superset
    below = leaf.op in {FilterOp.LT, FilterOp.LTE}
    column = least(slot) if below else greatest(slot)
    if not leaf.negated:
        op = possible(leaf.op, exact=is_exact)
        if below:
            return answer(_folded(column, band.start, code - (op is FilterOp.LT)))
        return answer(_folded(column, code + (op is FilterOp.GT), band.stop - 1))
    op = certain(leaf.op, exact=is_exact)
    if below:  # not (start <= column < code)
        outside = (Interval(None, band.start - 1), Interval(code + (op is FilterOp.LTE), None))
    else:
        outside = (Interval(None, code - (op is FilterOp.GTE)), Interval(band.stop, None))
    return answer(tuple(Way((), ((column, bounds),)) for bounds in outside))


def _folded(column: str, low: int, high: int) -> Ways:
    return (_bounded(column, low, high),) if low <= high else ()


def _bounded(column: str, low: int | None, high: int | None) -> Way:
    return Way((), ((column, Interval(low, high)),))


def _present(key: str) -> Way:
    return Way((presence_token(key),))


def _both(left: Way, right: Way) -> Way | None:
    """Return the conjunction of two, or None if it holds for no document."""
    bounds = dict(left.bounds)
    for column, interval in right.bounds:
        bounds[column] = bounds[column].within(interval) if column in bounds else interval
        if bounds[column].is_empty:
            return None
    return Way(tuple(sorted({*left.tokens, *right.tokens})), tuple(sorted(bounds.items())))


def _distinct(ways: object) -> Ways:
    """Return each conjunction once; one without conditions stands for all."""
    found = tuple(dict.fromkeys(cast("Sequence[Way]", ways)))
    return (Way(),) if Way() in found else found
