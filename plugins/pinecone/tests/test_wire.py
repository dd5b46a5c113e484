"""What goes over the wire: the shapes of the API, writes that are seen late, and what the service refuses. D5, S7, E1, E4."""

from __future__ import annotations

import asyncio
import traceback
from typing import TYPE_CHECKING, Any

import pytest
from plugins.pinecone.tests.service import Service

from entrepot import Document, F, SearchRequest
from entrepot.errors import (
    AuthenticationError,
    BackendError,
    CollectionMismatchError,
    CollectionNotFoundError,
    CompletionLimitError,
    NotYetVisibleError,
    OperationTimeoutError,
    SizeLimitError,
)
from entrepot_pinecone import PineconeVectorStore

if TYPE_CHECKING:
    from collections.abc import Sequence


def store_of(service: Service, **options: Any) -> PineconeVectorStore:
    given: dict[str, Any] = {"timeout": 5.0, **options}
    return PineconeVectorStore(collection="articles", api_key="secret", client=service.client(), **given)


def documents(count: int) -> list[Document]:
    return [Document("t", id=f"d{n:03}", metadata={"n": n}, vector=[1.0, float(n)]) for n in range(count)]


def ids(found: Sequence[Any]) -> list[str]:
    return [one.id for one in found]


def test_an_index_is_made_waited_for_and_deleted_with_its_last_collection() -> None:
    # D5
    service = Service(waits=2)
    store = store_of(service, cloud="gcp", region="europe-west4")
    store.add(documents(3))
    wanted = next(body for method, path, body in service.asked if (method, path) == ("POST", "/indexes"))
    assert wanted == {
        "name": "articles",
        "dimension": 2,
        "metric": "cosine",
        "vector_type": "dense",
        "spec": {"serverless": {"cloud": "gcp", "region": "europe-west4"}},
        "deletion_protection": "disabled",
        "tags": {"made-by": "entrepot"},
    }
    beside = store_of(service, namespace="tenant-7")
    with pytest.raises(CollectionNotFoundError):
        beside.count()
    beside.add(documents(2))
    assert (store.count(), beside.count()) == (3, 2)
    assert beside.list_collections() == store.list_collections() == ["articles"]
    store.drop_collection()
    assert beside.count() == 2
    assert not store.collection_exists()
    assert "DELETE /indexes/articles" not in service.paths
    beside.drop_collection()
    assert service.paths.count("DELETE /indexes/articles") == 1
    assert not beside.collection_exists()
    store.add(documents(1))  # once the old index is gone
    assert store.count() == 1


def test_an_index_that_takes_longer_than_the_timeout_is_waited_for_again() -> None:
    # D5, E4
    service = Service(waits=5)
    store = store_of(service)
    with pytest.raises(OperationTimeoutError) as caught:
        store_of(service, timeout=0.3).create_collection(dimension=2)
    assert caught.value.outcome == "unknown"
    store.add(documents(1))
    store.drop_collection()
    assert service.paths.count("DELETE /indexes/articles") == 1


def test_a_page_reads_a_bounded_number_of_documents() -> None:
    # D7, F9: a filter that few satisfy, exactly taken and not
    service = Service()
    store = store_of(service, max_completion_rows=1500, metric="euclidean")
    store.add(documents(2500))
    for text in ("n == 2400", "n != 2 and n >= 2400 and n <= 2400"):
        service.asked.clear()
        pages = list(store.scan(text).pages())
        assert ids([one for page in pages for one in page.items]) == ["d2400"]
        assert service.paths.count("GET /vectors/list") == 25
    for text in ("n == 2400", "n != 2 and n >= 2400"):
        with pytest.raises(CompletionLimitError):
            store.count(text)
    store.delete(filter="n == 2400")
    assert store.count() == 2499


def test_an_index_that_was_there_is_used_and_left() -> None:
    # D5
    service = Service()
    body = {"name": "articles", "dimension": 2, "metric": "cosine", "spec": {"serverless": {"cloud": "a", "region": "b"}}, "tags": None}  # fmt: skip
    with service.client() as client:
        client.post("https://api.pinecone.io/indexes", json=body, headers={"api-key": "secret", "x-pinecone-api-version": "2025-10"})  # fmt: skip
    store = store_of(service)
    assert not store.collection_exists()
    with pytest.raises(CollectionMismatchError):
        store.create_collection(dimension=3)
    store.add(documents(2))
    store.drop_collection()
    assert list(service.indexes) == ["articles"]
    service.indexes["articles"].log.append(("", "x", {"id": "x", "values": [1.0, 0.0], "metadata": {}}))
    with pytest.raises(CollectionMismatchError, match="not made by this library"):
        store.add(documents(2))


def test_with_a_host_the_control_plane_is_not_asked() -> None:
    # D5
    service = Service()
    store_of(service).add(documents(3))
    service.asked.clear()
    store = store_of(service, host="articles.svc.pinecone.io").connect()
    assert store.count() == 3
    assert store.list_collections() == ["articles"]
    assert not [path for path in service.paths if "indexes" in path and "stats" not in path]


@pytest.mark.parametrize("tells", [True, False])
def test_a_write_is_waited_for_until_it_is_seen(tells: bool) -> None:
    # S7, D10, D7
    service = Service(lag=1, tells=tells)
    store = store_of(service)
    store.add(documents(5))
    assert ids(store.similarity_search(SearchRequest(vector=[1.0, 4.0], top_k=1))) == ["d004"]
    store.add([Document("new", id="d004", vector=[1.0, 4.0])])
    assert store.get(["d004"])[0].text == "new"
    store.update(["d001"], set={"n": 100})
    assert ids(list(store.scan(F.n == 100))) == ["d001"]
    store.delete(["d004"])
    assert store.get(["d004"]) == []
    store.delete(filter=F.n < 3)
    assert store.count() == 2
    store.delete_all()
    assert store.count() == 0


def test_a_write_that_is_not_seen_in_time_is_told() -> None:
    # S7, E4
    service = Service()
    store = store_of(service)
    store.add(documents(1))
    index = service.indexes["articles"]
    service.lag = 1
    records = index.records
    frozen = {space: records(space) for space in ("", "entrepot.catalog")}
    index.records = lambda namespace: frozen[namespace]  # type: ignore[method-assign]
    service.tells = False
    with pytest.raises(NotYetVisibleError) as caught:
        store.add(documents(1), timeout=0.3)
    assert not caught.value.retryable
    store.add(documents(1), wait=False)


def test_few_matches_are_completed_and_an_exact_search_reads_what_it_may() -> None:
    # S4, S6, F9
    service = Service(page=10)
    store = store_of(service, max_completion_rows=25)
    store.add(documents(60))
    service.asked.clear()
    found = store.similarity_search(SearchRequest(vector=[1.0, 0.0], top_k=5, filter=F.n >= 58))
    assert ids(found) == ["d058", "d059"]
    assert [body["topK"] for _, path, body in service.asked if path == "/query"] == [5, 10_000]
    assert "GET /vectors/list" not in service.paths
    with pytest.raises(CompletionLimitError):
        store.similarity_search(SearchRequest(vector=[1.0, 0.0], top_k=5, exact=True))
    with pytest.raises(CompletionLimitError):
        store.count(F.n >= 58)
    assert store.count() == 60
    wide = store_of(service, max_completion_rows=60)
    assert ids(wide.similarity_search(SearchRequest(vector=[1.0, 2.0], top_k=2, exact=True))) == [
        "d002",
        "d003",
    ]
    assert wide.count(F.n >= 58) == 2


def test_many_hits_are_read_by_id_and_hold_the_filter_still() -> None:
    # T1, S2
    service = Service()
    store = store_of(service)
    store.add(documents(120))
    service.asked.clear()
    found = store.similarity_search(SearchRequest(vector=[1.0, 0.0], top_k=110, filter=F.n < 115))
    assert ids(found) == [f"d{n:03}" for n in range(110)]
    assert [body["includeMetadata"] for _, path, body in service.asked if path == "/query"] == [False]
    assert service.paths.count("GET /vectors/fetch") == 2


@pytest.mark.parametrize(
    ("status", "kind"),
    [(401, AuthenticationError), (403, AuthenticationError), (400, BackendError), (402, BackendError)],
)
def test_what_the_service_refuses_is_told_without_key_and_values(status: int, kind: type[Exception]) -> None:
    # E1, E2
    service = Service()
    store = store_of(service)
    store.add(documents(1))
    service.faults = [status]
    with pytest.raises(kind) as caught:
        store.count()
    assert "secret" not in "".join(traceback.format_exception(caught.value))
    assert "a value" not in str(caught.value)
    assert caught.value.__cause__ is not None


def test_what_passes_is_tried_again() -> None:
    # E4
    service = Service()
    store = store_of(service)
    store.add(documents(2))
    service.faults = [429, 503]
    assert store.count() == 2


def test_the_async_client_does_the_same() -> None:
    # E3
    service = Service(lag=1)

    async def work() -> None:
        async with service.async_client() as client:
            store = PineconeVectorStore(collection="articles", api_key="secret", client=client)
            await store.aadd(documents(5))
            found = await store.asimilarity_search(SearchRequest(vector=[1.0, 4.0], top_k=1))
            assert ids(found) == ["d004"]
            await store.adelete(filter=F.n < 3)
            assert await store.acount() == 2
            await store.adrop_collection()
            await store.aclose()
            assert not client.is_closed

    asyncio.run(work())
    assert service.paths.count("DELETE /indexes/articles") == 1


LARGE = '"' * 19_000
"""Within all declared limits, and as JSON twice as long; with it again as metadata, larger than a record."""


@pytest.mark.parametrize("in_view", [False, True])
def test_a_record_that_is_too_large_is_refused_with_all_its_batch(*, in_view: bool) -> None:
    # D6, D8: it stands in the third sub-batch, and nothing is sent of the first
    service = Service()
    store = store_of(service)
    store.add(documents(1))
    batch = documents(1200)
    metadata = {f"k{n}": "x" for n in range(95)}
    bad = Document(
        LARGE, id="bad", metadata=metadata if in_view else {**metadata, "tenant": "a"}, vector=[1.0, 2.0]
    )
    target = store.where(F.tenant == "a") if in_view else store
    before = len(service.asked)
    with pytest.raises(SizeLimitError, match="'bad'"):
        target.add([*batch, bad])
    assert len(service.asked) == before
    assert store.count() == 1


def test_an_update_that_makes_a_record_too_large_changes_nothing() -> None:
    # D8, D10
    service = Service()
    store = store_of(service)
    store.add([Document("x", id="a", vector=[1.0, 2.0]), Document('"' * 19_000, id="b", vector=[1.0, 2.0])])
    before = service.paths.count("POST /vectors/upsert")
    with pytest.raises(SizeLimitError, match="'b'"):
        store.update(["a", "b"], set={f"k{n}": "x" for n in range(95)})
    assert service.paths.count("POST /vectors/upsert") == before
    assert [found.metadata for found in store.get(["a", "b"])] == [{}, {}]
