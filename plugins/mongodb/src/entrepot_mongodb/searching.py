"""Searches by vector. Scripts.

An exact search asks the database for the vectors of all that match, and compares them here, some at a time: only those of
one block and the ids of the best are in memory. Then the best are read by id, and must be what was compared still.

An approximate search asks `$vectorSearch`, which runs beside the database and some time behind it, and takes a part of
filters only. So its hits are candidates: they are looked up in the database, with the whole filter, and compared by their
stored vectors. If fewer match than are asked for, more candidates are, and in the end the exact search decides (S4).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from entrepot.records import Hit, Query
from entrepot.scripted import work
from entrepot.search import raw_scores, scores
from entrepot_mongodb import indexes
from entrepot_mongodb.catalog import still_there
from entrepot_mongodb.commands import Find, Open, Take
from entrepot_mongodb.fields import EMBEDDING, ID, VERSION, vectors_of, wanted
from entrepot_mongodb.filters import SearchFilterConverter
from entrepot_mongodb.reading import (
    AT_ONCE,
    clauses,
    count,
    finds_nothing,
    pushed,
    records_of,
    stored,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from entrepot.capabilities import Metric
    from entrepot_mongodb.catalog import Place, Plan
    from entrepot_mongodb.commands import Script

_BLOCK_BYTES: Final = 1 << 20
"""Bytes of vectors that are compared together."""
_BLOCK_ROWS: Final = 4000
_GROWTH: Final = 4
_CANDIDATES: Final = 20
"""Candidates for each hit of an approximate search, as MongoDB advises."""
_ATTEMPTS: Final = 5
"""How often a search is done, as long as documents change between its two reads."""


class Ranked(NamedTuple):
    """A document that was compared: its id, its raw score, and the name of the write that made it what it was."""

    id: str
    raw: float
    version: str


class Best:
    """The best of all documents that were offered: highest score first, equal scores by id (S1).

    Args:
        metric: How vectors are compared.
        vector: What they are compared with.
        k: How many are kept.
    """

    def __init__(self, metric: Metric, vector: NDArray[np.float32], k: int) -> None:
        self._metric = metric
        self._vector = vector
        self._k = k
        self._ids: list[str] = []
        self._raw: list[float] = []
        self._versions: list[str] = []
        self._least = -np.inf

    def offer(self, found: Sequence[Any], vectors: NDArray[np.float32]) -> None:
        """Compare some documents."""
        raw = raw_scores(self._metric, vectors, self._vector)
        good = np.flatnonzero(scores(self._metric, raw) >= self._least)
        self._raw += raw[good].tolist()
        for row in good.tolist():
            self._ids.append(found[row][ID])
            self._versions.append(found[row][VERSION])
        if len(self._ids) > 2 * self._k + _BLOCK_ROWS:
            self._cut()

    def _cut(self) -> None:
        value = scores(self._metric, np.array(self._raw, dtype=np.float64)).tolist()
        order = sorted(range(len(value)), key=lambda row: (-value[row], self._ids[row]))
        kept: dict[str, int] = {}
        # One that was replaced meanwhile may have been met twice.
        for row in order:
            kept.setdefault(self._ids[row], row)
            if len(kept) == self._k:
                self._least = value[row]
                break
        self._raw = [self._raw[row] for row in kept.values()]
        self._versions = [self._versions[row] for row in kept.values()]
        self._ids = list(kept)

    def ranked(self) -> list[Ranked]:
        """Return the best, best first."""
        self._cut()
        return [Ranked(*one) for one in zip(self._ids, self._raw, self._versions, strict=True)]


def search(place: Place, query: Query, plan: Plan) -> Script[list[Hit]]:
    """Return the best hits."""
    if finds_nothing(query) or query.vector is None:
        return []
    if not _by_index(place, query):
        (hits,) = yield from _exactly(place, [query])
        return hits
    return (yield from _approximately(place, query, plan))


def search_all(place: Place, queries: Sequence[Query], plan: Plan) -> Script[list[list[Hit]]]:
    """Answer several queries; exact ones of one filter read the vectors once."""
    answers: dict[int, list[Hit]] = {}
    together: dict[Any, list[int]] = {}
    for number, query in enumerate(queries):
        if finds_nothing(query) or query.vector is None or _by_index(place, query):
            answers[number] = yield from search(place, query, plan)
        else:
            together.setdefault((query.filter, query.ids), []).append(number)
    for numbers in together.values():
        found = yield from _exactly(place, [queries[number] for number in numbers])
        answers.update(zip(numbers, found, strict=True))
    return [answers[number] for number in range(len(queries))]


def _by_index(place: Place, query: Query) -> bool:
    return place.ann and not query.exact and query.k <= indexes.MOST and query.ids is None


# --- the exact way ----------------------------------------------------------------------------------------


def _exactly(place: Place, queries: Sequence[Query]) -> Script[list[list[Hit]]]:
    """Return the best hits of all documents that match; the queries have the same filter and ids."""
    left = dict(enumerate(queries))
    found: dict[int, list[Hit]] = {}
    for attempt in range(1, _ATTEMPTS + 1):
        ranked = yield from _ranked(place, list(left.values()))
        for number, best in zip(list(left), ranked, strict=True):
            hits = yield from _hits(place, left[number], best, last=attempt == _ATTEMPTS)
            if hits is not None:
                found[number] = hits
                del left[number]
        if not left:
            break
    if not any(found.values()):
        yield from still_there(place)
    return [found[number] for number in range(len(queries))]


def _ranked(place: Place, queries: Sequence[Query]) -> Script[list[list[Ranked]]]:
    """Return the best of all documents that match, for each query."""
    dimension = place.info.dimension
    rows = max(2, min(_BLOCK_ROWS, _BLOCK_BYTES // (4 * dimension)))
    best = [Best(place.info.metric, query.vector, query.k) for query in queries if query.vector is not None]

    def compare(block: Sequence[Any]) -> None:
        vectors = vectors_of(block, dimension)
        for one in best:
            one.offer(block, vectors)

    for clause in clauses(queries[0]):
        cursor = yield Open(Find(place.name, clause, {VERSION: 1, EMBEDDING: 1}, batch=rows))
        while block := (yield Take(cursor, rows)):
            yield from work(compare, block, at_once=len(block) * len(best) <= AT_ONCE)
    return [one.ranked() for one in best]


def _hits(place: Place, query: Query, best: Sequence[Ranked], *, last: bool) -> Script[list[Hit] | None]:
    """Return hits in their order; None if a document changed since it was compared.

    With `last` what changed is taken as it is now, if it still matches.
    """
    found = yield from stored(place, [one.id for one in best], wanted(query.include, VERSION))
    compared = {one.id: one.version for one in best}
    same = [one for one in found if one[VERSION] == compared[one[ID]]]
    if len(same) < len(best):
        if not last:
            return None
        others = [name for name in compared if name not in {one[ID] for one in same}]
        same += yield from stored(place, others, wanted(query.include), pushed(query))
    records = yield from records_of(place, same, query.include)
    there = {record.id: record for record in records}
    return [Hit(one.raw, there[one.id]) for one in best if one.id in there]


# --- by the index -----------------------------------------------------------------------------------------


def _approximately(place: Place, query: Query, plan: Plan) -> Script[list[Hit]]:
    """Return the best of the index's candidates that the database confirms."""
    where = SearchFilterConverter().convert(query.filter).query
    vector: list[float] = [] if query.vector is None else query.vector.tolist()
    limit = query.k
    while True:
        candidates = min(max(plan.ef_search, _CANDIDATES * limit), indexes.MOST)
        names = yield from indexes.nearest(place.name, vector, limit, candidates=candidates, where=where)
        hits = yield from _confirmed(place, query, names)
        if len(hits) >= query.k:
            return hits
        if len(names) < limit or limit >= indexes.MOST:
            break
        limit = min(_GROWTH * limit, indexes.MOST)
    if len(hits) < (yield from count(place, query)):
        (hits,) = yield from _exactly(place, [query])
    return hits


def _confirmed(place: Place, query: Query, names: Sequence[str]) -> Script[list[Hit]]:
    """Return the best of some documents that match, by their stored vectors."""
    if query.vector is None or not names:
        return []
    found = yield from stored(place, names, wanted(query.include, VERSION, EMBEDDING), pushed(query))
    best = Best(place.info.metric, query.vector, query.k)

    def compare() -> None:
        best.offer(found, vectors_of(found, place.info.dimension))

    if not found:
        return []
    yield from work(compare, at_once=len(found) <= AT_ONCE)
    ranked = best.ranked()
    kept = {one.id for one in ranked}
    records = yield from records_of(place, [one for one in found if one[ID] in kept], query.include)
    there = {record.id: record for record in records}
    return [Hit(one.raw, there[one.id]) for one in ranked]
