"""The spans and measurements of a test, kept in memory (O1, O2)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

if TYPE_CHECKING:
    import pytest
    from opentelemetry.sdk.trace import ReadableSpan

SECRET: Final = "a-secret-nobody-may-see"
"""Stands in texts and values, and must be found nowhere else."""


class Recorder:
    """Takes the place of the process's providers for one test, so that other tests keep theirs."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._exporter = InMemorySpanExporter()
        self._reader = InMemoryMetricReader()
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.tracer = provider.get_tracer("conformance")
        self._meters = MeterProvider([self._reader])
        histogram = self._meters.get_meter("conformance").create_histogram(
            "db.client.operation.duration", unit="s"
        )
        monkeypatch.setattr("entrepot.observation._instruments", (self.tracer, histogram))

    def spans(self) -> list[ReadableSpan]:
        """Return the spans that ended since the last call, in that order."""
        found = list(self._exporter.get_finished_spans())
        self._exporter.clear()
        return found

    def measured(self) -> dict[str, int]:
        """Return how many durations were measured, by operation."""
        data = self._reader.get_metrics_data()
        return {
            str(attributes_of(point)["db.operation.name"]): getattr(point, "count", 0)
            for resource in (data.resource_metrics if data else ())
            for scope in resource.scope_metrics
            for metric in scope.metrics
            for point in metric.data.data_points
        }


def attributes_of(recorded: Any) -> dict[str, Any]:
    """Return the attributes of a span or a measurement."""
    return dict(recorded.attributes or {})


def everything_told(spans: list[ReadableSpan]) -> str:
    """Return all that spans tell, as one text."""
    return "".join(
        f"{span.name} {attributes_of(span)} {span.status.description}"
        f" {[(event.name, dict(event.attributes or {})) for event in span.events]}"
        for span in spans
    )
