"""Searching against plain numpy: S1 to S9."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from entrepot import Document, F, FunctionEmbeddingModel, SearchRequest
from entrepot.errors import (
    ArgumentTypeError,
    ConfigurationError,
    FilterSyntaxError,
    RequestError,
    VectorError,
)
from entrepot_conformance.tests.store.data import SCORE, TEXTS, check_hits, declined, expected_scores

if TYPE_CHECKING:
    from entrepot import VectorStore
    from entrepot_conformance.endpoints import Stores


@pytest.mark.parametrize("metric", ["cosine", "dot", "euclidean"])
@pytest.mark.parametrize("share", [None, 1, 10, 60, 100], ids=lambda share: f"{share}%")
def test_hits_order_and_scores_are_those_of_plain_numpy(
    stores: Stores, rng: np.random.Generator, metric: str, share: int | None
) -> None:
    # S1, S2, S4
    vectors = rng.normal(size=(1000, 16))
    if metric == "dot":
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    vectors = vectors.astype(np.float32)
    places = rng.permutation(1000)
    names = [f"d{n:04}" for n in range(1000)]
    store = stores(metric=metric)
    store.add(
        [
            Document(None, id=names[n], vector=vectors[n], metadata={"place": int(places[n])})
            for n in range(1000)
        ]
    )
    limit = 10 * (share or 100)
    for _ in range(5):
        query = rng.normal(size=16).astype(np.float32)
        if metric == "dot":
            query /= np.linalg.norm(query)
        scores = expected_scores(metric, vectors, query).tolist()
        matching = {names[n]: scores[n] for n in range(1000) if places[n] < limit}
        for k in (1, 10, 200):
            request = SearchRequest(
                vector=query,
                top_k=k,
                filter=None if share is None else F.place < limit,
                include=["metadata"],
                exact=True,
            )
            hits = store.similarity_search(request)
            check_hits(hits, matching, k)
            assert all(hit.metadata == {"place": int(places[int(hit.id[1:])])} for hit in hits)
            assert all(hit.rank_score is None and hit.text is None for hit in hits)
            indexed = store.similarity_search(request.replace(exact=False))
            assert len(indexed) == len(hits)
            assert {hit.id for hit in indexed} <= matching.keys()


@pytest.mark.large
@pytest.mark.slow
@pytest.mark.parametrize("given", [None, "hundredth == 7"], ids=["no filter", "a filter of 1 %"])
def test_default_settings_find_what_an_exact_search_finds(stores: Stores, given: str | None) -> None:
    # S6: recall@10 of 0.95 on clustered data, 10,000 x 256, 100 queries
    rng = np.random.default_rng(6)
    centres = rng.normal(size=(500, 256))
    vectors = (centres[rng.integers(0, 500, 10_000)] + 0.4 * rng.normal(size=(10_000, 256))).astype(
        np.float32
    )
    store = stores()
    store.add(
        [
            Document(None, id=f"{n:05}", vector=vector, metadata={"hundredth": n % 100})
            for n, vector in enumerate(vectors)
        ]
    )
    found = 0
    for _ in range(100):
        query = vectors[rng.integers(0, 10_000)] + 0.4 * rng.normal(size=256)
        scores = expected_scores("cosine", vectors, query)
        allowed = [n for n in range(10_000) if given is None or n % 100 == 7]
        best = {f"{n:05}" for n in sorted(allowed, key=lambda n: -scores[n])[:10]}
        found += len(
            best
            & {hit.id for hit in store.similarity_search(SearchRequest(vector=query, top_k=10, filter=given))}
        )
    assert found / 1000 >= 0.95


@pytest.mark.parametrize("given", [None, "tenth == 7"], ids=["no filter", "a filter of 10 %"])
def test_default_settings_find_most_of_a_thousand(
    stores: Stores, rng: np.random.Generator, given: str | None
) -> None:
    # S6: the same in short; and an exact search finds all
    centres = rng.normal(size=(100, 32))
    vectors = (centres[rng.integers(0, 100, 1000)] + 0.4 * rng.normal(size=(1000, 32))).astype(np.float32)
    store = stores()
    store.add(
        [
            Document(None, id=f"{n:04}", vector=vector, metadata={"tenth": n % 10})
            for n, vector in enumerate(vectors)
        ]
    )
    found = exactly = 0
    for _ in range(40):
        query = vectors[rng.integers(0, 1000)] + 0.4 * rng.normal(size=32)
        scores = expected_scores("cosine", vectors, query)
        allowed = [n for n in range(1000) if given is None or n % 10 == 7]
        best = {f"{n:04}" for n in sorted(allowed, key=lambda n: -scores[n])[:10]}
        request = SearchRequest(vector=query, top_k=10, filter=given)
        found += len(best & {hit.id for hit in store.similarity_search(request)})
        exactly += len(best & {hit.id for hit in store.similarity_search(request.replace(exact=True))})
    assert found / 400 >= 0.95
    assert exactly == 400


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
@pytest.mark.parametrize("size", [37, 1001])
def test_identical_vectors_tie_exactly_wherever_they_lie(
    stores: Stores, rng: np.random.Generator, metric: str, size: int
) -> None:
    # S1: the rows of a BLAS product may differ in the last bit by where they lie
    vector = rng.normal(size=33).astype(np.float32)
    names = [f"{n:04}" for n in rng.permutation(size)]
    store = stores(metric=metric)
    store.add([Document(None, id=name, vector=vector) for name in names])
    query = rng.normal(size=33)
    for k in (1, 7, size):
        hits = store.similarity_search(SearchRequest(vector=query, top_k=k, exact=True))
        assert [hit.id for hit in hits] == sorted(names)[:k]
        assert len({hit.score for hit in hits}) == 1


def test_scores_stay_within_bounds(stores: Stores) -> None:
    # S2
    store = stores()
    store.add([Document(None, id="same", vector=[0.1] * 7), Document(None, id="opposite", vector=[-0.1] * 7)])
    same, opposite = store.similarity_search(SearchRequest(vector=[0.1] * 7))
    assert same.score == pytest.approx(1, abs=SCORE)
    assert opposite.score == pytest.approx(0, abs=SCORE)
    assert 0 <= (opposite.score or 0) <= (same.score or 0) <= 1


def test_the_threshold_is_inclusive(stores: Stores) -> None:
    # S3
    store = stores()
    store.add([Document(None, id=str(n), vector=[1.0, float(n)]) for n in range(5)])
    scores = [hit.score or 0 for hit in store.similarity_search(SearchRequest(vector=[1, 0], top_k=5))]
    for n, score in enumerate(scores):
        assert len(store.similarity_search(SearchRequest(vector=[1, 0], top_k=5, threshold=score))) == n + 1
        above = min(1.0, score + 2e-6)
        assert len(store.similarity_search(SearchRequest(vector=[1, 0], top_k=5, threshold=above))) == max(
            n, n == 0
        )
    assert len(store.similarity_search(SearchRequest(vector=[1, 0], top_k=5, threshold=0))) == 5
    assert len(store.similarity_search(SearchRequest(vector=[1, 0], top_k=5, threshold=None))) == 5


def test_top_k_of_nothing_asks_nobody(stores: Stores) -> None:
    # S5: not even whether there is a collection
    assert stores().similarity_search(SearchRequest("a", top_k=0)) == []


BAD_REQUESTS: list[Any] = [
    {"top_k": -1},
    {"top_k": 10_001},
    {"top_k": True},
    {"top_k": 2.0},
    {"threshold": -0.1},
    {"threshold": 1.1},
    {"threshold": float("nan")},
    {"threshold": True},
    {"mode": "nearest"},
    {"vector": [1.0]},
    {"near_id": "1"},
    {"query": None},
    {"query": None, "near_id": ""},
    {"query": "NUL \0"},
    {"mode": "fulltext", "threshold": 0.5},
    {"mode": "fulltext", "query": None, "vector": [1.0]},
    {"mode": "hybrid", "query": None, "vector": [1.0]},
    {"mode": "hybrid", "rrf_k": 0},
    {"mode": "hybrid", "weights": (1,)},
    {"mode": "hybrid", "weights": (0, 0)},
    {"mode": "hybrid", "weights": (-1, 1)},
    {"mode": "hybrid", "weights": (float("nan"), 1)},
    {"include": ["score"]},
    {"ids": [""]},
    {"timeout": 0},
    {"timeout": -1},
    {"timeout": float("inf")},
]


@pytest.mark.parametrize("bad", BAD_REQUESTS, ids=str)
def test_what_is_out_of_bounds_is_refused_before_any_io(bad: Any) -> None:
    # S5, S8, S9
    with pytest.raises(RequestError):
        SearchRequest(**({"query": "a"} | bad))


def test_bare_strings_are_type_errors(store: VectorStore) -> None:
    # D7
    for wrong in ({"ids": "abc"}, {"include": "text"}):
        with pytest.raises(TypeError):
            SearchRequest("a", **wrong)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    with pytest.raises(ArgumentTypeError):
        store.similarity_search([1.0, 2.0])  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def test_top_k_goes_up_to_ten_thousand(stores: Stores, rng: np.random.Generator) -> None:
    # S5
    store = stores()
    vectors = rng.normal(size=(10_050, 4)).astype(np.float32)
    store.add([Document(None, id=f"{n:05}", vector=vector) for n, vector in enumerate(vectors)])
    assert len(store.similarity_search(SearchRequest(vector=[1, 0, 0, 0], top_k=10_000))) == 10_000


def test_by_text_by_vector_by_id_and_in_batches(stores: Stores) -> None:
    # S8
    asked: list[list[str]] = []

    def embed(texts: Any) -> Any:
        asked.append(list(texts))
        return [[1.0, float(len(text))] for text in texts]

    store = stores(embedding=FunctionEmbeddingModel(embed, "lengths", 2))
    store.add([Document("x" * n, id=str(n)) for n in range(1, 6)])
    asked.clear()
    answers = store.similarity_search_batch(
        ["xx", SearchRequest("xxxx", top_k=2), "xx", SearchRequest(vector=[1.0, 1.0], top_k=1),
         SearchRequest(near_id="3", top_k=2), SearchRequest("x", top_k=0)]
    )  # fmt: skip
    assert asked == [["xx", "xxxx"]]
    assert [hit.id for hit in answers[0]] == ["2", "3", "4", "5"]
    assert answers[0] == answers[2]
    assert answers[1][0].id == "4"
    assert [hit.id for hit in answers[3]] == ["1"]
    assert [hit.id for hit in answers[4]] == ["4", "5"]  # by the angle of (1, n)
    assert "3" not in [hit.id for hit in answers[4]]
    assert answers[5] == []
    both: list[str | SearchRequest] = ["xx", SearchRequest("xxxx", top_k=2)]
    for request, answer in zip(both, answers, strict=False):
        assert store.similarity_search(request) == answer


def test_near_an_unknown_document_is_an_error(store: VectorStore) -> None:
    # S8
    store.add([Document("a", id="1")])
    with pytest.raises(RequestError, match="'2'"):
        store.similarity_search(SearchRequest(near_id="2"))


def test_near_a_document_finds_k_others(store: VectorStore) -> None:
    # S4, S8
    store.add([Document("a" * (n + 1) + "b", id=str(n)) for n in range(6)])
    assert len(store.similarity_search(SearchRequest(near_id="3", top_k=5))) == 5
    assert len(store.similarity_search(SearchRequest(near_id="3", top_k=2, filter=None))) == 2


def test_restricted_to_ids(store: VectorStore) -> None:
    # S8
    store.add([Document("a" + "b" * n, id=str(n), metadata={"n": n}) for n in range(8)])
    hits = store.similarity_search(SearchRequest("a", ids=["7", "3", "unknown", "3"], top_k=5))
    assert [hit.id for hit in hits] == ["3", "7"]
    assert store.similarity_search(SearchRequest("a", ids=[], top_k=5)) == []
    assert [
        hit.id for hit in store.similarity_search(SearchRequest("a", ids=["7", "3"], filter="n > 5"))
    ] == ["7"]


def test_a_query_of_another_length_is_refused(store: VectorStore) -> None:
    # D9
    store.add([Document("a", id="1")])
    with pytest.raises(VectorError, match="8"):
        store.similarity_search(SearchRequest(vector=[1.0, 2.0]))


def test_a_store_without_model_says_what_to_do(stores: Stores) -> None:
    # S8
    stores().add([Document(None, vector=[1.0])])
    with pytest.raises(ConfigurationError, match="embedding"):
        stores().similarity_search("a")


def test_a_filter_is_a_tree_a_text_or_a_callable(store: VectorStore) -> None:
    # F7, T1
    store.add([Document("a", id=str(n), metadata={"n": n}) for n in range(4)])
    calls: list[int] = []

    def current() -> str:
        calls.append(1)
        return "n == 2"

    for given in (F.n == 2, "n == 2", current):
        assert [hit.id for hit in store.similarity_search("a", filter=given)] == ["2"]
        assert store.count(given) == 1
    assert len(calls) == 2
    nothings: list[Any] = [lambda: None, lambda: 5, lambda: current]
    for nothing in nothings:
        with pytest.raises(ArgumentTypeError, match="callable"):
            store.count(nothing)
        with pytest.raises(ArgumentTypeError, match="callable"):
            store.delete(filter=nothing)
        with pytest.raises(ArgumentTypeError, match="callable"):
            store.where(nothing).count()
    assert store.count() == 4
    with pytest.raises(FilterSyntaxError):
        store.similarity_search("a", filter="n ==")
    with pytest.raises(ArgumentTypeError):
        store.count(5)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def test_nothing_matches_a_filter_that_is_false(store: VectorStore) -> None:
    # F5: langchain and others answer everything here
    store.add([Document("a", id="1", metadata={"k": "x"})])
    assert store.similarity_search("a", filter="k in []") == []
    assert store.count("k in []") == 0
    assert list(store.scan("k in []")) == []
    assert store.count("k not in []") == 1


def test_a_request_takes_no_options_beside_it(store: VectorStore) -> None:
    # S8, E1
    store.add([Document("a", id="1")])
    with pytest.raises(RequestError, match="top_k"):
        store.similarity_search(SearchRequest("a"), top_k=2)


def test_include_says_what_comes_back(store: VectorStore) -> None:
    # D9
    store.add([Document("a", id="1", metadata={"k": 1})])
    (bare,) = store.similarity_search("a", include=[])
    assert (bare.text, bare.metadata, bare.vector, bare.score) == (None, {}, None, 1.0)
    (full,) = store.similarity_search("a", include=["text", "metadata", "vector"])
    assert (full.text, full.metadata) == ("a", {"k": 1})
    assert full.vector is not None


@pytest.fixture
def library(store: VectorStore) -> VectorStore:
    store.add([Document(text, id=name, metadata={"n": int(name)}) for name, text in TEXTS.items()])
    return store


def test_fulltext_finds_any_word_and_nothing_else(library: VectorStore) -> None:
    # S9
    if declined(library, "fulltext"):
        return
    expected: dict[str, set[str]] = {
        "wing": {"1", "2", "3"},
        "WING": {"1", "2", "3"},
        "aircraft heat": {"1", "3", "5"},
        "wings": set(),
        'wing AND "nothing" -heat (of)': {"1", "2", "3", "4", "5"},
        "": set(),
        "*": set(),
        "tip": {"3"},
    }
    for query, found in expected.items():
        hits = library.similarity_search(query, mode="fulltext", top_k=10)
        assert {hit.id for hit in hits} == found, query
        assert all(hit.score is None for hit in hits)
        ranks = [hit.rank_score or 0 for hit in hits]
        assert ranks == sorted(ranks, reverse=True)
    assert [
        hit.id for hit in library.similarity_search("wing", mode="fulltext", filter="n > 1", top_k=1)
    ] == ["2"]


def test_fulltext_follows_writes(library: VectorStore) -> None:
    # S7, S9
    if declined(library, "fulltext"):
        return
    library.similarity_search("wing", mode="fulltext")
    library.add([Document("a slab", id="2"), Document("wing", id="6")])
    library.delete(["3"])
    assert {hit.id for hit in library.similarity_search("wing", mode="fulltext")} == {"1", "6"}


def test_hybrid_fuses_by_reciprocal_rank(library: VectorStore) -> None:
    # S9
    if declined(library, "hybrid"):
        return
    query = "wing heat"
    semantic = [hit.id for hit in library.similarity_search(query, top_k=10)]
    words = [hit.id for hit in library.similarity_search(query, mode="fulltext", top_k=10)]
    scores = {hit.id: hit.score for hit in library.similarity_search(query, top_k=10)}
    for k, weights in ((60, (1.0, 1.0)), (1, (0.3, 2.0))):
        fused = {
            name: sum(
                weight / (k + ranking.index(name) + 1)
                for weight, ranking in zip(weights, (semantic, words), strict=True)
                if name in ranking
            )
            for name in {*semantic, *words}
        }
        order = sorted(fused, key=lambda name: (-fused[name], name))
        hits = library.similarity_search(
            SearchRequest(query, mode="hybrid", top_k=4, rrf_k=k, weights=weights)
        )
        assert [hit.id for hit in hits] == order[:4]
        assert [hit.rank_score for hit in hits] == pytest.approx([fused[name] for name in order[:4]])
        assert [hit.score for hit in hits] == pytest.approx([scores[name] for name in order[:4]], abs=SCORE)
    least = sorted(score or 0 for score in scores.values())[2]
    cut = library.similarity_search(SearchRequest(query, mode="hybrid", top_k=5, threshold=least))
    assert len(cut) == 3
    assert all((hit.score or 0) >= least - 1e-6 for hit in cut)


def test_a_hybrid_hit_of_the_words_alone_has_its_score(stores: Stores) -> None:
    # S9: the semantic list is cut at 100 before the fusion
    store = stores(metric="cosine")
    if declined(store, "hybrid"):
        return
    store.add(
        [Document("filler", id=f"{n:03}", vector=[1.0, n / 1000]) for n in range(150)]
        + [Document("needle", id="z", vector=[-1.0, 0.5])]
    )
    hits = store.similarity_search(SearchRequest("needle", vector=[1.0, 0.0], mode="hybrid", top_k=25))
    (needle,) = [hit for hit in hits if hit.id == "z"]
    assert needle.score == pytest.approx(
        float(expected_scores("cosine", [[-1.0, 0.5]], [1.0, 0.0])[0]), abs=1e-6
    )
    assert needle.vector is None


def test_a_retriever_searches_and_has_nothing_else(library: VectorStore) -> None:
    # S8
    retriever = library.as_retriever()
    assert retriever.similarity_search("wing", top_k=1) == library.similarity_search("wing", top_k=1)
    for name in ("add", "delete", "update", "native_client", "drop_collection", "close"):
        assert not hasattr(retriever, name)


def test_explain_tells_the_normal_form(library: VectorStore) -> None:
    # F9
    explanation = library.explain("not (n > 1 or k is null)")
    assert explanation.filter == "NOT n > 1 AND k IS NOT NULL"


def test_what_is_refused_is_refused_before_a_model_is_asked(stores: Stores) -> None:
    # S5, F8: and a filter that nothing can match needs no embedding
    asked: list[int] = []

    def embed(texts: Any) -> Any:
        asked.append(len(texts))
        return [[1.0, float(len(text))] for text in texts]

    store = stores(embedding=FunctionEmbeddingModel(embed, "lengths", 2))
    store.add([Document("a", id="1")])
    asked.clear()
    with pytest.raises(FilterSyntaxError):
        store.similarity_search("q", filter="a ==")
    with pytest.raises(FilterSyntaxError):
        store.similarity_search_batch(["q", SearchRequest("r", filter="a ==")])
    assert store.similarity_search("q", filter="a in []") == []
    assert asked == []


def test_the_largest_top_k_in_every_mode(library: VectorStore) -> None:
    # S5, S9
    requests = [SearchRequest("wing", top_k=10_000), SearchRequest(near_id="1", top_k=10_000)]
    requests += [
        SearchRequest("wing", top_k=10_000, mode=mode)
        for mode in ("fulltext", "hybrid")
        if not declined(library, mode)
    ]
    for request in requests:
        assert 3 <= len(library.similarity_search(request)) <= 5


def test_arguments_of_the_wrong_type_are_type_errors(library: VectorStore) -> None:
    # D7, E1
    wrong: list[Any] = [
        lambda: library.similarity_search_batch("abc"),
        lambda: library.similarity_search_batch(5),  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
        lambda: library.get(["1"], include=None),  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
        lambda: library.scan(include=5),  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
        lambda: library.update(["1"], set=5),  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
        lambda: library.update(["1"], set="abc"),  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
        lambda: library.update(["1"], set=[("a", 1)]),  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
        lambda: library.update(["1"], unset="year"),
        lambda: library.delete(5),  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
        lambda: SearchRequest("a", exact="no"),  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
        lambda: library.where(None),  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    ]
    for call in wrong:
        with pytest.raises(ArgumentTypeError):
            call()
    for timeout in (0, -1, float("nan")):
        with pytest.raises(RequestError):
            library.add([Document("a", id="9")], timeout=timeout)
    assert library.count() == 5
