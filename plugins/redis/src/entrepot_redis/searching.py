"""Searches: the nearest documents, and those with certain words. Scripts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

import numpy as np

from entrepot.capabilities import Metric
from entrepot.filters import TRUE, evaluate
from entrepot.records import Hit
from entrepot.search import SearchMode, raw_scores
from entrepot_redis.commands import Ask
from entrepot_redis.filters import union_of
from entrepot_redis.reading import ALWAYS, answered, fetch, packed, reader_of, returned
from entrepot_redis.replies import found
from entrepot_redis.words import words_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from entrepot.records import Query, StoredRecord
    from entrepot_redis.catalog import Place
    from entrepot_redis.commands import Command, Script
    from entrepot_redis.names import StoreNames
    from entrepot_redis.reading import Condition
    from entrepot_redis.replies import Row

_GROWTH: Final = 4
_FEW_MORE: Final = 50
"""Hits that are asked for beyond a cut through equal distances, at least."""


def search(names: StoreNames, place: Place, query: Query, ef_search: int) -> Script[list[Hit]]:
    """Return the best hits, by vector or by words.

    Raises:
        CollectionNotFoundError: The collection was dropped since the store looked at it.
    """
    if query.mode is SearchMode.FULLTEXT:
        return (yield from _by_words(names, place, query))
    if query.vector is None:
        return []
    if query.ids is not None:
        return (yield from _among(names, place, query, query.vector))
    index = names.index_of(place.generation)
    by_index = place.kind == "hnsw" and query.filter is TRUE and not query.exact
    # One more than asked for shows whether the cut goes through documents of one distance (S1).
    asked = query.k if by_index else query.k + 1

    vector = packed(query.vector)

    def command_of(made: Condition) -> Command:
        fields = reader_of(names, place, query, sieve=made.sieve).fields
        return (
            "FT.SEARCH", index, _nearest(place, made.text or "", asked, ef_search if by_index else None),
            "PARAMS", "2", "v", vector, "SORTBY", "d", *returned([*fields, "d"]), "LIMIT", "0", asked, *ALWAYS,
        )  # fmt: skip

    made, reply = yield from answered(names, place, query, command_of)
    if reply is None:
        return []
    reader = reader_of(names, place, query, sieve=made.sieve)
    while True:
        answer = found(reply).rows
        rows = [row for row in answer if reader.passes(row)]
        if by_index or len(answer) < asked or _settled(rows, query.k):
            break
        asked += max(_FEW_MORE, asked // 4)
        [reply] = yield Ask([command_of(made)])
    near = [(float(row.fields[b"d"]), reader.name(row), row) for row in rows]
    near.sort(key=lambda entry: entry[:2])
    squared = place.info.metric is Metric.EUCLIDEAN
    return [
        Hit(distance if squared else 1.0 - distance, reader.record(row))
        for distance, _, row in near[: query.k]
    ]


def _settled(rows: Sequence[Row], k: int) -> bool:
    """Whether the best k are certain: there are more, and the last of them is farther than the k-th."""
    return len(rows) > k and rows[k - 1].fields[b"d"] != rows[-1].fields[b"d"]


def _nearest(place: Place, where: str, k: int, ef: int | None) -> str:
    """Return the query for the nearest documents: approximate with `ef` candidates, else exact.

    ADHOC_BF compares all that match, so it is exact on every index; the alternative, batches, is not.
    """
    if ef is not None:
        return f"*=>[KNN {k} @v $v EF_RUNTIME {max(ef, k)} AS d]"
    if place.kind == "flat" and not where:
        return f"*=>[KNN {k} @v $v AS d]"
    return f"({where or '@q:[-inf inf]'})=>[KNN {k} @v $v HYBRID_POLICY ADHOC_BF AS d]"


def _among(names: StoreNames, place: Place, query: Query, vector: NDArray[np.float32]) -> Script[list[Hit]]:
    """Compare the documents of some ids here."""
    ids = tuple(dict.fromkeys(query.ids or ()))
    include = tuple(dict.fromkeys((*query.include, "metadata", "vector")))
    records = yield from fetch(names, place, ids, include)
    good = [record for record in records if evaluate(query.filter, record.metadata or {})]
    if not good:
        return []
    matrix = np.stack([cast("NDArray[np.float32]", record.vector) for record in good])
    raw = raw_scores(place.info.metric, matrix, vector).tolist()
    sign = 1.0 if place.info.metric is Metric.EUCLIDEAN else -1.0
    ranked = sorted(zip(raw, good, strict=True), key=lambda pair: (sign * pair[0], pair[1].id))
    return [Hit(score, _trimmed(record, query)) for score, record in ranked[: query.k]]


def _trimmed(record: StoredRecord, query: Query) -> StoredRecord:
    if "metadata" not in query.include:
        record = record._replace(metadata=None)
    return record if "vector" in query.include else record._replace(vector=None)


def _by_words(names: StoreNames, place: Place, query: Query) -> Script[list[Hit]]:
    """Return documents with any of the words, ranked by BM25, whatever the server uses by default."""
    words = words_of(query.words or "")
    if not words or query.ids == ():
        return []
    keys = [names.prefix(place.generation) + name.encode() for name in dict.fromkeys(query.ids or ())]
    within: list[str | bytes] = ["INKEYS", str(len(keys)), *keys] if keys else []
    asked = query.k

    def command_of(made: Condition) -> Command:
        text = f"{made.text} @x|w:{union_of(words)}".strip()
        fields = reader_of(names, place, query, sieve=made.sieve).fields
        return (
            "FT.SEARCH", names.index_of(place.generation), text, *within, "VERBATIM", "WITHSCORES",
            "SCORER", "BM25STD", *returned(fields or ["n"]), "LIMIT", "0", asked, *ALWAYS,
        )  # fmt: skip

    made, reply = yield from answered(names, place, query, command_of, unscored=True)
    if reply is None:
        return []
    reader = reader_of(names, place, query, sieve=made.sieve)
    while True:
        answer = found(reply, scores=True).rows
        rows = [row for row in answer if reader.passes(row)]
        if len(rows) >= query.k or len(answer) < asked:
            return [Hit(row.score, reader.record(row)) for row in rows[: query.k]]
        asked *= _GROWTH
        [reply] = yield Ask([command_of(made)])
