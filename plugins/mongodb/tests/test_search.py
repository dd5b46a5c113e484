"""`$vectorSearch` on the wire, answered by the tests' gate, which is no MongoDB (`plugins.mongodb.tests.gate`). S1 to S7."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from plugins.mongodb.tests.gate import Gate
from plugins.mongodb.tests.servers import target

from entrepot import Document, SearchRequest
from entrepot.encoding import element_text
from entrepot.errors import AuthenticationError, ConfigurationError, NotYetVisibleError
from entrepot_mongodb import MongoDBVectorStore

if TYPE_CHECKING:
    from plugins.mongodb.tests.servers import Make

    from entrepot import VectorStore

pytestmark = pytest.mark.slow  # there is no server but in a container


def documents(count: int, **metadata: Any) -> list[Document]:
    return [
        Document(f"text {n}", id=f"{n:04}", metadata={"n": n, **metadata}, vector=[1.0, n])
        for n in range(count)
    ]


def near(store: VectorStore, at: float, top_k: int = 3, **options: Any) -> list[str]:
    return [
        hit.id for hit in store.similarity_search(SearchRequest(vector=[1.0, at], top_k=top_k, **options))
    ]


@pytest.fixture
def store(make: Make, search_gate: Gate) -> VectorStore:
    """A store behind the gate, with a hundred documents."""
    store = make(host="127.0.0.1", port=search_gate.port, metric="euclidean")
    store.add(documents(100))
    assert store.capabilities.ann
    return store


def test_hits_are_the_nearest_with_scores_of_their_own_vectors(store: VectorStore, search_gate: Gate) -> None:
    # S1, S2
    search_gate.searches.clear()
    hits = store.similarity_search(SearchRequest(vector=[1.0, 4.2], top_k=3, filter="n < 40 and n != 4"))
    assert [hit.id for hit in hits] == ["0005", "0003", "0006"]
    assert [hit.score for hit in hits] == pytest.approx([1 / (1 + d * d) for d in (0.8, 1.2, 1.8)], abs=1e-6)
    assert hits[0].text == "text 5"
    assert search_gate.searches[0]["filter"] == {
        "$and": [{"t": {"$in": ["n\0"]}}, {"t": {"$nin": ["n\0" + element_text(4)]}}]
    }
    assert search_gate.searches[0]["numCandidates"] == 200


def test_a_range_that_few_satisfy_is_found_by_asking_for_more(store: VectorStore, search_gate: Gate) -> None:
    # S4, F9
    search_gate.searches.clear()
    assert near(store, 0.0, filter="n >= 97") == ["0097", "0098", "0099"]
    limits = [asked["limit"] for asked in search_gate.searches]
    assert limits == [3, 12, 48, 192]


def test_what_the_graph_loses_the_exact_way_finds(store: VectorStore, search_gate: Gate) -> None:
    # S4
    search_gate.loses = lambda name: name != "0050"
    assert near(store, 0.0) == ["0000", "0001", "0002"]
    assert near(store, 0.0, top_k=1, filter="n == 7") == ["0007"]
    assert near(store, 0.0, filter="n > 1000") == []


def test_exact_asks_no_index(store: VectorStore, search_gate: Gate) -> None:
    # S6
    search_gate.searches.clear()
    search_gate.loses = lambda _: True
    assert near(store, 7.1, exact=True) == ["0007", "0008", "0006"]
    assert near(store, 7.1, ids=["0001", "0050"]) == ["0001", "0050"]
    assert search_gate.searches == []


def test_a_batch_asks_for_each_query(store: VectorStore) -> None:
    requests = [SearchRequest(vector=[1.0, at], top_k=1) for at in (3.0, 9.0)]
    requests.append(SearchRequest(vector=[1.0, 5.0], top_k=1, exact=True))
    assert [[hit.id for hit in hits] for hits in store.similarity_search_batch(requests)] == [
        ["0003"],
        ["0009"],
        ["0005"],
    ]


def test_what_was_deleted_or_replaced_since_is_no_hit(store: VectorStore, search_gate: Gate) -> None:
    # S7: the index is behind, and the database decides
    near(store, 0.0)
    search_gate.stale = 10
    store.delete(["0000"])
    store.add([Document("far", id="0001", metadata={"n": -1}, vector=[1.0, 500.0])], wait=False)
    hits = store.similarity_search(SearchRequest(vector=[1.0, 0.0], top_k=3, include=["vector"]))
    assert [hit.id for hit in hits] == ["0002", "0003", "0004"]


def test_a_write_returns_when_searches_see_it(store: VectorStore, search_gate: Gate) -> None:
    # S7
    near(store, 0.0)
    search_gate.stale = 3
    search_gate.searches.clear()
    store.add([Document("new", id="new", metadata={}, vector=[1.0, -5.0])])
    assert len(search_gate.searches) == 4
    assert near(store, -5.0, top_k=1) == ["new"]
    search_gate.stale = 3
    assert store.update(["new"], set={"colour": "red"}) == ["new"]
    assert near(store, 0.0, top_k=1, filter="colour == 'red'") == ["new"]


def test_a_write_that_searches_do_not_see_in_time_is_told(
    make: Make, store: VectorStore, search_gate: Gate
) -> None:
    # S7
    near(store, 0.0)
    hasty = make(host="127.0.0.1", port=search_gate.port, timeout=0.5)
    search_gate.stale = 1000
    with pytest.raises(NotYetVisibleError):
        hasty.add([Document("late", id="late", metadata={}, vector=[1.0, -5.0])])
    assert [found.id for found in hasty.get(["late"])] == ["late"]
    search_gate.stale = 0
    assert near(hasty, -5.0, top_k=1) == ["late"]


def test_stats_say_which_way_searches_go(store: VectorStore, make: Make) -> None:
    told = store.stats().details
    assert (told["index"], told["search"], told["index_status"]) == ("hnsw", "$vectorSearch", "READY")
    flat = make(collection="flat", index="flat", metric="euclidean")
    flat.add(documents(3))
    told = flat.stats().details
    assert told["index"] == "flat"
    assert "compared here" in told["search"]
    assert not flat.capabilities.ann


def test_a_new_collection_is_awaited(make: Make, search_gate: Gate) -> None:
    search_gate.building = 3
    store = make(host="127.0.0.1", port=search_gate.port, collection="slow", dimension=2)
    store.create_collection()
    assert search_gate.building == 0
    assert store.stats().details["index_status"] == "READY"


def test_what_asks_for_the_search_and_has_none_is_told(make: Make) -> None:
    store = make(index="hnsw", dimension=2)
    with pytest.raises(ConfigurationError, match=r"\$vectorSearch"):
        store.create_collection()


def test_random_searches_are_those_of_numpy(make: Make, search_gate: Gate, rng: np.random.Generator) -> None:
    # S1, S2, S4: whichever the metric, and whatever the graph loses
    search_gate.loses = lambda name: int(name) % 3 == 0
    matrix = rng.normal(size=(300, 8)).astype(np.float32)
    for metric in ("cosine", "euclidean"):
        store = make(host="127.0.0.1", port=search_gate.port, collection=metric, metric=metric)
        store.add(
            [Document(f"{n}", id=f"{n:04}", metadata={"n": n}, vector=row) for n, row in enumerate(matrix)]
        )
        wide = matrix.astype(np.float64)
        query = rng.normal(size=8)
        if metric == "cosine":
            value = (1 + wide @ query / np.linalg.norm(wide, axis=1) / np.linalg.norm(query)) / 2
        else:
            value = 1 / (1 + ((wide - query) ** 2).sum(axis=1))
        for k, least in ((5, 0), (200, 100), (300, 0)):
            hits = store.similarity_search(
                SearchRequest(vector=query.tolist(), top_k=k, filter=f"n >= {least}")
            )
            assert len(hits) == min(k, 300 - least)
            expected = sorted(range(least, 300), key=lambda n: -value[n])
            if k >= 200:  # more than the graph finds
                assert [int(hit.id) for hit in hits] == expected[:k]
            assert [hit.score for hit in hits] == pytest.approx(
                [value[int(hit.id)] for hit in hits], abs=1e-5
            )


def test_the_async_twin(store: VectorStore, make: Make, search_gate: Gate) -> None:
    # E3
    async def ask() -> list[str]:
        async with make(host="127.0.0.1", port=search_gate.port) as twin:
            await twin.aadd([Document("new", id="new", metadata={}, vector=[1.0, -5.0])])
            request = SearchRequest(vector=[1.0, -4.0], top_k=2)
            return [hit.id for hit in await twin.asimilarity_search(request)]

    assert store.count() == 100
    assert asyncio.run(ask()) == ["new", "0000"]


@pytest.mark.parametrize("mechanism", [None, "SCRAM-SHA-1", "SCRAM-SHA-256"])
def test_logins(make: Make, server: str, mechanism: str | None) -> None:
    # E2: the double of the tests has none, the gate before it has
    given = target(server)
    with Gate(given["host"], given["port"], login=("me", "right")) as gate:
        options: dict[str, Any] = {"host": "127.0.0.1", "port": gate.port, "auth_mechanism": mechanism}
        store = make(user="me", password="right", dimension=2, **options)
        store.create_collection()
        assert store.count() == 0
        for wrong in ({"user": "me", "password": "wrong"}, {"user": "you", "password": "right"}, {}):
            with pytest.raises(AuthenticationError) as caught:
                make(**{**options, **wrong, **({} if wrong else {"auth_mechanism": None})})
            assert not caught.value.retryable
            assert "wrong" not in str(caught.value)

        async def refused() -> None:
            store = MongoDBVectorStore(user="me", password="wrong", **options)
            with pytest.raises(AuthenticationError):
                await store.aconnect()
            await store.aclose()

        asyncio.run(refused())
