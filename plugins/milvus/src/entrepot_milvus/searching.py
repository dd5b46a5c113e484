"""Searches: the nearest documents, and those with certain words. Scripts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

import numpy as np
from msgspec.structs import replace

from entrepot.capabilities import Metric
from entrepot.errors import UnsupportedSearchModeError
from entrepot.filters import evaluate
from entrepot.records import Hit, Query
from entrepot.scripted import work
from entrepot.search import SearchMode, raw_scores
from entrepot_milvus.commands import read
from entrepot_milvus.expressions import joined
from entrepot_milvus.fields import NAME, SPARSE, VECTOR, record_of, vector_of, wanted
from entrepot_milvus.reading import AT_ONCE, conditions, fetch, finds_nothing, retrieve, scan
from entrepot_milvus.rows import level
from entrepot_milvus.words import words_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from entrepot.records import StoredRecord
    from entrepot.scripted import Script
    from entrepot_milvus.catalog import Place, Plan

MOST_HITS: Final = 16_384
"""Hits of one search."""
FEW_MORE: Final = 50
"""Hits that are asked for beyond a cut through equal scores, at least."""
GROWTH: Final = 4
_NEAR: Final = 1e-6
"""Scores that differ by less may be of equal vectors, where the engine multiplies matrices."""
WITH_DOCUMENTS: Final = 200
"""Hits whose documents come with them; documents of more are read by id afterwards, so that no answer is too large."""
PAGE: Final = 2000


class Near(NamedTuple):
    """A hit as the engine gave it: raw score, the document's id, and what else was asked for."""

    raw: float
    name: str
    fields: Any


def search(place: Place, query: Query, plan: Plan) -> Script[list[Hit]]:
    """Return the best hits, by vector or by words.

    Raises:
        CollectionNotFoundError: The collection was dropped since the store looked at it.
    """
    [hits] = yield from search_all(place, [query], plan)
    return hits


def search_all(place: Place, queries: Sequence[Query], plan: Plan) -> Script[list[list[Hit]]]:
    """Answer several queries; those that ask alike go in one call."""
    found: list[list[Hit]] = [[] for _ in queries]
    together: dict[tuple[object, ...], list[int]] = {}
    for number, query in enumerate(queries):
        if finds_nothing(query):
            continue
        if query.mode is SearchMode.FULLTEXT:
            found[number] = yield from _by_words(place, query, plan)
        elif query.ids is not None:
            found[number] = yield from _among(place, query, plan)
        elif place.ann and query.exact:
            found[number] = yield from _all_compared(place, query, plan)
        elif query.vector is not None:
            # Queries of one call share their filter as an object.
            alike = (id(query.filter), query.k, query.exact, query.include)
            together.setdefault(alike, []).append(number)
    for numbers in together.values():
        answers = yield from _nearest(place, [queries[number] for number in numbers], plan)
        for number, hits in zip(numbers, answers, strict=True):
            found[number] = hits
    return found


# --- by the index -----------------------------------------------------------------------------------------


def _nearest(place: Place, queries: Sequence[Query], plan: Plan) -> Script[list[list[Hit]]]:
    """Answer queries that differ by their vectors alone."""
    first = queries[0]
    # One more than asked for shows whether the cut goes through documents of one score (S1).
    number = first.k if place.ann else first.k + 1
    answers = yield from _asked(place, queries, number, plan)
    found: list[list[Hit]] = []
    for query, given in zip(queries, answers, strict=True):
        near, limit = given, number
        while not place.ann and len(near) >= limit and not settled(near, query.k):
            if limit >= MOST_HITS:
                break
            limit = min(limit + max(FEW_MORE, limit * (GROWTH - 1)), MOST_HITS)
            [near] = yield from _asked(place, [query], limit, plan)
        if not place.ann and len(near) >= MOST_HITS and not settled(near, query.k):
            found.append((yield from _all_compared(place, query, plan)))
            continue
        hits = yield from _hits(place, query, near, plan)
        found.append(hits)
    return found


def _asked(place: Place, queries: Sequence[Query], number: int, plan: Plan) -> Script[list[list[Near]]]:
    """Return what the engine finds for each query, best first, equal scores by id."""
    query = queries[0]
    # A server adds vectors to hits by a query of its own, which `rows` is careful about.
    apart = number > WITH_DOCUMENTS + 1 or (plan.served and "vector" in query.include)
    fields = [NAME] if apart else wanted(query.include)
    if not plan.served and VECTOR not in fields:
        fields = [*fields, VECTOR]
    parameters = {"params": {"ef": max(plan.ef_search, number)}} if place.ann else {}
    parts = conditions(query)
    answers = yield read(
        "search",
        data=[cast("NDArray[np.float32]", asked.vector).tolist() for asked in queries],
        anns_field=VECTOR,
        filter=joined(parts, "and") if parts else "",
        limit=number,
        output_fields=fields,
        search_params=parameters,
        **place.reads,
        **level(plan),
    )
    count = sum(len(answer) for answer in answers)
    return (yield from work(_ranked, answers, queries, place, plan, at_once=count <= AT_ONCE))


def _ranked(answers: Any, queries: Sequence[Query], place: Place, plan: Plan) -> list[list[Near]]:
    sign = 1.0 if place.info.metric is Metric.EUCLIDEAN else -1.0
    ranked: list[list[Near]] = []
    for answer, query in zip(answers, queries, strict=True):
        rows = [(hit["distance"], hit["entity"]) for hit in answer]
        raw = [distance for distance, _ in rows]
        if not plan.served and rows:
            # Milvus Lite multiplies matrices, where the score of a vector depends on where it lies; so it is
            # computed here from the vectors, and equal vectors tie exactly (S1).
            matrix = np.stack([vector_of(entity[VECTOR]) for _, entity in rows])
            raw = raw_scores(place.info.metric, matrix, cast("NDArray[np.float32]", query.vector)).tolist()
        near = [Near(score, entity[NAME], entity) for score, (_, entity) in zip(raw, rows, strict=True)]
        ranked.append(sorted(near, key=lambda hit: (sign * hit.raw, hit.name)))
    return ranked


def settled(near: Sequence[Near], k: int) -> bool:
    """Whether the best k are certain: there are more, and the last of them is worse than the k-th."""
    if k < 1:
        return True
    edge = near[k - 1].raw
    return abs(near[-1].raw - edge) > _NEAR * max(1.0, abs(edge))


def _hits(place: Place, query: Query, near: Sequence[Near], plan: Plan) -> Script[list[Hit]]:
    """Return the documents of the best k."""
    best = near[: query.k]
    if not best:
        return []
    if all(field in best[0].fields for field in wanted(query.include)):
        return [Hit(hit.raw, record_of(hit.fields, query.include)) for hit in best]
    # The filter goes with the ids: a document that was replaced meanwhile may no longer match (T1). In Milvus Lite
    # none was, and it is slow at both together.
    parts = conditions(query) if plan.served else []
    rows = yield from retrieve(place, plan, [hit.name for hit in best], wanted(query.include), parts)
    records = yield from work(_by_name, rows, query, at_once=len(rows) <= AT_ONCE)
    return [Hit(hit.raw, records[hit.name]) for hit in best if hit.name in records]


def _by_name(rows: Sequence[Any], query: Query) -> dict[str, StoredRecord]:
    return {row[NAME]: record_of(row, query.include) for row in rows}


# --- here -------------------------------------------------------------------------------------------------


def _among(place: Place, query: Query, plan: Plan) -> Script[list[Hit]]:
    """Compare the documents of some ids here."""
    ids = tuple(dict.fromkeys(query.ids or ()))
    records = yield from fetch(place, ids, with_vector(query), plan)
    return (yield from work(best_of, [], records, query, place.info.metric, at_once=len(records) <= AT_ONCE))


def _all_compared(place: Place, query: Query, plan: Plan) -> Script[list[Hit]]:
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


def with_vector(query: Query) -> tuple[Any, ...]:
    """Return what must be read of documents that are compared here."""
    return tuple(dict.fromkeys((*query.include, "metadata", "vector")))


def best_of(best: list[Hit], records: Sequence[StoredRecord], query: Query, metric: Metric) -> list[Hit]:
    """Return the best k of hits and further documents."""
    pushed_exact = query.ids is None
    good = [record for record in records if pushed_exact or evaluate(query.filter, record.metadata or {})]
    if not good:
        return best
    matrix = np.stack([cast("NDArray[np.float32]", record.vector) for record in good])
    raw = raw_scores(metric, matrix, cast("NDArray[np.float32]", query.vector)).tolist()
    sign = 1.0 if metric is Metric.EUCLIDEAN else -1.0
    hits = [*best, *map(Hit, raw, good)]
    return sorted(hits, key=lambda hit: (sign * hit.raw, hit.record.id))[: query.k]


def trimmed(record: StoredRecord, query: Query) -> StoredRecord:
    """Return a document without the parts that were read to compare it."""
    if "metadata" not in query.include:
        record = record._replace(metadata=None)
    return record if "vector" in query.include else record._replace(vector=None)


# --- by words ---------------------------------------------------------------------------------------------


def _by_words(place: Place, query: Query, plan: Plan) -> Script[list[Hit]]:
    """Return documents with any of the words, as the engine ranks them by BM25."""
    if not place.words:
        msg = f"collection {place.info.name!r} was made where the engine does not rank by words"
        raise UnsupportedSearchModeError(
            msg, capability="fulltext", hint="make it anew on Milvus 2.5 or newer, or search by vector"
        )
    words = words_of(query.words or "")
    if not words:
        return []
    parts = conditions(query)
    apart = query.k > WITH_DOCUMENTS or (plan.served and "vector" in query.include)
    answers = yield read(
        "search",
        data=[words],
        anns_field=SPARSE,
        filter=joined(parts, "and") if parts else "",
        limit=query.k,
        output_fields=[NAME] if apart else wanted(query.include),
        search_params={"metric_type": "BM25"},
        **place.reads,
        **level(plan),
    )
    # Milvus Lite counts downwards.
    near = [Near(abs(hit["distance"]), hit["entity"][NAME], hit["entity"]) for hit in answers[0]]
    return (yield from _hits(place, query, near, plan))
