"""From filters to queries of MongoDB (F1 to F6, F9, F10).

Values and keys go into tokens, whole, and never into names of fields or operators. Equality is ``$in``, a negation is
``$nin`` or ``$not``, which are the two-valued complements, absent keys included. A range stands in ``$elemMatch``: without
it each of its bounds might be met by another element of the array, which holds the tokens of all keys.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

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
from entrepot_mongodb.tokens import band, prefix, token

if TYPE_CHECKING:
    from collections.abc import Sequence

    from entrepot.filters import Converted, Expression, Normal, Scalar

Clause: TypeAlias = dict[str, Any]

TOKENS: Final = "t"
MOST_LEVELS: Final = 40
"""How deep chains of a filter may be nested: BSON takes 100 levels, each chain is two, and a leaf and its command some."""
MOST_BYTES: Final = 4 * 1024 * 1024
"""About how many bytes of keys and values a filter may have: a command has at most 16 MiB."""
_RANGES: Final = frozenset({FilterOp.LT, FilterOp.LTE, FilterOp.GT, FilterOp.GTE})


class MongoDBFilterConverter(AbstractFilterExpressionConverter[Clause]):
    """Translate filters into queries of MongoDB.

    Exact for every leaf. What is nested more than 40 chains deep, and what lies beyond 4 MiB of keys and values, is left
    out, which is a superset.

    Args:
        left_out: The identities of leaves that are left out; the converter tells itself.
    """

    def __init__(self, left_out: frozenset[int] = frozenset()) -> None:
        self._left_out = left_out

    def convert(self, filter: Expression | Normal) -> Converted[Clause]:  # noqa: A002 - as in the base
        """Translate a filter, given as a tree or in normal form."""
        normal = normalise(filter)
        beyond = _beyond(normal)
        if not beyond or self._left_out:
            return super().convert(normal)
        return type(self)(beyond).convert(normal)

    def leaf(self, leaf: Leaf) -> Translation[Clause]:
        """Ask whether some element of the key satisfies the comparison, or none (F2, F3)."""
        if id(leaf) in self._left_out:
            return nothing()
        if leaf.op in _RANGES:
            return self.range(leaf)
        return exact(_listed(leaf))

    def range(self, leaf: Leaf) -> Translation[Clause]:
        """Ask the same of a range."""
        within = _range(leaf.op, leaf.key, cast("Scalar", leaf.value))
        return exact({TOKENS: {"$not": within} if leaf.negated else within})

    def and_(self, parts: Sequence[Clause]) -> Clause:
        """Join clauses with AND; negations are told in one list."""
        forbidden: list[str] = []
        others: list[Clause] = []
        for part in parts:
            listed = _list_of(part, "$nin")
            if listed is None:
                others.append(part)
            else:
                forbidden += listed
        if forbidden:
            others.append({TOKENS: {"$nin": list(dict.fromkeys(forbidden))}})
        return others[0] if len(others) == 1 else {"$and": others}

    def or_(self, parts: Sequence[Clause]) -> Clause:
        """Join clauses with OR; equalities are told in one list."""
        wanted: list[str] = []
        others: list[Clause] = []
        for part in parts:
            listed = _list_of(part, "$in")
            if listed is None:
                others.append(part)
            else:
                wanted += listed
        if wanted:
            others.insert(0, {TOKENS: {"$in": list(dict.fromkeys(wanted))}})
        return others[0] if len(others) == 1 else {"$or": others}

    def true(self) -> Clause:
        """Return the query that every document satisfies."""
        return {}

    def false(self) -> Clause:
        """Return the query that no document satisfies."""
        return {"_id": {"$in": []}}


class SearchFilterConverter(MongoDBFilterConverter):
    """Translate filters into the ``filter`` of ``$vectorSearch``: a superset, as ranges need ``$elemMatch``.

    A plain range becomes the presence of its key, a negated one nothing.
    """

    def range(self, leaf: Leaf) -> Translation[Clause]:
        """Ask for the key alone."""
        return nothing() if leaf.negated else superset({TOKENS: {"$in": [prefix(leaf.key)]}})

    def false(self) -> Clause:
        """Return the query that no document satisfies."""
        return {TOKENS: {"$in": [""]}}


def _listed(leaf: Leaf) -> Clause:
    if leaf.op is FilterOp.ISNULL:
        return {TOKENS: {"$in" if leaf.negated else "$nin": [prefix(leaf.key)]}}
    values = cast("tuple[Scalar, ...]", leaf.value if leaf.op is FilterOp.IN else (leaf.value,))
    return {TOKENS: {"$nin" if leaf.negated else "$in": [token(leaf.key, value) for value in values]}}


def _list_of(clause: Clause, operator: str) -> list[str] | None:
    """Return the tokens of a clause that is one list behind an operator."""
    asked = clause.get(TOKENS)
    return cast("list[str]", asked[operator]) if asked is not None and asked.keys() == {operator} else None


def _range(op: FilterOp, key: str, value: Scalar) -> Clause:
    within, at = band(key, kind_of(value)), token(key, value)
    limits = {
        FilterOp.LT: {"$gte": within.low, "$lt": at},
        FilterOp.LTE: {"$gte": within.low, "$lte": at},
        FilterOp.GT: {"$gt": at, "$lt": within.high},
        FilterOp.GTE: {"$gte": at, "$lt": within.high},
    }
    return {"$elemMatch": limits[op]}


def _beyond(normal: Normal) -> frozenset[int]:
    """Return the identities of the leaves that are nested too deep, or that are too much together."""
    found: set[int] = set()
    size = 0
    pending: list[tuple[Normal, int]] = [(normal, 0)]
    while pending:
        node, level = pending.pop()
        if isinstance(node, And | Or):
            pending += [(part, level + 1) for part in reversed(node.parts)]
        elif isinstance(node, Leaf):
            size += _size(node)
            if level > MOST_LEVELS or size > MOST_BYTES:
                found.add(id(node))
    return frozenset(found)


def _size(leaf: Leaf) -> int:
    """Return about how many bytes the tokens of a leaf have, never less."""
    values = leaf.value if leaf.op is FilterOp.IN else (leaf.value,)
    texts = [value for value in cast("tuple[object, ...]", values) if isinstance(value, str)]
    count = len(cast("tuple[object, ...]", values))
    # Of a character there are at most four bytes, and a key of more than 128 bytes is a digest.
    return count * (32 + min(4 * len(leaf.key), 132)) + 4 * sum(map(len, texts))
