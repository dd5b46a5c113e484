"""Templates, and texts that are none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from entrepot_rag import ChatClient, ScriptedChatModel, Template, TemplateError


def test_a_template_is_filled_once_from_left_to_right() -> None:
    template = Template(
        "{query} by {context}, {{query}} and {other}", needs=["query", "context"], knows=["other"]
    )
    filled = template.filled(query="{context}", context="{query}")
    assert filled == "{context} by {query}, {{context}} and {other}"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{query}", "lacks {context}"),
        ("{query} {context} {what}", "holds {what}"),
        ("", "lacks {context} and lacks {query}"),
    ],
)
def test_a_template_is_checked_when_it_is_made(text: str, told: str) -> None:
    with pytest.raises(TemplateError, match=told.replace("{", r"\{")) as caught:
        Template(text, needs=["query", "context"])
    assert "{context}, {query}" in caught.value.hint
    assert isinstance(caught.value, ValueError)


def test_braces_that_are_no_names_are_text() -> None:
    text = '{"a": 1} {} { query } {1} {query.x}'
    assert Template(text, knows=["query"]).filled(query="x") == text


@given(st.text())
def test_what_users_say_is_never_a_template(text: str) -> None:
    model = ScriptedChatModel(["x"] * 2)
    client = ChatClient(model, system="{user} {0} {")
    client.prompt(text).call()
    assert [message.text for message in model.prompts[0].messages] == ["{user} {0} {", text]
    client.prompt().user("Say {what} {else}", what=text).call()
    assert model.prompts[1].messages[-1].text == f"Say {text} {{else}}"
