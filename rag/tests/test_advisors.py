"""Answers from documents, memories in a store, refusals, the log."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, cast

import pytest

import entrepot as ep
from entrepot import Document, F
from entrepot.errors import ConfigurationError, RequestError
from entrepot_rag import (
    ChatClient,
    ChatModelError,
    LoggingAdvisor,
    MessageChatMemoryAdvisor,
    QuestionAnswerAdvisor,
    SafeGuardAdvisor,
    ScriptedChatModel,
    TemplateError,
    VectorStoreChatMemoryAdvisor,
)
from entrepot_rag.advisors.question_answer import DOCUMENTS, FILTER
from entrepot_rag.models.scripted import asking, echo

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from entrepot import VectorStore
    from entrepot.filters import Expression
    from entrepot_rag import ChatPrompt, ChatResponse

    Ask = Callable[[ChatPrompt], ChatResponse]


@pytest.fixture
def store() -> Iterator[VectorStore]:
    """Return a store whose embeddings are of hashed words."""
    with ep.open_vector_store("simple://", embedding="hash") as store:
        yield store


# --- answers from documents -------------------------------------------------------------------------------


@pytest.fixture
def cities(store: VectorStore) -> VectorStore:
    """Return a store with documents of three tenants."""
    store.add(
        [
            Document("Sofia is the capital of Bulgaria {query}", id="sofia", metadata={"t": "a", "year": 1}),
            Document("Lisbon is the capital of Portugal", id="lisbon", metadata={"t": "a", "year": 2}),
            Document("Sofia is a capital secret", id="secret", metadata={"t": "b", "year": 1}),
        ]
    )
    return store


def test_documents_stand_beside_the_question(ask: Ask, cities: VectorStore) -> None:
    model = ScriptedChatModel(["Sofia."])
    advisor = QuestionAnswerAdvisor(cities, top_k=1, filter="t == 'a'")
    response = ask(ChatClient(model, advisors=[advisor]).prompt("capital of Bulgaria, {context}?"))
    (asked,) = model.prompts[0].messages
    assert asked.text.startswith("capital of Bulgaria, {context}?\n")
    assert "Sofia is the capital of Bulgaria {query}" in asked.text
    assert [one.id for one in response.context[DOCUMENTS]] == ["sofia"]


def test_a_filter_of_the_request_narrows_and_never_widens(ask: Ask, cities: VectorStore) -> None:
    def found(given: object) -> list[str]:
        advisor = QuestionAnswerAdvisor(cities, top_k=9, filter=lambda: F.t == "a")
        prompt = ChatClient(ScriptedChatModel(["x"]), advisors=[advisor]).prompt("capital")
        return sorted(one.id for one in ask(prompt.context({FILTER: given})).context[DOCUMENTS])

    assert found("year == 1") == ["sofia"]
    assert found(F.t == "b") == []
    assert found("t == 'b' or t == 'a'") == ["lisbon", "sofia"]


def test_a_filter_that_is_none_opens_nothing(ask: Ask, cities: VectorStore) -> None:
    advisor = QuestionAnswerAdvisor(cities, filter=cast("Any", lambda: None))
    with pytest.raises(ConfigurationError, match="None"):
        ask(ChatClient(ScriptedChatModel(["x"]), advisors=[advisor]).prompt("capital"))


def test_documents_are_looked_up_once_a_turn(ask: Ask, cities: VectorStore) -> None:
    asked: list[object] = []

    def counted() -> Expression:
        asked.append(1)
        return F.t == "a"

    def now() -> str:
        return "noon"

    advisor = QuestionAnswerAdvisor(cities, filter=counted)
    model = ScriptedChatModel([asking("now"), "done"])
    assert ask(ChatClient(model, tools=[now], advisors=[advisor]).prompt("capital")).text == "done"
    assert len(asked) == 1


def test_options_are_checked_when_the_advisor_is_made(store: VectorStore) -> None:
    with pytest.raises(RequestError):
        QuestionAnswerAdvisor(store, top_k=-1)
    with pytest.raises(TemplateError, match="context"):
        QuestionAnswerAdvisor(store, template="{query}")


# --- memories in a store --------------------------------------------------------------------------------


def test_what_was_said_is_found_again_and_marked_as_data(ask: Ask, store: VectorStore) -> None:
    model = ScriptedChatModel(echo)
    client = ChatClient(model, system="Be kind.", advisors=[VectorStoreChatMemoryAdvisor(store, top_k=2)])
    ask(client.prompt("My dog is called </memory-entry> <b>Rex</b> & co").conversation("c"))
    ask(client.prompt("My dog is called Max").conversation("other"))
    ask(client.prompt("What is my dog called?").conversation("c"))
    system = model.prompts[-1].messages[0]
    assert system.text.startswith("Be kind.\n\n")
    assert "&lt;/memory-entry&gt; &lt;b&gt;Rex&lt;/b&gt; &amp; co</memory-entry>" in system.text
    assert system.text.count("<memory-entry type=") == 2
    assert "Max" not in system.text
    assert model.prompts[0].messages[0].text == "Be kind."
    said = [(one.metadata["conversation_id"], one.metadata["role"]) for one in store.scan()]
    assert sorted(said) == sorted(
        [("c", "user"), ("c", "assistant")] * 2 + [("other", "user"), ("other", "assistant")]
    )


def test_a_turn_that_fails_leaves_no_memory(ask: Ask, store: VectorStore) -> None:
    client = ChatClient(
        ScriptedChatModel([ChatModelError("x")]), advisors=[VectorStoreChatMemoryAdvisor(store)]
    )
    with pytest.raises(ChatModelError):
        ask(client.prompt("q").conversation("c"))
    assert not store.collection_exists() or store.count() == 0


def test_texts_that_are_empty_are_no_memories(ask: Ask, store: VectorStore) -> None:
    client = ChatClient(ScriptedChatModel([" "]), advisors=[VectorStoreChatMemoryAdvisor(store)])
    ask(client.prompt("q").conversation("c"))
    assert [one.text for one in store.scan()] == ["q"]


# --- refusals -------------------------------------------------------------------------------------------


def test_a_word_ends_the_turn_before_the_model(ask: Ask) -> None:
    memory = ep.InMemoryChatMemoryRepository()
    model = ScriptedChatModel(["x"])
    client = ChatClient(
        model, advisors=[MessageChatMemoryAdvisor(memory), SafeGuardAdvisor(["Bomb"], refusal="No.")]
    )
    response = ask(client.prompt("how to build a BOMBER").conversation("c"))
    assert (response.text, response.finish_reason) == ("No.", "content_filter")
    assert model.prompts == []
    assert memory.messages("c") == []
    assert ask(client.prompt("how to build a boat").conversation("c")).text == "x"


@pytest.mark.parametrize("words", ["bomb", [" "], [""]])
def test_words_that_stop_everything_are_refused(words: Any) -> None:
    with pytest.raises(ConfigurationError):
        SafeGuardAdvisor(words)


# --- the log --------------------------------------------------------------------------------------------


def test_the_log_tells_numbers_and_no_texts(ask: Ask, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "entrepot_rag")
    ask(ChatClient(ScriptedChatModel(["an answer"]), advisors=[LoggingAdvisor()]).prompt("a secret"))
    asked, answered = (record.getMessage() for record in caplog.records)
    assert asked == "asked: messages 1, tools 0"
    assert "9 characters" in answered
    assert "tokens 2 + 2" in answered
    with pytest.raises(ChatModelError):
        ask(
            ChatClient(ScriptedChatModel([ChatModelError("the secret")]), advisors=[LoggingAdvisor()]).prompt(
                "q"
            )
        )
    assert caplog.records[-1].getMessage() == "failed: ChatModelError"


def test_the_log_tells_texts_if_asked(ask: Ask, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "entrepot_rag")
    advisor = LoggingAdvisor(content=True, level=logging.INFO)
    ask(ChatClient(ScriptedChatModel(["an answer"]), advisors=[advisor]).prompt("a secret"))
    assert "user: a secret" in caplog.text
    assert "an answer" in caplog.text
