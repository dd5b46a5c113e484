"""What filters ask of a document: tokens of its keys and values in one field, whatever the keys. Pure functions.

A token is the key, a NUL, and the value in order-preserving text: so one term holds key, kind and value, and a range
of terms within one key and one kind is met by one element (F2, F4). The key and a NUL alone say that the key is
there (F1). The engine compares terms by their UTF-8, which is the order of code points.

A term has at most 32,766 bytes and a bound of a range at most 1,000. So a key of more than 128 bytes stands as a NUL
and a digest, which no key can be; and a string of more than 512 bytes stands as the letter S and a digest, which
serves equality, while the field `long` holds it whole, for ranges.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from entrepot.encoding import KIND_LETTERS, digest, element_text
from entrepot.filters.values import kind_of
from entrepot.metadata import elements

if TYPE_CHECKING:
    from collections.abc import Mapping

    from entrepot.filters.values import Kind, Scalar
    from entrepot.metadata import MetadataValue

MOST_KEY: Final = 128
"""UTF-8 bytes of a key that stands as it is."""
MOST_STRING: Final = 512
"""UTF-8 bytes of a string that stands as it is."""
_LONG: Final = "S"
_STRING: Final = KIND_LETTERS["str"]


class Tokens(NamedTuple):
    """What is indexed of a document's metadata.

    Attributes:
        tokens: Of every key, and of every different value.
        long: The strings that are too long for a token, whole.
    """

    tokens: list[str]
    long: list[str]


@lru_cache(maxsize=4096)
def prefix(key: str) -> str:
    """Return what the tokens of a key begin with, which is the token of its presence."""
    name = key if len(key.encode()) <= MOST_KEY else "\0" + digest("key", key)
    return name + "\0"


def is_long(text: str) -> bool:
    """Whether a string is too long for a token."""
    return 4 * len(text) > MOST_STRING and len(text.encode()) > MOST_STRING


def token(key: str, value: Scalar) -> str:
    """Return the token of a value: equal for values that `==` calls equal (F4)."""
    if type(value) is str and is_long(value):
        return prefix(key) + _LONG + digest("long", value)
    return prefix(key) + element_text(value)


def whole(key: str, text: str) -> str:
    """Return what stands for a long string in the field `long`."""
    return prefix(key) + _STRING + text


def tokens_of(metadata: Mapping[str, MetadataValue]) -> Tokens:
    """Return what is indexed of metadata."""
    found: dict[str, None] = {}
    long: dict[str, None] = {}
    for key, value in metadata.items():
        values = elements(value)
        if not values:
            continue
        found[prefix(key)] = None
        for element in values:
            found[token(key, element)] = None
            if type(element) is str and is_long(element):
                long[whole(key, element)] = None
    return Tokens(list(found), list(long))


class Band(NamedTuple):
    """The tokens that a key's values of one kind can have: from `low`, below `high`."""

    low: str
    high: str


def band(key: str, kind: Kind) -> Band:
    """Return the bounds of a key's values of one kind."""
    letter = KIND_LETTERS[kind]
    return Band(prefix(key) + letter, prefix(key) + chr(ord(letter) + 1))


def bound(key: str, value: Scalar) -> str:
    """Return the text that the tokens of a range are compared with.

    A string of more than 512 bytes is cut behind the first character that exceeds them: no token is equal to that, and
    a token lies below it exactly if its string lies below the whole.
    """
    if kind_of(value) == "str" and is_long(text := str(value)):
        size = len(text.encode()[:MOST_STRING].decode(errors="ignore"))
        return prefix(key) + _STRING + text[: size + 1]
    return prefix(key) + element_text(value)
