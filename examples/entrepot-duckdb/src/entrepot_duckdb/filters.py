"""Filters as SQL conditions with parameters (F1 to F5, F9, F10). Pure: no driver, no connection.

A document keeps, for each metadata key that has an element, the codes of its elements (see `codes_of`) in a
column of type ``MAP(VARCHAR, VARCHAR[])``. A code holds kind and value, and DuckDB compares text by code
point, as the codes want it: so every comparison is exact.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from entrepot.encoding import element_text
from entrepot.filters import (
    AbstractFilterExpressionConverter,
    FilterOp,
    Leaf,
    Translation,
    elements_of,
    exact,
)

_RANGES = {FilterOp.LT: "<", FilterOp.LTE: "<=", FilterOp.GT: ">", FilterOp.GTE: ">="}


class Clause(NamedTuple):
    """A condition, and the values of the question marks in it."""

    sql: str
    values: tuple[Any, ...] = ()


def codes_of(metadata: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return what filters see of a document: codes by key; a key without an element is absent (F1)."""
    codes = {key: [element_text(element) for element in elements_of(metadata, key)] for key in metadata}
    return {key: found for key, found in codes.items() if found}


def joined(parts: Sequence[Clause], word: str) -> Clause:
    """Return clauses joined by AND or OR, in brackets."""
    sql = f" {word} ".join(part.sql for part in parts)
    return Clause(f"({sql})", tuple(value for part in parts for value in part.values))


class DuckdbFilterConverter(AbstractFilterExpressionConverter[Clause]):
    """Translates each comparison exactly.

    Under an absent key ``codes[key]`` is NULL. `coalesce` makes that false, so that NOT makes it true (F3).
    Two comparisons of one key are never merged: different elements of a list may satisfy them (F2).
    """

    def leaf(self, leaf: Leaf) -> Translation[Clause]:
        """Translate one comparison."""
        clause = _plain(leaf)
        return exact(Clause(f"(NOT {clause.sql})", clause.values) if leaf.negated else clause)

    def and_(self, parts: Sequence[Clause]) -> Clause:
        """Join clauses with AND."""
        return joined(parts, "AND")

    def or_(self, parts: Sequence[Clause]) -> Clause:
        """Join clauses with OR."""
        return joined(parts, "OR")

    def true(self) -> Clause:
        """Return what holds for every document."""
        return Clause("true")

    def false(self) -> Clause:
        """Return what holds for none."""
        return Clause("false")


def _plain(leaf: Leaf) -> Clause:
    """Return the clause of a leaf without its negation."""
    if leaf.op is FilterOp.ISNULL:
        return Clause("(NOT map_contains(codes, ?))", (leaf.key,))
    if isinstance(leaf.value, tuple):  # IN
        codes = [element_text(value) for value in leaf.value]
        return Clause("coalesce(list_has_any(codes[?], ?::VARCHAR[]), false)", (leaf.key, codes))
    assert leaf.value is not None  # noqa: S101
    code = element_text(leaf.value)
    if leaf.op is FilterOp.EQ:
        return Clause("coalesce(list_contains(codes[?], ?), false)", (leaf.key, code))
    # The letter of the kind begins a code, so that kinds lie apart; a range ends where its kind does.
    kind = code[0]
    low, high = (kind, code) if leaf.op in (FilterOp.LT, FilterOp.LTE) else (code, chr(ord(kind) + 1))
    above = _RANGES[leaf.op] if low is code else ">="
    below = _RANGES[leaf.op] if high is code else "<"
    test = f"len(list_filter(codes[?], lambda code: code {above} ? AND code {below} ?)) > 0"
    return Clause(f"coalesce({test}, false)", (leaf.key, low, high))
