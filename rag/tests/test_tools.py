"""Tools made of functions: what the model is told, and how its arguments are checked."""

from __future__ import annotations

import asyncio
from datetime import date
from typing import Annotated, Any, Literal, cast

import msgspec
import pytest

from entrepot.messages import ToolCall
from entrepot_rag import Tool, ToolContext, ToolError, tool
from entrepot_rag.tools.tool import made


class Place(msgspec.Struct):
    """Where it is."""

    city: str
    country: str | None = None


def forecast(place: Place, days: int = 1, unit: Literal["C", "F"] = "C", *, tags: list[str] = []) -> str:  # noqa: B006
    """Tell the weather.

    Of the coming days.

    Args:
        place: Where.
        days: How many
            days.
        unit (str): Degrees.

    Returns:
        A sentence.
    """
    tags.append("seen")
    return f"{place.city}: {days * 10} {unit} {len(tags)}"


def context(arguments: str, **values: Any) -> ToolContext:
    """Return the context of a call with these arguments."""
    return ToolContext(call=ToolCall("c1", "t", arguments), values=values)


def test_a_schema_comes_from_annotations_and_docstring() -> None:
    made = tool(forecast)
    assert made.definition.name == "forecast"
    assert made.definition.description == "Tell the weather.\n\nOf the coming days."
    parameters = made.definition.parameters
    assert parameters["type"] == "object"
    assert parameters["required"] == ["place"]
    assert parameters["additionalProperties"] is False
    properties = parameters["properties"]
    assert properties["days"] == {"type": "integer", "description": "How many days.", "default": 1}
    assert properties["unit"] == {"enum": ["C", "F"], "description": "Degrees.", "default": "C"}
    assert properties["place"]["description"] == "Where."
    assert parameters["$defs"]["Place"]["required"] == ["city"]


def test_arguments_are_checked_and_converted() -> None:
    made = tool(forecast)
    assert made.run(context('{"place": {"city": "Sofia"}, "days": 2}')) == "Sofia: 20 C 1"
    assert made.run(context('{"place": {"city": "Sofia"}}')) == "Sofia: 10 C 1"  # a default is made anew


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ('{"place": {"city": 1}}', "place.city"),
        ("{}", "place"),
        ('{"place": {"city": "x"}, "else": 1}', "else"),
        ('{"place": {"city": "x"}, "unit": "K"}', "unit"),
        ("not json", "malformed"),
        ('{"place": {"city": "x"}', "truncated"),
    ],
)
def test_what_does_not_fit_is_told(arguments: str, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        tool(forecast).run(context(arguments))


def test_no_arguments_are_an_empty_object() -> None:
    made = tool(name="now")(lambda: "noon")
    assert made.run(context("")) == made.run(context("  ")) == made.run(context("{}")) == "noon"


def test_the_context_is_filled_in_and_hidden() -> None:
    def who(greeting: str, info: ToolContext) -> str:
        return f"{greeting} {info.values['user']} {info.call.id}"

    made = tool(who)
    assert list(made.definition.parameters["properties"]) == ["greeting"]
    assert made.run(context('{"greeting": "Hi"}', user="Ann")) == "Hi Ann c1"
    with pytest.raises(ValueError, match="info"):
        made.run(context('{"greeting": "Hi", "info": {}}'))


def test_async_functions_work_in_both_colours() -> None:
    async def later(n: int) -> int:
        await asyncio.sleep(0)
        return n + 1

    made = tool(later)
    assert made.is_async
    assert made.run(context('{"n": 1}')) == "2"
    assert asyncio.run(made.arun(context('{"n": 1}'))) == "2"


def test_answers_are_text_or_json() -> None:
    def place() -> Place:
        return Place("Sofia")

    def day() -> date:
        return date(2026, 1, 2)

    def nothing() -> None:
        return None

    assert tool(place).run(context("")) == '{"city":"Sofia","country":null}'
    assert tool(day).run(context("")) == '"2026-01-02"'
    assert tool(nothing).run(context("")) == "null"


def test_annotated_descriptions_win() -> None:
    def f(a: Annotated[int, msgspec.Meta(description="From the annotation.", ge=0)]) -> str:
        """F.

        Args:
            a: From the docstring.
        """
        return str(a)

    made = tool(f)
    assert made.definition.parameters["properties"]["a"] == {
        "type": "integer",
        "minimum": 0,
        "description": "From the annotation.",
    }
    with pytest.raises(ValueError, match=">= 0"):
        made.run(context('{"a": -1}'))


def test_names_and_descriptions_can_be_given() -> None:
    @tool(name="other", description="Does it.", return_direct=True)
    def f(a: int) -> int:
        return a

    assert isinstance(f, Tool)
    assert (f.name, f.definition.description, f.return_direct) == ("other", "Does it.", True)


def test_what_cannot_be_a_tool_is_refused() -> None:
    def untyped(a: object) -> str:
        return str(a)

    del untyped.__annotations__["a"]

    def many(*a: int) -> str:
        return str(a)

    def keyed(**a: int) -> str:
        return str(a)

    def complexity(a: complex) -> str:
        return str(a)

    for function, told in [
        (untyped, "no annotation"),
        (many, "by name"),
        (keyed, "by name"),
        (complexity, "JSON"),
    ]:
        with pytest.raises(ToolError, match=told):
            made(cast("Any", function))
    with pytest.raises(ToolError, match="no tool's name"):
        tool(name="has space")(lambda: "x")
    with pytest.raises(ToolError, match="no tool's name"):
        tool(lambda: "x")
