"""From documents to what the engine stores, and back. Pure functions.

A document holds `id`, `text`, `meta` (the whole metadata as one JSON text), `embedding`, and for filters and searches:
`tokens` and `long` (`entrepot_elasticsearch.tokens`), `words` (`entrepot_elasticsearch.words`), and `slot`, 15 bits of
a digest of the id, by which an exact search of many documents is cut into slices.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final, cast

import msgspec
import numpy as np

from entrepot.errors import VectorError
from entrepot.metadata import decode_metadata
from entrepot.records import StoredRecord
from entrepot_elasticsearch.filters import LONG, TOKENS
from entrepot_elasticsearch.tokens import tokens_of
from entrepot_elasticsearch.words import joined_words

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from entrepot.metadata import Metadata
    from entrepot.records import Record

ID: Final = "id"
TEXT: Final = "text"
META: Final = "meta"
WORDS: Final = "words"
SLOT: Final = "slot"
EMBEDDING: Final = "embedding"
SLOTS: Final = 1 << 15
"""How many slots there are: from 0."""

_PARTS: Final = {"text": TEXT, "metadata": META, "vector": EMBEDDING}
_TOGETHER: Final = 1 << 17
_LARGEST: Final = float(np.finfo(np.float32).max)
_DIGITS: Final = 9
"""Decimal digits that tell all float32 apart."""


class _Stored(msgspec.Struct, omit_defaults=True):
    """A document as the engine stores it; the names are those of the fields."""

    id: str
    slot: int
    meta: str
    text: str | None = None
    words: str | None = None
    tokens: list[str] = []
    long: list[str] = []
    embedding: list[float] = []


def sources(records: Sequence[Record]) -> list[bytes]:
    """Return documents as the engine takes them, one JSON text each.

    Raises:
        VectorError: A vector is longer than the engine takes, whose square must be a float32.
    """
    if not records:
        return []
    encode = msgspec.json.Encoder().encode
    found: list[bytes] = []
    for record, vector in zip(records, _numbers(records), strict=True):
        indexed = tokens_of(record.metadata)
        found.append(
            encode(
                _Stored(
                    record.id,
                    slot(record.id),
                    record.metadata_json.decode(),
                    record.text,
                    None if record.text is None else joined_words(record.text),
                    indexed.tokens,
                    indexed.long,
                    vector,
                )
            )
        )
    return found


def _numbers(records: Sequence[Record]) -> Iterator[list[float]]:
    """Yield the numbers of vectors, some vectors at a time: as Python's they take eight times the memory."""
    rows = max(1, _TOGETHER // len(records[0].vector))
    for start in range(0, len(records), rows):
        matrix = np.stack([record.vector for record in records[start : start + rows]])
        squares = np.square(matrix, dtype=np.float64).sum(axis=1)
        if squares.max() > _LARGEST:
            name = records[start + int(squares.argmax())].id
            msg = f"the vector of document {name!r} is longer than 1.8e19, which the engine does not take"
            raise VectorError(msg, hint="scale all vectors down by one factor")
        yield from decimals(matrix)


def indexed_again(metadata: Metadata, encoded: bytes) -> dict[str, Any]:
    """Return the fields of a document whose metadata change."""
    tokens, long = tokens_of(metadata)
    return {META: encoded.decode(), TOKENS: tokens, LONG: long}


def slot(name: str) -> int:
    """Return the slot of a document."""
    return int.from_bytes(blake2b(name.encode(), digest_size=2, person=b"slot").digest(), "big") % SLOTS


def decimals(matrix: NDArray[np.float32]) -> list[Any]:
    """Return float32 as numbers of as few digits as tell them apart, which halves the JSON.

    Each is rounded to nine significant digits, and taken as it is where that would not be the same float32.
    """
    exactly = matrix.astype(np.float64)
    magnitude = np.abs(exactly)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        places = _DIGITS - 1 - np.floor(np.log10(np.where(magnitude > 0.0, magnitude, 1.0)))
        scale = 10.0 ** np.clip(places, -22, 22)  # the powers of ten that a double holds
        rounded = np.rint(exactly * scale) / scale
        same = rounded.astype(np.float32) == matrix
    return cast("list[Any]", np.where(same, rounded, exactly).tolist())


def wanted(include: Sequence[str], *more: str) -> list[str]:
    """Return the fields of a document to ask for."""
    return list(dict.fromkeys([ID, *(_PARTS[part] for part in include if part in _PARTS), *more]))


def record_of(source: Mapping[str, Any], include: Sequence[str]) -> StoredRecord:
    """Return a document of what the engine stores."""
    return StoredRecord(
        source[ID],
        source.get(TEXT) if "text" in include else None,
        decode_metadata(source[META].encode()) if "metadata" in include else None,
        np.array(source[EMBEDDING], dtype=np.float32) if "vector" in include else None,
    )
