"""The store in local mode: what stores share, folders, clients, ids; what the suite does not see."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any

import pytest
from qdrant_client import QdrantClient, models

from entrepot import Document, SearchRequest
from entrepot.errors import (
    CollectionMismatchError,
    CollectionNotFoundError,
    DuplicateIdError,
    RequestError,
)

if TYPE_CHECKING:
    from pathlib import Path

    from plugins.qdrant.tests.conftest import MakeLocal

    from entrepot_qdrant import QdrantLocalVectorStore


def native(store: QdrantLocalVectorStore) -> QdrantClient:
    client = store.native_client
    assert isinstance(client, QdrantClient)
    return client


def documents(count: int, start: int = 0) -> list[Document]:
    return [
        Document(f"word{n}", id=f"{n:05}", metadata={"n": n, "s": f"s{n}"}, vector=[1.0, float(n)])
        for n in range(start, start + count)
    ]


def test_stores_on_one_place_share_their_data(make: MakeLocal, tmp_path: Path) -> None:
    # S7
    for where in ({"memory": "here"}, {"path": str(tmp_path / "a")}):
        one, two = make(**where), make(**where)
        one.add(documents(3))
        assert two.count() == 3
        one.close()
        assert two.count("n > 0") == 2
    with pytest.raises(CollectionNotFoundError):
        make(memory="elsewhere").count()


def test_a_folder_keeps_its_data(make: MakeLocal, tmp_path: Path) -> None:
    # D4, D5: and what the collection records
    one = make(path=str(tmp_path), metric="euclidean", collection="a b/c")
    one.add(documents(3))
    one.close()
    two = make(path=str(tmp_path), collection="a b/c")
    assert [(each.id, each.metadata) for each in two.get(["00001"])] == [("00001", {"n": 1, "s": "s1"})]
    assert (two.stats().metric, two.stats().dimension, two.list_collections()) == ("euclidean", 2, ["a b/c"])


def test_a_folder_belongs_to_one_process(make: MakeLocal, tmp_path: Path) -> None:
    make(path=str(tmp_path)).add(documents(1))
    code = (
        "import sys\nfrom entrepot import open_vector_store\nfrom entrepot.errors import StoreInUseError\n"
        "try: open_vector_store('qdrant-local:///' + sys.argv[1])\n"
        "except StoreInUseError: print('in use')\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code, str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "in use\n"


def test_a_client_that_is_given_stays_open(make: MakeLocal) -> None:
    # E5
    client = QdrantClient(":memory:")
    one, two = make(client=client), make(client=client)
    one.add(documents(2))
    assert two.count() == 2
    assert one.native_client is client
    one.close()
    two.close()
    assert client.count("default").count == 2


def test_many_threads_on_one_database(make: MakeLocal) -> None:
    # E5: the client itself is not made for several threads
    stores = [make() for _ in range(4)]
    stores[0].add(documents(1))
    failed: list[Exception] = []

    def work(number: int) -> None:
        try:
            for n in range(20):
                stores[number].add(documents(5, start=5 * n))
                assert stores[number].count("n >= 0") >= 5
                stores[number].update(["00001"], set={f"k{number}": n})
                stores[number].similarity_search(SearchRequest(vector=[1.0, 2.0], top_k=3))
        except Exception as error:  # noqa: BLE001 - whatever it is, the test tells
            failed.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    assert stores[0].count() == 100


def test_ids_that_the_engine_does_not_take(make: MakeLocal) -> None:
    # D1: any string; one that is a UUID already does not meet that of another
    store = make()
    names = [
        "1",
        "-1",
        "é" * 512,
        "a/b",
        "5c56c793-69f3-4fbf-87e6-c4bf54c28c26",
        "5C56C79369F34FBF87E6C4BF54C28C26",
    ]
    store.add([Document("x", id=name, vector=[1.0, 0.0]) for name in names])
    assert [each.id for each in store.get(names)] == names
    stored = store.native_client
    assert isinstance(stored, QdrantClient)
    ids = {str(point.id) for point in stored.scroll("default")[0]}
    assert not ids & set(names)


def test_a_collection_of_others_is_refused(make: MakeLocal) -> None:
    # D5
    client = QdrantClient(":memory:")
    client.create_collection("default", models.VectorParams(size=2, distance=models.Distance.DOT))
    store = make(client=client)
    for call in (store.count, store.drop_collection, lambda: store.add(documents(1))):
        with pytest.raises(CollectionMismatchError):
            call()
    assert store.list_collections() == []
    assert client.collection_exists("default")


def test_many_make_a_collection_at_once(make: MakeLocal) -> None:
    # D5
    stores = [make() for _ in range(8)]
    barrier = threading.Barrier(8)

    def work(number: int) -> None:
        barrier.wait()
        stores[number].add(documents(1, start=number))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert stores[0].count() == 8


def test_a_collection_made_anew_is_noticed(make: MakeLocal) -> None:
    # D5
    one, two = make(), make()
    one.add(documents(2))
    two.drop_collection()
    two.add([Document("x", id="x", vector=[1.0, 0.0, 0.0])])
    with pytest.raises(CollectionMismatchError):
        one.similarity_search(SearchRequest(vector=[1.0, 0.0], top_k=1))
    assert one.count() == 1


def test_tokens_of_scans(make: MakeLocal) -> None:
    # D7
    store = make()
    store.add(documents(25))
    pages = list(store.scan(batch_size=10).pages())
    assert [len(page.items) for page in pages] == [10, 10, 5]
    rest = [each.id for each in store.scan(batch_size=10, token=pages[0].token)]
    assert rest == [each.id for page in pages[1:] for each in page.items]
    with pytest.raises(RequestError):
        list(store.scan(token="00001"))


def _first(word: str) -> int:
    return ord(word[0])


def test_words_that_share_a_place(make: MakeLocal, monkeypatch: pytest.MonkeyPatch) -> None:
    # S9: what the engine finds is held against the text
    monkeypatch.setattr("entrepot_qdrant.words.place_of", _first)
    store = make()
    texts = ["apple", "ant", "avocado and apple", "bee", None]
    store.add([Document(text, id=f"{n}", vector=[1.0, 0.0]) for n, text in enumerate(texts)])
    found = store.similarity_search("Apple!", mode="fulltext", top_k=2)
    assert {each.id for each in found} == {"0", "2"}
    assert store.similarity_search("...", mode="fulltext") == []


def test_async_twins_in_local_mode(make: MakeLocal) -> None:
    # E3
    store = make()

    async def main() -> Any:
        await store.aadd(documents(5))
        with pytest.raises(DuplicateIdError):
            await store.aadd(documents(1), if_exists="error")
        await store.aupdate(["00001"], set={"n": -1})
        await store.adelete(["00002"])
        return await store.acount("n >= 0"), [each.id async for each in store.ascan("n < 0")]

    assert asyncio.run(main()) == (3, ["00001"])
