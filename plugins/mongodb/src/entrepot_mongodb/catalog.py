"""Collections: what they record about themselves, and how they are made (D5). Scripts.

The records of a database's collections are documents of one collection of the engine, `entrepot.collections`. A record
names the engine's collection that holds the documents, which no other ever named. So what reads and finds nothing, and
what has written, asks whether the record is still there: the engine itself makes a collection of any name that is
written to.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from entrepot.capabilities import Metric
from entrepot.errors import (
    CollectionMismatchError,
    CollectionNotFoundError,
    ConfigurationError,
    EntrepotError,
)
from entrepot.records import LAYOUT_VERSION, CollectionInfo
from entrepot_mongodb import indexes
from entrepot_mongodb.commands import Call, Find, change, delete, insert
from entrepot_mongodb.faults import DuplicateKeyError, ForbiddenError, NoSearchError
from entrepot_mongodb.filters import TOKENS
from entrepot_mongodb.names import CATALOG, new_generation, plain

if TYPE_CHECKING:
    from entrepot_mongodb.commands import Script

Kind = Literal["flat", "hnsw"]


class Place(NamedTuple):
    """A collection as the engine has it.

    Attributes:
        name: The engine's collection, which is this collection's alone.
        info: What it records about itself.
        kind: How it is searched: by ``$vectorSearch``, or by comparing all that match.
        as_vector: Whether vectors are written as BSON's binary vectors.
    """

    name: str
    info: CollectionInfo
    kind: Kind
    as_vector: bool

    @property
    def ann(self) -> bool:
        """Whether its searches are approximate unless they ask for ``exact=True``."""
        return self.kind == "hnsw"


class Plan(NamedTuple):
    """What a new collection gets, and how it is searched.

    Attributes:
        kind: Its index, or ``auto``.
        binary: How vectors are written.
        ef_search: Least candidates of an approximate search.
        timeout: Seconds of an exchange, where none is under way.
    """

    kind: Literal["auto", "flat", "hnsw"] = "auto"
    binary: Literal["auto", "plain", "vector"] = "auto"
    ef_search: int = 200
    timeout: float = 10.0


def check_server() -> Script[dict[str, Any]]:
    """Log in, and return what the server says of itself."""
    # Any user may ask for this, and it is not answered before the login.
    yield Call(CATALOG, "find_one", ({"_id": ""}, {"_id": 1}))
    found: dict[str, Any] = yield Call(None, "command", ("hello",))
    return found


def describe(collection: str, plan: Plan) -> Script[Place | None]:
    """Return a collection, or None if there is none.

    Raises:
        CollectionMismatchError: What has its name is not this library's, or its layout is newer.
    """
    record = yield Call(CATALOG, "find_one", ({"_id": collection},))
    if record is None or record.get("dropped"):
        if plain(collection):
            yield from _refuse_other(collection)
        return None
    as_vector = yield from _takes_vectors(plan)
    return _place(record, collection, as_vector=as_vector)


def _refuse_other(collection: str) -> Script[None]:
    """Refuse a collection of the engine that has the name and no record here."""
    with suppress(ForbiddenError):  # who may not look will not overwrite it either: ours has another name
        there = yield Call(None, "list_collection_names", (), {"filter": {"name": collection}})
        if collection in there:
            raise _not_ours(collection)


def _takes_vectors(plan: Plan) -> Script[bool]:
    """Return whether the server stores BSON's binary vectors: doubles of the protocol, which know no sessions, may not."""
    if plan.binary != "auto":
        return plan.binary == "vector"
    hello = yield Call(None, "command", ("hello",))
    return hello.get("logicalSessionTimeoutMinutes") is not None


def _not_ours(collection: str) -> CollectionMismatchError:
    return CollectionMismatchError(
        f"collection {collection!r} was not made by this library",
        hint="choose another name for the collection, or another database",
    )


def _place(record: dict[str, Any], collection: str, *, as_vector: bool) -> Place:
    try:
        layout, name, kind = int(record["layout"]), str(record["documents"]), str(record["index"])
        metric, dimension = Metric(record["metric"]), int(record["dimension"])
    except (KeyError, TypeError, ValueError):
        raise _not_ours(collection) from None
    if layout != LAYOUT_VERSION:
        msg = f"collection {collection!r} has layout {layout}, this version reads layout {LAYOUT_VERSION}"
        raise CollectionMismatchError(
            msg, hint="use the version of entrepot-mongodb that made it, or a newer one"
        )
    info = CollectionInfo(
        name=collection, dimension=dimension, metric=metric, model=record.get("model"), layout=layout
    )
    return Place(name, info, "hnsw" if kind == "hnsw" else "flat", as_vector)


def create(info: CollectionInfo, plan: Plan) -> Script[Place]:
    """Make a collection with its indexes; one that is there already is found.

    Raises:
        CollectionMismatchError: It was made at the same time with another metric or dimension.
        ConfigurationError: An index for ``$vectorSearch`` is asked for, and the server has no such search.
        OperationTimeoutError: The collection is made, and its index for ``$vectorSearch`` is not ready yet.
    """
    name = new_generation(info.name)
    while True:
        yield from _finish_dropping(info.name)
        place = yield from describe(info.name, plan)
        if place is not None:
            break
        yield Call(None, "create_collection", (name,), writes=True)
        yield Call(name, "create_index", ([(TOKENS, 1)],), writes=True)
        try:
            kind = yield from _search_index(name, info, plan)
        except EntrepotError:
            yield Call(None, "drop_collection", (name,), writes=True)
            raise
        record = {
            "_id": info.name,
            "layout": info.layout,
            "metric": str(info.metric),
            "dimension": info.dimension,
            "model": info.model,
            "documents": name,
            "index": kind,
        }
        try:
            yield insert(CATALOG, record)
        except DuplicateKeyError:
            yield Call(None, "drop_collection", (name,), writes=True)
    if (place.info.metric, place.info.dimension) != (info.metric, info.dimension):
        msg = f"collection {info.name!r} was made at the same time with another metric or dimension"
        raise CollectionMismatchError(msg, hint="open the store again")
    if place.kind == "hnsw":
        yield from indexes.ready(place.name, plan.timeout)
    return place


def _search_index(name: str, info: CollectionInfo, plan: Plan) -> Script[Kind]:
    """Begin to make the index for `$vectorSearch` where it is wanted and the server has it."""
    if plan.kind == "flat":
        return "flat"
    if info.dimension > indexes.MOST_DIMENSIONS:
        if plan.kind == "auto":
            return "flat"
        msg = f"an index for $vectorSearch takes {indexes.MOST_DIMENSIONS} components, not {info.dimension}"
        raise ConfigurationError(msg, hint="use index='flat', or an embedding model with fewer dimensions")
    try:
        yield from indexes.status(name)
        yield from indexes.make(name, info)
    except NoSearchError as error:
        if plan.kind == "auto":
            return "flat"
        msg = "the server has no $vectorSearch, and index='hnsw' asks for it"
        raise ConfigurationError(
            msg, hint="use Atlas, or a server with mongot beside it, or index='flat'"
        ) from error
    return "hnsw"


def drop(collection: str, plan: Plan) -> Script[None]:
    """Remove a collection with all its documents; a missing one is no error.

    Raises:
        CollectionMismatchError: What has its name is not this library's.
    """
    yield from describe(collection, plan)
    # First nobody finds it any more; what breaks off after that is finished by the next who drops or makes one.
    yield change(CATALOG, {"_id": collection}, {"$set": {"dropped": True}})
    yield from _finish_dropping(collection)


def _finish_dropping(collection: str) -> Script[None]:
    record = yield Call(CATALOG, "find_one", ({"_id": collection, "dropped": True},))
    if record is not None:
        name = str(record["documents"])
        yield Call(None, "drop_collection", (name,), writes=True)
        yield delete(CATALOG, {"_id": collection, "documents": name, "dropped": True})


def list_collections() -> Script[list[str]]:
    """Return the names of this library's collections in the database, sorted by code point."""
    found = yield Find(CATALOG, {"dropped": {"$ne": True}}, {"_id": 1})
    return sorted(str(one["_id"]) for one in found)


def still_there(place: Place) -> Script[None]:
    """Return if the collection is still what it was when its place was learned.

    Raises:
        CollectionNotFoundError: It was dropped, or made anew.
    """
    record = yield Call(
        CATALOG,
        "find_one",
        ({"_id": place.info.name, "documents": place.name, "dropped": {"$ne": True}}, {"_id": 1}),
    )
    if record is None:
        msg = f"there is no collection {place.info.name!r} as it was"
        raise CollectionNotFoundError(msg)


def landed(place: Place) -> Script[None]:
    """Return if what was written lies in the collection; if it was dropped meanwhile, remove what the engine made anew.

    Raises:
        CollectionNotFoundError: It was dropped, or made anew.
    """
    try:
        yield from still_there(place)
    except CollectionNotFoundError:
        yield Call(None, "drop_collection", (place.name,), writes=True)
        raise


_SIZES: Final = {"size": "bytes", "storageSize": "storage_bytes", "totalIndexSize": "index_bytes"}


def details(place: Place) -> Script[dict[str, Any]]:
    """Return how vectors are compared, and how much is stored."""
    found: dict[str, Any] = {
        "index": place.kind,
        "search": "$vectorSearch" if place.ann else "vectors of all that match are read and compared here",
        "engine_collection": place.name,
        "vectors": "binary vector" if place.as_vector else "binary",
    }
    if place.ann:
        found["index_status"] = yield from indexes.status(place.name)
    with suppress(ForbiddenError):
        told = yield Call(None, "command", ("collStats", place.name))
        found |= {ours: int(told[theirs]) for theirs, ours in _SIZES.items() if theirs in told}
    return found
