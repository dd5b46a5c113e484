"""Collections: what they record about themselves, and how they are made (D5). Scripts.

A collection is an index. Its record stands in the index's mapping, under ``_meta``; with it goes an alias of its own
that no other index ever has. All that is read and written goes to that alias, so a collection that was dropped and made
anew is never taken for the old one, and a write to what is not there makes nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, cast

from entrepot.capabilities import Metric
from entrepot.errors import (
    CollectionMismatchError,
    CollectionNotFoundError,
    ConfigurationError,
    OperationTimeoutError,
)
from entrepot.records import LAYOUT_VERSION, CollectionInfo
from entrepot_elasticsearch.commands import change, read
from entrepot_elasticsearch.faults import CollectionExistsError, ForbiddenError
from entrepot_elasticsearch.fields import EMBEDDING, ID, SLOT, TEXT, WORDS
from entrepot_elasticsearch.filters import LONG, TOKENS
from entrepot_elasticsearch.names import index_name, new_generation
from entrepot_elasticsearch.words import LONGEST

if TYPE_CHECKING:
    from entrepot_elasticsearch.commands import Script

Kind = Literal["flat", "hnsw"]
RECORD: Final = "entrepot"
OLDEST: Final = (8, 15)
"""The first version of the server that is asked."""
_HIDES_VECTORS: Final = (9, 2)
"""The first version that leaves vectors out of documents unless it is told otherwise."""


class Place(NamedTuple):
    """A collection as the engine has it.

    Attributes:
        name: The index.
        generation: The alias that is this index's alone.
        info: What it records about itself.
        kind: How its vectors are indexed.
    """

    name: str
    generation: str
    info: CollectionInfo
    kind: Kind

    @property
    def ann(self) -> bool:
        """Whether its searches are approximate unless they ask for ``exact=True``."""
        return self.kind == "hnsw"


class Plan(NamedTuple):
    """What a new collection gets, and how it is searched.

    Attributes:
        kind: How its vectors are indexed.
        m: HNSW: edges of a node.
        ef_construction: HNSW: candidates while the index is made.
        ef_search: HNSW: least candidates of a search.
        shards: Shards.
        replicas: Copies of each shard.
    """

    kind: Kind = "hnsw"
    m: int = 16
    ef_construction: int = 128
    ef_search: int = 200
    shards: int = 1
    replicas: int = 0


Version = tuple[int, ...]


def check_server() -> Script[Version | None]:
    """Return the server's version, or None where the user may not know it.

    Raises:
        ConfigurationError: It is too old.
    """
    try:
        told = yield read("/")
    except ForbiddenError:
        return None
    version = told.get("version", {})
    number = str(version.get("number", ""))
    found = tuple(int(part) for part in number.split(".")[:2] if part.isdecimal())
    if version.get("build_flavor") == "serverless":
        return None
    if found < OLDEST:
        msg = f"the server has version {number}, and this needs {'.'.join(map(str, OLDEST))} or newer"
        raise ConfigurationError(msg, hint="upgrade the server")
    return found


def describe(collection: str) -> Script[Place | None]:
    """Return a collection, or None if there is none.

    Raises:
        CollectionMismatchError: What has its name is not this library's, or its layout is newer.
    """
    index = index_name(collection)
    try:
        found = yield read(f"/{index}/_mapping")
    except CollectionNotFoundError:
        return None
    record = found.get(index, {}).get("mappings", {}).get("_meta", {}).get(RECORD)
    if not isinstance(record, dict):
        raise _not_ours(collection)
    return _place(index, cast("dict[str, Any]", record), collection)


def _not_ours(collection: str) -> CollectionMismatchError:
    return CollectionMismatchError(
        f"collection {collection!r} was not made by this library",
        hint="choose another name for the collection, or name its fields by mapping=",
    )


def _place(index: str, record: dict[str, Any], collection: str) -> Place:
    try:
        layout, generation, kind = int(record["layout"]), str(record["generation"]), str(record["index"])
        metric, dimension = Metric(record["metric"]), int(record["dimension"])
    except (KeyError, TypeError, ValueError):
        raise _not_ours(collection) from None
    if layout != LAYOUT_VERSION:
        msg = f"collection {collection!r} has layout {layout}, this version reads layout {LAYOUT_VERSION}"
        raise CollectionMismatchError(
            msg, hint="use the version of entrepot-elasticsearch that made it, or a newer one"
        )
    model = record.get("model")
    info = CollectionInfo(name=collection, dimension=dimension, metric=metric, model=model, layout=layout)
    return Place(index, generation, info, "flat" if kind == "flat" else "hnsw")


def create(info: CollectionInfo, plan: Plan, version: Version | None) -> Script[Place]:
    """Make a collection, and wait until it takes writes; one that is there already is found.

    Raises:
        CollectionMismatchError: It was made at the same time with another metric or dimension.
    """
    index = index_name(info.name)
    generation = new_generation(index)
    # Whoever writes refreshes. The engine's own interval would show a part of a bulk request.
    settings: dict[str, Any] = {
        "number_of_shards": plan.shards,
        "number_of_replicas": plan.replicas,
        "refresh_interval": "-1",
        # The engine would cut a word after 255 characters, and find its pieces (S9).
        "analysis": {"analyzer": {"default": {"type": "standard", "max_token_length": LONGEST}}},
    }
    if version is not None and version >= _HIDES_VECTORS:
        settings["index.mapping.exclude_source_vectors"] = False
    body: dict[str, Any] = {
        "settings": settings,
        "mappings": _mappings(info, plan, generation),
        "aliases": {generation: {}},
    }
    try:
        told = yield change("PUT", f"/{index}", body)
    except CollectionExistsError:
        place = yield from describe(info.name)
        if place is None or (place.info.metric, place.info.dimension) != (info.metric, info.dimension):
            msg = f"collection {info.name!r} was made at the same time with another metric or dimension"
            raise CollectionMismatchError(msg, hint="open the store again") from None
        return place
    if not told.get("shards_acknowledged"):
        msg = f"collection {info.name!r} was made, and its shards do not take writes yet"
        raise OperationTimeoutError(msg, outcome="unknown")
    return Place(index, generation, info, plan.kind)


def _mappings(info: CollectionInfo, plan: Plan, generation: str) -> dict[str, Any]:
    """Return what the fields of a collection are; whatever metadata it holds, there are no others."""
    record = {
        "name": info.name,
        "layout": info.layout,
        "metric": str(info.metric),
        "dimension": info.dimension,
        "model": info.model,
        "generation": generation,
        "index": plan.kind,
    }
    # Without quantisation: it would change scores and their order (S1, S2). The core makes unit vectors under cosine.
    graph: dict[str, Any] = {"type": "flat"}
    if plan.kind == "hnsw":
        graph = {"type": "hnsw", "m": plan.m, "ef_construction": plan.ef_construction}
    return {
        "dynamic": False,
        "date_detection": False,
        "_meta": {RECORD: record},
        "properties": {
            ID: {"type": "keyword"},
            TOKENS: {"type": "keyword", "doc_values": False, "norms": False},
            LONG: {"type": "keyword", "index": False},
            SLOT: {"type": "short"},
            TEXT: {"type": "text"},
            WORDS: {"type": "text"},
            EMBEDDING: {
                "type": "dense_vector",
                "dims": info.dimension,
                "index": True,
                "similarity": "l2_norm" if info.metric is Metric.EUCLIDEAN else "dot_product",
                "index_options": graph,
            },
        },
    }


def drop(collection: str) -> Script[None]:
    """Remove a collection with all its documents; a missing one is no error.

    Raises:
        CollectionMismatchError: What has its name is not this library's.
    """
    place = yield from describe(collection)
    if place is None:
        return
    try:
        yield change("DELETE", f"/{place.name}")
    except CollectionNotFoundError:  # dropped meanwhile
        return


def list_collections() -> Script[list[str]]:
    """Return the names of this library's collections, sorted by code point."""
    found = yield read(f"/_mapping?filter_path=*.mappings._meta.{RECORD}.name")
    return sorted(
        str(one["mappings"]["_meta"][RECORD]["name"]) for one in cast("dict[str, Any]", found).values()
    )


def details(place: Place) -> Script[dict[str, Any]]:
    """Return how vectors are indexed, and how much is stored."""
    told = yield read(f"/{place.generation}/_stats/store,segments")
    totals = told["_all"]["primaries"]
    return {
        "index": place.kind,
        "engine_index": place.name,
        "bytes": totals["store"]["size_in_bytes"],
        "segments": totals["segments"]["count"],
    }
