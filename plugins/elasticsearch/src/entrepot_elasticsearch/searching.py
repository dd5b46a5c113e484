"""Searches, by vector and by words. Scripts.

An approximate search asks the engine's graph. An exact one asks no script of the server, and so runs on every server:
Lucene compares a query with every document that a filter leaves, if that leaves no more of them than there may be
candidates. So documents are counted by slices first, and asked for by slices of no more than that; a point in time sees to
it that what is compared is what was counted.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final, cast

from entrepot.capabilities import Metric
from entrepot.errors import BackendError
from entrepot.records import Hit, Query
from entrepot.search import SearchMode
from entrepot_elasticsearch.commands import read, read_lines
from entrepot_elasticsearch.fields import EMBEDDING, ID, SLOT, SLOTS, TEXT, WORDS, wanted
from entrepot_elasticsearch.reading import (
    KEEP,
    at_a_point,
    checked,
    clause,
    count,
    failed,
    finds_nothing,
    records_of,
)
from entrepot_elasticsearch.words import RANKED, words_in

if TYPE_CHECKING:
    from collections.abc import Sequence

    from entrepot_elasticsearch.catalog import Place, Plan
    from entrepot_elasticsearch.commands import Script

MOST: Final = 10_000
"""Most hits, and most candidates, that the engine takes."""
_WIDTHS: Final = (1 << 5, 1)
"""Slots that are counted together; the second where the first are too many documents."""
_TOGETHER: Final = 8
"""Slices, or searches, of one request."""
_GROWTH: Final = 4
_FEW_MORE: Final = 50
"""Hits that are asked for beyond a cut through equal scores, at least."""
_MOST_TERMS: Final = 60_000
_CANDIDATES: Final = 4
_PARTIAL: Final = "allow_partial_search_results=false"

_Body = dict[str, Any]


def search(place: Place, query: Query, plan: Plan) -> Script[list[Hit]]:
    """Return the best hits, by vector or by words."""
    if finds_nothing(query):
        return []
    if query.mode is SearchMode.FULLTEXT:
        return (yield from _by_words(place, query))
    if not _by_graph(place, query):
        return (yield from _exactly(place, query))
    found = yield from _ask(place, [_graph_body(query, plan)])
    return (yield from _enough(place, query, found[0]))


def search_all(place: Place, queries: Sequence[Query], plan: Plan) -> Script[list[list[Hit]]]:
    """Answer several queries; those that ask the graph go to the server together."""
    asked = [
        number
        for number, query in enumerate(queries)
        if query.mode is SearchMode.SEMANTIC and not finds_nothing(query) and _by_graph(place, query)
    ]
    found: dict[int, list[Any]] = {}
    for start in range(0, len(asked), _TOGETHER):
        part = asked[start : start + _TOGETHER]
        answers = yield from _ask(place, [_graph_body(queries[number], plan) for number in part])
        found.update(zip(part, answers, strict=True))
    answered: list[list[Hit]] = []
    for number, query in enumerate(queries):
        if number in found:
            hits = yield from _enough(place, query, found[number])
        else:
            hits = yield from search(place, query, plan)
        answered.append(hits)
    return answered


def _by_graph(place: Place, query: Query) -> bool:
    return place.kind == "hnsw" and not query.exact and query.k <= MOST


def _graph_body(query: Query, plan: Plan) -> _Body:
    candidates = min(max(plan.ef_search, _CANDIDATES * query.k), MOST)
    return _nearest(query, [clause(query)], query.k, candidates)


def _nearest(query: Query, filters: Sequence[_Body | None], k: int, candidates: int) -> _Body:
    """Return a search for the k nearest documents among those that satisfy the filters."""
    vector: list[float] = [] if query.vector is None else query.vector.tolist()
    knn: _Body = {"field": EMBEDDING, "query_vector": vector, "k": k, "num_candidates": candidates}
    given = [one for one in filters if one is not None]
    if given:
        knn["filter"] = given
    return {"knn": knn, "size": k, "_source": wanted(query.include), "track_total_hits": False}


def _ask(place: Place, bodies: Sequence[_Body]) -> Script[list[list[Any]]]:
    """Return the hits of searches, as the engine gives them."""
    if len(bodies) == 1:
        path = "" if "pit" in bodies[0] else f"/{place.generation}"
        answer = yield read(f"{path}/_search?{_PARTIAL}", bodies[0])
        return [checked(answer)["hits"]["hits"]]
    head = {"index": place.generation, "allow_partial_search_results": False}
    pointed = {"allow_partial_search_results": False}
    lines = [line for body in bodies for line in (pointed if "pit" in body else head, body)]
    answer = yield read_lines("/_msearch", lines)
    for one in answer["responses"]:
        if "error" in one:
            raise failed(place, one)
    return [checked(one)["hits"]["hits"] for one in answer["responses"]]


def _enough(place: Place, query: Query, found: list[Any]) -> Script[list[Hit]]:
    """Return hits; those of an exact search where the graph found fewer than there are (S4)."""
    if len(found) < query.k and (yield from count(place, query)) > len(found):
        return (yield from _exactly(place, query))
    return (yield from _hits(place, query, found))


def _exactly(place: Place, query: Query) -> Script[list[Hit]]:
    """Return the best hits of all documents that match, ties at the cut settled by id (S1)."""
    # One more than asked for shows whether the cut goes through documents of one score.
    number = query.k + 1
    if place.kind == "flat" and number <= MOST:
        (found,) = yield from _ask(place, [_nearest(query, [clause(query)], number, number)])
        found.sort(key=_best_first)
        if len(found) < number or _is_clean(found, query.k):
            return (yield from _hits(place, query, found[: query.k]))
    found = yield from at_a_point(place, lambda point: _compared(place, query, point))
    return (yield from _hits(place, query, found[: query.k]))


def _is_clean(found: Sequence[Any], k: int) -> bool:
    """Whether no document beyond these can have the score of the one at the cut."""
    return bool(found[k - 1]["_score"] > found[-1]["_score"])


def _compared(place: Place, query: Query, point: str) -> Script[list[Any]]:
    """Return the best of all documents that match at a point in time, best first, at least k if there are."""
    slices = yield from _slices(query, point)
    number = query.k + 1
    while True:
        found: list[Any] = []
        is_short = True
        k = min(number, MOST)
        asked = [_at(point, _nearest(query, [bounds, clause(query)], k, MOST)) for bounds in slices]
        for start in range(0, len(asked), _TOGETHER):
            for hits in (yield from _ask(place, asked[start : start + _TOGETHER])):
                is_short = is_short and len(hits) < number
                found += hits
        found.sort(key=_best_first)
        del found[number:]
        # A slice has no more than MOST, so whoever asks for that many has all.
        if is_short or number >= MOST or _is_clean(found, query.k):
            return found
        number += max(_FEW_MORE, number * (_GROWTH - 1))


def _slices(query: Query, point: str) -> Script[list[_Body]]:
    """Return clauses that cut the documents that match at a point in time into slices of at most MOST."""
    for width in _WIDTHS:
        counted = {"histogram": {"field": SLOT, "interval": width, "min_doc_count": 1}}
        body: _Body = {
            "query": clause(query) or {"match_all": {}},
            "size": 0,
            "track_total_hits": False,
            "aggs": {"slots": counted},
        }
        answer = yield read(f"/_search?{_PARTIAL}", _at(point, body))
        buckets = checked(answer)["aggregations"]["slots"]["buckets"]
        sizes = {int(bucket["key"]): int(bucket["doc_count"]) for bucket in buckets}
        if max(sizes.values(), default=0) <= MOST:
            break
    else:
        msg = f"the server compares {MOST} documents at a time, and no slice of these is as small"
        raise BackendError(msg, hint="add a filter that fewer documents satisfy, or use index='flat'")
    starts = [0]
    size = 0
    for start in sorted(sizes):
        if size + sizes[start] > MOST:
            starts.append(start)
            size = 0
        size += sizes[start]
    # There is always a clause, as only then documents are counted before they are compared.
    return [
        {"range": {SLOT: {"gte": start, "lt": end}}}
        for start, end in zip(starts, [*starts[1:], SLOTS], strict=True)
    ]


def _at(point: str, body: _Body) -> _Body:
    return {**body, "pit": {"id": point, "keep_alive": KEEP}}


def _best_first(hit: Any) -> tuple[float, str]:
    return -hit["_score"], hit["_source"][ID]


def _hits(place: Place, query: Query, found: list[Any]) -> Script[list[Hit]]:
    """Return hits with their raw scores, best first, equal ones by id (S1); many are made beside the event loop."""
    found.sort(key=_best_first)
    records = yield from records_of(found, query.include)
    if place.info.metric is Metric.EUCLIDEAN:
        return [Hit(_squared(hit["_score"]), record) for hit, record in zip(found, records, strict=True)]
    return [Hit(2.0 * hit["_score"] - 1.0, record) for hit, record in zip(found, records, strict=True)]


def _squared(score: float) -> float:
    """Return the squared distance of a score, which the engine gives as 1 / (1 + d²)."""
    return 1.0 / score - 1.0 if score > 0.0 else math.inf


def _by_words(place: Place, query: Query) -> Script[list[Hit]]:
    """Return documents with any of the words, ranked by BM25."""
    words = list(dict.fromkeys(words_in(query.words or "")))
    if not words:
        return []
    text = " ".join(words[:RANKED])
    ways: list[_Body] = [{"match": {field: {"query": text, "operator": "or"}}} for field in (TEXT, WORDS)]
    for start in range(RANKED, len(words), _MOST_TERMS):
        part = words[start : start + _MOST_TERMS]
        ways += [{"terms": {field: part, "boost": 0.001}} for field in (TEXT, WORDS)]
    given = clause(query)
    asked: _Body = {
        "bool": {"should": ways, "minimum_should_match": 1, "filter": [] if given is None else [given]}
    }
    body = {"query": asked, "size": query.k, "_source": wanted(query.include), "track_total_hits": False}
    found = yield from _ask(place, [body])
    records = yield from records_of(found[0], query.include)
    return [Hit(cast("float", hit["_score"]), record) for hit, record in zip(found[0], records, strict=True)]
