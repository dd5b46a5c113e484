"""Spans of a memory over SQL tell the operation and nothing of what was said: O1."""

from __future__ import annotations

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from entrepot import UserMessage, open_chat_memory

SECRET = "a-secret-nobody-may-see"


def test_operations_are_spans_without_ids_and_texts() -> None:
    # O1
    exporter = InMemorySpanExporter()
    provider = trace.get_tracer_provider()
    if not isinstance(provider, TracerProvider):
        provider = TracerProvider()
        trace.set_tracer_provider(provider)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    with open_chat_memory("sql+sqlite://") as memory:
        exporter.clear()
        memory.append(SECRET, [UserMessage(SECRET)])
        memory.messages(SECRET)
        memory.search(text=SECRET)
        memory.delete(SECRET)
    spans = exporter.get_finished_spans()
    assert [dict(span.attributes or {})["db.operation.name"] for span in spans] == [
        "append",
        "messages",
        "search",
        "delete",
    ]
    assert {str(dict(span.attributes or {})["db.system.name"]) for span in spans} == {"sqlite"}
    assert SECRET not in "".join(f"{span.name}{dict(span.attributes or {})}" for span in spans)
