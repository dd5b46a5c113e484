"""The client: prompts, order of advisors, four ways to ask, errors and cancellation on the way."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from entrepot.errors import ConfigurationError, UnsupportedError
from entrepot.messages import AssistantMessage, SystemMessage, UserMessage
from entrepot_rag import (
    BaseAdvisor,
    ChatClient,
    ChatModelError,
    ChatOptions,
    FunctionAdvisor,
    MessageChatMemoryAdvisor,
    ScriptedChatModel,
    ToolCallingAdvisor,
    Usage,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from entrepot.messages import Message
    from entrepot_rag import ChatPrompt, ChatRequest, ChatResponse
    from entrepot_rag.advice import Advice
    from entrepot_rag.requests import Chain

    Ask = Callable[[ChatPrompt], ChatResponse]


class Noting(BaseAdvisor):
    """Notes when it is passed."""

    def __init__(self, name: str, notes: list[str], order: int = 0) -> None:
        super().__init__(order=order, name=name)
        self.notes = notes

    def advise(self, request: ChatRequest, chain: Chain) -> Advice[ChatResponse]:
        """Note the way in, the way out, and how it ended."""
        self.notes.append(f"{self.name} in")
        try:
            response = yield from chain.proceed(request)
        except BaseException as error:
            self.notes.append(f"{self.name} {type(error).__name__}")
            raise
        self.notes.append(f"{self.name} out")
        return response


def test_a_prompt_is_made_of_its_parts(ask: Ask) -> None:
    model = ScriptedChatModel(["An answer of words."])
    client = ChatClient(model, system="Be kind.", options=ChatOptions(temperature=0.5, max_tokens=5))
    response = ask(client.prompt().user("Hello").options(temperature=0.1, extra={"a": 1}))
    (prompt,) = model.prompts
    assert [(one.role.value, one.text) for one in prompt.messages] == [
        ("system", "Be kind."),
        ("user", "Hello"),
    ]
    assert prompt.options == ChatOptions(temperature=0.1, max_tokens=5, extra={"a": 1})
    assert response.text == "An answer of words."
    assert response.usage == Usage(3, 4)
    assert response.finish_reason == "stop"


def test_a_prompt_is_a_value() -> None:
    model = ScriptedChatModel(lambda prompt: prompt.messages[-1].text)
    base = ChatClient(model).prompt()
    one, other = base.user("one"), base.user("other")
    assert (one.text(), other.text(), one.user("more").text()) == ("one", "other", "more")
    assert len(model.prompts[-1].messages) == 2


def test_instructions_of_the_prompt_win() -> None:
    model = ScriptedChatModel(["x"] * 2)
    client = ChatClient(model, system="general")
    client.prompt("q").system("in {tongue}", tongue="Dutch").call()
    client.prompt().messages([SystemMessage("given"), UserMessage("q")]).call()
    assert [prompt.messages[0].text for prompt in model.prompts] == ["in Dutch", "given"]


def test_nothing_to_ask_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="nothing to ask"):
        ChatClient(ScriptedChatModel([])).prompt().call()


def test_an_unknown_option_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="temprature") as caught:
        ChatClient(ScriptedChatModel([])).prompt("q").options(temprature=1)
    assert "temperature" in caught.value.hint


def test_advisors_stand_in_order(ask: Ask) -> None:
    notes: list[str] = []
    advisors = [Noting("b", notes, 1), Noting("a", notes, -1), Noting("c", notes, 1)]
    client = ChatClient(ScriptedChatModel(["x"]), advisors=advisors)
    ask(client.prompt("q").advisors(Noting("d", notes, 1)))
    assert notes == ["a in", "b in", "c in", "d in", "d out", "c out", "b out", "a out"]


def test_functions_before_and_after(ask: Ask) -> None:
    def before(request: ChatRequest) -> ChatRequest:
        return request.with_question("changed")

    def after(request: ChatRequest, response: ChatResponse) -> ChatResponse:
        assert request.question is not None
        return msgspec.structs.replace(response, context={"asked": request.question.text})

    model = ScriptedChatModel(["x"])
    client = ChatClient(model, advisors=[FunctionAdvisor(before, after)])
    assert ask(client.prompt("q")).context == {"asked": "changed"}
    assert model.prompts[0].messages[-1].text == "changed"


def test_async_functions_are_for_async_code() -> None:
    async def before(request: ChatRequest) -> ChatRequest:
        await asyncio.sleep(0)
        return request.with_question("changed")

    model = ScriptedChatModel(lambda prompt: prompt.messages[-1].text)
    client = ChatClient(model, advisors=[FunctionAdvisor(before)])
    assert asyncio.run(client.prompt("q").atext()) == "changed"
    with pytest.raises(ConfigurationError, match="async"):
        client.prompt("q").text()


def test_errors_pass_through_all_advisors(ask: Ask) -> None:
    notes: list[str] = []
    client = ChatClient(
        ScriptedChatModel([ChatModelError("down")]), advisors=[Noting("a", notes), Noting("b", notes)]
    )
    with pytest.raises(ChatModelError, match="down"):
        ask(client.prompt("q"))
    assert notes == ["a in", "b in", "b ChatModelError", "a ChatModelError"]


def test_an_advisor_may_answer_for_a_failure(ask: Ask) -> None:
    class Twice(BaseAdvisor):
        def advise(self, request: ChatRequest, chain: Chain) -> Advice[ChatResponse]:
            try:
                return (yield from chain.proceed(request))
            except ChatModelError:
                return (yield from chain.proceed(request))

    client = ChatClient(ScriptedChatModel([ChatModelError("down"), "up"]), advisors=[Twice()])
    assert ask(client.prompt("q")).text == "up"


def test_leaving_a_stream_tells_advisors_and_ends_the_request() -> None:
    notes: list[str] = []
    client = ChatClient(ScriptedChatModel(["a long answer of many words"]), advisors=[Noting("a", notes)])
    stream = client.prompt("q").stream()
    assert next(stream).text == "a long a"
    with pytest.raises(ConfigurationError, match="not ended"):
        _ = stream.response
    stream.close()
    stream.close()
    assert notes == ["a in", "a StreamClosedError"]


def test_leaving_an_async_stream_does_too() -> None:
    notes: list[str] = []
    client = ChatClient(ScriptedChatModel(["a long answer of many words"]), advisors=[Noting("a", notes)])

    async def left() -> None:
        async with client.prompt("q").astream() as stream:
            async for chunk in stream:
                assert chunk.text == "a long a"
                break

    asyncio.run(left())
    assert notes == ["a in", "a StreamClosedError"]


def test_cancelling_passes_through_all_advisors() -> None:
    notes: list[str] = []

    asked: asyncio.Event

    async def never(prompt: Any) -> str:
        asked.set()
        await asyncio.Event().wait()
        return str(prompt)

    client = ChatClient(ScriptedChatModel(never), advisors=[Noting("a", notes)])

    async def cancelled(call: Any) -> None:
        nonlocal asked
        asked = asyncio.Event()
        task = asyncio.ensure_future(call)
        await asked.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    async def read() -> None:
        async for _ in client.prompt("q").astream():
            pass

    asyncio.run(cancelled(client.prompt("q").acall()))
    assert notes == ["a in", "a CancelledError"]
    notes.clear()
    asyncio.run(cancelled(read()))
    assert notes == ["a in", "a CancelledError"]


def test_a_model_that_does_not_stream_says_so() -> None:
    class Plain:
        name = "plain"

        def call(self, prompt: Any, /) -> ChatResponse:
            return ScriptedChatModel(["x"]).call(prompt)

        async def acall(self, prompt: Any, /) -> ChatResponse:
            return self.call(prompt)

    client = ChatClient(Plain())
    assert client.prompt("q").text() == "x"
    with pytest.raises(UnsupportedError, match="does not stream"):
        client.prompt("q").stream()


def test_two_that_call_tools_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="both call tools"):
        ChatClient(ScriptedChatModel([]), advisors=[ToolCallingAdvisor(), ToolCallingAdvisor(name="other")])


def test_a_memory_inside_of_rounds_is_refused() -> None:
    from entrepot import open_chat_memory

    with open_chat_memory("sql+sqlite://") as memory:
        advisor = MessageChatMemoryAdvisor(memory, order=50)
        with pytest.raises(ConfigurationError, match="rounds and not turns"):
            ChatClient(ScriptedChatModel([]), advisors=[advisor])
        client = ChatClient(ScriptedChatModel(["x"]), advisors=[advisor], call_tools=False)
        assert client.prompt("q").conversation("c").text() == "x"


def test_messages_of_any_kind_go_to_the_model(ask: Ask) -> None:
    said: list[Message] = [UserMessage("a"), AssistantMessage("b"), UserMessage("c")]
    model = ScriptedChatModel(["x"])
    ask(ChatClient(model).prompt().messages(said))
    assert list(model.prompts[0].messages) == said


def test_a_script_that_is_at_its_end_says_so(ask: Ask) -> None:
    with pytest.raises(ChatModelError, match="no answer to request 1"):
        ask(ChatClient(ScriptedChatModel([])).prompt("q"))
