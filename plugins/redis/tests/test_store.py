"""The store on its server: columns, indexes, protocols, clients, drops; what the suite does not see."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import redis
import redis.asyncio
from plugins.redis.tests.servers import target

from entrepot import Document, F, SearchRequest
from entrepot.errors import (
    BackendError,
    BatchError,
    CollectionMismatchError,
    CollectionNotFoundError,
    RequestError,
)
from entrepot.filters import evaluate
from entrepot_conformance.fuzz import make_documents, run
from entrepot_redis import RedisVectorStore

if TYPE_CHECKING:
    from plugins.redis.tests.servers import Make

    from entrepot.filters import Expression


def documents(count: int, start: int = 0) -> list[Document]:
    return [
        Document(
            f"word{n}",
            id=f"{n:05}",
            metadata={"n": n, "s": f"s{n}", "l": [n, n + 10]},
            vector=[1.0, float(n)],
        )
        for n in range(start, start + count)
    ]


def found(store: RedisVectorStore, given: Any) -> set[str]:
    return {document.id for document in store.scan(given, include=[])}


# --- columns ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("most", [0, 1, 5, 60])
def test_filters_are_right_where_columns_run_out(make: Make, most: int) -> None:
    # F9: random filters against the evaluator, with little room for columns
    store = make(max_columns=most, metric="euclidean", max_completion_rows=10**6)
    metadata = make_documents(most)
    store.add([Document(None, id=name, metadata=each, vector=[1.0, 1.0]) for name, each in metadata.items()])
    stats = store.stats().details
    assert (stats["columns"], stats["columns_full"]) == (most, True)
    assert stats["indexing_failures"] == 0

    def matches(expression: Expression) -> set[str]:
        return found(store, expression)

    run(matches, metadata, count=100, seed=most)


def test_another_store_fills_the_columns_while_one_knows_of_room(make: Make) -> None:
    # F9, S4, S7: the filter was translated as exact, and is not by the time that it is sent
    for number, ask in enumerate(("count", "scan", "search", "words", "delete")):
        one, two = make(max_columns=4, collection=ask), make(max_columns=4, collection=ask)
        one.add([Document("w", id="old", metadata={"a": [1, 2]}, vector=[1.0, 1.0])])
        assert one.count("b > 5") == 0
        two.add(
            [Document("w", id=f"{n}", metadata={"c": "x" * 30, "b": n}, vector=[1.0, n]) for n in range(20)]
        )
        two.add([Document("w", id=f"late {n}", metadata={"b": float(n)}, vector=[1.0, n]) for n in range(20)])
        expected = {f"{n}" for n in range(6, 20)} | {f"late {n}" for n in range(6, 20)}
        if ask == "count":
            assert one.count("b > 5") == len(expected), number
        elif ask == "scan":
            assert found(one, "b > 5") == expected
        elif ask == "search":
            hits = one.similarity_search(SearchRequest(vector=[1.0, 1.0], top_k=28, filter="b > 5"))
            assert {hit.id for hit in hits} == expected
        elif ask == "words":
            assert len(one.similarity_search("w", mode="fulltext", top_k=28, filter="b > 5")) == 28
        else:
            one.delete(filter="b > 5")
            assert found(one, None) == {"old", *(f"{n}" for n in range(6)), *(f"late {n}" for n in range(6))}


def test_first_writers_at_once_make_each_column_once(make: Make) -> None:
    # D5, S7
    stores = [make(dimension=2) for _ in range(6)]
    stores[0].create_collection()
    barrier = threading.Barrier(6)
    failures: list[Exception] = []

    def work(number: int) -> None:
        try:
            barrier.wait()
            for n in range(10):
                key = f"k{n}"
                stores[number].add(
                    [
                        Document(
                            None,
                            id=f"{number}-{n}",
                            metadata={key: number, "mine": f"w{number}"},
                            vector=[1.0, n],
                        )
                    ]
                )
                assert stores[number].count(f"{key} >= {number} and {key} <= {number}") == 1
        except Exception as error:  # noqa: BLE001 - told below
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert stores[0].count("k3 >= 0") == 6
    assert stores[0].stats().details["columns"] == 10 + 1


def test_a_writer_that_knows_columns_of_a_dropped_collection(make: Make) -> None:
    # D5: what it knows reaches nothing of the new one
    one, two = make(), make()
    one.add(documents(5))
    two.drop_collection()
    two.add([Document(None, id="new", metadata={"s": "s9", "n": 9}, vector=[1.0, 1.0])])
    for operation in (
        lambda: one.add(documents(1)),
        lambda: one.count("n >= 0"),
        lambda: one.similarity_search(SearchRequest(vector=[1.0, 1.0], filter="n >= 0")),
        lambda: one.get(["new"]),
        lambda: list(one.scan("s > 'a'")),
        lambda: one.delete(["new"]),
        lambda: one.delete(filter="n >= 0"),
        lambda: one.update(["new"], set={"n": 1}),
    ):
        with pytest.raises(CollectionMismatchError, match="anew"):
            operation()
        assert two.count() == 1
        assert one.count("n == 9") == 1  # it knows the new one now
        two.drop_collection()
        with pytest.raises(CollectionNotFoundError):
            operation()
        one.add(documents(1, start=20))
        two.drop_collection()
        two.add([Document(None, id="new", metadata={"s": "s9", "n": 9}, vector=[1.0, 1.0])])
        with pytest.raises((CollectionMismatchError, CollectionNotFoundError)):
            one.count()
        assert one.count() == 1
        two.drop_collection()
        two.add([Document(None, id="new", metadata={"s": "s9", "n": 9}, vector=[1.0, 1.0])])


def test_a_document_that_the_index_does_not_take_is_an_error(make: Make, admin: Any, namespace: str) -> None:
    # D6: never a loss in silence
    store = make()
    store.add(documents(2))
    (index,) = [name for name in admin.execute_command("FT._LIST") if name.startswith(namespace.encode())]
    admin.execute_command("FT.ALTER", index, "SKIPINITIALSCAN", "SCHEMA", "ADD", "m", "NUMERIC")
    with pytest.raises(BatchError, match="index") as caught:
        store.add([Document("x", id="lost", vector=[1.0, 1.0])])
    assert isinstance(caught.value.__cause__, BackendError)
    assert caught.value.unknown == ("lost",)
    assert store.stats().details["indexing_failures"] >= 1


def test_something_else_under_the_name_of_a_collection_is_refused(
    make: Make, admin: Any, namespace: str
) -> None:
    # D5
    admin.set(f"{namespace}:taken", "x")
    admin.hset(f"{namespace}:other", mapping={"a": "b"})
    for name in ("taken", "other"):
        store = make(collection=name)
        with pytest.raises(CollectionMismatchError):
            store.count()
        with pytest.raises(CollectionMismatchError):
            store.add(documents(1))
        with pytest.raises(CollectionMismatchError):
            store.drop_collection()
    assert admin.get(f"{namespace}:taken") == b"x"
    make().add(documents(1))
    admin.hset(f"{namespace}:default", "layout", "99")
    with pytest.raises(CollectionMismatchError, match="layout"):
        make().count()


# --- indexes and protocols --------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", ["cosine", "dot", "euclidean"])
@pytest.mark.parametrize("index", ["flat", "hnsw"])
def test_exact_searches_of_both_indexes(
    make: Make, rng: np.random.Generator, index: str, metric: str
) -> None:
    # S1, S4: with and without filters, against plain numpy
    store = make(index=index, metric=metric)
    assert store.capabilities.ann is False
    vectors = rng.normal(size=(400, 8)).astype(np.float32)
    if metric != "euclidean":
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    store.add([Document(None, id=f"{n:03}", metadata={"n": n % 7}, vector=vectors[n]) for n in range(400)])
    assert store.capabilities.ann is (index == "hnsw")
    assert store.stats().details["index"] == index
    query = vectors[17] + np.float32(0.25) * vectors[200]
    if metric != "euclidean":
        query = query / np.linalg.norm(query)
    wide = vectors.astype(np.float64)
    nearness = -((wide - query) ** 2).sum(axis=1) if metric == "euclidean" else wide @ query
    for given, allowed in (
        (None, range(400)),
        ("n == 3", range(3, 400, 7)),
        ("n != 3", [n for n in range(400) if n % 7 != 3]),
    ):
        expected = sorted(allowed, key=lambda n: -nearness[n])[:20]
        for exact in (True, given is not None):
            hits = store.similarity_search(SearchRequest(vector=query, top_k=20, filter=given, exact=exact))
            assert [hit.id for hit in hits] == [f"{n:03}" for n in expected]
    assert len(store.similarity_search(SearchRequest(vector=query, top_k=400))) == 400


def test_a_cut_through_equal_distances_is_settled_by_id(make: Make) -> None:
    # S1: the engine keeps the older documents, whatever their ids
    store = make()
    store.add([Document(None, id=f"{n:04}", vector=[1.0, 1.0]) for n in range(999, -1, -1)])
    store.add([Document(None, id="near", vector=[1.0, 0.9])])
    for k in (1, 2, 10, 300, 1001):
        hits = store.similarity_search(SearchRequest(vector=[1.0, 0.9], top_k=k))
        assert [hit.id for hit in hits] == ["near", *(f"{n:04}" for n in range(k - 1))]


@pytest.mark.parametrize("protocol", [2, 3])
def test_both_protocols_answer_alike(make: Make, protocol: int) -> None:
    store = make(protocol=protocol)
    store.add(documents(30))
    store.update(["00003"], set={"n": 300})
    assert store.count("n < 10 or s == 's12'") == 10
    assert store.count("n == 300") == 1
    hits = store.similarity_search(
        SearchRequest(vector=[1.0, 2.0], top_k=3, filter="n > 5", include=["metadata", "vector"])
    )
    assert [hit.id for hit in hits] == ["00003", "00006", "00007"]
    (hit,) = store.similarity_search("word7", mode="fulltext")
    assert (hit.id, hit.metadata) == ("00007", {"n": 7, "s": "s7", "l": [7, 17]})
    assert store.stats().details["columns"] > 0
    with pytest.raises(RequestError):
        list(store.scan(token="x"))


@pytest.mark.parametrize("decode", [False, True])
@pytest.mark.parametrize("protocol", [2, 3])
def test_a_client_of_the_user(server: str, namespace: str, decode: bool, protocol: int) -> None:
    # E5: whatever it is set to, it is used and stays open
    parts = target(server)
    keywords: dict[str, Any] = {
        "host": parts["host"],
        "port": parts["port"],
        "password": parts.get("password"),
    }
    client: Any = redis.Redis(**keywords, decode_responses=decode, protocol=protocol)
    store = RedisVectorStore(client=client, namespace=namespace).connect()
    store.add(documents(10))
    assert found(store, "n >= 7") == {"00007", "00008", "00009"}
    assert id(store.native_client) == id(client)
    assert asyncio.run(store.acount()) == 10
    store.close()
    assert client.ping()
    client.close()


async def test_an_async_client_of_the_user(server: str, namespace: str) -> None:
    # E5
    parts = target(server)
    client: Any = redis.asyncio.Redis(host=parts["host"], port=parts["port"], password=parts.get("password"))
    store = RedisVectorStore(client=client, namespace=namespace)
    await store.aconnect()
    await store.aadd(documents(10))
    assert await store.acount("n >= 7") == 3
    with pytest.raises(Exception, match="async"):
        store.count()
    await store.aclose()
    await client.ping()
    await client.aclose()


# --- writes -----------------------------------------------------------------------------------------------


def test_large_documents(make: Make) -> None:
    # D8: beyond what one call of HSET in Lua takes
    store = make()
    metadata: dict[str, Any] = {f"k{n}": f"value {n} " * 60 for n in range(95)}
    metadata |= {"list": [float(n) for n in range(900)], "long": "x" * 8000}
    store.add(
        [Document("t" * 32_000, id=f"{n}", metadata={**metadata, "n": n}, vector=[1.0, n]) for n in range(3)]
    )
    (document,) = store.get(["1"])
    assert document.metadata == {**metadata, "n": 1}
    assert store.count("k94 >= 'value 94 ' and list == 450 and list > 898 and long < 'y'") == 3
    assert store.count("n == 1 and k3 < 'value 2'") == 0
    assert evaluate((F.n == 1) & (F.list > 898), document.metadata)


def test_an_update_keeps_text_vector_and_place(make: Make) -> None:
    # D10, D7
    store = make()
    store.add([Document("snake_case text", id="a", metadata={"n": 1, "gone": "x"}, vector=[3.0, 4.0])])
    store.add([Document("b", id="b", vector=[1.0, 0.0])])
    assert store.update(["a", "x"], set={"n": [5, 9]}, unset=["gone"]) == ["a"]
    (document,) = store.get(["a"], include=["text", "metadata", "vector"])
    assert (document.text, document.metadata) == ("snake_case text", {"n": [5, 9]})
    assert document.vector == pytest.approx([0.6, 0.8])
    assert found(store, "n > 8 and n < 6") == {"a"}
    assert found(store, "gone is not null or n == 1") == set()
    assert [hit.id for hit in store.similarity_search("snake", mode="fulltext")] == ["a"]
    assert [document.id for document in store.scan(include=[])] == ["a", "b"]


def test_updates_at_once_lose_nothing(make: Make) -> None:
    # D10: each reads, computes and writes; whoever comes late does it again
    store = make()
    store.add([Document(None, id="x", vector=[1.0, 1.0])])

    def work(number: int) -> None:
        for n in range(20):
            store.update(["x"], set={f"k{number}-{n}": n})

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(store.get(["x"])[0].metadata) == 80


def test_deleting_many_by_filter_is_complete(make: Make) -> None:
    # D7: more than one window and one script
    store = make()
    store.add([Document(None, id=str(n), metadata={"n": n}, vector=[1.0, n % 50]) for n in range(5000)])
    store.delete(filter="n >= 1200")
    assert found(store, None) == {str(n) for n in range(1200)}
    store.delete_all()
    assert store.count() == 0


def test_a_view_updates_more_than_a_script_can_hand_on_at_once(make: Make) -> None:
    # D10, T2: in one step; Lua hands on some 8,000 values
    store = make(metric="euclidean")
    store.add([Document(None, id=f"{n}", metadata={"g": "a"}, vector=[1.0, 1.0]) for n in range(8100)])
    assert len(store.where(F.g == "a").update([f"{n}" for n in range(8100)], set={"z": 1})) == 8100
    assert store.count(F.z == 1) == 8100


@pytest.mark.parametrize("kind", ["flat", "hnsw"])
def test_a_server_that_lost_its_data_gives_no_generation_twice(
    make: Make, admin: Any, namespace: str, kind: str
) -> None:
    # D5, F9, S2: a store that knows the collection of before takes no column or metric of it for the new one's
    old = make(metric="euclidean", index=kind)
    old.add([Document(None, id="a", metadata={"n": 1, "m": 9}, vector=[1.0, 1.0])])
    assert old.count(F.n < 5) == 1
    for index in admin.execute_command("FT._LIST"):
        if index.startswith(f"{namespace}:".encode()):
            admin.execute_command("FT.DROPINDEX", index)
    for key in admin.keys(f"{namespace}:*"):
        admin.delete(key)
    make(metric="euclidean", index=kind).add(
        [Document(None, id="a", metadata={"m": 1, "n": 9}, vector=[1.0, 1.0])]
    )
    with pytest.raises(CollectionMismatchError, match="anew"):
        old.count(F.n < 5)
    assert old.count(F.n < 5) == 0
    assert old.count(F.m < 5) == 1
