# pyright: reportPrivateUsage=false
"""Indices of other software, read by a mapping: D5, D7, D9, F1 to F5, F9, S1 to S5."""

from __future__ import annotations

import asyncio
import random
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from plugins.elasticsearch.tests.servers import target

from entrepot import F, SearchRequest
from entrepot.errors import (
    CollectionMismatchError,
    CollectionNotFoundError,
    ConfigurationError,
    RequestError,
    UnsupportedError,
    UnsupportedSearchModeError,
)
from entrepot.filters import Expression, evaluate
from entrepot_elasticsearch import MappedElasticsearchVectorStore
from entrepot_elasticsearch.mapped_fields import at_path, instant_of
from entrepot_elasticsearch.mapping import index_mapping

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from elasticsearch import Elasticsearch

    MakeMapped = Callable[..., MappedElasticsearchVectorStore]

PROPERTIES: dict[str, Any] = {
    "body": {"type": "text"},
    "vector": {
        "type": "dense_vector",
        "dims": 8,
        "similarity": "cosine",
    },  # quantised, as the engine does by default
    "tenant": {"type": "keyword"},
    "metadata": {
        "properties": {
            "word": {"type": "keyword"},
            "short": {"type": "keyword", "ignore_above": 5},
            "folded": {"type": "text", "fields": {"keyword": {"type": "keyword", "ignore_above": 256}}},
            "whole": {"type": "long"},
            "small": {"type": "short", "ignore_malformed": True},
            "real": {"type": "double"},
            "rough": {"type": "half_float"},
            "flag": {"type": "boolean"},
            "when": {"type": "date"},
            "nanos": {"type": "date_nanos", "ignore_malformed": True},
            "hidden": {"type": "keyword", "index": False, "doc_values": False},
            "deep": {"properties": {"er": {"type": "integer"}}},
        }
    },
}
MAPPING = {
    "text": "body",
    "vector": "vector",
    "metadata": "metadata",
    "fields": {"who": "author.name"},
    "only": {"tenant": "a"},
}
INSTANT = datetime(2026, 1, 31, 12, 0, 0, 123456, tzinfo=UTC)
VALUES: dict[str, list[Any]] = {
    "word": ["a", "b", "", "é", "x" * 2000, 5, True],
    "short": ["abc", "abcdef", "abcdefghi", ""],
    "folded": ["Some words", "some words", "y" * 300],
    "whole": [1, 1.5, -1.5, 2, 2**53 + 1, -(2**63), 0, "7"],
    "small": [1, 32_767, -32_768, "no number", 99_999],
    "real": [0.1, 1, -1e300, 2**53 + 1, 0.30000000000000004, -0.0],
    "rough": [0.1, 1.0009, 65_504, 2, -3.3],
    "flag": [True, False, "true"],
    "when": ["2026-01-31T12:00:00.123Z", "2026-01-31T12:00:00.123456+02:00", "2020-02-03", 1_769_860_800_000, "1969-01-01T00:00:00Z"],
    "nanos": ["2026-01-31T12:00:00.123456789Z", "2026-01-31T12:00:00.123456Z", "1960-01-01T00:00:00Z", "2400-01-01T00:00:00Z"],
    "hidden": ["a", "b"],
    "deep.er": [1, 5, 7],
    "unmapped": ["a", 1],
    "who": ["Ann", "Bob"],
}  # fmt: skip
OPERANDS: list[Any] = [
    "a", "abcdef", "some words", "x" * 2000, "2020-02-03", "5", "", "Ann", True, False, 1, 1.5, 2, -1.5, 0, 7, 2**53, 2**53 + 1, 0.1, 0.3, 1e300,
    -1e300, 2**63 - 1, 65_504, INSTANT, INSTANT.replace(microsecond=123000), INSTANT + timedelta(microseconds=1),
    datetime(2020, 2, 3, tzinfo=UTC), datetime(1969, 1, 1, tzinfo=UTC), datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC),
]  # fmt: skip


def sources(rng: random.Random, vectors: Any) -> list[dict[str, Any]]:
    """Return documents with each value by itself, and with some of several."""
    held: list[dict[str, Any]] = [{key: value} for key, values in VALUES.items() for value in values]
    held.insert(0, dict[str, Any]())
    held += [
        {key: rng.sample(values, min(len(values), 2)) for key, values in VALUES.items() if rng.random() < 0.4}
        for _ in range(60)
    ]
    found: list[dict[str, Any]] = []
    for number, values in enumerate(held):
        metadata: dict[str, Any] = {}
        for key, value in values.items():
            if key == "deep.er":
                metadata["deep"] = {"er": value}
            elif key != "who":
                metadata[key] = value
        source = {
            "body": f"text {number}",
            "vector": vectors[number].tolist(),
            "tenant": "a",
            "metadata": metadata,
        }
        if "who" in values:
            source["author"] = {"name": values["who"]}
        found.append(source)
    return found


@pytest.fixture
def index(admin: Elasticsearch, name: str, rng: np.random.Generator) -> str:
    mappings = {"dynamic": False, "properties": PROPERTIES}
    admin.indices.create(index=name, mappings=mappings, settings={"number_of_replicas": 0})
    vectors = rng.normal(size=(200, 8))
    documents = sources(random.Random(5), vectors)
    lines: list[Any] = []
    for number, source in enumerate(documents):
        lines += [{"index": {"_id": f"{number:03}"}}, source]
    lines += [{"index": {"_id": "other"}}, {**documents[0], "tenant": "b"}]
    lines += [{"index": {"_id": "none"}}, {"tenant": "a", "body": "no vector"}]
    answer = admin.bulk(index=name, operations=lines, refresh=True)
    refused = [item for item in answer["items"] if "error" in item["index"]]
    assert len(refused) < 8, refused
    return name


@pytest.fixture
def mapped(server: str, index: str) -> Iterator[MakeMapped]:
    opened: list[MappedElasticsearchVectorStore] = []

    def mapped(**options: Any) -> MappedElasticsearchVectorStore:
        given: dict[str, Any] = {"collection": index, "mapping": MAPPING, **target(server), **options}
        store = MappedElasticsearchVectorStore(**given).connect()
        opened.append(store)
        return store

    yield mapped
    for store in opened:
        store.close()


def some_filters(rng: random.Random, count: int) -> Iterator[Expression]:
    keys = [*VALUES, "absent"]
    for _ in range(count):
        leaves: list[Expression] = []
        for _ in range(rng.choice([1, 1, 2, 3])):
            key, value = F[rng.choice(keys)], rng.choice(OPERANDS)
            made = [
                key == value,
                key != value,
                key.in_([value, rng.choice(OPERANDS)]),
                key.is_null(),
                key.is_not_null(),
            ]
            if type(value) is not bool:
                made += [key < value, key <= value, key > value, key >= value]
            leaf = rng.choice(made)
            leaves.append(~leaf if rng.random() < 0.3 else leaf)
        tree = leaves[0]
        for leaf in leaves[1:]:
            tree = (tree & leaf) if rng.random() < 0.5 else (tree | leaf)
        yield tree


@pytest.mark.slow
def test_filters_hold_for_what_documents_say(mapped: MakeMapped) -> None:
    # F1 to F5, F9: whatever the engine made of the values
    store = mapped()
    documents = {found.id: found.metadata for found in store.scan(batch_size=50)}
    assert "other" not in documents
    assert "none" not in documents
    assert len(documents) > 100
    narrowed = 0
    for tree in some_filters(random.Random(20261130), 700):
        expected = {name for name, metadata in documents.items() if evaluate(tree, metadata)}
        assert {found.id for found in store.scan(tree, include=[])} == expected, tree
        narrowed += store._converter().convert(tree).query != {"match_all": {}}
    assert narrowed > 100


@pytest.mark.slow
def test_values_are_what_sources_say(mapped: MakeMapped) -> None:
    # D4, D7
    store = mapped()
    found = [document.metadata for document in store.scan()]
    assert {"whole": 1.5} in found
    assert {"deep.er": 5} in found
    assert {"who": "Ann"} in found
    assert {"when": datetime(2026, 1, 31, 10, 0, 0, 123456, tzinfo=UTC)} in found
    assert {"when": datetime(2020, 2, 3, tzinfo=UTC)} in found
    assert {"when": 1_769_860_800_000} in found
    assert [document.text for document in store.get(["001", "none", "other", "000"])] == ["text 1", "text 0"]
    pages = store.scan(batch_size=7).pages()
    first = next(pages)
    rest = [document.id for document in store.scan(batch_size=50, token=first.token)]
    assert len(first.items) == 7
    assert sorted([document.id for document in first.items] + rest) == sorted(
        document.id for document in store.scan()
    )
    with pytest.raises(RequestError):
        list(store.scan(token="none of ours"))


@pytest.mark.slow
@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
def test_scores_are_those_of_the_vectors(
    mapped: MakeMapped, admin: Elasticsearch, index: str, metric: str
) -> None:
    # S1, S2, S4, D9: the index is quantised, and has the graph of the cosine alone
    store = mapped(metric=metric)
    stored = {
        hit["_id"]: np.array(hit["_source"]["vector"])
        for hit in admin.search(index=index, size=1000, query={"term": {"tenant": "a"}})["hits"]["hits"]
        if "vector" in hit["_source"]
    }
    query = np.random.default_rng(3).normal(size=8)
    if metric == "cosine":
        score = {
            n: (1 + v @ query / np.linalg.norm(v) / np.linalg.norm(query)) / 2 for n, v in stored.items()
        }
    else:
        score = {n: 1 / (1 + ((v - query) ** 2).sum()) for n, v in stored.items()}
    order = sorted(score, key=lambda name: -score[name])
    for exact in (True, False):
        for k in (5, 1000):
            hits = store.similarity_search(
                SearchRequest(vector=query, top_k=k, exact=exact, include=["vector"])
            )
            assert [hit.id for hit in hits] == order[:k]
            assert [hit.score for hit in hits] == pytest.approx([score[name] for name in order[:k]], abs=1e-5)
    some = store.similarity_search(SearchRequest(vector=query, top_k=3, filter="word is not null"))
    assert len(some) == 3

    async def twins() -> list[str]:
        found = await store.asimilarity_search(SearchRequest(vector=query, top_k=5))
        return [hit.id for hit in found]

    assert asyncio.run(twins()) == order[:5]


@pytest.mark.slow
def test_what_cannot_be_read_or_written(mapped: MakeMapped, index: str) -> None:
    # D5
    store = mapped()
    for call in (
        lambda: store.add([]),
        lambda: store.delete(["001"]),
        lambda: store.delete(filter="word == 'a'"),
        lambda: store.update(["001"], set={"a": 1}),
        store.create_collection,
        store.drop_collection,
    ):
        with pytest.raises(UnsupportedError):
            call()
    with pytest.raises(UnsupportedSearchModeError):
        store.similarity_search(SearchRequest("text", mode="fulltext"))
    for wrong in ({"vector": "body"}, {"vector": "no such"}):
        with pytest.raises(CollectionMismatchError):
            mapped(mapping=wrong).count()
    with pytest.raises(CollectionMismatchError):
        mapped(dimension=9).count()
    for name in (f"{index}-missing", f"{index}*", "_all"):
        with pytest.raises(CollectionNotFoundError):
            mapped(collection=name).count()


@pytest.mark.parametrize(
    "given",
    [
        5,
        {"id": "x"},
        {"vector": 5},
        {"vector": "v*"},
        {"vector": ""},
        {"fields": 5},
        {"fields": {"": "x"}},
        {"fields": {"x": "a,b"}},
        {"only": {"x": None}},
        {"only": ["x"]},
    ],
    ids=str,
)
def test_a_mapping_that_says_something_else(given: Any) -> None:
    with pytest.raises(ConfigurationError):
        index_mapping(given)


def test_paths_and_instants() -> None:
    assert index_mapping({"fields": ["a", "b.c"]}).fields == {"a": "a", "b.c": "b.c"}
    source = {"a.b": {"c": 1}, "a": {"d": {"e.f": 2}}, "n": None}
    assert [at_path(source, path) for path in ("a.b.c", "a.d.e.f", "n", "x", "a.d.e")] == [
        1,
        2,
        None,
        None,
        None,
    ]
    assert instant_of("2026-01-31") == datetime(2026, 1, 31, tzinfo=UTC)
    assert instant_of("0001-01-01T00:00:00+05:00") is None
    assert instant_of("noon") is None
