"""What reads rows, and how many there are. Scripts.

While documents are replaced, a server of version 2.3.5 answers some queries as if nothing had ever been deleted: it
counts every version, or returns one old row instead of all new ones. Its searches are right. So where the index is exact,
rows are read by a search that has room for all that match. What the server adds to a search's hits by a query of its own
is the vector alone; it is held against the score.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np

from entrepot.errors import BackendError
from entrepot.search import raw_scores
from entrepot_milvus.catalog import LEVELS
from entrepot_milvus.commands import read
from entrepot_milvus.expressions import EVERYTHING, joined, one_of, rendered
from entrepot_milvus.fields import ID, VECTOR, vector_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from entrepot.scripted import Script
    from entrepot_milvus.catalog import Place, Plan

    Row = Mapping[str, Any]

MOST_ROWS: Final = 16_000
"""Rows of one answer: a server gives 16,384."""
_FEW: Final = 1000
"""Documents that are counted by their keys at once."""
_TRIES: Final = 5
_TOLERANCE: Final = 1e-4
"""Scores that differ by less, of 1, may be of one vector."""


def level(plan: Plan, *, strong: bool = False) -> dict[str, str]:
    """Return what a read says of what it waits for."""
    return {"consistency_level": LEVELS["strong" if strong else plan.consistency]}


def by_search(place: Place, plan: Plan) -> bool:
    """Whether rows are read by searches."""
    return plan.served and not place.ann


def rows_where(  # noqa: PLR0913 - what a query is
    place: Place,
    plan: Plan,
    parts: Sequence[str],
    fields: Sequence[str],
    limit: int = MOST_ROWS,
    *,
    strong: bool = False,
) -> Script[list[Row]]:
    """Return at most `limit` rows that satisfy some expressions, in no order.

    Raises:
        BackendError: Documents were replaced again and again while they were read.
    """
    if not by_search(place, plan):
        answer = yield read(
            "query",
            filter=joined(list(parts), "and") if parts else rendered(EVERYTHING),
            output_fields=list(fields),
            limit=limit,
            **place.reads,
            **level(plan, strong=strong),
        )
        return cast("list[Row]", answer)
    plain = [field for field in fields if field != VECTOR]
    found = yield from _hits(place, plan, parts, plain, limit, strong=strong)
    if VECTOR not in fields:
        return [row for row, _ in found]
    return (yield from _with_vectors(place, plan, found))


def _hits(  # noqa: PLR0913 - as above
    place: Place, plan: Plan, parts: Sequence[str], fields: Sequence[str], limit: int, *, strong: bool
) -> Script[list[tuple[dict[str, Any], float]]]:
    """Return rows and their scores against the probe."""
    answers = yield read(
        "search",
        data=[_probe(place.info.dimension).tolist()],
        anns_field=VECTOR,
        filter=joined(list(parts), "and") if parts else "",
        limit=limit,
        output_fields=list(dict.fromkeys((*fields, ID))),
        **place.reads,
        **level(plan, strong=strong),
    )
    return [({**hit["entity"], ID: hit[ID]}, hit["distance"]) for hit in answers[0]]


def _probe(dimension: int) -> NDArray[np.float32]:
    """Return the vector that rows are searched with: any does, if vectors that differ have other scores."""
    return np.sin(np.arange(1, dimension + 1, dtype=np.float64)).astype(np.float32)


def _with_vectors(
    place: Place, plan: Plan, found: Sequence[tuple[dict[str, Any], float]]
) -> Script[list[Row]]:
    """Add the vectors to rows: those that have the scores of the rows, as others are of other versions."""
    pending = {row[ID]: (row, score) for row, score in found}
    rows: list[Row] = []
    for _ in range(_TRIES):
        if not pending:
            return rows
        keys = list(pending)
        for at in range(0, len(keys), _FEW):
            part = keys[at : at + _FEW]
            try:
                answer = yield from _hits(place, plan, [one_of(ID, part)], [VECTOR], len(part), strong=True)
            except BackendError as error:
                if not error.retryable:
                    raise
                continue
            rows += _matched(place, pending, answer)
        if pending:  # replaced meanwhile, or deleted
            gone = list(pending)
            again = yield from _again(place, plan, gone, pending)
            pending = again
    msg = "documents were replaced again and again while they were read"
    raise BackendError(msg, retryable=True)


def _again(
    place: Place, plan: Plan, keys: Sequence[str], pending: Mapping[str, tuple[dict[str, Any], float]]
) -> Script[dict[str, tuple[dict[str, Any], float]]]:
    fields = list(next(iter(pending.values()))[0])
    found: dict[str, tuple[dict[str, Any], float]] = {}
    for at in range(0, len(keys), _FEW):
        part = keys[at : at + _FEW]
        answer = yield from _hits(place, plan, [one_of(ID, part)], fields, len(part), strong=True)
        found |= {row[ID]: (row, score) for row, score in answer}
    return found


def _matched(
    place: Place,
    pending: dict[str, tuple[dict[str, Any], float]],
    answer: Sequence[tuple[dict[str, Any], float]],
) -> list[Row]:
    """Take the rows whose vectors have their scores."""
    if not answer:
        return []
    matrix = np.stack([vector_of(row[VECTOR]) for row, _ in answer])
    scores = raw_scores(place.info.metric, matrix, _probe(place.info.dimension)).tolist()
    rows: list[Row] = []
    for (row, _), score in zip(answer, scores, strict=True):
        known = pending.get(row[ID])
        if known is not None and abs(known[1] - score) <= _TOLERANCE * max(1.0, abs(score)):
            rows.append({**known[0], VECTOR: row[VECTOR]})
            del pending[row[ID]]
    return rows


def count_where(place: Place, plan: Plan, parts: Sequence[str]) -> Script[int]:
    """Return how many rows satisfy some expressions.

    A server's own counts may be too high while documents are replaced. So few are counted by their keys; of many, two
    counts must agree.
    """
    if by_search(place, plan):
        rows = yield from rows_where(place, plan, parts, [ID], _FEW)
        if len(rows) < _FEW:
            return len(rows)
    number = yield from _counted(place, plan, parts)
    for _ in range(_TRIES):
        if not by_search(place, plan):
            return number
        if number < MOST_ROWS:
            rows = yield from rows_where(place, plan, parts, [ID], MOST_ROWS)
            if len(rows) < MOST_ROWS:
                return len(rows)
        again = yield from _counted(place, plan, parts)
        if again == number:
            return number
        number = again
    msg = "documents were replaced again and again while they were counted"
    raise BackendError(msg, retryable=True)


def _counted(place: Place, plan: Plan, parts: Sequence[str]) -> Script[int]:
    [row] = yield read(
        "query",
        filter=joined(list(parts), "and") if parts else rendered(EVERYTHING),
        output_fields=["count(*)"],
        **place.reads,
        **level(plan),
    )
    return int(row["count(*)"])
