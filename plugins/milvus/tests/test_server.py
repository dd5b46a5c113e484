"""What only a server shows: partitions, consistency, other clients, collections that come and go."""

# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from plugins.milvus.tests.servers import target
from pymilvus import AsyncMilvusClient, MilvusClient  # type: ignore[import-untyped]

from entrepot import Document, F, SearchRequest
from entrepot.errors import (
    ArgumentTypeError,
    CollectionMismatchError,
    CollectionNotFoundError,
    ConfigurationError,
    RequestError,
    UnsupportedSearchModeError,
)
from entrepot.records import Query
from entrepot_milvus import MilvusLiteVectorStore, MilvusVectorStore, catalog
from entrepot_milvus.catalog import Plan
from entrepot_milvus.names import collection_name

if TYPE_CHECKING:
    from collections.abc import Callable

    from plugins.milvus.tests.servers import Make


def document(name: str, *vector: float, **metadata: Any) -> Document:
    return Document(f"text of {name}", id=name, metadata=metadata, vector=vector or (1.0, float(len(name))))


def options(server: str) -> dict[str, Any]:
    given = target(server)
    return {
        "uri": f"http://{given['host']}:{given['port']}",
        "token": f"{given['user']}:{given['password']}",
        "timeout": 10.0,
        "dedicated": True,
    }


def test_partitions_are_collections_of_their_own(make: Make, admin: Any) -> None:
    # D5, D2: the same ids in each, and the record of the collection is shared
    one, two, none = make(partition="one"), make(partition="it's two"), make()
    one.add([document("a", n=1), document("b", n=1)])
    with pytest.raises(CollectionNotFoundError):
        two.count()
    two.add([document("a", n=2)])
    none.add([document("a", n=3)])
    assert [found.metadata["n"] for found in one.scan(F.n >= 0)] == [1, 1]
    assert [found.metadata["n"] for found in two.get(["a", "b"])] == [2]
    assert [found.id for found in none.similarity_search(SearchRequest(vector=[1.0, 1.0]))] == ["a"]
    one.delete(["a"])
    one.delete(filter=F.n >= 0)
    assert (one.count(), two.count(), none.count()) == (0, 1, 1)
    with pytest.raises(CollectionMismatchError):
        make(partition="three", metric="euclidean").add([document("a", 1.0, 2.0, 3.0)])
    two.drop_collection()
    assert not two.collection_exists()
    assert none.count() == 1
    assert one.collection in one.list_collections()
    assert one.collection not in two.list_collections()
    none.drop_collection()
    assert not admin.has_collection(collection_name(none.collection))


@pytest.mark.parametrize("consistency", ["bounded", "session", "eventually"])
def test_writes_are_seen_by_reads_that_wait_for_less(make: Make, consistency: str) -> None:
    # S7: by every store, at once
    writer, reader = make(consistency=consistency), make(consistency=consistency)
    writer.add([document("0", n=0)])
    for n in range(1, 6):
        writer.add([document(str(n), n=n)])
        assert reader.count() == n + 1
        writer.update([str(n)], set={"n": -n})
        assert reader.count(F.n == -n) == 1
    writer.delete(["0"])
    assert reader.get(["0"]) == []
    writer.delete(filter=F.n == -1)
    assert reader.count() == 4


def test_reads_are_strong(make: Make) -> None:
    # S7: what another client wrote a moment ago is seen
    one, two = make(), make()
    one.create_collection(dimension=2)
    for n in range(15):
        one.add([document(str(n), n=n)])
        assert two.count(F.n <= n) == n + 1
        assert two.similarity_search(SearchRequest(vector=[1.0, 1.0], top_k=20, filter=F.n == n))


def test_a_collection_that_was_made_anew_is_noticed(make: Make) -> None:
    # D5: by every operation, with no call of its own
    one, two = make(), make(metric="euclidean")
    operations: dict[str, Callable[[], object]] = {
        "count": one.count,
        "get": lambda: one.get(["a"]),
        "scan": lambda: list(one.scan()),
        "search": lambda: one.similarity_search(SearchRequest(vector=[1.0, 2.0])),
        "delete": lambda: one.delete(["a"]),
        "update": lambda: one.update(["a"], set={"n": 1}),
    }
    one.add([document("a")])
    for name, operation in operations.items():
        assert one.count() == 1
        two.drop_collection()
        two.create_collection(dimension=3)
        with pytest.raises(CollectionMismatchError):
            operation()
        two.drop_collection()
        with pytest.raises(CollectionNotFoundError):
            one.count()
        one.add([document("a")])
        assert one.get(["a"])[0].id == "a", name


def test_what_was_released_is_loaded_again(make: Make, admin: Any) -> None:
    # E4
    store = make()
    store.add([document("a")])
    admin.release_collection(collection_name(store.collection))
    assert store.count() == 1
    admin.release_collection(collection_name(store.collection))
    assert make().count() == 1


def test_what_was_made_in_part_is_completed(make: Make, name: str) -> None:
    # D5: a creation that ended after its first step
    store = make()
    script = catalog.create(store_info(name), Plan())
    call = next(script)
    while call.method != "create_collection":
        call = (
            script.throw(CollectionNotFoundError("x"))
            if call.method == "describe_collection"
            else script.send(None)
        )
    getattr(store.native_client, call.method)(**call.arguments)
    script.close()
    assert not store.collection_exists()
    store.add([document("a", n=1)])
    assert make().count(F.n == 1) == 1


def store_info(name: str) -> Any:
    from entrepot.capabilities import Metric
    from entrepot.records import CollectionInfo

    return CollectionInfo(name=name, dimension=2, metric=Metric.COSINE)


def test_collections_of_others_are_refused(make: Make, admin: Any, name: str) -> None:
    # D5
    foreign = f"{name}_foreign"
    admin.create_collection(foreign, dimension=2, consistency_level="Strong")
    store = make(collection=foreign)
    with pytest.raises(CollectionMismatchError):
        store.count()
    with pytest.raises(CollectionMismatchError):
        store.drop_collection()
    assert foreign not in store.list_collections()
    newer = make(collection=f"{name}_newer")
    newer.add([document("a")])
    found = admin.describe_collection(newer.collection)["properties"]["entrepot"]
    record = json.dumps({**json.loads(found), "layout": 99})
    admin.alter_collection_properties(newer.collection, properties={"entrepot": record})
    with pytest.raises(CollectionMismatchError, match="layout 99"):
        make(collection=newer.collection).count()


def test_a_missing_database(server: str) -> None:
    # E2
    with pytest.raises(ConfigurationError, match="database"):
        MilvusVectorStore(**dict(target(server), database="no_such")).connect()


def test_databases(make: Make, admin: Any) -> None:
    # D5
    admin.create_database("entrepot_tests")
    try:
        one, two = make(database="entrepot_tests"), make()
        one.add([document("a")])
        assert one.namespace == "entrepot_tests"
        assert not two.collection_exists()
        assert one.list_collections() == [one.collection]
        one.drop_collection()
    finally:
        admin.drop_database("entrepot_tests")


def test_clients_of_the_users(make: Make, server: str, name: str) -> None:
    # E5: they stay open
    make().add([document("a", n=1)])
    client: Any = MilvusClient(**options(server))
    store = MilvusVectorStore(client=client, collection=name).connect()
    assert id(store.native_client) == id(client)
    assert store.count(F.n == 1) == 1
    assert asyncio.run(store.acount(F.n == 1)) == 1
    store.close()
    assert client.has_collection(name)
    with pytest.raises(ConfigurationError, match="milvus://"):
        MilvusLiteVectorStore(client=client).connect()
    client.close()

    async def of_async() -> None:
        own: Any = AsyncMilvusClient(**options(server))
        store = MilvusVectorStore(client=own, collection=name)
        await store.aconnect()
        assert await store.acount(F.n == 1) == 1
        with pytest.raises(ConfigurationError, match="async"):
            store.count()
        await store.aclose()
        assert await own.has_collection(name)
        await own.close()

    asyncio.run(of_async())


def test_equal_scores_are_cut_by_id(make: Make, admin: Any) -> None:
    # S1: also where they lie in a segment that is indexed and in one that grows
    store = make(metric="cosine")
    many = [Document(None, id=f"{n:03}", vector=[0.3, 0.1, 0.7]) for n in range(200)]
    store.add(many[::2])
    admin.flush(collection_name(store.collection))
    store.add(many[1::2])
    for k in (1, 9, 120, 199):
        hits = store.similarity_search(SearchRequest(vector=[1.0, 0.0, 2.0], top_k=k))
        assert [hit.id for hit in hits] == [f"{n:03}" for n in range(k)]
        assert len({hit.score for hit in hits}) == 1


@pytest.mark.parametrize("metric", ["cosine", "dot", "euclidean"])
@pytest.mark.parametrize("index", ["flat", "hnsw"])
def test_exact_searches_equal_plain_numpy(make: Make, metric: str, index: str) -> None:
    # S1, S2, S6
    rng = np.random.default_rng(20261130)
    vectors = rng.normal(size=(1500, 16))
    if metric != "euclidean":
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    store = make(metric=metric, index=index)
    store.add([Document(None, id=f"{n:04}", metadata={"n": n}, vector=row) for n, row in enumerate(vectors)])
    assert store.capabilities.ann is (index == "hnsw")
    query = vectors[7] + 0.1 * vectors[8]
    if metric != "euclidean":
        query /= np.linalg.norm(query)
    allowed = np.arange(1500) % 3 == 0
    score = (
        1 / (1 + ((vectors - query) ** 2).sum(axis=1)) if metric == "euclidean" else (1 + vectors @ query) / 2
    )
    best = sorted(np.flatnonzero(allowed), key=lambda n: -score[n])[:20]
    request = SearchRequest(
        vector=query, top_k=20, exact=True, filter=F.n.in_([int(n) for n in np.flatnonzero(allowed)])
    )
    hits = store.similarity_search(request)
    assert [hit.id for hit in hits] == [f"{n:04}" for n in best]
    assert [hit.score for hit in hits] == pytest.approx([score[n] for n in best], abs=1e-5)


def test_batches_go_in_one_call(make: Make) -> None:
    # S8: a strong read waits once, not for each query
    store = make(metric="euclidean")
    store.add([document(str(n), 1.0, float(n), n=n) for n in range(60)])
    queries = [SearchRequest(vector=[1.0, n + 0.1], top_k=3, filter="n >= 10") for n in range(0, 50, 7)]
    calls: list[str] = []
    client: Any = store.native_client
    search = client.search

    def counted(*arguments: Any, **keywords: Any) -> Any:
        calls.append("search")
        return search(*arguments, **keywords)

    client.search = counted
    found = store.similarity_search_batch(queries)
    assert [[hit.id for hit in hits] for hits in found] == [
        [hit.id for hit in store.similarity_search(query)] for query in queries
    ]
    assert len(calls) == 1 + len(queries)


def test_searches_by_words_need_a_newer_server(make: Make) -> None:
    # S9
    store = make()
    store.add([document("a")])
    if not store.capabilities.fulltext:
        with pytest.raises(UnsupportedSearchModeError):
            store.similarity_search("text", mode="fulltext")


def test_what_a_version_can(server: str) -> None:
    # S9: found by the version
    store = MilvusVectorStore(**target(server))
    store._meet("v2.6.1")
    assert store.capabilities.fulltext
    assert store._plan.words
    with pytest.raises(ConfigurationError, match=r"2\.3"):
        MilvusVectorStore(**target(server))._meet("v2.2.16")


def test_scans_hand_out_pages_of_their_size(make: Make) -> None:
    # D7: complete, each once, whatever the size, and the token goes on elsewhere
    store = make()
    names = [f"d{n}" for n in range(1234)]
    store.add([document(name, n=n) for n, name in enumerate(names)])
    for size in (7, 100, 1000, 5000):
        if size == 7:
            found = [one.id for one in store.scan(F.n < 60, batch_size=size)]
            assert sorted(found) == sorted(names[:60])
            continue
        pages = list(store.scan(batch_size=size).pages())
        found = [one.id for page in pages for one in page.items]
        assert sorted(found) == sorted(names)
        assert [len(page.items) for page in pages[:-1]] == [size] * (len(pages) - 1)
    for wrong in ("", "x", "0" * 32, "0" * 32 + ".", "g" * 32 + ".1", '" or id != "'):
        with pytest.raises((RequestError, ArgumentTypeError)):
            store._scan(Query(filter=store._within(store._scope(), None)), wrong, 10)


def test_large_documents_are_read_and_written_in_parts(make: Make) -> None:
    # D8, D6
    store = make()
    large = {f"k{n}": "\x01" * 1000 for n in range(16)}
    documents = [Document("x" * 65_535, id=str(n), metadata=large, vector=[1.0, n + 1.0]) for n in range(150)]
    store.add(documents)
    found = {one.id: one for one in store.scan(batch_size=60, include=["text", "metadata"])}
    assert len(found) == 150
    assert all(len(one.text or "") == 65_535 and one.metadata == large for one in found.values())
    hits = store.similarity_search(SearchRequest(vector=[1.0, 1.0], top_k=140))
    assert len(hits) == 140
