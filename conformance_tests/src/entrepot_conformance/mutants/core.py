# ruff: noqa: SLF001 - mutants do what their bases do, but for one thing within
# pyright: reportPrivateUsage=false, reportUnknownArgumentType=false, reportUnknownLambdaType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
"""Rules that live in the core's own methods, broken by changing one of its functions meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any
from unittest.mock import patch
from weakref import WeakKeyDictionary

from entrepot import SimpleVectorStore, drafts, exchange, observation, searching, steps, views
from entrepot import metadata as metadata_rules
from entrepot import search as requests
from entrepot.errors import DocumentError, FilterLimitError, MetadataError
from entrepot.filters import any_of, format_filter
from entrepot.hooks import VectorStoreHooks, normal_of
from entrepot.lifecycle import Resource
from entrepot.records import Hit, StoredRecord
from entrepot.search import SearchMode, SearchRequest
from entrepot_conformance.mutants.model import breaks_core
from entrepot_conformance.tests.ticking import LONGEST_GAP

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from entrepot import Document, Metric
    from entrepot.capabilities import Limits
    from entrepot.filters import Normal
    from entrepot.metadata import Metadata


def _answers(
    change: Callable[[SearchRequest, list[Document]], list[Document]],
) -> AbstractContextManager[object]:
    """Change what searches answer, in both colours."""
    answer = searching._answer

    def changed(request: SearchRequest, *rest: Any) -> list[Document]:
        return change(request, answer(request, *rest))

    return patch.object(searching, "_answer", changed)


# --- D ----------------------------------------------------------------------------------------------------


@breaks_core("D1", SimpleVectorStore)
def any_id() -> AbstractContextManager[object]:
    """Takes ids of any length."""
    check = drafts._check_id

    def lax(name: object) -> None:
        if not isinstance(name, str) or not name or "\0" in name:
            check(name)

    return patch.object(drafts, "_check_id", lax)


@breaks_core("D2", SimpleVectorStore)
def last_of_two() -> AbstractContextManager[object]:
    """Of two documents with one id in a call, the last one wins."""
    draft_all = drafts.draft_all

    def lenient(documents: Iterable[Document], limits: Limits) -> drafts.Drafts:
        if isinstance(documents, list | tuple) and all(hasattr(document, "id") for document in documents):
            documents = list({document.id: document for document in documents}.values())
        return draft_all(documents, limits)

    return patch("entrepot.writing.draft_all", lenient)


@breaks_core("D3", SimpleVectorStore)
def dropped_metadata() -> AbstractContextManager[object]:
    """Drops metadata that it cannot store, and says nothing."""
    clean = metadata_rules.clean_metadata

    def lenient(metadata: Mapping[str, Any]) -> Metadata:
        kept: Metadata = {}
        for key, value in metadata.items():
            with contextlib.suppress(MetadataError):
                kept |= clean({key: value})
        return kept

    return patch.object(drafts, "clean_metadata", lenient)


@breaks_core("D3", SimpleVectorStore)
def kept_nones() -> AbstractContextManager[object]:
    """Keeps a value of None as the text of it."""
    clean = metadata_rules.clean_metadata

    def keeping(metadata: Mapping[str, Any]) -> Metadata:
        return clean({key: "None" if value is None else value for key, value in metadata.items()})

    return patch.object(drafts, "clean_metadata", keeping)


@breaks_core("D5", SimpleVectorStore)
def any_collection() -> AbstractContextManager[object]:
    """Opens a collection of any dimension, metric and model."""
    return patch.object(VectorStoreHooks, "_accept", return_value=None)


@breaks_core("D6", SimpleVectorStore)
def vague_batches() -> AbstractContextManager[object]:
    """Says of a batch that failed midway that nothing of it was written."""

    def whole(ids: Sequence[str], start: int, size: int, error: Exception) -> Exception:  # noqa: ARG001
        return error

    return patch("entrepot.writing._batch_error", whole)


@breaks_core("D8", SimpleVectorStore)
def counted_in_code_units() -> AbstractContextManager[object]:
    """Refuses a text of 32 KiB because it counts its bytes as UTF-16."""

    def check(name: str, text: str | None, *_: object) -> None:
        if text is not None and len(text.encode("utf-16-le")) > 32 * 1024:
            msg = f"document {name!r} is too large"
            raise DocumentError(msg)

    return _together(
        patch.object(drafts, "check_sizes", check),
        patch("entrepot.capabilities.Limits.settled_by_json", 100),
    )


def _together(*managers: AbstractContextManager[object]) -> AbstractContextManager[object]:
    """Return a context that enters all of these."""
    stack = ExitStack()

    @contextlib.contextmanager
    def together() -> Any:
        with stack:
            for manager in managers:
                stack.enter_context(manager)
            yield

    return together()


# --- F: what the core does with a filter before a store sees it ---------------------------------------------


@breaks_core("F6", SimpleVectorStore)
def narrow_limits() -> AbstractContextManager[object]:
    """Takes filters of at most 1,000 nodes."""
    normalise = normal_of.__globals__["normalise"]

    def narrow(given: Any) -> Normal:
        if getattr(given, "nodes", 0) > 1000:  # noqa: PLR2004
            msg = "the filter is too large"
            raise FilterLimitError(msg)
        normal: Normal = normalise(given)
        return normal

    return patch("entrepot.hooks.normalise", narrow)


@breaks_core("F6", SimpleVectorStore)
def no_limits() -> AbstractContextManager[object]:
    """Takes filters of any depth and size."""

    def lax(_: object) -> None:
        return

    return _together(
        patch("entrepot.filters.text.check_limits", lax),
        patch.object(importlib.import_module("entrepot.filters.normalise"), "check_limits", lax),
    )


@breaks_core("F7", SimpleVectorStore)
def or_before_and() -> AbstractContextManager[object]:
    """Reads OR before AND."""
    from entrepot.filters import text  # noqa: PLC0415 - what is changed

    and_, or_ = text._AND, text._OR
    return patch.multiple(text, _AND=or_, _OR=and_)


@breaks_core("F7", SimpleVectorStore)
def keywords_in_capitals() -> AbstractContextManager[object]:
    """Knows AND and OR in capitals alone."""
    from entrepot.filters import text  # noqa: PLC0415 - what is changed

    joins = {key: value for key, value in text._JOINS.items() if key.isupper() or not key.isalpha()}
    return patch.object(text, "_JOINS", _CaseSensitive(joins))


class _CaseSensitive(dict[str, Any]):
    """Is asked for a word as it stands first, and then in capitals: the second answer is none."""

    _last: object = None

    def get(self, key: Any, default: Any = None) -> Any:
        folded = self._last is not None and self._last != key and str(self._last).upper() == key
        self._last = key
        return default if folded else super().get(key, default)


@breaks_core("F8", SimpleVectorStore)
def printed_without_brackets() -> AbstractContextManager[object]:
    """Prints filters without the brackets that they need."""
    from entrepot import vectorstore  # noqa: PLC0415 - what is changed

    printed = format_filter

    def flat(given: Any) -> str:
        text = printed(given)
        return text if "'" in text or '"' in text else text.replace("(", "").replace(")", "")

    return patch.object(vectorstore, "format_filter", flat)


@breaks_core("F8", SimpleVectorStore)
def columns_from_nothing() -> AbstractContextManager[object]:
    """Counts the columns of a text from 0 where it tells of an error."""
    from entrepot.errors import FilterSyntaxError  # noqa: PLC0415 - what is changed

    begin = FilterSyntaxError.__init__

    def shifted(self: Any, *arguments: Any, **options: Any) -> None:
        begin(self, *arguments, **options)
        self.column -= 1

    return patch.object(FilterSyntaxError, "__init__", shifted)


def forget_forms() -> None:
    """Empty the caches of trees and normal forms by their texts: other code has filled them."""
    from entrepot import hooks  # noqa: PLC0415 - what is changed
    from entrepot.filters import text  # noqa: PLC0415

    text._cached_parse.cache_clear()
    hooks._normal_of_text.cache_clear()


# --- S ----------------------------------------------------------------------------------------------------


@breaks_core("S1", SimpleVectorStore)
def ties_backwards() -> AbstractContextManager[object]:
    """Gives documents of equal scores from the last id to the first."""

    def turned(_: SearchRequest, hits: list[Document]) -> list[Document]:
        hits = sorted(hits, key=lambda hit: hit.id, reverse=True)
        return sorted(hits, key=lambda hit: -(hit.score or 0))

    return _answers(turned)


@breaks_core("S1", SimpleVectorStore)
def worst_first() -> AbstractContextManager[object]:
    """Gives the hits worst first, as distances would order them."""
    return _answers(lambda request, hits: hits[::-1] if request.mode is SearchMode.SEMANTIC else hits)


@breaks_core("S2", SimpleVectorStore)
def cosines_as_scores() -> AbstractContextManager[object]:
    """Gives the cosine for the score."""
    score_all = requests.score_all

    def cosine(metric: Metric, raw: Sequence[float]) -> list[float]:
        return score_all(metric, raw) if metric == "euclidean" else [max(0.0, number) for number in raw]

    return patch.object(searching, "score_all", cosine)


@breaks_core("S2", SimpleVectorStore)
def distances_not_squared() -> AbstractContextManager[object]:
    """Takes the distance where the score wants its square."""
    score_all = requests.score_all

    def plain(metric: Metric, raw: Sequence[float]) -> list[float]:
        return score_all(metric, [number**0.5 for number in raw] if metric == "euclidean" else raw)

    return patch.object(searching, "score_all", plain)


@breaks_core("S3", SimpleVectorStore)
def exclusive_threshold() -> AbstractContextManager[object]:
    """Leaves out hits that have exactly the least score."""
    return _answers(
        lambda request, hits: [
            hit for hit in hits if request.threshold is None or (hit.score or 0) > request.threshold
        ]
    )


@breaks_core("S3", SimpleVectorStore)
def no_threshold() -> AbstractContextManager[object]:
    """Takes a threshold and does nothing with it."""
    return patch.object(searching, "THRESHOLD_TOLERANCE", 2.0)


@breaks_core("S4", SimpleVectorStore)
def threshold_of_its_own() -> AbstractContextManager[object]:
    """Leaves out hits that are hardly like the query, although nobody asked for that."""
    return _answers(
        lambda request, hits: [
            hit
            for hit in hits
            if request.mode is not SearchMode.SEMANTIC or (hit.score or 0) > 0.001  # noqa: PLR2004
        ]
    )


@breaks_core("S5", SimpleVectorStore)
def any_threshold() -> AbstractContextManager[object]:
    """Takes thresholds outside of [0, 1]."""
    return patch.object(SearchRequest, "_check_threshold", lambda _: None)


@breaks_core("S5", SimpleVectorStore)
def bounded_top_k() -> AbstractContextManager[object]:
    """Takes at most a thousand for top_k."""
    return patch.object(requests, "MAX_TOP_K", 1000)


@breaks_core("S8", SimpleVectorStore)
def near_itself() -> AbstractContextManager[object]:
    """Finds a document near itself."""
    begin = searching._answer

    def including(request: SearchRequest, *rest: Any) -> list[Document]:
        return begin(request.replace(near_id=None, query="x") if request.near_id else request, *rest)

    return patch.object(searching, "_answer", including)


@breaks_core("S9", SimpleVectorStore)
def fused_by_scores() -> AbstractContextManager[object]:
    """Fuses by the mean of the ranks."""
    fuse = requests.reciprocal_rank_fusion

    def means(rankings: Sequence[Sequence[str]], **options: Any) -> list[tuple[str, float]]:
        return [(name, value / len(rankings)) for name, value in fuse(rankings, **options)]

    return patch.object(searching, "reciprocal_rank_fusion", means)


@breaks_core("S9", SimpleVectorStore)
def shallow_fusion() -> AbstractContextManager[object]:
    """Gives a hit of the words alone no score of its own."""
    fused = searching._fused

    def zero(
        request: SearchRequest, semantic: Sequence[Hit], words: Sequence[Hit], *rest: Any
    ) -> list[Document]:
        known = {hit.record.id for hit in semantic}
        return [
            hit
            if hit.id in known
            else searching.document_of(StoredRecord(hit.id, hit.text), 0.0, hit.rank_score)
            for hit in fused(request, semantic, words, *rest)
        ]

    return patch.object(searching, "_fused", zero)


# --- T ----------------------------------------------------------------------------------------------------


@breaks_core("T1", SimpleVectorStore)
def widened_views() -> AbstractContextManager[object]:
    """Joins a view's filter and the request's own with OR."""

    def within(self: views.View, scope: Normal, given: Any) -> Normal:  # noqa: ARG001
        return scope if given is None else any_of(scope, normal_of(given))

    return patch.object(views.View, "_within", within)


@breaks_core("T1", SimpleVectorStore)
def unscoped_gets() -> AbstractContextManager[object]:
    """Gets documents by id wherever they lie."""

    def everything(stored: Iterable[StoredRecord], inside: Normal) -> list[StoredRecord]:  # noqa: ARG001
        return list(stored)

    return patch.object(searching, "records_inside", everything)


@breaks_core("T1", SimpleVectorStore)
def remembered_scopes() -> AbstractContextManager[object]:
    """Asks the callable of a view once, and never again."""
    scope = views.View._scope

    known: WeakKeyDictionary[views.View, Normal] = WeakKeyDictionary()

    def remembered(self: views.View) -> Normal:
        if self not in known:
            known[self] = scope(self)
        return known[self]

    return patch.object(views.View, "_scope", remembered)


@breaks_core("T1", SimpleVectorStore)
def leaking_views() -> AbstractContextManager[object]:
    """Tells of the whole collection through a view."""

    def details(self: views.View) -> dict[str, Any]:
        return self._root._details()

    return patch.object(views.View, "_details", details)


@breaks_core("T2", SimpleVectorStore)
def unstamped_documents() -> AbstractContextManager[object]:
    """Does not stamp documents, and takes those that lack the key."""

    def admitted(name: str, given: Metadata, scope: Normal, stamps: Sequence[Any]) -> Metadata:  # noqa: ARG001
        return given

    return patch.object(views, "_admitted", admitted)


@breaks_core("T2", SimpleVectorStore)
def lists_in_views() -> AbstractContextManager[object]:
    """Lets a document belong to two tenants by a list."""
    from entrepot.filters import evaluate  # noqa: PLC0415 - what it does instead

    def admitted(name: str, given: Metadata, scope: Normal, stamps: Sequence[Any]) -> Metadata:
        metadata = {
            **{leaf.key: leaf.value for leaf in stamps},
            **{k: v for k, v in given.items() if v != []},
        }
        if not evaluate(scope, metadata):
            from entrepot.errors import OutsideViewError  # noqa: PLC0415

            msg = f"document {name!r} lies outside"
            raise OutsideViewError(msg)
        return metadata

    return patch.object(views, "_admitted", admitted)


# --- O, E -------------------------------------------------------------------------------------------------


@breaks_core("O1", SimpleVectorStore)
def no_spans() -> AbstractContextManager[object]:
    """Leaves no spans."""
    return patch("entrepot.lifecycle.observed", lambda *_: contextlib.nullcontext())


@breaks_core("O1", SimpleVectorStore)
def telling_spans() -> AbstractContextManager[object]:
    """Records what was asked, although nobody wanted that."""
    return patch.object(observation, "_capture", new=True)


@breaks_core("O1", SimpleVectorStore)
def spans_that_tell_errors() -> AbstractContextManager[object]:
    """Records the messages of errors, which hold values."""
    attributes = observation._attributes

    def telling(facts: Mapping[str, Any]) -> dict[str, Any]:
        return {**attributes(facts), "entrepot.asked": str(facts.get("query"))}

    return patch.object(observation, "_attributes", telling)


@breaks_core("O1", SimpleVectorStore)
def spans_without_figures() -> AbstractContextManager[object]:
    """Leaves the figures of a search out of its span."""
    return patch.object(observation, "_NAMES", {})


@breaks_core("O2", SimpleVectorStore)
def lost_context() -> AbstractContextManager[object]:
    """Works on other threads without the caller's context."""

    async def elsewhere(function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(None, lambda: function(*arguments, **options))

    return patch.object(asyncio, "to_thread", elsewhere)


@breaks_core("E1", SimpleVectorStore)
def causes_lost() -> AbstractContextManager[object]:
    """Forgets the driver's exception that was the cause."""
    run = Resource._run

    def forgetting(self: Resource, *arguments: Any) -> Any:
        try:
            return run(self, *arguments)
        except Exception as error:
            error.__cause__ = None
            raise

    return patch.object(Resource, "_run", forgetting)


@breaks_core("E3", SimpleVectorStore)
def work_in_the_loop() -> AbstractContextManager[object]:
    """Checks and codes large batches in the event loop, and takes its time, however fast the machine is."""
    answer = steps._aanswer

    async def inline(wanted: steps.Call, timeout: float) -> object:  # noqa: ASYNC109 - as the original
        if wanted.exchange is None and getattr(wanted.coroutine, "__name__", "") == "in_thread":
            time.sleep(2 * LONGEST_GAP)  # noqa: ASYNC251 - that is what is wrong
            return wanted.sync(*wanted.args, **wanted.kwargs)
        return await answer(wanted, timeout)

    return patch.object(steps, "_aanswer", inline)


@breaks_core("E4", SimpleVectorStore)
def no_retries() -> AbstractContextManager[object]:
    """Gives up at the first failure."""
    return patch.object(exchange, "MAX_ATTEMPTS", 1)


@breaks_core("E4", SimpleVectorStore)
def endless_retries() -> AbstractContextManager[object]:
    """Tries again what cannot succeed."""

    def always(self: exchange.Tries, _: object) -> float | None:
        return 0.001 if self._failed < exchange.MAX_ATTEMPTS else None

    return patch.object(exchange.Tries, "_pause", always)


@breaks_core("E4", SimpleVectorStore)
def last_try_alone() -> AbstractContextManager[object]:
    """Says "not done" because the last try was not, whatever an earlier one may have done."""
    return patch.object(exchange.Tries, "pause_after", counted_pause)


def counted_pause(self: exchange.Tries, error: Any) -> float | None:
    """Count the try and return its pause, and forget the rest."""
    self._failed += 1
    return self._pause(error)


@breaks_core("E4", SimpleVectorStore)
def unbounded_exchanges() -> AbstractContextManager[object]:
    """Forgets how long an exchange may take."""

    def forever(default: float) -> float:
        return max(default, 3600.0)

    return patch.object(exchange, "remaining", forever)
