"""What most advisors are: something before the model, something after it. And their places."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from entrepot.messages import AssistantMessage
from entrepot_rag.advice import invoke
from entrepot_rag.chat import ChatResponse, Generation

if TYPE_CHECKING:
    from collections.abc import Callable

    from entrepot_rag.advice import Advice
    from entrepot_rag.requests import Chain, ChatRequest

SAFEGUARD: Final = -400
"""Outside of all: what is refused is neither remembered nor looked up."""
MEMORY: Final = -300
"""Remembers what the user said, before others change it."""
RETRIEVAL: Final = -200
"""Adds what is known to the question, once a turn."""
STRUCTURED: Final = -100
"""Asks again until the answer fits."""
TOOLS: Final = 0
"""Asks again while the model calls tools."""
LOGGING: Final = 100
"""Beside the model: sees what it sees."""


class BaseAdvisor:
    """Does something before the model and something after it; either may be left out.

    Args:
        order: Its place; lower is further outside.
        name: Its name; that of the class otherwise.
    """

    default_order: int = RETRIEVAL

    def __init__(self, *, order: int | None = None, name: str | None = None) -> None:
        self.order = self.default_order if order is None else order
        self.name = name or type(self).__name__

    def advise(self, request: ChatRequest, chain: Chain) -> Advice[ChatResponse]:
        """Do what comes before, ask what stands inside, do what comes after."""
        request = yield from self.before(request)
        response = yield from chain.proceed(request)
        return (yield from self.after(request, response))

    def before(self, request: ChatRequest) -> Advice[ChatRequest]:
        """Return the request that goes on."""
        yield from ()  # a generator that asks for nothing
        return request

    def after(self, request: ChatRequest, response: ChatResponse) -> Advice[ChatResponse]:  # noqa: ARG002
        """Return the response that goes back; of a stream the whole one, once its pieces are through."""
        yield from ()  # as above
        return response


class FunctionAdvisor(BaseAdvisor):
    """An advisor of functions, sync or async.

    Args:
        before: From the request to the one that goes on.
        after: From the request and the response to the response that goes back.
        order: As of `BaseAdvisor`.
        name: As of `BaseAdvisor`.
    """

    def __init__(
        self,
        before: Callable[[ChatRequest], Any] | None = None,
        after: Callable[[ChatRequest, ChatResponse], Any] | None = None,
        *,
        order: int | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(order=order, name=name)
        self._before = before
        self._after = after

    def before(self, request: ChatRequest) -> Advice[ChatRequest]:
        """As given."""
        return request if self._before is None else (yield from invoke(self._before, request))

    def after(self, request: ChatRequest, response: ChatResponse) -> Advice[ChatResponse]:
        """As given."""
        return response if self._after is None else (yield from invoke(self._after, request, response))


def answer(text: str, *, reason: str) -> ChatResponse:
    """Return a response that no model gave."""
    return ChatResponse(generations=(Generation(message=AssistantMessage(text), finish_reason=reason),))
