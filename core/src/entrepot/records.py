"""What passes between the core and a plugin: small frozen records, already checked.

A hook never sees the text of a filter, an unchecked document, an embedding model, or a threshold
in score form: the core has done all that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, TypeAlias, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from entrepot.capabilities import Metric
from entrepot.filters import Normal
from entrepot.metadata import same_metadata
from entrepot.search import DEFAULT_INCLUDE, Part, SearchMode

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from entrepot.metadata import Metadata

IfExists: TypeAlias = Literal["replace", "skip", "error"]
"""What `add` does with an id that exists (D2)."""

LAYOUT_VERSION = 1

T = TypeVar("T")


class CollectionInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What a collection records about itself (D5).

    Attributes:
        name: The collection.
        dimension: Components of its vectors.
        metric: How its vectors are compared.
        model: Name of the embedding model, or None if the vectors came from outside.
        layout: Version of the storage layout.
    """

    name: str
    dimension: int
    metric: Metric = Metric.COSINE
    model: str | None = None
    layout: int = LAYOUT_VERSION


class Record(NamedTuple):
    """A document to write.

    Attributes:
        id: As the caller gave it; a plugin whose engine restricts ids maps it (D1).
        text: The content, or None.
        metadata: Clean metadata (D3), for the index fields.
        metadata_json: The same as one JSON text, to be kept whole (D4).
        vector: Float32 of shape (d,), checked, normalised under cosine and dot (D9).
    """

    id: str
    text: str | None
    metadata: Metadata
    metadata_json: bytes
    vector: NDArray[np.float32]


class StoredRecord(NamedTuple):
    """A document as it was read; parts that were not asked for are None."""

    id: str
    text: str | None = None
    metadata: Metadata | None = None
    vector: NDArray[np.float32] | None = None


def unchanged(records: Sequence[StoredRecord], now: Iterable[StoredRecord]) -> list[str]:
    """Return the ids of documents whose metadata is now what it was when they were read (D7)."""
    found = {record.id: record.metadata or {} for record in now}
    return [
        record.id
        for record in records
        if record.id in found and same_metadata(record.metadata or {}, found[record.id])
    ]


class Hit(NamedTuple):
    """A hit as the engine gave it.

    Attributes:
        raw: SEMANTIC: the dot product of unit vectors (cosine, dot) or the squared distance
            (euclidean). FULLTEXT: the engine's ranking, higher is better.
        record: The document.
    """

    raw: float
    record: StoredRecord


class Query(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """What a plugin is asked to find.

    Attributes:
        filter: The whole filter in normal form; `entrepot.filters.TRUE` if there is none.
        pushed: What the store's converter made of it, None for a store without converter.
        ids: Only these documents, or None for all.
        mode: SEMANTIC or FULLTEXT; HYBRID is fused by the core.
        vector: SEMANTIC: float32 of shape (d,), normalised as the stored ones.
        words: FULLTEXT: the text of the query.
        k: Most hits.
        exact: Do not use an approximate index.
        include: Parts of the documents to return.
    """

    filter: Normal
    pushed: Any = None
    ids: tuple[str, ...] | None = None
    mode: SearchMode = SearchMode.SEMANTIC
    vector: NDArray[np.float32] | None = None
    words: str | None = None
    k: int = 0
    exact: bool = False
    include: tuple[Part, ...] = DEFAULT_INCLUDE


class Page(NamedTuple, Generic[T]):
    """Some items, and the opaque token that asks for the next ones; None at the end."""

    items: Sequence[T]
    token: str | None
