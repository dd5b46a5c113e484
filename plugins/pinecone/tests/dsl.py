"""A reading of the filters that the converter writes, in a few lines of Python: what a server would find.

`$nin` on a list can be read as "no element is one of these" and as "some element is none of these"; `strict` says which.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_SIGNS: dict[str, Callable[[Any, Any], bool]] = {
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}


def holds(clause: Mapping[str, Any], fields: Mapping[str, Any], *, strict: bool = True) -> bool:
    """Whether the metadata of a record satisfy a filter."""
    assert len(clause) <= 1, "several fields are written as $and"
    return all(_part(name, asked, fields, strict) for name, asked in clause.items())


def _part(name: str, asked: Any, fields: Mapping[str, Any], strict: bool) -> bool:
    if name in {"$and", "$or"}:
        assert asked, "an empty chain is refused"
        return (all if name == "$and" else any)(holds(part, fields, strict=strict) for part in asked)
    assert not name.startswith("$"), name
    ((sign, operand),) = asked.items()
    if sign == "$exists":
        return (name in fields) is operand
    if name not in fields:  # no leaf relies on what the engine makes of that
        return False
    stored = fields[name]
    elements = cast("Sequence[Any]", stored) if isinstance(stored, list) else [stored]
    if sign == "$eq":
        return operand in elements
    if sign == "$in":
        return any(one in operand for one in elements)
    if sign == "$nin":
        return (all if strict else any)(one not in operand for one in elements)
    assert isinstance(stored, float), "only numbers are ordered"
    assert isinstance(operand, float)
    return _SIGNS[sign](stored, operand)
