"""Collections: what they record about themselves, how they are made, loaded and dropped (D5). Scripts.

A collection's record stands in its properties, under ``entrepot``. On a server documents lie in a partition whose name
holds the collection's generation, so that a store which knows a collection that was dropped and made anew finds no
partition instead of another's documents.
"""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, cast
from uuid import uuid4

from entrepot.capabilities import Metric
from entrepot.errors import CollectionMismatchError, CollectionNotFoundError
from entrepot.records import LAYOUT_VERSION, CollectionInfo
from entrepot_milvus.commands import change, read
from entrepot_milvus.faults import ExistsError, NotLoadedError, RefusedError, StaleError
from entrepot_milvus.names import collection_name, partition_name
from entrepot_milvus.schemas import indexes, schema

if TYPE_CHECKING:
    from collections.abc import Mapping

    from entrepot.scripted import Script
    from entrepot_milvus.mapped_layout import MappedLayout

Kind = Literal["flat", "hnsw"]
Consistency = Literal["strong", "bounded", "session", "eventually"]
LEVELS: Final[dict[Consistency, str]] = {
    "strong": "Strong",
    "bounded": "Bounded",
    "session": "Session",
    "eventually": "Eventually",
}
"""What the engine calls each consistency."""
RECORD: Final = "entrepot"


class Plan(NamedTuple):
    """What a new collection gets, and how it is written and read.

    Attributes:
        served: Whether it is on a server; Milvus Lite has no partitions of which each has ids of its own.
        partition: The partition, as the user named it.
        kind: Which index.
        m: HNSW: edges of a node.
        ef_construction: HNSW: candidates while the index is made.
        ef_search: HNSW: candidates of a search.
        shards: Shards.
        replicas: Copies in memory.
        consistency: What reads wait for.
        words: Whether the engine ranks by words.
    """

    served: bool = True
    partition: str | None = None
    kind: Kind = "flat"
    m: int = 16
    ef_construction: int = 200
    ef_search: int = 200
    shards: int | None = None
    replicas: int | None = None
    consistency: Consistency = "strong"
    words: bool = False


class Place(NamedTuple):
    """A collection as the engine has it.

    Attributes:
        name: The engine's name of it.
        info: What it records about itself.
        kind: Which index it has.
        generation: Which collection of this name it is.
        words: Whether it keeps words.
        partition: The engine's name of the partition; None in Milvus Lite.
        layout: Where a mapping finds documents in it; None for this library's own.
    """

    name: str
    info: CollectionInfo
    kind: Kind
    generation: str
    words: bool
    partition: str | None
    layout: MappedLayout | None = None

    @property
    def ann(self) -> bool:
        """Whether searches are approximate."""
        return self.kind == "hnsw"

    @property
    def reads(self) -> dict[str, Any]:
        """What a read says of where it reads."""
        if self.partition is None:
            return {"collection_name": self.name}
        return {"collection_name": self.name, "partition_names": [self.partition]}

    @property
    def writes(self) -> dict[str, Any]:
        """What a write says of where it writes."""
        if self.partition is None:
            return {"collection_name": self.name}
        return {"collection_name": self.name, "partition_name": self.partition}


# --- looking ----------------------------------------------------------------------------------------------


def describe(collection: str, plan: Plan) -> Script[Place | None]:
    """Return a collection, ready to be read; None if there is none, or not this partition of it.

    Raises:
        CollectionMismatchError: Something of its name is not this library's, or its layout is newer.
    """
    place = yield from _found(collection, plan)
    if place is None:
        return None
    try:
        if place.partition is not None and not (
            yield read("has_partition", collection_name=place.name, partition_name=place.partition)
        ):
            return None
        state = yield read("get_load_state", collection_name=place.name)
        if not is_loaded(state):
            yield from _prepare(place, plan)
    except CollectionNotFoundError:  # dropped meanwhile
        return None
    return place


def is_loaded(state: Mapping[str, Any]) -> bool:
    """Whether a collection is in memory, by what the driver says of that."""
    return getattr(state["state"], "name", "") == "Loaded"


def _found(collection: str, plan: Plan) -> Script[Place | None]:
    name = collection_name(collection)
    try:
        found = yield read("describe_collection", collection_name=name)
    except CollectionNotFoundError:
        return None
    record = _record(found)
    try:
        layout, generation, kind = int(record["layout"]), str(record["generation"]), str(record["index"])
        metric, dimension, words = Metric(record["metric"]), int(record["dimension"]), bool(record["words"])
    except (KeyError, TypeError, ValueError):
        msg = f"collection {collection!r} was not made by this library"
        raise CollectionMismatchError(
            msg, hint="choose another name for the collection, or read it by a mapping"
        ) from None
    if layout != LAYOUT_VERSION:
        msg = f"collection {collection!r} has layout {layout}, this version reads layout {LAYOUT_VERSION}"
        raise CollectionMismatchError(
            msg, hint="use the version of entrepot-milvus that made it, or a newer one"
        )
    model = record.get("model")
    return Place(
        name,
        CollectionInfo(name=collection, dimension=dimension, metric=metric, model=model, layout=layout),
        "hnsw" if kind == "hnsw" else "flat",
        generation,
        words,
        partition_name(plan.partition, generation) if plan.served else None,
    )


def _record(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return what this library recorded of a collection; nothing of one that others made."""
    properties = cast("Mapping[str, object]", found.get("properties") or {})
    text = properties.get(RECORD)
    if not isinstance(text, str):
        return {}
    try:
        record: object = json.loads(text)
    except ValueError:
        return {}
    return cast("dict[str, Any]", record) if isinstance(record, dict) else {}


def watched(script: Script[Any], collection: str, place: Place | None, plan: Plan) -> Script[Any]:
    """Carry out a script that works on a collection, and say what became of it if it is no longer there.

    Raises:
        CollectionMismatchError: It was dropped and made anew.
        CollectionNotFoundError: It was dropped.
    """
    if place is not None and not plan.served:  # nothing in a request tells one collection from its successor
        yield from _refuse_successor(collection, place, plan)
    try:
        return (yield from script)
    except (StaleError, RefusedError):  # such as a vector that the successor does not take
        if place is not None:
            yield from _refuse_successor(collection, place, plan)
        raise
    except NotLoadedError:
        if place is not None:  # the core tries again, if that can do no harm
            yield from _prepare(place, plan)
        raise


def _refuse_successor(collection: str, place: Place, plan: Plan) -> Script[None]:
    now = yield from _found(collection, plan)
    if now is None:
        msg = f"there is no collection {collection!r}"
        raise CollectionNotFoundError(msg)
    if now.generation != place.generation:
        msg = f"collection {collection!r} was dropped and made anew meanwhile"
        raise CollectionMismatchError(
            msg, hint="the store knows the new one now: try again, if it is the one you mean"
        )


def list_collections(plan: Plan) -> Script[list[str]]:
    """Return the names of this library's collections, sorted by code point."""
    found: list[str] = []
    for name in cast("list[str]", (yield read("list_collections"))):
        try:
            described = yield read("describe_collection", collection_name=name)
        except CollectionNotFoundError:  # dropped meanwhile
            continue
        record = _record(described)
        if not isinstance(record.get("name"), str):
            continue
        if plan.served and plan.partition is not None:
            own = partition_name(plan.partition, str(record.get("generation")))
            try:
                if not (yield read("has_partition", collection_name=name, partition_name=own)):
                    continue
            except CollectionNotFoundError:
                continue
        found.append(record["name"])
    return sorted(found)


# --- making and dropping ----------------------------------------------------------------------------------


def create(info: CollectionInfo, plan: Plan) -> Script[Place]:
    """Make a collection with its index and load it; what is there of it by now is completed.

    Raises:
        CollectionMismatchError: It is there by now with another metric or dimension, or something else
            has its name.
    """
    place = yield from _found(info.name, plan)
    if place is None:
        record = {
            "layout": info.layout,
            "name": info.name,
            "metric": str(info.metric),
            "dimension": info.dimension,
            "model": info.model,
            "index": plan.kind,
            "generation": uuid4().hex,
            "words": plan.words,
        }
        more = {} if plan.shards is None else {"num_shards": plan.shards}
        with suppress(ExistsError):  # made at the same time
            yield change(
                "create_collection",
                collection_name=collection_name(info.name),
                schema=schema(info.dimension, words=plan.words),
                consistency_level="Strong",
                properties={RECORD: json.dumps(record)},
                **more,
            )
        place = yield from _found(info.name, plan)
    if place is None or (place.info.metric, place.info.dimension) != (info.metric, info.dimension):
        msg = f"collection {info.name!r} was made at the same time with another metric or dimension"
        raise CollectionMismatchError(msg, hint="open the store again")
    yield from _prepare(place, plan)
    return place


def _prepare(place: Place, plan: Plan) -> Script[None]:
    """Make what is missing of a collection's partition and indexes, and load it."""
    if place.partition is not None:
        with suppress(ExistsError):
            yield change("create_partition", collection_name=place.name, partition_name=place.partition)
    there = yield read("list_indexes", collection_name=place.name)
    for field, index in indexes(place, plan):
        if field not in there:
            with suppress(ExistsError):
                # What is written later is indexed later, so there is nothing to wait for.
                yield change("create_index", collection_name=place.name, index_params=index, sync=False)
    more = {} if plan.replicas is None else {"replica_number": plan.replicas}
    yield change("load_collection", collection_name=place.name, **more)


def drop(collection: str, plan: Plan) -> Script[None]:
    """Remove a collection with all its documents, or a partition of it; a missing one is no error.

    Raises:
        CollectionMismatchError: What has its name is not this library's.
    """
    place = yield from _found(collection, plan)
    if place is None:
        return
    with suppress(CollectionNotFoundError):  # dropped meanwhile
        if plan.partition is None:
            yield change("drop_collection", collection_name=place.name)
        elif (yield read("has_partition", collection_name=place.name, partition_name=place.partition)):
            yield change("release_partitions", collection_name=place.name, partition_names=[place.partition])
            yield change("drop_partition", collection_name=place.name, partition_name=place.partition)


def details(place: Place, plan: Plan) -> Script[dict[str, Any]]:
    """Return what kind of index there is, and the engine's version."""
    version = yield read("get_server_version")
    return {
        "engine": str(version),
        "index": place.kind,
        "consistency": plan.consistency,
        "partition": plan.partition,
        "words": place.words,
    }
