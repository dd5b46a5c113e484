"""Ordered text: codes that sort as the values do, in an alphabet no engine misreads."""

from __future__ import annotations

import re
from base64 import b32hexencode
from datetime import UTC
from typing import TYPE_CHECKING, Final, cast

from entrepot.encoding.integers import Ordered, instant_code, number_code
from entrepot.encoding.tokens import KIND_LETTERS, digest
from entrepot.filters.expression import FilterOp
from entrepot.filters.values import kind_of

if TYPE_CHECKING:
    from datetime import datetime

    from entrepot.filters.values import Scalar

_ABOVE_ALL: Final = "w"  # sorts after 0-9a-v
_MOVED: Final = re.compile("[\ud7ff\ue000-\uffff]")


def number_text(value: float) -> str:
    """Return `number_code` in 15 characters of ``0-9a-v``.

    Raises:
        ValueError, TypeError: As `number_code`.
    """
    return _base32((number_code(value) << 5).to_bytes(10, "big"))[:15]


def instant_text(instant: datetime) -> str:
    """Return `instant_code` in 12 characters of ``0-9a-v``.

    Raises:
        TypeError: The datetime has no timezone.
    """
    return _base32((instant_code(instant) << 5).to_bytes(8, "big"))[:12]


def iso_instant(instant: datetime) -> str:
    """Return the instant as ``2026-01-31T12:00:00.123456Z``: UTC, always 27 characters, in order.

    Raises:
        ValueError: The datetime has no timezone.
    """
    if instant.utcoffset() is None:
        raise ValueError("a datetime without timezone is no instant")
    return instant.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def compact(code: str) -> str:
    """Cut trailing zeros off a code: codes of one width keep their order and stay distinct.

    Small numbers shrink to a third: 2020 is ``o2fp`` instead of ``o2fp00000000000``. Do not mix with
    codes that are not compact.
    """
    return code.rstrip("0") or "0"


def string_text(text: str, size: int = 40) -> Ordered[str]:
    """Return a string in ``0-9a-v``: its bytes up to `size`, beyond that `size` bytes and a digest.

    Up to `size` bytes of UTF-8 the code is base32hex of all bytes, whose order is that of code points. A
    longer string becomes the code of its first `size` bytes and 24 characters of its `digest`; it sorts
    right against every string that differs within them or is shorter, and in no order against others.
    Codes are equal only for equal strings (120 bits of BLAKE2b beyond `size`). With 40 bytes a code
    has at most 88 characters.

    For ranges take `string_bound`; the operators of `possible` and `certain` are not enough here, as
    digests stand between the codes.
    """
    data = text.encode()
    if len(data) <= size:
        return Ordered(_base32(data), exact=True)
    return Ordered(_base32(data[:size]) + digest("long", data), exact=False)


def string_bound(
    op: FilterOp, operand: str, *, certain: bool = False, size: int = 40
) -> tuple[FilterOp, str]:
    """Return the operator and the text to compare codes of `string_text` with.

    For an operand of at most `size` bytes the answer is exact. For a longer one it finds every string x
    with ``x op operand`` and perhaps others that share its first `size` bytes; with `certain` it finds
    only matches and may miss such others, so that its complement serves a negated leaf.

    Args:
        op: LT, LTE, GT or GTE.
        operand: The string that filters compare with.
        certain: Ask for the subset instead of the superset.
        size: As given to `string_text`.
    """
    code, exact = string_text(operand, size)
    if exact:
        return op, code
    # Codes between these two belong to long strings with the same first bytes; their order is not known.
    below, above = code[: -len(digest())], code[: -len(digest())] + _ABOVE_ALL
    if op in (FilterOp.LT, FilterOp.LTE):
        return (FilterOp.LTE, below) if certain else (FilterOp.LT, above)
    return (FilterOp.GTE, above) if certain else (FilterOp.GT, below)


def element_text(value: Scalar) -> str:
    """Return kind letter and value, short: ``b1``, ``no2fp``, ``d`` and an instant, ``s`` and the string.

    Sorts as the values within a kind, and kinds lie apart, so ranges between ``"n"`` and ``"o"`` meet
    numbers only. Strings are kept whole and as they are: for engines that compare text by code point
    and neither trim nor cut it.
    """
    kind = kind_of(value)
    if kind == "str":
        code = cast("str", value)
    elif kind == "number":
        code = compact(number_text(cast("float", value)))
    elif kind == "datetime":
        code = compact(instant_text(cast("datetime", value)))
    else:
        code = "1" if value else "0"
    return KIND_LETTERS[kind] + code


def utf16_ordered(text: str) -> str:
    """Rewrite a string so that its UTF-16 units sort as its code points did.

    UTF-16 puts U+E000 to U+FFFF after the characters beyond U+FFFF, which are written with surrogates.
    They are moved below: U+D7FF becomes U+D7FF U+0001, and U+E000 to U+FFFF become U+D7FF and a
    character from U+0002 to U+2001. All other characters stay, and different strings stay different.
    The order by code point is kept as well.
    """
    return _MOVED.sub(_below_surrogates, text)


def _below_surrogates(match: re.Match[str]) -> str:
    character = match[0]
    return "\ud7ff\x01" if character == "\ud7ff" else "\ud7ff" + chr(ord(character) - 0xE000 + 2)


def _base32(data: bytes) -> str:
    """Encode as base32hex of RFC 4648 without padding, in lower case."""
    return b32hexencode(data).rstrip(b"=").decode().lower()
