"""A chat model that answers what it was told to: for tests, demos and examples, without a network."""

from __future__ import annotations

import asyncio
import inspect
import threading
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec

from entrepot.messages import AssistantMessage, Role, ToolCall
from entrepot_rag.chat import ChatResponse, Chunk, Generation, Prompt, ToolCallFragment, Usage
from entrepot_rag.errors import ChatModelError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator

    Answer: TypeAlias = str | AssistantMessage | ChatResponse | BaseException
    Answering: TypeAlias = Callable[[Prompt], Answer | Awaitable[Answer]]

_PIECE: Final = 8
"""Characters of a piece when an answer is streamed."""


class ScriptedChatModel:
    """Answers with what a script holds, one entry a request, or with what a function makes of the prompt.

    An entry is a text, a message, a whole response, or an exception to raise. Tokens are counted as words. All
    prompts are kept in `prompts`. The object is thread-safe.

    Args:
        script: Entries in the order of the requests, or a function of the prompt; one that returns an awaitable can
            be used in async code only.
        name: What the model is called.
        piece: Characters of a chunk when an answer is streamed.
    """

    def __init__(
        self, script: Iterable[Answer] | Answering, *, name: str = "scripted", piece: int = _PIECE
    ) -> None:
        self.name = name
        self.prompts: list[Prompt] = []
        self._answering = script if callable(script) else None
        self._entries = iter(()) if callable(script) else iter(script)
        self._piece = piece
        self._lock = threading.Lock()

    def call(self, prompt: Prompt, /) -> ChatResponse:
        """Return the next answer.

        Raises:
            ChatModelError: The script is at its end, or its function is async.
        """
        answer = self._next(prompt)
        if inspect.isawaitable(answer):
            if inspect.iscoroutine(answer):
                answer.close()
            msg = f"the script of {self.name!r} is async, and was asked by sync code"
            raise ChatModelError(msg, hint="use the methods with the prefix a")
        return self._response(prompt, answer)

    async def acall(self, prompt: Prompt, /) -> ChatResponse:
        """As `call`."""
        await asyncio.sleep(0)
        answer = self._next(prompt)
        return self._response(prompt, (await answer) if inspect.isawaitable(answer) else answer)

    def stream(self, prompt: Prompt, /) -> Iterator[Chunk]:
        """Return the next answer in pieces: text first, then tool calls cut in the middle of their arguments."""
        yield from self._pieces(self.call(prompt))

    async def astream(self, prompt: Prompt, /) -> AsyncIterator[Chunk]:
        """As `stream`."""
        for chunk in self._pieces(await self.acall(prompt)):
            await asyncio.sleep(0)
            yield chunk

    def _next(self, prompt: Prompt) -> Answer | Awaitable[Answer]:
        with self._lock:
            self.prompts.append(prompt)
            if self._answering is None:
                try:
                    return next(self._entries)
                except StopIteration:
                    msg = f"the script of {self.name!r} has no answer to request {len(self.prompts)}"
                    raise ChatModelError(msg) from None
        return self._answering(prompt)

    def _response(self, prompt: Prompt, answer: Answer) -> ChatResponse:
        if isinstance(answer, BaseException):
            raise answer
        if isinstance(answer, ChatResponse):
            return answer
        message = AssistantMessage(answer) if isinstance(answer, str) else answer
        asked = sum(len(one.text.split()) for one in prompt.messages)
        told = len(message.text.split()) + len(message.tool_calls)
        reason = "tool_calls" if message.tool_calls else "stop"
        return ChatResponse(
            generations=(Generation(message=message, finish_reason=reason),),
            usage=Usage(asked, told),
            model=self.name,
        )

    def _pieces(self, response: ChatResponse) -> Iterator[Chunk]:
        for number, generation in enumerate(response.generations):
            text = generation.message.text
            for start in range(0, len(text), self._piece):
                yield Chunk(text=text[start : start + self._piece], generation=number)
            for index, call in enumerate(generation.message.tool_calls):
                middle = len(call.arguments) // 2
                head = ToolCallFragment(
                    index=index, id=call.id, name=call.name, arguments=call.arguments[:middle]
                )
                yield Chunk(fragments=(head,), generation=number)
                rest = ToolCallFragment(index=index, arguments=call.arguments[middle:])
                yield Chunk(fragments=(rest,), generation=number)
            yield Chunk(finish_reason=generation.finish_reason or "stop", generation=number)
        yield Chunk(usage=response.usage, model=response.model, id=response.id)


def echo(prompt: Prompt) -> str:
    """Answer with what the user said last: a function for `ScriptedChatModel`."""
    said = [message for message in prompt.messages if message.role is Role.USER]
    earlier = len(said) - 1
    text = said[-1].text if said else ""
    return f"You said: {text}" + (f" (after {earlier} earlier)" if earlier > 0 else "")


def asking(name: str, arguments: object = None, *, id: str = "call_1", text: str = "") -> AssistantMessage:  # noqa: A002
    """Return an answer that calls a tool: an entry of a script."""
    encoded = arguments if isinstance(arguments, str) else msgspec.json.encode(arguments or {}).decode()
    return AssistantMessage(text, tool_calls=(ToolCall(id, name, encoded),))
