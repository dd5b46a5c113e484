"""Spans and metrics of the client, its advisors, models and tools."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from entrepot import observation as core_observation
from entrepot import open_chat_memory
from entrepot.observation import capture_content, without_observation
from entrepot_rag import (
    ChatClient,
    ChatModelError,
    MessageChatMemoryAdvisor,
    ScriptedChatModel,
    observation,
)
from entrepot_rag.models.scripted import asking

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from opentelemetry.sdk.trace import ReadableSpan

    from entrepot_rag import ChatPrompt, ChatResponse

    Ask = Callable[[ChatPrompt], ChatResponse]


def _tracers(provider: TracerProvider) -> Callable[..., Any]:
    def get(name: str, *_: object) -> Any:
        return provider.get_tracer(name)

    return get


def _meters(provider: MeterProvider) -> Callable[..., Any]:
    def get(name: str, *_: object) -> Any:
        return provider.get_meter(name)

    return get


@pytest.fixture
def exporter(monkeypatch: pytest.MonkeyPatch) -> Generator[InMemorySpanExporter]:
    """Collect spans; content is off."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer", _tracers(provider))
    monkeypatch.setattr(core_observation, "_instruments", None)  # it would remember another provider's
    yield exporter
    capture_content(on=False)


@pytest.fixture
def reader(monkeypatch: pytest.MonkeyPatch) -> InMemoryMetricReader:
    """Collect metrics."""
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader])
    monkeypatch.setattr(metrics, "get_meter", _meters(provider))
    monkeypatch.setattr(observation, "_meters", None)
    return reader


def double(n: int) -> int:
    """Double."""
    return 2 * n


def client(*script: Any, **options: Any) -> ChatClient:
    """Return a client with a tool."""
    return ChatClient(ScriptedChatModel(script), tools=[double], **options)


def by_name(exporter: InMemorySpanExporter) -> dict[str, list[ReadableSpan]]:
    """Return the finished spans by name."""
    spans: dict[str, list[ReadableSpan]] = {}
    for span in exporter.get_finished_spans():
        spans.setdefault(span.name, []).append(span)
    return spans


def parent_of(span: ReadableSpan, spans: dict[str, list[ReadableSpan]]) -> str | None:
    """Return the name of the span that another is in."""
    if span.parent is None:
        return None
    known = {one.context.span_id: one.name for many in spans.values() for one in many if one.context}
    return known[span.parent.span_id]


def test_spans_stand_in_one_another(ask: Ask, exporter: InMemorySpanExporter) -> None:
    with open_chat_memory("sql+sqlite://") as memory:
        exporter.clear()
        ask(
            client(asking("double", {"n": 1}), "2", advisors=[MessageChatMemoryAdvisor(memory)])
            .prompt("q").conversation("c")
        )  # fmt: skip
    spans = by_name(exporter)
    assert parent_of(spans["chat_client"][0], spans) is None
    assert parent_of(spans["MessageChatMemoryAdvisor"][0], spans) == "chat_client"
    assert parent_of(spans["ToolCallingAdvisor"][0], spans) == "MessageChatMemoryAdvisor"
    assert [parent_of(one, spans) for one in spans["chat scripted"]] == ["ToolCallingAdvisor"] * 2
    assert [parent_of(one, spans) for one in spans["execute_tool double"]] == ["ToolCallingAdvisor"]
    (append,) = [one for name in spans if name.startswith("append") for one in spans[name]]
    assert parent_of(append, spans) == "MessageChatMemoryAdvisor"


def test_attributes_are_those_of_the_conventions(ask: Ask, exporter: InMemorySpanExporter) -> None:
    ask(client("a b").prompt("a secret").conversation("c").options(temperature=0.5, max_tokens=9))
    (model,) = by_name(exporter)["chat scripted"]
    assert model.kind is trace.SpanKind.CLIENT
    assert dict(model.attributes or {}) == {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "scripted",
        "gen_ai.request.temperature": 0.5,
        "gen_ai.request.max_tokens": 9,
        "gen_ai.response.model": "scripted",
        "gen_ai.response.finish_reasons": ("stop",),
        "gen_ai.usage.input_tokens": 2,
        "gen_ai.usage.output_tokens": 2,
    }
    assert not any("secret" in str(one.attributes) for one in exporter.get_finished_spans())


def test_content_is_told_when_asked_for(ask: Ask, exporter: InMemorySpanExporter) -> None:
    capture_content()
    ask(client(asking("double", {"n": 4}), "eight").prompt("a secret"))
    spans = by_name(exporter)
    assert "a secret" in str(spans["chat scripted"][0].attributes)
    assert "eight" in str(spans["chat scripted"][1].attributes)
    told = spans["execute_tool double"][0].attributes or {}
    assert (told["gen_ai.tool.call.arguments"], told["gen_ai.tool.call.result"]) == ('{"n":4}', "8")


def test_errors_are_told(ask: Ask, exporter: InMemorySpanExporter) -> None:
    with pytest.raises(ChatModelError):
        ask(client(ChatModelError("x")).prompt("q"))
    for span in exporter.get_finished_spans():
        assert (span.attributes or {})["error.type"] == "ChatModelError"
        assert span.status.status_code is trace.StatusCode.ERROR


def test_tokens_are_counted(ask: Ask, exporter: InMemorySpanExporter, reader: InMemoryMetricReader) -> None:
    ask(client("a b c").prompt("d e"))
    assert exporter.get_finished_spans()
    data: Any = reader.get_metrics_data()
    told = {one.name: one for one in data.resource_metrics[0].scope_metrics[0].metrics}
    points = told["gen_ai.client.token.usage"].data.data_points
    assert {point.attributes["gen_ai.token.type"]: point.sum for point in points} == {"input": 2, "output": 3}
    assert told["gen_ai.client.operation.duration"].data.data_points[0].count == 1


def test_a_stream_that_is_read_has_no_current_span(exporter: InMemorySpanExporter) -> None:
    stream = client("some words").prompt("q").stream()
    for _ in stream:
        assert trace.get_current_span() is trace.INVALID_SPAN
    assert len(exporter.get_finished_spans()) == 3


def test_without_observation_nothing_is_done(ask: Ask, exporter: InMemorySpanExporter) -> None:
    with without_observation():
        ask(client("x").prompt("q"))
    assert exporter.get_finished_spans() == ()
