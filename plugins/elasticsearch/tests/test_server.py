# pyright: reportPrivateUsage=false
"""What only the engine can show: mappings, exact searches, limits, conditional writes. Needs a server."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from entrepot import Document, F, SearchRequest
from entrepot.errors import (
    BackendError,
    BatchError,
    CollectionNotFoundError,
    DuplicateIdError,
    OutsideViewError,
    VectorError,
)
from entrepot.filters import normalise
from entrepot_elasticsearch import changing, reading, searching
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
@pytest.mark.parametrize("widths", [(1 << 5, 1), (1 << 15, 1 << 10)], ids=["counted once", "counted twice"])
def test_exact_searches_are_those_of_numpy_in_slices_too(  # noqa: PLR0913, PLR0917 - fixtures and parameters
    make: Make,
    rng: np.random.Generator,
    monkeypatch: pytest.MonkeyPatch,
    index: str,
    metric: str,
    widths: tuple[int, int],
) -> None:
    # S1, S6: ids and order, ties at the cut settled by id
    monkeypatch.setattr(searching, "MOST", 150)
    monkeypatch.setattr(searching, "_WIDTHS", widths)
    vectors = unit(rng, 1000, 8)
    vectors[500:600] = vectors[0]
    store = make(index=index, metric=metric, ef_search=100)
    store.add([Document(None, id=f"{n:04}", metadata={"n": n}, vector=vectors[n]) for n in range(1000)])
    for query in (vectors[0], vectors[7], -vectors[0]):
        if metric == "cosine":
            score = (1.0 + vectors.astype(np.float64) @ query) / 2.0
        else:
            score = 1.0 / (1.0 + ((vectors.astype(np.float64) - query) ** 2).sum(axis=1))
        for k, wanted in ((5, 1000), (40, 1000), (149, 1000), (1000, 1000), (30, 520), (3, 2)):
            order = sorted(range(wanted), key=lambda n: (-round(float(score[n]), 6), n))
            hits = store.similarity_search(
                SearchRequest(vector=query, top_k=k, exact=True, filter=F.n < wanted)
            )
            assert [hit.score for hit in hits] == pytest.approx([score[n] for n in order[:k]], abs=1e-6)
            tied = [f"{n:04}" for n in order[:k] if abs(score[n] - score[order[0]]) < 1e-7]
            assert [hit.id for hit in hits][: len(tied)] == tied


def test_an_exact_search_compares_what_was_counted_whoever_writes_meanwhile(
    make: Make, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    # S6: what comes between count and search would have the graph asked, and this one is poor
    monkeypatch.setattr(searching, "MOST", 300)
    vectors = unit(rng, 2000, 16)
    store, other = make(m=2, ef_construction=2, ef_search=1), make()
    documents = [Document(None, id=f"{n:04}", vector=vectors[n]) for n in range(2000)]
    store.add(documents[:250])
    real, calls = searching._slices, list[int]()

    def meddled(*given: Any) -> Any:
        found = yield from real(*given)
        calls.append(len(found))
        other.add(documents[250:])
        return found

    monkeypatch.setattr(searching, "_slices", meddled)
    query = vectors[1999]
    expected = np.argsort(-(vectors[:250].astype(np.float64) @ query))[:20]
    hits = store.similarity_search(SearchRequest(vector=query, top_k=20, exact=True))
    assert [hit.id for hit in hits] == [f"{n:04}" for n in expected]
    assert calls == [1]
    monkeypatch.undo()
    hits = store.similarity_search(SearchRequest(vector=query, top_k=20, exact=True))
    expected = np.argsort(-(vectors.astype(np.float64) @ query))[:20]
    assert [hit.id for hit in hits] == [f"{n:04}" for n in expected]


def test_more_documents_in_a_slot_than_are_compared_are_refused(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    # S6: never an approximation under exact=True
    monkeypatch.setattr(searching, "MOST", 5)
    monkeypatch.setattr(searching, "_WIDTHS", (1 << 15,))
    store = make(ef_search=5)
    store.add([Document(None, id=str(n), vector=VECTOR) for n in range(6)])
    with pytest.raises(BackendError, match="compares 5 documents at a time"):
        store.similarity_search(SearchRequest(vector=VECTOR, top_k=2, exact=True))


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


Meddle = Callable[[Callable[[], object]], None]


@pytest.fixture
def meddle(monkeypatch: pytest.MonkeyPatch) -> Meddle:
    """Have another writer come in, once, between what a write reads and what it then writes."""
    real = reading.stored
    pending: list[Callable[[], object]] = []

    def meddled(*given: Any) -> Any:
        found = yield from real(*given)
        if pending:
            pending.pop()()
        return found

    monkeypatch.setattr(changing, "stored", meddled)
    return pending.append


def in_tenant(tenant: str, text: str, *names: str) -> list[Document]:
    return [Document(text, id=name, metadata={"tenant": tenant}, vector=VECTOR) for name in names]


def test_a_guarded_write_that_meets_another_decides_again(make: Make, meddle: Meddle) -> None:
    # T2: what the other writer made is replaced where it lies inside, and is left alone where it does not
    store, other = make(), make()
    view = store.where("tenant == 'a'")
    meddle(lambda: other.add(in_tenant("a", "theirs", "1", "2")))
    view.add(in_tenant("a", "ours", "1", "2", "3"))
    assert {found.id: found.text for found in store.scan()} == dict.fromkeys("123", "ours")
    meddle(lambda: other.add(in_tenant("b", "theirs", "1")))
    for call in (
        lambda: view.add(in_tenant("a", "again", "1")),
        lambda: view.delete(["1"]),
        lambda: view.add(in_tenant("a", "again", "1"), if_exists="error"),
    ):
        with pytest.raises((OutsideViewError, DuplicateIdError)) as caught:
            call()
        assert caught.value.outcome == "not_done"
    meddle(lambda: other.add(in_tenant("b", "theirs", "2")))
    assert view.update(["2", "3"], set={"seen": True}) == ["3"]
    assert {found.id: (found.text, found.metadata) for found in store.scan()} == {
        "1": ("theirs", {"tenant": "b"}),
        "2": ("theirs", {"tenant": "b"}),
        "3": ("ours", {"tenant": "a", "seen": True}),
    }


def test_a_part_of_a_batch_that_meets_another_writer_is_told(make: Make, meddle: Meddle) -> None:
    # T2, D2, D6, E4: nothing foreign is replaced, nothing is taken back, and nobody says that nothing was done
    store, other = make(), make()
    view = store.where("tenant == 'a'")
    store.add(in_tenant("a", "old", "0", "1", "2"))
    meddle(lambda: other.add(in_tenant("b", "theirs", "1")))
    with pytest.raises(BatchError) as caught:
        view.add(in_tenant("a", "new", "0", "1", "2", "3"))
    assert isinstance(caught.value.__cause__, OutsideViewError)
    assert caught.value.unknown == ("0", "1", "2", "3")
    expected = {"0": "new", "1": "theirs", "2": "new", "3": "new"}
    assert {found.id: found.text for found in store.scan()} == expected
    meddle(lambda: other.add(in_tenant("b", "also theirs", "2")))
    with pytest.raises(OutsideViewError) as refused:
        view.delete(["0", "2"])
    assert refused.value.outcome == "unknown"
    assert {found.id: found.text for found in store.scan()} == {
        "1": "theirs",
        "2": "also theirs",
        "3": "new",
    }
    meddle(lambda: other.add(in_tenant("b", "theirs", "5")))
    with pytest.raises(BatchError) as twice:
        store.add(in_tenant("a", "new", "4", "5"), if_exists="error")
    assert isinstance(twice.value.__cause__, DuplicateIdError)
    assert twice.value.__cause__.ids == ("5",)
    assert [found.text for found in store.get(["4", "5"])] == ["new", "theirs"]


def test_no_reader_sees_a_write_that_is_refused(make: Make) -> None:
    # T2: two views want the same ids, again and again, and others look on
    root, over = make(), threading.Event()
    names = [f"n{n}" for n in range(40)]
    seen: dict[str, set[str]] = {name: set() for name in names}
    won: list[tuple[str, str]] = []

    def claim(tenant: str) -> None:
        view = make().where(F.tenant == tenant)
        for name in names:
            with suppress(OutsideViewError):
                view.add([Document(tenant, id=name, vector=VECTOR)])
                won.append((name, tenant))

    def look() -> None:
        store = make()
        while not over.is_set():
            for found in [*store.get(names), *store.scan()]:
                seen[found.id].add(str(found.metadata["tenant"]))

    root.create_collection(dimension=2)
    threads = [threading.Thread(target=claim, args=(tenant,)) for tenant in "ab"]
    reader = threading.Thread(target=look)
    for thread in (reader, *threads):
        thread.start()
    for thread in threads:
        thread.join()
    over.set()
    reader.join()
    owners = {found.id: found.metadata["tenant"] for found in root.scan()}
    assert sorted(won) == sorted(owners.items())
    assert all(seen[name] <= {owners[name]} for name in names)


def test_what_changed_since_a_deletion_began_stays(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    # D7: replaced, updated, made anew or added while documents are deleted
    monkeypatch.setattr(changing, "_DELETED", 10)
    store, other = make(), make()
    store.add([Document("old", id=f"{n:02}", metadata={"k": 1}, vector=VECTOR) for n in range(40)])
    real, calls = changing._send, list[int]()

    def meddled(*given: Any, **more: Any) -> Any:
        calls.append(1)
        if len(calls) == 1:
            other.add(
                [Document("new", id=name, metadata={"k": 1}, vector=VECTOR) for name in ("00", "39", "40")]
            )
            other.update(["20"], set={"seen": True})
            other.delete(["21"])
            other.add([Document("new", id="21", metadata={"k": 1}, vector=VECTOR)])
            calls.extend([0] * 9)
        return (yield from real(*given, **more))

    monkeypatch.setattr(changing, "_send", meddled)
    store.delete(filter="k == 1")
    assert sorted(found.id for found in store.scan()) == ["00", "20", "21", "39", "40"]


def test_a_collection_that_was_made_anew_is_not_taken_for_the_old_one(make: Make) -> None:
    # D5: under a store that knows the one of before
    store, other = make(), make()
    store.add(in_tenant("a", "old", "1"))
    other.drop_collection()
    other.add([Document("new", id="2", vector=[1.0, 0.0, 0.0])])
    view = store.where("tenant == 'a'")
    for call in (
        lambda: store.add(in_tenant("a", "stale", "3")),
        lambda: store.similarity_search(SearchRequest(vector=VECTOR)),
    ):
        known = store._info, store._place
        with pytest.raises(CollectionNotFoundError):
            call()
        store._info, store._place = known
    with pytest.raises(CollectionNotFoundError):
        view.delete(["2"])
    assert store.count() == 1
    assert [found.text for found in store.scan()] == ["new"]


def test_two_that_make_a_collection_have_one(make: Make) -> None:
    # D5: at the same time, by several stores
    stores = [make() for _ in range(4)]

    def add(n: int) -> None:
        stores[n].add([Document(str(n), id=str(n), vector=VECTOR)])

    threads = [threading.Thread(target=add, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(sorted(found.id for found in store.scan()) == list("0123") for store in stores)


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


def test_a_long_word_is_found_whole_and_not_by_its_pieces(make: Make) -> None:
    # S9: the engine's analyzer alone would cut it after 255 characters
    store = make()
    words = ["x" * 300, "x" * 255, "x" * 45, "y" * 8000]
    store.add([Document(word, id=str(n), vector=VECTOR) for n, word in enumerate(words)])
    for n, word in enumerate(words):
        hits = store.similarity_search(SearchRequest(word.upper(), mode="fulltext"))
        assert [hit.id for hit in hits] == [str(n)]


def test_a_vector_that_the_engine_cannot_take_is_refused_before_the_others_are_written(make: Make) -> None:
    # D6, D9
    store = make(metric="euclidean")
    good = Document(None, id="good", vector=[1.8e19, 0.0])
    with pytest.raises(VectorError, match="'far'"):
        store.add([good, Document(None, id="far", vector=[1.9e19, 1e19])])
    assert store.count() == 0
    store.add([good])
    (hit,) = store.similarity_search(SearchRequest(vector=[1.8e19, 0.0]))
    assert hit.score == 1.0


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
