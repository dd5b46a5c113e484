"""Collections: what they record about themselves, and how they are made (D5). Scripts.

A collection is a namespace of an index. Its record is a record of the engine in a namespace of the index that is kept for
that, `entrepot.catalog`. An index that this library made is deleted with the last of its collections; one that was there is
left.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from entrepot.capabilities import Metric
from entrepot.errors import CollectionMismatchError, CollectionNotFoundError
from entrepot.records import LAYOUT_VERSION, CollectionInfo
from entrepot_pinecone.commands import CONTROL, Pause, ask, change, read
from entrepot_pinecone.faults import IndexExistsError
from entrepot_pinecone.names import CATALOG, MADE, catalog_id, index_name
from entrepot_pinecone.servers import checked_url

if TYPE_CHECKING:
    from entrepot_pinecone.commands import Script

_METRICS: Final = {Metric.COSINE: "cosine", Metric.DOT: "dotproduct", Metric.EUCLIDEAN: "euclidean"}
_PAUSE: Final = 0.25
_TAG: Final = "made-by"
_US: Final = "entrepot"
_LEAVING: Final = frozenset({"Terminating", "Terminated"})


class Place(NamedTuple):
    """A collection as the engine has it.

    Attributes:
        name: The index.
        host: The URL where it answers.
        namespace: The namespace of the documents.
        info: What the collection records about itself.
    """

    name: str
    host: str
    namespace: str
    info: CollectionInfo

    @property
    def ann(self) -> bool:
        """Whether its searches are approximate: the service decides on that, and promises nothing."""
        return True


class Plan(NamedTuple):
    """Where a collection is, and what a new one gets.

    Attributes:
        namespace: The namespace of the documents.
        host: The URL of the index, or None if the control plane tells it.
        scheme: The scheme of an index's host that comes without one.
        cloud: The cloud of a new index.
        region: Its region.
        most_rows: Most documents that an exact search reads.
    """

    namespace: str
    host: str | None
    scheme: str
    cloud: str
    region: str
    most_rows: int


class Index(NamedTuple):
    """An index, as the control plane or the index itself tells.

    Attributes:
        host: The URL where it answers.
        dimension: Components of its vectors.
        metric: The engine's name of how they are compared; None if it does not tell.
        ready: Whether it answers by now.
        ours: Whether it says that this library made it.
    """

    host: str
    dimension: int
    metric: str | None
    ready: bool = True
    ours: bool = False


def within(namespace: str, *more: tuple[str, str]) -> tuple[tuple[str, str], ...]:
    """Return parameters of a request that name a namespace, and others."""
    return (*more, ("namespace", namespace)) if namespace else more


def named(namespace: str, body: dict[str, Any]) -> dict[str, Any]:
    """Return the body of a request that names a namespace."""
    return {**body, "namespace": namespace} if namespace else body


# --- finding ----------------------------------------------------------------------------------------------


def check_server(plan: Plan, collection: str) -> Script[None]:
    """Ask for something, so that a wrong address or key shows at once."""
    yield from _index(collection, plan)


def _index(collection: str, plan: Plan) -> Script[Index | None]:
    """Return the collection's index, or None if there is none."""
    try:
        if plan.host is not None:
            told = (yield ask(plan.host, "/describe_index_stats", {})).body
            return Index(plan.host, int(told["dimension"]), cast("str | None", told.get("metric")))
        told = (yield read(CONTROL, f"/indexes/{index_name(collection)}")).body
    except CollectionNotFoundError:
        return None
    return _index_of(told, plan)


def _index_of(told: dict[str, Any], plan: Plan) -> Index | None:
    status = cast("dict[str, Any]", told.get("status") or {})
    if status.get("state") in _LEAVING:
        return None
    host = told.get("host")
    ready = bool(status.get("ready", True)) and bool(host)
    base = checked_url("host", str(host), plan.scheme) if host else ""
    return Index(
        base,
        int(told.get("dimension") or 0),
        cast("str | None", told.get("metric")),
        ready,
        cast("dict[str, Any]", told.get("tags") or {}).get(_TAG) == _US,
    )


def describe(collection: str, plan: Plan) -> Script[Place | None]:
    """Return a collection, or None if there is none.

    Raises:
        CollectionMismatchError: What is in the namespace is not this library's, or its layout is newer.
        OperationTimeoutError: The index is being made, and is not ready yet.
    """
    index = yield from _index(collection, plan)
    while index is not None and not index.ready:
        yield Pause(_PAUSE)
        index = yield from _index(collection, plan)
    if index is None:
        return None
    try:
        return (yield from _describe(collection, plan, index))
    except CollectionNotFoundError:  # dropped meanwhile
        return None


def _describe(collection: str, plan: Plan, index: Index) -> Script[Place | None]:
    record = yield from _record(index.host, plan.namespace)
    if record is None:
        told = yield read(index.host, "/vectors/list", within(plan.namespace, ("limit", "1")))
        if told.body.get("vectors"):
            raise _not_ours(collection)
        return None
    return _place(record, collection, plan, index)


def _record(host: str, namespace: str) -> Script[dict[str, Any] | None]:
    """Return what the collection in a namespace records about itself."""
    name = catalog_id(namespace)
    answer = yield read(host, "/vectors/fetch", within(CATALOG, ("ids", name)))
    found = cast("dict[str, Any]", answer.body.get("vectors") or {}).get(name)
    return None if found is None else cast("dict[str, Any]", found.get("metadata") or {})


def _not_ours(collection: str) -> CollectionMismatchError:
    return CollectionMismatchError(
        f"collection {collection!r} was not made by this library",
        hint="choose another name for the collection, or another namespace of the index",
    )


def _place(record: dict[str, Any], collection: str, plan: Plan, index: Index) -> Place:
    try:
        layout, metric = int(record["layout"]), Metric(record["metric"])
        dimension = int(record["dimension"])
    except (KeyError, TypeError, ValueError):
        raise _not_ours(collection) from None
    if layout != LAYOUT_VERSION:
        msg = f"collection {collection!r} has layout {layout}, this version reads layout {LAYOUT_VERSION}"
        raise CollectionMismatchError(
            msg, hint="use the version of entrepot-pinecone that made it, or a newer one"
        )
    info = CollectionInfo(
        name=collection,
        dimension=dimension,
        metric=metric,
        model=cast("str | None", record.get("model")),
        layout=layout,
    )
    return Place(index_name(collection), index.host, plan.namespace, info)


def still_there(place: Place) -> Script[None]:
    """Return if the collection is still what it was when its place was learned.

    Raises:
        CollectionNotFoundError: It was dropped.
        CollectionMismatchError: It was made anew, with another metric or dimension.
    """
    record = yield from _record(place.host, place.namespace)
    if record is None:
        msg = f"there is no collection {place.info.name!r} any more"
        raise CollectionNotFoundError(msg)
    if (record.get("metric"), record.get("dimension")) != (str(place.info.metric), place.info.dimension):
        msg = f"collection {place.info.name!r} was made anew with another metric or dimension"
        raise CollectionMismatchError(msg, hint="open the store again")


# --- making -----------------------------------------------------------------------------------------------


def create(info: CollectionInfo, plan: Plan) -> Script[Place]:
    """Make a collection, and its index if there is none; one that is there already is found.

    Raises:
        CollectionMismatchError: It has another metric or dimension, or so has the index.
        CollectionNotFoundError: A host is given, and no index answers there.
        OperationTimeoutError: The index is told to be made, and is not ready yet.
    """
    made = False
    while True:
        index = yield from _index(info.name, plan)
        if index is not None and index.ready:
            break
        if index is None:
            if plan.host is not None:
                msg = f"no index answers at the host of collection {info.name!r}"
                raise CollectionNotFoundError(msg, hint="leave host out, and the index will be made")
            try:
                yield change(CONTROL, "POST", "/indexes", _wanted(info, plan))
            except IndexExistsError:  # made at the same time, or still being deleted
                yield Pause(_PAUSE)
            else:
                made = True
                continue
        else:
            yield Pause(_PAUSE)
    _check_fits(info, index)
    place = yield from _describe(info.name, plan, index)
    if place is None:
        yield change(index.host, "POST", "/vectors/upsert", _recorded(info, plan, made=made or index.ours))
        while place is None:  # what was written may be readable later
            place = yield from _describe(info.name, plan, index)
            if place is None:
                yield Pause(_PAUSE)
    if (place.info.metric, place.info.dimension) != (info.metric, info.dimension):
        msg = f"collection {info.name!r} was made at the same time with another metric or dimension"
        raise CollectionMismatchError(msg, hint="open the store again")
    return place


def _wanted(info: CollectionInfo, plan: Plan) -> dict[str, Any]:
    return {
        "name": index_name(info.name),
        "dimension": info.dimension,
        "metric": _METRICS[info.metric],
        "vector_type": "dense",
        "spec": {"serverless": {"cloud": plan.cloud, "region": plan.region}},
        "deletion_protection": "disabled",
        "tags": {_TAG: _US},
    }


def _check_fits(info: CollectionInfo, index: Index) -> None:
    if index.dimension != info.dimension or index.metric not in {None, _METRICS[info.metric]}:
        msg = (
            f"the index of collection {info.name!r} has dimension {index.dimension} and metric {index.metric}, "
            f"and the collection needs {info.dimension} and {_METRICS[info.metric]}"
        )
        raise CollectionMismatchError(msg, hint="all namespaces of an index share them; use another index")


def _recorded(info: CollectionInfo, plan: Plan, *, made: bool) -> dict[str, Any]:
    """Return the request that writes a collection's record, and whether the index was made for it."""
    values = [1.0] + [0.0] * (info.dimension - 1)
    record: dict[str, Any] = {
        "layout": info.layout,
        "metric": str(info.metric),
        "dimension": info.dimension,
        "name": info.name,
        "namespace": plan.namespace,
    }
    if info.model is not None:
        record["model"] = info.model
    written = [{"id": catalog_id(plan.namespace), "values": values, "metadata": record}]
    if made:
        written.append({"id": MADE, "values": values, "metadata": {"layout": info.layout}})
    return {"vectors": written, "namespace": CATALOG}


# --- dropping ---------------------------------------------------------------------------------------------


def drop(collection: str, plan: Plan) -> Script[None]:
    """Remove a collection with all its documents; a missing one is no error.

    Raises:
        CollectionMismatchError: What is in the namespace is not this library's.
    """
    index = yield from _index(collection, plan)
    if index is None:
        return
    if not index.ready and index.ours:  # whoever made it has written nothing yet
        yield from _delete_index(collection, plan)
        return
    try:
        place = yield from _describe(collection, plan, index)
        listed = yield read(index.host, "/vectors/list", within(CATALOG, ("limit", "100")))
    except CollectionNotFoundError:  # dropped meanwhile
        return
    names = {str(one["id"]) for one in listed.body.get("vectors") or ()}
    own = catalog_id(plan.namespace)
    made = MADE in names or index.ours
    if made and not names - {MADE, own} and plan.host is None:
        yield from _delete_index(collection, plan)
    elif place is not None:
        # First nobody finds it any more.
        yield from _delete(index.host, {"ids": [own], "namespace": CATALOG})
        yield from _delete(index.host, named(plan.namespace, {"deleteAll": True}))


def _delete_index(collection: str, plan: Plan) -> Script[None]:
    """Have the index deleted; it is gone for whoever looks for it, though the service may take some time for it."""
    try:
        yield change(CONTROL, "DELETE", f"/indexes/{index_name(collection)}")
    except CollectionNotFoundError:
        return
    while (yield from _index(collection, plan)) is not None:
        yield Pause(_PAUSE)


def _delete(host: str, body: dict[str, Any]) -> Script[None]:
    try:
        yield change(host, "POST", "/vectors/delete", body)
    except CollectionNotFoundError:  # a namespace without records is none
        return


def list_collections(plan: Plan) -> Script[list[str]]:
    """Return the names of this library's collections in the namespace, of all indexes, sorted by code point.

    Each index is asked, one after the other. With a host there is one index.
    """
    if plan.host is not None:
        hosts = [plan.host]
    else:
        told = (yield read(CONTROL, "/indexes")).body
        indexes = [_index_of(one, plan) for one in told.get("indexes") or ()]
        hosts = [index.host for index in indexes if index is not None and index.ready]
    found: list[str] = []
    for host in hosts:
        try:
            record = yield from _record(host, plan.namespace)
        except CollectionNotFoundError:  # dropped meanwhile
            continue
        if record is not None and isinstance(record.get("name"), str):
            found.append(cast("str", record["name"]))
    return sorted(found)


def details(place: Place) -> Script[dict[str, Any]]:
    """Return where the collection is, and how many records the index counts, which may lag behind."""
    told = (yield ask(place.host, "/describe_index_stats", {})).body
    namespaces = cast("dict[str, Any]", told.get("namespaces") or {})
    found = namespaces.get(place.namespace or "__default__") or namespaces.get(place.namespace)
    own = cast("dict[str, Any]", found or {})
    return {
        "engine_index": place.name,
        "engine_namespace": place.namespace,
        "records": int(own.get("vectorCount", 0)),
        "records_of_the_index": int(told.get("totalVectorCount", 0)),
    }
