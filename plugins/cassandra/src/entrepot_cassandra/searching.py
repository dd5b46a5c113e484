"""Searches by vector. Scripts.

An approximate search asks the index once for each conjunction of the filter, for more than are wanted: the index finds
the nearest the surer the more it is asked for. An exact one reads the similarity of all rows that match. Either gives ids
with similarities; documents are read afterwards, by id, and held against the filter once more, as another writer may
have changed them in between.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from entrepot.capabilities import Metric
from entrepot.completion import holds, is_partial
from entrepot.records import Hit
from entrepot.scripted import work
from entrepot_cassandra.commands import Ask, Together
from entrepot_cassandra.fields import columns
from entrepot_cassandra.reading import (
    AT_ONCE,
    MANY,
    checked,
    merged,
    position,
    records_of,
    select,
    stored,
    ways_of,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from entrepot.records import Query, StoredRecord
    from entrepot_cassandra.catalog import Place
    from entrepot_cassandra.commands import Script
    from entrepot_cassandra.filters import Ways

MOST: Final = 1000
"""Most hits that the index gives."""
_LEAST: Final = 100
_FACTOR: Final = 4
_SPARE: Final = 50
"""Documents that are kept beyond those wanted, in case some vanish before they are read."""

Ranked = list[tuple[float, str]]
"""Similarities, negated, and ids: sorted, the best come first, equal ones by id."""


def search(place: Place, query: Query) -> Script[list[Hit]]:
    """Return the best hits."""
    ways = ways_of(query)
    if not ways:
        return []
    vector: list[float] = [] if query.vector is None else query.vector.tolist()
    if query.ids is not None:
        found = yield from _among(place, query, vector)
        return (yield from _hits(place, query, found))
    if not query.exact and query.k <= MOST:
        found = yield from _nearest(place, query, ways, vector)
        if len(found) >= query.k:
            hits = yield from _hits(place, query, found)
            if len(hits) >= query.k:
                return hits
    found = yield from _compared(place, query, ways, vector)
    return (yield from _hits(place, query, found))


def _nearest(place: Place, query: Query, ways: Ways, vector: list[float]) -> Script[Ranked]:
    """Ask the index."""
    limit = min(MOST, max(_LEAST, _FACTOR * query.k))
    asks = [
        Ask(
            f"{select(place, f'id, {place.similarity}(v, ?)', way)} ORDER BY v ANN OF ? LIMIT ?",
            (vector, *way.values, vector, limit),
            level="one",
            page=MOST,
        )
        for way in ways
    ]
    answers = checked(place, (yield Together(asks)))
    rows = [row for answer in answers for row in answer.rows]
    return (yield from work(_ranked, rows, at_once=len(rows) <= AT_ONCE))


def _compared(place: Place, query: Query, ways: Ways, vector: list[float]) -> Script[Ranked]:
    """Read the similarity of every row that matches, and keep the best."""
    kept = query.k + _SPARE
    best: Ranked = []
    after = None
    more = True
    while more:
        found, more = yield from merged(place, ways, (f"{place.similarity}(v, ?)",), after, MANY, (vector,))
        if not found:
            break
        after = position(found[-1])
        best = yield from work(_better, best, found, kept, at_once=len(found) <= AT_ONCE)
    return best


def _better(best: Ranked, found: Sequence[tuple[Any, ...]], kept: int) -> Ranked:
    return sorted([*best, *((-row[2], row[1]) for row in found if row[2] is not None)])[:kept]


def _among(place: Place, query: Query, vector: list[float]) -> Script[Ranked]:
    """Read the similarity of documents by id."""
    found = yield from stored(place, query.ids or (), (f"{place.similarity}(v, ?)",), (vector,))
    return (yield from work(_ranked, found, at_once=len(found) <= AT_ONCE))


def _ranked(rows: Sequence[tuple[Any, ...]]) -> Ranked:
    """Return rows of ids and similarities, each id once, the best first."""
    return sorted((-similarity, name) for name, similarity in dict(rows).items() if similarity is not None)


def _hits(place: Place, query: Query, ranked: Ranked) -> Script[list[Hit]]:
    """Return the documents of the best, with their raw scores; those that are gone make room for the next."""
    include = tuple(dict.fromkeys((*query.include, "metadata")))
    hits: list[Hit] = []
    start = 0
    while len(hits) < query.k and start < len(ranked):
        part = ranked[start : start + query.k - len(hits)]
        start += len(part)
        rows = yield from stored(place, [name for _, name in part], columns(include))
        records = yield from records_of(rows, include)
        hits += yield from work(_matching, place, query, part, records, at_once=len(records) <= AT_ONCE)
    return hits


def _matching(place: Place, query: Query, part: Ranked, records: Sequence[StoredRecord]) -> list[Hit]:
    """Return hits of those that are there and satisfy the filter, in their order."""
    there = {record.id: record for record in records if is_partial(query) or holds(query, record)}
    return [
        Hit(_raw(place, -negated), _trimmed(query, there[name])) for negated, name in part if name in there
    ]


def _trimmed(query: Query, record: StoredRecord) -> StoredRecord:
    return record if "metadata" in query.include else record._replace(metadata=None)


def _raw(place: Place, similarity: float) -> float:
    """Return the raw score of a similarity: that is (1 + dot) / 2, or 1 / (1 + d²)."""
    if place.info.metric is Metric.EUCLIDEAN:
        return 1.0 / similarity - 1.0 if similarity > 0.0 else math.inf
    return 2.0 * similarity - 1.0
