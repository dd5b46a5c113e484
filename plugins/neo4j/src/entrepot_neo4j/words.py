"""Words of texts and queries for FULLTEXT (S9). Pure functions.

The full-text index cuts at white space only, and is given the words alone, lower-cased: so no sign is syntax, and no
word is stemmed, stopped or joined to another. A word that the index would cut stands as a digest, in texts and queries
alike.
"""

from __future__ import annotations

import re
from typing import Final

from entrepot.encoding import digest

_WORD: Final = re.compile(r"[^\W_]+")
_LONGEST: Final = 200
"""Characters of a word that stands as it is; the engine cuts after 255 UTF-16 units."""
_TOGETHER: Final = 1000
"""Words of one query; the engine takes 1,024."""


def words_in(text: str) -> list[str]:
    """Return the words of a text in order: runs of letters and digits, lower-cased, long ones as a digest."""
    return [
        word if len(word) <= _LONGEST else "long" + digest("word", word)
        for word in _WORD.findall(text.lower())
    ]


def queries_of(text: str) -> list[str]:
    """Return queries, in the syntax of Lucene, that together find any of the words of a text."""
    words = list(dict.fromkeys(words_in(text)))
    return [" ".join(words[at : at + _TOGETHER]) for at in range(0, len(words), _TOGETHER)]
