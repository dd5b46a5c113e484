"""Calls of tools: many at once, answered in their order; failures and unknown tools are answered to the model."""

from __future__ import annotations

import asyncio
import contextvars
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

from entrepot.errors import ConfigurationError
from entrepot.messages import ToolResponse
from entrepot.steps import Call
from entrepot_rag.errors import ToolError, ToolLimitError
from entrepot_rag.observation import executing
from entrepot_rag.tools.tool import ToolContext

if TYPE_CHECKING:
    from collections.abc import Awaitable, Mapping, Sequence

    from entrepot.messages import Message, ToolCall
    from entrepot_rag.advice import Advice
    from entrepot_rag.requests import ChatRequest
    from entrepot_rag.tools.tool import Tool

PER_TOOL: Final = 40
"""Calls of one tool in a turn, unless told otherwise."""
TOTAL: Final = 150
"""Calls of all tools in a turn, unless told otherwise."""
_MOST_WORKERS: Final = 32


@dataclass(frozen=True, kw_only=True)
class ToolLimits:
    """How many calls a turn may ask for; None is any number.

    Attributes:
        per_tool: Of each tool.
        total: Of all tools together.
        tools: Of single tools, by name; instead of `per_tool`.
        policy: ``"raise"`` ends the turn with `ToolLimitError`. ``"answer"`` tells the model in the place of each
            call too many, and ends the turn when it asks for further ones three rounds later.
    """

    per_tool: int | None = PER_TOOL
    total: int | None = TOTAL
    tools: Mapping[str, int | None] = field(default_factory=dict[str, "int | None"])
    policy: Literal["raise", "answer"] = "raise"

    def __post_init__(self) -> None:
        """Check the numbers.

        Raises:
            ConfigurationError: One is no int of at least 0, or the policy is none.
        """
        for name, value in {"per_tool": self.per_tool, "total": self.total, **self.tools}.items():
            if value is not None and (type(value) is not int or value < 0):
                msg = f"the limit {name} must be an int of at least 0, or None, not {value!r}"
                raise ConfigurationError(msg)
        if self.policy not in ("raise", "answer"):
            msg = f"policy must be 'raise' or 'answer', not {self.policy!r}"
            raise ConfigurationError(msg)


_LAST_ROUNDS: Final = 3


class Tally:
    """Counts the calls of a turn."""

    def __init__(self, limits: ToolLimits) -> None:
        self._limits = limits
        self._calls: Counter[str] = Counter()
        self._rounds_over = 0

    def admits(self, calls: Sequence[ToolCall]) -> list[str | None]:
        """Return for each call of a round what is answered instead of it, or None if it may be made.

        Raises:
            ToolLimitError: There are too many, and that ends the turn.
        """
        limits = self._limits
        answers: list[str | None] = []
        for call in calls:
            most = limits.tools.get(call.name, limits.per_tool)
            if most is not None and self._calls[call.name] >= most:
                answers.append(self._refused(call.name, most))
            elif limits.total is not None and self._calls.total() >= limits.total:
                answers.append(self._refused(None, limits.total))
            else:
                self._calls[call.name] += 1
                answers.append(None)
        if any(answer is not None for answer in answers):
            self._rounds_over += 1
            if self._rounds_over > _LAST_ROUNDS:
                msg = f"the model asked for further calls in {_LAST_ROUNDS} rounds after it was told that there were too many"
                raise ToolLimitError(msg, tool=None, limit=limits.total or 0)
        return answers

    def _refused(self, tool: str | None, limit: int) -> str:
        what = f"calls of {tool}" if tool is not None else "calls of tools"
        if self._limits.policy == "raise":
            msg = f"the turn asks for more than {limit} {what}"
            raise ToolLimitError(msg, tool=tool, limit=limit, hint="raise the limit, or set policy='answer'")
        return f"Error: a turn may make {limit} {what}, and has made them. Answer with what you know."


@dataclass(frozen=True, kw_only=True)
class Executor:
    """Calls tools.

    Attributes:
        failures: ``"answer"`` tells the model of a tool that fails, by its error's text; ``"raise"`` raises.
        parallel: How many run at once.
    """

    failures: Literal["answer", "raise"] = "answer"
    parallel: int = 8

    def __post_init__(self) -> None:
        """Check the settings.

        Raises:
            ConfigurationError: One is out of bounds.
        """
        if self.failures not in ("answer", "raise"):
            msg = f"failures must be 'answer' or 'raise', not {self.failures!r}"
            raise ConfigurationError(msg)
        if type(self.parallel) is not int or not 1 <= self.parallel <= _MOST_WORKERS:
            msg = f"parallel must be an int from 1 to {_MOST_WORKERS}, not {self.parallel!r}"
            raise ConfigurationError(msg)

    def execute(
        self,
        calls: Sequence[ToolCall],
        request: ChatRequest,
        history: Sequence[Message],
        tally: Tally,
    ) -> Advice[list[ToolResponse]]:
        """Return what the tools answer, in the order of the calls.

        Raises:
            ToolLimitError: As `Tally.admits`.
            ToolError: A tool failed, and `failures` is ``"raise"``; its exception is the cause.
        """
        tools = {tool.name: tool for tool in request.tools}
        refused = tally.admits(calls)
        jobs = [
            _Job(
                tools.get(call.name),
                ToolContext(
                    call=call,
                    messages=tuple(history),
                    conversation_id=request.conversation_id,
                    values=request.context,
                ),
                answer or (None if call.name in tools else _unknown(call.name, tools)),
            )
            for call, answer in zip(calls, refused, strict=True)
        ]
        texts: list[str] = yield Call(self._all, self._aall, (jobs,), {})
        return [ToolResponse(call.id, call.name, text) for call, text in zip(calls, texts, strict=True)]

    def _all(self, jobs: list[_Job]) -> list[str]:
        if len(jobs) == 1 or self.parallel == 1:
            return [self._one(job) for job in jobs]
        with ThreadPoolExecutor(min(len(jobs), self.parallel), thread_name_prefix="entrepot-tool") as pool:
            futures = [pool.submit(contextvars.copy_context().run, self._one, job) for job in jobs]
            return [future.result() for future in futures]

    def _one(self, job: _Job) -> str:
        if job.answer is not None or job.tool is None:
            return job.answer or ""
        with executing(job.context.call) as tell:
            try:
                text = job.tool.run(job.context)
            except Exception as error:  # noqa: BLE001 - whatever a tool raises
                text = self._failed(job, error)
            tell(text)
            return text

    async def _aall(self, jobs: list[_Job]) -> list[str]:
        slots = asyncio.Semaphore(self.parallel)

        async def one(job: _Job) -> str:
            async with slots:
                return await self._aone(job)

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(_told(one(job))) for job in jobs]
        return [_kept(task.result()) for task in tasks]

    async def _aone(self, job: _Job) -> str:
        if job.answer is not None or job.tool is None:
            return job.answer or ""
        with executing(job.context.call) as tell:
            try:
                text = await job.tool.arun(job.context)
            except Exception as error:  # noqa: BLE001 - as above
                text = self._failed(job, error)
            tell(text)
            return text

    def _failed(self, job: _Job, error: Exception) -> str:
        name = job.context.call.name
        if self.failures == "raise":
            msg = f"the tool {name!r} failed: {type(error).__name__}"
            raise ToolError(msg) from error
        return f"Error: {error}" if str(error) else f"Error: {type(error).__name__}"


@dataclass(frozen=True)
class _Job:
    tool: Tool | None
    context: ToolContext
    answer: str | None


async def _told(answer: Awaitable[str]) -> str | ToolError:
    """Return an error instead of raising it, so that a group raises it by itself and not in a group of errors."""
    try:
        return await answer
    except ToolError as error:
        return error


def _kept(answer: str | ToolError) -> str:
    if isinstance(answer, ToolError):
        raise answer
    return answer


def _unknown(name: str, tools: Mapping[str, Tool]) -> str:
    known = ", ".join(sorted(tools)) or "none"
    return f"Error: there is no tool {name!r}. Tools: {known}"
