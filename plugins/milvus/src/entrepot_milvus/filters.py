"""From filters to expressions of Milvus (F1 to F6, F9, F10).

Equality and presence are asked of tokens; ranges of the least or the greatest element of a key, which is ordered text
(`entrepot_milvus.fields`). Every negation is written out, and what is negated is never unknown: servers of different
versions and Milvus Lite disagree about a comparison with an absent member below a ``not``, but not about ``exists``
and not about an array that every row has.
"""

from __future__ import annotations

from abc import abstractmethod
from copy import copy
from typing import TYPE_CHECKING, ClassVar, Final, cast

from entrepot.encoding import (
    KIND_LETTERS,
    equality_token,
    presence_token,
    string_bound,
    string_text,
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
from entrepot.filters.values import kind_of
from entrepot_milvus.expressions import (
    EVERYTHING,
    NOTHING,
    Condition,
    Has,
    Text,
    both,
    either,
    end_of,
    quoted,
)
from entrepot_milvus.fields import STRING_BYTES, ordered_text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from entrepot.filters import Converted, Expression, Normal, Scalar

MOST_LEVELS: Final = 40
"""How deep a condition may be nested, chains joined two by two: from 48 on a server fails, as protobuf reads no more
than 100 messages within one another."""
MOST_CLAUSES: Final = 400
"""Clauses of a filter, tokens of one union counted once: a server takes seconds for a thousand."""
SIGNS: Final = {FilterOp.LT: "<", FilterOp.LTE: "<=", FilterOp.GT: ">", FilterOp.GTE: ">="}
"""The engine's signs."""
OPPOSITE: Final = {FilterOp.LT: ">=", FilterOp.LTE: ">", FilterOp.GT: "<=", FilterOp.GTE: "<"}
"""Those of the complements."""
_BELOW: Final = frozenset({FilterOp.LT, FilterOp.LTE})


class LimitedConverter(AbstractFilterExpressionConverter[Condition]):
    """Joins conditions. What is nested more than 40 levels deep and what exceeds 400 clauses is left out: a superset."""

    levels: ClassVar[int] = MOST_LEVELS

    def __init__(self) -> None:
        self.left_out: frozenset[int] = frozenset()

    def convert(self, filter: Expression | Normal) -> Converted[Condition]:  # noqa: A002 - as in the base
        """Translate a filter, given as a tree or in normal form."""
        normal = normalise(filter)
        if self.left_out or not (beyond := _beyond(normal, self.shares, self.levels)):
            return super().convert(normal)
        limited = copy(self)
        limited.left_out = beyond
        return limited.convert(normal)

    def leaf(self, leaf: Leaf) -> Translation[Condition]:
        """Ask whether some element of the key satisfies the comparison, or none (F2, F3)."""
        return nothing() if id(leaf) in self.left_out else self.asked(leaf)

    @abstractmethod
    def asked(self, leaf: Leaf) -> Translation[Condition]:
        """Translate a leaf that is not left out."""

    def shares(self, leaf: Leaf, chain: And | Or | None) -> bool:  # noqa: ARG002 - for those that do
        """Whether a leaf becomes part of a clause that it shares with others of its chain."""
        return False

    def and_(self, parts: Sequence[Condition]) -> Condition:
        """Join conditions with AND."""
        return both(parts)

    def or_(self, parts: Sequence[Condition]) -> Condition:
        """Join conditions with OR."""
        return either(parts)


class MilvusFilterConverter(LimitedConverter):
    """Translate filters into expressions of Milvus.

    Exact for every leaf but ranges of strings of more than 40 bytes. What is nested more than 40 levels deep and what
    exceeds 400 clauses is left out, which is a superset.
    """

    def asked(self, leaf: Leaf) -> Translation[Condition]:
        """Ask for tokens, or compare an end of the key's ranges."""
        if leaf.op is FilterOp.ISNULL:
            return exact(Has((presence_token(leaf.key),), negated=not leaf.negated))
        if leaf.op in SIGNS:
            return _range(leaf.op, leaf.key, cast("Scalar", leaf.value), negated=leaf.negated)
        values = cast("tuple[Scalar, ...]", leaf.value if leaf.op is FilterOp.IN else (leaf.value,))
        tokens = dict.fromkeys(equality_token(leaf.key, value) for value in values)
        return exact(Has(tuple(tokens), leaf.negated))

    def shares(self, leaf: Leaf, chain: And | Or | None) -> bool:
        """Whether it is one of the tokens that a chain asks for at once."""
        if chain is None or leaf.op in SIGNS:
            return False
        asks_for_none = leaf.negated is not (leaf.op is FilterOp.ISNULL)
        return asks_for_none is isinstance(chain, And)

    def true(self) -> Condition:
        """Return what holds for every document."""
        return EVERYTHING

    def false(self) -> Condition:
        """Return what holds for no document."""
        return NOTHING


def _range(op: FilterOp, key: str, value: Scalar, *, negated: bool) -> Translation[Condition]:
    """Compare the least element if smaller ones are asked for, else the greatest (F2)."""
    kind = kind_of(value)
    letter = KIND_LETTERS[kind]
    end = end_of(letter if op in _BELOW else letter.upper(), key)
    code, is_exact = ordered_text(value), True
    if kind == "str":
        text = cast("str", value)
        is_exact = string_text(text, STRING_BYTES).exact
        op, code = string_bound(op, text, certain=negated, size=STRING_BYTES)
    if negated:
        clause = Text(f"(not (exists {end}) or {end} {OPPOSITE[op]} {quoted(code)})")
    else:
        clause = Text(f"{end} {SIGNS[op]} {quoted(code)}")
    return exact(clause) if is_exact else superset(clause)


def _beyond(normal: Normal, shares: Callable[[Leaf, And | Or | None], bool], levels: int) -> frozenset[int]:
    """Return the identities of the leaves that are nested too deep, or come after too many clauses."""
    found: set[int] = set()
    clauses = 0
    pending: list[tuple[Normal, And | Or | None, int]] = [(normal, None, 0)]
    while pending:
        node, chain, level = pending.pop()
        if isinstance(node, And | Or):
            inner = level + (len(node.parts) - 1).bit_length()
            pending += [(part, node, inner) for part in reversed(node.parts)]
            clauses += 1  # what becomes of those of its parts that share a clause
        elif isinstance(node, Leaf):
            clauses += 0 if shares(node, chain) else 1
            if level > levels or clauses > MOST_CLAUSES:
                found.add(id(node))
    return frozenset(found)
