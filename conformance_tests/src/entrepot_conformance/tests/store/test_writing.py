"""Writing and reading back: D1 to D10."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from entrepot import ContentFormatter, Document, FunctionEmbeddingModel, Media
from entrepot.errors import (
    ArgumentTypeError,
    CollectionMismatchError,
    CollectionNotFoundError,
    ConfigurationError,
    DocumentError,
    DuplicateIdError,
    EmbeddingError,
    MetadataError,
    RequestError,
    VectorError,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from entrepot import VectorStore
    from entrepot_conformance.endpoints import Stores


def test_add_returns_the_ids_in_order(store: VectorStore) -> None:
    # D1
    ids = store.add([Document("a", id="z"), Document("b"), Document("c", id="a")])
    assert ids[0] == "z"
    assert ids[2] == "a"
    assert [document.text for document in store.get(ids)] == ["a", "b", "c"]
    assert store.add([]) == []
    assert store.add(iter([Document("d", id="d")])) == ["d"]


@pytest.mark.parametrize(
    "name", ["x" * 512, "\U0001f600" * 512, " ", "a:b*'\"", "é", "e\u0301", "A", "a", "a "]
)
def test_ids_are_exact(store: VectorStore, name: str) -> None:
    # D1, D4
    store.add([Document("a", id=name), Document("b", id="other")])
    assert [document.id for document in store.get([name])] == [name]
    assert store.count() == 2


@pytest.mark.parametrize("name", ["", "x" * 513, "a\0", "\ud800", 5])
def test_a_bad_id_is_refused(store: VectorStore, name: Any) -> None:
    # D1
    with pytest.raises(DocumentError):
        store.add([Document("a", id="fine"), Document("a", id=name)])
    assert not store.collection_exists()


def test_an_upsert_replaces_the_whole_document(store: VectorStore) -> None:
    # D2
    store.add([Document("a", id="1", metadata={"old": 1, "both": 1})])
    store.add([Document("b", id="1", metadata={"both": 2})])
    (document,) = store.get(["1"], include=["text", "metadata", "vector"])
    assert document.text == "b"
    assert document.metadata == {"both": 2}
    assert store.count() == 1
    assert store.count("old == 1") == 0
    assert [hit.id for hit in store.similarity_search("b", top_k=5)] == ["1"]


def test_one_id_twice_in_a_call_is_refused_before_anything_is_sent(store: VectorStore) -> None:
    # D2
    with pytest.raises(DuplicateIdError) as caught:
        store.add([Document("a", id="1"), Document("b", id="2"), Document("c", id="1")])
    assert caught.value.ids == ("1",)
    assert not store.collection_exists()


def test_if_exists_skip_keeps_and_error_refuses_whole(store: VectorStore) -> None:
    # D2
    store.add([Document("a", id="1")])
    assert store.add([Document("b", id="1"), Document("c", id="2")], if_exists="skip") == ["1", "2"]
    assert [document.text for document in store.get(["1", "2"])] == ["a", "c"]
    with pytest.raises(DuplicateIdError):
        store.add([Document("d", id="3"), Document("e", id="2")], if_exists="error")
    assert store.count() == 2
    with pytest.raises(RequestError):
        store.add([Document("d")], if_exists="merge")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def test_a_batch_is_checked_whole(store: VectorStore) -> None:
    # D3, D6
    with pytest.raises(MetadataError, match=r"document 'bad'.*'n'"):
        store.add([Document("a", id="1"), Document("b", id="bad", metadata={"n": {"nested": 1}})])
    assert not store.collection_exists()
    with pytest.raises(ArgumentTypeError):
        store.add(Document("a"))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    with pytest.raises(ArgumentTypeError):
        store.add(["a"])  # type: ignore[list-item]  # pyright: ignore[reportArgumentType]


def test_every_type_is_read_back_as_it_was(stores: Stores, model: FunctionEmbeddingModel) -> None:
    # D4
    metadata = {
        "int": 1,
        "float": 1.0,
        "true": True,
        "zero": -0.0,
        "big": 2**63 - 1,
        "date": datetime(2026, 1, 31, 12, 0, 0, 123456, tzinfo=UTC),
        "text": " É\u2028'\"\\ 2026-01-31T12:00:00Z",
        "list": ["a", "A ", ""],
        "numbers": [1, 1.0, 2**53 + 1],
        "dates": [datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC)],
        "empty": [],
        "a.b": False,
    }
    stores(embedding=model).add([Document("abc \u2028\n", id="1", metadata=metadata)])
    (read,) = stores().get(["1"])
    assert read.text == "abc \u2028\n"
    assert {key: repr(value) for key, value in read.metadata.items()} == {
        key: repr(value) for key, value in metadata.items()
    }


def test_what_a_read_returns_is_the_callers_own(store: VectorStore) -> None:
    # D4
    tags = ["a"]
    store.add([Document("a", id="1", metadata={"tags": tags})])
    tags.append("b")
    (first,) = store.get(["1"], include=["metadata", "vector"])
    first.metadata["tags"].append("c")
    assert first.vector is not None
    first.vector[:] = 0
    (second,) = store.get(["1"], include=["metadata", "vector"])
    assert second.metadata == {"tags": ["a"]}
    assert second.vector is not None
    assert second.vector.any()


def test_a_text_of_none_and_an_empty_text_differ(store: VectorStore) -> None:
    # D4
    store.add([Document(None, id="none", vector=[1] * 8), Document("", id="empty", vector=[1] * 8)])
    assert [document.text for document in store.get(["none", "empty"])] == [None, ""]


def test_reading_a_missing_collection_says_so(store: VectorStore) -> None:
    # D5
    reads: list[Callable[[], object]] = [
        lambda: store.get(["1"]),
        store.count,
        lambda: list(store.scan()),
        lambda: store.similarity_search("a"),
        lambda: store.delete(["1"]),
        lambda: store.update(["1"], set={"a": 1}),
        store.delete_all,
        store.stats,
    ]
    for read in reads:
        with pytest.raises(CollectionNotFoundError):
            read()
    assert not store.collection_exists()


def test_creating_with_another_dimension_is_refused(store: VectorStore) -> None:
    # D5
    store.create_collection()
    store.create_collection(dimension=8)
    with pytest.raises(CollectionMismatchError):
        store.create_collection(dimension=5)


@pytest.mark.parametrize("change", [{"dimension": 4}, {"dimension": 2, "metric": "euclidean"}], ids=str)
def test_a_store_object_notices_that_its_collection_was_made_anew(
    stores: Stores, change: dict[str, Any]
) -> None:
    # D5: what it knew of the old one must not reach the new one
    one, two = stores(), stores(**change)
    one.add([Document(None, id="old", vector=[1.0, 0.0])])
    two.drop_collection()
    vector = [1.0] * int(change["dimension"])
    two.add([Document(None, id="new", vector=vector)])
    for attempt in range(2):  # refused at first; then the store knows the new collection
        try:
            one.add([Document(None, id=f"attempt {attempt}", vector=[3.0, 4.0])])
        except (CollectionMismatchError, CollectionNotFoundError, VectorError):
            continue
    metric = two.stats().metric
    assert two.count() == len(list(two.scan()))
    for found in two.scan(include=["vector"]):
        assert found.vector is not None
        assert len(found.vector) == change["dimension"]
        if found.id.startswith("attempt"):
            expected = [3.0, 4.0] if metric == "euclidean" else [0.6, 0.8]
            assert found.vector == pytest.approx(expected)


def test_create_false_forbids_the_first_add(stores: Stores, model: FunctionEmbeddingModel) -> None:
    # D5
    with pytest.raises(CollectionNotFoundError):
        stores(embedding=model, create=False).add([Document("a")])
    stores(embedding=model).create_collection()
    stores(embedding=model, create=False).add([Document("a")])


def test_another_dimension_metric_or_model_is_refused(stores: Stores, model: FunctionEmbeddingModel) -> None:
    # D5
    stores(embedding=model, metric="cosine").add([Document("a", id="1")])
    with pytest.raises(CollectionMismatchError, match="metric"):
        stores(embedding=model, metric="dot").count()
    with pytest.raises(CollectionMismatchError, match="dimension"):
        stores(dimension=3).count()
    other = FunctionEmbeddingModel(lambda texts: [[1.0] * 8 for _ in texts], "other", 8)
    with pytest.raises(CollectionMismatchError, match="letters"):
        stores(embedding=other).similarity_search("a")
    assert stores(embedding=other, allow_other_model=True).count() == 1
    assert stores().count() == 1
    with pytest.raises(VectorError):
        stores().add([Document("a", vector=[1.0, 2.0])])


def test_a_collection_says_what_it_is(stores: Stores, model: FunctionEmbeddingModel) -> None:
    # D5
    store = stores(embedding=model, metric="euclidean", beside="articles")
    store.add([Document("a")])
    stats = store.stats()
    assert (stats.collection, stats.backend, stats.count) == (store.collection, store.backend, 1)
    assert (stats.dimension, stats.metric, stats.model) == (8, "euclidean", "letters")
    other = stores(embedding=model)
    other.add([Document("b"), Document("c")])
    listed = store.list_collections()  # once: other tests make and drop some meanwhile
    assert {store.collection, other.collection} <= set(listed)
    assert listed == sorted(listed)
    assert store.count() == 1
    store.drop_collection()
    store.drop_collection()
    assert store.collection not in other.list_collections()
    assert other.count() == 2
    with pytest.raises(CollectionNotFoundError):
        store.count()
    store.add([Document("a", id="again")])
    assert [document.id for document in store.scan()] == ["again"]


def test_a_dropped_collection_is_missing_to_other_store_objects(
    stores: Stores, model: FunctionEmbeddingModel
) -> None:
    # D5, S7
    one, two = stores(embedding=model), stores(embedding=model)
    one.add([Document("a", id="1")])
    assert two.count() == 1
    one.drop_collection()
    with pytest.raises(CollectionNotFoundError):
        two.count()
    with pytest.raises(CollectionNotFoundError):
        two.similarity_search("a")
    two.add([Document("b", id="2")])
    assert [document.id for document in one.scan()] == ["2"]


def test_a_failing_model_writes_nothing(stores: Stores) -> None:
    # D6, E1
    def fail(_: Sequence[str]) -> Any:
        raise OSError("no model")

    store = stores(embedding=FunctionEmbeddingModel(fail, "broken", 8))
    with pytest.raises(EmbeddingError) as caught:
        store.add([Document("a", id="1")])
    assert isinstance(caught.value.__cause__, OSError)
    assert store.count() == 0


def test_get_keeps_the_order_asked_and_leaves_out_unknown_ids(store: VectorStore) -> None:
    # D7
    store.add([Document("a", id=name) for name in "cab"])
    assert [document.id for document in store.get(["b", "x", "c", "b"])] == ["b", "c", "b"]
    assert store.get([]) == []
    with pytest.raises(ArgumentTypeError):
        store.get("abc")


def test_delete_by_ids(store: VectorStore) -> None:
    # D7
    store.add([Document("a", id=name) for name in "abc"])
    store.delete([])
    assert store.count() == 3
    store.delete(["a", "unknown", "a"])
    assert sorted(document.id for document in store.scan()) == ["b", "c"]
    for wrong in ({"ids": "b"}, {}, {"ids": ["b"], "filter": "x == 1"}):
        with pytest.raises(TypeError):
            store.delete(**wrong)  # pyright: ignore[reportArgumentType]
    assert store.count() == 2


def test_delete_by_filter_and_delete_all(store: VectorStore) -> None:
    # D7
    store.add([Document("a", id=str(n), metadata={"n": n}) for n in range(20)])
    store.delete(filter="n >= 10")
    assert store.count() == 10
    store.delete(filter="n in []")
    assert store.count() == 10
    store.delete_all()
    assert store.count() == 0
    assert store.collection_exists()
    store.add([Document("a", id="1")])
    assert store.count() == 1


def test_scan_yields_all_once_and_goes_on_from_a_token(store: VectorStore) -> None:
    # D7
    store.add([Document("a", id=f"{n:03}", metadata={"n": n}) for n in range(100)])
    assert sorted(document.id for document in store.scan(batch_size=7)) == [f"{n:03}" for n in range(100)]
    assert len(list(store.scan("n < 30", batch_size=1000))) == 30
    first = next(scan_pages := store.scan("n < 30", batch_size=10).pages())
    rest = [document.id for document in store.scan("n < 30", batch_size=10, token=first.token)]
    assert sorted([document.id for document in first.items] + rest) == [f"{n:03}" for n in range(30)]
    assert len(list(scan_pages)) == 2
    for size in (0, -1, True, 2.0):
        with pytest.raises(RequestError):
            store.scan(batch_size=size)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def test_a_document_that_is_replaced_during_a_scan_comes_once(store: VectorStore) -> None:
    # D7
    names = [f"{n:03}" for n in range(60)]
    store.add([Document("a", id=name) for name in names])
    seen: list[str] = []
    for position, document in enumerate(store.scan(batch_size=7)):
        seen.append(document.id)
        store.add([Document("b", id=names[position]), Document("b", id=names[-1 - position])])
    assert sorted(seen) == names


def test_a_scan_needs_no_model(stores: Stores, model: FunctionEmbeddingModel) -> None:
    # D7, S8
    stores(embedding=model).add([Document("a", id="1", metadata={"k": 1})])
    (document,) = stores().scan("k == 1", include=["text", "vector"])
    assert document.text == "a"
    assert document.metadata == {}
    assert document.vector is not None
    assert document.vector.tolist() == [1.0, 0, 0, 0, 0, 0, 0, 0]


def test_own_vectors_are_normalised_in_float64_and_rounded(stores: Stores, rng: np.random.Generator) -> None:
    # D9
    given = rng.normal(size=(50, 8)) * 1e3
    store = stores(dimension=8)
    store.add([Document(None, id=f"{row:02}", vector=vector) for row, vector in enumerate(given)])
    rounded = given.astype(np.float32).astype(np.float64)
    expected = rounded / np.linalg.norm(rounded, axis=1, keepdims=True)
    documents = store.get([f"{n:02}" for n in range(50)], include=["vector"])
    read = np.array([document.vector for document in documents])
    assert read.dtype == np.float32
    assert np.abs(read - expected).max() <= 1e-6


def test_euclidean_vectors_are_stored_as_they_are(stores: Stores) -> None:
    # D9
    store = stores(metric="euclidean")
    store.add([Document(None, id="1", vector=[3.0, 4.0])])
    (document,) = store.get(["1"], include=["vector"])
    assert document.vector is not None
    assert document.vector.tolist() == [3.0, 4.0]


def test_dot_takes_norms_within_a_thousandth(stores: Stores) -> None:
    # D9
    store = stores(metric="dot")
    store.add([Document(None, id="1", vector=[1.0009, 0.0])])
    (document,) = store.get(["1"], include=["vector"])
    assert document.vector is not None
    assert document.vector.tolist() == [1.0, 0.0]
    with pytest.raises(VectorError, match="norm"):
        store.add([Document(None, id="2", vector=[1.002, 0.0])])


@pytest.mark.parametrize("metric", ["cosine", "dot", "euclidean"])
@pytest.mark.parametrize(
    "vector",
    [
        [0.0] * 3,
        [1.0, float("nan"), 0.0],
        [float("inf"), 0, 0],
        [1.0, 2.0],
        [[1.0, 2.0, 3.0]],
        ["a", "b", "c"],
        [1e39, 0, 0],
        5,
        np.ma.masked_array(np.array([1, 2, 3], dtype=np.float32), mask=np.array([False, True, False])),
    ],
    ids=["zero", "nan", "inf", "short", "nested", "strings", "beyond float32", "scalar", "masked"],
)
def test_bad_vectors_are_refused_by_name_in_adds_and_queries(
    stores: Stores, metric: str, vector: Any
) -> None:
    # D9
    from entrepot import SearchRequest

    store = stores(metric=metric)
    store.add([Document(None, id="first", vector=[1.0, 0, 0])])
    with pytest.raises(VectorError, match="'bad'"):
        store.add([Document(None, id="good", vector=[1.0, 0, 0]), Document(None, id="bad", vector=vector)])
    assert store.count() == 1
    with pytest.raises(VectorError, match="query"):
        store.similarity_search(SearchRequest(vector=vector))


def test_a_text_that_embeds_to_zero_is_refused_by_name(store: VectorStore) -> None:
    # D9
    with pytest.raises(VectorError, match="'blank'"):
        store.add([Document("a", id="1"), Document("xyz", id="blank")])


def test_without_model_and_vector_there_is_nothing_to_store(stores: Stores) -> None:
    # D9
    with pytest.raises(ConfigurationError, match="embedding"):
        stores().add([Document("a")])
    with pytest.raises(DocumentError, match="neither a text nor a vector"):
        stores(dimension=2).add([Document(None)])


def test_media_is_refused_loudly(store: VectorStore) -> None:
    # D4
    with pytest.raises(DocumentError, match="media"):
        store.add([Document("a", media=Media(mime_type="image/png", url="u"))])


def test_a_formatter_decides_what_is_embedded(store: VectorStore) -> None:
    # D9: the letters of the formatted text are counted, the stored text stays
    formatter = ContentFormatter(text_template="{metadata} {content}", metadata_template="{key}{value}")
    store.add([Document("a", id="1", metadata={"b": "c"}, formatter=formatter)])
    (document,) = store.get(["1"], include=["text", "vector"])
    assert document.text == "a"
    assert document.vector is not None
    assert document.vector == pytest.approx([3**-0.5] * 3 + [0] * 5)


def test_update_changes_metadata_without_embedding(stores: Stores) -> None:
    # D10
    calls: list[int] = []

    def embed(texts: Sequence[str]) -> Any:
        calls.append(len(texts))
        return [[1.0, 2.0] for _ in texts]

    store = stores(embedding=FunctionEmbeddingModel(embed, "counting", 2))
    store.add([Document("a", id="1", metadata={"a": 1, "b": 1}), Document("b", id="2")])
    calls.clear()
    assert store.update(["2", "x", "1"], set={"b": 2.0, "c": ["x"], "a": None}, unset=["missing"]) == [
        "2",
        "1",
    ]
    assert calls == []
    one, two = store.get(["1", "2"], include=["text", "metadata", "vector"])
    assert one.metadata == {"b": 2.0, "c": ["x"]}
    assert two.metadata == {"b": 2.0, "c": ["x"]}
    assert (one.text, two.text) == ("a", "b")
    assert one.vector == pytest.approx(np.array([1, 2]) / 5**0.5)
    assert store.count("b == 2") == 2
    assert store.count("a is not null") == 0
    assert store.update([], set={"a": 1}) == []
    assert store.update(["1"]) == []


def test_update_refuses_what_add_refuses(store: VectorStore) -> None:
    # D10, D3
    store.add([Document("a", id="1", metadata={"a": 1})])
    with pytest.raises(MetadataError):
        store.update(["1"], set={"b": {"nested": 1}})
    with pytest.raises(RequestError, match="set and unset"):
        store.update(["1"], set={"b": 1}, unset=["b"])
    with pytest.raises(ArgumentTypeError):
        store.update("1", set={"b": 1})
    assert store.get(["1"])[0].metadata == {"a": 1}
