# pyright: reportPrivateUsage=false
"""What only the engine can show: mappings, exact searches, limits, conditional writes. Needs a server."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from entrepot import Document, F, SearchRequest
from entrepot.errors import CollectionNotFoundError, OutsideViewError
from entrepot.filters import normalise
from entrepot_elasticsearch import changing, reading, searching
from entrepot_elasticsearch.fields import slot
from entrepot_elasticsearch.names import index_name

if TYPE_CHECKING:
    from elasticsearch import Elasticsearch
    from numpy.typing import NDArray
    from plugins.elasticsearch.tests.servers import Make

pytestmark = pytest.mark.slow  # there is no server but in a container

VECTOR = [1.0, 1.0]
HOSTILE = [
    "*", "a*", "?", ".", "..", "a.b", "a..b", "_id", "_source", "tokens", '"', "'", "\\", "{", "}", '{"match_all":{}}',
    "a\nb", '\n{"delete":{"_id":"x"}}\n', "&refresh=false", "?x=1", "/", "../..", "%2e", "%", "#", " ", "é", "e\u0301",
    "😀", "\uffff", "_all", "*,-x", "<{now/d}>", "x OR y", "NOT", "+", "-", "~", "^2", ":", "(", "x" * 512, "😀" * 512,
]  # fmt: skip


def unit(rng: np.random.Generator, count: int, dimension: int) -> NDArray[np.float32]:
    matrix = rng.normal(size=(count, dimension))
    found: NDArray[np.float32] = (matrix / np.linalg.norm(matrix, axis=1, keepdims=True)).astype(np.float32)
    return found


def test_five_thousand_keys_map_nothing(make: Make, admin: Elasticsearch, name: str) -> None:
    # D3
    store = make()
    store.create_collection(dimension=2)
    before = admin.indices.get_mapping(index=name).body
    store.add(
        [
            Document(None, id=str(n), metadata={f"key {n} {k}": n + k for k in range(10)}, vector=VECTOR)
            for n in range(500)
        ]
    )
    assert admin.indices.get_mapping(index=name).body == before
    for n in range(0, 500, 25):
        assert [found.id for found in store.scan((F[f"key {n} 3"] == n + 3) & (F[f"key {n} 9"] > n + 8))] == [
            str(n)
        ]
        assert store.count(F[f"key {n} 3"] < n + 3) == 0


def test_whatever_a_name_or_a_value_holds_is_data(make: Make, admin: Elasticsearch, name: str) -> None:
    # F10, D1, D3: a neighbour must not notice
    canary = make(collection=f"{name}-canary")
    canary.add([Document("quiet", id="x", metadata={"k": 1}, vector=VECTOR)])
    store = make()
    store.add(
        [
            Document(
                text, id=text, metadata={"value": text, "list": [text, "shared"], text: n}, vector=VECTOR
            )
            for n, text in enumerate(HOSTILE)
        ]
    )
    assert [found.id for found in store.get(HOSTILE)] == HOSTILE
    for n, text in enumerate(HOSTILE):
        (found,) = store.scan((F.value == text) & (F.list == text))
        assert (found.id, found.text) == (text, text)
        assert [one.id for one in store.scan((F[text] == n) & (F[text] >= n), include=[])] == [text]
        assert store.count(F.value <= text) == sum(other <= text for other in HOSTILE[n:])
        assert canary.similarity_search(SearchRequest(text, mode="fulltext")) == []
        store.update([text], set={text: [text]})
        store.delete([text])
        assert store.count() == len(HOSTILE) - n - 1
    for text in HOSTILE:
        if len(text) < 100:
            other = make(collection=f"{name}{text}")
            other.add([Document(text, id="x", vector=VECTOR)])
            assert other.collection in canary.list_collections()
            other.drop_collection()
    assert canary.count("k == 1") == canary.count() == 1
    assert index_name(f"{name}-canary") in admin.indices.get(index=f"{name}*")


@pytest.mark.parametrize("index", ["hnsw", "flat"])
@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
def test_exact_searches_are_those_of_numpy_in_slices_too(
    make: Make, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch, index: str, metric: str
) -> None:
    # S1, S6: ids and order, ties at the cut settled by id
    monkeypatch.setattr(searching, "_SLICE", 150)
    vectors = unit(rng, 1000, 8)
    vectors[500:600] = vectors[0]
    store = make(index=index, metric=metric)
    store.add([Document(None, id=f"{n:04}", metadata={"n": n}, vector=vectors[n]) for n in range(1000)])
    for query in (vectors[0], vectors[7], -vectors[0]):
        if metric == "cosine":
            score = (1.0 + vectors.astype(np.float64) @ query) / 2.0
        else:
            score = 1.0 / (1.0 + ((vectors.astype(np.float64) - query) ** 2).sum(axis=1))
        for k, wanted in ((5, 1000), (40, 1000), (1000, 1000), (30, 520), (3, 2)):
            order = sorted(range(wanted), key=lambda n: (-round(float(score[n]), 6), n))
            hits = store.similarity_search(
                SearchRequest(vector=query, top_k=k, exact=True, filter=F.n < wanted)
            )
            assert [hit.score for hit in hits] == pytest.approx([score[n] for n in order[:k]], abs=1e-6)
            tied = [f"{n:04}" for n in order[:k] if abs(score[n] - score[order[0]]) < 1e-7]
            assert [hit.id for hit in hits][: len(tied)] == tied


def test_slots_cut_documents_into_even_slices() -> None:
    # S6: no slice of the size that is aimed at has more documents than are compared
    slots = np.array([slot(f"document {n}") for n in range(200_000)])
    counts = np.histogram(slots, bins=25, range=(0, 1 << 15))[0]
    assert counts.max() < searching.MOST
    assert counts.min() > 7000


def test_an_index_that_is_gone_is_not_made_by_a_write(make: Make, admin: Elasticsearch, name: str) -> None:
    # D5
    store = make()
    store.add([Document(None, id="1", vector=VECTOR)])
    admin.indices.delete(index=name)
    for call in (
        lambda: store.add([Document(None, id="2", vector=VECTOR)]),
        lambda: store.update(["1"], set={"k": 1}),
        lambda: store.delete(["1"]),
        lambda: store.delete(filter="k == 1"),
        store.count,
    ):
        with pytest.raises(CollectionNotFoundError):
            call()
        store._info, store._place = make_known(store, name)
    assert not admin.indices.exists(index=name)


def make_known(store: Any, name: str) -> tuple[Any, Any]:
    """Return what a store knows that has not noticed yet."""
    from entrepot.records import CollectionInfo
    from entrepot_elasticsearch.catalog import Place

    info = CollectionInfo(name=store.collection, dimension=2)
    return info, Place(name, f"{name}.g0", info, "hnsw")


def test_updates_at_once_lose_nothing(make: Make) -> None:
    # D10: each change names the state that it was made of
    store = make()
    store.add([Document("text", id="1", metadata={f"k{n}": 0 for n in range(6)}, vector=VECTOR)])

    def count_up(key: str) -> None:
        for value in range(1, 11):
            assert store.update(["1"], set={key: value}) == ["1"]

    threads = [threading.Thread(target=count_up, args=(f"k{n}",)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (found,) = store.get(["1"], include=["text", "metadata", "vector"])
    assert found.metadata == {f"k{n}": 10 for n in range(6)}
    assert found.text == "text"
    assert found.vector == pytest.approx([0.5**0.5, 0.5**0.5])


def test_a_guarded_write_that_meets_another_is_taken_back(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    # T2: another writer takes the second document out of the view between check and write

    store, other = make(), make()
    store.add([Document(f"old {n}", id=str(n), metadata={"tenant": "a"}, vector=VECTOR) for n in range(3)])
    view = store.where("tenant == 'a'")
    real, calls = reading.stored, list[int]()

    def meddled(*given: Any) -> Any:
        found = yield from real(*given)
        calls.append(1)
        if len(calls) == 1:
            other.add([Document("theirs", id="1", metadata={"tenant": "b"}, vector=VECTOR)])
        return found

    monkeypatch.setattr(changing, "stored", meddled)
    with pytest.raises(OutsideViewError):
        view.add([Document(f"new {n}", id=str(n), vector=VECTOR) for n in range(4)])
    assert {found.id: found.text for found in store.scan()} == {"0": "old 0", "1": "theirs", "2": "old 2"}
    calls.clear()
    other.add([Document("mine again", id="1", metadata={"tenant": "a"}, vector=VECTOR)])
    calls.clear()
    with pytest.raises(OutsideViewError):
        view.delete(["0", "1", "2"])
    assert store.count() == 3


def test_many_words_and_words_within_words(make: Make) -> None:
    # S9: more words than the engine ranks, and words that it takes for one
    store = make()
    texts = ["see example.com", "it's _private_", "foo_bar:baz", "3.14 and 1,000", "plain", "word2999"]
    store.add([Document(text, id=text, vector=VECTOR) for text in texts])
    for word, expected in (
        ("com", texts[0]), ("PRIVATE", texts[1]), ("s", texts[1]), ("bar", texts[2]), ("baz", texts[2]), ("14", texts[3]),
        ("000", texts[3]), ("see.example", texts[0]),
    ):  # fmt: skip
        assert [hit.id for hit in store.similarity_search(SearchRequest(word, mode="fulltext"))] == [expected]
    many = " ".join(f"word{n}" for n in range(3000))
    assert [hit.id for hit in store.similarity_search(SearchRequest(many, mode="fulltext"))] == ["word2999"]


def test_the_engine_takes_the_largest_filters_that_are_sent(make: Make) -> None:
    # F6: as deep and as wide as the converter goes, below every wrapper
    store = make()
    store.add([Document(None, id=str(n), metadata={"n": n, "s": "x" * n}, vector=VECTOR) for n in range(20)])
    deep = F.s > "x"
    for level in range(24):
        deep = (deep | ~(F.n < level)) if level % 2 else (deep & (F.n >= 0))
    wide = F.n > 5
    for n in range(450):
        wide = wide & (F.n > n % 6)
    for tree in (deep, ~deep, wide, F.n.in_(list(range(9000)))):
        pushed = store._converter().convert(normalise(tree))
        assert pushed.exact
        expected = store.count(tree)
        assert len(list(store.scan(tree))) == expected
        request = SearchRequest(vector=VECTOR, top_k=50, filter=tree)
        assert len(store.similarity_search(request)) == expected


def test_vectors_come_back_as_they_were_stored(make: Make, rng: np.random.Generator) -> None:
    # D9: every float32, whatever its size
    store = make(metric="euclidean", index="flat")
    scales = 10.0 ** rng.integers(-30, 18, size=(50, 16))
    vectors = (rng.normal(size=(50, 16)) * scales).astype(np.float32)
    store.add([Document(None, id=str(n), vector=vectors[n]) for n in range(50)])
    for found in store.get([str(n) for n in range(50)], include=["vector"]):
        assert found.vector is not None
        assert np.array_equal(np.asarray(found.vector, dtype=np.float32), vectors[int(found.id)])
