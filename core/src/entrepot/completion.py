"""Exact answers from engines that take a filter only in part (F9, S4).

The engine is asked for what it can take, a superset. What comes back is held against the whole
filter here; if too few hits hold, more are asked for (k, 4k, 16k ...), and where that does not
suffice the superset is read to its end and ranked here. Nothing is approximated: either the answer
is exact, or `CompletionLimitError` says which clause would have to be pushed down.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, cast

import numpy as np
from msgspec.structs import replace

from entrepot.errors import CompletionLimitError
from entrepot.filters import evaluate
from entrepot.records import Hit, Page, Query, StoredRecord
from entrepot.search import MAX_TOP_K, SearchMode, raw_scores, scores

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from entrepot.capabilities import Metric
    from entrepot.filters import Converted
    from entrepot.steps import Steps

    Search = Callable[[Query], Steps[list[Hit]]]
    Scan = Callable[[Query, str | None, int], Steps[Page[StoredRecord]]]

MAX_COMPLETION_ROWS: Final = 100_000
"""Most rows that one operation reads to complete a filter, unless the store says otherwise (F9)."""
_GROWTH: Final = 4
_PAGE: Final = 1000


class Completed(NamedTuple):
    """Hits that satisfy the whole filter, and how many rows were read for them."""

    hits: list[Hit]
    rows: int


def is_partial(query: Query) -> bool:
    """Whether the engine takes only a superset of the query's filter."""
    return query.pushed is not None and not query.pushed.exact


def complete(  # noqa: PLR0913, PLR0917 - what it works with
    query: Query, metric: Metric, limit: int, search: Search, scan: Scan, top_k: int = MAX_TOP_K
) -> Steps[Completed]:
    """Return the `query.k` best hits that satisfy the whole filter.

    Args:
        query: What is wanted; its `pushed` filter may be a superset.
        metric: How vectors are compared.
        limit: Most rows to read.
        top_k: Most hits that a search takes.
        search: Asks the engine for its best hits.
        scan: Reads a page of the superset.

    Raises:
        CompletionLimitError: More rows than `limit` would have to be read.
    """
    include = tuple(dict.fromkeys((*query.include, "metadata")))
    rows = 0
    asked = query.k
    while asked <= top_k:
        hits = yield from search(replace(query, k=asked, include=include))
        rows += len(hits)
        good = [hit for hit in hits if holds(query, hit.record)]
        # Fewer than asked for: the engine has no more, so what holds is all there is.
        if len(good) >= query.k or len(hits) < asked:
            return Completed([_trimmed(hit, query) for hit in good[: query.k]], rows)
        if rows > limit:
            raise too_many(query, rows)
        asked *= _GROWTH
    if query.mode is SearchMode.FULLTEXT:
        raise too_many(query, rows)
    return (yield from _ranked_here(query, metric, limit, scan, rows))


def _ranked_here(query: Query, metric: Metric, limit: int, scan: Scan, rows: int) -> Steps[Completed]:
    include = tuple(dict.fromkeys((*query.include, "metadata", "vector")))
    wanted = replace(query, include=include)
    best: list[Hit] = []
    token: str | None = None
    while True:
        page = yield from scan(wanted, token, _PAGE)
        rows += len(page.items)
        good = [record for record in page.items if holds(query, record)]
        best = _best([*best, *_scored(good, query, metric)], metric, query.k)
        token = page.token
        if token is None:
            return Completed([_trimmed(hit, query) for hit in best], rows)
        if rows > limit:
            raise too_many(query, rows)


def _scored(records: Sequence[StoredRecord], query: Query, metric: Metric) -> Iterable[Hit]:
    if not records or query.vector is None:
        return []
    matrix = np.stack(
        [cast("np.ndarray[tuple[int], np.dtype[np.float32]]", record.vector) for record in records]
    )
    raw = raw_scores(metric, matrix, query.vector).tolist()
    return [Hit(number, record) for number, record in zip(raw, records, strict=True)]


def _best(hits: list[Hit], metric: Metric, k: int) -> list[Hit]:
    value = scores(metric, np.array([hit.raw for hit in hits], dtype=np.float64)).tolist()
    order = sorted(range(len(hits)), key=lambda place: (-value[place], hits[place].record.id))
    return [hits[place] for place in order[:k]]


def matching(query: Query, limit: int, scan: Scan) -> Steps[list[StoredRecord]]:
    """Return all records that satisfy the whole filter, by reading the superset to its end.

    Raises:
        CompletionLimitError: More rows than `limit` would have to be read.
    """
    found: list[StoredRecord] = []
    rows = 0
    token: str | None = None
    wanted = replace(query, include=("metadata",))
    while True:
        page = yield from scan(wanted, token, _PAGE)
        rows += len(page.items)
        found += [record for record in page.items if holds(query, record)]
        token = page.token
        if token is None:
            return found
        if rows > limit:
            raise too_many(query, rows)


def holds(query: Query, record: StoredRecord) -> bool:
    """Whether a record satisfies the query's whole filter."""
    return evaluate(query.filter, record.metadata or {})


def too_many(query: Query, rows: int) -> CompletionLimitError:
    """Return the error that names the clauses that were not pushed down, without their values."""
    if query.pushed is None or query.pushed.exact:
        msg = f"ranking more hits than the engine takes read {rows} rows and would have to read more"
        return CompletionLimitError(
            msg, clause="", rows=rows, hint="ask for fewer hits, or raise max_completion_rows"
        )
    converted = cast("Converted[object]", query.pushed)
    clauses = converted.report.inexact
    names = ", ".join(dict.fromkeys(clause.key for clause in clauses))
    return CompletionLimitError(
        f"completing the filter read {rows} rows and would have to read more; the engine does not take "
        f"all of it (keys {names})",
        clause=converted.report.text(values=False),
        rows=rows,
        hint="add a clause that the engine takes and that few documents satisfy, or raise max_completion_rows",
    )


def _trimmed(hit: Hit, query: Query) -> Hit:
    record = hit.record
    if "metadata" not in query.include:
        record = record._replace(metadata=None)
    if "vector" not in query.include:
        record = record._replace(vector=None)
    return Hit(hit.raw, record)
