"""From documents to what the engine stores, and back. Pure functions.

A document holds `_id`; `v`, the name of the write that made it what it is; `t`, its tokens for filters
(`entrepot_mongodb.tokens`); and `d`, what is read back: `j`, the whole metadata as one JSON text, `x`, the text, and `e`, the
vector, little-endian float32 in a binary. BSON's dates keep milliseconds only, so none is used.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from typing import TYPE_CHECKING, Any, Final, cast
from uuid import uuid4

import bson
import numpy as np
from bson.binary import Binary
from bson.raw_bson import RawBSONDocument

from entrepot.errors import CorruptDataError
from entrepot.metadata import decode_metadata
from entrepot.records import StoredRecord
from entrepot_mongodb.filters import TOKENS
from entrepot_mongodb.tokens import tokens_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from entrepot.metadata import Metadata
    from entrepot.records import Record

ID: Final = "_id"
VERSION: Final = "v"
PARTS: Final = "d"
META: Final = "d.j"
TEXT: Final = "d.x"
EMBEDDING: Final = "d.e"
_FIELDS: Final = {"text": TEXT, "metadata": META, "vector": EMBEDDING}
VECTOR_SUBTYPE: Final = 9
"""BSON's subtype of binary vectors, of which older drivers know no name."""
_FLOAT32: Final = b"\x27\x00"
"""What a binary vector begins with: the type of its numbers, and that no bits are left over."""


def new_version() -> str:
    """Return the name of a write, which no other has."""
    return urlsafe_b64encode(uuid4().bytes).rstrip(b"=").decode()


def binary(vector: NDArray[np.float32], *, as_vector: bool) -> Binary | bytes:
    """Return a vector as BSON: a binary vector (subtype 9), or plain bytes (subtype 0)."""
    data = vector.astype("<f4", copy=False).tobytes()
    return Binary(_FLOAT32 + data, VECTOR_SUBTYPE) if as_vector else data


def documents(records: Sequence[Record], version: str, *, as_vector: bool) -> list[RawBSONDocument]:
    """Return documents as the engine takes them, encoded."""
    found: list[RawBSONDocument] = []
    for record in records:
        parts: dict[str, Any] = {"j": record.metadata_json.decode()}
        if record.text is not None:
            parts["x"] = record.text
        parts["e"] = binary(record.vector, as_vector=as_vector)
        document = {ID: record.id, VERSION: version, TOKENS: tokens_of(record.metadata), PARTS: parts}
        found.append(RawBSONDocument(bson.encode(document)))
    return found


def indexed_again(metadata: Metadata, encoded: bytes, version: str) -> dict[str, Any]:
    """Return the fields of a document whose metadata change."""
    return {VERSION: version, TOKENS: tokens_of(metadata), META: encoded.decode()}


def wanted(include: Iterable[str], *more: str) -> dict[str, int]:
    """Return the fields of a document to ask for; its id comes always."""
    names = [*(_FIELDS[part] for part in include if part in _FIELDS), *more]
    return dict.fromkeys(dict.fromkeys(names), 1) or {ID: 1}


def record_of(found: Mapping[str, Any], include: Sequence[str], dimension: int) -> StoredRecord:
    """Return a document of what the engine stores.

    Raises:
        CorruptDataError: Its vector is none of the collection's.
    """
    parts = cast("Mapping[str, Any]", found.get(PARTS, {}))
    return StoredRecord(
        found[ID],
        parts.get("x") if "text" in include else None,
        decode_metadata(parts["j"].encode()) if "metadata" in include else None,
        vectors_of([found], dimension)[0].copy() if "vector" in include else None,
    )


def vectors_of(found: Sequence[Mapping[str, Any]], dimension: int) -> NDArray[np.float32]:
    """Return the vectors of documents, float32 of shape (n, d).

    Read are binary vectors, plain bytes, and lists of numbers.

    Raises:
        CorruptDataError: One is of another length or kind.
    """
    data = b"".join([_bytes_of(one, dimension) for one in found])
    return np.frombuffer(data, dtype="<f4").reshape(len(found), dimension).astype(np.float32, copy=False)


def _bytes_of(found: Mapping[str, Any], dimension: int) -> bytes:
    stored = found.get(PARTS, {}).get("e")
    if isinstance(stored, list):
        stored = np.array(stored, dtype="<f4").tobytes()
    elif isinstance(stored, Binary) and stored.subtype == VECTOR_SUBTYPE:
        stored = stored[len(_FLOAT32) :] if stored.startswith(_FLOAT32) else None
    if not isinstance(stored, bytes) or len(stored) != 4 * dimension:
        msg = f"the document {found[ID]!r} has no vector of {dimension} float32"
        raise CorruptDataError(msg, hint="other software changed it; write the document again")
    return stored
