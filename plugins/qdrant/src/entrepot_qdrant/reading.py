"""What reads documents: searches, pages, counts, by id. Scripts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np
from qdrant_client import models

from entrepot.capabilities import Metric
from entrepot.errors import RequestError
from entrepot.filters import FALSE, TRUE
from entrepot.records import Hit, Page, Query, StoredRecord
from entrepot.scripted import work
from entrepot.search import SearchMode, raw_scores
from entrepot_qdrant.commands import read
from entrepot_qdrant.fields import OWN, TEXT, WORDS
from entrepot_qdrant.layouts import vectors_wanted
from entrepot_qdrant.names import as_point, point_id
from entrepot_qdrant.words import asked as sparse_of
from entrepot_qdrant.words import words_in

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from entrepot_qdrant.catalog import Place, Plan
    from entrepot_qdrant.commands import Script
    from entrepot_qdrant.layouts import Condition, Layout

_AT_ONCE: Final = 50
"""Points that are decoded on the event loop: a few milliseconds."""
_GROWTH: Final = 4
_FEW_MORE: Final = 50
"""Hits that are asked for beyond a cut through equal scores, at least."""
_NEAR: Final = 1e-6
"""Scores that differ by less may be of equal vectors, in the local mode's arithmetic."""


def condition(query: Query, layout: Layout) -> models.Filter | None:
    """Return what a query's points must satisfy; None for every point.

    No filter without a condition is ever sent: it would hold for all, and a deletion would take them.
    """
    musts: list[Any] = [] if layout.documents is None else [layout.documents]
    if query.ids is not None:
        musts.append(layout.among(list(dict.fromkeys(query.ids))))
    if query.filter is not TRUE:
        pushed = cast("Condition", query.pushed.query)
        if pushed != models.Filter():
            musts.append(pushed)
    return models.Filter(must=musts) if musts else None


def finds_nothing(query: Query) -> bool:
    """Whether no document can satisfy a query."""
    return query.filter is FALSE or query.ids == ()


# --- searching --------------------------------------------------------------------------------------------


def search(place: Place, query: Query, plan: Plan) -> Script[list[Hit]]:
    """Return the best hits, by vector or by words.

    Raises:
        CollectionNotFoundError: The collection was dropped since the store looked at it.
    """
    if finds_nothing(query):
        return []
    if query.mode is SearchMode.FULLTEXT:
        return (yield from _by_words(place, query, plan))
    if query.vector is None:
        return []
    layout = place.layout
    by_index = place.kind == "hnsw" and not query.exact
    # One more than asked for shows whether the cut goes through documents of one score (S1).
    number = query.k if by_index else query.k + 1
    while True:
        points = yield from _points(
            place,
            query,
            plan,
            query=query.vector.tolist(),
            using=layout.dense,
            limit=number,
            with_payload=layout.wanted(query.include),
            with_vectors=vectors_wanted(layout, given=not plan.served or "vector" in query.include),
            **_parameters(query, plan, by_index=by_index),
        )
        if by_index or len(points) < number or _settled(points, query.k):
            break
        number += max(_FEW_MORE, number * (_GROWTH - 1))
    hits = yield from work(_hits, points, place, query, plan, at_once=len(points) <= _AT_ONCE)
    return hits[: query.k]


def _points(place: Place, asked: Query, plan: Plan, **arguments: Any) -> Script[list[Any]]:
    """Return the points that the engine finds, best first."""
    answer = yield read(
        "query_points",
        collection_name=place.name,
        query_filter=condition(asked, place.layout),
        **arguments,
        **plan.reading,
    )
    return cast("list[Any]", answer.points)


def _parameters(query: Query, plan: Plan, *, by_index: bool) -> dict[str, Any]:
    if not plan.served:  # it is exact, and warns of parameters
        return {}
    if not by_index:
        return {"search_params": models.SearchParams(exact=True)}
    quantization = None
    if plan.quantization is not None:
        quantization = models.QuantizationSearchParams(rescore=True, oversampling=plan.oversampling)
    ef = max(plan.ef_search, query.k)
    return {"search_params": models.SearchParams(hnsw_ef=ef, quantization=quantization)}


def _settled(points: Sequence[Any], k: int) -> bool:
    """Whether the best k are certain: there are more, and the last of them is worse than the k-th."""
    if k < 1:
        return True
    edge = points[k - 1].score
    return bool(abs(points[-1].score - edge) > _NEAR * max(1.0, abs(edge)))


def _hits(points: Sequence[Any], place: Place, query: Query, plan: Plan) -> list[Hit]:
    """Return hits, the best first, equal scores by id (S1)."""
    raw = _raw(points, place, cast("NDArray[np.float32]", query.vector), plan)
    hits = [
        Hit(score, place.layout.record(point, query.include))
        for score, point in zip(raw, points, strict=True)
    ]
    sign = 1.0 if place.info.metric is Metric.EUCLIDEAN else -1.0
    hits.sort(key=lambda hit: (sign * hit.raw, hit.record.id))
    return hits


def _records(points: Sequence[Any], layout: Layout, include: Sequence[str]) -> Script[list[StoredRecord]]:
    """Return the documents of points; many are decoded beside the event loop (E3)."""

    def decoded() -> list[StoredRecord]:
        return [layout.record(point, include) for point in points]

    return work(decoded, at_once=len(points) <= _AT_ONCE)


def _raw(points: Sequence[Any], place: Place, vector: NDArray[np.float32], plan: Plan) -> list[float]:
    """Return the raw scores of points.

    The local mode multiplies matrices, where the score of a vector depends on where it lies; so it is computed
    here from the vectors, and equal vectors tie exactly (S1).
    """
    if not points:
        return []
    if not plan.served:
        matrix = np.stack([cast("Any", place.layout.vector(point)) for point in points])
        return cast("list[float]", raw_scores(place.info.metric, matrix, vector).tolist())
    if place.info.metric is Metric.EUCLIDEAN:
        return [point.score * point.score for point in points]
    return [point.score for point in points]


def _by_words(place: Place, query: Query, plan: Plan) -> Script[list[Hit]]:
    """Return documents with any of the words, ranked by BM25."""
    words = frozenset(words_in(query.words or ""))
    if not words:
        return []
    places, weights = sparse_of(words)
    number = query.k
    while True:
        points = yield from _points(
            place,
            query,
            plan,
            query=models.SparseVector(indices=places, values=weights),
            using=WORDS,
            limit=number,
            with_payload=OWN.wanted(query.include, TEXT),
            with_vectors=vectors_wanted(OWN, given="vector" in query.include),
        )
        # Two words may share a place, so a point may have none of the words.
        good = [point for point in points if not words.isdisjoint(words_in(point.payload.get(TEXT) or ""))]
        if len(good) >= query.k or len(points) < number:
            return [Hit(point.score, OWN.record(point, query.include)) for point in good[: query.k]]
        number *= _GROWTH


# --- by id, by page, counted ------------------------------------------------------------------------------


def fetch(place: Place, ids: Sequence[str], include: Sequence[str], plan: Plan) -> Script[list[StoredRecord]]:
    """Return the documents with these ids that are there."""
    points = yield from retrieve(place, ids, OWN.wanted(include), plan, vectors="vector" in include)
    return (yield from _records(points, OWN, include))


def retrieve(
    place: Place, ids: Sequence[str], fields: list[str], plan: Plan, *, vectors: bool = False
) -> Script[list[Any]]:
    """Return the points of documents that are there, with some fields of their payloads."""
    if not ids:
        return []
    answer = yield read(
        "retrieve",
        collection_name=place.name,
        ids=[point_id(name) for name in ids],
        with_payload=fields,
        with_vectors=vectors_wanted(OWN, given=vectors),
        **plan.reading,
    )
    return cast("list[Any]", answer)


def among(place: Place, ids: Sequence[str], include: Sequence[str], plan: Plan) -> Script[list[StoredRecord]]:
    """As `fetch`, of any layout; if several points have one of the ids, more than asked for."""
    if not ids:
        return []
    layout = place.layout
    musts = [each for each in (layout.documents, layout.among(ids)) if each is not None]
    points, _ = yield read(
        "scroll",
        collection_name=place.name,
        scroll_filter=models.Filter(must=cast("list[Any]", musts)),
        limit=len(ids) + 1,
        with_payload=layout.wanted(include),
        with_vectors=vectors_wanted(layout, given="vector" in include),
        **plan.reading,
    )
    return (yield from _records(points, layout, include))


def scan(place: Place, query: Query, token: str | None, size: int, plan: Plan) -> Script[Page[StoredRecord]]:
    """Return a page by the ids of points, which a document keeps when it is replaced: so it comes once (D7)."""
    if token is not None and (not isinstance(cast("object", token), str) or as_point(token) is None):
        msg = "the token is none of this store's"
        raise RequestError(msg, hint="pass the token of a scan or of one of its pages")
    if finds_nothing(query):
        return Page([], None)
    points, after = yield read(
        "scroll",
        collection_name=place.name,
        scroll_filter=condition(query, place.layout),
        limit=size,
        offset=None if token is None else as_point(token),
        with_payload=place.layout.wanted(query.include),
        with_vectors=vectors_wanted(place.layout, given="vector" in query.include),
        **plan.reading,
    )
    records = yield from _records(points, place.layout, query.include)
    return Page(records, None if after is None else str(after))


def count(place: Place, query: Query) -> Script[int]:
    """Return how many documents match."""
    if finds_nothing(query):
        return 0
    answer = yield read(
        "count", collection_name=place.name, count_filter=condition(query, place.layout), exact=True
    )
    return int(answer.count)
