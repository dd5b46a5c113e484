"""Answers of a type."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, Literal

import msgspec
import pydantic
import pytest

from entrepot import InMemoryChatMemoryRepository
from entrepot.errors import ConfigurationError
from entrepot.messages import ToolResponseMessage
from entrepot_rag import ChatClient, MessageChatMemoryAdvisor, ScriptedChatModel, StructuredOutputError
from entrepot_rag.models.scripted import asking


class City(msgspec.Struct):
    """A city."""

    name: str
    people: Annotated[int, msgspec.Meta(ge=0)]
    kind: Literal["capital", "other"] = "other"


GOOD = '{"name": "Sofia", "people": 1200000}'


def both(client: ChatClient, kind: Any, **options: Any) -> list[Any]:
    """Ask in both colours."""
    prompt = client.prompt("Tell me of Sofia.").conversation("c")
    return [prompt.structured(kind, **options), asyncio.run(prompt.astructured(kind, **options))]


@pytest.mark.parametrize("text", [GOOD, f"```json\n{GOOD}\n```", f"\n```\n{GOOD}\n```\n", f"  {GOOD}  "])
def test_an_answer_becomes_a_value(text: str) -> None:
    model = ScriptedChatModel([text] * 2)
    assert both(ChatClient(model, system="Be brief."), City) == [City("Sofia", 1_200_000)] * 2
    system = model.prompts[0].messages[0].text
    assert system.startswith("Be brief.\n\nAnswer with one JSON value")
    schema = msgspec.json.decode(system.split("schema:\n")[1])
    assert schema["required"] == ["name", "people"]


def test_types_that_are_no_structs() -> None:
    assert ChatClient(ScriptedChatModel(["[1, 2]"])).prompt("q").structured(list[int]) == [1, 2]


def test_an_answer_that_does_not_fit_is_asked_for_again() -> None:
    model = ScriptedChatModel(['{"name": "Sofia", "people": -1}', "no json", GOOD])
    repository = InMemoryChatMemoryRepository()
    client = ChatClient(model, advisors=[MessageChatMemoryAdvisor(repository)])
    assert client.prompt("Tell me.").conversation("c").structured(City) == City("Sofia", 1_200_000)
    repairs = [prompt.messages[-1].text for prompt in model.prompts[1:]]
    assert "people" in repairs[0]
    assert "malformed" in repairs[1]
    assert [len(prompt.messages) for prompt in model.prompts] == [2, 4, 4]
    assert [one.text for one in repository.messages("c")] == ["Tell me.", GOOD]


def test_repairs_are_bounded() -> None:
    model = ScriptedChatModel(["no"] * 6)
    for repairs, answers in [(2, 3), (0, 1)]:
        with pytest.raises(StructuredOutputError, match=f"after {answers} answer") as caught:
            ChatClient(model).prompt("q").structured(City, repairs=repairs)
        assert (caught.value.text, caught.value.attempts) == ("no", answers)
        assert isinstance(caught.value.__cause__, ValueError)


def test_tools_are_called_on_the_way() -> None:
    def people(city: str) -> int:
        return len(city) * 100

    model = ScriptedChatModel([asking("people", {"city": "Sofia"}), '{"name": "Sofia", "people": 500}'])
    assert ChatClient(model, tools=[people]).prompt("q").structured(City).people == 500


def test_types_that_no_json_has_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="no JSON"):
        ChatClient(ScriptedChatModel([])).prompt("q").structured(complex)
    with pytest.raises(ConfigurationError, match="repairs"):
        ChatClient(ScriptedChatModel([])).prompt("q").structured(City, repairs=-1)


class Town(pydantic.BaseModel):
    """A town."""

    name: str
    people: int = pydantic.Field(ge=0)


def test_models_of_pydantic() -> None:
    model = ScriptedChatModel(['{"name": "Sofia", "people": -1}', '{"name": "Sofia", "people": 5}'])
    assert ChatClient(model).prompt("q").structured(Town) == Town(name="Sofia", people=5)
    schema = msgspec.json.decode(model.prompts[0].messages[0].text.split("schema:\n")[1])
    assert schema["properties"]["people"]["minimum"] == 0
    assert "people" in model.prompts[1].messages[-1].text


def test_tools_take_and_return_models_of_pydantic() -> None:
    def grow(town: Town, by: int) -> Town:
        return Town(name=town.name, people=town.people + by)

    arguments = {"town": {"name": "Sofia", "people": 5}, "by": 2}
    model = ScriptedChatModel(
        [asking("grow", arguments), asking("grow", {"town": {"name": 1}, "by": 2}), "done"]
    )
    response = ChatClient(model, tools=[grow]).prompt("q").call()
    texts = [one.responses[0].text for one in response.exchange if isinstance(one, ToolResponseMessage)]
    assert texts[0] == '{"name":"Sofia","people":7}'
    assert texts[1].startswith("Error:")
