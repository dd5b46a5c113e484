"""What is special to the embedded store, and what is shown on it of the core; the suite holds the rest."""

from __future__ import annotations

import asyncio
import gc
import logging
import time
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import pytest

from entrepot import Document, F, FunctionEmbeddingModel, SearchMode, SearchRequest, SimpleVectorStore
from entrepot.errors import BatchError, UnsupportedError, UnsupportedSearchModeError
from entrepot_conformance.tests.store.data import TEXTS

if TYPE_CHECKING:
    from collections.abc import Callable

    Make = Callable[..., SimpleVectorStore]


@pytest.fixture
def library(store: SimpleVectorStore) -> SimpleVectorStore:
    store.add([Document(text, id=name, metadata={"n": int(name)}) for name, text in TEXTS.items()])
    return store


class _Failing(SimpleVectorStore):
    """Fails at its third sub-batch of two."""

    writes = 0

    def _write(self, records: Any, if_exists: Any) -> object:
        self.writes += 1
        if self.writes == 3:
            raise UnsupportedError("the disk is full", capability="write")
        return super()._write(records, if_exists)


def test_a_failure_midway_tells_what_became_of_each_document(model: FunctionEmbeddingModel) -> None:
    # D6
    store = _Failing(embedding=model)
    limits = msgspec.structs.replace(store.capabilities.limits, write_batch=2)
    store.capabilities = msgspec.structs.replace(store.capabilities, limits=limits)
    with pytest.raises(BatchError) as caught:
        store.add([Document("a", id=str(number)) for number in range(7)])
    error = caught.value
    assert error.written == ("0", "1", "2", "3")
    assert set(error.failed) == {"4", "5", "6"}
    assert "disk is full" in error.failed["4"]
    assert error.unknown == ()
    assert isinstance(error.__cause__, UnsupportedError)
    assert sorted(document.id for document in store.scan()) == ["0", "1", "2", "3"]


def test_compaction_keeps_everything(make: Make, rng: np.random.Generator) -> None:
    # D2, D4: more dead rows than living ones, several times over
    store = make(dimension=4)
    vectors = rng.normal(size=(50, 4)).astype(np.float32)
    for round_ in range(60):
        store.add(
            [
                Document(f"t{round_}", id=f"{n:02}", metadata={"r": round_}, vector=vectors[n])
                for n in range(50)
            ]
        )
    assert store.stats().details["dead_rows"] < 1500
    assert store.count() == 50
    assert store.count("r == 59") == 50
    assert {document.text for document in store.scan()} == {"t59"}
    store.delete(["00"])
    assert make().count() == 49


def expected_scores(metric: str, vectors: Any, query: Any) -> Any:
    """S2 computed plainly in float64."""
    vectors, query = np.asarray(vectors, dtype=np.float64), np.asarray(query, dtype=np.float64)
    if metric == "euclidean":
        return 1 / (1 + ((vectors - query) ** 2).sum(axis=1))
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return (1 + unit @ (query / np.linalg.norm(query))) / 2


@pytest.mark.parametrize("metric", ["cosine", "dot", "euclidean"])
@pytest.mark.parametrize("share", [None, 1, 10, 60, 100], ids=lambda share: f"{share}%")
def test_hits_order_and_scores_are_those_of_plain_numpy(
    make: Make, rng: np.random.Generator, metric: str, share: int | None
) -> None:
    # S1, S2, S4
    vectors = rng.normal(size=(2000, 16))
    if metric == "dot":
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    vectors = vectors.astype(np.float32)
    places = rng.permutation(2000)
    store = make(metric=metric)
    store.add(
        [
            Document(None, id=f"d{n:04}", vector=vectors[n], metadata={"place": int(places[n])})
            for n in range(2000)
        ]
    )
    limit = 20 * (share or 100)
    for _ in range(5):
        query = rng.normal(size=16).astype(np.float32)
        if metric == "dot":
            query /= np.linalg.norm(query)
        scores = expected_scores(metric, vectors, query)
        allowed = [n for n in range(2000) if places[n] < limit]
        best = sorted(allowed, key=lambda n: (-scores[n], n))[:10]
        request = SearchRequest(
            vector=query, top_k=10, filter=None if share is None else F.place < limit, include=["metadata"]
        )
        hits = store.similarity_search(request)
        assert [hit.id for hit in hits] == [f"d{n:04}" for n in best]
        for hit, n in zip(hits, best, strict=True):
            assert hit.score == pytest.approx(scores[n], abs=1e-6)
            assert hit.metadata == {"place": int(places[n])}
            assert hit.rank_score is None


def test_huge_and_tiny_vectors_are_compared_rightly(make: Make) -> None:
    # S2: squares overflow float32 here
    store = make(metric="euclidean")
    store.add([Document(None, id="near", vector=[1e30, 0]), Document(None, id="far", vector=[3e38, 3e38])])
    assert [hit.id for hit in store.similarity_search(SearchRequest(vector=[1e30, 1.0]))] == ["near", "far"]
    cosine = make(collection="cosine")
    cosine.add([Document(None, id="x", vector=[1e-38, 0]), Document(None, id="y", vector=[0, 3e38])])
    assert [hit.id for hit in cosine.similarity_search(SearchRequest(vector=[1.0, 0.1]))] == ["x", "y"]


def test_fulltext_ranks_by_bm25(library: SimpleVectorStore) -> None:
    # S9: computed from the formula by hand, k1 = 1.2, b = 0.75
    lengths = {"1": 5, "2": 3, "3": 6, "4": 4, "5": 2}
    mean = sum(lengths.values()) / 5
    idf = np.log(1 + (5 - 3 + 0.5) / (3 + 0.5))
    times = {"1": 1, "2": 3, "3": 1}
    expected = {
        name: idf * count * 2.2 / (count + 1.2 * (0.25 + 0.75 * lengths[name] / mean))
        for name, count in times.items()
    }
    hits = library.similarity_search("wing", mode="fulltext", top_k=10)
    assert {hit.id: hit.rank_score for hit in hits} == pytest.approx(expected)


def test_a_mode_that_is_lacking_is_refused_or_falls_back_loudly(
    model: FunctionEmbeddingModel, caplog: pytest.LogCaptureFixture
) -> None:
    # S9
    class Plain(SimpleVectorStore):
        capabilities = msgspec.structs.replace(SimpleVectorStore.capabilities, fulltext=False, hybrid=False)

    store = Plain(embedding=model)
    store.add([Document("a", id="1")])
    for mode in ("fulltext", "hybrid"):
        with pytest.raises(UnsupportedSearchModeError):
            store.similarity_search("a", mode=mode)
        with pytest.raises(UnsupportedSearchModeError):
            store.similarity_search(SearchRequest("a", mode=mode, fallback="fulltext"))
    with caplog.at_level(logging.WARNING):
        hits = store.similarity_search(SearchRequest("secret a", mode="hybrid", fallback=SearchMode.SEMANTIC))
    assert [hit.id for hit in hits] == ["1"]
    assert "semantic" in caplog.text
    assert "secret" not in caplog.text  # O1


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
        await store.where("a >= 0 and c == 1").aadd(
            [document.replace(id=f"view {document.id}") for document in many]
        )
        await store.aadd([Document("x" * n, id=f"text {n}") for n in range(1, 400)])
        await store.asimilarity_search("abc", filter="a >= 100 and b == 'c'")
        await store.asimilarity_search("xxx", mode="fulltext")
        await store.asimilarity_search_batch(["a", "b"])
        await store.aget(["1"])
        await store.aupdate(["1"], set={"c": 1})
        assert await store.acount("c == 1") == len(many) + 1
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


async def test_cancelling_leaves_whole_sub_batches_and_a_usable_store() -> None:
    # E4
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


def test_closing_one_store_object_leaves_the_others(make: Make) -> None:
    # E5
    one, two = make(), make()
    one.add([Document(None, id="1", vector=[1.0])])
    one.close()
    assert two.count() == 1
