"""Spans and metrics of OpenTelemetry, if it is installed (O1, O2).

Each operation is one client span, named ``<operation> <collection>``, and one measurement of the
histogram ``db.client.operation.duration`` in seconds. Attribute names are those of OpenTelemetry's
database conventions where they exist:

| attribute | meaning |
|---|---|
| `db.system.name` | the backend, as in URLs |
| `db.operation.name` | the method, such as ``similarity_search`` |
| `db.collection.name`, `db.namespace` | where |
| `db.response.returned_rows` | hits, or documents read |
| `error.type` | the class of the error, if there was one |
| `db.vector.query.top_k`, `db.vector.query.similarity_threshold` | of a search |
| `db.search.similarity_metric`, `db.vector.dimension_count` | of the collection |
| `entrepot.rows_read` | rows that were read to complete a filter (F9) |

The texts of queries, the values of filters and the texts of documents are recorded only while
`capture_content` is on: as `db.query.text` and `db.vector.query.filter`. Without OpenTelemetry
nothing is done at all.
"""

from __future__ import annotations

import time
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping
    from contextlib import AbstractContextManager

    from opentelemetry.metrics import Histogram
    from opentelemetry.trace import Tracer


class Observable(Protocol):
    """What a span tells of the object that did the work."""

    @property
    def backend(self) -> str:
        """The backend's name."""
        ...

    @property
    def namespace(self) -> str | None:
        """What stands above the collection in the engine."""
        ...


INSTRUMENT: Final = "entrepot"
DURATION: Final = "db.client.operation.duration"

# Boundaries in seconds that OpenTelemetry's conventions advise for this histogram.
_BOUNDARIES: Final = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10)

_installed: bool | None = None
_capture = False
_facts: ContextVar[dict[str, Any] | None] = ContextVar("entrepot_facts", default=None)
_nothing: Final = nullcontext()

_NAMES: Final = {
    "top_k": "db.vector.query.top_k",
    "threshold": "db.vector.query.similarity_threshold",
    "metric": "db.search.similarity_metric",
    "dimension": "db.vector.dimension_count",
    "returned": "db.response.returned_rows",
    "rows_read": "entrepot.rows_read",
    "mode": "entrepot.search.mode",
    "documents": "entrepot.documents",
}
_ASKED: Final = ("top_k", "threshold", "mode", "query", "filter")
_CONTENT: Final = {"query": "db.query.text", "filter": "db.vector.query.filter"}


def capture_content(on: bool = True) -> None:  # noqa: FBT001, FBT002 - a switch
    """Record the texts of queries and filters in spans from now on, or stop doing so.

    Off unless switched on: they are what users typed.
    """
    global _capture  # noqa: PLW0603 - one for the process
    _capture = on


def captures_content() -> bool:
    """Whether contents are recorded: what `capture_content` was told last."""
    return _capture


@contextmanager
def without_observation() -> Generator[None]:
    """Do as if OpenTelemetry were not installed, in all threads, until the block ends."""
    global _installed  # noqa: PLW0603 - one for the process
    before = is_installed()
    _installed = False
    try:
        yield
    finally:
        _installed = before


def is_installed() -> bool:
    """Whether OpenTelemetry's API can be imported; looked up once."""
    global _installed  # noqa: PLW0603 - one for the process
    if _installed is None:
        _installed = find_spec("opentelemetry") is not None
    return _installed


def observed(
    source: Observable, operation: str, target: str, asked: object = None
) -> AbstractContextManager[None]:
    """Return what to run an operation in: a span, or nothing without OpenTelemetry.

    What a search asks for is read off `asked`, if it has such attributes.
    """
    if not (_installed if _installed is not None else is_installed()):
        return _nothing
    facts = {name: getattr(asked, name, None) for name in _ASKED} if asked is not None else {}
    return _span(source, operation, target, facts)


def note(**facts: Any) -> None:
    """Add facts to the span of the operation under way, if there is one."""
    known = _facts.get()
    if known is not None:
        known.update(facts)


_instruments: tuple[Tracer, Histogram] | None = None


def _tools() -> tuple[Tracer, Histogram]:
    """Return the tracer and the histogram. They follow whatever provider is set later."""
    global _instruments  # noqa: PLW0603 - one for the process
    if _instruments is None:
        from opentelemetry import metrics, trace

        histogram = metrics.get_meter(INSTRUMENT).create_histogram(
            DURATION,
            unit="s",
            description="Duration of operations.",
            explicit_bucket_boundaries_advisory=_BOUNDARIES,
        )
        _instruments = trace.get_tracer(INSTRUMENT), histogram
    return _instruments


@contextmanager
def _span(source: Observable, operation: str, target: str, facts: dict[str, Any]) -> Generator[None]:
    from opentelemetry import trace

    tracer, histogram = _tools()
    common = {"db.system.name": source.backend, "db.operation.name": operation}
    if target:
        common["db.collection.name"] = target
    if source.namespace:
        common["db.namespace"] = source.namespace
    started = time.perf_counter()
    token = _facts.set(facts)
    failed: dict[str, str] = {}
    # Exceptions are not recorded by OpenTelemetry itself: their messages may hold values.
    with tracer.start_as_current_span(
        f"{operation} {target}".rstrip(),
        kind=trace.SpanKind.CLIENT,
        attributes=common,
        record_exception=False,
        set_status_on_exception=False,
    ) as span:
        try:
            yield
        except BaseException as error:
            failed = {"error.type": type(error).__name__}
            span.set_attributes(failed)
            span.set_status(trace.StatusCode.ERROR, type(error).__name__)
            raise
        finally:
            _facts.reset(token)
            span.set_attributes(_attributes(facts))
            histogram.record(time.perf_counter() - started, {**common, **failed})


def _attributes(facts: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in facts.items():
        if value is None:
            continue
        if name in _NAMES:
            found[_NAMES[name]] = value if isinstance(value, int | float) else str(value)
        elif name in _CONTENT and _capture:
            found[_CONTENT[name]] = str(value)
    return found
