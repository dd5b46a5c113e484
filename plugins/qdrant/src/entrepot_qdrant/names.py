"""Names in the engine: the one place where a name of the user's becomes part of a name there (F10). Pure functions.

A collection keeps its name if that has letters, digits, ``_``, ``-`` and ``.`` alone and is short; others are
known by a digest, and the collection records its name. A metadata key becomes the last part of a path in
the payload; the language of paths cannot quote every key, so a key of other characters is known by a digest.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from entrepot.encoding import digest, engine_id, key_token

_COLLECTION: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
_KEY: Final = re.compile(r"[A-Za-z0-9_]{1,64}")
_UUID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_NUMBER: Final = re.compile(r"0|[1-9][0-9]{0,19}")
_NUMBERS_END: Final = 2**64

NUMBERS: Final = "n"
WIDE: Final = "w"
INSTANTS: Final = "d"
STRINGS: Final = "o"
TOKENS: Final = "t"


def collection_name(name: str) -> str:
    """Return the engine's name of a collection, different for every name."""
    # A name that begins with a hyphen is never kept, so none meets a digest.
    return name if _COLLECTION.fullmatch(name) else "-" + digest("collection", name)


def point_id(name: str) -> str:
    """Return the id of a document's point."""
    return str(engine_id(name))


def as_point(text: str) -> int | str | None:
    """Return the id of a point that is written like this, None if none is: a UUID, or an integer of 64 bits."""
    if _UUID.fullmatch(text):
        return text
    number = int(text) if _NUMBER.fullmatch(text) else -1
    return number if 0 <= number < _NUMBERS_END else None


@lru_cache(maxsize=4096)
def key_name(key: str) -> str:
    """Return the name of a metadata key in a path: itself, or a hyphen and a digest."""
    return key if _KEY.fullmatch(key) else "-" + key_token(key)
