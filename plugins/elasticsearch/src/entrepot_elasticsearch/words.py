"""Words of texts and queries for FULLTEXT (S9). Pure functions.

The engine's standard analyzer takes ``example.com``, ``it's`` and ``foo_bar`` for one word each (Unicode Standard
Annex 29). So the words of such runs are indexed as well, in the field `words`, and a query is given as its words.
"""

from __future__ import annotations

import re
from typing import Final

_WORD: Final = re.compile(r"[^\W_]+")
# In ASCII, what Annex 29 may join words by; beyond, every character is taken for such.
_RUN: Final = re.compile(r"[\w.,:;'\x80-\U0010ffff]+")
LONGEST: Final = 8000
"""Characters of a word that is indexed whole; a term of the engine has at most 32,766 bytes."""
RANKED: Final = 1000
"""Most words of a query that are ranked by their frequency; the others are looked for and weigh alike."""


def words_in(text: str) -> list[str]:
    """Return the words of a text in order: runs of letters and digits, lower-cased."""
    return _WORD.findall(text.lower())


def joined_words(text: str) -> str | None:
    """Return the words of a text that the engine may take for one with others, or None."""
    found: list[str] = []
    for run in _RUN.findall(text):
        words = _WORD.findall(run)
        if len(words) > 1 or (words and "_" in run):
            found += words
    return " ".join(found) or None
