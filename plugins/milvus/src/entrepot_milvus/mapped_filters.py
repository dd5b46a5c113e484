"""From filters to expressions over fields that other software made (F1 to F5, F9, F10).

A scalar field has one value, so a comparison is the engine's own, and its complement the opposite one. Where the value
may be null, NaN or infinite, versions may differ about what becomes of it below a ``not``: the expressions here either
never ask that, or name the finite values. Of JSON no more is asked than equality, as a superset, and nothing below a
``not``: the core does the rest.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any, ClassVar, Final, cast

import numpy as np

from entrepot.filters import FilterOp, Translation, exact, nothing, superset
from entrepot.filters.values import kind_of
from entrepot_milvus.expressions import Text, joined, literal
from entrepot_milvus.filters import MOST_LEVELS, OPPOSITE, SIGNS, LimitedConverter
from entrepot_milvus.mapped_layout import DYNAMIC

if TYPE_CHECKING:
    from entrepot.filters import Leaf, Scalar
    from entrepot_milvus.expressions import Condition
    from entrepot_milvus.mapped_layout import Field, MappedLayout

_MEMBER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_MOST_VALUES: Final = 16
"""Values that are asked for in JSON at once: each is two clauses."""
_NESTED: Final = ("{", "[")
_WHOLE: Final = 2**53
_BITS: Final = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
_MOST: Final = {"float": float(np.finfo(np.float32).max), "double": float(np.finfo(np.float64).max)}
_KINDS: Final = frozenset({"str", "bool"})
_BELOW: Final = frozenset({FilterOp.LT, FilterOp.LTE})


class MappedFilterConverter(LimitedConverter):
    """Translate filters into expressions over a collection of other software.

    Args:
        layout: Where metadata stands; None if that is not known yet.
        served: Whether it is on a server: Milvus Lite cannot look into lists of the dynamic field.
    """

    levels: ClassVar[int] = MOST_LEVELS - 8  # which a leaf may have within it

    def __init__(self, layout: MappedLayout | None, *, served: bool) -> None:
        super().__init__()
        self._layout = layout
        self._served = served

    def true(self) -> Condition:
        """Return what holds for every document."""
        return Text(self._layout.either_side("or") if self._layout else "")

    def false(self) -> Condition:
        """Return what holds for no document."""
        return Text(self._layout.either_side("and") if self._layout else "")

    def asked(self, leaf: Leaf) -> Translation[Condition]:
        """Ask whether the value of the key satisfies the comparison (F2, F3)."""
        if self._layout is None:
            return nothing()
        field = self._layout.fields.get(leaf.key)
        if field is None and self._layout.metadata is None:  # absent everywhere
            return self._constant(is_true=(leaf.op is FilterOp.ISNULL) is not leaf.negated)
        if field is None:
            return self._in_json(leaf, self._layout.metadata or "")
        if field.type in {"array", "json"}:
            return nothing()
        if field.nullable and leaf.op is FilterOp.ISNULL:
            return nothing()
        found = self._of_field(field, leaf)
        if field.nullable:
            return nothing() if leaf.negated or found.clause is None else superset(found.clause)
        return found

    def _constant(self, *, is_true: bool) -> Translation[Condition]:
        return exact(self.true() if is_true else self.false())

    # --- scalar fields ----------------------------------------------------------------------------------

    def _of_field(self, field: Field, leaf: Leaf) -> Translation[Condition]:
        if leaf.op is FilterOp.ISNULL:
            if field.type not in _MOST:
                return self._constant(is_true=leaf.negated)
            finite = _between(field, [])
            return exact(Text(finite if leaf.negated else f"(not {finite})"))
        if leaf.op in SIGNS:
            return self._range(field, leaf)
        values = cast("tuple[Scalar, ...]", leaf.value if leaf.op is FilterOp.IN else (leaf.value,))
        same = [held for value in values if (held := _held(field, value)) is not None]
        if -(2**63) in same:  # servers cannot read it
            return nothing()
        if not same:
            return self._constant(is_true=leaf.negated)
        if field.type == "bool":  # two at most
            ways = [
                f"{field.name} {'!=' if leaf.negated else '=='} {literal(held)}"
                for held in dict.fromkeys(same)
            ]
            return exact(Text(joined(ways, "and" if leaf.negated else "or")))
        if len(same) == 1:
            return exact(Text(f"{field.name} {'!=' if leaf.negated else '=='} {literal(same[0])}"))
        listed = ", ".join(map(literal, dict.fromkeys(same)))
        return exact(Text(f"({field.name} {'not in' if leaf.negated else 'in'} [{listed}])"))

    def _range(self, field: Field, leaf: Leaf) -> Translation[Condition]:
        value = cast("Scalar", leaf.value)
        signs = OPPOSITE if leaf.negated else SIGNS
        if isinstance(value, str) and field.type == "str":
            return exact(Text(f"{field.name} {signs[leaf.op]} {literal(value)}"))
        if kind_of(value) != "number" or field.type in _KINDS:
            return self._constant(is_true=leaf.negated)
        if field.type in _MOST:
            op, near = _nearest(leaf.op, cast("float", value), field)
            within = _between(field, [f"{field.name} {SIGNS[op]} {literal(near)}"])
            return exact(Text(f"(not {within})" if leaf.negated else within))
        number, least = cast("float", value), -(2 ** (_BITS[field.type] - 1))
        if not least <= number < -least:
            return self._constant(is_true=((number > 0) is (leaf.op in _BELOW)) is not leaf.negated)
        if number == -(2**63):  # servers cannot read it
            return nothing()
        op, near = leaf.op, math.floor(number)
        if near != number:  # no integer lies between the two
            op = FilterOp.LTE if op in _BELOW else FilterOp.GT
        return exact(Text(f"{field.name} {signs[op]} {literal(near)}"))

    # --- JSON -------------------------------------------------------------------------------------------

    def _in_json(self, leaf: Leaf, name: str) -> Translation[Condition]:
        """Ask for a value, or a list with it in it."""
        equality = leaf.op in {FilterOp.EQ, FilterOp.IN} and not leaf.negated
        if not equality or not _MEMBER.fullmatch(leaf.key) or (name == DYNAMIC and not self._served):
            return nothing()
        values = cast("tuple[Scalar, ...]", leaf.value if leaf.op is FilterOp.IN else (leaf.value,))
        if len(values) > _MOST_VALUES or not all(map(_is_json, values)):
            return nothing()
        if not values:
            return self._constant(is_true=False)
        member = f"{name}[{literal(leaf.key)}]"
        given = [literal(cast("str | float", value)) for value in values]
        ways = [f"({member} == {each} or json_contains({member}, {each}))" for each in given]
        return superset(Text(joined(ways, "or")))


def _between(field: Field, parts: list[str]) -> str:
    """Return the condition of finite values that satisfy a comparison: NaN and infinity are absent (D3)."""
    most = _MOST[field.type]
    bounds = [f"{field.name} >= {literal(-most)}", f"{field.name} <= {literal(most)}"]
    return joined([*parts, *bounds], "and")


def _nearest(op: FilterOp, value: float, field: Field) -> tuple[FilterOp, float]:
    """Return a comparison with a number of the field's type that holds for the same numbers of it."""
    most = _MOST[field.type]
    near = most if value > most else -most if value < -most else float(value)
    if field.type == "float":
        near = float(np.float32(near))
    near += 0.0  # which has one zero
    if near == value:
        return op, near
    up, down = (FilterOp.GTE, FilterOp.LT) if near > value else (FilterOp.GT, FilterOp.LTE)
    return (down if op in _BELOW else up), near


def _held(field: Field, value: Scalar) -> Any:
    """Return a value as the field holds it; None if it cannot."""
    if field.type in _KINDS:
        return value if kind_of(value) == field.type else None
    if kind_of(value) != "number":
        return None
    number = cast("float", value)
    if field.type in _MOST:
        op, near = _nearest(FilterOp.EQ, number, field)
        return near if op is FilterOp.EQ else None
    most = 2 ** (_BITS[field.type] - 1)
    return int(number) if number == math.floor(number) and -most <= number < most else None


def _is_json(value: Scalar) -> bool:
    """Whether JSON holds a value as it is, and the engine compares it as Python does."""
    if isinstance(value, str):
        return not value.startswith(_NESTED)
    return isinstance(value, bool) or (isinstance(value, int | float) and abs(value) < _WHOLE)
