"""Requests and responses in the log."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Final

from entrepot_rag.advisors.base import LOGGING, BaseAdvisor

if TYPE_CHECKING:
    from entrepot_rag.advice import Advice
    from entrepot_rag.chat import ChatResponse
    from entrepot_rag.requests import Chain, ChatRequest

LOGGER: Final = logging.getLogger("entrepot_rag")


class LoggingAdvisor(BaseAdvisor):
    """Logs what is asked and what comes back: numbers, and what is said only if that is wanted.

    Args:
        content: Whether texts are logged, which users have typed.
        level: At which level.
        logger: Which logger; ``entrepot_rag`` otherwise.
        order: Its place; beside the model by default, so that it logs each round of tool calls.
        name: As of `BaseAdvisor`.
    """

    default_order = LOGGING

    def __init__(
        self,
        *,
        content: bool = False,
        level: int = logging.DEBUG,
        logger: logging.Logger = LOGGER,
        order: int | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(order=order, name=name)
        self.content = content
        self.level = level
        self.logger = logger

    def advise(self, request: ChatRequest, chain: Chain) -> Advice[ChatResponse]:
        """Ask, and log both ways."""
        if not self.logger.isEnabledFor(self.level):
            return (yield from chain.proceed(request))
        said = (
            [f"{one.role.value}: {one.text}" for one in request.messages]
            if self.content
            else len(request.messages)
        )
        self.logger.log(self.level, "asked: messages %s, tools %d", said, len(request.tools))
        began = time.perf_counter()
        try:
            response = yield from chain.proceed(request)
        except Exception as error:
            # An error's text may hold what was said.
            self.logger.log(self.level, "failed: %s", error if self.content else type(error).__name__)
            raise
        seconds = time.perf_counter() - began
        told = response.text if self.content else f"{len(response.text)} characters"
        calls = [call.name for call in response.tool_calls]
        self.logger.log(
            self.level,
            "answered in %.3f s: %s, tool calls %s, %s, tokens %d + %d",
            seconds, told, calls, response.finish_reason, response.usage.input_tokens, response.usage.output_tokens,
        )  # fmt: skip
        return response
