"""Keys and operands of filters: what is allowed (D3, D4, F5), and the kinds that never mix (F4)."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, time
from enum import Enum
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from entrepot.errors import ArgumentTypeError, FilterValueError

if TYPE_CHECKING:
    from collections.abc import Iterable

Scalar: TypeAlias = str | bool | int | float | datetime
"""One operand of a filter, by exact type: subclasses are refused, datetimes are in UTC."""

Kind: TypeAlias = Literal["str", "bool", "number", "datetime"]
"""The four kinds of values; a comparison holds only within one of them (F4)."""

KIND_OF_TYPE: Final[dict[type, Kind]] = {
    str: "str",
    bool: "bool",
    int: "number",
    float: "number",
    datetime: "datetime",
}

MAX_KEY_LENGTH: Final = 512
"""Code points in the longest key (D3)."""

INT_MIN: Final = -(2**63)
INT_MAX: Final = 2**63 - 1


def is_well_formed(text: str) -> bool:
    """Whether a string is Unicode that every engine can keep: no NUL, no lone surrogate (D4)."""
    if "\0" in text:
        return False
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def check_key(name: object) -> str:
    """Return `name` if it can be a metadata key (D3).

    Raises:
        ArgumentTypeError: It is not a string, or a subclass of str.
        FilterValueError: It is empty, too long, or not well-formed.
    """
    if type(name) is not str:
        raise ArgumentTypeError(
            f"a filter key is a str, not {_type_name(name)}: {_short(name)}",
            hint=_conversion(name) if isinstance(name, str) else None,
        )
    if not name:
        raise FilterValueError("a filter key is a non-empty string")
    if len(name) > MAX_KEY_LENGTH:
        raise FilterValueError(
            f"a filter key has at most {MAX_KEY_LENGTH} characters, this one has {len(name)}"
        )
    if not is_well_formed(name):
        raise FilterValueError(f"a filter key holds no NUL and no lone surrogate: {_short(name)}")
    return name


def check_scalar(value: object) -> Scalar:
    """Return `value` as a filter compares it: datetimes in UTC, everything else unchanged (F5).

    Raises:
        FilterValueError: It is not one of the allowed kinds, or outside of the range of its kind.
    """
    if type(value) is str:
        if not is_well_formed(value):
            raise FilterValueError(f"a string holds no NUL and no lone surrogate: {_short(value)}")
        return value
    if type(value) is bool:
        return value
    if type(value) is int:
        return check_int(value)
    if type(value) is float:
        if not math.isfinite(value):
            raise FilterValueError(
                f"a filter compares with finite numbers, not {value!r}",
                hint="NaN and infinity are never stored; use IS NULL for absence",
            )
        return value
    if type(value) is datetime:
        return check_datetime(value)
    raise refusal(value)


def check_int(value: int) -> int:
    """Return `value` if it fits 64 bits, else raise FilterValueError (D3)."""
    if INT_MIN <= value <= INT_MAX:
        return value
    raise FilterValueError(
        f"an integer in a filter has 64 bits (-2^63 to 2^63-1): {_short(value)}",
        hint="write it as a float if its exact value does not matter",
    )


def check_datetime(value: datetime) -> datetime:
    """Return the same instant in UTC; naive or out of the years 1 to 9999 is a FilterValueError (D3)."""
    if value.utcoffset() is None:
        raise FilterValueError(
            f"a datetime in a filter needs a time zone: {value.isoformat()}",
            hint="for UTC: value.replace(tzinfo=datetime.UTC)",
        )
    try:
        return value.astimezone(UTC)
    except OverflowError:
        raise FilterValueError(
            f"a datetime in a filter lies in the years 1 to 9999 of UTC: {value.isoformat()}"
        ) from None


def check_operand(value: object) -> Scalar | tuple[Scalar, ...]:
    """Return a scalar, or for a list or tuple a tuple of scalars (F5); the kinds may mix."""
    if type(value) is list or type(value) is tuple:
        items: list[object] | tuple[object, ...] = value  # pyright: ignore[reportUnknownVariableType]
        checked: list[Scalar] = []
        for position, item in enumerate(items):
            if type(item) is list or type(item) is tuple:
                raise FilterValueError(
                    f"element {position} of the list is a list itself: IN takes a flat list"
                )
            try:
                checked.append(check_scalar(item))
            except FilterValueError as error:
                raise FilterValueError(
                    f"element {position} of the list: {error.message}", hint=error.hint or None
                ) from None
        return tuple(checked)
    return check_scalar(value)


def kind_of(value: Scalar) -> Kind:
    """Return the kind of one operand or stored element (F4)."""
    return KIND_OF_TYPE[type(value)]


def by_kind(values: Iterable[Scalar]) -> dict[Kind, tuple[Scalar, ...]]:
    """Group the elements of an IN list by kind, in order: engines often want one clause a kind."""
    groups: dict[Kind, list[Scalar]] = {}
    for value in values:
        groups.setdefault(KIND_OF_TYPE[type(value)], []).append(value)
    return {kind: tuple(group) for kind, group in groups.items()}


def same_value(left: Scalar | tuple[Scalar, ...] | None, right: Scalar | tuple[Scalar, ...] | None) -> bool:
    """Equality that knows types: True, 1 and 1.0 differ (F8). Zero equals minus zero, as in Python."""
    if type(left) is not type(right) or left != right:
        return False
    if type(left) is tuple and type(right) is tuple:
        return list(map(type, left)) == list(map(type, right))
    return True


def hash_value(value: Scalar | tuple[Scalar, ...] | None) -> int:
    """Hash that agrees with `same_value`."""
    if type(value) is tuple:
        return hash((tuple(map(type, value)), value))
    return hash((type(value), value))


def refusal(value: object) -> FilterValueError:
    """Build the error for an operand of a type that is not allowed, saying what to use instead."""
    if value is None:
        return FilterValueError(
            "a filter does not compare with null",
            hint="use IS NULL or IS NOT NULL: F.key.is_null(), F.key.is_not_null()",
        )
    return FilterValueError(
        f"a filter does not compare with {_type_name(value)}: {_short(value)}", hint=_conversion(value)
    )


def _conversion(value: object) -> str:
    """Say how to make an allowed operand out of one that is not."""
    kind = type(value)
    package = kind.__module__.partition(".")[0]
    if isinstance(value, Enum):
        return "use its value: member.value"
    if package == "pandas" and isinstance(value, datetime):
        return "convert it: value.to_pydatetime(), with a time zone"
    if package == "numpy" and kind.__name__ == "ndarray":
        return "convert it: value.tolist()"
    if package == "numpy" and kind.__name__ in ("datetime64", "timedelta64"):
        return "convert it to a datetime.datetime with a time zone"
    if package == "numpy" or (hasattr(kind, "item") and hasattr(kind, "dtype")):
        return "convert it: value.item()"
    for exact in (str, int, float):
        if isinstance(value, exact):
            return f"subclasses are not taken; convert it: {exact.__name__}(value)"
    if isinstance(value, datetime):
        return "subclasses are not taken; convert it to a datetime.datetime with a time zone"
    if isinstance(value, date):
        return "use an instant: datetime.datetime(year, month, day, tzinfo=datetime.UTC)"
    if isinstance(value, time):
        return "use an instant: a datetime.datetime with a time zone"
    if isinstance(value, set | frozenset | range) or hasattr(kind, "__next__"):
        return "convert it: list(value)"
    if isinstance(value, list | tuple):
        return "subclasses are not taken; convert it: list(value)"
    if isinstance(value, bytes | bytearray):
        return "decode it, or store and compare its hexadecimal or base64 text"
    return "allowed are str, bool, int, float, aware datetime, and lists of them after IN"


def _type_name(value: object) -> str:
    kind = type(value)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def _short(value: object) -> str:
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001 - a foreign repr must not hide the error that is being built
        return "(no repr)"
    return text if len(text) <= 80 else f"{text[:77]}..."  # noqa: PLR2004 - one line of a terminal
