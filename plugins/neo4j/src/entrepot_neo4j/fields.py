"""From documents to what the engine stores, and back. Pure functions.

The node of a document has the properties `id`, `v` (a mark that every write changes), `j` (id, text and metadata as one
JSON text), `t` (tokens for filters), `w` (words for FULLTEXT) and `embedding`. All their names are fixed, so what
documents bring is never a name in the engine, and nothing of an older version outlives a newer one (D2).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple
from uuid import uuid4

import msgspec
import numpy as np
from neo4j.vector import Vector, VectorDType

from entrepot.encoding import utf16_ordered
from entrepot.metadata import decode_metadata
from entrepot.records import StoredRecord
from entrepot_neo4j.tokens import tokens_of
from entrepot_neo4j.words import words_in

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from entrepot.metadata import Metadata
    from entrepot.records import Record

SEPARATOR: Final = "\0\1\0"
"""What stands between tokens on the way to the server, which splits them there: one string is sent in no time, a list
of many is not. No token holds it, nor does one begin or end with a part of it that could be taken for its own."""


class _Kept(msgspec.Struct, array_like=True, frozen=True):
    """What is kept as JSON."""

    id: str
    text: str | None
    metadata: msgspec.Raw


_DECODER: Final = msgspec.json.Decoder(_Kept)


class Row(NamedTuple):
    """A document as parameters of a write; it is sent as a list, which the driver packs faster than a map.

    Attributes:
        id: The property `id`.
        v: The mark of this write.
        j: What is kept.
        t: The tokens as one string.
        w: The words.
        e: The vector.
    """

    id: str
    v: str
    j: str
    t: str
    w: str | None = None
    e: Any = None

    @property
    def size(self) -> int:
        """How many characters its strings have together."""
        return len(self.j) + len(self.t) + len(self.w or "")


def stored_id(name: str) -> str:
    """Return the property `id` of a document: its order is that of code points wherever the engine sorts (S1)."""
    return utf16_ordered(name)


def rows_of(records: Sequence[Record], *, modern: bool) -> list[Row]:
    """Return documents as parameters of a write, in the order in which their nodes are locked.

    Args:
        records: The documents.
        modern: Whether the server takes vectors as such; others get lists of numbers.
    """
    made = [
        Row(
            stored_id(record.id),
            uuid4().hex,
            msgspec.json.encode(_Kept(record.id, record.text, msgspec.Raw(record.metadata_json))).decode(),
            SEPARATOR.join(tokens_of(record.metadata)),
            None if record.text is None else " ".join(words_in(record.text)) or None,
            vector_parameter(record.vector, modern=modern),
        )
        for record in records
    ]
    made.sort(key=lambda row: row.id)
    return made


def row_again(kept: str, metadata: Metadata, encoded: bytes) -> Row:
    """Return the parameters of a write that changes the metadata of what is kept."""
    was = _DECODER.decode(kept)
    return Row(
        stored_id(was.id),
        uuid4().hex,
        msgspec.json.encode(_Kept(was.id, was.text, msgspec.Raw(encoded))).decode(),
        SEPARATOR.join(tokens_of(metadata)),
    )


def vector_parameter(vector: NDArray[np.float32], *, modern: bool) -> Any:
    """Return a vector as a parameter."""
    if not modern:
        return vector.tolist()
    return Vector(vector.astype(">f4").tobytes(), VectorDType.F32)


def record_of(kept: str, include: Sequence[str], embedding: Any = None) -> StoredRecord:
    """Return a document of what is kept, and of its vector as the server gives it."""
    was = _DECODER.decode(kept)
    return StoredRecord(
        was.id,
        was.text if "text" in include else None,
        decode_metadata(bytes(was.metadata)) if "metadata" in include else None,
        None if embedding is None else _vector(embedding),
    )


def _vector(embedding: Any) -> NDArray[np.float32]:
    if isinstance(embedding, Vector):
        return np.frombuffer(embedding.raw(), dtype=">f4").astype(np.float32)
    return np.array(embedding, dtype=np.float32)
