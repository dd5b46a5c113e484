"""Conversations: whole turns or nothing, whatever happens on the way."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING

import pytest

from entrepot import InMemoryChatMemoryRepository, MessageWindowChatMemory, open_chat_memory
from entrepot.errors import BackendError, ConfigurationError
from entrepot.messages import AssistantMessage, Message, Role, SystemMessage, ToolResponseMessage, UserMessage
from entrepot_rag import (
    ChatClient,
    ChatModelError,
    Executor,
    FunctionAdvisor,
    MessageChatMemoryAdvisor,
    ScriptedChatModel,
    ToolCallingAdvisor,
    ToolError,
)
from entrepot_rag.models.scripted import asking, echo

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from entrepot_rag import ChatPrompt, ChatRequest, ChatResponse
    from entrepot_rag.chat import Prompt
    from entrepot_rag.models.scripted import Answer

    Ask = Callable[[ChatPrompt], ChatResponse]


def double(n: int) -> int:
    """Double a number."""
    return 2 * n


def shape(messages: Sequence[Message]) -> list[tuple[str, str]]:
    """Return who said what."""
    return [(one.role.value, one.text) for one in messages]


def test_the_second_turn_sees_the_first(ask: Ask) -> None:
    repository = InMemoryChatMemoryRepository()
    model = ScriptedChatModel(["Hi Ann.", "Ann."])
    client = ChatClient(model, system="Be short.", advisors=[MessageChatMemoryAdvisor(repository)])
    ask(client.prompt("I am Ann.").conversation("c"))
    ask(client.prompt("Who am I?").conversation("c"))
    ask(
        ChatClient(ScriptedChatModel(["?"]), advisors=[MessageChatMemoryAdvisor(repository)])
        .prompt("x")
        .conversation("d")
    )
    assert shape(model.prompts[1].messages) == [
        ("system", "Be short."), ("user", "I am Ann."), ("assistant", "Hi Ann."), ("user", "Who am I?"),
    ]  # fmt: skip
    assert shape(repository.messages("c")) == [
        ("user", "I am Ann."), ("assistant", "Hi Ann."), ("user", "Who am I?"), ("assistant", "Ann."),
    ]  # fmt: skip
    assert shape(repository.messages("d")) == [("user", "x"), ("assistant", "?")]


def test_calls_of_tools_are_kept(ask: Ask) -> None:
    repository = InMemoryChatMemoryRepository()
    model = ScriptedChatModel([asking("double", {"n": 2}), "It is 4.", "Twice."])
    client = ChatClient(model, tools=[double], advisors=[MessageChatMemoryAdvisor(repository)])
    response = ask(client.prompt("Double 2.").conversation("c"))
    kept = repository.messages("c")
    assert [one.role for one in kept] == [Role.USER, Role.ASSISTANT, Role.TOOL, Role.ASSISTANT]
    assert kept[1:3] == list(response.exchange)
    ask(client.prompt("How?").conversation("c"))
    assert list(model.prompts[2].messages[:4]) == kept


def test_a_history_is_not_doubled(ask: Ask) -> None:
    repository = InMemoryChatMemoryRepository()
    model = ScriptedChatModel(echo)
    client = ChatClient(model, advisors=[MessageChatMemoryAdvisor(repository)])
    ask(client.prompt("one").conversation("c"))
    ask(client.prompt().messages(repository.messages("c")).user("two").conversation("c"))
    assert [one.text for one in model.prompts[1].messages] == ["one", "You said: one", "two"]
    assert len(repository.messages("c")) == 4


def test_the_conversations_own_instructions_stand_first(ask: Ask) -> None:
    repository = InMemoryChatMemoryRepository()
    repository.append("c", [UserMessage("a"), SystemMessage("kept"), AssistantMessage("b")])
    model = ScriptedChatModel(["x", "y"])
    client = ChatClient(model, advisors=[MessageChatMemoryAdvisor(repository)])
    ask(client.prompt("q").conversation("c"))
    ask(client.prompt("q").system("given").conversation("c"))
    assert shape(model.prompts[0].messages)[:2] == [("system", "kept"), ("user", "a")]
    assert [one.text for one in model.prompts[1].messages if one.role is Role.SYSTEM] == ["given"]
    assert model.prompts[1].messages[0].text == "given"
    assert [one.text for one in repository.messages("c") if one.role is Role.SYSTEM] == ["kept"]


def test_what_other_advisors_make_of_the_question_is_not_kept(ask: Ask) -> None:
    repository = InMemoryChatMemoryRepository()

    def before(request: ChatRequest) -> ChatRequest:
        return request.with_question("with documents")

    model = ScriptedChatModel(["x"])
    client = ChatClient(model, advisors=[FunctionAdvisor(before), MessageChatMemoryAdvisor(repository)])
    ask(client.prompt("plain").conversation("c"))
    assert model.prompts[0].messages[-1].text == "with documents"
    assert repository.messages("c")[0].text == "plain"


def test_a_conversation_must_be_named(ask: Ask) -> None:
    client = ChatClient(
        ScriptedChatModel(["x"]), advisors=[MessageChatMemoryAdvisor(InMemoryChatMemoryRepository())]
    )
    with pytest.raises(ConfigurationError, match="which conversation"):
        ask(client.prompt("q"))


def test_a_turn_that_fails_is_not_kept(ask: Ask) -> None:
    repository = InMemoryChatMemoryRepository()
    script: list[Answer] = [ChatModelError("down"), asking("double", {"n": 1}), ChatModelError("down"), "up"]
    client = ChatClient(
        ScriptedChatModel(script), tools=[double], advisors=[MessageChatMemoryAdvisor(repository)]
    )
    for _ in range(2):
        with pytest.raises(ChatModelError):
            ask(client.prompt("q").conversation("c"))
        assert repository.messages("c") == []
    ask(client.prompt("q").conversation("c"))
    assert shape(repository.messages("c")) == [("user", "q"), ("assistant", "up")]


def test_a_stream_that_is_left_is_not_kept() -> None:
    repository = InMemoryChatMemoryRepository()
    client = ChatClient(
        ScriptedChatModel(["many words to read"] * 2), advisors=[MessageChatMemoryAdvisor(repository)]
    )
    with client.prompt("q").conversation("c").stream() as stream:
        next(stream)
    assert repository.messages("c") == []

    async def left() -> None:
        async with client.prompt("q").conversation("c").astream() as stream:
            await anext(stream)

    asyncio.run(left())
    assert repository.messages("c") == []


def test_a_prompt_that_is_asked_twice_is_said_twice(ask: Ask) -> None:
    repository = InMemoryChatMemoryRepository()
    model = ScriptedChatModel(["one", "two"])
    prompt = (
        ChatClient(model, advisors=[MessageChatMemoryAdvisor(repository)]).prompt("again").conversation("c")
    )
    ask(prompt)
    ask(prompt)
    assert shape(repository.messages("c")) == [
        ("user", "again"), ("assistant", "one"), ("user", "again"), ("assistant", "two"),
    ]  # fmt: skip
    assert model.prompts[1].messages[-1].text == "again"


def test_an_answer_that_a_model_gives_twice_is_kept_twice(ask: Ask) -> None:
    repository = InMemoryChatMemoryRepository()
    same = AssistantMessage("same")
    client = ChatClient(ScriptedChatModel([same, same]), advisors=[MessageChatMemoryAdvisor(repository)])
    ask(client.prompt("a").conversation("c"))
    ask(client.prompt("b").conversation("c"))
    assert [one.text for one in repository.messages("c")] == ["a", "same", "b", "same"]


def test_a_window_can_be_given(ask: Ask) -> None:
    repository = InMemoryChatMemoryRepository()
    model = ScriptedChatModel(echo)
    advisor = MessageChatMemoryAdvisor(MessageWindowChatMemory(repository, max_messages=2))
    client = ChatClient(model, advisors=[advisor])
    for number in range(3):
        ask(client.prompt(str(number)).conversation("c"))
    assert [one.text for one in model.prompts[-1].messages] == ["1", "You said: 1 (after 1 earlier)", "2"]


class Failing(InMemoryChatMemoryRepository):
    """Fails when it is told to."""

    fails = False

    def append(self, conversation_id: str, messages: Sequence[Message]) -> None:
        if self.fails:
            msg = "the memory is gone"
            raise BackendError(msg)
        super().append(conversation_id, messages)

    async def aappend(self, conversation_id: str, messages: Sequence[Message]) -> None:
        self.append(conversation_id, messages)


def test_a_turn_that_cannot_be_kept_is_an_error(ask: Ask) -> None:
    repository = Failing()
    client = ChatClient(ScriptedChatModel(["x"]), advisors=[MessageChatMemoryAdvisor(repository)])
    repository.fails = True
    with pytest.raises(BackendError, match="gone"):
        ask(client.prompt("q").conversation("c"))


@pytest.mark.parametrize("seed", range(4))
def test_random_histories_keep_whole_turns(seed: int, ask: Ask) -> None:
    """With failing models, failing tools and streams that are left."""
    rng = random.Random(seed)
    with open_chat_memory("sql+sqlite://") as repository:
        expected: list[str] = []
        client = ChatClient(
            ScriptedChatModel(lambda prompt: _random_answer(rng, prompt)),
            tools=[double, _broken],
            advisors=[
                MessageChatMemoryAdvisor(repository),
                ToolCallingAdvisor(executor=Executor(failures="raise" if seed % 2 else "answer")),
            ],
        )
        for number in range(60):
            prompt = client.prompt(f"q{number}").conversation("c")
            try:
                if rng.random() < 0.2:
                    with prompt.stream() as stream:
                        next(stream, None)
                    continue
                ask(prompt)
            except (ChatModelError, ToolError):
                pass
            else:
                expected.append(f"q{number}")
        kept = repository.messages("c")
        assert [one.text for one in kept if one.role is Role.USER] == expected
        for turn in _turns(kept):
            assert turn[0].role is Role.USER
            last = turn[-1]
            assert isinstance(last, AssistantMessage)
            assert not last.tool_calls
            for asked, answered in zip(turn[1:-1:2], turn[2:-1:2], strict=True):
                assert isinstance(asked, AssistantMessage)
                assert isinstance(answered, ToolResponseMessage)
                assert [call.id for call in asked.tool_calls] == [one.id for one in answered.responses]


def _broken() -> str:
    """Fail."""
    msg = "broken"
    raise RuntimeError(msg)


def _random_answer(rng: random.Random, prompt: Prompt) -> AssistantMessage | str | Exception:
    draw = rng.random()
    if draw < 0.15:
        return ChatModelError("down")
    if draw < 0.5:
        calls: list[tuple[str, dict[str, object]]] = [
            ("double", {"n": 1}),
            ("_broken", {}),
            ("double", {"n": "x"}),
        ]
        name, arguments = rng.choice(calls)
        return asking(name, arguments, id=f"c{len(prompt.messages)}")
    return f"answer to {prompt.messages[-1].text}"


def _turns(messages: Sequence[Message]) -> list[list[Message]]:
    turns: list[list[Message]] = []
    for one in messages:
        if one.role is Role.USER:
            turns.append([])
        turns[-1].append(one)
    return turns
