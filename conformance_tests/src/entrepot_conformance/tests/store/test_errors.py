"""Errors, retries, timeouts and cancelling: E1, E2, E4."""

from __future__ import annotations

import asyncio
import contextlib
import random
from typing import TYPE_CHECKING, Any

import pytest

from entrepot import Document, SearchRequest, exchange, open_vector_store
from entrepot.errors import (
    CollectionNotFoundError,
    EntrepotError,
    PluginNotFoundError,
    UnreachableError,
    UnsupportedSearchModeError,
)
from entrepot_conformance.tests.raising import raised_by
from entrepot_conformance.tests.spans import SECRET
from entrepot_conformance.tests.store.data import document

if TYPE_CHECKING:
    from collections.abc import Callable

    from entrepot import VectorStore
    from entrepot.errors import Outcome
    from entrepot_conformance.endpoints import Stores


def ready(stores: Stores) -> VectorStore:
    """Return a store with three documents."""
    store = stores(metric="euclidean")
    store.add([document(str(n), n, n=n) for n in range(3)])
    return store


def mistakes(store: VectorStore) -> list[Callable[[], object]]:
    """Return calls that the caller got wrong."""
    anything: Any = store
    return [
        lambda: anything.get("abc"),
        lambda: anything.get([""]),
        lambda: anything.get(["a"], include=["score"]),
        lambda: anything.add("abc"),
        lambda: anything.add([Document("a", id="")]),
        lambda: anything.add([document("a"), document("a")]),
        lambda: anything.add([Document(None, id="a", vector=[1.0])]),
        lambda: anything.add([document("a")], if_exists="merge"),
        lambda: anything.add([document("a")], timeout=0),
        anything.delete,
        lambda: anything.delete("abc"),
        lambda: anything.delete(filter="n =="),
        lambda: anything.update(["a"], set={"x": {}}),
        lambda: anything.count("n =="),
        lambda: anything.count("n < true"),
        lambda: anything.count(5),
        lambda: anything.scan(batch_size=0),
        lambda: anything.scan("n in 5"),
        lambda: anything.similarity_search(5),
        lambda: anything.similarity_search(SearchRequest(vector=[1.0])),
        lambda: anything.similarity_search(SearchRequest(near_id="unknown")),
        lambda: anything.similarity_search("a", top_k=-1),
        lambda: anything.similarity_search_batch("abc"),
        lambda: anything.where("n =="),
        lambda: anything.where("n == 1").add([document("a", n=2)]),
    ]


def test_the_callers_mistakes_are_value_errors_and_type_errors_of_the_one_tree(stores: Stores) -> None:
    # E1, E4: nothing was done, and the same call again helps nobody
    store = ready(stores)
    for number, mistake in enumerate(mistakes(store)):
        error = raised_by(mistake, f"mistake {number}")
        assert isinstance(error, EntrepotError), (number, error)
        assert isinstance(error, ValueError | TypeError), (number, error)
        assert (error.outcome, error.retryable) == ("not_done", False), (number, error)
    assert store.count() == 3


def test_an_exception_of_the_driver_becomes_the_cause(
    stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    # E1: and what it says, which may be a secret, stays in it
    store = ready(stores)

    def broken(*_: object) -> Any:
        raise OSError(SECRET)

    async def abroken(*_: object) -> Any:
        raise OSError(SECRET)

    monkeypatch.setattr(store, "_count", broken)
    monkeypatch.setattr(store, "_acount", abroken)
    calls: list[Callable[[], object]] = [store.count, lambda: asyncio.run(store.acount())]
    for call in calls:
        error = raised_by(call)
        assert isinstance(error, EntrepotError)
        assert isinstance(error.__cause__, OSError)
        assert SECRET not in str(error)


def test_a_missing_collection_says_what_to_do(stores: Stores) -> None:
    # E2
    store = stores(dimension=2)
    reads: list[Callable[[], object]] = [
        store.count,
        store.stats,
        lambda: store.get(["1"]),
        lambda: list(store.scan()),
        lambda: asyncio.run(store.acount()),
    ]
    for read in reads:
        with pytest.raises(CollectionNotFoundError) as caught:
            read()
        assert store.collection in str(caught.value)
        assert "create_collection" in caught.value.hint


def test_a_missing_plugin_says_what_to_do(stores: Stores) -> None:
    # E2: whatever else is installed beside this target
    assert stores(dimension=2).backend
    with pytest.raises(PluginNotFoundError) as caught:
        open_vector_store("nosuchbackend://localhost/x")
    assert "nosuchbackend" in str(caught.value)
    assert caught.value.hint


def test_what_is_declined_is_refused_by_its_own_class(stores: Stores) -> None:
    # S9, E1, E2: and a fallback that the request names is taken
    store = ready(stores)
    declared = {"fulltext": store.capabilities.fulltext, "hybrid": store.capabilities.hybrid}
    for mode, offered in declared.items():
        request = SearchRequest("text", mode=mode, vector=[1.0, 0.0] if mode == "hybrid" else None)
        if offered:
            assert len(store.similarity_search(request)) == 3
            continue
        with pytest.raises(UnsupportedSearchModeError) as caught:
            store.similarity_search(request)
        assert caught.value.capability == mode
        assert "fallback" in caught.value.hint
        if mode == "hybrid":
            assert len(store.similarity_search(request.replace(fallback="semantic"))) == 3


class Flaky:
    """A hook that fails some times before it does what it is for; it has two colours."""

    def __init__(self, hook: Callable[..., Any], failures: int, **options: Any) -> None:
        self._hook = hook
        self._failures = failures
        self._options = options
        self.first_outcome: Outcome | None = None
        self.tried = 0

    def __call__(self, *arguments: Any) -> Any:
        self.tried += 1
        if self.tried <= self._failures:
            message = "the server did not answer"
            options = dict(self._options)
            if self.tried == 1 and self.first_outcome is not None:
                options["outcome"] = self.first_outcome
            raise UnreachableError(message, **options)
        return self._hook(*arguments)

    async def twin(self, *arguments: Any) -> Any:
        return await asyncio.to_thread(self, *arguments)


def flaky(
    store: VectorStore, monkeypatch: pytest.MonkeyPatch, name: str, failures: int, **options: Any
) -> Flaky:
    """Let a hook of the store fail some times, in both colours."""
    hook = Flaky(getattr(store, f"_{name}"), failures, **options)
    monkeypatch.setattr(store, f"_{name}", hook)
    monkeypatch.setattr(store, f"_a{name}", hook.twin)
    return hook


@pytest.mark.parametrize("colour", ["sync", "async"])
def test_idempotent_calls_are_tried_again(
    stores: Stores, monkeypatch: pytest.MonkeyPatch, colour: str
) -> None:
    # E4: where the error says that this can help, and a bounded number of times
    store = ready(stores)
    count: Callable[[], int] = store.count if colour == "sync" else lambda: asyncio.run(store.acount())
    hook = flaky(store, monkeypatch, "count", 2, retryable=True)
    assert count() == 3
    assert hook.tried == 3
    monkeypatch.undo()
    hook = flaky(store, monkeypatch, "count", 1, retryable=False)
    with pytest.raises(UnreachableError):
        count()
    assert hook.tried == 1
    monkeypatch.undo()
    hook = flaky(store, monkeypatch, "count", 10**6, retryable=True)
    with pytest.raises(UnreachableError):
        count()
    assert 2 <= hook.tried <= 10


@pytest.mark.parametrize("colour", ["sync", "async"])
def test_the_last_of_several_tries_speaks_for_all(
    stores: Stores, monkeypatch: pytest.MonkeyPatch, colour: str
) -> None:
    # E4: if an earlier try may have been carried out, "not done" would be wrong, whatever became of the last
    store = ready(stores)
    hook = flaky(store, monkeypatch, "delete", 10**6, retryable=True, outcome="not_done")
    hook.first_outcome = "unknown"

    def delete() -> None:
        if colour == "sync":
            store.delete(["a"])
        else:
            asyncio.run(store.adelete(["a"]))

    with pytest.raises(UnreachableError) as caught:
        delete()
    assert hook.tried >= 2
    assert caught.value.outcome == "unknown"


def test_what_may_have_been_done_is_not_done_twice(stores: Stores, monkeypatch: pytest.MonkeyPatch) -> None:
    # E4, D2: an insert that must not find its id is sent again only if certainly nothing was done
    store = ready(stores)
    hook = flaky(store, monkeypatch, "write", 1, retryable=True, outcome="unknown")
    with pytest.raises(EntrepotError) as caught:
        store.add([document("new")], if_exists="error")
    assert caught.value.outcome == "unknown" or getattr(caught.value, "unknown", ()) == ("new",)
    assert hook.tried == 1
    monkeypatch.undo()
    hook = flaky(store, monkeypatch, "write", 1, retryable=True, outcome="not_done")
    store.add([document("new")], if_exists="error")
    assert hook.tried == 2
    monkeypatch.undo()
    hook = flaky(store, monkeypatch, "write", 1, retryable=True, outcome="unknown")
    store.add([document("newer")])
    assert hook.tried == 2
    assert store.count() == 5


def test_an_exchange_knows_how_long_it_may_take(stores: Stores, monkeypatch: pytest.MonkeyPatch) -> None:
    # E4: the store's timeout, or that of the request
    store = ready(stores)
    left: list[float] = []
    for name in ("search", "search_batch", "count"):
        hook = getattr(store, f"_{name}")

        def timed(*arguments: Any, hook: Any = hook) -> Any:
            left.append(exchange.remaining(10**6))
            return hook(*arguments)

        monkeypatch.setattr(store, f"_{name}", timed)
    calls: list[tuple[Callable[[], object], float]] = [
        (store.count, store.timeout),
        (lambda: store.similarity_search(SearchRequest(vector=[1.0, 0.0])), store.timeout),
        (lambda: store.similarity_search(SearchRequest(vector=[1.0, 0.0], timeout=3)), 3),
    ]
    for call, timeout in calls:
        left.clear()
        call()
        assert left
        assert all(timeout - 1 < seconds <= timeout for seconds in left), (left, timeout)


def test_cancelling_leaves_whole_sub_batches_and_a_usable_store(stores: Stores) -> None:
    # E4
    store = stores(metric="euclidean", dimension=2)
    store.create_collection()
    rng = random.Random(7)

    def part(number: int) -> list[Document]:
        return [document(f"{number:02}-{n}", n, part=number) for n in range(10)]

    async def cancelled() -> None:
        for number in range(30):
            task = asyncio.ensure_future(store.aadd(part(number)))
            await asyncio.sleep(rng.choice([0, 0, 0.0001, 0.0003, 0.0005, 0.001, 0.002]))
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        await store.aadd(part(30))

    asyncio.run(cancelled())
    counts = [store.count(f"part == {number}") for number in range(31)]
    assert set(counts) <= {0, 10}
    assert counts[30] == 10
    store.add(part(31))
    assert store.count("part == 31") == 10
