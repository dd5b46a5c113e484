"""Words of texts and queries, for FULLTEXT (S9). Pure functions.

The engine's analyzers differ between versions; so what they get is words in lower case with a space between them,
which each of them takes apart alike.
"""

from __future__ import annotations

import re
from typing import Final

_WORD: Final = re.compile(r"[^\W_]+")


def words_of(text: str) -> str:
    """Return the words of a text, runs of letters and digits in lower case, with a space between them."""
    return " ".join(_WORD.findall(text.lower()))
