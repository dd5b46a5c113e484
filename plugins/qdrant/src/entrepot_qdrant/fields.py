"""From documents to payloads and back. Pure functions.

A payload holds `id`, `text`, `meta` (the whole metadata as one JSON text), `v` (which write made it), and for
filters: `t`, tokens of all keys and values; and for ranges the least and the greatest element of each key, in `n`
(integers of less than 48 bits as they are), `w` (all other numbers in order-preserving pieces), `d` (instants,
RFC 3339) and `o` (the first bytes of strings in pieces).

No number of the payload has a fraction or more than 48 bits, because the engine's reader of JSON does not keep
all doubles.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

import numpy as np
from qdrant_client import models

from entrepot.encoding import extremes, iso_instant, metadata_tokens, number_code, string_chunks
from entrepot.metadata import decode_metadata
from entrepot.records import StoredRecord
from entrepot_qdrant.names import INSTANTS, NUMBERS, STRINGS, TOKENS, WIDE, key_name, point_id

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from numpy.typing import NDArray

    from entrepot.filters.values import Kind
    from entrepot.metadata import Metadata, Scalar
    from entrepot_qdrant.layouts import Condition

DENSE: Final = "dense"
"""The name of the vectors."""
WORDS: Final = "words"
"""The name of the sparse vectors, for FULLTEXT."""
ID: Final = "id"
TEXT: Final = "text"
META: Final = "meta"
VERSION: Final = "v"

NATURAL: Final = 2**48
"""Integers of a smaller magnitude stand as they are."""
CHUNKS: Final = 4
"""Pieces of a string, of six bytes each."""
LETTERS: Final = "abcd"
"""The names of pieces, in order."""
_LOW_BITS: Final = 27

_PARTS: Final = {"text": TEXT, "metadata": META}


def natural(value: float) -> int | None:
    """Return a number as the integer that stands for it in `n`, or None if it stands in `w`."""
    if type(value) is int:
        return value if -NATURAL < value < NATURAL else None
    return int(value) if -NATURAL < value < NATURAL and value == int(value) else None


def wide(value: float) -> tuple[int, int]:
    """Return a number as two integers, of 48 and 27 bits, that compare as the numbers do."""
    code = number_code(value)
    return code >> _LOW_BITS, code & ((1 << _LOW_BITS) - 1)


def pieces(values: Sequence[int]) -> dict[str, int]:
    """Return integers under the names of pieces."""
    return dict(zip(LETTERS, values, strict=False))


def indexed(metadata: Metadata) -> dict[str, Any]:
    """Return the fields of a payload that filters ask for."""
    payload: dict[str, Any] = {}
    tokens = metadata_tokens(metadata)
    if tokens:
        payload[TOKENS] = tokens
    for (key, kind), ends in extremes(metadata).items():
        for field, held in _ranged(kind, ends).items():
            payload.setdefault(field, {})[key_name(key)] = held
    return payload


def _ranged(kind: Kind, ends: tuple[Scalar, Scalar]) -> dict[str, Any]:
    """Return what the least and the greatest element of one key add for ranges, by field."""
    values = ends[:1] if ends[0] == ends[1] else ends
    if kind == "datetime":
        instants = [iso_instant(cast("datetime", value)) for value in values]
        return {INSTANTS: instants[0] if len(instants) == 1 else instants}
    if kind == "str":
        found = dict.fromkeys(string_chunks(cast("str", value), CHUNKS).code for value in values)
        return {STRINGS: [pieces(chunks) for chunks in found]}
    held: dict[str, Any] = {}
    numbers = [(natural(value), value) for value in cast("tuple[float, ...]", values)]
    naturals = [number for number, _ in numbers if number is not None]
    others = [pieces(wide(value)) for number, value in numbers if number is None]
    if naturals:
        held[NUMBERS] = naturals[0] if len(naturals) == 1 else naturals
    if others:
        held[WIDE] = others
    return held


class IndexWish(NamedTuple):
    """A payload index that would serve a filter: the path and the type of its values."""

    path: str
    kind: str


ALWAYS: Final = (IndexWish(TOKENS, "keyword"),)


def wishes(payload: Mapping[str, Any]) -> list[IndexWish]:
    """Return the payload indexes that serve ranges of what a document holds."""
    found: list[IndexWish] = []
    for field, kind, suffix in (
        (NUMBERS, "integer", ""),
        (WIDE, "integer", "[].a"),
        (INSTANTS, "datetime", ""),
        (STRINGS, "integer", "[].a"),
    ):
        found += [IndexWish(f"{field}.{name}{suffix}", kind) for name in payload.get(field, ())]
    # A range of numbers asks both fields, and one without an index costs as much as two.
    numbers = {*payload.get(NUMBERS, ()), *payload.get(WIDE, ())}
    found += [
        wish
        for name in numbers
        for wish in (IndexWish(f"{NUMBERS}.{name}", "integer"), IndexWish(f"{WIDE}.{name}[].a", "integer"))
        if wish not in found
    ]
    return found


def payload_of(
    name: str, text: str | None, encoded: bytes, metadata: Metadata, version: str
) -> dict[str, Any]:
    """Return the payload of a document."""
    payload: dict[str, Any] = {ID: name, META: encoded.decode(), VERSION: version}
    if text is not None:
        payload[TEXT] = text
    payload.update(indexed(metadata))
    return payload


class OwnLayout:
    """Where documents lie in the points of this library."""

    dense: str | None = DENSE
    documents: Condition | None = None

    def among(self, ids: Sequence[str]) -> Condition:
        """Return the condition of documents with one of these ids."""
        return models.HasIdCondition(has_id=[point_id(name) for name in ids])

    def wanted(self, include: Sequence[str], *more: str) -> list[str]:
        """Return the fields of a payload to ask for."""
        return list(dict.fromkeys([ID, *(_PARTS[part] for part in include if part in _PARTS), *more]))

    def record(self, point: Any, include: Sequence[str]) -> StoredRecord:
        """Return the document of a point as the client gave it."""
        payload = cast("dict[str, Any]", point.payload or {})
        return StoredRecord(
            payload[ID],
            payload.get(TEXT) if "text" in include else None,
            metadata_of(payload) if "metadata" in include else None,
            self.vector(point) if "vector" in include else None,
        )

    def vector(self, point: Any) -> NDArray[np.float32] | None:
        """Return the vector of a point, float32 of shape (d,)."""
        return np.asarray(point.vector[DENSE], dtype=np.float32)


OWN: Final = OwnLayout()


def metadata_of(payload: Mapping[str, Any]) -> Metadata:
    """Return the metadata that a payload holds."""
    return decode_metadata(payload[META].encode())
