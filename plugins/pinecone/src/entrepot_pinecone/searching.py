"""Searches by vector. Scripts.

A query asks the engine for the nearest of what its filter takes. An answer has 4 MB at most: so where many hits are wanted,
or vectors, the query gives ids and scores, and the records are read by id, which must satisfy the whole filter still.

Where fewer come than were asked for, the core asks again for an exact answer (S4). Then the engine is asked for all the hits
that it gives at most: what that adds is ranked here by the stored vectors, and if it is still less, the engine has no more, as
it promises. Only an exact search that has enough matches lists the namespace and reads all of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np

from entrepot.records import Hit, Query
from entrepot.scripted import work
from entrepot.search import raw_scores, scores
from entrepot_pinecone.catalog import named, still_there
from entrepot_pinecone.commands import ask
from entrepot_pinecone.fields import name_of, record_of, vector_of
from entrepot_pinecone.reading import (
    AT_ONCE,
    PIECE,
    among,
    finds_nothing,
    listed,
    matching,
    stored,
    too_many,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from entrepot.capabilities import Metric
    from entrepot_pinecone.catalog import Place
    from entrepot_pinecone.commands import Script
    from entrepot_pinecone.reading import Found

MOST: Final = 10_000
"""Hits that the engine gives at most."""
_WHOLE: Final = 50
"""Hits that come with their metadata: of 40 KB each they are 2 MB."""


def search(place: Place, query: Query, most_rows: int) -> Script[list[Hit]]:
    """Return the best hits.

    Raises:
        CompletionLimitError: The search is exact, and the namespace has more documents than `most_rows`.
    """
    if finds_nothing(query) or query.vector is None or query.k == 0:
        return []
    if query.ids is not None:
        found = yield from among(place, query, query.ids)
        return (yield from _ranked(place, query, found))
    if not query.exact:
        return (yield from _asked(place, query))
    matches = yield from _query(place, query, MOST, whole=False)
    if len(matches) < query.k:
        found = yield from stored(place, [str(one["id"]) for one in matches])
        if not found:
            yield from still_there(place)
        return (yield from _ranked(place, query, (yield from matching(query, found))))
    return (yield from _all_ranked(place, query, most_rows))


def _query(place: Place, query: Query, most: int, *, whole: bool) -> Script[list[Found]]:
    """Return what the engine finds: ids and scores, and metadata if `whole`."""
    body: dict[str, Any] = {
        "vector": cast("NDArray[np.float32]", query.vector).tolist(),
        "topK": most,
        "includeMetadata": whole,
        "includeValues": False,
    }
    clause = None if query.pushed is None else cast("dict[str, Any]", query.pushed.query)
    if clause:
        body["filter"] = clause
    answer = yield ask(place.host, "/query", named(place.namespace, body))
    return cast("list[Found]", answer.body.get("matches") or [])


def _asked(place: Place, query: Query) -> Script[list[Hit]]:
    whole = query.k <= _WHOLE and "vector" not in query.include
    matches = yield from _query(place, query, query.k, whole=whole)
    if not matches:
        yield from still_there(place)
        return []
    if whole:
        return (yield from work(_hits, place, query, matches, matches, at_once=len(matches) <= AT_ONCE))
    found = yield from stored(place, [str(one["id"]) for one in matches])
    # A document that was replaced since the query may satisfy the filter no more.
    found = yield from matching(query, found)
    return (yield from work(_hits, place, query, matches, found, at_once=len(found) <= AT_ONCE))


def _hits(place: Place, query: Query, matches: Sequence[Found], found: Sequence[Found]) -> list[Hit]:
    there = {str(one["id"]): one for one in found}
    return [
        Hit(float(one["score"]), record_of(there[str(one["id"])], query.include, place.info.dimension))
        for one in matches
        if str(one["id"]) in there
    ]


# --- ranked here ------------------------------------------------------------------------------------------


class _Best:
    """The best records of those seen so far."""

    def __init__(self, metric: Metric, query: Query) -> None:
        self._metric = metric
        self._query = query
        self._found: list[tuple[float, float, str, Found]] = []

    def add(self, found: Sequence[Found], dimension: int) -> None:
        """Compare records, and keep the best."""
        if not found or self._query.vector is None:
            return
        matrix = np.stack([vector_of(one, dimension) for one in found])
        raw = raw_scores(self._metric, matrix, self._query.vector)
        value = scores(self._metric, raw)
        self._found += [
            (-float(score), float(number), name_of(one), one)
            for score, number, one in zip(value, raw, found, strict=True)
        ]
        self._found.sort(key=lambda one: (one[0], one[2]))
        del self._found[self._query.k :]

    def hits(self, dimension: int) -> list[Hit]:
        """Return them, best first."""
        return [Hit(one[1], record_of(one[3], self._query.include, dimension)) for one in self._found]


def _ranked(place: Place, query: Query, found: Sequence[Found]) -> Script[list[Hit]]:
    best = _Best(place.info.metric, query)
    dimension = place.info.dimension
    yield from work(best.add, found, dimension, at_once=len(found) <= AT_ONCE)
    return (yield from work(best.hits, dimension, at_once=len(found) <= AT_ONCE))


def _all_ranked(place: Place, query: Query, most_rows: int) -> Script[list[Hit]]:
    """Read the namespace from end to end, and return the best."""
    best = _Best(place.info.metric, query)
    dimension = place.info.dimension
    rows = 0
    last: str | None = None
    while True:
        names, last = yield from listed(place, PIECE, last)
        there = yield from stored(place, names)
        rows += len(there)
        found = yield from matching(query, there)
        yield from work(best.add, found, dimension, at_once=len(found) <= AT_ONCE)
        if last is None:
            return (yield from work(best.hits, dimension))
        if rows > most_rows:
            raise too_many("an exact search", rows)
