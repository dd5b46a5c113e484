"""What filters ask of a document: tokens of its keys and values in one list, whatever the keys. Pure functions.

A token is the key, a NUL, and the value in order-preserving text, so one string holds key, kind and value, and a range
of strings within one key and one kind is met by one element (F2, F4). The key and a NUL alone say that the key is
there (F1). The engine compares strings by UTF-16 unit in one place and by code point in another: tokens are rewritten
so that both orders are the same.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from entrepot.encoding import KIND_LETTERS, element_text, utf16_ordered
from entrepot.filters import FilterOp
from entrepot.filters.values import kind_of
from entrepot.metadata import elements

if TYPE_CHECKING:
    from collections.abc import Mapping

    from entrepot.filters.values import Scalar
    from entrepot.metadata import MetadataValue


@lru_cache(maxsize=4096)
def prefix(key: str) -> str:
    """Return what the tokens of a key begin with, which is the token of its presence."""
    return utf16_ordered(key) + "\0"


def token(key: str, value: Scalar) -> str:
    """Return the token of a value: equal for values that `==` calls equal (F4)."""
    text = element_text(value)
    return prefix(key) + (utf16_ordered(text) if type(value) is str else text)


def tokens_of(metadata: Mapping[str, MetadataValue]) -> list[str]:
    """Return the tokens of metadata, each once."""
    found: dict[str, None] = {}
    for key, value in metadata.items():
        values = elements(value)
        if values:
            found[prefix(key)] = None
            for element in values:
                found[token(key, element)] = None
    return list(found)


class Span(NamedTuple):
    """The tokens from `low`, which is one of them, up to `high`, which is none."""

    low: str
    high: str


def span(op: FilterOp, key: str, value: Scalar) -> Span:
    """Return the tokens of the elements that compare with a value, of its key and kind."""
    letter = KIND_LETTERS[kind_of(value)]
    least, beyond = prefix(key) + letter, prefix(key) + chr(ord(letter) + 1)
    at = token(key, value)
    # No token lies between another one and the same with a NUL behind it: values hold none.
    return {
        FilterOp.LT: Span(least, at),
        FilterOp.LTE: Span(least, at + "\0"),
        FilterOp.GT: Span(at + "\0", beyond),
        FilterOp.GTE: Span(at, beyond),
    }[op]
