"""What a search asks, and the one meaning of its scores (S1 to S3, S5, S8, S9)."""

from __future__ import annotations

import math
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, cast

import msgspec
import numpy as np
from msgspec.structs import force_setattr

from entrepot.capabilities import Metric
from entrepot.errors import ArgumentTypeError, RequestError
from entrepot.metadata import ill_formed, name_fault

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from numpy.typing import ArrayLike, NDArray

    from entrepot.filters import Expression

    FilterText: TypeAlias = Expression | str
    FilterLike: TypeAlias = FilterText | Callable[[], FilterText]
    """A filter as an argument: a tree, a text, or a callable asked anew for each request."""

Part: TypeAlias = Literal["text", "metadata", "vector"]
"""A part of a document that a read returns."""
PARTS: Final[tuple[Part, ...]] = ("text", "metadata", "vector")
DEFAULT_INCLUDE: Final[tuple[Part, ...]] = ("text", "metadata")

MAX_TOP_K: Final = 10_000
"""Most hits of a search (S5); `scan` reads more."""
THRESHOLD_TOLERANCE: Final = 1e-6
"""A score this much below the threshold still passes (S3)."""


class SearchMode(StrEnum):
    """How documents are found (S9)."""

    SEMANTIC = "semantic"
    """Nearest vectors; scores as S2."""
    FULLTEXT = "fulltext"
    """Any word of the query occurs; the engine's ranking in `rank_score`."""
    HYBRID = "hybrid"
    """Both, fused by reciprocal rank."""


class _Query(msgspec.Struct, frozen=True, eq=False):
    query: str | None = None


class SearchRequest(_Query, frozen=True, eq=False, kw_only=True):
    """One search, by text, by vector, or by a stored document (S8).

    Attributes:
        query: The text to search for; required by FULLTEXT and HYBRID.
        vector: The vector to search for, shape (d,), instead of embedding the text. With HYBRID it
            may stand beside `query`.
        near_id: The id of a stored document whose neighbours are wanted; it is left out itself.
        ids: Only these documents are considered.
        top_k: Most hits, 0 to 10,000; 0 returns nothing without a call (S5).
        threshold: Least score in [0, 1], inclusive within 1e-6; None means none (S3).
        filter: Only documents that match; a tree, a text, or a callable.
        mode: SEMANTIC, FULLTEXT or HYBRID (S9).
        fallback: The mode to use, with a log line, where the store lacks `mode`.
        exact: Search exactly even if there is an approximate index (S6).
        rrf_k: The constant k of reciprocal rank fusion (HYBRID).
        weights: Weights of the semantic and of the full-text list in the fusion.
        include: Which parts of the documents come back; id and score always do.
        timeout: Seconds for each exchange with the engine, instead of the store's own (E4).

    Raises:
        RequestError: Out of bounds, or the parts contradict each other; found at construction.
    """

    vector: Any = None
    near_id: str | None = None
    ids: tuple[str, ...] | None = None
    top_k: int = 4
    threshold: float | None = None
    filter: Any = None
    mode: SearchMode = SearchMode.SEMANTIC
    fallback: SearchMode | None = None
    exact: bool = False
    rrf_k: int = 60
    weights: tuple[float, float] = (1.0, 1.0)
    include: tuple[Part, ...] = DEFAULT_INCLUDE
    timeout: float | None = None

    if TYPE_CHECKING:

        def __init__(  # noqa: PLR0913 - the fields of the record
            self,
            query: str | None = None,
            *,
            vector: ArrayLike | None = None,
            near_id: str | None = None,
            ids: Collection[str] | None = None,
            top_k: int = 4,
            threshold: float | None = None,
            filter: FilterLike | None = None,  # noqa: A002 - the name users know
            mode: SearchMode | str = SearchMode.SEMANTIC,
            fallback: SearchMode | str | None = None,
            exact: bool = False,
            rrf_k: int = 60,
            weights: Sequence[float] = (1.0, 1.0),
            include: Collection[Part] = DEFAULT_INCLUDE,
            timeout: float | None = None,
        ) -> None:
            """Make a request; see the class for the fields."""

    def __post_init__(self) -> None:
        """Refuse what is out of bounds or contradicts itself, before any I/O (S5)."""
        if type(self.mode) is not SearchMode:
            force_setattr(self, "mode", _mode(self.mode))
        if self.fallback is not None:
            force_setattr(self, "fallback", _mode(self.fallback))
        if type(self.top_k) is not int or not 0 <= self.top_k <= MAX_TOP_K:
            msg = f"top_k must be an int from 0 to {MAX_TOP_K}, not {self.top_k!r}"
            raise RequestError(msg, hint="scan() reads any number of documents")
        if self.threshold is not None:
            self._check_threshold()
        if self.ids is not None:
            force_setattr(self, "ids", check_ids(self.ids))
        if self.include is not DEFAULT_INCLUDE:
            force_setattr(self, "include", check_include(self.include))
        check_timeout(self.timeout)
        exact: object = self.exact
        if type(exact) is not bool:
            msg = f"exact must be True or False, not {self.exact!r}"
            raise ArgumentTypeError(msg)
        self._check_inputs()
        if self.mode is SearchMode.HYBRID:
            self._check_fusion()

    def _check_threshold(self) -> None:
        threshold = self.threshold
        if type(threshold) not in (int, float) or not 0 <= cast("float", threshold) <= 1:
            msg = f"threshold must be a number in [0, 1], not {threshold!r}"
            raise RequestError(msg, hint="scores are similarities, 1 is best; None accepts all")
        if self.mode is SearchMode.FULLTEXT:
            msg = "a FULLTEXT search has no score that a threshold could cut"
            raise RequestError(msg, hint="use SEMANTIC or HYBRID, or cut by rank_score yourself")

    def _check_inputs(self) -> None:
        given = [
            name
            for name, value in (("query", self.query), ("vector", self.vector), ("near_id", self.near_id))
            if value is not None
        ]
        if self.query is not None:
            if type(self.query) is not str:
                msg = f"query must be a str, not {type(self.query).__name__}"
                raise ArgumentTypeError(msg, hint="a vector goes into SearchRequest(vector=...)")
            fault = ill_formed(self.query)
            if fault is not None:
                msg = f"the query {fault}"
                raise RequestError(msg)
        if self.near_id is not None:
            fault = name_fault(self.near_id)
            if fault is not None:
                msg = f"near_id {fault}"
                raise RequestError(msg)
        if self.mode is SearchMode.SEMANTIC:
            wanted = len(given) == 1
        elif self.mode is SearchMode.FULLTEXT:
            wanted = given == ["query"]
        else:
            wanted = given in (["query"], ["query", "vector"])
        if not wanted:
            needs = {
                SearchMode.SEMANTIC: "exactly one of query, vector and near_id",
                SearchMode.FULLTEXT: "a query and neither vector nor near_id",
                SearchMode.HYBRID: "a query, and may have a vector for its semantic half",
            }[self.mode]
            msg = f"a {self.mode.name} search takes {needs}; given: {', '.join(given) or 'nothing'}"
            raise RequestError(msg)

    def _check_fusion(self) -> None:
        if type(self.rrf_k) is not int or self.rrf_k < 1:
            msg = f"rrf_k must be an int of at least 1, not {self.rrf_k!r}"
            raise RequestError(msg)
        given: object = self.weights
        weights: tuple[Any, ...] = tuple(cast("Sequence[Any]", given)) if type(given) in (list, tuple) else ()
        if len(weights) != 2 or not all(  # noqa: PLR2004 - two lists are fused
            type(weight) in (int, float) and math.isfinite(weight) and weight >= 0 for weight in weights
        ):
            msg = f"weights must be two finite numbers of at least 0, not {self.weights!r}"
            raise RequestError(msg)
        if not any(weights):
            msg = "weights must not both be 0"
            raise RequestError(msg)
        force_setattr(self, "weights", weights)

    def replace(self, **changes: Any) -> SearchRequest:
        """Return a checked copy with some fields changed."""
        return msgspec.structs.replace(self, **changes)


def _mode(mode: object) -> SearchMode:
    try:
        return SearchMode(str(mode))
    except ValueError:
        msg = f"there is no search mode {mode!r}"
        raise RequestError(msg, hint=f"modes are {', '.join(SearchMode)}") from None


def check_ids(ids: object) -> tuple[str, ...]:
    """Return ids as a tuple.

    Raises:
        ArgumentTypeError: A bare string, or no collection of strings (D7).
        RequestError: An id that no document can have (D1).
    """
    if isinstance(ids, str | bytes) or not hasattr(ids, "__iter__"):
        msg = f"ids must be a list of ids, not {type(ids).__name__}"
        raise ArgumentTypeError(msg, hint="put a single id into a list")
    checked = tuple(cast("Collection[str]", ids))
    for name in checked:
        fault = name_fault(name)
        if fault is not None:
            msg = f"the id {name!r} {fault}"
            if type(name) is not str:
                raise ArgumentTypeError(msg)
            raise RequestError(msg)
    return checked


def check_include(include: object) -> tuple[Part, ...]:
    """Return `include` as a tuple of known parts."""
    if isinstance(include, str) or not hasattr(include, "__iter__"):
        msg = f"include must be a list of parts, not {include!r}"
        raise ArgumentTypeError(msg, hint=f"parts are {', '.join(PARTS)}")
    parts = tuple(cast("Collection[Part]", include))
    unknown = [part for part in parts if part not in PARTS]
    if unknown:
        msg = f"include names {unknown[0]!r}, which is no part of a document"
        raise RequestError(msg, hint=f"parts are {', '.join(PARTS)}")
    return parts


def check_timeout(timeout: object) -> None:
    """Refuse a timeout that is no positive number of seconds; None means the default."""
    if timeout is not None and not (
        type(timeout) in (int, float) and cast("float", timeout) > 0 and math.isfinite(cast("float", timeout))
    ):
        msg = f"timeout must be a positive number of seconds, not {timeout!r}"
        raise RequestError(msg)


def checked_timeout(timeout: float | None) -> float | None:
    """Return a timeout that `check_timeout` lets pass."""
    check_timeout(timeout)
    return timeout


def raw_scores(
    metric: Metric, vectors: NDArray[np.float32], query: NDArray[np.float32]
) -> NDArray[np.float64]:
    """Return the raw score of each of `vectors` (n, d) against `query` (d,), float64 of shape (n,).

    Raw is the dot product for cosine and dot (of unit vectors it is the cosine), and the squared
    distance for euclidean. Each row is summed alone and in the same order, so identical vectors
    tie exactly wherever they lie (S1), which a BLAS product does not promise.
    """
    wide = query.astype(np.float64)
    if metric is Metric.EUCLIDEAN:
        difference = vectors - wide
        return cast("NDArray[np.float64]", (difference * difference).sum(axis=1))
    return cast("NDArray[np.float64]", (vectors * wide).sum(axis=1))


def score(metric: Metric, raw: float) -> float:
    """Return the score in [0, 1] of a raw score (S2).

    Cosine ``(1 + cos) / 2`` and dot ``(1 + dot) / 2``, kept within [0, 1] where rounding left it;
    euclidean ``1 / (1 + d²)`` with the squared distance as the raw score.
    """
    if metric is Metric.EUCLIDEAN:
        return 1.0 / (1.0 + raw) if raw > 0.0 else 1.0
    value = (1.0 + raw) / 2.0
    return value if 0.0 <= value <= 1.0 else float(value > 1.0)


def score_all(metric: Metric, raw: Sequence[float]) -> list[float]:
    """Return the scores of some raw scores; for each what `score` gives (S2)."""
    if metric is not Metric.EUCLIDEAN:
        halves = [(1.0 + number) / 2.0 for number in raw]
        if not halves or (min(halves) >= 0.0 and max(halves) <= 1.0):
            return halves
    return [score(metric, number) for number in raw]


def scores(metric: Metric, raw: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the scores in [0, 1] of raw scores; bit for bit what `score` gives for each."""
    if metric is Metric.EUCLIDEAN:
        return 1.0 / (1.0 + np.maximum(raw, 0.0))
    return np.clip((1.0 + raw) / 2.0, 0.0, 1.0)


def reciprocal_rank_fusion(
    rankings: Sequence[Sequence[str]], *, k: int = 60, weights: Sequence[float] | None = None
) -> list[tuple[str, float]]:
    """Fuse rankings of ids: each id gets ``sum of weight / (k + rank)``, ranks from 1 (S9).

    Returns ids with their fused value, highest first, equal values by id. The formula is that of
    Cormack, Clarke and Buettcher, "Reciprocal Rank Fusion outperforms Condorcet and individual
    Rank Learning Methods", SIGIR 2009, with a weight for each ranking. A weight of 0 leaves its
    ranking out.
    """
    fused: dict[str, float] = {}
    for position, ranking in enumerate(rankings):
        weight = 1.0 if weights is None else weights[position]
        if weight:
            for rank, name in enumerate(ranking, start=1):
                fused[name] = fused.get(name, 0.0) + weight / (k + rank)
    return sorted(fused.items(), key=lambda item: (-item[1], item[0]))
