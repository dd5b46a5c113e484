"""Documents on their way in, checked whole before anything is sent (D1, D3, D4, D6, D8)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from entrepot.documents import Document, MetadataMode
from entrepot.errors import (
    ArgumentTypeError,
    DocumentError,
    DuplicateIdError,
    MetadataError,
    SizeLimitError,
)
from entrepot.metadata import (
    MAX_NAME_LENGTH,
    clean_metadata,
    elements,
    encode_metadata,
    ill_formed,
    is_list,
    metadata_size,
    name_fault,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from entrepot.capabilities import Limits
    from entrepot.metadata import Metadata


class Drafts(NamedTuple):
    """Checked documents that lack only their vectors, column by column; all columns have one length.

    Attributes:
        ids: Their ids, no two alike.
        texts: What is stored, or None.
        metadata: Clean metadata.
        encoded: The same as JSON texts.
        embed: What the model shall see, None where a vector was brought.
        vectors: The vectors that were brought, not yet checked; None elsewhere.
    """

    ids: list[str]
    texts: list[str | None]
    metadata: list[Metadata]
    encoded: list[bytes]
    embed: list[str | None]
    vectors: list[Any]

    def part(self, start: int, stop: int) -> Drafts:
        """Return the documents from `start` up to `stop`."""
        span = slice(start, stop)
        return Drafts(
            self.ids[span],
            self.texts[span],
            self.metadata[span],
            self.encoded[span],
            self.embed[span],
            self.vectors[span],
        )


def draft_all(documents: Iterable[Document], limits: Limits) -> Drafts:
    """Check a batch and return it as it will be stored.

    Raises:
        ArgumentTypeError: Not documents.
        DocumentError: The first fault found; the message names the document.
        DuplicateIdError: One id twice in the batch (D2).
    """
    if isinstance(documents, Document | str) or not hasattr(documents, "__iter__"):
        msg = f"documents must be a list of Document, not {type(documents).__name__}"
        raise ArgumentTypeError(msg, hint="put a single document into a list")
    drafts = Drafts([], [], [], [], [], [])
    ids, texts, metadatas, encoded, embed, vectors = drafts
    settled = limits.settled_by_json
    # One loop with few calls: this and `clean_metadata` are most of what `add` costs.
    for document in documents:
        if type(document) is not Document:
            msg = f"documents must be Document, not {type(document).__name__}"
            raise ArgumentTypeError(msg)
        name, text, vector = document.id, document.text, document.vector
        if (
            type(name) is not str
            or not 0 < len(name) <= MAX_NAME_LENGTH
            or not name.isascii()
            or "\0" in name
        ):
            _check_id(name)
        if text is not None and (type(text) is not str or not text.isascii() or "\0" in text):
            _check_text(name, text)
        if document.media is not None:
            msg = f"document {name!r} holds media, which stores do not keep"
            raise DocumentError(msg, hint="store a text that describes it, and its URL as metadata")
        try:
            metadata = clean_metadata(document.metadata)
        except MetadataError as error:
            msg = f"document {name!r}: {error.message}"
            raise MetadataError(msg, key=error.key, hint=error.hint) from None
        json = encode_metadata(metadata)
        if len(json) > settled or (text is not None and len(text) > settled):
            check_sizes(name, text, metadata, json, limits)
        ids.append(name)
        texts.append(text)
        metadatas.append(metadata)
        encoded.append(json)
        vectors.append(vector)
        embed.append(_embeddable(document) if vector is None else None)
    if len(set(ids)) != len(ids):
        raise _twice(ids)
    return drafts


def _check_id(name: object) -> None:
    fault = name_fault(name)
    if fault is not None:
        msg = f"the document id {name!r} {fault}"
        raise DocumentError(msg)


def _check_text(name: str, text: object) -> None:
    fault = ill_formed(text) if type(text) is str else f"must be a str, not {type(text).__name__}"
    if fault is not None:
        msg = f"document {name!r}: the text {fault}"
        raise DocumentError(msg)


def _embeddable(document: Document) -> str:
    text = document.text if document.formatter is None else document.formatted(MetadataMode.EMBED)
    if text is None:
        msg = f"document {document.id!r} has neither a text nor a vector"
        raise DocumentError(msg)
    return text


def _twice(ids: list[str]) -> DuplicateIdError:
    counts: dict[str, int] = {}
    for name in ids:
        counts[name] = counts.get(name, 0) + 1
    twice = [name for name, count in counts.items() if count > 1]
    msg = f"{len(twice)} ids stand twice in the batch, the first is {twice[0]!r}"
    return DuplicateIdError(msg, ids=twice, hint="keep one document of each id")


def check_sizes(name: str, text: str | None, metadata: Metadata, encoded: bytes, limits: Limits) -> None:
    """Refuse what exceeds the declared limits (D8).

    Raises:
        SizeLimitError: Names the document, the part, its size and the limit.
    """
    text_bytes = 0
    if text is not None:
        text_bytes = len(text) if text.isascii() else len(text.encode())
        if limits.text_bytes is not None and text_bytes > limits.text_bytes:
            raise _too_large(name, "its text", text_bytes, limits.text_bytes, "bytes")
    if limits.keys is not None and len(metadata) > limits.keys:
        raise _too_large(name, "its metadata", len(metadata), limits.keys, "keys")
    if limits.list_elements is not None:
        lists = sum(len(value) for value in metadata.values() if is_list(value))
        if lists > limits.list_elements:
            raise _too_large(name, "its metadata", lists, limits.list_elements, "list elements")
    # JSON is never shorter than what it holds, so short JSON settles the matter.
    if limits.metadata_bytes is not None and len(encoded) > limits.metadata_bytes:
        size = metadata_size(metadata)
        if size > limits.metadata_bytes:
            raise _too_large(name, "its metadata", size, limits.metadata_bytes, "bytes")
    if limits.string_bytes is not None and len(encoded) > limits.string_bytes:
        for key, value in metadata.items():
            for element in elements(value):
                size = len(element.encode()) if type(element) is str else 0
                if size > limits.string_bytes:
                    raise _too_large(name, f"a string in {key!r}", size, limits.string_bytes, "bytes")
    total = text_bytes + len(encoded) + len(name.encode())
    if limits.record_bytes is not None and total > limits.record_bytes:
        raise _too_large(name, "the whole record", total, limits.record_bytes, "bytes")


def _too_large(name: str, part: str, size: int, limit: int, unit: str) -> SizeLimitError:
    return SizeLimitError(f"document {name!r}: {part} has {size} {unit}, this store takes {limit}")
