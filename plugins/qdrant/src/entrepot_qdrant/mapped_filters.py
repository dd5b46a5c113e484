"""From filters to conditions on payloads that other software wrote (F1 to F5, F9, F10).

Qdrant's ranges are of doubles, which its reader of JSON keeps to within a unit or two in the last place; it has no
ranges of strings; and a payload index may know less than the payload. So each comparison is two conditions: one
that holds wherever it may hold, and one that holds only where it certainly does, whose complement serves NOT. Where
the two are not one, the core looks at what comes (F9).
"""

from __future__ import annotations

import math
import sys
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from qdrant_client import models

from entrepot.filters import FilterOp, Translation, exact, nothing, superset
from entrepot_qdrant.filters import BOUNDS, ConditionConverter, not_
from entrepot_qdrant.mapped_fields import NESTED, instant, path_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from entrepot.filters import Leaf, Scalar
    from entrepot_qdrant.layouts import Condition
    from entrepot_qdrant.mapping import CollectionMapping, ValueKind

_LOWER: Final = (FilterOp.LT, FilterOp.LTE)
_ULPS: Final = 4
"""How far a double may be from what was sent, and from an integer that it stands for, with room to spare."""
_WHOLE: Final = 2**53
"""Integers of a smaller magnitude are doubles as they are."""
_MOST: Final = sys.float_info.max
_STEP: Final = timedelta(microseconds=1)


class Asked(NamedTuple):
    """A comparison of the elements of one key, as the engine can be asked for it.

    Attributes:
        possible: Holds wherever the comparison does; None if that is nowhere.
        certain: Holds only where the comparison does; None for no such condition.
    """

    possible: Condition | None
    certain: Condition | None

    @property
    def exact(self) -> bool:
        """Whether both are one."""
        return self.possible is self.certain


NEVER: Final = Asked(None, None)


class MappedFilterConverter(ConditionConverter):
    """Translate filters into conditions on payloads of other software.

    Args:
        mapping: Where the values of metadata keys stand.
        indexes: The payload indexes of the collection: the type of each, by path. None if they are not known yet.
    """

    def __init__(self, mapping: CollectionMapping, indexes: Mapping[str, str] | None) -> None:
        self._mapping = mapping
        self._indexes = indexes

    def leaf(self, leaf: Leaf) -> Translation[Condition]:
        """Ask whether some element of the key satisfies the comparison, or none (F2, F3)."""
        path = self._mapping.path(leaf.key)
        if path is None:  # absent everywhere
            never = not leaf.negated if leaf.op is not FilterOp.ISNULL else leaf.negated
            return exact(self.false() if never else self.true())
        text = path_text(path)
        if text is None:
            return nothing()
        field = _Field(text, self._mapping.kinds.get(leaf.key), self._index(text))
        if leaf.op is FilterOp.ISNULL:
            return superset(field.present if leaf.negated else field.may_be_absent)
        if leaf.op in BOUNDS:
            asked = [field.range(leaf.op, cast("Scalar", leaf.value))]
        else:
            values = leaf.value if leaf.op is FilterOp.IN else (leaf.value,)
            asked = [field.equal(value) for value in cast("tuple[Scalar, ...]", values)]
        return self._joined(asked, negated=leaf.negated)

    def _joined(self, asked: Sequence[Asked], *, negated: bool) -> Translation[Condition]:
        is_exact = all(each.exact for each in asked)
        ways = [each.certain if negated else each.possible for each in asked]
        some = [way for way in ways if way is not None]
        if not some:
            if not negated:
                return exact(self.false())
            return exact(self.true()) if is_exact else nothing()
        joined = some[0] if len(some) == 1 else self.or_(some)
        condition = not_(joined) if negated else joined
        return exact(condition) if is_exact else superset(condition)

    def _index(self, text: str) -> str:
        if self._indexes is None:
            return "unknown"
        return self._indexes.get(text, "none")

    def false(self) -> Condition:
        """Return what holds for no point."""
        empty = models.IsEmptyCondition(is_empty=models.PayloadField(key="id"))
        return models.Filter(must=[empty], must_not=[empty])


class _Field(NamedTuple):
    """A field of payloads.

    Attributes:
        path: Where it stands.
        kind: What the mapping says of its values.
        indexed: The type of its payload index, "none" or "unknown".
    """

    path: str
    kind: ValueKind | None
    indexed: str

    @property
    def present(self) -> Condition:
        """Holds for more points than have an element: also for lists of null alone."""
        return not_(self._empty)

    @property
    def may_be_absent(self) -> Condition:
        """Holds for more points than have no element: also for lists with a null in them."""
        null = models.IsNullCondition(is_null=models.PayloadField(key=self.path))
        return models.Filter(should=[self._empty, null])

    @property
    def _empty(self) -> models.IsEmptyCondition:
        return models.IsEmptyCondition(is_empty=models.PayloadField(key=self.path))

    def equal(self, value: Scalar) -> Asked:
        """Ask for an element that equals a value."""
        if isinstance(value, bool):
            return self._match(value)
        if isinstance(value, str):
            if self.kind == "datetime" and instant(value) is not None:  # it is read as an instant
                return NEVER
            if value.startswith(NESTED) or self.indexed in {"uuid", "unknown"}:
                return Asked(self.present, None)
            return self._match(value)
        if isinstance(value, datetime):
            return self._near_instant(value, value)
        return self._number(FilterOp.EQ, value)

    def range(self, op: FilterOp, value: Scalar) -> Asked:
        """Ask for an element on one side of a value."""
        if isinstance(value, str):
            return Asked(self.present, None)
        if isinstance(value, datetime):
            return self._near_instant(None, value) if op in _LOWER else self._near_instant(value, None)
        return self._number(op, value)

    def _match(self, value: str | int) -> Asked:
        condition = models.FieldCondition(key=self.path, match=models.MatchValue(value=value))
        return Asked(condition, condition)

    def _near_instant(self, least: datetime | None, most: datetime | None) -> Asked:
        """Ask for instants between two: the engine may know them to the nanosecond, or to the microsecond."""
        if self.kind != "datetime":
            return NEVER  # JSON has none
        if self.indexed in {"integer", "float", "unknown"}:
            return Asked(self.present, None)
        limits = {"gte": least and _moved(least, -_STEP), "lte": most and _moved(most, _STEP)}
        bounds = models.DatetimeRange.model_validate({k: v for k, v in limits.items() if v is not None})
        return Asked(models.FieldCondition(key=self.path, range=bounds), None)

    def _number(self, op: FilterOp, value: float) -> Asked:
        if self.indexed in {"datetime", "unknown"}:  # it would be asked for something else
            return Asked(self.present, None)
        if self.kind == "int":
            return self._integers(op, value)
        near = self._near(op, value)
        # An index of integers has no fractions, so it finds too few.
        return near._replace(possible=self.present) if self.indexed == "integer" else near

    def _integers(self, op: FilterOp, value: float) -> Asked:
        """Ask for integers of less than 2^53, which doubles hold, by an integer."""
        if op is FilterOp.EQ and (value != math.floor(value) or abs(value) >= _WHOLE):
            return NEVER
        up = op in {FilterOp.LT, FilterOp.GTE, FilterOp.EQ}
        bound = max(-_WHOLE, min(_WHOLE, math.ceil(value) if up else math.floor(value)))
        condition = self._range(op, float(bound))
        return Asked(condition, condition)

    def _near(self, op: FilterOp, value: float) -> Asked:
        """Ask for numbers about one, as the engine's reader may not have kept either."""
        below, above = _step(float(value), -math.inf), _step(float(value), math.inf)
        if op is FilterOp.EQ:
            near = models.FieldCondition(key=self.path, range=models.Range(gte=below, lte=above))
            # An index of integers holds a double beyond 64 bits as the last integer.
            whole = value == math.floor(value) and abs(value) < _WHOLE
            return Asked(near, self._match(int(value)).certain if whole else None)
        if op in _LOWER:
            return Asked(self._range(FilterOp.LTE, above), self._range(FilterOp.LT, below))
        return Asked(self._range(FilterOp.GTE, below), self._range(FilterOp.GT, above))

    def _range(self, op: FilterOp, bound: float) -> models.FieldCondition:
        names = ("gte", "lte") if op is FilterOp.EQ else (BOUNDS[op],)
        bounds = models.Range.model_validate(dict.fromkeys(names, bound))
        return models.FieldCondition(key=self.path, range=bounds)


def _step(value: float, towards: float) -> float:
    for _ in range(_ULPS):
        value = math.nextafter(value, towards)
    return max(-_MOST, min(_MOST, value))


def _moved(moment: datetime, step: timedelta) -> datetime:
    try:
        return moment + step
    except OverflowError:  # the first or last there is
        return moment
