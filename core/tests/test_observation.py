"""Spans and metrics: O1, O2."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from typing import TYPE_CHECKING, Any

import pytest
from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from entrepot import (
    Document,
    FunctionEmbeddingModel,
    InMemoryChatMemoryRepository,
    SimpleVectorStore,
    UserMessage,
)
from entrepot.errors import RequestError, VectorError
from entrepot.observation import capture_content

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opentelemetry.sdk.trace import ReadableSpan

SECRET = "a-secret-nobody-may-see"

_exporter = InMemorySpanExporter()
_reader = InMemoryMetricReader()


@pytest.fixture(scope="module", autouse=True)
def _providers() -> None:
    provider = trace.get_tracer_provider()
    if not isinstance(provider, TracerProvider):  # a process has one, and other tests may have set it
        provider = TracerProvider()
        trace.set_tracer_provider(provider)
    provider.add_span_processor(SimpleSpanProcessor(_exporter))
    metrics.set_meter_provider(MeterProvider([_reader]))


@pytest.fixture
def spans() -> Iterator[InMemorySpanExporter]:
    _exporter.clear()
    yield _exporter
    capture_content(on=False)


def embed(texts: Any) -> Any:
    """Embed on whatever thread this runs, and leave a span there."""
    with trace.get_tracer("test").start_as_current_span("embed"):
        return [[1.0, float(len(text))] for text in texts]


def store() -> SimpleVectorStore:
    return SimpleVectorStore(embedding=FunctionEmbeddingModel(embed, "lengths", 2), collection="articles")


def ours(exporter: InMemorySpanExporter) -> list[ReadableSpan]:
    return [span for span in exporter.get_finished_spans() if span.name != "embed"]


def test_each_operation_is_one_client_span(spans: InMemorySpanExporter) -> None:
    # O1
    with store() as it:
        it.add([Document("abc", id="1", metadata={"n": 1}), Document("d", id="2")])
        it.similarity_search("abcd", top_k=5, threshold=0.1, filter="n == 1")
        it.count()
        it.get(["1"])
        it.update(["1"], set={"m": 1})
        list(it.scan())
        it.delete(["1"])
        it.stats()
    found = ours(spans)
    names = ["add", "similarity_search", "count", "get", "update", "scan", "delete", "stats"]
    assert [span.name for span in found] == [f"{name} articles" for name in names]
    for span, name in zip(found, names, strict=True):
        attributes = dict(span.attributes or {})
        assert span.kind is SpanKind.CLIENT
        assert attributes["db.system.name"] == "simple"
        assert attributes["db.operation.name"] == name
        assert attributes["db.collection.name"] == "articles"
        assert span.status.status_code is StatusCode.UNSET
    search = dict(found[1].attributes or {})
    assert search["db.vector.query.top_k"] == 5
    assert search["db.vector.query.similarity_threshold"] == 0.1
    assert search["db.search.similarity_metric"] == "cosine"
    assert search["db.vector.dimension_count"] == 2
    assert search["db.response.returned_rows"] == 1


def test_texts_and_values_are_recorded_only_when_asked_for(spans: InMemorySpanExporter) -> None:
    # O1
    def work() -> str:
        with store() as it:
            it.add([Document(SECRET, id="1", metadata={"tenant": SECRET})])
            it.similarity_search(SECRET, filter=f"tenant == '{SECRET}'")
            with pytest.raises(RequestError):
                it.similarity_search(SECRET, top_k=-1)
            with pytest.raises(VectorError):
                it.add([Document(SECRET, id=SECRET, vector=[0.0, 0.0])])
        return "".join(
            f"{span.name} {dict(span.attributes or {})} {[event.attributes for event in span.events]} {span.status.description}"
            for span in spans.get_finished_spans()
        )

    assert SECRET not in work()
    spans.clear()
    capture_content()
    assert SECRET in work()
    search = dict(ours(spans)[1].attributes or {})
    assert search["db.query.text"] == SECRET
    assert search["db.vector.query.filter"] == f"tenant == '{SECRET}'"


def test_an_error_is_told_by_its_class(spans: InMemorySpanExporter) -> None:
    # O1
    with store() as it, pytest.raises(VectorError):
        it.add([Document(None, id="x", vector=[0.0, 0.0])])
    (span,) = ours(spans)
    assert span.status.status_code is StatusCode.ERROR
    assert dict(span.attributes or {})["error.type"] == "VectorError"


def test_durations_are_measured(spans: InMemorySpanExporter) -> None:
    # O1
    with store() as it:
        it.add([Document("a", id="1")])
        it.similarity_search("a")
    data = _reader.get_metrics_data()
    assert data is not None
    (metric,) = [
        metric
        for resource in data.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
        if metric.name == "db.client.operation.duration"
    ]
    assert metric.unit == "s"
    points: dict[str, Any] = {}
    for point in metric.data.data_points:
        points[str(dict(point.attributes or {})["db.operation.name"])] = point
    assert points["similarity_search"].sum > 0
    assert points["add"].count >= 1
    assert spans.get_finished_spans()


async def test_work_on_other_threads_keeps_the_callers_context(spans: InMemorySpanExporter) -> None:
    # O2: the model runs on a worker thread here, and its span hangs below the operation's
    with trace.get_tracer("test").start_as_current_span("caller") as caller:
        async with store() as it:
            await it.aadd([Document("a", id="1")])
            await it.asimilarity_search("b")
    by_id = {span.context.span_id: span for span in spans.get_finished_spans() if span.context is not None}
    inner = [span for span in spans.get_finished_spans() if span.name == "embed"]
    assert len(inner) == 2
    for span, name in zip(inner, ("add articles", "similarity_search articles"), strict=True):
        assert span.parent is not None
        operation = by_id[span.parent.span_id]
        assert operation.name == name
        assert operation.parent is not None
        assert operation.parent.span_id == caller.get_span_context().span_id


def test_memories_are_observed_without_ids_and_texts(spans: InMemorySpanExporter) -> None:
    # O1
    with InMemoryChatMemoryRepository() as memory:
        memory.append(SECRET, [UserMessage(SECRET)])
        memory.messages(SECRET)
    found = ours(spans)
    assert [span.name for span in found] == ["append", "messages"]
    assert SECRET not in "".join(f"{span.name}{dict(span.attributes or {})}" for span in found)


def test_without_opentelemetry_nothing_is_done() -> None:
    # O1
    code = """
        import sys
        class Refuse:
            def find_spec(self, name, path=None, target=None):
                if name.partition(".")[0] == "opentelemetry":
                    raise ModuleNotFoundError(name=name)
        sys.meta_path.insert(0, Refuse())
        from entrepot import Document, SearchRequest, SimpleVectorStore
        from entrepot import observation
        observation.is_installed.__globals__["find_spec"] = lambda name: None
        with SimpleVectorStore() as store:
            store.add([Document(None, id="1", vector=[1.0])])
            print(store.similarity_search(SearchRequest(vector=[1.0]))[0].id, observation.is_installed())
        print([name for name in sys.modules if name.startswith("opentelemetry")])
    """
    ended = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=False
    )
    assert ended.stdout.split("\n")[:2] == ["1 False", "[]"], ended.stderr
