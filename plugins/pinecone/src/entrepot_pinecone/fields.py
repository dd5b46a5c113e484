"""From documents to what the engine stores, and back. Pure functions.

A record's metadata holds ``_v``, the name of the write that made it; ``_m``, the whole metadata as one JSON text, which is the
truth (the engine's own numbers are doubles, and it has no null, no instants and no lists of numbers); ``_t``, the text; ``_i``,
the id where the engine has another; and what filters ask for (`entrepot_pinecone.tokens`).
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from typing import TYPE_CHECKING, Any, Final, cast
from uuid import uuid4

import msgspec
import numpy as np

from entrepot.errors import CorruptDataError, SizeLimitError
from entrepot.metadata import decode_metadata
from entrepot.records import StoredRecord
from entrepot_pinecone.filters import VERSION
from entrepot_pinecone.names import record_id
from entrepot_pinecone.tokens import fields_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from entrepot.drafts import Drafts
    from entrepot.metadata import Metadata
    from entrepot.records import Record

TEXT: Final = "_t"
META: Final = "_m"
ID: Final = "_i"
MOST_BYTES: Final = 40_000
"""Bytes of JSON that the metadata of a record may have."""


def new_version() -> str:
    """Return the name of a write, which no other has."""
    return urlsafe_b64encode(uuid4().bytes).rstrip(b"=").decode()


def vectors(records: Sequence[Record], version: str) -> list[bytes]:
    """Return documents as the engine takes them, each as JSON.

    Raises:
        SizeLimitError: One has more than a record takes, with all that filters ask for.
    """
    return [
        vector(
            record.id,
            record.text,
            record.metadata,
            record.metadata_json.decode(),
            cast("list[float]", record.vector.tolist()),
            version,
        )
        for record in records
    ]


def vector(  # noqa: PLR0913, PLR0917 - what a record has
    name: str, text: str | None, metadata: Metadata, encoded: str, values: list[float], version: str
) -> bytes:
    """Return one document as `vectors` does."""
    made = _described(name, text, metadata, encoded, version)
    return msgspec.json.encode({"id": record_id(name), "values": values, "metadata": msgspec.Raw(made)})


def check_drafts(drafts: Drafts) -> None:
    """Refuse documents that are too large as records (D6).

    Raises:
        SizeLimitError: One has more than a record takes, with all that filters ask for.
    """
    version = new_version()  # all have one length
    for name, text, metadata, encoded in zip(
        drafts.ids, drafts.texts, drafts.metadata, drafts.encoded, strict=True
    ):
        _described(name, text, metadata, encoded.decode(), version)


def _described(name: str, text: str | None, metadata: Metadata, encoded: str, version: str) -> bytes:
    """Return the engine's metadata of a document, as JSON."""
    fields: dict[str, Any] = {VERSION: version, META: encoded}
    if text is not None:
        fields[TEXT] = text
    if record_id(name) != name:
        fields[ID] = name
    fields |= fields_of(metadata)
    made = msgspec.json.encode(fields)
    if len(made) > MOST_BYTES:
        msg = f"document {name!r}: as a record it has {len(made)} bytes, and Pinecone takes {MOST_BYTES}"
        raise SizeLimitError(msg)
    return made


def metadata_of(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return the engine's metadata of a record.

    Raises:
        CorruptDataError: It is none of this library's.
    """
    fields = found.get("metadata")
    if not isinstance(fields, dict) or META not in fields:
        msg = f"the record {found.get('id')!r} was not written by this library"
        raise CorruptDataError(msg, hint="other software wrote into the namespace; delete what it wrote")
    return cast("dict[str, Any]", fields)


def name_of(found: Mapping[str, Any]) -> str:
    """Return the document's id."""
    return str(metadata_of(found).get(ID, found["id"]))


def version_of(found: Mapping[str, Any]) -> str:
    """Return the name of the write that made a record what it is."""
    return str(metadata_of(found).get(VERSION, ""))


def document_metadata(found: Mapping[str, Any]) -> Metadata:
    """Return the document's metadata."""
    return decode_metadata(str(metadata_of(found)[META]).encode())


def record_of(found: Mapping[str, Any], include: Sequence[str], dimension: int) -> StoredRecord:
    """Return a document of what the engine stores.

    Raises:
        CorruptDataError: It was not written by this library, or its vector is none of the collection's.
    """
    fields = metadata_of(found)
    return StoredRecord(
        name_of(found),
        fields.get(TEXT) if "text" in include else None,
        document_metadata(found) if "metadata" in include else None,
        vector_of(found, dimension) if "vector" in include else None,
    )


def vector_of(found: Mapping[str, Any], dimension: int) -> NDArray[np.float32]:
    """Return the vector of a record, float32 of shape (d,).

    Raises:
        CorruptDataError: It has none of that length.
    """
    values = np.array(found.get("values") or (), dtype=np.float32)
    if values.shape != (dimension,):
        msg = f"the record {found.get('id')!r} has no vector of {dimension} numbers"
        raise CorruptDataError(msg, hint="other software changed it; write the document again")
    return values
