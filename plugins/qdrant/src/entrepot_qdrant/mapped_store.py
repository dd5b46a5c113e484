"""`MappedQdrantVectorStore` and its local twin: reading collections that other software made (D5)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

import msgspec
from qdrant_client import models

from entrepot.capabilities import Metric
from entrepot.errors import CollectionMismatchError, CollectionNotFoundError
from entrepot.records import CollectionInfo
from entrepot_qdrant import reading
from entrepot_qdrant.catalog import Place
from entrepot_qdrant.commands import read
from entrepot_qdrant.mapped_fields import MappedLayout
from entrepot_qdrant.mapped_filters import MappedFilterConverter
from entrepot_qdrant.mapping import collection_mapping
from entrepot_qdrant.plugin import CAPABILITIES, LOCAL_CAPABILITIES
from entrepot_qdrant.store import BaseStore, QdrantLocalVectorStore, QdrantVectorStore

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from entrepot.capabilities import Capabilities
    from entrepot.records import Hit, Page, Query, StoredRecord
    from entrepot_qdrant.commands import Script
    from entrepot_qdrant.filters import ConditionConverter
    from entrepot_qdrant.mapping import CollectionMapping

_METRICS: Final = {
    models.Distance.COSINE: Metric.COSINE,
    models.Distance.DOT: Metric.DOT,
    models.Distance.EUCLID: Metric.EUCLIDEAN,
}
_MOST_DOT: Final = 1.0 + 2e-3
"""The dot product of two vectors whose norms are 1 within 1e-3 (D9)."""


def _reading_of(capabilities: Capabilities) -> Capabilities:
    return msgspec.structs.replace(capabilities, fulltext=False, hybrid=False, conditional_write=None)


def open_qdrant(*, mapping: Mapping[str, Any] | None = None, **options: Any) -> QdrantVectorStore:
    """Make a store of the fields of `QdrantConfig`; with a mapping, one that reads a collection of others."""
    if mapping is None:
        return QdrantVectorStore(**options)
    return MappedQdrantVectorStore(mapping=mapping, **options)


def open_qdrant_local(*, mapping: Mapping[str, Any] | None = None, **options: Any) -> QdrantLocalVectorStore:
    """As `open_qdrant`, of the fields of `QdrantLocalConfig`."""
    if mapping is None:
        return QdrantLocalVectorStore(**options)
    return MappedQdrantLocalVectorStore(mapping=mapping, **options)


class _Mapped(BaseStore):
    """What both stores do otherwise than those of this library's own collections."""

    writable = False

    def __init__(self, *, mapping: Mapping[str, Any], **options: Any) -> None:
        super().__init__(**options)
        self._mapping = collection_mapping(mapping)
        self._indexes: dict[str, str] | None = None

    def _kept(self, script: Script[Any]) -> Script[Any]:
        """Return the script: collections of others have no generation."""
        return script

    def _describe_script(self) -> Script[Place | None]:
        try:
            found = yield read("get_collection", collection_name=self.collection)
        except CollectionNotFoundError:
            return None
        place = _place(found, self.collection, self._mapping, served=not self._endpoint.is_local)
        self._indexes = _indexes(found)
        return place

    def _converter(self) -> ConditionConverter:
        return MappedFilterConverter(self._mapping, self._indexes)

    def _fetch_script(self, ids: Sequence[str], include: Sequence[str]) -> Script[list[StoredRecord]]:
        found = yield from reading.among(self._here(), ids, include, self._plan)
        return _distinct(found, self.collection)

    def _search_script(self, query: Query) -> Script[list[Hit]]:
        hits = yield from reading.search(self._here(), query, self._plan)
        if self._here().info.metric is Metric.DOT and any(abs(hit.raw) > _MOST_DOT for hit in hits):
            msg = f"the collection {self.collection!r} holds vectors whose norm is not 1, which dot asks for"
            raise CollectionMismatchError(msg, hint="make it with the cosine, or store them with norm 1")
        _distinct([hit.record for hit in hits], self.collection)
        return hits

    def _scan_script(self, query: Query, token: str | None, size: int) -> Script[Page[StoredRecord]]:
        page = yield from reading.scan(self._here(), query, token, size, self._plan)
        _distinct(page.items, self.collection)
        return page


class MappedQdrantVectorStore(_Mapped, QdrantVectorStore):
    """Documents in a collection on a server that other software made, to be read and not written.

    Args:
        mapping: Which fields hold what: `entrepot_qdrant.mapping.collection_mapping`.
        collection: The name of the collection, as it stands, or an alias.
        options: As `QdrantVectorStore`. The metric is the collection's.

    Raises:
        ConfigurationError: The mapping or an option is none.
    """

    capabilities: Capabilities = _reading_of(CAPABILITIES)


class MappedQdrantLocalVectorStore(_Mapped, QdrantLocalVectorStore):
    """As `MappedQdrantVectorStore`, in the client's local mode; options as `QdrantLocalVectorStore`."""

    capabilities: Capabilities = _reading_of(LOCAL_CAPABILITIES)


def _place(found: Any, collection: str, mapping: CollectionMapping, *, served: bool) -> Place:
    """Return a collection as a mapping has it read.

    Raises:
        CollectionMismatchError: It has no such vectors, or some that this library cannot compare.
    """
    given: Any = found.config.params.vectors
    named = cast("dict[str, Any]", given) if isinstance(given, dict) else {}
    name = mapping.vector
    if isinstance(given, models.VectorParams):
        vectors = given if name is None else None
    elif name is None and len(named) == 1:
        [(name, vectors)] = named.items()
    else:
        vectors = named.get(name or "")
    if vectors is None:
        what = "no vectors without a name" if name is None else f"no vectors {name!r}"
        hint = f"it has {', '.join(map(repr, sorted(named)))}" if named else "leave vector out of the mapping"
        msg = f"the collection {collection!r} has {what}"
        raise CollectionMismatchError(msg, hint=hint)
    metric = _METRICS.get(vectors.distance)
    if metric is None or vectors.multivector_config is not None:
        what = "several vectors for each point" if metric else f"the distance {vectors.distance.value}"
        msg = f"the collection {collection!r} has {what}, which this library does not know"
        raise CollectionMismatchError(msg, hint="the native client searches it")
    info = CollectionInfo(name=collection, dimension=vectors.size, metric=metric)
    layout = MappedLayout(collection, mapping, name, unit=metric is Metric.COSINE)
    return Place(collection, info, "hnsw" if served else "flat", "", set(), layout)


def _indexes(found: Any) -> dict[str, str]:
    """Return the types of payload indexes by path."""
    schema = cast("dict[str, Any]", found.payload_schema or {})
    return {path: str(getattr(index.data_type, "value", index.data_type)) for path, index in schema.items()}


def _distinct(records: Sequence[StoredRecord], collection: str) -> list[StoredRecord]:
    """Refuse points that share an id (D1)."""
    if len({record.id for record in records}) < len(records):
        msg = f"ids of the collection {collection!r} are not unique: several points have one"
        raise CollectionMismatchError(msg, hint="name another field as id, or none for the ids of points")
    return list(records)
