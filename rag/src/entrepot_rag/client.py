"""`ChatClient`: from a few calls in a row to an answer."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

import msgspec

from entrepot.documents import new_id
from entrepot.errors import ConfigurationError, UnsupportedError
from entrepot.messages import SystemMessage, UserMessage
from entrepot.observation import is_installed
from entrepot.steps import Call
from entrepot_rag import advice, observation
from entrepot_rag.advice import Emit
from entrepot_rag.advisors.structured import VALUE, StructuredOutputAdvisor
from entrepot_rag.advisors.tool_calling import ToolCallingAdvisor
from entrepot_rag.chat import ChatOptions, ChatResponse, Prompt
from entrepot_rag.merging import Merger
from entrepot_rag.models.protocols import StreamingChatModel
from entrepot_rag.requests import Chain, ChatRequest
from entrepot_rag.templates import fill
from entrepot_rag.tools.tool import Tool, tool

if TYPE_CHECKING:
    from collections.abc import (
        AsyncGenerator,
        AsyncIterator,
        Callable,
        Generator,
        Iterable,
        Iterator,
        Mapping,
    )
    from types import TracebackType

    from entrepot.media import Media
    from entrepot.messages import Message
    from entrepot_rag.advice import Advice
    from entrepot_rag.chat import Chunk
    from entrepot_rag.models.protocols import ChatModel
    from entrepot_rag.requests import Advisor

T = TypeVar("T")


class ChatClient:
    """Asks a chat model, through advisors.

    It holds what all prompts have in common, and makes prompts. It is immutable and thread-safe, if its advisors are.

    Args:
        model: What answers.
        system: Instructions to the model, in each prompt that has none of its own.
        advisors: What stands around the model.
        tools: What the model may call: tools, or typed functions.
        options: How to answer.
        call_tools: Whether tools are called here. Otherwise the response holds the calls that the model asks for.
    """

    def __init__(  # noqa: PLR0913 - one argument for each thing that users set
        self,
        model: ChatModel,
        *,
        system: str | None = None,
        advisors: Iterable[Advisor] = (),
        tools: Iterable[Tool | Callable[..., Any]] = (),
        options: ChatOptions | None = None,
        call_tools: bool = True,
    ) -> None:
        self.model = model
        self.call_tools = call_tools
        self._prompt = ChatPrompt(
            client=self,
            instructions=system,
            given=tuple(advisors),
            offered=_tools(tools),
            how=options or ChatOptions(),
        )
        self.chained((), streaming=False)  # what is wrong with the advisors is said now

    def prompt(self, text: str | None = None) -> ChatPrompt:
        """Return a prompt to be completed; `text` is what the user says."""
        return self._prompt if text is None else self._prompt.user(text)

    def chained(self, more: tuple[Advisor, ...], *, streaming: bool) -> Chain:
        """Return the chain of the client's advisors and some more.

        Raises:
            ConfigurationError: Two of them call tools, or one that keeps turns stands inside of one that calls tools.
        """
        advisors = [*self._prompt.given, *more]
        callers = [one for one in advisors if getattr(one, "calls_tools", False)]
        if len(callers) > 1:
            msg = f"{' and '.join(one.name for one in callers)} both call tools"
            raise ConfigurationError(msg, hint="give one")
        if not callers and self.call_tools:
            callers = [ToolCallingAdvisor()]
            advisors += callers
        ordered = tuple(sorted(advisors, key=lambda one: one.order))
        for keeper in (one for one in ordered if getattr(one, "keeps_turns", False)):
            if callers and ordered.index(callers[0]) < ordered.index(keeper):
                msg = (
                    f"{keeper.name} stands inside of {callers[0].name}, so it would keep rounds and not turns"
                )
                raise ConfigurationError(msg, hint=f"give it an order below {callers[0].order}")
        model = cast("StreamingChatModel", self.model)  # a prompt streams only if it is one
        innermost = partial(_streamed if streaming else _asked, model)
        return Chain(ordered, innermost, streaming)


@dataclass(frozen=True, kw_only=True)
class ChatPrompt:
    """A prompt in the making. Each method returns another one; this one stays as it is.

    A text with parameters, such as ``.user("Translate to {language}", language="Dutch")``, is a template of the
    caller's: braces around names that are given are filled, once. Without parameters nothing in a text is looked at.
    """

    client: ChatClient
    instructions: str | None = None
    said: tuple[Message, ...] = ()
    given: tuple[Advisor, ...] = ()
    offered: tuple[Tool, ...] = ()
    how: ChatOptions = field(default_factory=ChatOptions)
    values: Mapping[str, Any] | None = None
    conversation_id: str | None = None
    further: tuple[Advisor, ...] = ()
    made: frozenset[str] = frozenset()

    def system(self, text: str, /, **parameters: object) -> ChatPrompt:
        """Set the instructions to the model."""
        return replace(self, instructions=_filled(text, parameters))

    def user(self, text: str, /, *, media: Iterable[Media] = (), **parameters: object) -> ChatPrompt:
        """Add what the user says."""
        message = UserMessage(_filled(text, parameters), media=tuple(media))
        return replace(self, said=(*self.said, message), made=self.made | {message.id})

    def messages(self, messages: Iterable[Message]) -> ChatPrompt:
        """Add messages, such as those of a conversation that the caller keeps."""
        return replace(self, said=(*self.said, *messages))

    def options(self, options: ChatOptions | None = None, /, **settings: Any) -> ChatPrompt:
        """Set options, over those that are set; fields of `ChatOptions` by name, or a whole one.

        Raises:
            ConfigurationError: There is no such option.
        """
        try:
            named = ChatOptions(**settings)
        except TypeError as error:
            known = ", ".join(ChatOptions.__struct_fields__)
            msg = f"there is no such option of a chat: {', '.join(settings)}"
            raise ConfigurationError(msg, hint=f"known are {known}; others go into extra=") from error
        how = self.how if options is None else self.how.merged(options)
        return replace(self, how=how.merged(named))

    def tools(self, *tools: Tool | Callable[..., Any]) -> ChatPrompt:
        """Offer tools, beside those of the client; one of the same name takes another's place."""
        new = _tools(tools)
        names = {one.name for one in new}
        return replace(self, offered=(*(one for one in self.offered if one.name not in names), *new))

    def advisors(self, *advisors: Advisor) -> ChatPrompt:
        """Add advisors, beside those of the client."""
        return replace(self, further=(*self.further, *advisors))

    def context(self, values: Mapping[str, Any] | None = None, /, **named: Any) -> ChatPrompt:
        """Give advisors and tools values; the model never sees them."""
        return replace(self, values={**(self.values or {}), **(values or {}), **named})

    def conversation(self, conversation_id: str) -> ChatPrompt:
        """Say which conversation this is a turn of."""
        return replace(self, conversation_id=conversation_id)

    # --- asking -----------------------------------------------------------------------------------------

    def call(self) -> ChatResponse:
        """Ask, and return the response.

        Raises:
            ConfigurationError: There is nothing to ask, or advisors lack what they need.
            ChatModelError: The model failed.
        """
        return advice.run(self._advice(self.further, streaming=False))

    async def acall(self) -> ChatResponse:
        """As `call`."""
        return await advice.arun(self._advice(self.further, streaming=False))

    def text(self) -> str:
        """Ask, and return the answer's text; as `call`."""
        return self.call().text

    async def atext(self) -> str:
        """As `text`."""
        return (await self.acall()).text

    def structured(self, kind: type[T], *, repairs: int = 2) -> T:
        """Ask for an answer of a type that msgspec or pydantic can check, and return it.

        Raises:
            StructuredOutputError: No answer fits, after so many repairs.
        """
        advisors = (*self.further, StructuredOutputAdvisor(kind, repairs=repairs))
        return cast("T", advice.run(self._advice(advisors, streaming=False)).context[VALUE])

    async def astructured(self, kind: type[T], *, repairs: int = 2) -> T:
        """As `structured`."""
        advisors = (*self.further, StructuredOutputAdvisor(kind, repairs=repairs))
        return cast("T", (await advice.arun(self._advice(advisors, streaming=False))).context[VALUE])

    def stream(self) -> ChatStream:
        """Ask, and return the answer piece by piece. Nothing is sent before the first is asked for.

        Raises:
            UnsupportedError: The model answers in one piece only.
        """
        return ChatStream(advice.stream(self._advice(self.further, streaming=True)))

    def astream(self) -> AsyncChatStream:
        """As `stream`."""
        return AsyncChatStream(partial(advice.astream, self._advice(self.further, streaming=True)))

    def _advice(self, further: tuple[Advisor, ...], *, streaming: bool) -> Advice[ChatResponse]:
        client = self.client
        if streaming and not isinstance(client.model, StreamingChatModel):
            msg = f"the model {client.model.name!r} does not stream"
            raise UnsupportedError(msg, capability="stream", hint="use call()")
        chain = client.chained(further, streaming=streaming)
        request = self._request()
        if not is_installed():
            return chain.proceed(request)
        span = observation.begin(
            "chat_client",
            {
                "gen_ai.conversation.id": request.conversation_id,
                "entrepot.rag.stream": streaming,
                "entrepot.rag.advisors": [one.name for one in chain.advisors],
            },
        )
        return observation.spanned(replace(chain, span=span).proceed(request), span)

    def _request(self) -> ChatRequest:
        if not self.said:
            msg = "there is nothing to ask"
            raise ConfigurationError(msg, hint="say something by .user(text), or give .messages([...])")
        # A prompt that is asked twice is said twice: its texts are messages of their own each time.
        messages = tuple(_anew(one) if one.id in self.made else one for one in self.said)
        if self.instructions is not None and not any(isinstance(one, SystemMessage) for one in messages):
            messages = (SystemMessage(self.instructions), *messages)
        return ChatRequest(
            messages=messages,
            options=self.how,
            tools=self.offered,
            conversation_id=self.conversation_id,
            context=dict(self.values or {}),
        )


class ChatStream:
    """The pieces of an answer. Iterate over it; `response` is there once it has ended.

    Leaving early ends the request; then nothing of the turn is kept. Close it, or use it in a ``with`` block.
    """

    def __init__(self, pieces: Generator[Chunk, None, ChatResponse]) -> None:
        self._response: ChatResponse | None = None
        self._source = pieces
        self._pieces = self._kept()

    def _kept(self) -> Generator[Chunk]:
        self._response = yield from self._source

    @property
    def response(self) -> ChatResponse:
        """The whole response.

        Raises:
            ConfigurationError: The stream has not ended.
        """
        return _ended(self._response)

    def __iter__(self) -> Iterator[Chunk]:
        return self._pieces

    def __next__(self) -> Chunk:
        """Return the next piece."""
        return next(self._pieces)

    def texts(self) -> Iterator[str]:
        """Iterate over the texts of the pieces alone."""
        return (chunk.text for chunk in self._pieces if chunk.text)

    def close(self) -> None:
        """End the request; idempotent."""
        self._pieces.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class AsyncChatStream:
    """As `ChatStream`, for async code: ``async for``, ``async with``, `aclose`."""

    def __init__(self, pieces: Callable[[Callable[[ChatResponse], None]], AsyncGenerator[Chunk]]) -> None:
        self._response: ChatResponse | None = None
        self._pieces = pieces(self._keep)

    def _keep(self, response: ChatResponse) -> None:
        self._response = response

    @property
    def response(self) -> ChatResponse:
        """The whole response.

        Raises:
            ConfigurationError: The stream has not ended.
        """
        return _ended(self._response)

    def __aiter__(self) -> AsyncIterator[Chunk]:
        return self._pieces

    async def __anext__(self) -> Chunk:
        """Return the next piece."""
        return await anext(self._pieces)

    async def atexts(self) -> AsyncIterator[str]:
        """Iterate over the texts of the pieces alone."""
        async for chunk in self._pieces:
            if chunk.text:
                yield chunk.text

    async def aclose(self) -> None:
        """End the request; idempotent."""
        await self._pieces.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


def _ended(response: ChatResponse | None) -> ChatResponse:
    if response is None:
        msg = "the stream has not ended, so there is no whole response"
        raise ConfigurationError(msg, hint="read it to its end")
    return response


def _tools(tools: Iterable[Tool | Callable[..., Any]]) -> tuple[Tool, ...]:
    made = tuple(one if isinstance(one, Tool) else tool(one) for one in tools)
    names = [one.name for one in made]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        msg = f"two tools are called {', '.join(twice)}"
        raise ConfigurationError(msg, hint="give one of them another name=")
    return made


def _filled(text: str, parameters: Mapping[str, object]) -> str:
    return fill(text, {name: str(value) for name, value in parameters.items()}) if parameters else text


# --- the innermost --------------------------------------------------------------------------------------


def _prompt(request: ChatRequest) -> Prompt:
    return Prompt(
        messages=request.messages,
        options=request.options,
        tools=tuple(one.definition for one in request.tools),
    )


def _anew(message: Message) -> Message:
    return msgspec.structs.replace(message, id=new_id(), created=datetime.now(UTC))


def _own(response: ChatResponse) -> ChatResponse:
    """Return a response whose messages are its own: a model that keeps answers may return one more than once."""
    generations = tuple(
        msgspec.structs.replace(one, message=msgspec.structs.replace(one.message, id=new_id()))
        for one in response.generations
    )
    return msgspec.structs.replace(response, generations=generations)


def _asked(model: ChatModel, request: ChatRequest, chain: Chain) -> Advice[ChatResponse]:
    """Ask the model for a whole answer."""
    prompt = _prompt(request)
    if not is_installed():
        return _own((yield Call(model.call, model.acall, (prompt,), {})))
    span, began = _begun(model, prompt, chain), time.perf_counter()

    def asking() -> Advice[ChatResponse]:
        response = _own((yield Call(model.call, model.acall, (prompt,), {})))
        observation.answered(span, prompt, model.name, response, began)
        return response

    return (yield from observation.spanned(asking(), span))


def _streamed(model: StreamingChatModel, request: ChatRequest, chain: Chain) -> Advice[ChatResponse]:
    """Ask the model for an answer in pieces, emit them, and return the whole."""
    prompt = _prompt(request)
    if not is_installed():
        return (yield from _pieces(model, prompt))
    span, began = _begun(model, prompt, chain), time.perf_counter()

    def asking() -> Advice[ChatResponse]:
        response = yield from _pieces(model, prompt)
        observation.answered(span, prompt, model.name, response, began)
        return response

    return (yield from observation.spanned(asking(), span))


def _begun(model: ChatModel, prompt: Prompt, chain: Chain) -> observation.Span | None:
    name = prompt.options.model or model.name
    return observation.begin(f"chat {name}", observation.asked(prompt, model.name), chain.span, client=True)


def _pieces(model: StreamingChatModel, prompt: Prompt) -> Advice[ChatResponse]:
    source = _Source(model, prompt)
    merger = Merger()
    try:
        while True:
            chunk: Chunk | None = yield Call(source.next, source.anext, (), {})
            if chunk is None:
                break
            merger.add(chunk)
            yield Emit(chunk)
    finally:
        yield Call(source.close, source.aclose, (), {})
    return merger.response()


class _Source:
    """A model's stream in either colour."""

    def __init__(self, model: StreamingChatModel, prompt: Prompt) -> None:
        self._model = model
        self._prompt = prompt
        self._pieces: Iterator[Chunk] | None = None
        self._apieces: AsyncIterator[Chunk] | None = None

    def next(self) -> Chunk | None:
        if self._pieces is None:
            self._pieces = iter(self._model.stream(self._prompt))
        return next(self._pieces, None)

    async def anext(self) -> Chunk | None:
        if self._apieces is None:
            self._apieces = aiter(self._model.astream(self._prompt))
        return await anext(self._apieces, None)

    def close(self) -> None:
        close = getattr(self._pieces, "close", None)
        if close is not None:
            close()

    async def aclose(self) -> None:
        close = getattr(self._apieces, "aclose", None)
        if close is not None:
            await close()
