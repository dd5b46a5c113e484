"""How documents are found: the bodies of the reading operations, shared by sync and async (S1 to S9)."""

from __future__ import annotations

import logging
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, cast

import numpy as np
from msgspec.structs import replace

from entrepot.completion import complete, holds, is_partial, matching
from entrepot.documents import Document
from entrepot.embedding import aembed_texts, embed_texts
from entrepot.errors import (
    ArgumentTypeError,
    ConfigurationError,
    RequestError,
    UnsupportedError,
    UnsupportedSearchModeError,
)
from entrepot.filters import FALSE, TRUE
from entrepot.guards import records_inside
from entrepot.hooks import VectorStoreHooks
from entrepot.observation import note
from entrepot.records import Hit, Page, Query, StoredRecord
from entrepot.search import (
    DEFAULT_INCLUDE,
    MAX_TOP_K,
    THRESHOLD_TOLERANCE,
    SearchMode,
    SearchRequest,
    check_ids,
    check_include,
    raw_scores,
    reciprocal_rank_fusion,
    score,
    score_all,
)
from entrepot.steps import ask, call, work_on
from entrepot.vectors import as_query, normalised

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from numpy.typing import ArrayLike, NDArray

    from entrepot.capabilities import Metric
    from entrepot.filters import Normal
    from entrepot.records import CollectionInfo
    from entrepot.search import FilterLike, Part
    from entrepot.steps import Steps

Vector: TypeAlias = "NDArray[np.float32]"

_log = logging.getLogger(__name__)
_FUSION_DEPTH: Final = 100
_FUSION_FACTOR: Final = 4


class _Asked(NamedTuple):
    row: int
    request: SearchRequest
    normal: Normal


class Searching(VectorStoreHooks):
    """The reading half of `VectorStore`."""

    def _find_steps(self, requests: Sequence[SearchRequest]) -> Steps[list[list[Document]]]:
        """Answer search requests; everything that goes to a model or the engine goes in one call."""
        answers: list[list[Document]] = [[] for _ in requests]
        scope = self._scope() if requests else TRUE
        asked: list[_Asked] = []
        # All that can be refused is, before a model or the engine is asked.
        for row, request in enumerate(requests):
            if request.top_k:
                able = self._able(request)
                asked.append(_Asked(row, able, self._within(scope, able.filter)))
        if not asked:
            return answers
        info = yield from self._known_steps()
        note(metric=info.metric, dimension=info.dimension)
        asked = [each for each in asked if each.normal is not FALSE and each.request.ids != ()]
        vectors = yield from self._query_vector_steps([each.request for each in asked], info, scope)
        queries: list[Query] = []
        spans: list[slice] = []
        for (_, request, normal), vector in zip(asked, vectors, strict=True):
            new = self._queries(request, normal, vector)
            spans.append(slice(len(queries), len(queries) + len(new)))
            queries += new
        if not queries:
            return answers
        found = yield from self._hit_steps(queries, info)
        for (row, request, _), vector, span in zip(asked, vectors, spans, strict=True):
            hits = found[span]
            answers[row] = yield from work_on(sum(map(len, hits)), _answer, request, hits, info, vector)
        return answers

    def _hit_steps(self, queries: Sequence[Query], info: CollectionInfo) -> Steps[list[list[Hit]]]:
        """Ask the engine; complete filters that it takes in part (F9), and more hits than it takes (S5)."""
        if len(queries) == 1 and not self._needs_help(queries[0]):
            return [(yield from self._search_steps(queries[0]))]
        whole = [query for query in queries if not self._needs_help(query)]
        answers = (yield from ask(self._search_batch, self._asearch_batch, whole)) if whole else []
        plain = iter(answers)
        found: list[list[Hit]] = []
        for query in queries:
            if self._needs_help(query):
                completed = yield from complete(
                    query,
                    info.metric,
                    self.max_completion_rows,
                    self._search_steps,
                    self._scan_steps,
                    self._most_hits(query),
                )
                note(rows_read=completed.rows)
                found.append(completed.hits)
            else:
                found.append((yield from self._lengthen_steps(query, next(plain))))
        return found

    def _needs_help(self, query: Query) -> bool:
        return is_partial(query) or query.k > self._most_hits(query)

    def _most_hits(self, query: Query) -> int:
        """Return how many hits the plugin's `_search` takes."""
        limit = self.capabilities.limits.top_k
        # One more than callers may ask for: a search near a document leaves that document out.
        return MAX_TOP_K + 1 if limit is None or query.mode is not SearchMode.SEMANTIC else limit

    def _search_steps(self, query: Query) -> Steps[list[Hit]]:
        hits = yield from ask(self._search, self._asearch, query)
        return (yield from self._lengthen_steps(query, hits))

    def _lengthen_steps(self, query: Query, hits: list[Hit]) -> Steps[list[Hit]]:
        """Ask again, exactly, where an approximate index may have stopped short (S4)."""
        if (
            self.capabilities.ann
            and len(hits) < query.k
            and query.mode is SearchMode.SEMANTIC
            and not query.exact
        ):
            return (yield from ask(self._search, self._asearch, replace(query, exact=True)))
        return hits

    def _able(self, request: SearchRequest) -> SearchRequest:
        """Return the request in a mode that the store offers, or refuse it (S6, S9)."""
        if request.exact and not self.capabilities.exact:
            msg = f"the store of collection {self.collection!r} has no exact search"
            raise UnsupportedError(msg, capability="exact")
        if self._offers(request.mode):
            return request
        if request.fallback is not None and self._offers(request.fallback):
            _log.warning(
                "collection %s lacks %s search, using %s as the request allows",
                self.collection,
                request.mode,
                request.fallback,
            )
            given: dict[str, object] = {"mode": request.fallback, "fallback": None}
            if request.query is not None and request.vector is not None:  # a HYBRID search's two sides
                given |= {"vector" if request.fallback is SearchMode.FULLTEXT else "query": None}
            return request.replace(**given)
        msg = f"the store of collection {self.collection!r} has no {request.mode.name} search"
        raise UnsupportedSearchModeError(msg, capability=str(request.mode))

    def _offers(self, mode: SearchMode) -> bool:
        if mode is SearchMode.FULLTEXT:
            return self.capabilities.fulltext
        return mode is SearchMode.SEMANTIC or self.capabilities.hybrid

    def _query_vector_steps(
        self, requests: Sequence[SearchRequest], info: CollectionInfo, scope: Normal
    ) -> Steps[list[Vector | None]]:
        """Return the vector of each request, None for FULLTEXT: given, embedded once, or of a stored document (S8)."""
        texts: dict[str, Vector | None] = {}
        near: dict[str, Vector | None] = {}
        for request in requests:
            if request.mode is not SearchMode.FULLTEXT and request.vector is None:
                if request.near_id is not None:
                    near[request.near_id] = None
                else:
                    texts[cast("str", request.query)] = None
        if texts:
            if self.embedding is None:
                msg = "the store has no embedding model that could embed the query"
                raise ConfigurationError(
                    msg, hint="open it with embedding=..., or search with SearchRequest(vector=...)"
                )
            matrix = yield from call(
                embed_texts,
                aembed_texts,
                self.embedding,
                list(texts),
                labels=["the query"] * len(texts),
                batching=self.batching,
                dimensions=info.dimension,
            )
            texts.update(
                zip(
                    texts,
                    normalised(info.metric, matrix, info.dimension, lambda _: "the query's embedding"),
                    strict=True,
                )
            )
        if near:
            for record in (yield from self._fetch_steps(tuple(near), ("vector",), scope)):
                near[record.id] = record.vector
        return [_vector_of(request, info, texts, near) for request in requests]

    def _queries(self, request: SearchRequest, normal: Normal, vector: Vector | None) -> list[Query]:
        """Return the engine's queries of a request: two, to be fused, for HYBRID."""
        k = request.top_k + (request.near_id is not None)
        if request.mode is SearchMode.HYBRID:
            k = min(max(_FUSION_DEPTH, _FUSION_FACTOR * request.top_k), MAX_TOP_K)
        modes = [request.mode]
        include = request.include
        if request.mode is SearchMode.HYBRID:
            modes = [SearchMode.SEMANTIC, SearchMode.FULLTEXT]
        return [
            self._query(
                normal,
                ids=request.ids,
                mode=mode,
                vector=vector if mode is SearchMode.SEMANTIC else None,
                words=request.query if mode is SearchMode.FULLTEXT else None,
                k=k,
                exact=request.exact,
                # A hit of the words alone needs its vector for its score (S9).
                include=(*include, "vector") if len(modes) > 1 and mode is SearchMode.FULLTEXT else include,
            )
            for mode in modes
        ]

    def _get_steps(self, ids: Iterable[str], include: Collection[Part]) -> Steps[list[Document]]:
        names = check_ids(ids)
        parts = check_include(include)
        scope = self._scope()
        yield from self._known_steps()
        if not names:
            return []
        records = yield from self._fetch_steps(tuple(dict.fromkeys(names)), parts, scope)
        note(returned=len(records))
        found = {record.id: record for record in records}
        return [document_of(found[name]) for name in names if name in found]

    def _fetch_steps(
        self, ids: Sequence[str], include: Sequence[Part], scope: Normal
    ) -> Steps[list[StoredRecord]]:
        """Return the stored records of the ids that lie within the scope."""
        if scope is TRUE:
            return (yield from ask(self._fetch, self._afetch, ids, include))
        wanted = include if "metadata" in include else (*include, "metadata")
        records = yield from ask(self._fetch, self._afetch, ids, wanted)
        inside = yield from work_on(len(records), records_inside, records, scope)
        return inside if wanted is include else [record._replace(metadata=None) for record in inside]

    def _count_steps(self, given: FilterLike | None) -> Steps[int]:
        normal = self._within(self._scope(), given)
        yield from self._known_steps()
        if normal is FALSE:
            return 0
        query = self._query(normal)
        if is_partial(query):
            return len((yield from matching(query, self.max_completion_rows, self._scan_steps)))
        return (yield from ask(self._count, self._acount, query))

    def _page_steps(
        self, wanted: tuple[Normal, tuple[Part, ...]], token: str | None, size: int
    ) -> Steps[Page[Document]]:
        normal, include = wanted
        yield from self._known_steps()
        if normal is FALSE:
            return Page([], None)
        # Converted now: what the engine takes may depend on the collection.
        query = self._query(normal, include=include)
        return (yield from self._page_of_steps(query, token, size))

    def _page_of_steps(self, query: Query, token: str | None, size: int) -> Steps[Page[Document]]:
        wanted = query
        if is_partial(query) and "metadata" not in query.include:
            wanted = replace(query, include=(*query.include, "metadata"))
        page = yield from self._scan_steps(wanted, token, size)
        records = page.items
        if is_partial(query):
            records = [record for record in records if holds(query, record)]
            if wanted is not query:
                records = [record._replace(metadata=None) for record in records]
        return Page([document_of(record) for record in records], page.token)

    def _scanned(
        self, given: FilterLike | None, include: Collection[Part], size: int
    ) -> tuple[Normal, tuple[Part, ...]]:
        """Check what a scan is asked for, and return its filter and the parts that it returns."""
        if type(size) is not int or size < 1:
            msg = f"batch_size must be an int of at least 1, not {size!r}"
            raise RequestError(msg)
        return self._within(self._scope(), given), check_include(include)


def as_request(query: str | SearchRequest, options: Mapping[str, object]) -> SearchRequest:
    """Return a request made of a text and options; a ready request takes no options beside it."""
    if isinstance(query, SearchRequest):
        changed = [name for name, value in options.items() if value is not _DEFAULTS[name]]
        if changed:
            msg = f"{changed[0]} was given beside a SearchRequest, which has its own"
            raise RequestError(msg, hint="put it into the request, or use request.replace(...)")
        return query
    if type(query) is not str:
        msg = f"a search takes a str or a SearchRequest, not {type(query).__name__}"
        raise ArgumentTypeError(msg, hint="a vector goes into SearchRequest(vector=...)")
    return SearchRequest(query, **cast("dict[str, Any]", options))


def as_requests(requests: Sequence[str | SearchRequest]) -> list[SearchRequest]:
    """Return a batch of requests.

    Raises:
        ArgumentTypeError: No list of texts and requests.
    """
    given: object = requests
    if isinstance(given, str | SearchRequest) or not hasattr(given, "__iter__"):
        msg = f"a batch is a list of texts or requests, not {type(given).__name__}"
        raise ArgumentTypeError(msg, hint="put a single request into a list")
    return [as_request(request, {}) for request in requests]


_DEFAULTS: Final[dict[str, object]] = {
    "top_k": 4,
    "threshold": None,
    "filter": None,
    "mode": SearchMode.SEMANTIC,
    "exact": False,
    "include": DEFAULT_INCLUDE,
    "timeout": None,
}


def _vector_of(
    request: SearchRequest,
    info: CollectionInfo,
    texts: dict[str, Vector | None],
    near: dict[str, Vector | None],
) -> Vector | None:
    if request.mode is SearchMode.FULLTEXT:
        return None
    if request.vector is not None:
        return as_query(info.metric, cast("ArrayLike", request.vector), info.dimension)
    if request.near_id is None:
        return texts[cast("str", request.query)]
    vector = near[request.near_id]
    if vector is None:
        msg = f"there is no document {request.near_id!r} to search near"
        raise RequestError(msg, hint="get() tells which ids are there")
    return vector


def document_of(record: StoredRecord, value: float | None = None, rank: float | None = None) -> Document:
    """Return a stored record as the document that callers see."""
    return Document(
        record.text,
        id=record.id,
        metadata=record.metadata,
        vector=record.vector,
        score=value,
        rank_score=rank,
    )


def _answer(
    request: SearchRequest, found: Sequence[Sequence[Hit]], info: CollectionInfo, vector: Vector | None
) -> list[Document]:
    """Turn raw hits into documents: scores, order, threshold and cut (S1 to S3, S9)."""
    if request.mode is SearchMode.HYBRID:
        return _fused(request, found[0], found[1], info.metric, cast("Vector", vector))
    hits = found[0]
    if request.mode is SearchMode.FULLTEXT:
        ranked = sorted(hits, key=lambda hit: (-hit.raw, hit.record.id))
        return [document_of(hit.record, rank=hit.raw) for hit in ranked[: request.top_k]]
    metric = info.metric
    values = score_all(metric, [hit.raw for hit in hits])
    scored = [(-value, hit.record.id, hit.record) for value, hit in zip(values, hits, strict=True)]
    scored.sort(key=_by_score)
    if request.near_id is not None:
        scored = [entry for entry in scored if entry[1] != request.near_id]
    least = -1.0 if request.threshold is None else request.threshold - THRESHOLD_TOLERANCE
    return [
        document_of(record, -negative)
        for negative, _, record in scored[: request.top_k]
        if -negative >= least
    ]


_by_score: Final = itemgetter(0, 1)
"""Best first, as scores stand negated, and equal ones by id (S1)."""


def _fused(
    request: SearchRequest, semantic: Sequence[Hit], words: Sequence[Hit], metric: Metric, vector: Vector
) -> list[Document]:
    """Fuse two rankings by reciprocal rank; every hit gets its S2 score, the cut is on that (S9)."""
    scores = {hit.record.id: score(metric, hit.raw) for hit in semantic}
    records = {hit.record.id: hit.record for hit in semantic}
    first = sorted(scores, key=lambda name: (-scores[name], name))
    second = [hit.record.id for hit in sorted(words, key=lambda hit: (-hit.raw, hit.record.id))]
    missing = [hit.record for hit in words if hit.record.id not in scores]
    if missing:
        matrix = np.stack([cast("Vector", record.vector) for record in missing])
        for record, raw in zip(missing, raw_scores(metric, matrix, vector).tolist(), strict=True):
            scores[record.id] = score(metric, raw)
            kept = record if "vector" in request.include else record._replace(vector=None)
            records[record.id] = kept
    least = -1.0 if request.threshold is None else request.threshold - THRESHOLD_TOLERANCE
    fused = reciprocal_rank_fusion([first, second], k=request.rrf_k, weights=request.weights)
    passed = [(name, value) for name, value in fused if scores[name] >= least]
    return [document_of(records[name], scores[name], value) for name, value in passed[: request.top_k]]
