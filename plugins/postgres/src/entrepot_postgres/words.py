"""Words of texts and queries, as PostgreSQL's full-text search takes them ready-made (S9). Pure functions.

PostgreSQL's own parser knows addresses, paths, numbers and hyphenated words, and treats a query in them as
it likes; the contract knows words: runs of letters and digits, lower-cased, on every backend. So texts and
queries are cut here, and go to the server as tsvector and tsquery, in quotes, where nothing is syntax.
"""

from __future__ import annotations

import re
from hashlib import blake2b
from typing import Final

_WORD: Final = re.compile(r"[^\W_]+")
_MAX_WORD_BYTES: Final = 2046
_MAX_PLACE: Final = 16_383
_MAX_PLACES: Final = 255


def words_of(text: str) -> list[str]:
    """Return the words of a text, lower-cased, in order; one that PostgreSQL cannot hold as its digest."""
    words = _WORD.findall(text.lower())
    if len(text) > _MAX_WORD_BYTES // 4:
        return [_short(word) for word in words]
    return words


def _short(word: str) -> str:
    if len(word) <= _MAX_WORD_BYTES // 4:
        return word
    encoded = word.encode()
    return word if len(encoded) <= _MAX_WORD_BYTES else blake2b(encoded, digest_size=20).hexdigest()


def tsvector(text: str | None) -> str:
    """Return the words of a text with their places, as the text form of a tsvector.

    Words hold letters and digits only, so quotes around them need no escapes. PostgreSQL keeps at most
    255 places of a word, and places up to 16,383.
    """
    places: dict[str, list[str]] = {}
    for place, word in enumerate(words_of(text or ""), start=1):
        known = places.setdefault(word, [])
        if len(known) < _MAX_PLACES and (place <= _MAX_PLACE or not known):
            known.append(str(min(place, _MAX_PLACE)))
    return " ".join(f"'{word}':{','.join(known)}" for word, known in places.items())


def tsquery(text: str) -> str | None:
    """Return a query for any word of a text, or None if there is none."""
    words = dict.fromkeys(words_of(text))
    return " | ".join(f"'{word}'" for word in words) or None
