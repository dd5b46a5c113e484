"""Rounds of tool calls, until the model answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from entrepot.messages import AssistantMessage, ToolResponseMessage
from entrepot_rag.advisors.base import TOOLS, BaseAdvisor
from entrepot_rag.chat import Chunk, Generation, Usage
from entrepot_rag.tools.executing import Executor, Tally, ToolLimits

if TYPE_CHECKING:
    from entrepot.messages import Message
    from entrepot_rag.advice import Advice
    from entrepot_rag.chat import ChatResponse
    from entrepot_rag.requests import Chain, ChatRequest

RETURNED: Final = "return_direct"
"""Why an answer ended that tools gave."""


class ToolCallingAdvisor(BaseAdvisor):
    """Calls the tools that the model asks for, and asks it again with what they answered, until it asks for none.

    The response's `exchange` holds the calls and their answers, its usage is that of all rounds. If all tools of a round
    are `return_direct`, their answers are the response. In a stream the pieces of tool calls are kept back, texts that
    the model says beside them go through.

    Args:
        limits: How many calls a turn may make.
        executor: How tools are run, and what becomes of those that fail.
        order: As of `BaseAdvisor`.
        name: As of `BaseAdvisor`.
    """

    default_order = TOOLS
    calls_tools = True

    def __init__(
        self,
        *,
        limits: ToolLimits | None = None,
        executor: Executor | None = None,
        order: int | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(order=order, name=name)
        self.limits = limits or ToolLimits()
        self.executor = executor or Executor()

    def advise(self, request: ChatRequest, chain: Chain) -> Advice[ChatResponse]:
        """Ask until there is an answer.

        Raises:
            ToolLimitError: The turn asks for too many calls.
            ToolError: A tool failed, and the executor raises that.
        """
        tally = Tally(self.limits)
        exchange: list[Message] = []
        usage = Usage()
        while True:
            shown = yield from self.shown(request, exchange)
            response = yield from chain.proceed(
                shown.with_messages([*shown.messages, *exchange]), each=_without_calls
            )
            usage += response.usage
            exchange += response.exchange
            if not response.tool_calls:
                return msgspec.structs.replace(response, usage=usage, exchange=tuple(exchange))
            exchange.append(response.message)
            history = (*shown.messages, *exchange)
            answers = yield from self.executor.execute(response.tool_calls, shown, history, tally)
            exchange.append(ToolResponseMessage(responses=tuple(answers)))
            direct = {tool.name for tool in shown.tools if tool.return_direct}
            if all(call.name in direct for call in response.tool_calls):
                text = "\n".join(answer.text for answer in answers)
                yield from chain.emit(Chunk(text=text, finish_reason=RETURNED))
                told = Generation(message=AssistantMessage(text), finish_reason=RETURNED)
                return msgspec.structs.replace(
                    response, generations=(told,), usage=usage, exchange=tuple(exchange)
                )

    def shown(self, request: ChatRequest, exchange: list[Message]) -> Advice[ChatRequest]:  # noqa: ARG002
        """Return the request of a round, before what tools answered so far is put behind it."""
        yield from ()  # a generator that asks for nothing
        return request


def _without_calls(chunk: Chunk) -> Chunk | None:
    """Return a piece without tool calls, and without the end of an answer that only calls."""
    if not chunk.fragments and chunk.finish_reason != "tool_calls":
        return chunk
    reason = None if chunk.finish_reason == "tool_calls" else chunk.finish_reason
    if not chunk.text and chunk.usage is None and reason is None:
        return None
    return msgspec.structs.replace(chunk, fragments=(), finish_reason=reason)
