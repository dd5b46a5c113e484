"""From filters to queries over fields that other software mapped: always supersets, which the core completes (F9).

What the engine indexed is not always what the document says: a number in a keyword field is its text, 1.5 in a field of
type long is 1, a date has milliseconds, a long string may have been left out. So the engine narrows, by bounds that are
wide enough, and documents whose value of a field was left out (``_ignored``) are always among what it finds.
"""

from __future__ import annotations

import math
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from entrepot.encoding import microseconds
from entrepot.filters import FilterOp, Translation, nothing, superset
from entrepot.filters.values import kind_of
from entrepot_elasticsearch.filters import Clause, ElasticsearchFilterConverter
from entrepot_elasticsearch.mapped_fields import DATES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from entrepot.filters import Leaf, Scalar
    from entrepot_elasticsearch.mapped_fields import Field

Bounds: TypeAlias = dict[str, Any]

_WHOLE: Final = {"long": 63, "integer": 31, "short": 15, "byte": 7}
"""Bits of a whole number, without its sign."""
_LOSS: Final = {"double": (1e-15, 1.7e308), "float": (1e-6, 3.4e38), "half_float": (1e-2, 65_504.0)}
"""How much of a number such a field may lose, rather too much; and the largest one."""
_MOST_BYTES: Final = 900
"""Bytes of a bound: a range takes 1,000."""
_LONGEST_TERM: Final = 32_766
_BELOW: Final = frozenset({FilterOp.LT, FilterOp.LTE})
_ABOVE: Final = frozenset({FilterOp.GT, FilterOp.GTE})
_INSTANTS: Final = {"date": (-62_135_596_800_000, 253_402_300_799_999), "date_nanos": (0, 9_223_372_036_853)}
"""The first and the last millisecond of such a field."""


class MappedFilterConverter(ElasticsearchFilterConverter):
    """Translate filters into queries over fields of other software.

    Args:
        fields: The fields that can be asked, by metadata key.
    """

    def __init__(self, fields: Mapping[str, Field]) -> None:
        super().__init__()
        self._fields = fields

    def leaf(self, leaf: Leaf) -> Translation[Clause]:
        """Narrow by a plain comparison; a negated one would need what certainly holds, and is left to the core."""
        field = self._fields.get(leaf.key)
        if field is None:
            return nothing()
        if leaf.op is FilterOp.ISNULL:
            there = {"exists": {"field": field.path}}
            return superset(_or_ignored(field, [there])) if leaf.negated and field.exists else nothing()
        if leaf.negated or not field.searched:
            return nothing()
        values = cast("tuple[Scalar, ...]", leaf.value if leaf.op is FilterOp.IN else (leaf.value,))
        op = FilterOp.EQ if leaf.op is FilterOp.IN else leaf.op
        ways = [_way(field, op, value) for value in values]
        known = [way for way in ways if way is not None]
        return superset(_or_ignored(field, known)) if len(known) == len(ways) else nothing()


def _or_ignored(field: Field, ways: list[Clause]) -> Clause:
    ignored: list[Clause] = [
        {"term": {"_ignored": path}} for path in dict.fromkeys((field.path, field.source))
    ]
    return {"bool": {"should": [*ways, *ignored], "minimum_should_match": 1}}


def _way(field: Field, op: FilterOp, value: Scalar) -> Clause | None:
    """Return what finds every document with an element that compares, and perhaps others; None if nothing does."""
    kind = kind_of(value)
    if field.type == "keyword" and kind == "str":
        return _strings(field, op, cast("str", value))
    if field.type == "boolean" and kind == "bool" and op is FilterOp.EQ:
        return {"term": {field.path: value}}
    if kind == "number" and field.type in _WHOLE:
        most = 1 << _WHOLE[field.type]
        near = math.floor(cast("float", value))
        return _range(field, op, _clamped(near - 1, -most, most - 1), _clamped(near + 2, -most, most - 1))
    if kind == "number" and field.type in _LOSS:
        number = float(cast("float", value))
        loss, largest = _LOSS[field.type]
        slack = 1e-30 + min(abs(number), largest) * loss * 4.0
        return _range(
            field,
            op,
            _clamped(number - slack, -largest, largest),
            _clamped(number + slack, -largest, largest),
        )
    if field.type in DATES and isinstance(value, datetime):
        near = microseconds(value) // 1000
        first, last = _INSTANTS[field.type]
        found = _range(field, op, _clamped(near - 1, first, last), _clamped(near + 1, first, last))
        found["range"][field.path]["format"] = "epoch_millis"
        return found
    return None


def _clamped(value: float, least: float, most: float) -> float:
    """Return a bound that the engine takes: what a field cannot hold lies on no side of it."""
    return min(max(value, least), most)


def _strings(field: Field, op: FilterOp, text: str) -> Clause | None:
    if op is FilterOp.EQ:
        # A longer one is refused, and stands in no index.
        return {"term": {field.path: text}} if len(text.encode()) <= _LONGEST_TERM else None
    cut = text.encode()[:_MOST_BYTES].decode(errors="ignore")
    if op in _ABOVE:
        return {"range": {field.path: {"gte": cut}}}
    # What lies below a long text lies below what is cut off it, or begins with that.
    return {"range": {field.path: {"lte": text if cut == text else cut + "\U0010ffff"}}}


def _range(field: Field, op: FilterOp, low: float, high: float) -> Clause:
    bounds: Bounds = {}
    if op not in _BELOW:
        bounds["gte"] = low
    if op not in _ABOVE:
        bounds["lte"] = high
    return {"range": {field.path: bounds}}
