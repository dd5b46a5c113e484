"""Words of texts and queries, for the engine's full-text search (S9). Pure functions.

The contract knows words: runs of letters and digits, lower-cased. The engine cuts texts at spaces, tabs and most
ASCII signs, but not at ``_`` or at signs outside of ASCII: ``snake_case`` and ``“quoted”`` would be words to it.
So the text itself is indexed, and beside it, in the field ``w``, the words of the parts that the engine would
cut in another way: for most texts nothing.

It leaves control characters and backslashes out of words, the ends of lines too, and so makes one word of what
stands around them; a backslash also hides the blank behind it. So a text is stored with a space behind each
control character but the tab, and one before each backslash, which reading takes out again.
"""

from __future__ import annotations

import re
from typing import Final

from entrepot.encoding import digest

_WORD: Final = re.compile(r"[^\W_]+")
_SPACE: Final = re.compile(r"(?<!\\)[ \t]+")
_CONTROL: Final = r"\x01-\x08\n-\x1f\x7f"
_ODD: Final = re.compile(rf"[_\u0130]|[^\w \t,.<>{{}}\[\]\"':;!@#$%^&*()\-+=~{_CONTROL}]")
"""A sign that is no letter and at which the engine does not cut, or not in the way of the contract; and the one
letter that is two signs in lower case, of which one is no letter."""
_CONTROLS: Final = [chr(code) for code in (*range(1, 9), *range(10, 32), 127)]
_LONG: Final = 120
_LONG_WORD: Final = re.compile(rf"[^\W_]{{{_LONG + 1},}}")


def words_of(text: str) -> list[str]:
    """Return the words of a text, lower-cased, each once, in order; a very long one as its digest."""
    return list(dict.fromkeys(map(_short, _WORD.findall(text.lower()))))


def _short(word: str) -> str:
    return word if len(word) <= _LONG else digest("word", word)


def spaced(text: str) -> str:
    """Return a text as it is stored: so that the engine makes one word of no two."""
    for sign in _CONTROLS:
        if sign in text:
            text = text.replace(sign, f"{sign} ")
    return text.replace("\\", " \\")


def unspaced(stored: str) -> str:
    """Return the text that was stored by `spaced`."""
    text = stored.replace(" \\", "\\")
    for sign in _CONTROLS:
        if sign in text:
            text = text.replace(f"{sign} ", sign)
    return text


def odd_words(text: str) -> str:
    """Return the words that the engine would not find by itself, with spaces between them."""
    found: dict[str, None] = {}
    if _ODD.search(text):
        for part in _SPACE.split(text):
            if _ODD.search(part):
                found.update(dict.fromkeys(words_of(part)))
    if len(text) > _LONG:
        found.update(dict.fromkeys(map(_short, _LONG_WORD.findall(text.lower()))))
    return " ".join(found)
