"""The words and literals of the filter language (F7).

`TOKEN.findall(text)` cuts a text into its tokens, the last being empty. Every character belongs to some
token, and no token is looked at twice, so the cost is linear in the text whatever it holds. Whether a
token is well-formed (a closed string, a number as in JSON) is decided where it is used: `literal`,
`unquote` and `instant` answer None for one that is not, and diagnostics.py then says why.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from entrepot.filters.values import INT_MAX, INT_MIN, is_well_formed

if TYPE_CHECKING:
    from entrepot.filters.values import Scalar

TOKEN: Final = re.compile(
    r"""[ \t\r\n]*(
        [A-Za-z_][A-Za-z0-9_.]*                     # a key or a keyword
      | [=!]=? | <[=>]? | >=? | && | \|\| | [()\[\],]
      | '(?:[^'\\\x00-\x1f]+|\\[^\x00-\x1f])*'?     # the closing quote may be missing
      | "(?:[^"\\\x00-\x1f]+|\\[^\x00-\x1f])*"?
      | `(?:[^`\\\x00-\x1f]+|\\[^\x00-\x1f])*`?
      | [-+]?\.?[0-9](?:[eE][-+]|[A-Za-z0-9_.])*    # a number, or what was meant as one
      | [^ \t\r\n]                                  # nothing of the language
      | \Z
    )""",
    re.VERBOSE,
)

RESERVED: Final = frozenset(
    "AND OR NOT IN NIN IS NULL TRUE FALSE DATETIME LIKE BETWEEN CONTAINS".split()  # noqa: SIM905 - legible
)
"""Words that are keys only when quoted, in any case."""

BARE_KEY: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*")

DIGITS: Final = frozenset("0123456789")
NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")
MAX_INT_DIGITS: Final = 20
"""Digits and sign of the longest integer that fits 64 bits."""

INSTANT: Final = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.(\d{1,6}))?(?:Z|([-+])(\d\d):(\d\d))", re.ASCII
)

_ESCAPES: Final = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_ESCAPE: Final = re.compile(
    r"\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})|\\u([0-9a-fA-F]{4})|\\(.)"
)
ONE_ESCAPE: Final = r"""\\(?:["'\\/bfnrt]|u[0-9a-fA-F]{4})"""
_QUOTED: Final = {
    "'": re.compile(rf"'(?:[^'\\]|{ONE_ESCAPE})*'"),
    '"': re.compile(rf'"(?:[^"\\]|{ONE_ESCAPE})*"'),
    "`": re.compile(rf"`(?:[^`\\]|{ONE_ESCAPE}|\\`)*`"),
}
_BOOLEANS: Final = {"true": True, "false": False}


def literal(lexeme: str) -> Scalar | None:
    """Read a string, a number, true or false; None for anything else. The caller reads datetimes."""
    first = lexeme[:1]
    if first == "'" or first == '"':  # noqa: PLR1714 - two comparisons are faster than a set
        return unquote(lexeme)
    if first in DIGITS or first == "-":
        return _number(lexeme)
    return _BOOLEANS.get(lexeme.lower())


def _number(lexeme: str) -> int | float | None:
    if not lexeme.isdigit() or (lexeme[0] == "0" and lexeme != "0"):
        match = NUMBER.fullmatch(lexeme)
        if match is None:
            return None
        if match.lastindex is not None:
            number = float(lexeme)
            return number if -float("inf") < number < float("inf") else None
    if len(lexeme) > MAX_INT_DIGITS:  # also spares converting a million digits
        return None
    integer = int(lexeme)
    return integer if INT_MIN <= integer <= INT_MAX else None


def unquote(lexeme: str) -> str | None:
    """Read a quoted string or key; None if it is not closed, has a wrong escape, or is not well-formed."""
    quote = lexeme[0]
    if "\\" not in lexeme:
        if lexeme[-1] != quote or len(lexeme) == 1:
            return None
        return lexeme[1:-1] if lexeme.isascii() or is_well_formed(lexeme) else None
    if _QUOTED[quote].fullmatch(lexeme) is None or not is_well_formed(lexeme):
        return None
    text = _ESCAPE.sub(_unescape, lexeme[1:-1])
    return text if is_well_formed(text) else None


def _unescape(match: re.Match[str]) -> str:
    high, low, unit, char = match.groups()
    if char is not None:
        return _ESCAPES.get(char, char)
    if unit is not None:
        return chr(int(unit, 16))
    return chr(0x10000 + ((int(high, 16) - 0xD800) << 10) + (int(low, 16) - 0xDC00))


def instant(text: str) -> datetime | None:
    """Read what stands in the quotes of a datetime literal, as an instant in UTC; None if it is none."""
    match = INSTANT.fullmatch(text)
    if match is None:
        return None
    year, month, day, hour, minute, second, fraction, sign, offset_hours, offset_minutes = match.groups()
    try:
        local = datetime(
            int(year),
            int(month),
            int(day),
            int(hour),
            int(minute),
            int(second),
            int(fraction.ljust(6, "0")) if fraction else 0,
            tzinfo=UTC,
        )
        if sign is None:
            return local
        if int(offset_hours) > 23 or int(offset_minutes) > 59:  # noqa: PLR2004 - a clock
            return None
        offset = timedelta(hours=int(offset_hours), minutes=int(offset_minutes))
        return local - offset if sign == "+" else local + offset
    except (ValueError, OverflowError):
        return None
