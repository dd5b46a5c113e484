"""Places in a filter text: its tokens with their positions, and how an error shows them (F8)."""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING, Final, NamedTuple

from entrepot.filters.lexer import RESERVED, TOKEN, literal

if TYPE_CHECKING:
    from collections.abc import Sequence

LINE_BREAK: Final = re.compile(r"\r\n|\r|\n")

_WIDTH: Final = 96
"""Columns of the excerpt."""


class Token(NamedTuple):
    """A token and the index of its first character."""

    text: str
    start: int

    @property
    def end(self) -> int:
        """Index behind its last character."""
        return self.start + len(self.text)


def tokens_of(text: str) -> list[Token]:
    """Cut a text into tokens with their positions; the last is empty and stands at the end."""
    return [Token(match[1], match.start(1)) for match in TOKEN.finditer(text)]


def is_word(text: str) -> bool:
    """Whether a token is a bare key or a keyword."""
    return text[:1].isascii() and (text[:1].isalpha() or text[:1] == "_")


def is_value(text: str) -> bool:
    """Whether a token is a literal by itself."""
    return text[:1] != "`" and literal(text) is not None


def describe(text: str) -> str:
    """Name a token as errors do."""
    if not text:
        return "the end of the text"
    shown = shorten(text)
    first = text[0]
    if text.upper() in RESERVED:
        return f"the word {text.upper()}"
    if is_word(text):
        return f"the word {shown}"
    if first in "'\"":
        return f"the string {shown}"
    if first == "`":
        return f"the quoted key {shown}"
    if first in "0123456789" or (len(text) > 1 and first in "+-."):
        return f"the number {shown}"
    if text.isascii() and text.isprintable():
        return f'"{text}"' if text == "'" else f"'{text}'"
    name = unicodedata.name(first, "")
    shown = f"'{first}' " if first.isprintable() else ""
    return f"the character {shown}(U+{ord(first):04X}{', ' + name if name else ''})"


def shorten(text: str) -> str:
    """Cut what is long, and write lone surrogates as escapes, which no terminal could print."""
    safe = text.encode("utf-8", "backslashreplace").decode()
    return safe if len(safe) <= 40 else f"{safe[:37]}..."  # noqa: PLR2004 - leaves the sentence in one line


def either(choices: Sequence[str]) -> str:
    """Write a list of choices as words."""
    if len(choices) == 1:
        return choices[0]
    return f"{', '.join(choices[:-1])} or {choices[-1]}"


def excerpt_of(text: str, line_start: int, start: int, end: int) -> str:
    """Return the line of the place, trimmed around it, and carets under it.

    Both lines are built column by column: tabs and control characters are shown as one blank or one
    replacement sign, and wide characters get two carets or blanks.
    """
    line_end = len(text)
    found = LINE_BREAK.search(text, start)
    if found:
        line_end = found.start()
    end = min(end, max(line_end, start + 1))
    left, right = line_start, line_end
    if right - left > _WIDTH:
        left = max(line_start, start - _WIDTH // 2)
        right = min(line_end, left + _WIDTH)
    shown = ["... " if left > line_start else ""]
    carets = [" " * len(shown[0])]
    for position in range(left, right):
        char = text[position]
        glyph = char if char.isprintable() else " " if char == "\t" else "\N{REPLACEMENT CHARACTER}"
        shown.append(glyph)
        carets.append(("^" if start <= position < end else " ") * _columns(glyph))
    if right < line_end:
        shown.append(" ...")
    if start >= right:
        carets.append("^")
    return f"  {''.join(shown)}\n  {''.join(carets).rstrip()}"


def _columns(char: str) -> int:
    if unicodedata.combining(char) or unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1
