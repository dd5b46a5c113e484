"""What goes over the wire, and what comes of every kind of answer: E1 to E5, D5 to D7, S7; with client 8 and 9 alike."""

from __future__ import annotations

import asyncio
import threading
import time
import traceback
from typing import TYPE_CHECKING, Any, cast

import pytest
from elasticsearch import AsyncElasticsearch, Elasticsearch
from plugins.elasticsearch.tests.wire import INFO, wire

from entrepot import Document, SearchRequest
from entrepot.errors import (
    AuthenticationError,
    BackendError,
    BatchError,
    ClosedError,
    CollectionMismatchError,
    CollectionNotFoundError,
    ConfigurationError,
    OperationTimeoutError,
    RequestError,
    UnreachableError,
)
from entrepot_elasticsearch import ElasticsearchVectorStore, changing, plugin
from entrepot_elasticsearch.mapped_store import MappedElasticsearchVectorStore
from entrepot_elasticsearch.names import document_key

if TYPE_CHECKING:
    from collections.abc import Callable

    from plugins.elasticsearch.tests.wire import Asked, Wire

SECRET = "hunter2"
ALIAS = "articles.g0123456789abcdef"
RECORD = {
    "name": "articles", "layout": 1, "metric": "cosine", "dimension": 2, "model": None,
    "generation": ALIAS, "index": "hnsw",
}  # fmt: skip
MAPPING = {"articles": {"mappings": {"_meta": {"entrepot": RECORD}}}}
MISSING = {
    "error": {"type": "index_not_found_exception", "root_cause": [{"type": "index_not_found_exception"}]},
    "status": 404,
}


def answers(**by_path: Any) -> Callable[[Asked], tuple[int, Any] | None]:
    """Answer by the last part of the path."""

    def answer(asked: Asked) -> tuple[int, Any] | None:
        name = asked.path.partition("?")[0].rpartition("/")[2].lstrip("_")
        if name == "mapping" and "mapping" not in by_path:
            return 200, MAPPING
        told = by_path.get(name)
        return (
            cast("tuple[int, Any] | None", told) if told is None or isinstance(told, tuple) else (200, told)
        )

    return answer


def counted(options: dict[str, Any]) -> None:
    """Open a store and count."""
    with ElasticsearchVectorStore(**options).connect() as store:
        store.count("k == 1")


def acounted(options: dict[str, Any]) -> None:
    """Do the same by the async twins."""

    async def count() -> None:
        async with await ElasticsearchVectorStore(**options).aconnect() as store:
            await store.acount("k == 1")

    asyncio.run(count())


def bulk_answer(asked: Asked, *, status: int = 200, error: str | None = None) -> tuple[int, Any]:
    more: dict[str, Any] = {"status": status, "_seq_no": 1, "_primary_term": 1}
    if error is not None:
        more["error"] = {"type": error}
    heads: list[dict[str, Any]] = asked.lines[::2]
    items = [{action: {**head, **more} for action, head in line.items()} for line in heads]
    return 200, {"errors": error is not None, "items": items}


def test_every_request_speaks_what_both_versions_of_the_server_do() -> None:
    # whichever version the client has: a server of version 8 refuses what a client 9 says by itself
    with wire(answers(count={"count": 3, "_shards": {"failed": 0}})) as server:
        with ElasticsearchVectorStore(
            collection="articles", user="me", password=SECRET, **server.options
        ).connect() as store:
            assert store.count("k == 'a'") == 3
        assert [asked.path for asked in server.asked] == ["/", "/articles/_mapping", f"/{ALIAS}/_count"]
        for asked in server.asked:
            assert asked.headers["accept"] == "application/vnd.elasticsearch+json; compatible-with=8"
            assert asked.headers["authorization"].startswith("Basic ")
        assert (
            server.asked[-1].headers["content-type"]
            == "application/vnd.elasticsearch+json; compatible-with=8"
        )
        assert server.asked[-1].json == {"query": {"terms": {"tokens": ["k\0sa"]}}}


def test_a_write_names_the_alias_that_must_be_there_and_is_refreshed() -> None:
    # D5: no index by a typing error; S7
    def answer(asked: Asked) -> tuple[int, Any] | None:
        return bulk_answer(asked) if "_bulk" in asked.path else answers()(asked)

    with wire(answer) as server:
        with ElasticsearchVectorStore(collection="articles", **server.options).connect() as store:
            store.add([Document("a b_c", id="é/1", metadata={"k": [1, 1]}, vector=[3.0, 4.0])])
        asked = server.asked[-1]
        assert asked.path == f"/{ALIAS}/_bulk?require_alias=true&refresh=true"
        assert asked.headers["content-type"] == "application/vnd.elasticsearch+x-ndjson; compatible-with=8"
        head, source = asked.lines
        assert head == {"index": {"_id": document_key("é/1")}}
        assert len(head["index"]["_id"]) == 22
        assert source.pop("slot") in range(1 << 15)
        assert source == {
            "id": "é/1", "meta": '{"k":[1,1]}', "text": "a b_c", "words": "b c", "tokens": ["k\0", *source["tokens"][1:]],
            "embedding": [0.600000024, 0.800000012],
        }  # fmt: skip
        assert len(source["tokens"]) == 2


@pytest.mark.parametrize(
    ("status", "error", "kind", "retryable"),
    [
        (429, "es_rejected_execution_exception", BackendError, True),
        (400, "document_parsing_exception", BackendError, False),
        (404, "index_not_found_exception", CollectionNotFoundError, False),
        (503, "unavailable_shards_exception", BackendError, True),
    ],
)
def test_every_item_of_a_bulk_request_is_read(
    status: int, error: str, kind: type[Exception], *, retryable: bool
) -> None:
    # D6, E1: the request as a whole says 200
    def answer(asked: Asked) -> tuple[int, Any] | None:
        return bulk_answer(asked, status=status, error=error) if "_bulk" in asked.path else answers()(asked)

    with (
        wire(answer) as server,
        ElasticsearchVectorStore(collection="articles", **server.options).connect() as store,
    ):
        with pytest.raises((kind, BatchError)) as caught:
            store.add([Document(SECRET, id="1", vector=[1.0, 0.0])])
        told = caught.value if isinstance(caught.value, kind) else caught.value.__cause__
        assert isinstance(told, kind)
        assert getattr(told, "retryable", None) is retryable
        assert SECRET not in str(caught.value)


@pytest.mark.parametrize("twin", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (401, {"error": {"type": "security_exception"}, "status": 401}, AuthenticationError),
        (403, {"error": {"type": "security_exception"}, "status": 403}, AuthenticationError),
        (403, {"error": {"type": "cluster_block_exception"}, "status": 403}, BackendError),
        (404, MISSING, CollectionNotFoundError),
        (404, {"error": "no handler"}, BackendError),
        (408, {}, OperationTimeoutError),
        (413, {}, BackendError),
        (429, {"error": {"type": "circuit_breaking_exception"}}, BackendError),
        (500, {"error": {"type": "x"}}, BackendError),
        (400, {"error": {"type": "search_phase_execution_exception", "root_cause": [{"type": "too_many_nested_clauses"}]}}, BackendError),
        (200, {"count": 3, "_shards": {"failed": 1}}, BackendError),
    ],
)  # fmt: skip
def test_an_answer_that_is_an_error(status: int, body: Any, kind: type[Exception], *, twin: bool) -> None:
    # E1, E2, E3
    body = {**body, "reason": SECRET}

    with wire(answers(count=(status, body))) as server:
        count = acounted if twin else counted
        with pytest.raises(kind) as caught:
            count({"collection": "articles", "timeout": 2.0, **server.options})
        assert SECRET not in str(caught.value)


@pytest.mark.parametrize("twin", [False, True], ids=["sync", "async"])
def test_a_wrong_password_is_refused_and_not_told(*, twin: bool) -> None:
    # E2, E1
    def answer(asked: Asked) -> tuple[int, Any]:
        assert asked.path == "/"
        return 401, {
            "error": {"type": "security_exception", "reason": "unable to authenticate"},
            "status": 401,
        }

    with wire(answer) as server:
        count = acounted if twin else counted
        with pytest.raises(AuthenticationError) as caught:
            count({**server.options, "user": "me", "password": SECRET})
        assert not caught.value.retryable
        assert caught.value.hint
        assert caught.value.__cause__ is not None
        assert SECRET not in "".join(traceback.format_exception(caught.value))
        assert len(server.asked) == 1


def _always(answer: tuple[int, Any], _: Asked) -> tuple[int, Any]:
    return answer


def test_the_suite_expects_a_refusal_where_there_are_logins(monkeypatch: pytest.MonkeyPatch) -> None:
    # E2: the failure that is known is that of a server without
    def known() -> int:
        (target,) = plugin.entrepot_conformance_targets()
        return len(target.known_failures)

    monkeypatch.delenv("ENTREPOT_ELASTICSEARCH_URL", raising=False)
    assert known() == 1
    for login, expected in (
        ("me:right@", 0),
        ("", 1),
    ):  # told by the URL: nothing is sent, nobody listens there
        monkeypatch.setenv("ENTREPOT_ELASTICSEARCH_URL", f"elasticsearch://{login}127.0.0.1:1")
        assert known() == expected


def test_what_is_no_elasticsearch_and_what_is_too_old() -> None:
    # E2
    with (
        wire(lambda _: (200, {"version": {"number": "7.17.0"}})) as server,
        pytest.raises(ConfigurationError, match=r"7\.17\.0"),
    ):
        ElasticsearchVectorStore(**server.options).connect()
    with wire(lambda _: (403, {"error": {"type": "security_exception"}})) as server:
        ElasticsearchVectorStore(**server.options).connect().close()  # a user who may not ask for the version


def test_a_connection_that_breaks_is_tried_again() -> None:
    # E4
    left = [None, None]

    def answer(asked: Asked) -> tuple[int, Any] | None:
        if "_count" in asked.path:
            return left.pop() if left else (200, {"count": 7, "_shards": {"failed": 0}})
        return answers()(asked)

    with (
        wire(answer) as server,
        ElasticsearchVectorStore(collection="articles", **server.options).connect() as store,
    ):
        assert store.count() == 7
        assert len(server.asked) == 5
        server.answer = answers()  # breaks off every other request
        with pytest.raises(UnreachableError) as caught:
            store.get(["1"])
        assert caught.value.retryable


@pytest.mark.parametrize(
    "found",
    [
        {"articles": {"mappings": {"properties": {}}}},
        {"articles": {"mappings": {"_meta": {"entrepot": {}}}}},
        {"other": MAPPING["articles"]},
        {"articles": {"mappings": {"_meta": {"entrepot": {**RECORD, "layout": 2}}}}},
    ],
)
def test_an_index_that_is_not_ours_is_refused(found: Any) -> None:
    # D5: also an alias of the collection's name
    with (
        wire(answers(mapping=found)) as server,
        ElasticsearchVectorStore(collection="articles", **server.options).connect() as store,
    ):
        for call in (
            store.count,
            store.drop_collection,
            lambda: store.add([Document("a", vector=[1.0, 0.0])]),
        ):
            with pytest.raises(CollectionMismatchError):
                call()
        assert {asked.method for asked in server.asked} == {"GET"}


@pytest.mark.parametrize(
    ("version", "more"), [("8.19.21", {}), ("9.2.0", {"index.mapping.exclude_source_vectors": False})]
)
def test_a_new_index_has_fields_of_its_own_and_no_others(version: str, more: dict[str, Any]) -> None:
    # D3, D5, S1: nothing is mapped by what documents bring; vectors are not quantised
    def answer(asked: Asked) -> tuple[int, Any] | None:
        if asked.path == "/":
            return 200, {"version": {"number": version}}
        if asked.method == "PUT":
            return 200, {"acknowledged": True, "shards_acknowledged": True}
        return (404, MISSING) if "_mapping" in asked.path else None

    with wire(answer) as server:
        options: dict[str, Any] = {"collection": "Ärger", "metric": "euclidean", "m": 8, "replicas": 1}
        with ElasticsearchVectorStore(**options, **server.options).connect() as store:
            store.create_collection(dimension=3)
        asked = server.asked[-1]
        assert asked.path.startswith("/entrepot-")
        body = asked.json
        settings = {"number_of_shards": 1, "number_of_replicas": 1, "refresh_interval": "-1", **more}
        analyzer = body["settings"].pop("analysis")["analyzer"]["default"]
        assert analyzer == {"type": "standard", "max_token_length": 8000}
        assert body["settings"] == settings
        assert body["mappings"]["dynamic"] is False
        assert body["mappings"]["properties"]["embedding"] == {
            "type": "dense_vector",
            "dims": 3,
            "index": True,
            "similarity": "l2_norm",
            "index_options": {"type": "hnsw", "m": 8, "ef_construction": 128},
        }
        record = body["mappings"]["_meta"]["entrepot"]
        assert record["name"] == "Ärger"
        assert list(body["aliases"]) == [record["generation"]]


def test_searches_ask_for_whole_answers() -> None:
    # S4, S6, F9
    whole = {"_shards": {"failed": 0}}
    hit = {"_score": 0.9, "_source": {"id": "1", "text": "x", "meta": "{}"}}

    def answer(asked: Asked) -> tuple[int, Any] | None:
        if "_pit" in asked.path:
            return 200, {"id": "a point"}
        if "search" not in asked.path:
            return answers(count={"count": 1, **whole})(asked)
        slots = {"slots": {"buckets": [{"key": 32.0, "doc_count": 9000}, {"key": 64.0, "doc_count": 1001}]}}
        return 200, {"hits": {"hits": [hit]}, "aggregations": slots, "responses": [{"hits": {"hits": [hit]}, **whole}], **whole}  # fmt: skip

    options: dict[str, Any] = {"collection": "articles", "ef_search": 50}
    with wire(answer) as server:
        options |= server.options
        with ElasticsearchVectorStore(**options).connect() as store:
            (found,) = store.similarity_search(SearchRequest(vector=[1.0, 0.0], top_k=1, filter="k == 1"))
            assert found.score == pytest.approx(0.9)
            asked = server.asked[-1]
            assert asked.path == f"/{ALIAS}/_search?allow_partial_search_results=false"
            assert asked.json["knn"]["num_candidates"] == 50
            assert "terms" in asked.json["knn"]["filter"][0]
            store.similarity_search(SearchRequest(vector=[1.0, 0.0], top_k=1, exact=True))
            opened, counted, searched, closed = server.asked[-4:]
            assert opened.path == f"/{ALIAS}/_pit?keep_alive=1m"
            assert counted.path == "/_search?allow_partial_search_results=false"
            assert counted.json["aggs"]["slots"]["histogram"]["field"] == "slot"
            assert searched.path == "/_msearch"
            head, first, _, second = searched.lines
            assert head == {"allow_partial_search_results": False}
            for body, bounds in ((first, {"gte": 0, "lt": 64}), (second, {"gte": 64, "lt": 1 << 15})):
                assert (body["knn"]["k"], body["knn"]["num_candidates"]) == (2, 10_000)
                assert body["knn"]["filter"] == [{"range": {"slot": bounds}}]
                assert body["pit"] == counted.json["pit"] == {"id": "a point", "keep_alive": "1m"}
            assert (closed.method, closed.path, closed.json) == ("DELETE", "/_pit", {"id": "a point"})


def some(*names: str, text: str | None = None) -> list[Document]:
    return [Document(text, id=name, vector=[1.0, 0.0]) for name in names]


def opened(server: Wire, **options: Any) -> ElasticsearchVectorStore:
    return ElasticsearchVectorStore(
        collection="articles", **{"timeout": 20.0, **options}, **server.options
    ).connect()


def add(store: ElasticsearchVectorStore, documents: list[Document], *, twin: bool) -> None:
    """Add documents that must not exist."""
    if twin:
        asyncio.run(store.aadd(documents, if_exists="error"))
    else:
        store.add(documents, if_exists="error")


def test_a_bad_document_among_good_ones_leaves_it_open_what_was_written() -> None:
    # D6, E4: nobody may say that nothing was done
    def answer(asked: Asked) -> tuple[int, Any] | None:
        if "_bulk" not in asked.path:
            return answers()(asked)
        _, told = bulk_answer(asked)
        told["errors"] = True
        told["items"][1]["index"] |= {"status": 400, "error": {"type": "document_parsing_exception"}}
        return 200, told

    with wire(answer) as server, opened(server) as store:
        with pytest.raises(BatchError) as caught:
            store.add(some("1", "2"))
        assert caught.value.unknown == ("1", "2")
        assert len([asked for asked in server.asked if "_bulk" in asked.path]) == 1


@pytest.mark.parametrize("twin", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize(
    "second",
    [
        (413, {}),
        (429, {"error": {"type": "es_rejected_execution_exception"}}),
        (400, {"error": {"type": "x_content_parse_exception"}}),
        (403, {"error": {"type": "security_exception"}}),
        None,
    ],
)
def test_a_request_that_fails_after_another_one_wrote_is_not_nothing(second: Any, *, twin: bool) -> None:
    # D6, E4: what is too large for one request goes in several
    sent = list[int]()

    def answer(asked: Asked) -> tuple[int, Any] | None:
        if "_bulk" not in asked.path:
            return answers(mget={"docs": []})(asked)
        sent.append(len(asked.body))
        return bulk_answer(asked) if len(sent) % 2 else second

    documents = some(*map(str, range(9)), text="x" * 1_000_000)
    with wire(answer) as server, opened(server, timeout=60.0) as store:
        with pytest.raises(BatchError) as caught:
            add(store, documents, twin=twin)
        assert caught.value.unknown == tuple(map(str, range(9)))
        assert len(sent) == 2
        assert max(sent) < 9_000_000


@pytest.mark.parametrize("twin", [False, True], ids=["sync", "async"])
def test_a_bulk_request_without_an_answer_is_unknown(*, twin: bool) -> None:
    # E4: within the time, and not sent again under "error"
    over = threading.Event()

    def answer(asked: Asked) -> tuple[int, Any] | None:
        if "_mget" in asked.path:
            return 200, {"docs": []}
        if "_bulk" in asked.path:
            over.wait(20)
        return answers()(asked)

    with wire(answer) as server:
        store = opened(server, timeout=0.5)
        began = time.monotonic()
        try:
            with pytest.raises(BatchError) as caught:
                add(store, some("1"), twin=twin)
        finally:
            over.set()
        assert time.monotonic() - began < 5
        assert isinstance(caught.value.__cause__, OperationTimeoutError)
        assert caught.value.unknown == ("1",)
        assert len([asked for asked in server.asked if "_bulk" in asked.path]) == 1
        store.close()


def test_a_deletion_that_runs_out_of_time_says_how_to_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    # D7, E4: one exchange, whatever there is to delete
    monkeypatch.setattr(changing, "_DELETED", 2)
    whole = {"_shards": {"failed": 0}}
    hits = [{"_id": name, "_seq_no": 1, "_primary_term": 1, "sort": [n]} for n, name in enumerate("ab")]

    def answer(asked: Asked) -> tuple[int, Any] | None:
        if "_pit" in asked.path:
            return 200, {"id": "a point"}
        if "_search" in asked.path:
            return 200, {"hits": {"hits": hits}, **whole}
        if "_refresh" in asked.path:
            return 200, whole
        return bulk_answer(asked) if "_bulk" in asked.path else answers()(asked)

    with wire(answer) as server, opened(server, timeout=0.5) as store:
        with pytest.raises(OperationTimeoutError) as caught:
            store.delete(filter="k == 1")
        assert caught.value.outcome == "unknown"
        assert "goes on" in caught.value.hint


def test_a_deletion_that_breaks_before_anything_is_deleted_is_tried_again() -> None:
    # E4: a refresh and a point in time change no document
    left = [None, None]

    def answer(asked: Asked) -> tuple[int, Any] | None:
        if "_refresh" in asked.path or "_pit" in asked.path:
            return left.pop() if left else (200, {"id": "a point", "_shards": {"failed": 0}})
        if "_search" in asked.path:
            return 200, {"hits": {"hits": []}, "_shards": {"failed": 0}}
        if "_bulk" in asked.path:
            return bulk_answer(asked)
        return answers()(asked)

    with wire(answer) as server, opened(server) as store:
        store.delete(filter="k == 1")
        assert not left
        assert [asked.path for asked in server.asked if "_refresh" in asked.path] == [
            f"/{ALIAS}/_refresh"
        ] * 3


def test_a_point_in_time_that_is_lost_is_tried_again() -> None:
    # E4, S6: an exact search begins anew
    lost = {"error": {"type": "search_phase_execution_exception", "root_cause": [{"type": "search_context_missing_exception"}]}, "status": 404}  # fmt: skip
    left: list[tuple[int, Any]] = [(404, lost)]
    whole: dict[str, Any] = {
        "hits": {"hits": []},
        "aggregations": {"slots": {"buckets": []}},
        "_shards": {"failed": 0},
    }

    def answer(asked: Asked) -> tuple[int, Any] | None:
        if "_pit" in asked.path:
            return 200, {"id": "a point"}
        if "_search" in asked.path:
            return left.pop() if left else (200, whole)
        return answers()(asked)

    with wire(answer) as server, opened(server) as store:
        assert store.similarity_search(SearchRequest(vector=[1.0, 0.0], exact=True)) == []
        assert len([asked for asked in server.asked if asked.method == "DELETE"]) == 2


def test_a_scan_of_an_index_of_others_goes_on_after_a_break_and_ends_with_its_point() -> None:
    # E4, D7: what is over is told from what broke
    vectors = {"v": {"type": "dense_vector", "dims": 2, "similarity": "cosine"}}
    pages: list[tuple[int, Any] | None] = []

    def answer(asked: Asked) -> tuple[int, Any] | None:
        if "_mapping" in asked.path:
            return 200, {"theirs": {"mappings": {"properties": vectors}}}
        if "_pit" in asked.path:
            return 200, {"id": "a point"}
        return pages.pop(0) if pages else None

    def page(*names: str) -> tuple[int, Any]:
        source: dict[str, Any] = {}
        hits = [{"_id": name, "_source": source, "sort": [n]} for n, name in enumerate(names)]
        return 200, {"hits": {"hits": hits}, "_shards": {"failed": 0}}

    with (
        wire(answer) as server,
        MappedElasticsearchVectorStore(mapping={"vector": "v"}, collection="theirs", **server.options).connect() as store,
    ):  # fmt: skip
        pages += [page("1", "2"), None, page("3")]
        assert [found.id for found in store.scan(batch_size=2)] == ["1", "2", "3"]
        lost = {"error": {"root_cause": [{"type": "search_context_missing_exception"}]}, "status": 404}
        pages += [page("1", "2"), (404, lost)]
        with pytest.raises(RequestError, match="over"):
            list(store.scan(batch_size=2))
        pages += [page("1", "2"), (401, {"error": {"type": "security_exception"}, "status": 401})]
        with pytest.raises(AuthenticationError):
            list(store.scan(batch_size=2))


def test_a_client_that_is_given_is_used_and_stays_open() -> None:
    # E5
    with wire(answers(count={"count": 3, "_shards": {"failed": 0}})) as server:
        client = Elasticsearch(f"http://127.0.0.1:{server.port}")
        store = ElasticsearchVectorStore(collection="articles", client=client).connect()
        assert store.native_client is client
        assert store.count() == 3
        assert asyncio.run(store.acount()) == 3
        store.close()
        with pytest.raises(ClosedError):
            store.count()
        assert client.info()["version"] == INFO["version"]
        client.close()

        async def by_async_client() -> int:
            async with AsyncElasticsearch(f"http://127.0.0.1:{server.port}") as given:
                other = await ElasticsearchVectorStore(collection="articles", client=given).aconnect()
                return await other.acount()

        assert asyncio.run(by_async_client()) == 3
    with pytest.raises(ConfigurationError, match="client must be"):
        ElasticsearchVectorStore(client=object())
    with pytest.raises(ConfigurationError, match="says where the server is"):
        ElasticsearchVectorStore(client=client, host="localhost")
