"""Threads, tasks, forks and closing on the embedded store: D2, E3, E5, S7."""

from __future__ import annotations

import asyncio
import gc
import os
import pickle
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from entrepot import Document, FunctionEmbeddingModel, SearchRequest, SimpleVectorStore
from entrepot.errors import BatchError, ClosedError, ForkError

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np

    Make = Callable[..., SimpleVectorStore]


def in_threads(*jobs: Callable[[], None]) -> None:
    """Run jobs at once and raise what any of them raised."""
    errors: list[BaseException] = []

    def guarded(job: Callable[[], None]) -> None:
        try:
            job()
        except BaseException as error:  # noqa: BLE001 - handed to the test
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(job,)) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def test_readers_see_whole_writes_only(make: Make) -> None:
    # D2: every write sets the same generation on all ten documents, and their vectors with it
    store = make(metric="euclidean")
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

    def write() -> None:
        for generation in range(1, 150):
            store.add(documents(generation))
        done.set()

    def read() -> None:
        newest = 0
        while not done.is_set():
            hits = store.similarity_search(
                SearchRequest(vector=[1.0, 0.0], top_k=20, include=["text", "metadata", "vector"])
            )
            assert len(hits) == 10
            (generation,) = {hit.metadata["g"] for hit in hits}
            assert {hit.text for hit in hits} == {f"g{generation}"}
            assert {float(hit.vector[1]) for hit in hits if hit.vector is not None} == {float(generation)}
            assert generation >= newest
            newest = generation
            assert store.count("g >= 0") == 10
            assert store.count(f"list == {generation}") in (0, 10)
            assert len({document.metadata["g"] for document in store.scan(batch_size=100)}) == 1
            assert len(store.similarity_search(f"g{generation}", mode="fulltext", top_k=20)) in (0, 10)

    in_threads(write, read, read)


def test_concurrent_upserts_of_one_id_leave_one_whole_version(make: Make) -> None:
    # D2
    store = make()

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

    in_threads(*(write(writer) for writer in range(4)))
    (document,) = store.get(["x"], include=["text", "metadata", "vector"])
    assert document.text == f"{document.metadata['w']}-{document.metadata['n']}"
    assert store.count() == 1


def test_one_of_many_racing_inserts_wins(make: Make) -> None:
    # D2
    from entrepot.errors import DuplicateIdError

    store = make(dimension=2)
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

    in_threads(*(insert(writer) for writer in range(8)))
    assert [str(writer) for writer in won] == [document.text for document in store.get(["x"])]


def test_what_one_store_object_wrote_the_next_search_of_another_sees(make: Make) -> None:
    # S7
    one, two = make(), make()
    for n in range(20):
        one.add([Document(None, id=str(n), vector=[1.0, n])])
        assert two.count() == n + 1
        assert len(two.similarity_search(SearchRequest(vector=[1.0, n], top_k=1))) == 1


class Slow(SimpleVectorStore):
    """Every hook takes its time, as a server may."""

    def _write(self, records: Any, if_exists: Any) -> object:
        time.sleep(0.2)
        return super()._write(records, if_exists)

    def _search(self, query: Any) -> Any:
        time.sleep(0.2)
        return super()._search(query)

    def _fetch(self, ids: Any, include: Any) -> Any:
        time.sleep(0.2)
        return super()._fetch(ids, include)


async def largest_gap(work: Any) -> float:
    """Return the largest gap in seconds of a ticker that runs beside some work."""
    gaps: list[float] = []
    stop = False

    async def tick() -> None:
        last = time.perf_counter()
        while not stop:
            await asyncio.sleep(0.001)
            now = time.perf_counter()
            gaps.append(now - last)
            last = now

    ticker = asyncio.create_task(tick())
    await asyncio.sleep(0.01)
    gaps.clear()
    await work
    stop = True
    await ticker
    return max(gaps)


async def test_the_event_loop_is_never_blocked() -> None:
    # E3: a slow model, a slow store, and a batch that takes long to check
    def embed(texts: Any) -> Any:
        time.sleep(0.2)
        return [[1.0, float(len(text))] for text in texts]

    store = Slow(embedding=FunctionEmbeddingModel(embed, "slow", 2))
    many = [
        Document("x" * 20, id=str(n), metadata={"a": n, "b": ["c"] * 5}, vector=[1.0, n + 1.0])
        for n in range(10_000)
    ]

    async def work() -> None:
        await store.aadd(many)
        await store.aadd([Document("x" * n, id=f"text {n}") for n in range(1, 400)])
        await store.asimilarity_search("abc", filter="a >= 100 and b == 'c'")
        await store.asimilarity_search("xxx", mode="fulltext")
        await store.asimilarity_search_batch(["a", "b"])
        await store.aget(["1"])
        await store.aupdate(["1"], set={"c": 1})
        assert await store.acount("c == 1") == 1
        async for _ in store.ascan("a < 100"):
            pass
        await store.adelete(filter="a < 5000")

    # What pytest and its plugins hold is not ours to collect meanwhile.
    gc.collect()
    gc.freeze()
    try:
        assert await largest_gap(work()) <= 0.05
    finally:
        gc.unfreeze()
    await store.aclose()


async def test_every_operation_has_a_twin_that_answers_alike(
    make: Make, model: FunctionEmbeddingModel
) -> None:
    # E3
    store = make(embedding=model)
    await store.acreate_collection()
    assert await store.acollection_exists()
    assert await store.alist_collections() == ["default"]
    documents = [Document("ab" * (n + 1) + "c" * n, id=str(n), metadata={"n": n}) for n in range(10)]
    assert await store.aadd(documents) == [str(n) for n in range(10)]
    assert await store.acount("n > 3") == store.count("n > 3") == 6
    assert await store.aget(["3", "x"]) == store.get(["3", "x"])
    assert await store.asimilarity_search("abc") == store.similarity_search("abc")
    assert await store.as_retriever().asimilarity_search("abc", top_k=2) == store.similarity_search(
        "abc", top_k=2
    )
    assert await store.asimilarity_search_batch(["a"]) == store.similarity_search_batch(["a"])
    assert [d async for d in store.ascan("n > 3", batch_size=2)] == list(store.scan("n > 3", batch_size=2))
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


def test_a_store_works_in_two_event_loops_in_a_row(make: Make) -> None:
    # E5
    store = make()

    async def work(name: str) -> int:
        await store.aadd([Document(None, id=name, vector=[1.0])])
        return await store.acount()

    assert asyncio.run(work("a")) == 1
    assert asyncio.run(work("b")) == 2


async def test_cancelling_leaves_whole_sub_batches_and_a_usable_store() -> None:
    # E4
    import msgspec

    store = Slow()
    limits = msgspec.structs.replace(store.capabilities.limits, write_batch=5)
    store.capabilities = msgspec.structs.replace(store.capabilities, limits=limits)
    task = asyncio.create_task(store.aadd([Document(None, id=str(n), vector=[1.0, n]) for n in range(50)]))
    while not store.collection_exists():  # noqa: ASYNC110 - there is no event for it
        await asyncio.sleep(0.005)
    await asyncio.sleep(0.3)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    settled = -1
    while settled != (settled := await store.acount()):  # noqa: ASYNC110 - what was under way may still land
        await asyncio.sleep(0.3)
    assert settled % 5 == 0
    assert settled < 50
    await store.aadd([Document(None, id="after", vector=[1.0, 0.0])])
    assert await store.acount() == settled + 1


def test_after_close_everything_is_refused(make: Make) -> None:
    # E5
    store = make()
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


def test_closing_one_store_object_leaves_the_others(make: Make) -> None:
    # E5
    one, two = make(), make()
    one.add([Document(None, id="1", vector=[1.0])])
    one.close()
    assert two.count() == 1


def test_pickling_is_refused_with_a_hint(make: Make) -> None:
    # E5
    with pytest.raises(ForkError, match="hint"):
        pickle.dumps(make())


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_use_after_fork_is_refused(make: Make) -> None:
    # E5
    store = make()
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


def test_a_batch_error_is_not_raised_for_whole_failures(make: Make) -> None:
    # D6: nothing was written, so the plain error says it all
    store = make(dimension=2, create=False)
    from entrepot.errors import CollectionNotFoundError

    with pytest.raises(CollectionNotFoundError) as caught:
        store.add([Document(None, vector=[1.0, 2.0])])
    assert not isinstance(caught.value, BatchError)


def test_random_writes_against_a_plain_model(make: Make, rng: np.random.Generator) -> None:
    # D2, D7, D10: a dict is the model
    store = make(metric="euclidean", dimension=2)
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
