"""From filters to conditions of Qdrant (F1 to F6, F9, F10).

Values go into typed fields of the client's models, never into text; equality is asked of tokens and ranges of
integers, instants and pieces, as `entrepot_qdrant.fields` writes them. Negation is Qdrant's ``must_not``, which is
the two-valued complement, absent keys included.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, cast

from qdrant_client import models

from entrepot.encoding import (
    any_of_all,
    certain,
    equality_token,
    possible,
    presence_token,
    string_chunks,
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
from entrepot_qdrant.fields import CHUNKS, ID, LETTERS, NATURAL, wide
from entrepot_qdrant.layouts import Condition
from entrepot_qdrant.names import INSTANTS, NUMBERS, STRINGS, TOKENS, WIDE, key_name

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from entrepot.filters import Converted, Expression, Normal, Scalar

MOST_LEVELS: Final = 36
"""How deep a filter may be nested: a server over gRPC takes 40 levels above the deepest leaf."""
BOUNDS: Final = {FilterOp.LT: "lt", FilterOp.LTE: "lte", FilterOp.GT: "gt", FilterOp.GTE: "gte"}
_STRICT: Final = {
    FilterOp.LT: FilterOp.LT,
    FilterOp.LTE: FilterOp.LT,
    FilterOp.GT: FilterOp.GT,
    FilterOp.GTE: FilterOp.GT,
}


class ConditionConverter(AbstractFilterExpressionConverter[Condition]):
    """Joins what a layout makes of leaves into filters of Qdrant.

    What is nested more than 36 levels deep is left out, which is a superset.
    """

    def convert(self, filter: Expression | Normal) -> Converted[Condition]:  # noqa: A002 - as in the base
        """Translate a filter, given as a tree or in normal form."""
        normal = normalise(filter)
        deep = _too_deep(normal)
        return _Shallow(self, deep).convert(normal) if deep else super().convert(normal)

    def and_(self, parts: Sequence[Condition]) -> Condition:
        """Join conditions with AND."""
        return models.Filter(must=list(parts))

    def or_(self, parts: Sequence[Condition]) -> Condition:
        """Join conditions with OR."""
        return models.Filter(should=list(parts))

    def true(self) -> Condition:
        """Return the filter without a condition, which holds for every point."""
        return models.Filter()


class _Shallow(AbstractFilterExpressionConverter[Condition]):
    """Another converter without some leaves, by their identities."""

    def __init__(self, whole: ConditionConverter, left_out: frozenset[int]) -> None:
        self._left_out = left_out
        self._whole = whole

    def leaf(self, leaf: Leaf) -> Translation[Condition]:
        return nothing() if id(leaf) in self._left_out else self._whole.leaf(leaf)

    def and_(self, parts: Sequence[Condition]) -> Condition:
        return self._whole.and_(parts)

    def or_(self, parts: Sequence[Condition]) -> Condition:
        return self._whole.or_(parts)

    def true(self) -> Condition:
        return self._whole.true()

    def false(self) -> Condition:
        return self._whole.false()


class QdrantFilterConverter(ConditionConverter):
    """Translate filters into conditions on what `entrepot_qdrant.fields` writes.

    Exact for every leaf but ranges of strings of 24 bytes and more.
    """

    def leaf(self, leaf: Leaf) -> Translation[Condition]:
        """Ask whether some element of the key satisfies the comparison, or none (F2, F3)."""
        if leaf.op is FilterOp.ISNULL:
            present = _token(presence_token(leaf.key))
            return exact(present if leaf.negated else not_(present))
        if leaf.op in BOUNDS:
            return _range(leaf.op, leaf.key, cast("Scalar", leaf.value), negated=leaf.negated)
        values = cast("tuple[Scalar, ...]", leaf.value if leaf.op is FilterOp.IN else (leaf.value,))
        tokens = [equality_token(leaf.key, value) for value in values]
        plain = _token(tokens[0]) if len(tokens) == 1 else _tokens(tokens)
        return exact(not_(plain) if leaf.negated else plain)

    def false(self) -> Condition:
        """Return what holds for no point: each has an id."""
        return models.IsEmptyCondition(is_empty=models.PayloadField(key=ID))


def _too_deep(normal: Normal) -> frozenset[int]:
    """Return the identities of the leaves that are nested too deep."""
    found: set[int] = set()
    pending: list[tuple[Normal, int]] = [(normal, 0)]
    while pending:
        node, level = pending.pop()
        if isinstance(node, And | Or):
            pending += [(part, level + 1) for part in node.parts]
        elif level > MOST_LEVELS:
            found.add(id(node))
    return frozenset(found)


# --- leaves -----------------------------------------------------------------------------------------------


def _token(token: str) -> Condition:
    return models.FieldCondition(key=TOKENS, match=models.MatchValue(value=token))


def _tokens(tokens: Sequence[str]) -> Condition:
    return models.FieldCondition(key=TOKENS, match=models.MatchAny(any=list(tokens)))


def not_(condition: Condition) -> models.Filter:
    """Return the complement of a condition."""
    return models.Filter(must_not=[condition])


def _range(op: FilterOp, key: str, value: Scalar, *, negated: bool) -> Translation[Condition]:
    kind = kind_of(value)
    if kind == "str":
        return _string_range(op, key, cast("str", value), negated=negated)
    name = key_name(key)
    if kind == "datetime":
        plain: Condition = _instants(op, name, cast("datetime", value))
    else:
        plain = models.Filter(
            should=[
                _integers(op, f"{NUMBERS}.{name}", _bound(op, cast("float", value))),
                _gate(op, f"{WIDE}.{name}", wide(cast("float", value))),
            ]
        )
    return exact(not_(plain) if negated else plain)


def _instants(op: FilterOp, name: str, instant: datetime) -> Condition:
    bounds = models.DatetimeRange.model_validate({BOUNDS[op]: instant})
    return models.FieldCondition(key=f"{INSTANTS}.{name}", range=bounds)


def _string_range(op: FilterOp, key: str, value: str, *, negated: bool) -> Translation[Condition]:
    path = f"{STRINGS}.{key_name(key)}"
    chunks, is_exact = string_chunks(value, CHUNKS)
    if is_exact:
        plain = _gate(op, path, chunks)
        return exact(not_(plain) if negated else plain)
    if not negated:
        return superset(_gate(possible(op, exact=False), path, chunks))
    # What certainly matches: an earlier piece decides, or it is the operand itself.
    sure = [_gate(certain(op, exact=False), path, chunks)]
    if op in {FilterOp.LTE, FilterOp.GTE}:
        sure.append(_token(equality_token(key, value)))
    return superset(models.Filter(must_not=list(sure)))


def _bound(op: FilterOp, value: float) -> int:
    """Return the integer that integers compare with as they do with a number."""
    if value >= NATURAL:
        return NATURAL
    if value <= -NATURAL:
        return -NATURAL
    return math.ceil(value) if op in {FilterOp.LT, FilterOp.GTE} else math.floor(value)


def _integers(op: FilterOp, path: str, bound: int) -> models.FieldCondition:
    if op is FilterOp.EQ:
        limits = models.Range(gte=bound, lte=bound)
    else:
        limits = models.Range.model_validate({BOUNDS[op]: bound})
    return models.FieldCondition(key=path, range=limits)


def _gate(op: FilterOp, path: str, chunks: Sequence[int]) -> Condition:
    """Ask whether some element's pieces compare with an operand's.

    A condition on the first piece can be answered by an index and decides for most; only where it ties must
    elements be looked at one by one, which no index answers.
    """
    first = f"{path}[].{LETTERS[0]}"
    if len(chunks) == 1:
        return _integers(op, first, chunks[0])
    ways = [
        models.Filter(must=[_integers(test.op, LETTERS[test.position], test.value) for test in way])
        for way in any_of_all(op, chunks)[1:]
    ]
    within = ways[0] if len(ways) == 1 else models.Filter(should=list(ways))
    tied = models.NestedCondition(nested=models.Nested(key=path, filter=within))
    return models.Filter(
        should=[
            _integers(_STRICT[op], first, chunks[0]),
            models.Filter(must=[_integers(FilterOp.EQ, first, chunks[0]), tied]),
        ]
    )
