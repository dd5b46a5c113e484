"""Spans, durations and logs: O1, O2."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

import pytest
from opentelemetry.trace import SpanKind, StatusCode

from entrepot import Document, FunctionEmbeddingModel, SearchRequest
from entrepot.errors import EntrepotError
from entrepot_conformance.tests.spans import SECRET, Recorder, attributes_of, everything_told

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from opentelemetry.sdk.trace import ReadableSpan

    from entrepot import VectorStore
    from entrepot_conformance.endpoints import Stores


def lengths(texts: Any) -> Any:
    return [[1.0, float(len(text))] for text in texts]


def opened(stores: Stores, embed: Any = lengths) -> VectorStore:
    return stores(embedding=FunctionEmbeddingModel(embed, "lengths", 2))


REQUEST = SearchRequest("abcd", top_k=5, threshold=0.1, filter="n == 1")

SYNC: dict[str, Callable[[VectorStore], object]] = {
    "create_collection": lambda store: store.create_collection(),
    "add": lambda store: store.add([Document("abc", id="1", metadata={"n": 1}), Document("d", id="2")]),
    "similarity_search": lambda store: store.similarity_search(REQUEST),
    "similarity_search_batch": lambda store: store.similarity_search_batch(["a", "bc"]),
    "count": lambda store: store.count("n == 1"),
    "get": lambda store: store.get(["1", "unknown"]),
    "update": lambda store: store.update(["1"], set={"m": 1}),
    "scan": lambda store: list(store.scan()),
    "stats": lambda store: store.stats(),
    "delete": lambda store: store.delete(["1"]),
    "delete_all": lambda store: store.delete_all(),
    "collection_exists": lambda store: store.collection_exists(),
    "list_collections": lambda store: store.list_collections(),
    "drop_collection": lambda store: store.drop_collection(),
}


async def _scanned(store: VectorStore) -> list[Document]:
    return [document async for document in store.ascan()]


ASYNC: dict[str, Callable[[VectorStore], Awaitable[object]]] = {
    "create_collection": lambda store: store.acreate_collection(),
    "add": lambda store: store.aadd([Document("abc", id="1", metadata={"n": 1}), Document("d", id="2")]),
    "similarity_search": lambda store: store.asimilarity_search(REQUEST),
    "similarity_search_batch": lambda store: store.asimilarity_search_batch(["a", "bc"]),
    "count": lambda store: store.acount("n == 1"),
    "get": lambda store: store.aget(["1", "unknown"]),
    "update": lambda store: store.aupdate(["1"], set={"m": 1}),
    "scan": _scanned,
    "stats": lambda store: store.astats(),
    "delete": lambda store: store.adelete(["1"]),
    "delete_all": lambda store: store.adelete_all(),
    "collection_exists": lambda store: store.acollection_exists(),
    "list_collections": lambda store: store.alist_collections(),
    "drop_collection": lambda store: store.adrop_collection(),
}


def check_spans(store: VectorStore, spans: list[ReadableSpan]) -> None:
    """Check that each operation left one client span with the database conventions."""
    ours = [span for span in spans if "db.system.name" in attributes_of(span)]
    assert [attributes_of(span)["db.operation.name"] for span in ours] == list(SYNC)
    for span in ours:
        attributes = attributes_of(span)
        assert span.kind is SpanKind.CLIENT
        assert span.name == f"{attributes['db.operation.name']} {store.collection}"
        assert attributes["db.system.name"] == store.backend
        assert attributes["db.collection.name"] == store.collection
        assert attributes.get("db.namespace") == store.namespace
        assert span.status.status_code is StatusCode.UNSET
    search = attributes_of(ours[list(SYNC).index("similarity_search")])
    assert search["db.vector.query.top_k"] == 5
    assert search["db.vector.query.similarity_threshold"] == 0.1
    assert search["db.search.similarity_metric"] == "cosine"
    assert search["db.vector.dimension_count"] == 2
    assert search["db.response.returned_rows"] == 1


def test_each_operation_is_one_client_span_and_one_duration(
    stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    # O1
    store = opened(stores)
    recorder = Recorder(monkeypatch)
    for operation in SYNC.values():
        operation(store)
    check_spans(store, recorder.spans())
    assert recorder.measured() == dict.fromkeys(SYNC, 1)


def test_each_async_operation_is_one_client_span_and_one_duration(
    stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    # O1, E3
    store = opened(stores)
    recorder = Recorder(monkeypatch)

    async def all_of_them() -> None:
        for operation in ASYNC.values():
            await operation(store)

    asyncio.run(all_of_them())
    check_spans(store, recorder.spans())
    assert recorder.measured() == dict.fromkeys(ASYNC, 1)


def test_neither_spans_nor_logs_tell_texts_and_values(
    stores: Stores, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    # O1: of failures neither
    caplog.set_level(logging.DEBUG)
    store = opened(stores)
    recorder = Recorder(monkeypatch)
    condition = f"tenant == '{SECRET}'"
    store.add([Document(SECRET, id="1", metadata={"tenant": SECRET, SECRET: 1})])
    assert len(store.similarity_search(SECRET, filter=condition)) == 1
    assert store.count(condition) == 1
    assert len(store.where(condition).get(["1"])) == 1
    store.update(["1"], set={"more": SECRET})
    failures: list[Callable[[], object]] = [
        lambda: store.add([Document(SECRET, id=SECRET, vector=[0.0, 0.0])]),
        lambda: store.similarity_search(SECRET, filter=f"{condition} and"),
        lambda: store.similarity_search(SearchRequest(near_id=SECRET)),
        lambda: store.update(["1"], set={"bad": {SECRET: SECRET}}),
        lambda: store.where(condition).add([Document("a", id="2", metadata={"tenant": "other"})]),
    ]
    for failure in failures:
        with pytest.raises(EntrepotError):
            failure()
    spans = recorder.spans()
    assert len(spans) >= 10
    assert SECRET not in everything_told(spans)
    assert SECRET not in caplog.text


def test_a_failure_is_told_by_its_class(stores: Stores, monkeypatch: pytest.MonkeyPatch) -> None:
    # O1
    store = opened(stores)
    recorder = Recorder(monkeypatch)
    with pytest.raises(EntrepotError):
        store.count()
    (span,) = recorder.spans()
    assert span.status.status_code is StatusCode.ERROR
    assert attributes_of(span)["error.type"] == "CollectionNotFoundError"


def test_work_on_other_threads_keeps_the_context(stores: Stores, monkeypatch: pytest.MonkeyPatch) -> None:
    # O2: the model leaves spans wherever it runs; they hang below the operation, and that below the caller
    recorder = Recorder(monkeypatch)

    def embed(texts: Any) -> Any:
        with recorder.tracer.start_as_current_span("embed"):
            return lengths(texts)

    store = opened(stores, embed)

    async def work() -> None:
        with recorder.tracer.start_as_current_span("caller"):
            await store.aadd([Document("a", id="1")])
            await store.asimilarity_search("b")
            await store.asimilarity_search_batch(["c", "d"])

    asyncio.run(work())
    spans = recorder.spans()
    by_id = {span.context.span_id: span for span in spans if span.context is not None}
    inner = [span for span in spans if span.name == "embed"]
    assert len(inner) == 3
    for span, name in zip(inner, ("add", "similarity_search", "similarity_search_batch"), strict=True):
        assert span.parent is not None
        operation = by_id[span.parent.span_id]
        assert attributes_of(operation)["db.operation.name"] == name
        assert operation.parent is not None
        assert by_id[operation.parent.span_id].name == "caller"


def test_hooks_run_in_the_callers_context(stores: Stores) -> None:
    # O2, T1: the tenant of a request is known where its filter is asked, in both colours
    from contextvars import ContextVar

    tenant = ContextVar("tenant", default="nobody")
    store = opened(stores)
    store.add([Document("a", id=name, metadata={"tenant": name}) for name in "abc"])
    view = store.where(lambda: f"tenant == '{tenant.get()}'")

    async def asked(name: str) -> list[str]:
        tenant.set(name)
        await asyncio.sleep(0)
        return [document.id async for document in view.ascan()]

    async def all_at_once() -> list[list[str]]:
        return await asyncio.gather(*(asyncio.create_task(asked(name)) for name in "abc"))

    assert asyncio.run(all_at_once()) == [["a"], ["b"], ["c"]]
    assert view.count() == 0
