"""Interval tokens: ranges for engines that know only equality.

A value's ordered integer is read as digits of 4 bits. A document carries one token for each leading run
of digits, the interval of all values that begin so: 19 tokens for a number, 15 for an instant, two a byte
for a string. A range is then the union of the intervals that fill it, at most 15 for each digit: it holds
exactly if the document carries one of their tokens.

With lists it is enough to write the tokens of the least and the greatest element (`extremes`), but then
in two fields or under two keys: a token of the one must not answer for the other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from entrepot.encoding import integers
from entrepot.encoding.integers import INSTANT_BITS, NUMBER_BITS, Ordered
from entrepot.encoding.tokens import KIND_LETTERS, digest
from entrepot.filters.expression import FilterOp
from entrepot.filters.values import kind_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from entrepot.filters.values import Scalar

_DIGIT = 4
_BASE = 2**_DIGIT


def interval_tokens(key: str, value: Scalar, *, string_bytes: int = 16) -> list[str]:
    """Return the tokens that a document carries for one element, from the widest interval to the value.

    Args:
        key: The metadata key.
        value: A number, a datetime or a string; booleans have no ranges and get no token.
        string_bytes: Bytes of a string that are told apart; 2 tokens each.
    """
    if kind_of(value) == "bool":
        return []
    ordered, digits = _digits(value, string_bytes)
    letter = KIND_LETTERS[kind_of(value)]
    return [
        _token(key, letter, level, ordered.code >> _DIGIT * (digits - level))
        for level in range(1, digits + 1)
    ]


def range_tokens(
    key: str, op: FilterOp, operand: Scalar, *, certain: bool = False, string_bytes: int = 16
) -> Ordered[list[str]]:
    """Return the tokens of which a matching element carries one, and whether only matching ones do.

    Numbers, datetimes and strings below `string_bytes` bytes are exact. For longer strings the tokens
    find every match and perhaps more; with `certain` only matches, so that "carries none of them" finds
    every match of the negated leaf. There are at most 15 tokens a digit (285 for a number), possibly
    none.

    Args:
        key: The metadata key.
        op: LT, LTE, GT or GTE.
        operand: A number, a datetime or a string.
        certain: Ask for the subset instead of the superset.
        string_bytes: As given to `interval_tokens`.

    Raises:
        TypeError: The operand is a bool, which has no order (F5).
    """
    (code, exact), digits = _digits(operand, string_bytes)
    narrowed = (integers.certain if certain else integers.possible)(op, exact=exact)
    start, stop = {
        FilterOp.LT: (0, code),
        FilterOp.LTE: (0, code + 1),
        FilterOp.GT: (code + 1, _BASE**digits),
        FilterOp.GTE: (code, _BASE**digits),
    }[narrowed]
    letter = KIND_LETTERS[kind_of(operand)]
    return Ordered(
        [_token(key, letter, level, prefix) for level, prefix in _cover(start, stop, digits)], exact
    )


def _digits(value: Scalar, string_bytes: int) -> tuple[Ordered[int], int]:
    """Return the ordered integer and its number of digits."""
    kind = kind_of(value)
    if kind == "str":
        return integers.string_code(cast("str", value), string_bytes), 2 * string_bytes
    if kind == "number":
        return Ordered(integers.number_code(cast("float", value)), exact=True), -(-NUMBER_BITS // _DIGIT)
    if kind == "datetime":
        return Ordered(integers.instant_code(cast("datetime", value)), exact=True), -(-INSTANT_BITS // _DIGIT)
    raise TypeError("booleans have no ranges")


def _cover(start: int, stop: int, digits: int) -> Iterator[tuple[int, int]]:
    """Split ``[start, stop)`` into the fewest aligned intervals, as (level, prefix); none of level 0."""
    while start < stop:
        level = digits
        width = 1
        while level > 1 and start % (width * _BASE) == 0 and start + width * _BASE <= stop:
            width *= _BASE
            level -= 1
        yield level, start // width
        start += width


def _token(key: str, letter: str, level: int, prefix: int) -> str:
    return digest(
        "in", key, letter, level.to_bytes(2, "big"), prefix.to_bytes((prefix.bit_length() + 7) // 8, "big")
    )
