"""Spans and metrics of OpenTelemetry for the client, its advisors, models and tools, if it is installed.

Names follow OpenTelemetry's conventions for generative AI where they exist:

| span | kind | attributes |
|---|---|---|
| `chat_client` | internal | `gen_ai.conversation.id`, `entrepot.rag.stream`, `entrepot.rag.advisors` |
| the advisor's name | internal | `entrepot.rag.advisor.order` |
| `chat <model>` | client | `gen_ai.operation.name`, `gen_ai.request.*`, `gen_ai.response.*`, `gen_ai.usage.*` |
| `execute_tool <name>` | internal | `gen_ai.operation.name`, `gen_ai.tool.name`, `gen_ai.tool.call.id` |

Tokens go to the histogram `gen_ai.client.token.usage`, by `gen_ai.token.type`; durations of requests to a model to
`gen_ai.client.operation.duration`, in seconds. What is said is recorded only while `entrepot.observation.capture_content`
is on: as `gen_ai.input.messages`, `gen_ai.output.messages`, `gen_ai.tool.call.arguments` and `gen_ai.tool.call.result`.

A span of an advisor is never current while a caller reads a stream; it is while what the advisor asks for is done.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

from entrepot.messages import encode_message
from entrepot.observation import captures_content, is_installed
from entrepot.steps import Call
from entrepot_rag.advice import Emit, altered

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

    from opentelemetry import trace
    from opentelemetry.metrics import Histogram

    from entrepot.messages import Message, ToolCall
    from entrepot_rag.advice import Advice, Item
    from entrepot_rag.chat import ChatResponse, Prompt
    from entrepot_rag.requests import Chain, ChatRequest

    Span: TypeAlias = trace.Span

T = TypeVar("T")

INSTRUMENT: Final = "entrepot-rag"
TOKENS: Final = "gen_ai.client.token.usage"
DURATION: Final = "gen_ai.client.operation.duration"
# Boundaries that the conventions advise for these histograms.
_TOKEN_BOUNDARIES: Final = tuple(4**power for power in range(14))
_SECONDS_BOUNDARIES: Final = tuple(0.01 * 2**power for power in range(14))

_meters: tuple[Histogram, Histogram] | None = None


def begin(
    name: str, attributes: Mapping[str, Any], parent: Span | None = None, *, client: bool = False
) -> Span | None:
    """Begin a span, a child of `parent` or of the current one; None without OpenTelemetry."""
    if not is_installed():
        return None
    from opentelemetry import trace

    kind = trace.SpanKind.CLIENT if client else trace.SpanKind.INTERNAL
    context = None if parent is None else trace.set_span_in_context(parent)
    given = {key: value for key, value in attributes.items() if value is not None}
    return trace.get_tracer(INSTRUMENT).start_span(name, context=context, kind=kind, attributes=given)


def end(span: Span | None, error: BaseException | None = None) -> None:
    """End a span; with an error, say so."""
    if span is None:
        return
    if error is not None and isinstance(error, Exception):
        from opentelemetry.trace import StatusCode

        span.set_attribute("error.type", type(error).__qualname__)
        span.set_status(StatusCode.ERROR)
    span.end()


def spanned(advice: Advice[T], span: Span | None) -> Advice[T]:
    """Return advice whose calls are done within a span that ends with it."""
    if span is None:
        return (yield from advice)
    try:
        answer = yield from altered(advice, _within(span))
    except BaseException as error:
        end(span, error)
        raise
    end(span)
    return answer


def _within(span: Span) -> Any:
    from opentelemetry import trace

    def alter(item: Item) -> Item:
        if isinstance(item, Emit):
            return item
        sync, coroutine = item.sync, item.coroutine

        def current(*args: Any, **kwargs: Any) -> Any:
            with trace.use_span(span, record_exception=False, set_status_on_exception=False):
                return sync(*args, **kwargs)

        async def acurrent(*args: Any, **kwargs: Any) -> Any:
            with trace.use_span(span, record_exception=False, set_status_on_exception=False):
                return await coroutine(*args, **kwargs)

        return Call(current, acurrent, item.args, item.kwargs, item.exchange)

    return alter


def chained(chain: Chain, request: ChatRequest) -> Advice[ChatResponse]:
    """Return the advice of a chain's first advisor, in a span of its own."""
    advisor, *others = chain.advisors
    if not is_installed():
        return advisor.advise(request, replace(chain, advisors=tuple(others)))
    span = begin(advisor.name, {"entrepot.rag.advisor.order": advisor.order}, chain.span)
    return spanned(advisor.advise(request, replace(chain, advisors=tuple(others), span=span)), span)


def asked(prompt: Prompt, model: str) -> dict[str, Any]:
    """Return the attributes of a request to a model."""
    options = prompt.options
    facts: dict[str, Any] = {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": options.model or model,
        "gen_ai.request.temperature": options.temperature,
        "gen_ai.request.top_p": options.top_p,
        "gen_ai.request.max_tokens": options.max_tokens,
        "gen_ai.request.seed": options.seed,
        "gen_ai.request.stop_sequences": options.stop,
    }
    if captures_content():
        facts["gen_ai.input.messages"] = _told(prompt.messages)
    return facts


def _told(messages: tuple[Message, ...]) -> str:
    return "[" + ",".join(encode_message(message).decode() for message in messages) + "]"


def answered(span: Span | None, prompt: Prompt, model: str, response: ChatResponse, began: float) -> None:
    """Tell a span and the metrics what a model answered."""
    if span is None:
        return
    usage = response.usage
    span.set_attribute("gen_ai.response.model", response.model or model)
    if response.id is not None:
        span.set_attribute("gen_ai.response.id", response.id)
    reasons = [one.finish_reason for one in response.generations if one.finish_reason is not None]
    span.set_attribute("gen_ai.response.finish_reasons", reasons)
    span.set_attribute("gen_ai.usage.input_tokens", usage.input_tokens)
    span.set_attribute("gen_ai.usage.output_tokens", usage.output_tokens)
    if captures_content():
        span.set_attribute(
            "gen_ai.output.messages", _told(tuple(one.message for one in response.generations))
        )
    tokens, seconds = _histograms()
    facts = {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": prompt.options.model or model,
        "gen_ai.response.model": response.model or model,
    }
    tokens.record(usage.input_tokens, {**facts, "gen_ai.token.type": "input"})
    tokens.record(usage.output_tokens, {**facts, "gen_ai.token.type": "output"})
    seconds.record(time.perf_counter() - began, facts)


def _histograms() -> tuple[Histogram, Histogram]:
    global _meters  # noqa: PLW0603 - one pair for the process
    if _meters is None:
        from opentelemetry import metrics

        meter = metrics.get_meter(INSTRUMENT)
        _meters = (
            meter.create_histogram(
                TOKENS, unit="{token}", description="Tokens of requests to models.",
                explicit_bucket_boundaries_advisory=_TOKEN_BOUNDARIES,
            ),
            meter.create_histogram(
                DURATION, unit="s", description="Duration of requests to models.",
                explicit_bucket_boundaries_advisory=_SECONDS_BOUNDARIES,
            ),
        )  # fmt: skip
    return _meters


@contextmanager
def executing(call: ToolCall) -> Generator[Any]:
    """Run a tool in a span of its own, the current one; yields what takes the tool's answer."""
    span = begin(
        f"execute_tool {call.name}",
        {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": call.name,
            "gen_ai.tool.call.id": call.id,
            "gen_ai.tool.call.arguments": call.arguments if captures_content() else None,
        },
    )
    if span is None:
        yield _nothing
        return
    from opentelemetry import trace

    def told(text: str) -> None:
        if captures_content():
            span.set_attribute("gen_ai.tool.call.result", text)

    try:
        with trace.use_span(span, record_exception=False, set_status_on_exception=False):
            yield told
    except BaseException as error:
        end(span, error)
        raise
    end(span)


def _nothing(text: str) -> None:
    """Tell nobody."""
