"""Calls that are under way when a store is closed: they succeed or end in `ClosedError`, and connect no more (E5)."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import pytest
from qdrant_client import AsyncQdrantClient, QdrantClient

from entrepot import Document, aopen_vector_store, open_vector_store
from entrepot.errors import ClosedError
from entrepot_qdrant import catalog

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from plugins.qdrant.tests.conftest import MakeLocal, MakeServed
    from plugins.qdrant.tests.emulator import Emulator


def documents(count: int) -> list[Document]:
    return [
        Document(f"word{n}", id=f"{n:05}", metadata={"n": n}, vector=[1.0, float(n)]) for n in range(count)
    ]


def until(condition: Callable[[], bool]) -> None:
    """Wait until a condition holds."""
    waited = threading.Event()
    for _ in range(2000):
        if condition():
            return
        waited.wait(0.005)
    raise AssertionError


def outcomes(calls: list[Callable[[], object]]) -> tuple[list[threading.Thread], list[object]]:
    """Begin calls on threads; return the threads, and what the calls come to."""
    found: list[object] = []

    def run(call: Callable[[], object]) -> None:
        try:
            found.append(call())
        except BaseException as error:  # noqa: BLE001 - whatever it is, the test tells
            found.append(error)

    threads = [threading.Thread(target=run, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    return threads, found


def check(found: list[object], count: int, *answers: object) -> None:
    assert len(found) == count
    wrong = [each for each in found if each not in answers and type(each) is not ClosedError]
    assert wrong == []


# --- a server ---------------------------------------------------------------------------------------------


def test_sync_calls_under_way_on_a_server(served: MakeServed, server: Emulator) -> None:
    store = served(timeout=5.0)
    store.add(documents(3))
    server.delay = 0.5
    before = len(server.requests)
    threads, found = outcomes([store.count, lambda: store.update(["00001"], set={"m": 1}), store.count])
    until(lambda: len(server.requests) >= before + 3)
    store.close()
    asked = len(server.requests)
    for thread in threads:
        thread.join()
    check(found, 3, 3, ["00001"])
    assert len(server.requests) == asked  # nothing connected anew


def test_async_calls_under_way_on_a_server(server: Emulator) -> None:
    async def main() -> list[object]:
        url = f"qdrant://127.0.0.1:{server.port}/articles"
        store: Any = await aopen_vector_store(url, timeout=5.0)
        await store.aadd(documents(3))
        server.delay = 0.5
        before = len(server.requests)
        calls = [
            asyncio.ensure_future(call) for call in (store.acount(), store.aupdate(["00001"], set={"m": 1}))
        ]
        await asyncio.to_thread(until, lambda: len(server.requests) >= before + 2)
        await store.aclose()
        asked = len(server.requests)
        found = await asyncio.gather(*calls, return_exceptions=True)
        assert len(server.requests) == asked
        return list(found)

    check(asyncio.run(main()), 2, 3, ["00001"])


def test_an_async_call_that_another_thread_closes_under(served: MakeServed, server: Emulator) -> None:
    store = served(timeout=5.0)
    store.add(documents(3))
    server.delay = 0.5
    before = len(server.requests)
    threads, found = outcomes([lambda: asyncio.run(store.acount())])
    until(lambda: len(server.requests) > before)
    store.close()
    for thread in threads:
        thread.join()
    check(found, 1, 3)


@pytest.mark.parametrize("given", ["none", "sync", "async"])
def test_a_closed_store_connects_no_more(server: Emulator, given: str) -> None:
    async def main() -> None:
        client: Any = None
        if given == "sync":
            client = QdrantClient("127.0.0.1", port=server.port, check_compatibility=False)
        elif given == "async":
            client = AsyncQdrantClient("127.0.0.1", port=server.port, check_compatibility=False)
        url = f"qdrant://127.0.0.1:{server.port}/a" if client is None else "qdrant:///a"
        store: Any = await aopen_vector_store(url, client=client)
        endpoint = store._endpoint
        await store.aclose()
        before = len(server.requests)
        if given != "async":
            with pytest.raises(ClosedError):
                endpoint.run(catalog.list_collections())
        if given != "sync":
            with pytest.raises(ClosedError):
                await endpoint.arun(catalog.list_collections())
        with pytest.raises(ClosedError):
            await store.acount()
        assert len(server.requests) == before

    asyncio.run(main())


# --- local mode -------------------------------------------------------------------------------------------


def held_up(store: Any, monkeypatch: pytest.MonkeyPatch) -> tuple[threading.Event, threading.Event]:
    """Let counts of a store wait; return what tells that one began, and what lets it go on."""
    began, go_on = threading.Event(), threading.Event()
    plain = store.native_client.count

    def late(**arguments: Any) -> Any:
        began.set()
        assert go_on.wait(10.0)
        return plain(**arguments)

    monkeypatch.setattr(store.native_client, "count", late)
    return began, go_on


@pytest.mark.parametrize("kind", ["memory", "folder", "given"])
def test_calls_under_way_in_local_mode(
    make: MakeLocal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    client = QdrantClient(":memory:", force_disable_check_same_thread=True)
    options: dict[str, dict[str, Any]] = {
        "memory": {"memory": "closing"},
        "folder": {"path": str(tmp_path)},
        "given": {"client": client},
    }
    store = make(**options[kind])
    store.add(documents(3))
    began, go_on = held_up(store, monkeypatch)
    threads, found = outcomes([store.count, lambda: asyncio.run(store.acount())])
    assert began.wait(10.0)
    closing, closed = outcomes([store.close])
    with make(memory="another") as other:  # nobody else waits for it
        other.add(documents(1))
        assert other.count() == 1
    go_on.set()
    for thread in (*threads, *closing):
        thread.join()
    check(found, 2, 3)
    assert 3 in found
    assert closed == [None]
    with pytest.raises(ClosedError):
        store.count()


def test_a_store_that_opens_while_another_closes_keeps_the_data(
    make: MakeLocal, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = make(memory="kept")
    store.add(documents(3))
    began, go_on = held_up(store, monkeypatch)
    threads, found = outcomes([store.count])
    assert began.wait(10.0)
    closing, _ = outcomes([store.close])
    endpoint: Any = store._endpoint  # pyright: ignore[reportPrivateUsage]
    until(lambda: endpoint._closed)
    later = make(memory="kept")
    go_on.set()
    for thread in (*threads, *closing):
        thread.join()
    assert found == [3]
    assert later.count() == 3


def test_a_closed_store_opens_nothing_again(make: MakeLocal) -> None:
    store = make()
    store.add(documents(1))
    endpoint = store._endpoint  # pyright: ignore[reportPrivateUsage]
    store.close()
    with pytest.raises(ClosedError):
        endpoint.run(catalog.list_collections())
    with pytest.raises(ClosedError):
        _ = endpoint.native
    with pytest.raises(ClosedError):
        store.count()


def test_closing_twice(make: MakeLocal, server: Emulator) -> None:
    store = make()
    store.close()
    store.close()
    other = open_vector_store(f"qdrant://127.0.0.1:{server.port}/a")
    other.close()
    other.close()
    with pytest.raises(ClosedError):
        other.count()
