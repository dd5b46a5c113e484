"""Five hundred tools and a hundred questions: what tool search finds, and what it saves."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec
import pytest

import entrepot as ep
from entrepot.batching import EstimatingTokenCounter
from entrepot_rag import (
    ChatClient,
    FullTextToolIndex,
    ScriptedChatModel,
    Tool,
    ToolDefinition,
    ToolSearchAdvisor,
    VectorToolIndex,
)
from entrepot_rag import advice as advices
from entrepot_rag.models.scripted import asking

if TYPE_CHECKING:
    from entrepot_rag import Prompt, ToolIndex

DATA = Path(__file__).parent / "data"
TOP = 5
T = TypeVar("T")


class Entry(msgspec.Struct):
    """A tool of the catalogue; its parameters are all strings."""

    name: str
    description: str
    parameters: dict[str, str]


class Question(msgspec.Struct):
    """What a user says, what a model then searches for, and the tool that is right."""

    question: str
    query: str
    tool: str


def lines(name: str, kind: type[T]) -> list[T]:
    """Return the entries of a file."""
    return [msgspec.json.decode(line, type=kind) for line in (DATA / name).read_bytes().splitlines()]


TOOLS = [
    ToolDefinition(
        name=one.name,
        description=one.description,
        parameters={
            "type": "object",
            "properties": {
                name: {"type": "string", "description": told} for name, told in one.parameters.items()
            },
            "required": list(one.parameters),
        },
    )
    for one in lines("tools.jsonl", Entry)
]
QUESTIONS = lines("questions.jsonl", Question)


def found(index: ToolIndex) -> int:
    """Return for how many questions the right tool is among the first five."""
    advices.run(index.build("s", TOOLS))
    hits = 0
    for one in QUESTIONS:
        names = [tool.name for tool in advices.run(index.search("s", one.query, TOP))]
        assert len(names) <= TOP
        hits += one.tool in names
    return hits


def test_the_catalogue_is_what_it_says() -> None:
    assert (len(TOOLS), len({one.name for one in TOOLS}), len(QUESTIONS)) == (500, 500, 100)
    assert {one.tool for one in QUESTIONS} <= {one.name for one in TOOLS}


def test_words_find_nine_of_ten() -> None:
    assert found(FullTextToolIndex()) >= 90


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["semantic", "hybrid"])
def test_meaning_finds_nine_of_ten(mode: str) -> None:
    with ep.open_vector_store("simple://", embedding="wordllama") as store:
        assert found(VectorToolIndex(store, mode=mode)) >= 90


def tokens(prompt: Prompt) -> int:
    """Return an estimate of the tokens of a prompt with its tools."""
    texts = [one.text for one in prompt.messages] + [
        msgspec.json.encode(one).decode() for one in prompt.tools
    ]
    return sum(EstimatingTokenCounter().count(texts))


def test_prompts_are_a_tenth() -> None:
    def run() -> str:
        return "done"

    tools = [Tool(definition=one, function=run) for one in TOOLS]
    question = QUESTIONS[0]
    all_of_them = ScriptedChatModel(["done"])
    ChatClient(all_of_them, tools=tools).prompt(question.question).call()
    searched = ScriptedChatModel([asking("tool_search", {"query": question.query}), "done"])
    client = ChatClient(searched, tools=tools, advisors=[ToolSearchAdvisor()])
    client.prompt(question.question).conversation("c").call()
    (every,) = map(tokens, all_of_them.prompts)
    first, second = map(tokens, searched.prompts)
    assert len(searched.prompts[1].tools) == 1 + TOP
    assert first + second <= every / 10
