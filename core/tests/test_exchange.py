"""Failing engines: the right error and outcome, within the time, and the next call works (E1, E2, E4)."""

from __future__ import annotations

import time
from typing import Any

import pytest

from entrepot import Document, FunctionEmbeddingModel, SearchRequest, SimpleVectorStore
from entrepot.errors import (
    AuthenticationError,
    BackendError,
    BatchError,
    CollectionNotFoundError,
    DuplicateIdError,
    EntrepotError,
    OperationTimeoutError,
    UnreachableError,
)
from entrepot.exchange import MAX_ATTEMPTS, deadline, remaining


class Flaky(SimpleVectorStore):
    """A store whose driver fails on demand: refuses, hangs, answers half, answers late."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.faults: list[str] = []
        self.calls: list[str] = []

    def _fault(self, hook: str) -> str | None:
        self.calls.append(hook)
        fault = self.faults.pop(0) if self.faults else None
        if fault == "refuses":
            raise UnreachableError("connection refused") from ConnectionRefusedError()
        if fault == "bad login":
            raise AuthenticationError("the login was refused")
        if fault == "hangs":  # as a driver does that was given what remains
            time.sleep(remaining(10.0))
            raise OperationTimeoutError("no answer in time")
        if fault == "bare":
            raise KeyError("a driver's own error with a secret in it")
        return fault

    def _write(self, records: Any, if_exists: Any) -> object:
        fault = self._fault("write")
        if fault == "half":
            super()._write(records[: len(records) // 2], if_exists)
            raise UnreachableError("the connection broke", outcome="unknown")
        written = super()._write(records, if_exists)
        if fault == "late":
            raise OperationTimeoutError("no answer in time")
        return written

    def _search(self, query: Any) -> Any:
        self._fault("search")
        return super()._search(query)

    def _delete(self, target: Any) -> None:
        fault = self._fault("delete")
        super()._delete(target)
        if fault == "late":
            raise OperationTimeoutError("no answer in time")


def documents(count: int = 4, start: int = 0) -> list[Document]:
    return [Document(None, id=str(n), vector=[1.0, float(n)]) for n in range(start, start + count)]


@pytest.fixture
def flaky() -> Flaky:
    store = Flaky(timeout=1.0)
    store.add(documents(1, start=99))
    store.calls.clear()
    return store


REQUEST = SearchRequest(vector=[1.0, 0.0], top_k=10)


async def search(store: Flaky, colour: str, request: SearchRequest = REQUEST) -> list[Document]:
    return store.similarity_search(request) if colour == "sync" else await store.asimilarity_search(request)


async def delete(store: Flaky, colour: str) -> None:
    if colour == "sync":
        store.delete(["1"])
    else:
        await store.adelete(["1"])


@pytest.mark.parametrize("colour", ["sync", "async"])
async def test_a_refused_connection_is_tried_again_and_then_told(flaky: Flaky, colour: str) -> None:
    # E2, E4
    flaky.faults = ["refuses"] * 2
    assert [hit.id for hit in await search(flaky, colour)] == ["99"]
    assert flaky.calls == ["search"] * 3
    flaky.faults = ["refuses"] * 100
    flaky.calls.clear()
    with pytest.raises(UnreachableError) as caught:
        await search(flaky, colour)
    assert flaky.calls == ["search"] * MAX_ATTEMPTS
    assert isinstance(caught.value.__cause__, ConnectionRefusedError)
    assert caught.value.outcome == "not_done"
    flaky.faults = []
    assert [hit.id for hit in await search(flaky, colour)] == ["99"]


def test_what_cannot_get_better_is_not_tried_again(flaky: Flaky) -> None:
    # E4
    flaky.faults = ["bad login"]
    with pytest.raises(AuthenticationError):
        flaky.similarity_search(REQUEST)
    assert flaky.calls == ["search"]


@pytest.mark.parametrize("colour", ["sync", "async"])
async def test_retries_end_within_the_timeout(flaky: Flaky, colour: str) -> None:
    # E4: the store's time, and a request's own
    request = REQUEST.replace(timeout=0.3)
    flaky.faults = ["hangs"] * 100
    started = time.monotonic()
    with pytest.raises(OperationTimeoutError) as caught:
        await search(flaky, colour, request)
    assert time.monotonic() - started < 0.6
    assert isinstance(caught.value, TimeoutError)
    flaky.faults = []
    assert len(flaky.similarity_search(request)) == 1


@pytest.mark.parametrize("colour", ["sync", "async"])
async def test_a_drivers_exception_never_escapes_bare(flaky: Flaky, colour: str) -> None:
    # E1
    flaky.faults = ["bare"]
    with pytest.raises(BackendError) as read:
        await search(flaky, colour)
    flaky.faults = ["bare"]
    with pytest.raises(BackendError) as write:
        await delete(flaky, colour)
    assert isinstance(read.value.__cause__, KeyError)
    assert "secret" not in str(read.value)
    assert read.value.outcome == "not_done"
    assert write.value.outcome == "unknown"


def test_an_upsert_that_was_cut_off_is_tried_again(flaky: Flaky) -> None:
    # E4: writing whole documents twice is writing them once
    flaky.faults = ["half", "late"]
    assert flaky.add(documents()) == ["0", "1", "2", "3"]
    assert flaky.calls == ["write"] * 3
    assert flaky.count() == 5


def test_an_insert_that_was_cut_off_is_not(flaky: Flaky) -> None:
    # E4: a second try would find the first one's documents and call them another's
    flaky.faults = ["late"]
    with pytest.raises(EntrepotError) as caught:
        flaky.add(documents(), if_exists="error")
    assert not isinstance(caught.value, DuplicateIdError)
    assert caught.value.outcome == "unknown"
    assert flaky.calls == ["write"]
    flaky.faults = ["refuses"]
    assert len(flaky.add(documents(start=10), if_exists="error")) == 4


def test_the_outcome_of_a_batch_that_was_cut_off_is_told(flaky: Flaky) -> None:
    # D6, E4
    import msgspec

    limits = msgspec.structs.replace(flaky.capabilities.limits, write_batch=2)
    flaky.capabilities = msgspec.structs.replace(flaky.capabilities, limits=limits)
    flaky.faults = ["", *["half"] * MAX_ATTEMPTS]
    with pytest.raises(BatchError) as caught:
        flaky.add(documents(6))
    error = caught.value
    assert error.written == ("0", "1")
    assert error.unknown == ("2", "3")
    assert set(error.failed) == {"4", "5"}
    assert error.outcome == "unknown"
    assert error.retryable
    flaky.add(documents(6))
    assert flaky.count() == 7


def test_deleting_by_filter_is_not_repeated_when_nobody_knows(flaky: Flaky) -> None:
    # D7, E4: what was added in between would go with it
    flaky.faults = ["late"]
    with pytest.raises(OperationTimeoutError):
        flaky.delete(filter="a is null")
    assert flaky.calls == ["delete"]
    flaky.faults = ["late"]
    flaky.delete(["1", "2"])
    assert flaky.calls == ["delete"] * 3


def test_a_missing_collection_is_told_at_once(flaky: Flaky) -> None:
    # E2
    flaky.drop_collection()
    with pytest.raises(CollectionNotFoundError):
        flaky.similarity_search(REQUEST)


def test_time_is_for_exchanges_not_for_the_model() -> None:
    # E4: embedding many texts may take longer than an engine may
    def embed(texts: Any) -> Any:
        time.sleep(0.3)
        return [[1.0, float(len(text))] for text in texts]

    with SimpleVectorStore(embedding=FunctionEmbeddingModel(embed, "slow", 2), timeout=0.2) as store:
        assert store.add([Document("a", id="1")]) == ["1"]


def test_remaining_counts_down_and_never_reaches_zero() -> None:
    # E4
    assert remaining(7.0) == 7.0
    with deadline(0.05):
        first = remaining(7.0)
        assert 0 < first <= 0.05
        time.sleep(0.06)
        assert 0 < remaining(7.0) <= 0.001
    assert remaining(7.0) == 7.0


def test_a_store_that_does_not_open_is_closed() -> None:
    # E2, E5
    class Closed(SimpleVectorStore):
        released = 0

        def _open(self) -> None:
            raise UnreachableError("no connection", retryable=False)

        def _close(self) -> None:
            Closed.released += 1
            super()._close()

    with pytest.raises(UnreachableError):
        Closed().connect()
    assert Closed.released == 1


class Clinging(SimpleVectorStore):
    """A store whose driver fails at closing."""

    def _close(self) -> None:
        super()._close()
        raise RuntimeError("the driver's own words, with a s3cret")


async def test_a_driver_that_fails_at_closing_does_not_escape_bare() -> None:
    # E1, E5
    with pytest.raises(BackendError, match="RuntimeError") as caught:
        Clinging().close()
    assert isinstance(caught.value.__cause__, RuntimeError)
    assert "s3cret" not in str(caught.value)
    with pytest.raises(BackendError):
        await Clinging().aclose()
    store = Clinging()
    with pytest.raises(BackendError):
        store.close()
    store.close()  # and a second time is fine


async def test_closing_hides_no_error_of_the_body() -> None:
    # E1
    with pytest.raises(ZeroDivisionError) as caught, Clinging():
        raise ZeroDivisionError
    assert any("closing failed" in note for note in caught.value.__notes__)
    with pytest.raises(ZeroDivisionError):
        async with Clinging():
            raise ZeroDivisionError
