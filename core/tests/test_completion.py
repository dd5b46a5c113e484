"""Exact answers from an engine that offers only equality and a small top_k: F9, S4."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import pytest

from entrepot import Document, F, SearchMode, SearchRequest, SimpleVectorStore
from entrepot.errors import CompletionLimitError
from entrepot.filters import (
    AbstractFilterExpressionConverter,
    FilterOp,
    Leaf,
    Translation,
    evaluate,
    exact,
    normalise,
    nothing,
    superset,
)
from entrepot.records import Hit, Page, Query, StoredRecord
from entrepot_conformance.fuzz import make_documents, make_filter

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Predicate = Callable[[dict[str, Any]], bool]

TOP_K = 30


class EqualityConverter(AbstractFilterExpressionConverter["Predicate"]):
    """Equality is exact, IN is taken as "has the key", everything else is beyond the engine."""

    def leaf(self, leaf: Leaf) -> Translation[Predicate]:
        if leaf.op is FilterOp.EQ and not leaf.negated:
            return exact(lambda metadata: evaluate(leaf, metadata))
        if leaf.op is FilterOp.IN and not leaf.negated:
            return superset(lambda metadata: metadata.get(leaf.key) is not None)
        return nothing()

    def and_(self, parts: Sequence[Predicate]) -> Predicate:
        return lambda metadata: all(part(metadata) for part in parts)

    def or_(self, parts: Sequence[Predicate]) -> Predicate:
        return lambda metadata: any(part(metadata) for part in parts)

    def true(self) -> Predicate:
        return lambda _: True

    def false(self) -> Predicate:
        return lambda _: False


class Poor(SimpleVectorStore):
    """An engine that sees nothing of a filter but what its converter made of it."""

    capabilities = msgspec.structs.replace(
        SimpleVectorStore.capabilities,
        pushdown="partial",
        limits=msgspec.structs.replace(SimpleVectorStore.capabilities.limits, top_k=TOP_K),
    )

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.read = 0
        self.asked: list[int] = []

    def _converter(self) -> AbstractFilterExpressionConverter[Any]:
        return EqualityConverter()

    def _pushed(self, query: Query) -> tuple[str, ...]:
        """The ids that the engine's own filter lets through."""
        everything = super()._scan(Query(filter=normalise(F.x.is_null() | F.x.is_not_null())), None, 10**6)
        ids = None if query.ids is None else set(query.ids)
        return tuple(
            record.id
            for record in everything.items
            if query.pushed.query(record.metadata) and (ids is None or record.id in ids)
        )

    def _blind(self, query: Query) -> Query:
        always = normalise(F.x.is_null() | F.x.is_not_null())
        return msgspec.structs.replace(query, filter=always, pushed=None, ids=self._pushed(query))

    def _search(self, query: Query) -> list[Hit]:
        assert query.k <= TOP_K or query.mode is SearchMode.FULLTEXT, "the engine takes no more"
        self.asked.append(query.k)
        hits = super()._search(self._blind(query))
        self.read += len(hits)
        return hits

    def _scan(self, query: Query, token: str | None, size: int) -> Page[StoredRecord]:
        page = super()._scan(self._blind(query), token, size)
        self.read += len(page.items)
        return page

    def _count(self, query: Query) -> int:
        return super()._count(self._blind(query))

    def _delete(self, target: Any) -> None:
        super()._delete(self._blind(target) if isinstance(target, Query) else target)


def filled(metadata: dict[str, dict[str, Any]], **options: Any) -> tuple[Poor, Any]:
    rng = np.random.default_rng(3)
    vectors = rng.normal(size=(len(metadata), 6)).astype(np.float32)
    store = Poor(**options)
    store.add(
        [Document(f"text {name}", id=name, metadata=value, vector=vector)
         for (name, value), vector in zip(metadata.items(), vectors, strict=True)]
    )  # fmt: skip
    return store, vectors.astype(np.float64)


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
def test_random_filters_are_answered_exactly(metric: str) -> None:
    # F9, S1, S2, S4: ids, order and scores are those of plain numpy on what the evaluator lets through
    documents = make_documents(17, 200)
    store, vectors = filled(documents, metric=metric)
    query = np.array([1.0, -0.5, 0.3, 0.0, 2.0, 1.0])
    if metric == "cosine":
        unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        scores = (1 + unit @ (query / np.linalg.norm(query))) / 2
    else:
        scores = 1 / (1 + ((vectors - query) ** 2).sum(axis=1))
    score_of = dict(zip(documents, scores.tolist(), strict=True))
    rng = random.Random(23)
    partial = 0
    for number in range(150):
        expression = make_filter(rng)
        matching = [name for name, metadata in documents.items() if evaluate(expression, metadata)]
        k = (1, 5, 29, 31, 200)[number % 5]
        best = sorted(matching, key=lambda name: (-score_of[name], name))[:k]
        hits = store.similarity_search(
            SearchRequest(vector=query, top_k=k, filter=expression, include=["text"])
        )
        assert [hit.id for hit in hits] == best
        for hit in hits:
            assert hit.score == pytest.approx(score_of[hit.id], abs=1e-6)
            assert (hit.text, hit.metadata, hit.vector) == (f"text {hit.id}", {}, None)
        assert store.count(expression) == len(matching)
        assert sorted(document.id for document in store.scan(expression, batch_size=50)) == matching
        partial += not store.explain(expression).exact
    assert partial > 75


async def test_the_async_twins_complete_alike() -> None:
    # E3, F9
    store, _ = filled({f"{n:03}": {"n": n} for n in range(150)})
    request = SearchRequest(vector=[1.0, 0, 0, 0, 0, 0], top_k=7, filter="n > 100")
    assert await store.asimilarity_search(request) == store.similarity_search(request)
    assert await store.acount("n > 100") == 49
    assert len([document async for document in store.ascan("n > 100")]) == 49


def test_more_is_asked_for_before_everything_is_read() -> None:
    # F9: k, 4k, ... and only then a scan
    store, _ = filled({f"{n:03}": {"n": n % 2} for n in range(150)})
    store.similarity_search(SearchRequest(vector=[1.0, 0, 0, 0, 0, 0], top_k=3, filter="n >= 1"))
    assert store.asked in ([3, 12], [3])
    assert store.read < 150
    store.asked.clear()
    rare = SearchRequest(vector=[1.0, 0, 0, 0, 0, 0], top_k=3, filter="n >= 1 and n < 1")
    assert store.similarity_search(rare) == []
    assert store.asked == [3, 12]


def test_rare_matches_are_found_among_many() -> None:
    # S4
    store, vectors = filled({f"{n:05}": {"n": n} for n in range(2000)})
    for wanted in (1999, 17, 1000):
        (hit,) = store.similarity_search(
            SearchRequest(vector=vectors[0], top_k=2, filter=f"n >= {wanted} and n <= {wanted}")
        )
        assert hit.id == f"{wanted:05}"


def test_an_exact_filter_beyond_the_engines_top_k_is_ranked_here() -> None:
    # S5
    store, vectors = filled({f"{n:03}": {"k": "a" if n % 2 else "b"} for n in range(150)})
    hits = store.similarity_search(SearchRequest(vector=[1.0, 0, 0, 0, 0, 0], top_k=60, filter="k == 'a'"))
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    order = sorted((n for n in range(150) if n % 2), key=lambda n: (-unit[n, 0], n))[:60]
    assert [hit.id for hit in hits] == [f"{n:03}" for n in order]


def test_fulltext_and_hybrid_are_completed_too() -> None:
    # F9, S9
    store, _ = filled({f"{n:03}": {"n": n} for n in range(25)})
    found = store.similarity_search("text", mode="fulltext", top_k=3, filter="n > 20")
    assert {hit.id for hit in found} <= {"021", "022", "023", "024"}
    assert len(found) == 3


class Approximate(Poor):
    """An index that stops after a few candidates, as HNSW does when few of them match."""

    capabilities = msgspec.structs.replace(Poor.capabilities, ann=True)

    def _search(self, query: Query) -> list[Hit]:
        hits = super()._search(query)
        return hits if query.exact else hits[: len(hits) // 2]


@pytest.mark.parametrize("given", [None, "k == 'a'", "n >= 75", "n >= 148"])
def test_short_answers_of_an_index_are_completed(given: str | None) -> None:
    # S4: with and without a filter that the engine takes
    store = Approximate()
    store.add(
        [
            Document(
                None, id=f"{n:03}", metadata={"n": n, "k": "a" if n % 2 else "b"}, vector=[1.0, float(n)]
            )
            for n in range(150)
        ]
    )
    matching = [
        n for n in range(150) if given is None or (n % 2 if "k" in given else n >= int(given.split()[-1]))
    ]
    for k in (5, 20, 100):
        request = SearchRequest(vector=[1.0, 0.0], top_k=k, filter=given)
        assert [hit.id for hit in store.similarity_search(request)] == [f"{n:03}" for n in matching[:k]]
        assert [hit.id for hit in store.similarity_search_batch([request, request])[1]] == [
            f"{n:03}" for n in matching[:k]
        ]


def test_what_would_read_too_much_is_refused_and_names_the_clause() -> None:
    # F9
    store, vectors = filled(
        {f"{n:05}": {"n": n, "secret": "s"} for n in range(3000)}, max_completion_rows=1000
    )
    given = "n > 2998 and secret == 's'"
    for use in (
        lambda: store.similarity_search(SearchRequest(vector=vectors[0], top_k=5, filter=given)),
        lambda: store.count(given),
        lambda: store.delete(filter=given),
    ):
        with pytest.raises(CompletionLimitError) as caught:
            use()
        assert "n > ?" in caught.value.clause
        assert "'s'" not in str(caught.value) + caught.value.clause
        assert 1000 < caught.value.rows <= 3000
    assert store.count("secret == 's'") == 3000
    assert [document.id for document in store.scan(given)] == ["02999"]


def test_a_filter_deletes_exactly_what_matches() -> None:
    # D7, F9
    store, _ = filled({f"{n:03}": {"n": n} for n in range(100)})
    store.delete(filter="n >= 10 and n < 90")
    assert [document.id for document in store.scan()] == [f"{n:03}" for n in (*range(10), *range(90, 100))]


def test_emptying_a_view_leaves_the_rest() -> None:
    # T1, F9: where the engine takes nothing of the view's filter
    store, _ = filled({f"{n:03}": {"n": n} for n in range(100)})
    view = store.where("n >= 10 and n < 90")
    assert view.count() == 80
    view.delete_all()
    assert [document.id for document in store.scan()] == [f"{n:03}" for n in (*range(10), *range(90, 100))]
    store.delete_all()
    assert store.count() == 0


def test_what_changed_meanwhile_is_not_deleted() -> None:
    # D7
    class Racing(Poor):
        def _delete_unchanged(self, records: Any) -> None:
            self.update(["001"], set={"n": 1000})
            super()._delete_unchanged(records)

    store = Racing()
    store.add([Document(None, id=f"{n:03}", metadata={"n": n}, vector=[1.0, float(n)]) for n in range(3)])
    store.delete(filter="n < 2")
    assert [document.id for document in store.scan()] == ["001", "002"]


def test_explain_tells_what_is_pushed_down() -> None:
    # F9
    store, _ = filled({"1": {"n": 1}})
    explanation = store.explain("n == 1 and (m > 2 or k in ['a', 'b'])")
    assert not explanation.exact
    assert [line.split()[0] for line in explanation.pushed] == [
        "superset",
        "exact",
        "nothing",
        "nothing",
        "superset",
    ]


class Learning(Poor):
    """An engine whose converter knows what it can do once the collection has been looked at."""

    def _converter(self) -> Any:
        return EqualityConverter() if self._info is not None else Exacting()


class Exacting(EqualityConverter):
    """Says of everything that it is exact, and lets everything through."""

    def leaf(self, leaf: Leaf) -> Translation[Predicate]:
        del leaf
        return exact(lambda _: True)


def test_a_filter_is_converted_once_the_collection_is_known() -> None:
    # F9: what an engine takes may depend on the collection
    with Learning(memory="learning") as store:
        store.add([Document("x", id=str(n), metadata={"n": n}, vector=[1.0, n]) for n in range(9)])
        with Learning(memory="learning") as fresh:
            assert fresh.count("n > 4") == 4
        with Learning(memory="learning") as fresh:
            assert {found.id for found in fresh.scan("n > 4")} == {"5", "6", "7", "8"}
        with Learning(memory="learning") as fresh:
            fresh.delete(filter="n > 4")
        assert store.count() == 5
