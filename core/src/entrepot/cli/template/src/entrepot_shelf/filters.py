"""Filters in the query language of the engine (F1 to F5, F9, F10). Pure: no driver, no connection."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, TypeAlias

from entrepot.filters import (
    AbstractFilterExpressionConverter,
    FilterOp,
    Leaf,
    Translation,
    exact,
    nothing,
    superset,
)

Clause: TypeAlias = dict[str, Any]
"""A condition in the engine's language: ``{"eq": [key, value]}``, ``{"all": [...]}`` and so on.

REPLACE: the type of your dialect, such as SQL text with its parameters, or the driver's own filter
objects. Values go in as parameters, never into a text; keys pass one quoting function.
"""

_RANGES = {FilterOp.LT: "lt", FilterOp.LTE: "lte", FilterOp.GT: "gt", FilterOp.GTE: "gte"}
_LOOSE = {"lt": "lte", "gt": "gte"}
_DOUBLES = 2**53
"""From here on doubles merge integers, and the engine keeps doubles."""


class ShelfFilterConverter(AbstractFilterExpressionConverter[Clause]):
    """Translates each leaf exactly, as a superset, or not at all; the core does the rest.

    A negated leaf holds for documents that lack the key. Two comparisons of one key are never merged:
    different elements of a list may satisfy them.
    """

    def leaf(self, leaf: Leaf) -> Translation[Clause]:
        """Translate one comparison."""
        values = leaf.value if isinstance(leaf.value, tuple) else (leaf.value,)
        # REPLACE: this engine knows no instants. `nothing()` is right, only slower: the core evaluates these.
        if any(isinstance(value, datetime) for value in values):
            return nothing()
        clause, whole = self._plain(leaf)
        if whole:
            return exact({"not": clause} if leaf.negated else clause)
        # The complement of a superset is no superset.
        return nothing() if leaf.negated else superset(clause)

    def _plain(self, leaf: Leaf) -> tuple[Clause, bool]:
        """Return the clause of a leaf without its negation, and whether it is exact."""
        if leaf.op is FilterOp.ISNULL:
            return {"not": {"has": leaf.key}}, True
        if isinstance(leaf.value, tuple):  # IN
            parts = [{"eq": [leaf.key, value]} for value in leaf.value]
            return {"any": parts}, not any(_merged(value) for value in leaf.value)
        if leaf.op is FilterOp.EQ:
            return {"eq": [leaf.key, leaf.value]}, not _merged(leaf.value)
        op = _RANGES[leaf.op]
        if _merged(leaf.value):
            return {_LOOSE.get(op, op): [leaf.key, leaf.value]}, False
        return {op: [leaf.key, leaf.value]}, True

    def and_(self, parts: Sequence[Clause]) -> Clause:
        """Join clauses with AND."""
        return {"all": list(parts)}

    def or_(self, parts: Sequence[Clause]) -> Clause:
        """Join clauses with OR."""
        return {"any": list(parts)}

    def true(self) -> Clause:
        """Return what holds for every document."""
        return {"all": []}

    def false(self) -> Clause:
        """Return what holds for none."""
        return {"any": []}


def _merged(value: object) -> bool:
    """Whether the engine's doubles cannot tell a number from its neighbours."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) >= _DOUBLES
