"""What filters ask of a document: tokens of its keys and values in one array, whatever the keys. Pure functions.

A token is the key, a NUL, and the value in order-preserving text: so one element of the array holds key, kind and value,
and a range of tokens within one key and one kind is met by one element (F2, F4). The key and a NUL alone say that the key
is there (F1). MongoDB compares strings by their UTF-8, which is the order of code points; tokens are written so that
UTF-16, by which some servers of its protocol compare, gives the same order.

A key of more than 128 bytes stands as a NUL and a digest, which no key can be.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from entrepot.encoding import KIND_LETTERS, digest, element_text, utf16_ordered
from entrepot.metadata import elements

if TYPE_CHECKING:
    from collections.abc import Mapping

    from entrepot.filters.values import Kind, Scalar
    from entrepot.metadata import MetadataValue

MOST_KEY: Final = 128
"""UTF-8 bytes of a key that stands as it is."""
ALWAYS: Final = "\0"
"""A token that every document has and no key gives, so that the array is never empty or missing."""


@lru_cache(maxsize=4096)
def prefix(key: str) -> str:
    """Return what the tokens of a key begin with, which is the token of its presence."""
    name = utf16_ordered(key) if len(key.encode()) <= MOST_KEY else "\0" + digest("key", key)
    return name + "\0"


def token(key: str, value: Scalar) -> str:
    """Return the token of a value: equal for values that `==` calls equal (F4), ordered as they are."""
    text = element_text(value)
    return prefix(key) + (utf16_ordered(text) if type(value) is str else text)


def tokens_of(metadata: Mapping[str, MetadataValue]) -> list[str]:
    """Return what is indexed of metadata, each once."""
    found: dict[str, None] = {ALWAYS: None}
    for key, value in metadata.items():
        values = elements(value)
        if values:
            found[prefix(key)] = None
            for element in values:
                found[token(key, element)] = None
    return list(found)


class Band(NamedTuple):
    """The tokens that a key's values of one kind can have: from `low`, below `high`."""

    low: str
    high: str


def band(key: str, kind: Kind) -> Band:
    """Return the bounds of a key's values of one kind."""
    letter = KIND_LETTERS[kind]
    return Band(prefix(key) + letter, prefix(key) + chr(ord(letter) + 1))
