# pyright: reportPrivateUsage=false
"""The store on a server: what the suite does not ask. D2, D5, D7, S1, E3, E4, E5, T2."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from plugins.mongodb.tests.servers import target
from pymongo import AsyncMongoClient, MongoClient

from entrepot import Document, SearchRequest
from entrepot.errors import (
    CollectionMismatchError,
    CollectionNotFoundError,
    ConfigurationError,
    DuplicateIdError,
    OutsideViewError,
)
from entrepot.records import Record
from entrepot_mongodb import MongoDBVectorStore, changing, searching
from entrepot_mongodb.fields import vectors_of
from entrepot_mongodb.names import CATALOG

if TYPE_CHECKING:
    from plugins.mongodb.tests.servers import Make
    from pymongo.database import Database

pytestmark = pytest.mark.slow  # there is no server but in a container


def documents(count: int, **metadata: Any) -> list[Document]:
    return [
        Document(f"text {n}", id=f"{n:04}", metadata={"n": n, **metadata}, vector=[1.0, n])
        for n in range(count)
    ]


def test_the_layout(make: Make, database: Database[dict[str, Any]]) -> None:
    store = make(metric="euclidean")
    store.add([Document("a text", id="$where", metadata={"a.b": 1, "$or": ["x", "y"]}, vector=[1.0, 2.0])])
    record = database[CATALOG].find_one({"_id": "articles"})
    assert record is not None
    assert (record["metric"], record["dimension"], record["index"]) == ("euclidean", 2, "flat")
    assert record["documents"].startswith("articles.")
    stored = database[record["documents"]].find_one({"_id": "$where"})
    assert stored is not None
    assert stored.keys() == {"_id", "v", "t", "d"}
    assert stored["d"].keys() == {"j", "x", "e"}
    assert stored["d"]["j"] == '{"a.b":1,"$or":["x","y"]}'
    assert [one["key"] for one in database[record["documents"]].list_indexes()][1:] == [{"t": 1}]


def test_both_forms_of_vectors_are_read(make: Make, database: Database[dict[str, Any]]) -> None:
    # D9: as numbers, in documents of other tools; a double of the protocol takes no subtype 9
    store = make(metric="euclidean", binary="plain")
    store.add(documents(3))
    record = database[CATALOG].find_one({"_id": "articles"})
    assert record is not None
    database[record["documents"]].update_one({"_id": "0001"}, {"$set": {"d.e": [1.0, 7.0]}})
    hits = store.similarity_search(SearchRequest(vector=[1.0, 7.0], top_k=1, include=["vector"]))
    assert hits[0].id == "0001"
    assert hits[0].score == 1.0
    assert hits[0].vector is not None
    assert hits[0].vector.tolist() == [1.0, 7.0]


def test_a_collection_of_other_software_is_refused(make: Make, database: Database[dict[str, Any]]) -> None:
    # D5
    database["theirs"].insert_one({"_id": "1", "text": "x"})
    store = make(collection="theirs", dimension=2)
    with pytest.raises(CollectionMismatchError, match="theirs"):
        store.count()
    with pytest.raises(CollectionMismatchError):
        store.create_collection()
    with pytest.raises(CollectionMismatchError):
        store.drop_collection()
    assert database["theirs"].count_documents({}) == 1


def test_a_newer_layout_is_refused(make: Make, database: Database[dict[str, Any]]) -> None:
    # D5
    make(dimension=2).create_collection()
    database[CATALOG].update_one({"_id": "articles"}, {"$set": {"layout": 99}})
    with pytest.raises(CollectionMismatchError, match="layout 99"):
        make().count()


def test_a_write_to_a_collection_that_was_dropped_leaves_nothing(
    make: Make, database: Database[dict[str, Any]]
) -> None:
    # D5: the engine makes what is written to
    store, other = make(), make()
    store.add(documents(3))
    place = store._here()
    other.drop_collection()
    with pytest.raises(CollectionNotFoundError):
        store.update(["0000"], set={"x": 1})
    record = Record("late", None, {}, b"{}", np.ones(2, np.float32))
    with pytest.raises(CollectionNotFoundError):
        store._answer(changing.write(place, [record], "replace"))
    assert not [name for name in database.list_collection_names() if name.startswith("articles")]
    other.add(documents(1))
    with pytest.raises(CollectionNotFoundError):
        store._answer(changing.write(place, [record], "replace"))
    assert place.name not in database.list_collection_names()
    assert [found.id for found in other.scan()] == ["0000"]


def test_a_drop_that_broke_off_is_finished(make: Make, database: Database[dict[str, Any]]) -> None:
    store = make()
    store.add(documents(3))
    record = database[CATALOG].find_one_and_update({"_id": "articles"}, {"$set": {"dropped": True}})
    assert record is not None
    assert not make().collection_exists()
    assert make().list_collections() == []
    fresh = make(metric="euclidean", dimension=3)
    fresh.create_collection()
    assert record["documents"] not in database.list_collection_names()
    assert fresh.stats().dimension == 3


def test_two_that_make_a_collection_at_once_make_one(make: Make, database: Database[dict[str, Any]]) -> None:
    # D5
    stores = [make(dimension=2) for _ in range(6)]
    start = threading.Barrier(6)

    def create(store: MongoDBVectorStore) -> None:
        start.wait()
        store.create_collection()

    threads = [threading.Thread(target=create, args=(store,)) for store in stores]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len([name for name in database.list_collection_names() if name.startswith("articles.")]) == 1
    stores[0].add(documents(2))
    assert [store.count() for store in stores] == [2] * 6


def test_vectors_are_compared_in_blocks(
    make: Make, monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    # S1: ties at the cut by id, over many blocks; no more than a block is in memory
    monkeypatch.setattr(searching, "_BLOCK_ROWS", 16)
    store = make(metric="euclidean")
    matrix = rng.integers(-3, 4, size=(500, 3)).astype(np.float32)
    matrix[np.abs(matrix).sum(axis=1) == 0] = 1.0
    names = [f"{n:03}" for n in rng.permutation(500)]
    store.add(
        [Document(name, id=name, metadata={}, vector=row) for name, row in zip(names, matrix, strict=True)]
    )
    largest = 0
    real = vectors_of

    def counted(found: Any, dimension: int) -> Any:
        nonlocal largest
        largest = max(largest, len(found))
        return real(found, dimension)

    monkeypatch.setattr(searching, "vectors_of", counted)
    query = np.array([1.0, 0.0, 2.0])
    far = ((matrix.astype(np.float64) - query) ** 2).sum(axis=1)
    expected = [name for _, name in sorted(zip(far.tolist(), names, strict=True))]
    for k in (1, 7, 40, 499, 600):
        hits = store.similarity_search(SearchRequest(vector=query.tolist(), top_k=k))
        assert [hit.id for hit in hits] == expected[:k]
    assert largest <= 16


def test_a_batch_of_searches_reads_the_vectors_once(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    store = make(metric="euclidean")
    store.add(documents(50))
    reads = 0
    real = vectors_of

    def counted(found: Any, dimension: int) -> Any:
        nonlocal reads
        reads += 1
        return real(found, dimension)

    monkeypatch.setattr(searching, "vectors_of", counted)
    requests = [SearchRequest(vector=[1.0, at], top_k=1, filter="n >= 10") for at in range(20)]
    found = [[hit.id for hit in hits] for hits in store.similarity_search_batch(requests)]
    assert found == [[f"{max(at, 10):04}"] for at in range(20)]
    assert reads == 1


def test_a_hit_that_changes_between_the_reads_is_compared_again(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    # S2, F9: a hit is what was compared, and matches
    store, other = make(metric="euclidean"), make()
    store.add(documents(10))
    real = searching._hits
    changes = [{"n": 100}, {"n": 101}]

    def hits(*given: Any, **options: Any) -> Any:
        if changes:
            other.update(["0003"], set=changes.pop(0))
        return real(*given, **options)

    monkeypatch.setattr(searching, "_hits", hits)
    found = store.similarity_search(SearchRequest(vector=[1.0, 3.0], top_k=2, filter="n < 10"))
    assert [hit.id for hit in found] == ["0002", "0004"]


def test_writers_of_one_document_leave_one_whole(make: Make) -> None:
    # D2, T2: unguarded, guarded and skipping at once
    store = make(metric="euclidean")
    store.add([Document("start", id="one", metadata={"tenant": "a", "by": -1}, vector=[1.0, 0.0])])
    view = store.where("tenant == 'a'")
    errors: list[BaseException] = []

    def write(number: int) -> None:
        try:
            for turn in range(10):
                document = Document(
                    f"by {number}",
                    id="one",
                    metadata={"tenant": "a", "by": number, "turn": turn},
                    vector=[1.0, number],
                )
                (view if number % 2 else store).add([document])
        except BaseException as error:  # noqa: BLE001 - told below
            errors.append(error)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    (found,) = store.get(["one"], include=["text", "metadata", "vector"])
    assert found.text == f"by {found.metadata['by']}"
    assert found.vector is not None
    assert found.vector.tolist() == [1.0, found.metadata["by"]]
    assert found.metadata["turn"] == 9


def test_counting_by_update_loses_nothing(make: Make) -> None:
    # T2: of a guarded update only what was seen is changed
    store = make(metric="euclidean")
    store.add(documents(20, tenant="a"))
    view = store.where("tenant == 'a'")
    names = [f"{n:04}" for n in range(20)]

    def mark(number: int) -> None:
        assert view.update(names, set={f"by {number}": True}) == names

    threads = [threading.Thread(target=mark, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for found in store.get(names):
        assert {key for key in found.metadata if key.startswith("by")} == {
            f"by {number}" for number in range(6)
        }


def test_guarded_writes_refuse_what_lies_outside_whole(make: Make) -> None:
    # T2
    store = make(metric="euclidean")
    store.add([Document("b's", id="0001", metadata={"tenant": "b"}, vector=[1.0, 1.0])])
    view = store.where("tenant == 'a'")
    with pytest.raises(OutsideViewError) as caught:
        view.add(documents(3))
    assert caught.value.outcome == "not_done"
    assert store.count() == 1
    view.add([document for document in documents(3) if document.id != "0001"])
    with pytest.raises(DuplicateIdError):
        view.add([Document("x", id="0000", metadata={}, vector=[1.0, 1.0])], if_exists="error")
    view.add([Document("x", id="0000", metadata={}, vector=[1.0, 1.0])], if_exists="skip")
    assert store.get(["0000"])[0].text == "text 0"
    with pytest.raises(OutsideViewError):
        view.delete(["0000", "0001"])
    view.delete(["0000", "nothing"])
    assert [found.id for found in store.get(["0000", "0001", "0002"])] == ["0001", "0002"]


def test_deleting_by_filter_leaves_what_changed_or_came_since(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    # D7
    store, other = make(metric="euclidean"), make()
    store.add(documents(30))
    real = changing._delete_seen

    def seen(*given: Any) -> Any:
        other.update(["0003"], set={"changed": True})
        other.add([Document("late", id="late", metadata={"n": 5}, vector=[1.0, 1.0])])
        return real(*given)

    monkeypatch.setattr(changing, "_delete_seen", seen)
    store.delete(filter="n < 20")
    left = sorted(found.id for found in store.scan())
    assert left == ["0003", *(f"{n:04}" for n in range(20, 30)), "late"]


@pytest.mark.parametrize("which", ["sync", "async"])
def test_a_client_of_the_users_is_used_and_stays_open(
    server: str, database: Database[dict[str, Any]], which: str
) -> None:
    # E5
    given = target(server)
    address = f"mongodb://{given['host']}:{given['port']}"

    async def asynchronously() -> None:
        client: AsyncMongoClient[dict[str, Any]] = AsyncMongoClient(address)
        async with MongoDBVectorStore(client=client, database=database.name, metric="euclidean") as store:
            await store.aadd(documents(3))
            assert await store.acount() == 3
            with pytest.raises(ConfigurationError, match="async"):
                store.count()
        assert (await client.admin.command("ping"))["ok"]
        await client.close()

    if which == "async":
        asyncio.run(asynchronously())
        return
    with MongoClient[dict[str, Any]](address) as client:
        with MongoDBVectorStore(client=client, database=database.name, metric="euclidean") as store:
            store.add(documents(3))
            assert asyncio.run(_counted(store)) == 3
            assert store.native_client is client
        assert client.admin.command("ping")["ok"]


async def _counted(store: MongoDBVectorStore) -> int:
    return await store.acount()


def test_ids_of_two_thousand_bytes_and_many_of_them(make: Make) -> None:
    # D1, D7, S8
    names = ["😀" * 508 + f"{n:04}" for n in range(600)]
    store = make(metric="euclidean")
    store.add([Document(None, id=name, metadata={"n": n}, vector=[1.0, n]) for n, name in enumerate(names)])
    assert [found.id for found in store.get(names[::-1])] == names[::-1]
    request = SearchRequest(vector=[1.0, 590.0], top_k=5, ids=names[:580])
    assert [hit.id for hit in store.similarity_search(request)] == names[579:574:-1]
    store.delete(names[:599])
    assert [found.id for found in store.scan(batch_size=7)] == names[599:]
