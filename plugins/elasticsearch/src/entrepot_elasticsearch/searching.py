"""Searches, by vector and by words. Scripts.

An approximate search asks the engine's graph. An exact one asks no script of the server, and so runs on every server:
Lucene compares a query with every document that a filter leaves, if that leaves no more of them than there may be
candidates. So documents are counted first, and where there are more, they are asked for by slices.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final, cast

from entrepot.capabilities import Metric
from entrepot.records import Hit, Query
from entrepot.search import SearchMode
from entrepot_elasticsearch.commands import read, read_lines
from entrepot_elasticsearch.fields import EMBEDDING, ID, SLOT, SLOTS, TEXT, WORDS, wanted
from entrepot_elasticsearch.reading import checked, clause, count, failed, finds_nothing, records_of
from entrepot_elasticsearch.words import RANKED, words_in

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from entrepot_elasticsearch.catalog import Place, Plan
    from entrepot_elasticsearch.commands import Script

MOST: Final = 10_000
"""Most hits, and most candidates, that the engine takes."""
_SLICE: Final = 8000
"""Documents that a slice of an exact search may have: by chance a slice has a few more, and MOST are compared."""
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
        answer = yield read(f"/{place.generation}/_search?{_PARTIAL}", bodies[0])
        return [checked(answer)["hits"]["hits"]]
    head = {"index": place.generation, "allow_partial_search_results": False}
    lines = [line for body in bodies for line in (head, body)]
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
    there = yield from count(place, query)
    slices = max(1, math.ceil(there / _SLICE))
    # One more than asked for shows whether the cut goes through documents of one score.
    number = query.k + 1
    while True:
        found: list[Any] = []
        is_short = True
        asked = list(_slices(query, slices, min(number, MOST)))
        for start in range(0, slices, _TOGETHER):
            for hits in (yield from _ask(place, asked[start : start + _TOGETHER])):
                is_short = is_short and len(hits) < number
                found += hits
        found.sort(key=_best_first)
        del found[number:]
        # A slice has no more than MOST, so whoever asks for that many has all.
        if is_short or number >= MOST or found[query.k - 1]["_score"] > found[-1]["_score"]:
            hits = yield from _hits(place, query, found)
            return hits[: query.k]
        number += max(_FEW_MORE, number * (_GROWTH - 1))


def _slices(query: Query, slices: int, k: int) -> Iterator[_Body]:
    """Yield searches that together compare every document that matches."""
    width = SLOTS / slices
    for place in range(slices):
        # There is always a filter, as only then documents are counted before they are compared.
        bounds = {"gte": math.ceil(place * width), "lt": math.ceil((place + 1) * width)}
        yield _nearest(query, [{"range": {SLOT: bounds}}, clause(query)], k, MOST)


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
