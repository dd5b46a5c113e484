"""Threads, tasks, forks and closing: D2, E3, E5, S7."""

from __future__ import annotations

import asyncio
import os
import pickle
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from entrepot import Document, FunctionEmbeddingModel, SearchRequest
from entrepot.errors import BatchError, ClosedError, ForkError
from entrepot_conformance.tests.memory.messages import at_once
from entrepot_conformance.tests.store.data import declined

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np

    from entrepot_conformance.endpoints import Stores


def test_readers_see_whole_writes_only(stores: Stores) -> None:
    # D2: every write sets the same generation on all ten documents, and their vectors with it; seen are documents
    # of one generation each, never an older one again, and all of one where batches are declared atomic
    store = stores(metric="euclidean")
    done = threading.Event()

    def documents(generation: int) -> list[Document]:
        return [
            Document(
                f"g{generation}",
                id=str(n),
                metadata={"g": generation, "list": [generation]},
                vector=[1.0, generation],
            )
            for n in range(10)
        ]

    store.add(documents(0))
    whole = store.capabilities.atomic_batch
    words = whole and not declined(store, "fulltext")

    def write() -> None:
        try:
            for generation in range(1, 150):
                store.add(documents(generation))
        finally:
            done.set()

    def read() -> None:
        newest = dict.fromkeys(map(str, range(10)), 0)
        while not done.is_set():
            hits = store.similarity_search(
                SearchRequest(vector=[1.0, 0.0], top_k=20, include=["text", "metadata", "vector"])
            )
            seen = {hit.id: hit.metadata["g"] for hit in hits}
            assert len(hits) == 10
            assert seen.keys() == newest.keys()
            for hit in hits:
                assert hit.vector is not None
                assert (hit.text, float(hit.vector[1])) == (f"g{seen[hit.id]}", float(seen[hit.id]))
                assert hit.metadata["list"] == [seen[hit.id]]
                assert seen[hit.id] >= newest[hit.id]
            newest = seen
            assert store.count("g >= 0") == 10
            scanned = {document.id: document.metadata["g"] for document in store.scan(batch_size=100)}
            assert scanned.keys() == newest.keys()
            if whole:
                assert len(set(seen.values())) == len(set(scanned.values())) == 1
                assert store.count(f"list == {seen['0']}") in (0, 10)
            if words:
                assert len(store.similarity_search(f"g{seen['0']}", mode="fulltext", top_k=20)) in (0, 10)

    at_once(write, read, read)


def test_concurrent_upserts_of_one_id_leave_one_whole_version(stores: Stores) -> None:
    # D2
    store = stores()

    def write(writer: int) -> Callable[[], None]:
        def job() -> None:
            for n in range(40):
                store.add(
                    [
                        Document(
                            f"{writer}-{n}",
                            id="x",
                            metadata={"w": writer, "n": n},
                            vector=[1.0, writer * 100 + n],
                        )
                    ]
                )

        return job

    at_once(*(write(writer) for writer in range(4)))
    (document,) = store.get(["x"], include=["text", "metadata", "vector"])
    assert document.text == f"{document.metadata['w']}-{document.metadata['n']}"
    assert store.count() == 1


def test_one_of_many_racing_inserts_wins(stores: Stores) -> None:
    # D2
    from entrepot.errors import DuplicateIdError

    store = stores(dimension=2)
    store.create_collection()
    won: list[int] = []

    def insert(writer: int) -> Callable[[], None]:
        def job() -> None:
            try:
                store.add([Document(str(writer), id="x", vector=[1.0, 1.0])], if_exists="error")
            except DuplicateIdError:
                return
            won.append(writer)

        return job

    at_once(*(insert(writer) for writer in range(8)))
    kept = [document.text for document in store.get(["x"])]
    if store.capabilities.conditional_write == "atomic":
        assert [str(writer) for writer in won] == kept
        return
    # Checked and then written: several may have found the id free; one whole document is left, of one of them.
    assert len(kept) == 1
    assert kept[0] in {str(writer) for writer in won}
    with pytest.raises(DuplicateIdError):
        store.add([Document("late", id="x", vector=[1.0, 1.0])], if_exists="error")
    assert [document.text for document in store.get(["x"])] == kept


def test_what_one_store_object_wrote_the_next_search_of_another_sees(stores: Stores) -> None:
    # S7
    one, two = stores(), stores()
    for n in range(20):
        one.add([Document(None, id=str(n), vector=[1.0, n])])
        assert two.count() == n + 1
        assert len(two.similarity_search(SearchRequest(vector=[1.0, n], top_k=1))) == 1


def test_every_operation_has_a_twin_that_answers_alike(stores: Stores, model: FunctionEmbeddingModel) -> None:
    async def twins() -> None:
        # E3
        store = stores(embedding=model)
        await store.acreate_collection()
        assert await store.acollection_exists()
        assert store.collection in await store.alist_collections()
        documents = [Document("ab" * (n + 1) + "c" * n, id=str(n), metadata={"n": n}) for n in range(10)]
        assert await store.aadd(documents) == [str(n) for n in range(10)]
        assert await store.acount("n > 3") == store.count("n > 3") == 6
        assert await store.aget(["3", "x"]) == store.get(["3", "x"])
        assert await store.asimilarity_search("abc") == store.similarity_search("abc")
        assert await store.as_retriever().asimilarity_search("abc", top_k=2) == store.similarity_search(
            "abc", top_k=2
        )
        assert await store.asimilarity_search_batch(["a"]) == store.similarity_search_batch(["a"])
        assert [d async for d in store.ascan("n > 3", batch_size=2)] == list(
            store.scan("n > 3", batch_size=2)
        )
        pages = [page async for page in store.ascan("n > 3", batch_size=4).pages()]
        assert [len(page.items) for page in pages] == [4, 2]
        assert await store.astats() == store.stats()
        assert await store.aupdate(["1"], set={"m": 1}) == ["1"]
        await store.adelete(["1"])
        await store.adelete_all()
        assert await store.acount() == 0
        await store.adrop_collection()
        assert not store.collection_exists()
        async with store:
            pass
        with pytest.raises(ClosedError):
            await store.acount()

    asyncio.run(twins())


def test_a_store_works_in_two_event_loops_in_a_row(stores: Stores) -> None:
    # E5
    store = stores()

    async def work(name: str) -> int:
        await store.aadd([Document(None, id=name, vector=[1.0])])
        return await store.acount()

    assert asyncio.run(work("a")) == 1
    assert asyncio.run(work("b")) == 2


def test_after_close_everything_is_refused(stores: Stores) -> None:
    # E5
    store = stores()
    store.add([Document(None, vector=[1.0])])
    store.close()
    store.close()
    for use in (
        store.count,
        lambda: store.add([]),
        lambda: list(store.scan()),
        store.stats,
        lambda: store.explain(None),
    ):
        with pytest.raises(ClosedError, match="closed"):
            use()
    assert "closed" in repr(store)


def test_pickling_is_refused_with_a_hint(stores: Stores) -> None:
    # E5
    with pytest.raises(ForkError, match="hint"):
        pickle.dumps(stores())


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_use_after_fork_is_refused(stores: Stores) -> None:
    # E5
    store = stores()
    store.add([Document(None, id="1", vector=[1.0])])
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:  # pragma: no cover - the other process
        answer = b"used"
        try:
            store.count()
        except ForkError:
            answer = b"refused"
        os.write(writer, answer)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        assert pipe.read() == b"refused"
    os.waitpid(child, 0)
    assert store.count() == 1


def test_a_batch_error_is_not_raised_for_whole_failures(stores: Stores) -> None:
    # D6: nothing was written, so the plain error says it all
    store = stores(dimension=2, create=False)
    from entrepot.errors import CollectionNotFoundError

    with pytest.raises(CollectionNotFoundError) as caught:
        store.add([Document(None, vector=[1.0, 2.0])])
    assert not isinstance(caught.value, BatchError)


def test_random_writes_against_a_plain_model(stores: Stores, rng: np.random.Generator) -> None:
    # D2, D7, D10: a dict is the model
    store = stores(metric="euclidean", dimension=2)
    store.create_collection()
    model: dict[str, dict[str, Any]] = {}
    for step in range(400):
        name = str(rng.integers(30))
        kind = rng.integers(5)
        if kind <= 1:
            metadata = {"step": step, "group": int(rng.integers(4))}
            store.add([Document(str(step), id=name, metadata=metadata, vector=[1.0, float(step)])])
            model[name] = metadata
        elif kind == 2:
            store.delete([name])
            model.pop(name, None)
        elif kind == 3:
            store.update([name], set={"group": step % 4}, unset=["step"])
            if name in model:
                model[name] = {"group": step % 4}
        else:
            group = int(rng.integers(8))
            store.delete(filter=f"group == {group} and step is not null")
            model = {
                key: value for key, value in model.items() if value["group"] != group or "step" not in value
            }
        if step % 10 == 0:
            assert {document.id: document.metadata for document in store.scan(batch_size=7)} == model
            assert store.count("group <= 1") == sum(value["group"] <= 1 for value in model.values())


def test_closing_while_others_search_ends_in_answers_or_closed_errors(stores: Stores) -> None:
    # E5, E1: whatever is under way is finished or told, and never by a driver's exception
    store = stores(metric="euclidean")
    store.add([Document(str(n), id=str(n), metadata={"n": n}, vector=[1.0, n]) for n in range(50)])
    started = threading.Barrier(4)
    answered: list[int] = []

    def read() -> None:
        started.wait()
        try:
            while True:
                hits = store.similarity_search(SearchRequest(vector=[1.0, 7.0], top_k=3, filter="n < 40"))
                assert [hit.id for hit in hits] == ["7", "6", "8"]
                answered.append(store.count("n >= 0"))
        except ClosedError:
            return

    def close() -> None:
        started.wait()
        while len(answered) < 5:
            time.sleep(0)
        store.close()

    at_once(read, read, read, close)
    assert set(answered) == {50}
    assert store.is_closed
