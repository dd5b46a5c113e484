"""Searches, by vector and by words. Scripts.

A search without a filter asks the vector index, unless it is to be exact. One with a filter compares the query with every
document that matches, which no index shortens (S4), and which is exact.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from entrepot.capabilities import Metric
from entrepot.filters import TRUE
from entrepot.records import Hit, Query
from entrepot.search import SearchMode
from entrepot_neo4j.catalog import check, whole
from entrepot_neo4j.faults import IndexGoneError
from entrepot_neo4j.fields import vector_parameter
from entrepot_neo4j.reading import (
    DIALECT,
    asked,
    finds_nothing,
    matching,
    records_of,
    shown,
)
from entrepot_neo4j.words import queries_of

if TYPE_CHECKING:
    from entrepot_neo4j.catalog import Place, Plan
    from entrepot_neo4j.commands import Script, Statement

_BEST: Final = " ORDER BY s DESC, n.id LIMIT $k RETURN s, n.j"


def search(place: Place, query: Query, plan: Plan) -> Script[list[Hit]]:
    """Return the best hits, by vector or by words."""
    if finds_nothing(query):
        return []
    if query.mode is SearchMode.FULLTEXT:
        return (yield from _by_words(place, query))
    by_graph = place.ann and not query.exact and query.filter is TRUE and query.ids is None
    statement = _graph(place, query, plan) if by_graph else _exactly(place, query)
    rows = yield from _found(place, statement)
    records = yield from records_of([row[1:] for row in rows], query.include)
    hits = [Hit(_raw(place, row[0]), record) for row, record in zip(rows, records, strict=True)]
    # What the statement ordered comes in that order; equal scores by id, as code points (S1).
    hits.sort(key=lambda hit: (hit.raw if place.info.metric is Metric.EUCLIDEAN else -hit.raw, hit.record.id))
    return hits


def _found(place: Place, statement: Statement) -> Script[list[list[Any]]]:
    try:
        return (yield from whole(place, statement))
    except IndexGoneError:
        yield from check(place)
        raise


def _graph(place: Place, query: Query, plan: Plan) -> Statement:
    """Return the statement that asks the vector index."""
    parameters = {**_vector(place, query), "k": query.k, "candidates": max(query.k, plan.ef_search)}
    if place.modern:
        text = (
            f"{DIALECT}MATCH (n:{place.names.generation}) SEARCH n IN (VECTOR INDEX {place.names.vectors}"
            " FOR $vector LIMIT $candidates) SCORE AS s"
        )
    else:
        text = "CALL db.index.vector.queryNodes($index, $candidates, $vector) YIELD node AS n, score AS s"
        parameters["index"] = place.names.vectors.strip("`")
    text += f" WITH n, s{_BEST}{shown(place, query.include)}"
    return asked(place, query.include, text.removeprefix(DIALECT), parameters)._replace(text=text)


def _exactly(place: Place, query: Query) -> Statement:
    """Return the statement that compares the query with all that matches; ties at the cut go by id."""
    where = matching(query)
    function = "euclidean" if place.info.metric is Metric.EUCLIDEAN else "cosine"
    text = (
        f"MATCH (n:{place.names.generation}){where.text}"
        f" WITH n, vector.similarity.{function}(n.embedding, $vector) AS s WHERE s IS NOT NULL"
        f" WITH n, s{_BEST}{shown(place, query.include)}"
    )
    return asked(place, query.include, text, {**where.parameters, **_vector(place, query), "k": query.k})


def _vector(place: Place, query: Query) -> dict[str, Any]:
    if query.vector is None:
        return {}
    return {"vector": vector_parameter(query.vector, modern=place.modern)}


def _raw(place: Place, score: float) -> float:
    """Return what the engine's score is made of: the dot product of unit vectors, or the squared distance."""
    if place.info.metric is not Metric.EUCLIDEAN:
        return 2.0 * score - 1.0
    return 1.0 / score - 1.0 if score > 0.0 else math.inf


def _by_words(place: Place, query: Query) -> Script[list[Hit]]:
    """Return documents with any of the words, as the engine ranks them."""
    queries = queries_of(query.words or "")
    if not queries:
        return []
    where = matching(query)
    kept = "WITH n, n.t AS t, "
    # The score is carried along with what the filter looks at.
    text = where.text.replace(kept, kept + "s, ", 1)
    text = (
        "UNWIND $queries AS words CALL db.index.fulltext.queryNodes($index, words) YIELD node, score"
        f" WITH node AS n, sum(score) AS s{text} WITH n, s{_BEST}{shown(place, query.include)}"
    )
    parameters = {
        **where.parameters,
        "queries": queries,
        "index": place.names.words.strip("`"),
        "k": query.k,
    }
    rows = yield from _found(place, asked(place, query.include, text, parameters))
    records = yield from records_of([row[1:] for row in rows], query.include)
    return [Hit(float(row[0]), record) for row, record in zip(rows, records, strict=True)]
