"""The meaning of a filter, one document at a time: the law in code (F1 to F5).

Every backend, every converter and every column of the embedded store is tested against this module. It
is written to be read beside the contract, not to be fast.
"""

from __future__ import annotations

import operator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, cast

from entrepot.errors import MetadataError
from entrepot.filters.expression import Expression, FilterOp, Key, Value, check_limits, operands
from entrepot.filters.normalise import FALSE, TRUE, And, Normal, Or, normalise
from entrepot.filters.values import KIND_OF_TYPE, Scalar

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_COMPARE: Final[dict[FilterOp, Callable[[Any, Any], bool]]] = {
    FilterOp.EQ: operator.eq,
    FilterOp.LT: operator.lt,
    FilterOp.LTE: operator.le,
    FilterOp.GT: operator.gt,
    FilterOp.GTE: operator.ge,
}


def evaluate(filter: Expression | Normal, metadata: Mapping[str, object]) -> bool:  # noqa: A002
    """Say whether a document with this metadata matches the filter.

    Args:
        filter: A filter tree, or a filter in normal form.
        metadata: As a document holds it (D3): values are scalars or flat lists; None counts as absent.

    Raises:
        FilterLimitError: The filter is deeper or larger than allowed (F6).
        MetadataError: A compared key holds something that no document can hold, such as a nested mapping.
    """
    if type(filter) is Expression:
        check_limits(filter)
        return _expression_holds(filter, metadata)
    return _normal_holds(normalise(filter), metadata)


def _expression_holds(expression: Expression, metadata: Mapping[str, object]) -> bool:
    # Chains of one AND or OR are taken at once, so recursion is as deep as F6 counts: at most 100.
    op = expression.op
    if op is FilterOp.AND:
        return all(_expression_holds(term, metadata) for term in operands(expression))
    if op is FilterOp.OR:
        return any(_expression_holds(term, metadata) for term in operands(expression))
    if op is FilterOp.NOT:  # F3: two-valued, the complement
        return not _expression_holds(cast("Expression", expression.left), metadata)
    elements = elements_of(metadata, cast("Key", expression.left).name)
    if op is FilterOp.ISNULL:  # F1
        return not elements
    if op is FilterOp.ISNOTNULL:
        return bool(elements)
    operand = cast("Value", expression.right).value
    if op is FilterOp.NE:  # F3: the complement of ==
        return not _some_element(FilterOp.EQ, elements, operand)
    if op is FilterOp.NIN:  # F3: the complement of IN
        return not _some_element(FilterOp.IN, elements, operand)
    return _some_element(op, elements, operand)


def _normal_holds(normal: Normal, metadata: Mapping[str, object]) -> bool:
    if normal is TRUE or normal is FALSE:
        return normal is TRUE
    if type(normal) is And:
        return all(_normal_holds(part, metadata) for part in normal.parts)
    if type(normal) is Or:
        return any(_normal_holds(part, metadata) for part in normal.parts)
    elements = elements_of(metadata, normal.key)
    holds = not elements if normal.value is None else _some_element(normal.op, elements, normal.value)
    return holds is not normal.negated


def elements_of(metadata: Mapping[str, object], key: str) -> list[Scalar]:
    """Return what a filter sees under a key: the elements, none if the key is absent (F1, F2)."""
    value = metadata.get(key)
    if value is None:
        return []
    elements = list(cast("list[object]", value)) if isinstance(value, (list, tuple)) else [value]
    for position, element in enumerate(elements):
        if type(element) is datetime and element.tzinfo is not UTC:
            elements[position] = _instant(element, key)
        elif type(element) not in KIND_OF_TYPE:
            raise MetadataError(
                f"the metadata of {key!r} holds {type(element).__name__}, which no filter can compare",
                key=key,
            )
    return cast("list[Scalar]", elements)


def _some_element(op: FilterOp, elements: list[Scalar], operand: Scalar | tuple[Scalar, ...]) -> bool:
    """F2: true if some element satisfies the comparison, so false for an absent key."""
    if type(operand) is tuple:  # F5: IN, each of its values by itself
        return any(_compare(FilterOp.EQ, element, value) for element in elements for value in operand)
    return any(_compare(op, element, cast("Scalar", operand)) for element in elements)


def _compare(op: FilterOp, element: Scalar, operand: Scalar) -> bool:
    """F4: within one kind only; numbers exactly, strings by code point, datetimes by instant.

    That is what Python's own operators do: they compare int and float without rounding, str by code
    point, and aware datetimes by instant.
    """
    same_kind = KIND_OF_TYPE[type(element)] == KIND_OF_TYPE[type(operand)]
    return same_kind and _COMPARE[op](element, operand)


def _instant(element: datetime, key: str) -> datetime:
    # Python compares two zones by instant except around clock changes (PEP 495), so all are taken in UTC.
    if element.utcoffset() is None:
        raise MetadataError(f"the metadata of {key!r} holds a datetime without time zone", key=key)
    return element.astimezone(UTC)
