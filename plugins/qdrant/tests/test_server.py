"""What the plugin does with a server, tried on a stand-in: E2 to E5, S1, S7, D2, D7, D10. It proves nothing of Qdrant."""

from __future__ import annotations

import asyncio
import inspect
import re
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest
from qdrant_client import AsyncQdrantClient, QdrantClient, models

from entrepot import Document, SearchRequest, aopen_vector_store, open_vector_store
from entrepot.errors import (
    AuthenticationError,
    BackendError,
    CollectionNotFoundError,
    ConfigurationError,
    DuplicateIdError,
    OperationTimeoutError,
    UnreachableError,
)
from entrepot_qdrant import catalog, changing, reading

if TYPE_CHECKING:
    from plugins.qdrant.tests.conftest import MakeServed
    from plugins.qdrant.tests.emulator import Emulator

    from entrepot_qdrant import QdrantVectorStore


def documents(count: int, start: int = 0) -> list[Document]:
    return [
        Document(f"word{n}", id=f"{n:05}", metadata={"n": n, "s": f"s{n}"}, vector=[1.0, float(n)])
        for n in range(start, start + count)
    ]


def native(store: QdrantVectorStore) -> QdrantClient:
    client = store.native_client
    assert isinstance(client, QdrantClient)
    return client


def noting(call: Any, asked: list[Any]) -> Any:
    def noted(**arguments: Any) -> Any:
        asked.append(arguments["search_params"])
        return call(**arguments)

    return noted


def url(server: Emulator) -> str:
    return f"qdrant://127.0.0.1:{server.port}/articles"


# --- errors -----------------------------------------------------------------------------------------------


def test_a_port_where_nothing_listens() -> None:
    # E2
    for more in ("", "?grpc=true&grpc_port=1"):
        with pytest.raises(UnreachableError, match="hint"):
            open_vector_store(f"qdrant://127.0.0.1:1/articles{more}", timeout=2.0)

    async def main() -> None:
        for more in ("", "?grpc=true&grpc_port=1"):
            with pytest.raises(UnreachableError, match="hint"):
                await aopen_vector_store(f"qdrant://127.0.0.1:1/articles{more}", timeout=2.0)

    asyncio.run(main())


def test_a_key_that_is_refused(server: Emulator) -> None:
    # E2
    server.key = "right"
    with (
        open_vector_store(f"qdrant://:wrong@127.0.0.1:{server.port}/articles") as store,
        pytest.raises(AuthenticationError, match="QDRANT_API_KEY"),
    ):
        store.count()
    with open_vector_store(f"qdrant://:right@127.0.0.1:{server.port}/articles") as store:
        assert store.add(documents(1)) == ["00000"]


@pytest.mark.parametrize("version", ["1.16.3", "1.9.0", "0.11.0"])
def test_a_server_that_is_too_old(server: Emulator, version: str) -> None:
    # it would overlook the conditions of writes in silence
    server.version = version
    with pytest.raises(ConfigurationError, match=r"1\.17"):
        open_vector_store(url(server))


def test_an_answer_that_does_not_come(served: MakeServed, server: Emulator) -> None:
    # E4: within the timeout, which is less than a second; and the store can be used afterwards
    store = served(timeout=0.4)
    store.add(documents(2))
    server.delay = 2.0
    for call, outcome in ((store.count, "not_done"), (lambda: store.delete(["00001"]), "unknown")):
        began = time.monotonic()
        with pytest.raises(OperationTimeoutError) as caught:
            call()
        assert time.monotonic() - began < 1.5
        assert caught.value.outcome == outcome

    async def main() -> None:
        async with await aopen_vector_store(url(server), timeout=0.4) as other:
            await other.acount()

    with pytest.raises(OperationTimeoutError):
        asyncio.run(main())
    server.delay = 0.0
    assert store.count("n == 0") == 1


@pytest.mark.parametrize("code", [400, 500, 503])
def test_a_server_that_fails(served: MakeServed, server: Emulator, code: int) -> None:
    # E1, E4
    store = served()
    store.add(documents(2))
    server.failing = code
    with pytest.raises(BackendError) as caught:
        store.count()
    assert "hunter2" not in str(caught.value)
    assert caught.value.__cause__ is not None
    assert caught.value.retryable is (code >= 500)
    server.failing = 0
    assert store.count() == 2


# --- what is sent -----------------------------------------------------------------------------------------


def test_writes_are_waited_for_and_ordered(served: MakeServed, server: Emulator) -> None:
    # S7
    store = served(ordering="strong")
    store.add(documents(3))
    store.update(["00001"], set={"m": 1})
    store.delete(["00002"])
    store.delete(filter="n == 0")
    writes = [
        parameters for method, path, parameters in server.requests
        if "/points" in path and (method == "PUT" or path.endswith(("/batch", "/delete")))
    ]  # fmt: skip
    assert len(writes) == 4
    assert all(each["wait"] == ["true"] and each["ordering"] == ["strong"] for each in writes)
    assert [each.id for each in store.scan()] == ["00001"]


def test_indexes_are_made_once_and_within_bounds(served: MakeServed, server: Emulator) -> None:
    store = served(collection="a")
    store.add(documents(3))
    store.add(documents(3, start=3))
    assert set(server.indexes["a"]) == {"t", "n.n", "w.n[].a", "o.s[].a"}
    assert sum(path.endswith("/index") for _, path, _ in server.requests) == 4
    small = served(collection="b", max_indexes=2)
    small.add(documents(3))
    assert len(server.indexes["b"]) == 2
    assert small.count("n > 0 and s < 's2'") == 1


def test_exact_and_approximate_searches(served: MakeServed, monkeypatch: pytest.MonkeyPatch) -> None:
    # S6: what the engine is told; the stand-in is exact anyway
    asked: list[Any] = []
    store = served(quantization="scalar", ef_search=99)
    flat = served(collection="flat", index="flat")
    for each in (store, flat):
        each.add(documents(5))
        monkeypatch.setattr(each.native_client, "query_points", noting(native(each).query_points, asked))
    query = SearchRequest(vector=[1.0, 0.0], top_k=2)
    assert [hit.id for hit in store.similarity_search(query)] == ["00000", "00001"]
    assert store.capabilities.ann
    (told,) = asked
    assert (told.hnsw_ef, told.exact) == (99, False)
    assert (told.quantization.rescore, told.quantization.oversampling) == (True, 3.0)
    asked.clear()
    store.similarity_search(SearchRequest(vector=[1.0, 0.0], top_k=2, exact=True))
    assert [each.exact for each in asked] == [True]
    flat.similarity_search(query)
    assert not flat.capabilities.ann
    assert asked[-1].exact is True


@pytest.mark.parametrize("metric", ["cosine", "dot", "euclidean"])
def test_scores_and_ties(served: MakeServed, metric: str) -> None:
    # S1, S2: the engine gives similarities, and the distance, not its square; ties at the cut go by id
    store = served(metric=metric, index="flat", collection=metric)
    same = [Document(None, id=f"{n:02}", vector=[0.6, 0.8]) for n in (7, 3, 9, 1, 5)]
    store.add([*same, Document(None, id="best", vector=[1.0, 0.0])])
    hits = store.similarity_search(SearchRequest(vector=[1.0, 0.0], top_k=3))
    assert [hit.id for hit in hits] == ["best", "01", "03"]
    expected = 1.0 / (1.0 + 0.4**2 + 0.8**2) if metric == "euclidean" else (1.0 + 0.6) / 2.0
    assert [hit.score for hit in hits] == pytest.approx([1.0, expected, expected], abs=1e-6)


# --- writes that depend on what is stored --------------------------------------------------------------------


def test_an_update_is_done_again_if_another_writer_came_between(
    served: MakeServed, monkeypatch: pytest.MonkeyPatch
) -> None:
    # D10: neither change is lost
    one, two = served(), served()
    one.add(documents(2))
    plain = native(one).batch_update_points
    between = iter([True])

    def late(**arguments: Any) -> Any:
        if next(between, False):
            two.update(["00001"], set={"other": 1})
        return plain(**arguments)

    monkeypatch.setattr(one.native_client, "batch_update_points", late)
    assert one.update(["00000", "00001", "none"], set={"own": 2}) == ["00000", "00001"]
    stored = {each.id: each.metadata for each in one.get(["00000", "00001"])}
    assert stored["00001"] == {"n": 1, "s": "s1", "other": 1, "own": 2}
    assert stored["00000"] == {"n": 0, "s": "s0", "own": 2}


def test_an_insertion_is_taken_back_if_another_writer_was_first(
    served: MakeServed, monkeypatch: pytest.MonkeyPatch
) -> None:
    # D2: nothing of the refused batch stays
    one, two = served(), served()
    one.add(documents(1))
    plain = native(one).upsert
    between = iter([True])

    def late(**arguments: Any) -> Any:
        if next(between, False):
            two.add([Document("first", id="00002", vector=[1.0, 0.0])])
        return plain(**arguments)

    monkeypatch.setattr(one.native_client, "upsert", late)
    with pytest.raises(DuplicateIdError) as caught:
        one.add(documents(3, start=1), if_exists="error")
    assert list(caught.value.ids) == ["00002"]
    assert {each.id: each.text for each in one.scan()} == {"00000": "word0", "00002": "first"}


def test_skipping_is_left_to_the_engine(served: MakeServed) -> None:
    # D2
    store = served()
    store.add(documents(1))
    store.add([Document("new", id="00000", vector=[1.0, 0.0]), *documents(1, start=1)], if_exists="skip")
    assert {each.id: each.text for each in store.scan()} == {"00000": "word0", "00001": "word1"}


def test_many_make_a_collection_at_once(served: MakeServed) -> None:
    # D5
    stores = [served() for _ in range(6)]
    barrier = threading.Barrier(6)

    def work(number: int) -> None:
        barrier.wait()
        stores[number].add(documents(1, start=number))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert stores[0].count() == 6


def test_a_collection_that_is_dropped_by_another(served: MakeServed) -> None:
    # D5
    one, two = served(), served()
    one.add(documents(2))
    two.drop_collection()
    with pytest.raises(CollectionNotFoundError):
        one.count()
    one.add(documents(1))
    assert two.count() == 1


# --- clients ----------------------------------------------------------------------------------------------


def test_async_twins_have_a_client_of_their_own(served: MakeServed) -> None:
    # E3: one of each event loop
    store = served()

    async def main(number: int) -> list[str]:
        await store.aadd(documents(2, start=2 * number))
        await asyncio.gather(*(store.acount() for _ in range(5)))
        hits = await store.asimilarity_search(SearchRequest(vector=[1.0, 0.0], top_k=1, filter="n >= 0"))
        return [hit.id for hit in hits]

    assert asyncio.run(main(0)) == ["00000"]
    assert asyncio.run(main(1)) == ["00000"]
    assert store.count() == 4


def test_clients_that_are_given_stay_open(server: Emulator) -> None:
    # E5
    client = QdrantClient("127.0.0.1", port=server.port, check_compatibility=False)
    with open_vector_store("qdrant:///articles", client=client) as store:
        store.add(documents(2))
        assert store.native_client is client
        assert asyncio.run(store.acount()) == 2
    assert client.count("articles").count == 2
    client.close()

    async def main() -> None:
        given = AsyncQdrantClient("127.0.0.1", port=server.port, check_compatibility=False)
        async with await aopen_vector_store("qdrant:///articles", client=given) as other:
            assert await other.acount() == 2
            with pytest.raises(ConfigurationError):
                other.count()
        assert (await given.count("articles")).count == 2
        await given.close()

    asyncio.run(main())


def test_a_deletion_never_goes_without_a_condition(
    served: MakeServed, monkeypatch: pytest.MonkeyPatch
) -> None:
    # D7: an empty filter would hold for every point
    store = served()
    store.add(documents(3))
    sent: list[Any] = []
    plain = native(store).delete

    def noted(**arguments: Any) -> Any:
        sent.append(arguments["points_selector"])
        return plain(**arguments)

    monkeypatch.setattr(store.native_client, "delete", noted)
    store.delete([])
    store.delete(filter="n in []")
    assert store.count() == 3
    store.delete(filter="n not in []")
    assert store.count() == 0
    filters = [each.filter for each in sent if isinstance(each, models.FilterSelector)]
    assert all(each != models.Filter() for each in filters)


def test_a_call_names_what_the_client_has() -> None:
    # every method of a script stands in both clients
    for module in (catalog, changing, reading):
        for name in re.findall(r'(?:read|change)\(\s*"(\w+)"', inspect.getsource(module)):
            assert hasattr(QdrantClient, name)
            assert inspect.iscoroutinefunction(getattr(AsyncQdrantClient, name))
