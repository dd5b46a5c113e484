"""From filters to queries of Elasticsearch (F1 to F6, F9, F10).

Values and keys go into terms, whole, and never into a text that the engine reads. Equality is a term, a range is a
range of terms within one key and kind, and a negation stands in ``must_not``, which is the two-valued complement,
absent keys included.
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
)
from entrepot.filters.values import kind_of
from entrepot_elasticsearch.tokens import Band, band, bound, prefix, token, whole

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from entrepot.filters import Converted, Expression, Normal, Scalar

Clause: TypeAlias = dict[str, Any]

TOKENS: Final = "tokens"
LONG: Final = "long"
MOST_LEVELS: Final = 24
"""How deep a filter may be nested: a server takes 30 levels of `bool`, one of which holds the whole query."""
MOST_CLAUSES: Final = 1000
"""Most clauses: every server takes 1,024; one with a large heap takes more."""
_RANGES: Final = frozenset({FilterOp.LT, FilterOp.LTE, FilterOp.GT, FilterOp.GTE})


class ElasticsearchFilterConverter(AbstractFilterExpressionConverter[Clause]):
    """Translate filters into queries of Elasticsearch.

    Exact for every leaf. What is nested more than 24 levels deep, and what would be more than 1,000 clauses, is left
    out, which is a superset; equalities count as one clause where the engine takes them as a list.
    """

    def __init__(self) -> None:
        self._left_out: frozenset[int] = frozenset()

    def convert(self, filter: Expression | Normal) -> Converted[Clause]:  # noqa: A002 - as in the base
        """Translate a filter, given as a tree or in normal form."""
        normal = normalise(filter)
        beyond = _beyond(normal)
        if not beyond or self._left_out:
            return super().convert(normal)
        limited = ElasticsearchFilterConverter()
        limited._left_out = beyond
        return limited.convert(normal)

    def leaf(self, leaf: Leaf) -> Translation[Clause]:
        """Ask whether some element of the key satisfies the comparison, or none (F2, F3)."""
        if id(leaf) in self._left_out:
            return nothing()
        if leaf.op is FilterOp.ISNULL:
            present = _terms([prefix(leaf.key)])
            return exact(present if leaf.negated else _none([present]))
        if leaf.op in _RANGES:
            ways = _range(leaf.op, leaf.key, cast("Scalar", leaf.value))
            return exact(_none(ways) if leaf.negated else _any(ways))
        values = cast("tuple[Scalar, ...]", leaf.value if leaf.op is FilterOp.IN else (leaf.value,))
        plain = _terms([token(leaf.key, value) for value in values])
        return exact(_none([plain]) if leaf.negated else plain)

    def and_(self, parts: Sequence[Clause]) -> Clause:
        """Join clauses with AND; negations of leaves are told in one list."""
        forbidden: list[Clause] = []
        required: list[Clause] = []
        for part in parts:
            inner = part.get("bool", {})
            if inner.keys() == {"must_not"}:
                forbidden += inner["must_not"]
            else:
                required.append(part)
        joined: Clause = {}
        if required:
            joined["filter"] = required
        if forbidden:
            joined["must_not"] = _merged(forbidden)
        return {"bool": joined}

    def or_(self, parts: Sequence[Clause]) -> Clause:
        """Join clauses with OR; equalities are told in one list."""
        ways: list[Clause] = []
        for part in parts:
            ways += part.get("bool", {}).get("should") or [part]
        return _any(_merged(ways))

    def true(self) -> Clause:
        """Return the query that every document satisfies."""
        return {"match_all": {}}

    def false(self) -> Clause:
        """Return the query that no document satisfies."""
        return {"match_none": {}}


def _beyond(normal: Normal) -> frozenset[int]:
    """Return the identities of the leaves that are nested too deep, or of which there are too many."""
    found: set[int] = set()
    clauses = 0
    pending: list[tuple[Normal, int, bool]] = [(normal, 0, False)]
    while pending:
        node, level, either = pending.pop()
        if isinstance(node, And | Or):
            within = isinstance(node, Or)
            pending += [(part, level + 1, within) for part in reversed(node.parts)]
            continue
        if not isinstance(node, Leaf):
            continue
        # Equalities under OR, and negated ones under AND, are one list together.
        negated = node.negated is not (node.op is FilterOp.ISNULL)
        cost = 2 if node.op in _RANGES else int(either is negated)
        if level > MOST_LEVELS or clauses + cost > MOST_CLAUSES:
            found.add(id(node))
        else:
            clauses += cost
    return frozenset(found)


def _terms(tokens: Iterable[str]) -> Clause:
    return {"terms": {TOKENS: list(tokens)}}


def _none(ways: Sequence[Clause]) -> Clause:
    return {"bool": {"must_not": list(ways)}}


def _any(ways: Sequence[Clause]) -> Clause:
    return ways[0] if len(ways) == 1 else {"bool": {"should": list(ways), "minimum_should_match": 1}}


def _merged(ways: Sequence[Clause]) -> list[Clause]:
    """Return alternatives with all their terms in one list."""
    tokens = dict.fromkeys(one for way in ways if "terms" in way for one in way["terms"][TOKENS])
    others = [way for way in ways if "terms" not in way]
    return [_terms(tokens), *others] if tokens else others


def _range(op: FilterOp, key: str, value: Scalar) -> list[Clause]:
    """Return the ranges of which a document meets one if some element compares."""
    kind = kind_of(value)
    within = band(key, kind)
    ways = [_bounded(TOKENS, op, bound(key, value), within)]
    if kind == "str":
        ways.append(_bounded(LONG, op, whole(key, cast("str", value)), within))
    return ways


def _bounded(field: str, op: FilterOp, at: str, within: Band) -> Clause:
    limits = {
        FilterOp.LT: {"gte": within.low, "lt": at},
        FilterOp.LTE: {"gte": within.low, "lte": at},
        FilterOp.GT: {"gt": at, "lt": within.high},
        FilterOp.GTE: {"gte": at, "lt": within.high},
    }
    return {"range": {field: limits[op]}}
