"""From filters to those of Pinecone (F1 to F6, F9, F10).

Values stand as tokens and doubles, keys as parts of fields' names: neither can be taken for an operator. No leaf relies on
what the engine makes of a field that a record lacks, but by ``$exists``.

Negated equality is called a superset: on a list, ``$nin`` can be read as "no element" and as "not every element", and the
clause holds wherever either reading does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from entrepot.encoding import certain, possible
from entrepot.filters import AbstractFilterExpressionConverter, FilterOp, Leaf, Translation, exact, superset
from entrepot.filters.values import kind_of
from entrepot_pinecone.tokens import bound, equality_field, greatest_field, least_field, token

if TYPE_CHECKING:
    from collections.abc import Sequence

    from entrepot.filters.values import Scalar

Clause: TypeAlias = dict[str, Any]

VERSION: Final = "_v"
"""A field that every record has: the name of the write that made it."""
_RANGES: Final = {FilterOp.LT: "$lt", FilterOp.LTE: "$lte", FilterOp.GT: "$gt", FilterOp.GTE: "$gte"}
_OPPOSITE: Final = {FilterOp.LT: "$gte", FilterOp.LTE: "$gt", FilterOp.GT: "$lte", FilterOp.GTE: "$lt"}


class PineconeFilterConverter(AbstractFilterExpressionConverter[Clause]):
    """Translate filters into those of Pinecone: exact but for negated equality and the ends of some ranges."""

    def leaf(self, leaf: Leaf) -> Translation[Clause]:
        """Ask whether some element of the key satisfies the comparison, or none (F2, F3)."""
        if leaf.op in _RANGES:
            return _range(leaf)
        field = equality_field(leaf.key)
        if leaf.op is FilterOp.ISNULL:
            return exact({field: {"$exists": leaf.negated}})
        values = cast("tuple[Scalar, ...]", leaf.value if leaf.op is FilterOp.IN else (leaf.value,))
        tokens = list(dict.fromkeys(map(token, values)))
        if leaf.negated:
            return superset({"$or": [{field: {"$exists": False}}, {field: {"$nin": tokens}}]})
        return exact({field: {"$in": tokens}})

    def and_(self, parts: Sequence[Clause]) -> Clause:
        """Join clauses with AND."""
        return {"$and": list(parts)}

    def or_(self, parts: Sequence[Clause]) -> Clause:
        """Join clauses with OR."""
        return {"$or": list(parts)}

    def true(self) -> Clause:
        """Return the clause that every record satisfies: a query leaves it out."""
        return {}

    def false(self) -> Clause:
        """Return the clause that no record satisfies."""
        return {VERSION: {"$eq": ""}}


def _range(leaf: Leaf) -> Translation[Clause]:
    value = cast("Scalar", leaf.value)
    kind, at = kind_of(value), bound(value)
    low = leaf.op in {FilterOp.LT, FilterOp.LTE}
    field = (least_field if low else greatest_field)(leaf.key, kind)
    how = exact if at.exact else superset
    if not leaf.negated:
        return how({field: {_RANGES[possible(leaf.op, exact=at.exact)]: at.code}})
    beyond = _OPPOSITE[certain(leaf.op, exact=at.exact)]
    return how({"$or": [{field: {"$exists": False}}, {field: {beyond: at.code}}]})
