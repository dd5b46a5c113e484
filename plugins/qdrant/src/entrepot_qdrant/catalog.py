"""Collections: what they record about themselves, how they are made, and their payload indexes (D5). Scripts.

A collection's record stands in the engine's metadata of the collection, under ``entrepot``.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, cast
from uuid import uuid4

from qdrant_client import models

from entrepot.capabilities import Metric
from entrepot.errors import CollectionMismatchError, CollectionNotFoundError, ConfigurationError
from entrepot.records import LAYOUT_VERSION, CollectionInfo
from entrepot_qdrant.commands import change, read
from entrepot_qdrant.faults import CollectionExistsError
from entrepot_qdrant.fields import ALWAYS, DENSE, OWN, WORDS
from entrepot_qdrant.names import collection_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from entrepot_qdrant.commands import Script
    from entrepot_qdrant.fields import IndexWish
    from entrepot_qdrant.layouts import Layout

Kind = Literal["flat", "hnsw"]
RECORD: Final = "entrepot"
_DISTANCES: Final = {
    Metric.COSINE: models.Distance.COSINE,
    Metric.DOT: models.Distance.DOT,
    Metric.EUCLIDEAN: models.Distance.EUCLID,
}
_SCHEMAS: Final = {
    "keyword": models.PayloadSchemaType.KEYWORD,
    "integer": models.PayloadSchemaType.INTEGER,
    "datetime": models.PayloadSchemaType.DATETIME,
}
_OLDEST: Final = (1, 17)
"""The server's first version that knows insertions only and updates only; older ones overlook them in silence."""


class Place(NamedTuple):
    """A collection as the engine has it.

    Attributes:
        name: The engine's name of it.
        info: What it records about itself.
        kind: Which index it has.
        generation: Which collection of this name it is.
        indexes: Paths of the payload indexes that are known here.
        layout: Where documents lie in its points.
    """

    name: str
    info: CollectionInfo
    kind: Kind
    generation: str
    indexes: set[str]
    layout: Layout = OWN

    @property
    def ann(self) -> bool:
        """Whether searches may be approximate."""
        return self.kind == "hnsw"


class Plan(NamedTuple):
    """What a new collection gets, and how it is written and read.

    Attributes:
        served: Whether it is on a server; the local mode has no options.
        kind: Which index.
        m: HNSW: edges of a node.
        ef_construction: HNSW: candidates while the index is made.
        ef_search: HNSW: candidates of a search.
        quantization: Which small copies of the vectors are kept.
        oversampling: How many times k candidates are scored anew.
        shards: Shards.
        replicas: Copies of each shard.
        ordering: What is promised about the order of writes.
        consistency: From how many replicas is read.
        max_indexes: Most payload indexes.
        average_words: Words of a text of average length.
    """

    served: bool = False
    kind: Kind = "flat"
    m: int = 16
    ef_construction: int = 128
    ef_search: int = 128
    quantization: Literal["scalar", "binary"] | None = None
    oversampling: float = 3.0
    shards: int | None = None
    replicas: int | None = None
    ordering: Literal["weak", "medium", "strong"] = "weak"
    consistency: int | str | None = None
    max_indexes: int = 0
    average_words: float = 256.0

    @property
    def acknowledged(self) -> dict[str, Any]:
        """What goes with every write: it is waited for, in the order that is asked for (S7)."""
        if not self.served:
            return {}
        return {"wait": True, "ordering": models.WriteOrdering(self.ordering)}

    @property
    def reading(self) -> dict[str, Any]:
        """What goes with reads of points."""
        if self.consistency is None:
            return {}
        given = self.consistency
        return {"consistency": models.ReadConsistencyType(given) if isinstance(given, str) else given}

    def options(self) -> dict[str, Any]:
        """Return what `create_collection` is told of the index and the cluster."""
        if not self.served:
            return {}
        flat = self.kind == "flat"
        options: dict[str, Any] = {
            "hnsw_config": models.HnswConfigDiff(m=0 if flat else self.m, ef_construct=self.ef_construction),
            "shard_number": self.shards,
            "replication_factor": self.replicas,
        }
        if self.quantization == "scalar":
            options["quantization_config"] = models.ScalarQuantization(
                scalar=models.ScalarQuantizationConfig(type=models.ScalarType.INT8, always_ram=True)
            )
        elif self.quantization == "binary":
            options["quantization_config"] = models.BinaryQuantization(
                binary=models.BinaryQuantizationConfig(always_ram=True)
            )
        return {name: value for name, value in options.items() if value is not None}


def check_server() -> Script[None]:
    """Refuse a server that cannot keep the contract.

    Raises:
        ConfigurationError: It is older than 1.17.
    """
    version = str((yield read("info")).version)
    numbers = tuple(int(part) for part in version.split(".")[:2] if part.isdecimal())
    if numbers < _OLDEST:
        msg = f"the server has version {version}, which does not know conditions of writes"
        raise ConfigurationError(msg, hint="use Qdrant 1.17 or newer")


def describe(collection: str) -> Script[Place | None]:
    """Return a collection, or None if there is none.

    Raises:
        CollectionMismatchError: Something of its name is not this library's, or its layout is newer.
    """
    name = collection_name(collection)
    try:
        found = yield read("get_collection", collection_name=name)
    except CollectionNotFoundError:
        return None
    return _place(name, found, collection)


def _place(name: str, found: Any, collection: str) -> Place:
    record = _record(found)
    try:
        layout, generation, kind = int(record["layout"]), str(record["generation"]), str(record["index"])
        metric, dimension = Metric(record["metric"]), int(record["dimension"])
    except (KeyError, TypeError, ValueError):
        msg = f"collection {collection!r} was not made by this library"
        raise CollectionMismatchError(msg, hint="choose another name for the collection") from None
    if layout != LAYOUT_VERSION:
        msg = f"collection {collection!r} has layout {layout}, this version reads layout {LAYOUT_VERSION}"
        raise CollectionMismatchError(
            msg, hint="use the version of entrepot-qdrant that made it, or a newer one"
        )
    model = record.get("model")
    info = CollectionInfo(name=collection, dimension=dimension, metric=metric, model=model, layout=layout)
    indexes = set(cast("dict[str, object]", found.payload_schema or {}))
    return Place(name, info, "hnsw" if kind == "hnsw" else "flat", generation, indexes)


def _record(found: Any) -> dict[str, Any]:
    """Return what this library recorded of a collection; nothing of one that others made."""
    metadata = cast("dict[str, Any]", found.config.metadata or {})
    record: object = metadata.get(RECORD)
    return cast("dict[str, Any]", record) if isinstance(record, dict) else {}


def create(info: CollectionInfo, plan: Plan) -> Script[Place]:
    """Make a collection, unless it is there; return it.

    Raises:
        CollectionMismatchError: It is there by now with another metric or dimension, or something else
            has its name.
    """
    record = {
        "layout": info.layout,
        "name": info.name,
        "metric": str(info.metric),
        "dimension": info.dimension,
        "model": info.model,
        "index": plan.kind,
        "generation": uuid4().hex,
    }
    place = yield from describe(info.name)
    if place is None:
        with suppress(CollectionExistsError):  # made at the same time
            yield change(
                "create_collection",
                collection_name=collection_name(info.name),
                vectors_config={
                    DENSE: models.VectorParams(size=info.dimension, distance=_DISTANCES[info.metric])
                },
                sparse_vectors_config={WORDS: models.SparseVectorParams(modifier=models.Modifier.IDF)},
                metadata={RECORD: record},
                **plan.options(),
            )
        place = yield from describe(info.name)
    if place is None or (place.info.metric, place.info.dimension) != (info.metric, info.dimension):
        msg = f"collection {info.name!r} was made at the same time with another metric or dimension"
        raise CollectionMismatchError(msg, hint="open the store again")
    yield from ensure_indexes(place, ALWAYS, plan)
    return place


def ensure_indexes(place: Place, wished: Sequence[IndexWish], plan: Plan) -> Script[None]:
    """Make the payload indexes that are missing, as far as there is room; making one twice does nothing.

    Answers are the same without them.
    """
    for wish in wished:
        if wish.path in place.indexes or len(place.indexes) >= plan.max_indexes:
            continue
        yield change(
            "create_payload_index",
            collection_name=place.name,
            field_name=wish.path,
            field_schema=_SCHEMAS[wish.kind],
            **plan.acknowledged,
        )
        place.indexes.add(wish.path)


def drop(collection: str) -> Script[None]:
    """Remove a collection with all its documents; a missing one is no error.

    Raises:
        CollectionMismatchError: What has its name is not this library's.
    """
    place = yield from describe(collection)
    if place is not None:
        yield change("delete_collection", collection_name=place.name)


def list_collections() -> Script[list[str]]:
    """Return the names of this library's collections, sorted by code point."""
    found: list[str] = []
    for listed in (yield read("get_collections")).collections:
        try:
            described = yield read("get_collection", collection_name=listed.name)
        except CollectionNotFoundError:  # dropped meanwhile
            continue
        name = _record(described).get("name")
        if isinstance(name, str):
            found.append(name)
    return sorted(found)


def refuse_stale(place: Place) -> Script[None]:
    """Refuse to go on if the collection is no longer the one that was described.

    Raises:
        CollectionNotFoundError: It was dropped.
        CollectionMismatchError: It was dropped and made anew.
    """
    now = yield from describe(place.info.name)
    if now is None:
        msg = f"there is no collection {place.info.name!r}"
        raise CollectionNotFoundError(msg)
    if now.generation != place.generation:
        msg = f"collection {place.info.name!r} was dropped and made anew meanwhile"
        raise CollectionMismatchError(
            msg, hint="the store knows the new one now: try again, if it is the one you mean"
        )


def details(place: Place) -> Script[dict[str, Any]]:
    """Return what kind of index there is, its state and its payload indexes."""
    found = yield read("get_collection", collection_name=place.name)
    return {
        "index": place.kind,
        "status": str(getattr(found.status, "value", found.status)),
        "segments": found.segments_count,
        "indexed_vectors": found.indexed_vectors_count,
        "payload_indexes": len(found.payload_schema or {}),
    }
