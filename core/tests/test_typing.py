"""The public surface as type checkers see it: mypy and pyright read this file, pytest runs it."""

from __future__ import annotations

from typing import assert_type

import entrepot as ep
from entrepot import (
    Document,
    Expression,
    F,
    Message,
    Page,
    SearchMode,
    SearchRequest,
    Stats,
    VectorStore,
    VectorStoreRetriever,
)
from entrepot.filters import Normal


def only_searches(retriever: VectorStoreRetriever) -> list[Document]:
    """Take the read-only half; a store has it too."""
    return retriever.similarity_search("a", top_k=1)


def test_stores() -> None:
    with ep.open_vector_store("simple://", embedding="hash") as store:
        assert_type(store, VectorStore)
        assert_type(store.add([Document("a", id="1", metadata={"year": 2020})], if_exists="skip"), list[str])
        assert_type(store.similarity_search("a", filter=F.year >= 2020, mode="hybrid"), list[Document])
        request = SearchRequest(
            "a", top_k=2, threshold=0.1, filter=lambda: "year >= 2020", mode=SearchMode.SEMANTIC
        )
        assert_type(store.similarity_search_batch([request, "a"]), list[list[Document]])
        assert_type(store.get(["1"], include=["text", "vector"]), list[Document])
        assert_type(store.update(["1"], set={"a": 1}, unset=["b"]), list[str])
        assert_type(store.count("year == 2020"), int)
        assert_type(store.stats(), Stats)
        assert_type(store.where(F.year == 2020), VectorStore)
        assert_type(next(store.scan()), Document)
        assert only_searches(store) == only_searches(store.as_retriever())
        (hit,) = store.similarity_search("a")
        assert_type(hit.score, float | None)
        assert_type(hit.id, str)
        store.delete(filter="year == 2020")


async def test_their_twins() -> None:
    store = await ep.aopen_vector_store("simple://", embedding="hash")
    async with store:
        assert_type(await store.aadd([Document("a", id="1")]), list[str])
        assert_type(await store.asimilarity_search("a"), list[Document])
        assert_type([document async for document in store.ascan()], list[Document])
        assert_type(await store.acount(), int)


def test_filters() -> None:
    expression = (F.country == "BG") & ~F["any key"].in_([1, 2]) | F.x.is_null()
    assert_type(expression, Expression)
    assert_type(ep.parse_filter("a == 1"), Expression)
    assert_type(ep.format_filter(expression), str)
    assert_type(ep.normalise(expression), Normal)
    assert_type(ep.evaluate(expression, {"country": "BG"}), bool)


def test_memory() -> None:
    with ep.open_chat_memory("simple://", ttl=60) as memory:
        memory.append("c", [ep.UserMessage("a"), ep.AssistantMessage("b")])
        assert_type(memory.messages("c", last=1), list[Message])
        assert_type(memory.conversation_ids(), Page[str])
        chat: ep.ChatMemory = ep.MessageWindowChatMemory(memory, max_messages=5)
        assert_type(chat.get("c"), list[Message])
