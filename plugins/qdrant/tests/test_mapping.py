"""Collections of other software, read by a mapping: D1, D5, D7, D9, S1 to S5, S8, S9, T1."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from qdrant_client import QdrantClient, models

import entrepot as ep
from entrepot import Document, F, SearchRequest
from entrepot.errors import (
    ClosedError,
    CollectionMismatchError,
    CollectionNotFoundError,
    ConfigurationError,
    UnknownOptionError,
    UnsupportedError,
    UnsupportedSearchModeError,
)
from entrepot.filters import evaluate
from entrepot_qdrant import MappedQdrantLocalVectorStore, MappedQdrantVectorStore
from entrepot_qdrant.mapped_fields import metadata_of, path_text
from entrepot_qdrant.mapping import collection_mapping

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from plugins.qdrant.tests.emulator import Emulator

LANGCHAIN: dict[str, Any] = {"text": "page_content", "metadata": "metadata"}
HAYSTACK: dict[str, Any] = {"id": "id", "text": "content", "metadata": "meta"}
SPRING: dict[str, Any] = {"text": "doc_content", "vector": "dense"}
SIZE = 8
QUERY = [1.0, -2.0, 0.5, 0.0, 3.0, 1.0, -1.0, 0.25]


def metadata(n: int) -> dict[str, Any]:
    return {
        "source": f"file{n % 5}.md",
        "page": n % 7,
        "score": n / 4,
        "draft": n % 2 == 0,
        "tags": [f"t{n % 4}", f"t{n % 3}"],
        "odd key.é": n,
    }


def vector(n: int) -> list[float]:
    return [float((n * k + k * k) % 11 - 4) for k in range(1, SIZE + 1)]


def fill(
    client: QdrantClient, kind: str, count: int = 40, distance: str = "Cosine"
) -> dict[str, dict[str, Any]]:
    """Make a collection as another library does; return metadata by id."""
    params = models.VectorParams(size=SIZE, distance=models.Distance(distance))
    config: Any = {"dense": params, "other": params} if kind == "spring" else params
    client.create_collection("theirs", vectors_config=config)
    points: list[models.PointStruct] = []
    documents: dict[str, dict[str, Any]] = {}
    for n in range(count):
        held = metadata(n)
        point: Any = f"0b86a4b1-6a3c-4f5e-9d3b-{n:012x}" if n % 2 else n
        name = str(point)
        if kind == "haystack":
            name = f"doc {n}"
            payload: dict[str, Any] = {"id": name, "content": f"text {n}", "meta": held, "blob": None}
        elif kind == "langchain":
            payload = {"page_content": f"text {n}", "metadata": held}
        else:
            payload = {"doc_content": f"text {n}", **held}
        given: Any = {"dense": vector(n), "other": vector(n + 1)} if kind == "spring" else vector(n)
        points.append(models.PointStruct(id=point, vector=given, payload=payload))
        documents[name] = held
    client.upsert("theirs", points)
    return documents


KINDS = {"langchain": LANGCHAIN, "haystack": HAYSTACK, "spring": SPRING}
Opened = MappedQdrantVectorStore | MappedQdrantLocalVectorStore


@pytest.fixture(params=["local", "server"])
def mapped(request: pytest.FixtureRequest) -> Iterator[Callable[..., tuple[Any, Opened]]]:
    """Make a client on an empty database and a store on the same, in local mode or through the stand-in."""
    opened: list[Opened] = []
    if request.param == "local":
        client = QdrantClient(":memory:")

        def local(mapping: Any, **options: Any) -> tuple[Any, Opened]:
            opened.append(
                MappedQdrantLocalVectorStore(mapping=mapping, collection="theirs", client=client, **options)
            )
            return client, opened[-1].connect()

        yield local
        client.close()
    else:
        server: Emulator = request.getfixturevalue("server")

        def served(mapping: Any, **options: Any) -> tuple[Any, Opened]:
            given: dict[str, Any] = {"host": "127.0.0.1", "port": server.port, **options}
            opened.append(MappedQdrantVectorStore(mapping=mapping, collection="theirs", **given))
            return server.client, opened[-1].connect()

        yield served
    for store in opened:
        store.close()


def ranked(numbers: list[int], names: list[str]) -> tuple[list[str], dict[str, float]]:
    """Return ids by S1 and S2's cosine, in float64."""
    asked = np.array(QUERY)
    scores: dict[str, float] = {}
    for n, name in zip(numbers, names, strict=True):
        held = np.array(vector(n))
        scores[name] = float((1 + held @ asked / np.linalg.norm(held) / np.linalg.norm(asked)) / 2)
    return sorted(scores, key=lambda name: (-round(scores[name], 6), name)), scores


WAYS = [*(("local", kind) for kind in KINDS), ("server", "langchain")]


@pytest.mark.parametrize(("mapped", "kind"), WAYS, indirect=["mapped"])
def test_everything_that_reads(mapped: Any, kind: str) -> None:
    # D5, D7, D9, F9, S1 to S5, S8, T1
    client, store = mapped(KINDS[kind])
    assert not store.collection_exists()
    documents = fill(client, kind)
    names = list(documents)
    assert store.collection_exists()
    assert (store.count(), store.stats().dimension, store.stats().metric) == (40, SIZE, "cosine")

    got = store.get([names[7], "unknown", names[4]], include=["text", "metadata", "vector"])
    assert [(each.id, each.text, each.metadata) for each in got] == [
        (names[7], "text 7", documents[names[7]]),
        (names[4], "text 4", documents[names[4]]),
    ]
    unit = np.array(vector(7)) / np.linalg.norm(vector(7))
    assert np.allclose(np.asarray(got[0].vector), unit, atol=1e-6)

    filters = (
        None,
        F.source == "file1.md",
        F.source.in_(["file1.md", "file2.md", 5]) & (F.page < 3),
        (F.score >= 3.25) & ~(F.draft == True),  # noqa: E712 - a filter
        (F.tags == "t3") | F.rare.is_not_null(),
        F.rare.is_null() & (F.page != 2),
        F.page == 100,
        (F.page == 2.0) | ~(F.source < "file3"),
        F["odd key.é"] > 30,
    )
    for given in filters:
        numbers = [n for n in range(40) if given is None or evaluate(given, documents[names[n]])]
        order, scores = ranked(numbers, [names[n] for n in numbers])
        assert store.count(given) == len(numbers)
        found = list(store.scan(given, batch_size=7))
        assert {each.id: each.metadata for each in found} == {names[n]: documents[names[n]] for n in numbers}
        for exact in (False, True):
            hits = store.similarity_search(SearchRequest(vector=QUERY, top_k=10, filter=given, exact=exact))
            assert [hit.id for hit in hits] == order[:10]
            assert [hit.score for hit in hits] == pytest.approx(
                [scores[each] for each in order[:10]], abs=1e-4
            )
    near = store.similarity_search(SearchRequest(near_id=names[0], top_k=1))
    assert names[0] not in [hit.id for hit in near]
    some = store.similarity_search(SearchRequest(vector=QUERY, ids=[names[2], names[9], "none"]))
    assert {hit.id for hit in some} == {names[2], names[9]}
    view = store.where(F.source == "file1.md")
    assert (view.count(), view.get([names[2]])) == (8, [])
    page = next(store.scan(batch_size=11).pages())
    rest = [each.id for each in store.scan(batch_size=11, token=page.token)]
    assert sorted([*(each.id for each in page.items), *rest]) == sorted(names)


@pytest.mark.parametrize(("mapped", "kind"), WAYS, indirect=["mapped"])
def test_async_twins(mapped: Any, kind: str) -> None:
    # E3
    client, store = mapped(KINDS[kind])
    names = list(fill(client, kind))
    query = SearchRequest(vector=QUERY, filter=F.page < 4, top_k=100)

    async def main() -> Any:
        return [
            await store.acount(F.page < 4),
            await store.asimilarity_search(query),
            await store.aget(names),
            [document async for document in store.ascan(batch_size=6)],
        ]

    expected = [store.count(F.page < 4), store.similarity_search(query), store.get(names), list(store.scan())]
    assert asyncio.run(main()) == expected


def test_nothing_is_ever_written(mapped: Any) -> None:
    # D5: refused before any I/O
    client, store = mapped(LANGCHAIN)
    fill(client, "langchain", 5)
    before = client.scroll("theirs", with_vectors=True)
    for writer in (store, store.where(F.page == 0)):
        for call in (
            lambda writer=writer: writer.add([Document("x", vector=QUERY)]),
            lambda writer=writer: asyncio.run(writer.aadd([Document("x", vector=QUERY)])),
            lambda writer=writer: writer.update(["0"], set={"page": 1}),
            lambda writer=writer: writer.delete(["0"]),
            lambda writer=writer: writer.delete(filter=F.page == 0),
            writer.delete_all,
            writer.create_collection,
            writer.drop_collection,
        ):
            with pytest.raises(UnsupportedError) as caught:
                call()
            assert caught.value.capability in {"write", "view"}
    assert client.scroll("theirs", with_vectors=True) == before
    assert store.list_collections() == []


def test_words_are_declined(mapped: Any) -> None:
    # S9
    client, store = mapped(LANGCHAIN)
    fill(client, "langchain", 3)
    for mode in ("fulltext", "hybrid"):
        with pytest.raises(UnsupportedSearchModeError):
            store.similarity_search("text", mode=mode)


@pytest.mark.parametrize(("distance", "metric"), [("Dot", "dot"), ("Euclid", "euclidean")])
def test_metrics(mapped: Any, distance: str, metric: str) -> None:
    # S1, S2: the collection says which
    client, store = mapped({})
    client.create_collection(
        "theirs", vectors_config=models.VectorParams(size=2, distance=models.Distance(distance))
    )
    points = {1: [1.0, 0.0], 2: [0.6, 0.8], 3: [0.0, 1.0]}
    client.upsert("theirs", [models.PointStruct(id=n, vector=held) for n, held in points.items()])
    hits = store.similarity_search(SearchRequest(vector=[1.0, 0.0], top_k=3))
    expected = {"dot": [1.0, 0.8, 0.5], "euclidean": [1.0, 1 / 1.8, 1 / 3]}[metric]
    assert [hit.id for hit in hits] == ["1", "2", "3"]
    assert [hit.score for hit in hits] == pytest.approx(expected, abs=1e-4)
    assert store.stats().metric == metric
    if metric == "dot":  # D9
        client.upsert("theirs", [models.PointStruct(id=4, vector=[3.0, 0.0])])
        with pytest.raises(CollectionMismatchError, match="norm"):
            store.similarity_search(SearchRequest(vector=[1.0, 0.0], top_k=3))


def test_points_without_the_vector_are_documents_that_no_search_finds(mapped: Any) -> None:
    # S4
    client, store = mapped(SPRING)
    fill(client, "spring", 3)
    client.upsert("theirs", [models.PointStruct(id=77, vector={"other": vector(1)}, payload={"page": 77})])
    assert store.count() == 4
    assert len(store.similarity_search(SearchRequest(vector=QUERY, top_k=10))) == 3
    (found,) = store.get(["77"], include=["text", "metadata", "vector"])
    assert (found.text, found.metadata, found.vector) == (None, {"page": 77}, None)


def test_ids_that_are_none(mapped: Any) -> None:
    # D1, D7: a point without one is no document; one that is none, or that two points have, is refused when read
    client, store = mapped(HAYSTACK)
    fill(client, "haystack", 3)
    add = [models.PointStruct(id=100, vector=vector(1), payload={"content": "no id"})]
    add.append(models.PointStruct(id=101, vector=vector(1), payload={"id": 12, "content": "a number"}))
    client.upsert("theirs", add)
    assert {each.id for each in store.scan()} == {"doc 0", "doc 1", "doc 2", "12"}
    assert [each.text for each in store.get(["12"])] == ["a number"]
    for wrong, told in (({"id": ""}, "empty"), ({"id": ["a"]}, "list"), ({"id": "doc 1"}, "unique")):
        client.upsert("theirs", [models.PointStruct(id=102, vector=vector(1), payload=wrong)])
        for call in (
            lambda: list(store.scan()),
            lambda: store.similarity_search(SearchRequest(vector=QUERY, top_k=10)),
        ):
            with pytest.raises(CollectionMismatchError, match=told):
                call()
    with pytest.raises(CollectionMismatchError, match="unique"):
        store.get(["doc 1", "doc 0"])


@pytest.mark.parametrize(
    ("mapping", "kind", "told"),
    [
        ("id", ConfigurationError, "dict"),
        ({"ident": "id"}, UnknownOptionError, "id"),
        ({"id": ""}, ConfigurationError, "empty"),
        ({"text": 5}, ConfigurationError, "str"),
        ({"text": []}, ConfigurationError, "empty"),
        ({"metadata": ["a", ""]}, ConfigurationError, "empty"),
        ({"metadata": 'a"b'}, ConfigurationError, "double quote"),
        ({"fields": "source"}, ConfigurationError, "fields"),
        ({"fields": {"": "source"}}, ConfigurationError, "metadata key"),
        ({"kinds": {"year": "float"}}, ConfigurationError, "int, datetime"),
        ({"vector": 5}, ConfigurationError, "vectors"),
        ({"vector": "nowhere"}, CollectionMismatchError, "no vectors 'nowhere'"),
    ],
    ids=repr,
)
def test_mappings_that_cannot_be(mapped: Any, mapping: Any, kind: type[Exception], told: str) -> None:
    # E1, D5
    def tried() -> None:
        client, store = mapped(mapping)
        fill(client, "langchain", 1)
        store.count()

    with pytest.raises(kind, match=told) as caught:
        tried()
    assert "hint" in str(caught.value)


def test_collections_that_cannot_be_compared(mapped: Any) -> None:
    # D5, S2
    client, store = mapped({})
    with pytest.raises(CollectionNotFoundError):
        store.count()
    plain = models.VectorParams(size=2, distance=models.Distance.COSINE)
    many = models.VectorParams(
        size=2,
        distance=models.Distance.COSINE,
        multivector_config=models.MultiVectorConfig(comparator=models.MultiVectorComparator.MAX_SIM),
    )
    for config, told in (
        ({"a": plain, "b": plain}, "no vectors without a name"),
        (models.VectorParams(size=2, distance=models.Distance.MANHATTAN), "Manhattan"),
        (many, "several vectors"),
    ):
        client.create_collection("theirs", vectors_config=config)
        with pytest.raises(CollectionMismatchError, match=told):
            store.count()
        client.delete_collection("theirs")
    client.create_collection("theirs", vectors_config={"only": plain})
    assert store.count() == 0
    with pytest.raises(CollectionMismatchError, match="dimension"):
        mapped({}, dimension=3)[1].count()
    with pytest.raises(CollectionMismatchError, match="metric"):
        mapped({}, metric="dot")[1].count()


def test_opened_by_url(server: Emulator) -> None:
    # D5: without a mapping it is refused
    fill(server.client, "langchain", 4)
    url = f"qdrant://127.0.0.1:{server.port}/theirs"
    with pytest.raises(CollectionMismatchError), ep.open_vector_store(url) as store:
        store.count()
    with ep.open_vector_store(url, mapping=LANGCHAIN) as store:
        assert store.count("page < 2") == 2
    with pytest.raises(ClosedError):
        store.count()
    client = QdrantClient(":memory:")
    fill(client, "langchain", 4)
    local = "qdrant-local://?collection=theirs"
    with ep.open_vector_store(local, mapping=LANGCHAIN, client=client) as store:
        assert store.count("page < 2") == 2


# --- what metadata is -------------------------------------------------------------------------------------


def test_what_json_holds_as_metadata() -> None:
    # D3, F1
    payload: dict[str, Any] = {
        "text": "t",
        "n": None,
        "nulls": [None],
        "mixed": [1, "a", None, True],
        "o": {"b": 1, "a": [1]},
        "deep": [[1], {"x": None}],
        "big": 2**64 - 1,
        "whole": 2**63 - 1,
        "": 1,
        "day": "2026-01-31T12:00:00.5+02:00",
        "naive": "2026-01-31T12:00:00",
    }
    mapping = collection_mapping(
        {"text": "text", "fields": {"inner": ["o", "b"]}, "kinds": {"day": "datetime"}}
    )
    found = metadata_of(payload, mapping)
    day = found.pop("day")
    assert str(day) == "2026-01-31 10:00:00.500000+00:00"
    assert found == {
        "nulls": [],
        "mixed": [1, "a", True],
        "o": '{"a": [1], "b": 1}',
        "deep": ["[1]", '{"x": null}'],
        "big": float(2**64 - 1),
        "whole": 2**63 - 1,
        "naive": "2026-01-31T12:00:00",
        "inner": 1,
    }


def test_paths_are_quoted() -> None:
    # F10
    assert path_text(("metadata", "year_2")) == "metadata.year_2"
    assert path_text(("meta data", "a.b", "x[0]", "é")) == '"meta data"."a.b"."x[0]"."é"'
    assert path_text(("a", 'b"c')) is None
    assert path_text(("a", "")) is None
