"""A store whose server refuses, breaks off, is late, or goes and comes back: E1, E2, E3, E4, D6."""

from __future__ import annotations

import asyncio
import socket
import traceback
from typing import TYPE_CHECKING, Any

import pytest

from entrepot import Document, SearchRequest, aopen_vector_store, open_vector_store
from entrepot.errors import (
    AuthenticationError,
    BackendError,
    BatchError,
    DuplicateIdError,
    EntrepotError,
    OperationTimeoutError,
    UnreachableError,
)
from entrepot_conformance.servers import running_server
from entrepot_conformance.tests.faults.conftest import (
    CUTS,
    WRONG,
    at,
    in_time,
    late,
    proxied,
    startable,
    with_password,
)
from entrepot_conformance.tests.store.data import document

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from entrepot import VectorStore
    from entrepot_conformance.endpoints import Stores
    from entrepot_conformance.proxy import Proxy


@pytest.fixture
def proxy(stores: Stores) -> Iterator[Proxy]:
    """Return the proxy through which everything goes that `stores` opens."""
    with proxied(stores) as proxy:
        yield proxy


@pytest.fixture
def store(stores: Stores, proxy: Proxy, timeout: float) -> VectorStore:
    """Return a store that holds ten documents, opened through the proxy."""
    assert proxy.port
    stores(metric="euclidean").create_collection(
        dimension=2
    )  # some engines take longer than TIMEOUT for that
    store = stores(timeout=timeout, metric="euclidean")
    store.add([document(f"d{n}", n, n=n) for n in range(10)])
    return store


async def _ids(found: Any) -> list[str]:
    return [one.id for one in await found]


async def _scanned(store: VectorStore) -> list[str]:
    return sorted([found.id async for found in store.ascan("n < 3", batch_size=2)])


READS: dict[str, Callable[[VectorStore], Any]] = {
    "count": lambda store: store.count("n >= 5"),
    "get": lambda store: [found.id for found in store.get(["d3", "d1"])],
    "scan": lambda store: sorted(found.id for found in store.scan("n < 3", batch_size=2)),
    "search": lambda store: [
        hit.id for hit in store.similarity_search(SearchRequest(vector=[1.0, 4.2], top_k=2))
    ],
}
ASYNC_READS: dict[str, Callable[[VectorStore], Any]] = {
    "count": lambda store: store.acount("n >= 5"),
    "get": lambda store: _ids(store.aget(["d3", "d1"])),
    "scan": _scanned,
    "search": lambda store: _ids(store.asimilarity_search(SearchRequest(vector=[1.0, 4.2], top_k=2))),
}
ANSWERS: dict[str, Any] = {
    "count": 5,
    "get": ["d3", "d1"],
    "scan": ["d0", "d1", "d2"],
    "search": ["d4", "d5"],
}


def call(store: VectorStore, name: str, *, twin: bool) -> Any:
    """Read by one of `READS`, or by its async twin."""
    if not twin:
        return READS[name](store)

    async def ask() -> Any:
        return await ASYNC_READS[name](store)

    return asyncio.run(ask())


@pytest.mark.parametrize("twin", [False, True], ids=["sync", "async"])
def test_a_refused_port_is_unreachable(stores: Stores, timeout: float, *, twin: bool) -> None:
    # E2, E3
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and listens not
        stores.address = at(stores.address, "127.0.0.1", taken.getsockname()[1])
        with in_time(timeout), pytest.raises(UnreachableError) as caught:
            _open(stores.url(), timeout, twin=twin)
    assert caught.value.retryable
    assert caught.value.outcome == "not_done"
    assert "127.0.0.1" in str(caught.value)


def _open(url: str, timeout: float, *, twin: bool) -> None:
    async def opened() -> None:
        await aopen_vector_store(url, timeout=timeout)

    if twin:
        asyncio.run(opened())
    else:
        open_vector_store(url, timeout=timeout)


@pytest.mark.parametrize("twin", [False, True], ids=["sync", "async"])
def test_a_wrong_password_is_refused_and_not_told(stores: Stores, timeout: float, *, twin: bool) -> None:
    # E2, E1, E3
    stores.address = with_password(stores.address, WRONG)
    with in_time(timeout), pytest.raises(AuthenticationError) as caught:
        _open(stores.url(), timeout, twin=twin)
    assert not caught.value.retryable
    assert caught.value.hint
    assert caught.value.__cause__ is not None
    assert WRONG not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("twin", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("name", READS)
@pytest.mark.parametrize("after", CUTS)
def test_a_read_that_is_broken_off_once_is_answered(  # noqa: PLR0913 - each a parameter of the test
    store: VectorStore, proxy: Proxy, name: str, after: int, timeout: float, *, twin: bool
) -> None:
    # E4, E3
    with proxy.cutting(after, times=1), in_time(timeout):
        assert call(store, name, twin=twin) == ANSWERS[name]


@pytest.mark.parametrize("twin", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("name", READS)
def test_a_read_that_is_always_broken_off_is_told(
    store: VectorStore, proxy: Proxy, name: str, timeout: float, *, twin: bool
) -> None:
    # E4, E1, E3
    with proxy.cutting(0), in_time(timeout), pytest.raises(UnreachableError) as caught:
        call(store, name, twin=twin)
    assert caught.value.retryable
    assert proxy.harmed
    assert call(store, name, twin=twin) == ANSWERS[name]  # the next call works


@pytest.mark.parametrize("twin", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("name", READS)
def test_an_answer_that_is_late_is_a_timeout(
    store: VectorStore, proxy: Proxy, name: str, timeout: float, *, twin: bool
) -> None:
    # E4, E3
    with (
        proxy.delaying(late(timeout)),
        in_time(timeout),
        pytest.raises((OperationTimeoutError, UnreachableError)) as caught,
    ):
        call(store, name, twin=twin)
    assert caught.value.retryable
    proxy.break_all()
    assert call(store, name, twin=twin) == ANSWERS[name]


def _add(store: VectorStore, documents: list[Document], *, twin: bool, **given: Any) -> None:
    async def add() -> None:
        await store.aadd(documents, **given)

    if twin:
        asyncio.run(add())
    else:
        store.add(documents, **given)


@pytest.mark.parametrize("twin", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("after", CUTS)
def test_an_upsert_that_is_broken_off_once_is_whole(
    store: VectorStore, proxy: Proxy, after: int, timeout: float, *, twin: bool
) -> None:
    # E4, D2: it is idempotent, so it is tried again
    with proxy.cutting(after, times=1), in_time(timeout):
        _add(store, [document(f"d{n}", n, n=n, new=True) for n in range(5, 15)], twin=twin)
    assert store.count() == 15
    assert store.count("new == true") == 10


@pytest.mark.parametrize("twin", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("after", CUTS)
def test_an_insert_that_is_broken_off_is_told_or_done(
    store: VectorStore, proxy: Proxy, after: int, timeout: float, *, twin: bool
) -> None:
    # E4, D6: nobody knows, so it is not tried again; what is there is whole
    new = [document(f"n{n}", n, n=100 + n) for n in range(5)]
    told: EntrepotError | None = None
    with proxy.cutting(after, times=1), in_time(timeout):
        try:
            _add(store, new, twin=twin, if_exists="error")
        except (BatchError, BackendError) as error:
            told = error
    present = {found.id for found in store.get([one.id for one in new])}
    if told is None:
        assert present == {one.id for one in new}
        return
    assert present in (set(), {one.id for one in new})
    if isinstance(told, BatchError):
        sure = set(told.written)
        assert sure <= present
        assert not present & set(told.failed)
    if present:
        assert told.outcome == "unknown"
        with pytest.raises(DuplicateIdError):
            _add(store, new, twin=twin, if_exists="error")
    else:
        _add(store, new, twin=twin, if_exists="error")
        assert store.count("n >= 100") == 5


@pytest.mark.parametrize("twin", [False, True], ids=["sync", "async"])
def test_a_write_that_never_reached_the_server_changes_nothing(
    store: VectorStore, proxy: Proxy, timeout: float, *, twin: bool
) -> None:
    # E4, D6
    with proxy.losing_requests(), in_time(timeout), pytest.raises((BatchError, BackendError)) as caught:
        _add(store, [document("lost", 1)], twin=twin)
    if isinstance(caught.value, BatchError):
        assert caught.value.written == ()
        assert set(caught.value.failed) | set(caught.value.unknown) == {"lost"}
    assert store.get(["lost"]) == []
    _add(store, [document("lost", 1)], twin=twin)
    assert [found.id for found in store.get(["lost"])] == ["lost"]


@pytest.mark.parametrize("twin", [False, True], ids=["sync", "async"])
def test_a_write_whose_answer_is_late_is_unknown(
    store: VectorStore, proxy: Proxy, timeout: float, *, twin: bool
) -> None:
    # E4, D6
    with proxy.delaying(late(timeout)), in_time(timeout), pytest.raises((BatchError, BackendError)) as caught:
        _add(store, [document("late", 1, tag="x")], twin=twin)
    assert caught.value.retryable
    if isinstance(caught.value, BatchError):
        assert caught.value.written == ()
        assert set(caught.value.failed) | set(caught.value.unknown) == {"late"}
    proxy.break_all()
    _add(store, [document("late", 1, tag="x")], twin=twin)
    assert store.count("tag == 'x'") == 1


@pytest.mark.parametrize("twin", [False, True], ids=["sync", "async"])
def test_deleting_that_is_broken_off_leaves_a_usable_store(
    store: VectorStore, proxy: Proxy, timeout: float, *, twin: bool
) -> None:
    # E4, D7: deleting by ids is idempotent
    async def delete() -> None:
        await store.adelete(["d0", "d1"])

    with proxy.cutting(0, times=1), in_time(timeout):
        if twin:
            asyncio.run(delete())
        else:
            store.delete(["d0", "d1"])
    assert store.count() == 8


@pytest.mark.restarts
def test_a_server_that_stops_is_unreachable_and_found_again(
    stores: Stores, request: pytest.FixtureRequest, timeout: float
) -> None:
    # E2, E4, E3: the same objects go on when the server is back, on what it kept
    spec = stores.spec.server
    assert spec is not None
    with running_server(spec, startable(request.config)) as server:
        stores.address = server.url
        stores(metric="euclidean").create_collection(dimension=2)
        store = stores(timeout=timeout, metric="euclidean")
        store.add([document(f"d{n}", n, n=n) for n in range(10)])
        assert call(store, "count", twin=True) == 5
        server.stop()
        for twin in (False, True):
            with in_time(timeout), pytest.raises(UnreachableError) as caught:
                call(store, "count", twin=twin)
            assert caught.value.retryable
            with in_time(timeout), pytest.raises((BatchError, UnreachableError)):
                _add(store, [document("x", 1)], twin=twin)
        server.start()
        for twin in (False, True):
            store.create_collection(dimension=2)  # a server that keeps nothing has to have one
            _add(store, [document(f"d{n}", n, n=n) for n in range(10)], twin=twin)
            for name, answer in ANSWERS.items():
                assert call(store, name, twin=twin) == answer
        stores.close()
