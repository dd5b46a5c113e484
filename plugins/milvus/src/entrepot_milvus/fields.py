"""From documents to rows and back. Pure functions.

A row holds the document (`name`, `text`, `metadata` as one JSON text in two parts, `vector`) and two fields for
filters: `tokens`, one for each key and for each key and value; and `ranges`, the least and the greatest element of each
key as ordered text. All that filters ask for is made of letters, digits and hyphens, so that nothing in an expression
needs to be quoted.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

import numpy as np

from entrepot.encoding import (
    KIND_LETTERS,
    compact,
    equality_token,
    extremes,
    instant_text,
    number_text,
    presence_token,
    string_text,
)
from entrepot.filters.values import kind_of
from entrepot.metadata import decode_metadata, elements, is_list
from entrepot.records import StoredRecord
from entrepot_milvus.names import key_name, point_id
from entrepot_milvus.plugin import LONGEST
from entrepot_milvus.words import words_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

    from numpy.typing import NDArray

    from entrepot.filters.values import Scalar
    from entrepot.metadata import Metadata

ID: Final = "id"
"""The primary key: the UUID that stands for the document's id, in hexadecimal."""
NAME: Final = "name"
"""The document's id."""
VECTOR: Final = "vector"
TEXT: Final = "text"
WITH_TEXT: Final = "with_text"
"""Whether the document has a text: a field cannot be absent."""
METADATA: Final = "metadata"
MORE_METADATA: Final = "more_metadata"
"""What does not fit into `METADATA`; nearly always empty."""
TOKENS: Final = "tokens"
RANGES: Final = "ranges"
WORDS: Final = "words"
"""The words of the text, where the engine ranks by words."""
SPARSE: Final = "sparse"
"""What the engine makes of `WORDS`."""

STRING_BYTES: Final = 40
"""Bytes of a string that ranges tell apart."""
MOST_TOKENS: Final = 4096
"""The engine's bound for the length of an array."""

_REMEMBERED: Final = 64
"""Characters of the longest string that is remembered with its codes."""
_PARTS: Final = {
    "text": (TEXT, WITH_TEXT),
    "metadata": (METADATA, MORE_METADATA),
    "vector": (VECTOR,),
}


# --- into rows --------------------------------------------------------------------------------------------

# Keys come again in every document, and many values do.
_presence: Final = lru_cache(maxsize=4096)(presence_token)
_equality: Final = lru_cache(maxsize=16_384, typed=True)(equality_token)


def terms_of(metadata: Metadata) -> tuple[list[str], dict[str, str]]:
    """Return the tokens of a document, each once, and its ranges."""
    tokens: dict[str, None] = {}
    ranges: dict[str, str] = {}
    lists: dict[str, Any] = {}
    for key, value in metadata.items():
        if is_list(value):
            lists[key] = value
            continue
        scalar = cast("Scalar", value)
        terms = _terms_of_scalar(key, scalar) if _is_long(scalar) else _remembered(key, scalar)
        presence, equality, least, greatest, code = terms
        tokens[presence] = tokens[equality] = None
        if least:
            ranges[least] = ranges[greatest] = code
    if lists:
        tokens |= dict.fromkeys(tokens_of(lists))
        ranges |= ranges_of(lists)
    return list(tokens), ranges


def _terms_of_scalar(key: str, value: Scalar) -> tuple[str, str, str, str, str]:
    """Return the tokens of a key and a value, the names of the ends of its range, and what both are."""
    presence, equality = _presence(key), equality_token(key, value)
    kind = kind_of(value)
    if kind == "bool":  # which has no ranges (F5)
        return presence, equality, "", "", ""
    letter, name = KIND_LETTERS[kind], key_name(key)
    return presence, equality, letter + name, letter.upper() + name, _ordered_text(value)


_remembered: Final = lru_cache(maxsize=16_384, typed=True)(_terms_of_scalar)


def tokens_of(metadata: Metadata) -> list[str]:
    """Return all tokens of keys and values, each once, as `entrepot.encoding.metadata_tokens` does."""
    tokens: dict[str, None] = {}
    for key, value in metadata.items():
        values = elements(value)
        if values:
            tokens[_presence(key)] = None
            for element in values:
                of = equality_token if _is_long(element) else _equality
                tokens[of(key, element)] = None
    return list(tokens)


def _is_long(value: Scalar) -> bool:
    """Whether a value is too long to be remembered."""
    return type(value) is str and len(value) > _REMEMBERED


def ordered_text(value: Scalar) -> str:
    """Return a number, an instant or a string as text that sorts as the values of its kind do."""
    return _ordered_text(value) if _is_long(value) else _ordered(value)


def _ordered_text(value: Scalar) -> str:
    kind = kind_of(value)
    if kind == "number":
        return compact(number_text(cast("float", value)))
    if kind == "datetime":
        return compact(instant_text(cast("datetime", value)))
    return string_text(cast("str", value), STRING_BYTES).code


_ordered: Final = lru_cache(maxsize=16_384, typed=True)(_ordered_text)


def ranges_of(metadata: Metadata) -> dict[str, str]:
    """Return the least element of each key and kind under a small letter, the greatest under a capital one."""
    ranges: dict[str, str] = {}
    for (key, kind), (least, greatest) in extremes(metadata).items():
        letter, name = KIND_LETTERS[kind], key_name(key)
        ranges[letter + name] = low = ordered_text(least)
        ranges[letter.upper() + name] = low if greatest is least else ordered_text(greatest)
    return ranges


class Content(NamedTuple):
    """A document on its way into a row."""

    name: str
    text: str | None
    metadata: Metadata
    encoded: bytes
    vector: Any


def row_of(content: Content, *, words: bool) -> dict[str, Any]:
    """Return the row of a document.

    Args:
        content: The document.
        words: Whether the collection ranks by words.
    """
    first, more = halves(content.encoded.decode())
    tokens, ranges = terms_of(content.metadata)
    row = {
        ID: point_id(content.name),
        NAME: content.name,
        VECTOR: content.vector,
        TEXT: content.text or "",
        WITH_TEXT: content.text is not None,
        METADATA: first,
        MORE_METADATA: more,
        TOKENS: tokens,
        RANGES: ranges,
    }
    if words:
        row[WORDS] = words_of(content.text or "")
    return row


def halves(text: str) -> tuple[str, str]:
    """Cut a text so that the first part has as many bytes of UTF-8 as a field takes, at most."""
    if len(text) * 4 <= LONGEST or len(text.encode()) <= LONGEST:
        return text, ""
    first = text.encode()[:LONGEST].decode(errors="ignore")
    return first, text[len(first) :]


def size_of(row: Mapping[str, Any], dimension: int) -> int:
    """Return about how many bytes a row takes in a request, rather too many."""
    characters = len(row[NAME]) + 2 * len(row[TEXT]) + len(row[METADATA]) + len(row[MORE_METADATA])
    return 4 * characters + 32 * len(row[TOKENS]) + 128 * len(row[RANGES]) + 4 * dimension


# --- out of rows ------------------------------------------------------------------------------------------


def wanted(include: Sequence[str], *more: str) -> list[str]:
    """Return the fields to ask for."""
    return list(dict.fromkeys([NAME, *more, *(field for part in include for field in _PARTS[part])]))


def record_of(row: Mapping[str, Any], include: Sequence[str]) -> StoredRecord:
    """Return the document of a row."""
    return StoredRecord(
        row[NAME],
        row[TEXT] if "text" in include and row[WITH_TEXT] else None,
        metadata_of(row) if "metadata" in include else None,
        vector_of(row[VECTOR]) if "vector" in include else None,
    )


def records_of(rows: Iterable[Mapping[str, Any]], include: Sequence[str]) -> list[StoredRecord]:
    """Return the documents of rows."""
    return [record_of(row, include) for row in rows]


def metadata_of(row: Mapping[str, Any]) -> Metadata:
    """Return the metadata that a row holds."""
    return decode_metadata((row[METADATA] + row[MORE_METADATA]).encode())


def vector_of(numbers: Sequence[float]) -> NDArray[np.float32]:
    """Return a vector as the engine gave it, float32 of shape (d,)."""
    return np.asarray(numbers, dtype=np.float32)
