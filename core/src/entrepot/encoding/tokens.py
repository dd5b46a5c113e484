"""Tokens: 24 characters that stand for a key, or for a key and a value.

A token is BLAKE2b (RFC 7693) of 15 bytes with the personalisation ``entrepot``, over parts that each carry
their length, so no two lists of parts run into each other; it is written in base32hex in lower case.

Of 120 bits, n different tokens collide by chance with probability below n² / 2^121: for a billion tokens
4e-19. Someone who chooses the values can find two that collide with 2^60 tries, but needs 2^120 to meet
the token of a given value.
"""

from __future__ import annotations

from base64 import b32hexencode
from hashlib import blake2b
from typing import TYPE_CHECKING, Final, cast

from entrepot.encoding.integers import instant_code, number_code
from entrepot.filters.values import kind_of
from entrepot.metadata import elements

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from entrepot.filters.values import Kind, Scalar
    from entrepot.metadata import MetadataValue

KIND_LETTERS: Final[dict[Kind, str]] = {"bool": "b", "datetime": "d", "number": "n", "str": "s"}
"""One letter a kind, as it stands in codes and tokens (F4)."""


def digest(*parts: str | bytes) -> str:
    """Return 24 characters of ``0-9a-v`` that stand for `parts`: 120 bits of BLAKE2b.

    Every part is preceded by its length in bytes (4 bytes, big-endian); strings go in as UTF-8.
    """
    state = blake2b(digest_size=15, person=b"entrepot")
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        state.update(len(data).to_bytes(4, "big"))
        state.update(data)
    return b32hexencode(state.digest()).decode().lower()


def key_token(key: str) -> str:
    """Return the token of a key, for engines that restrict names of fields or fold their case."""
    return digest("key", key)


def presence_token(key: str) -> str:
    """Return the token that a document carries if it has the key with at least one element (F1)."""
    return digest("has", key)


def equality_token(key: str, value: Scalar) -> str:
    """Return the token of one element under a key: equal for values that `==` calls equal (F4).

    ``1`` and ``1.0`` share a token, so do ``0.0`` and ``-0.0``; ``True``, ``1`` and ``"1"`` do not, nor do
    2^53 and 2^53 + 1. Strings are told apart byte by byte.

    Raises:
        ValueError: A number that is not finite or beyond 64 bits.
    """
    kind = kind_of(value)
    if kind == "str":
        canonical = cast("str", value).encode()
    elif kind == "number":
        canonical = number_code(cast("float", value)).to_bytes(10, "big")
    elif kind == "datetime":
        canonical = instant_code(cast("datetime", value)).to_bytes(8, "big")
    else:
        canonical = b"1" if value else b"0"
    return digest("is", key, KIND_LETTERS[kind], canonical)


def metadata_tokens(metadata: Mapping[str, MetadataValue]) -> list[str]:
    """Return all tokens of a document, each once: presence and equality of every key that has an element."""
    tokens: dict[str, None] = {}
    for key, value in metadata.items():
        values = elements(value)
        if values:
            tokens[presence_token(key)] = None
            for element in values:
                tokens[equality_token(key, element)] = None
    return list(tokens)
