"""Rounds of tool calls."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest

from entrepot.errors import ConfigurationError
from entrepot.messages import AssistantMessage, ToolCall, ToolResponse, ToolResponseMessage
from entrepot_rag import (
    ChatClient,
    Executor,
    ScriptedChatModel,
    ToolCallingAdvisor,
    ToolContext,
    ToolError,
    ToolLimitError,
    ToolLimits,
    Usage,
    tool,
)
from entrepot_rag.models.scripted import asking

if TYPE_CHECKING:
    from collections.abc import Callable

    from entrepot_rag import ChatPrompt, ChatResponse

    Ask = Callable[[ChatPrompt], ChatResponse]


def double(n: int) -> int:
    """Double a number."""
    return 2 * n


async def later(n: int) -> int:
    """Double a number, in its own time."""
    return 2 * n


def fails(n: int) -> int:
    """Fail."""
    msg = f"no {n} today"
    raise RuntimeError(msg)


def several(*calls: tuple[str, str, str]) -> AssistantMessage:
    """Return an answer with several calls."""
    return AssistantMessage("", tool_calls=tuple(ToolCall(*call) for call in calls))


def test_rounds_go_on_until_there_is_an_answer(ask: Ask) -> None:
    model = ScriptedChatModel(
        [asking("double", {"n": 2}, text="Let me see."), asking("later", {"n": 4}, id="call_2"), "It is 8."]
    )
    response = ask(ChatClient(model, tools=[double, later]).prompt("4 times 2?"))
    assert response.text == "It is 8."
    assert [type(one).__name__ for one in response.exchange] == [
        "AssistantMessage", "ToolResponseMessage", "AssistantMessage", "ToolResponseMessage",
    ]  # fmt: skip
    answers = [one.responses for one in response.exchange if isinstance(one, ToolResponseMessage)]
    assert answers == [(ToolResponse("call_1", "double", "4"),), (ToolResponse("call_2", "later", "8"),)]
    assert [len(prompt.messages) for prompt in model.prompts] == [1, 3, 5]
    assert response.usage == Usage(3 + 6 + 6, 4 + 1 + 3)
    assert [one.name for one in model.prompts[0].tools] == ["double", "later"]


def test_pieces_of_calls_do_not_reach_the_caller() -> None:
    model = ScriptedChatModel([asking("double", {"n": 2}, text="Let me see. "), "It is 4."])
    stream = ChatClient(model, tools=[double]).prompt("q").stream()
    chunks = list(stream)
    assert not any(chunk.fragments for chunk in chunks)
    assert "".join(chunk.text for chunk in chunks) == "Let me see. It is 4."
    assert [chunk.finish_reason for chunk in chunks if chunk.finish_reason] == ["stop"]
    assert stream.response.text == "It is 4."


def test_calls_run_at_once_and_answer_in_order(ask: Ask) -> None:
    both = threading.Barrier(2, timeout=30)

    def wait(n: int) -> int:
        both.wait()
        return n

    model = ScriptedChatModel([several(("a", "wait", '{"n": 1}'), ("b", "wait", '{"n": 2}')), "done"])
    response = ask(ChatClient(model, tools=[wait]).prompt("q"))
    (answered,) = [one for one in response.exchange if isinstance(one, ToolResponseMessage)]
    assert answered.responses == (ToolResponse("a", "wait", "1"), ToolResponse("b", "wait", "2"))


def test_unknown_failing_and_misused_tools_are_answered_to_the_model(ask: Ask) -> None:
    model = ScriptedChatModel(
        [several(("a", "what", "{}"), ("b", "fails", '{"n": 1}'), ("c", "double", '{"n": "x"}')), "done"]
    )
    response = ask(ChatClient(model, tools=[double, fails]).prompt("q"))
    (answered,) = [one for one in response.exchange if isinstance(one, ToolResponseMessage)]
    unknown, failed, misused = (one.text for one in answered.responses)
    assert unknown == "Error: there is no tool 'what'. Tools: double, fails"
    assert failed == "Error: no 1 today"
    assert misused.startswith("Error: Expected `int`")


def test_failures_can_be_raised(ask: Ask) -> None:
    model = ScriptedChatModel([several(("a", "double", '{"n": 1}'), ("b", "fails", '{"n": 1}'))])
    advisor = ToolCallingAdvisor(executor=Executor(failures="raise"))
    with pytest.raises(ToolError, match="'fails' failed") as caught:
        ask(ChatClient(model, tools=[double, fails], advisors=[advisor]).prompt("q"))
    assert isinstance(caught.value.__cause__, RuntimeError)


def test_answers_go_to_the_caller_if_all_tools_say_so(ask: Ask) -> None:
    direct = tool(return_direct=True)(double)
    calls = several(("a", "double", '{"n": 1}'), ("b", "double", '{"n": 2}'))
    response = ask(ChatClient(ScriptedChatModel([calls]), tools=[direct]).prompt("q"))
    assert (response.text, response.finish_reason) == ("2\n4", "return_direct")
    assert len(response.exchange) == 2
    mixed = several(("a", "double", '{"n": 1}'), ("b", "later", '{"n": 2}'))
    response = ask(ChatClient(ScriptedChatModel([mixed, "said"]), tools=[direct, later]).prompt("q"))
    assert response.text == "said"


def test_tools_know_the_turn(ask: Ask) -> None:
    seen: list[ToolContext] = []

    def note(info: ToolContext) -> str:
        seen.append(info)
        return "noted"

    model = ScriptedChatModel([asking("note"), "done"])
    prompt = ChatClient(model, tools=[note]).prompt("q").conversation("c").context(user="Ann")
    ask(prompt)
    (info,) = seen
    assert (info.conversation_id, dict(info.values), info.call.name) == ("c", {"user": "Ann"}, "note")
    assert [one.text for one in info.messages] == ["q", ""]


def test_a_turn_makes_so_many_calls_and_no_more(ask: Ask) -> None:
    """40 of one tool and 150 in all, unless told otherwise."""
    one, ten = [tool(double)], [tool(name=f"t{n}")(double) for n in range(10)]
    for tools, limit, name in [(one, 40, "double"), (ten, 150, None)]:
        entries = [asking(tools[n % len(tools)].name, {"n": n}) for n in range(limit + 1)]
        model = ScriptedChatModel(entries)
        with pytest.raises(ToolLimitError) as caught:
            ask(ChatClient(model, tools=tools).prompt("q"))
        assert (caught.value.tool, caught.value.limit) == (name, limit)
        assert len(model.prompts) == limit + 1


def test_the_model_can_be_told_of_the_limit(ask: Ask) -> None:
    limits = ToolLimits(per_tool=2, tools={"later": None}, policy="answer")
    calls = [
        several(
            ("a", "double", '{"n": 1}'),
            ("b", "double", '{"n": 2}'),
            ("c", "double", '{"n": 3}'),
            ("d", "later", '{"n": 4}'),
        )
    ]
    model = ScriptedChatModel([*calls, "enough"])
    response = ask(
        ChatClient(model, tools=[double, later], advisors=[ToolCallingAdvisor(limits=limits)]).prompt("q")
    )
    (answered,) = [one for one in response.exchange if isinstance(one, ToolResponseMessage)]
    assert [one.text for one in answered.responses] == [
        "2", "4", "Error: a turn may make 2 calls of double, and has made them. Answer with what you know.", "8",
    ]  # fmt: skip
    stubborn = ScriptedChatModel(lambda prompt: asking("double", {"n": len(prompt.messages)}))
    with pytest.raises(ToolLimitError, match="3 rounds"):
        ask(ChatClient(stubborn, tools=[double], advisors=[ToolCallingAdvisor(limits=limits)]).prompt("q"))
    assert len(stubborn.prompts) == 2 + 3 + 1


def test_calls_can_be_left_to_the_caller(ask: Ask) -> None:
    response = ask(
        ChatClient(ScriptedChatModel([asking("double", {"n": 1})]), tools=[double], call_tools=False).prompt(
            "q"
        )
    )
    assert [call.name for call in response.tool_calls] == ["double"]


def test_two_tools_of_one_name_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="double"):
        ChatClient(ScriptedChatModel([]), tools=[double, tool(name="double")(later)])
    prompt = ChatClient(ScriptedChatModel([]), tools=[double]).prompt("q").tools(tool(name="double")(later))
    assert [one.function for one in prompt.offered] == [later]


@pytest.mark.parametrize(
    "bad", [{"per_tool": -1}, {"total": True}, {"policy": "what"}, {"tools": {"a": 1.5}}]
)
def test_wrong_limits_are_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        ToolLimits(**bad)


@pytest.mark.parametrize("bad", [{"parallel": 0}, {"parallel": 33}, {"failures": "what"}])
def test_wrong_executors_are_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        Executor(**bad)
