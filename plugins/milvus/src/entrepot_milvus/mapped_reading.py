"""What reads documents out of a collection that other software made: searches, pages, counts, by id. Scripts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from msgspec.structs import replace

from entrepot.capabilities import Metric
from entrepot.errors import CollectionMismatchError, CollectionNotFoundError, RequestError
from entrepot.filters import FALSE, TRUE
from entrepot.records import Hit, Page
from entrepot.scripted import work
from entrepot.search import raw_scores
from entrepot_milvus.catalog import Place, is_loaded
from entrepot_milvus.commands import change, read
from entrepot_milvus.expressions import joined, literal, rendered
from entrepot_milvus.faults import TooLargeError
from entrepot_milvus.mapped_layout import NAME, layout_of, vector_field, whole
from entrepot_milvus.reading import AT_ONCE, PIECE
from entrepot_milvus.rows import MOST_ROWS, level
from entrepot_milvus.searching import (
    FEW_MORE,
    GROWTH,
    MOST_HITS,
    PAGE,
    WITH_DOCUMENTS,
    Near,
    best_of,
    settled,
    trimmed,
    with_vector,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from entrepot.records import Query, StoredRecord
    from entrepot.scripted import Script
    from entrepot_milvus.catalog import Plan
    from entrepot_milvus.mapped_layout import MappedLayout
    from entrepot_milvus.mapping import CollectionMapping

    Rows = Sequence[Mapping[str, Any]]

_MOST_DOT: Final = 1.0 + 2e-3
"""The dot product of two vectors whose norms are 1 within 1e-3 (D9)."""
_LISTS: Final = 32
"""Lists that a search in inverted lists reads at least, and the part of all that it reads."""
_PART: Final = 8


def describe(collection: str, plan: Plan, mapping: CollectionMapping) -> Script[Place | None]:
    """Return a collection as a mapping has it read, loaded; None if there is none.

    Raises:
        CollectionMismatchError: It lacks a field, its vectors have no index, or cannot be compared here.
    """
    if not NAME.fullmatch(collection):  # no collection has such a name
        return None
    try:
        found = yield read("describe_collection", collection_name=collection)
        vector, _ = vector_field(found, collection, mapping)
        index: Mapping[str, Any] | None = None
        for name in (yield read("list_indexes", collection_name=collection)):
            described = yield read("describe_index", collection_name=collection, index_name=name)
            if described and described.get("field_name") == vector:
                index = described
        if index is None:
            msg = f"the vectors {vector!r} of the collection {collection!r} have no index"
            raise CollectionMismatchError(msg, hint="make one; Milvus searches none without")
        layout = layout_of(found, index, collection, mapping)
        if not is_loaded((yield read("get_load_state", collection_name=collection))):
            yield change("load_collection", collection_name=collection)
    except CollectionNotFoundError:
        return None
    return Place(
        collection,
        layout.info,
        kind="flat" if layout.index_type == "FLAT" else "hnsw",  # which stands for all that are approximate
        generation="",
        words=False,
        partition=plan.partition if plan.served else None,
        layout=layout,
    )


def _layout(place: Place) -> MappedLayout:
    return cast("MappedLayout", place.layout)


def _conditions(place: Place, query: Query) -> list[str] | None:
    """Return what a query's documents must satisfy; None if none can."""
    parts: list[str] = []
    if query.filter is FALSE or query.ids == ():
        return None
    if query.ids is not None:
        among = _layout(place).among(list(dict.fromkeys(query.ids)))
        if among is None:
            return None
        parts.append(among)
    if query.filter is not TRUE and (pushed := rendered(query.pushed.query)):
        parts.append(pushed)
    return parts


def _joined(parts: Sequence[str]) -> str:
    return joined(parts, "and") if parts else ""


def distinct(records: Sequence[StoredRecord], collection: str) -> list[StoredRecord]:
    """Refuse rows that share an id (D1): the engine keeps keys apart no more than other fields."""
    if len({record.id for record in records}) < len(records):
        msg = f"ids of the collection {collection!r} are not unique: several rows have one"
        raise CollectionMismatchError(msg, hint="name another field as id, or write rows by upsert")
    return list(records)


def _records(place: Place, rows: Rows, include: Sequence[str]) -> Script[list[StoredRecord]]:
    def read_all() -> list[StoredRecord]:
        return distinct([_layout(place).record(row, include) for row in rows], place.name)

    return (yield from work(read_all, at_once=len(rows) <= AT_ONCE))


# --- by id, by page, counted ------------------------------------------------------------------------------


def fetch(
    place: Place, ids: Sequence[str], include: Sequence[str], plan: Plan, parts: Sequence[str] = ()
) -> Script[list[StoredRecord]]:
    """Return the documents with these ids that are there and satisfy some expressions."""
    rows: list[Mapping[str, Any]] = []
    pending = [ids[at : at + PIECE] for at in range(0, len(ids), PIECE)]
    while pending:
        part = pending.pop()
        among = _layout(place).among(part)
        if among is None:
            continue
        try:
            rows += yield read(
                "query",
                filter=_joined([among, *parts]),
                output_fields=_layout(place).wanted(include),
                **place.reads,
                **level(plan),
            )
        except TooLargeError:
            if len(part) == 1:
                raise
            pending += [part[: len(part) // 2], part[len(part) // 2 :]]
    return (yield from _records(place, rows, include))


def scan(place: Place, query: Query, token: str | None, size: int, plan: Plan) -> Script[Page[StoredRecord]]:
    """Return a page by primary keys (D7).

    A server that is asked as its own iterators ask gives the least keys there are; Milvus Lite has no order, so it
    is asked for all keys, and for the rows of the least.
    """
    layout, parts = _layout(place), _conditions(place, query)
    if parts is None:
        return Page([], None)
    if token is not None:
        after = token if layout.key.type == "str" else whole(token)
        if after is None or not isinstance(cast("object", token), str):
            msg = "the token is none of this store's"
            raise RequestError(msg, hint="pass the token of a scan or of one of its pages")
        parts = [f"{layout.key.name} > {literal(after)}", *parts]
    limit: int | None = min(size, MOST_ROWS)
    fields, key = layout.wanted(query.include), layout.key.name
    asked: dict[str, Any] = {"output_fields": fields, "iterator": "True", "reduce_stop_for_best": "True"}
    if not plan.served:
        asked, limit = {"output_fields": [key]}, None
    condition = _joined(parts) or layout.either_side("or")
    while True:
        try:
            rows: list[Any] = yield read(
                "query", filter=condition, limit=limit, **asked, **place.reads, **level(plan)
            )
            break
        except TooLargeError:
            if limit is None or limit <= 1:
                raise
            limit //= 2
    rows = sorted(rows, key=lambda row: row[key])
    more = len(rows) > size if limit is None else len(rows) >= limit
    rows = rows[:size]
    last = str(rows[-1][key]) if rows else None
    if limit is None and rows:
        keys = ", ".join(literal(row[key]) for row in rows)
        rows = yield read(
            "query", filter=f"{key} in [{keys}]", output_fields=fields, **place.reads, **level(plan)
        )
    records = yield from _records(place, rows, query.include)
    return Page(records, last if more else None)


def count(place: Place, query: Query, plan: Plan) -> Script[int]:
    """Return how many documents match."""
    parts = _conditions(place, query)
    if parts is None:
        return 0
    [row] = yield read(
        "query", filter=_joined(parts), output_fields=["count(*)"], **place.reads, **level(plan)
    )
    return int(row["count(*)"])


# --- searching --------------------------------------------------------------------------------------------


def search(place: Place, query: Query, plan: Plan) -> Script[list[Hit]]:
    """Return the nearest documents.

    Raises:
        CollectionMismatchError: Vectors that are compared by dot have another norm than 1, or ids are not unique.
    """
    parts = _conditions(place, query)
    if parts is None:
        return []
    if query.ids is not None or (place.ann and query.exact):
        hits = yield from _compared(place, query, plan)
    else:
        hits = yield from _nearest(place, query, plan, parts)
    if place.info.metric is Metric.DOT and any(abs(hit.raw) > _MOST_DOT for hit in hits):
        msg = f"the collection {place.name!r} holds vectors whose norm is not 1, which dot asks for"
        raise CollectionMismatchError(msg, hint="make it with the cosine, or store them with norm 1")
    distinct([hit.record for hit in hits], place.name)
    return hits


def _nearest(place: Place, query: Query, plan: Plan, parts: Sequence[str]) -> Script[list[Hit]]:
    # One more than asked for shows whether the cut goes through documents of one score (S1).
    limit = query.k if place.ann else query.k + 1
    near = yield from _asked(place, query, limit, plan, parts)
    while not place.ann and len(near) >= limit and not settled(near, query.k):
        if limit >= MOST_HITS:
            return (yield from _compared(place, query, plan))
        limit = min(limit + max(FEW_MORE, limit * (GROWTH - 1)), MOST_HITS)
        near = yield from _asked(place, query, limit, plan, parts)
    best = near[: query.k]
    if limit <= WITH_DOCUMENTS + 1:
        return [Hit(hit.raw, _layout(place).record(hit.fields, query.include)) for hit in best]
    # The filter goes with the ids: a document that was replaced meanwhile may no longer match (T1).
    found = yield from fetch(place, [hit.name for hit in best], query.include, plan, parts)
    records = {record.id: record for record in found}
    return [Hit(hit.raw, records[hit.name]) for hit in best if hit.name in records]


def _asked(place: Place, query: Query, limit: int, plan: Plan, parts: Sequence[str]) -> Script[list[Near]]:
    """Return what the engine finds, best first, equal scores by id."""
    layout = _layout(place)
    fields = layout.wanted(query.include if limit <= WITH_DOCUMENTS + 1 else ())
    if not plan.served:
        fields = list(dict.fromkeys([*fields, layout.vector]))
    [answer] = yield read(
        "search",
        data=[cast("NDArray[np.float32]", query.vector).tolist()],
        anns_field=layout.vector,
        filter=_joined(parts),
        limit=limit,
        output_fields=fields,
        search_params={"params": _parameters(layout, plan, limit)},
        **place.reads,
        **level(plan),
    )
    return (yield from work(_ranked, answer, query, place, plan, at_once=len(answer) <= AT_ONCE))


def _parameters(layout: MappedLayout, plan: Plan, limit: int) -> dict[str, int]:
    """Return how thoroughly an approximate index is searched; what is not known here is left to the engine."""
    if layout.index_type.startswith("HNSW"):
        return {"ef": max(plan.ef_search, limit)}
    if layout.index_type.startswith("IVF") and layout.lists:
        return {"nprobe": min(layout.lists, max(_LISTS, layout.lists // _PART))}
    if layout.index_type == "DISKANN":
        return {"search_list": max(plan.ef_search, limit)}
    return {}


def _ranked(answer: Any, query: Query, place: Place, plan: Plan) -> list[Near]:
    layout, metric = _layout(place), place.info.metric
    near: list[Near] = []
    for hit in answer:
        raw, row = hit["distance"], hit["entity"]
        if not plan.served:  # which multiplies matrices, where a score depends on where the vector lies (S1)
            vector = layout.vector_of(row)[None, :]
            [raw] = raw_scores(metric, vector, cast("NDArray[np.float32]", query.vector)).tolist()
        near.append(Near(raw, layout.name(row), row))
    sign = 1.0 if metric is Metric.EUCLIDEAN else -1.0
    return sorted(near, key=lambda each: (sign * each.raw, each.name))


def _compared(place: Place, query: Query, plan: Plan) -> Script[list[Hit]]:
    """Compare all documents that match here: exact, where the index is not."""
    wider = replace(query, include=with_vector(query))
    best: list[Hit] = []
    token: str | None = None
    while True:
        page = yield from scan(place, wider, token, PAGE, plan)
        best = yield from work(best_of, best, page.items, query, place.info.metric)
        token = page.token
        if token is None:
            return [hit._replace(record=trimmed(hit.record, query)) for hit in best]
