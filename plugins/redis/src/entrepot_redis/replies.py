"""What the server answers, in one shape for both versions of its protocol. Pure functions.

Connections give bytes, whatever the client's own settings are. RESP2 has lists where RESP3 has maps, and
tells of a search that ran out of time or memory by nothing at all; RESP3 has a warning.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, cast

from entrepot_redis.faults import PartialAnswerError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


class Row(NamedTuple):
    """A document of an answer: its key, the score of a search by words, and the fields asked for."""

    key: bytes
    score: float
    fields: Mapping[bytes, bytes]


class Found(NamedTuple):
    """An answer of FT.SEARCH: how many documents there are in all, and some of them."""

    total: int
    rows: list[Row]


def found(reply: Any, *, scores: bool = False) -> Found:
    """Return an answer of FT.SEARCH.

    Args:
        reply: What the connection gave.
        scores: Whether WITHSCORES was asked for; it adds an entry a document to lists.

    Raises:
        PartialAnswerError: The server warned that the answer is not whole.
    """
    if isinstance(reply, dict):
        answer = cast("dict[bytes, Any]", reply)
        if answer.get(b"warning"):
            msg = "the server warned that its answer is not whole"
            raise PartialAnswerError(msg)
        rows = [
            Row(row[b"id"], _score(row[b"score"]) if scores else 0.0, row.get(b"extra_attributes") or {})
            for row in answer[b"results"]
        ]
        return Found(answer[b"total_results"], rows)
    return Found(reply[0], list(_rows(reply, scores=scores)))


def _rows(reply: Sequence[Any], *, scores: bool) -> Iterator[Row]:
    width = 3 if scores else 2
    for at in range(1, len(reply), width):
        score = _score(reply[at + 1]) if scores else 0.0
        yield Row(reply[at], score, mapped(reply[at + width - 1]))


def _score(given: Any) -> float:
    return float(given)


def total(reply: Any) -> int:
    """Return how many documents an answer of FT.SEARCH counts.

    Raises:
        PartialAnswerError: The server warned that the answer is not whole.
    """
    return found(reply).total if isinstance(reply, dict) else int(reply[0])


def mapped(reply: Any) -> dict[bytes, Any]:
    """Return a map, which RESP2 gives as a list of keys and values in turn."""
    if isinstance(reply, dict):
        return cast("dict[bytes, Any]", reply)
    pairs = iter(cast("Sequence[Any]", reply or ()))
    return dict(zip(pairs, pairs, strict=True))
