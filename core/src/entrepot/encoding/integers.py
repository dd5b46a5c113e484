"""Ordered integers: codes of numbers, instants and strings that compare as the values do."""

from __future__ import annotations

import math
import struct
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, TypeVar, cast

from entrepot.filters.expression import FilterOp
from entrepot.filters.values import kind_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from entrepot.filters.values import Kind, Scalar

T = TypeVar("T")

NUMBER_BITS: Final = 75
"""Bits of `number_code`: 64 of a double, 11 of what an integer has beyond it."""
INSTANT_BITS: Final = 59
"""Bits of `instant_code`: microseconds from year 1 to year 9999."""

_EXACT_BELOW: Final = 2**53
_INT64: Final = 2**63
_MASK: Final = 2**64 - 1
_SIGN: Final = 2**63
_DOUBLE: Final = struct.Struct(">d")
_WORD: Final = struct.Struct(">Q")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_YEAR_1: Final = (datetime(1, 1, 1, tzinfo=UTC) - _EPOCH) // _MICROSECOND
_BANDS: Final[dict[Kind, int]] = {"bool": 0, "number": 1, "datetime": 2, "str": 3}


class Ordered(NamedTuple, Generic[T]):
    """A code, and whether no other value shares it.

    Codes never reverse an order: ``a < b`` implies ``code(a) <= code(b)``. Where `exact` is true, every
    comparison of this value's code with any other code gives what the values give. Otherwise other values
    may have the same code: compare by `possible` or `certain`.
    """

    code: T
    exact: bool


_POSSIBLE: Final = {FilterOp.LT: FilterOp.LTE, FilterOp.GT: FilterOp.GTE}
_CERTAIN: Final = {FilterOp.LTE: FilterOp.LT, FilterOp.GTE: FilterOp.GT}


def possible(op: FilterOp, *, exact: bool) -> FilterOp:
    """Return the operator on codes that misses no match: ``<`` becomes ``<=`` unless the code is exact."""
    return op if exact else _POSSIBLE.get(op, op)


def certain(op: FilterOp, *, exact: bool) -> FilterOp:
    """Return the operator on codes that finds only matches: ``<=`` becomes ``<`` unless the code is exact.

    A negated leaf takes its complement, which misses no match.
    """
    return op if exact else _CERTAIN.get(op, op)


# --- numbers ----------------------------------------------------------------------------------------------


def number_code(value: float) -> int:
    """Return the code of an int64 or a finite float, in ``[0, 2**75)``.

    Two codes compare as Python compares the two numbers, int with float exactly. Equal numbers have one
    code: ``1`` and ``1.0``, ``2**53`` and ``2.0**53``, ``0.0`` and ``-0.0``.

    The upper 64 bits are the largest double that is not above the number, its IEEE 754 bits turned so
    that they sort as unsigned integers; the lower 11 bits are the number less that double. Integers of
    64 bits lie less than 1,024 above it; for floats the rest is 0.

    Raises:
        ValueError: Not finite, or beyond 64 bits.
        TypeError: Not an int or a float; a bool is neither.
    """
    if type(value) is float:
        if not math.isfinite(value):
            raise ValueError(f"{value} has no order code: it is not finite")
        return _sortable(value) << 11
    integer = _int64(value)
    double = float(integer)
    rest = 0
    if not -_EXACT_BELOW <= integer <= _EXACT_BELOW:
        if int(double) > integer:
            double = math.nextafter(double, -math.inf)
        rest = integer - int(double)
    return _sortable(double) << 11 | rest


def nearest_double(value: float) -> Ordered[float]:
    """Return the double nearest to an int64 or float; exact if no other number of D3 has the same.

    Exact below 2^53 and above 2^63 in magnitude. Between them integers share their double with others,
    and the code of a float there may be that of an integer beside it.

    Raises:
        ValueError, TypeError: As `number_code`.
    """
    double = _finite(value)
    return Ordered(double, exact=not _EXACT_BELOW <= abs(double) <= _INT64)


def split_double(value: float) -> tuple[float, int]:
    """Split an int64 or float into its nearest double and the integer remainder, both exact as doubles.

    ``value == int(double) + remainder`` for integers, with a remainder from -512 to 512; for floats it is
    0. Pairs compare as the numbers do, and equal numbers have equal pairs.

    Raises:
        ValueError, TypeError: As `number_code`.
    """
    double = _finite(value)
    return double, 0 if type(value) is float else cast("int", value) - int(double)


def _finite(value: float) -> float:
    if type(value) is float:
        if not math.isfinite(value):
            raise ValueError(f"{value} has no order code: it is not finite")
        return value + 0.0  # -0.0 becomes 0.0
    return float(_int64(value))


def _int64(value: float) -> int:
    if type(value) is not int:
        raise TypeError(f"a number is an int or a float, not {type(value).__name__}")
    if not -_INT64 <= value < _INT64:
        raise ValueError("an integer beyond 64 bits has no order code")
    return value


def _sortable(double: float) -> int:
    (bits,) = cast("tuple[int]", _WORD.unpack(_DOUBLE.pack(double + 0.0)))
    return bits ^ _MASK if bits & _SIGN else bits | _SIGN


# --- instants ---------------------------------------------------------------------------------------------


def microseconds(instant: datetime) -> int:
    """Return microseconds since 1970-01-01T00:00:00Z, exact, from -62135596800000000 (year 1) on.

    Raises:
        TypeError: It has no timezone.
    """
    return (instant - _EPOCH) // _MICROSECOND


def instant_at(microseconds: int) -> datetime:
    """Return the instant so many microseconds after 1970, in UTC: the inverse of `microseconds`.

    Raises:
        OverflowError: Outside the years 1 to 9999.
    """
    return _EPOCH + timedelta(microseconds=microseconds)


def instant_code(instant: datetime) -> int:
    """Return microseconds since 0001-01-01T00:00:00Z, in ``[0, 2**59)``: ordered, one for each instant.

    Raises:
        TypeError: It has no timezone.
    """
    return microseconds(instant) - _YEAR_1


# --- strings ----------------------------------------------------------------------------------------------


def string_code(text: str, size: int) -> Ordered[int]:
    """Return the first `size` bytes of UTF-8 as an integer of ``8 * size`` bits, zero-padded.

    The order of UTF-8 bytes is that of code points. Exact below `size` bytes; padding is unambiguous
    because strings hold no NUL (D4).
    """
    data = text.encode()
    return Ordered(int.from_bytes(data[:size].ljust(size, b"\0"), "big"), exact=len(data) < size)


def string_chunks(text: str, count: int, size: int = 6) -> Ordered[tuple[int, ...]]:
    """Cut the UTF-8 bytes of a string into at most `count` integers of `size` bytes (48 bits by default).

    The last chunk is zero-padded; a string that ends with a full chunk gets one chunk of 0 more, so the
    first chunk that is not full ends the string. Tuples compare as strings do. Exact below
    ``count * size`` bytes, as only then the end is reached. Doubles hold chunks of up to 6 bytes exactly.

    `all_of_any` and `any_of_all` say how an engine compares tuples.
    """
    data = text.encode()
    needed = min(count, len(data) // size + 1)
    chunks = tuple(
        int.from_bytes(data[at : at + size].ljust(size, b"\0"), "big") for at in range(0, needed * size, size)
    )
    return Ordered(chunks, exact=len(data) < count * size)


class ChunkTest(NamedTuple):
    """One comparison of the chunk at `position` (from 0): ``chunk op value``; false if it is missing."""

    position: int
    op: FilterOp
    value: int


_STRICT: Final = {
    FilterOp.LT: FilterOp.LT,
    FilterOp.LTE: FilterOp.LT,
    FilterOp.GT: FilterOp.GT,
    FilterOp.GTE: FilterOp.GT,
}
_LOOSE: Final = {FilterOp.LT: FilterOp.LTE, FilterOp.GT: FilterOp.GTE}


def all_of_any(op: FilterOp, chunks: Sequence[int]) -> list[list[ChunkTest]]:
    """Write ``stored op chunks`` as a conjunction of unions, for engines that nest no deeper.

    Union j says: an earlier chunk decides, or chunk j does not contradict. `op` is LT, LTE, GT or GTE;
    pass it through `possible` or `certain` if `chunks` is not exact.
    """
    strict, last = _STRICT[op], len(chunks) - 1
    return [
        [
            *(ChunkTest(i, strict, chunks[i]) for i in range(j)),
            ChunkTest(j, op if j == last else _LOOSE[strict], chunks[j]),
        ]
        for j in range(len(chunks))
    ]


def any_of_all(op: FilterOp, chunks: Sequence[int]) -> list[list[ChunkTest]]:
    """Write ``stored op chunks`` as a union of conjunctions: equal up to j, then chunk j decides.

    Arguments as for `all_of_any`.
    """
    strict, last = _STRICT[op], len(chunks) - 1
    return [
        [
            *(ChunkTest(i, FilterOp.EQ, chunks[i]) for i in range(j)),
            ChunkTest(j, op if j == last else strict, chunks[j]),
        ]
        for j in range(len(chunks))
    ]


# --- all kinds --------------------------------------------------------------------------------------------


def scalar_code(value: Scalar, size: int = 16) -> Ordered[int]:
    """Return one integer for a value of any kind; each kind has a band of its own (`scalar_band`).

    Within a band the order is that of the values. Strings are coded by `string_code` with `size` bytes
    (at most 17 bytes for the whole integer if `size` is 16); the other kinds are exact. No code is
    negative, so -1 can stand for an absent key.
    """
    kind = kind_of(value)
    if kind == "str":
        ordered = string_code(cast("str", value), size)
    elif kind == "datetime":
        ordered = Ordered(instant_code(cast("datetime", value)), exact=True)
    elif kind == "number":
        ordered = Ordered(number_code(cast("float", value)), exact=True)
    else:
        ordered = Ordered(int(cast("bool", value)), exact=True)
    return Ordered(scalar_band(kind, size).start + ordered.code, ordered.exact)


def scalar_band(kind: Kind, size: int = 16) -> range:
    """Return the codes that `scalar_code` gives to a kind: ``start <= code < stop``.

    ``x < v`` is ``start <= code(x) < code(v)``, ``x > v`` is ``code(v) < code(x) < stop`` (F4).
    """
    width = max(NUMBER_BITS, 8 * size)
    return range(_BANDS[kind] << width, (_BANDS[kind] + 1) << width)
