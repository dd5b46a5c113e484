# pyright: reportPrivateUsage=false
"""Searches with and without the index, against the embedded store and plain numpy: S1 to S9."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import psycopg
import pytest
from plugins.postgres.tests.servers import target
from psycopg import sql
from psycopg_pool import ConnectionPool

from entrepot import Document, SearchRequest, SimpleVectorStore
from entrepot.errors import CollectionMismatchError
from entrepot.filters import TRUE
from entrepot.records import Query
from entrepot_postgres import PostgresVectorStore
from entrepot_postgres.binary import register
from entrepot_postgres.reading import prefer_exact
from entrepot_postgres.scripts import Statement

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plugins.postgres.tests.servers import Make

    from entrepot import VectorStore

METRICS = ["cosine", "dot", "euclidean"]


def unit(vectors: Any) -> Any:
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def documents(rng: np.random.Generator, count: int, size: int) -> list[Document]:
    """Random unit vectors, some of them twice, with metadata that filters of every width tell apart."""
    vectors = unit(rng.normal(size=(count, size))).astype(np.float32)
    vectors[count // 2 : count // 2 + 11] = vectors[3]
    return [
        Document(
            f"word{n % 7} common {'rare' if n % 97 == 0 else ''}",
            id=f"d{place:05}",
            metadata={"n": n, "m": n % 100, "tags": [f"t{n % 5}", "all"]},
            vector=vectors[n],
        )
        for n, place in enumerate(rng.permutation(count))
    ]


def assert_alike(one: list[Document], other: list[Document]) -> None:
    """S1, S2: the same ids and scores; neighbours whose scores are within 1e-6 may swap."""
    assert len(one) == len(other)
    for left, right in zip(one, other, strict=True):
        assert left.score is not None
        assert right.score is not None
        assert left.score == pytest.approx(right.score, abs=1e-4)
        if left.id != right.id:
            assert left.score == pytest.approx(right.score, abs=1e-6)
    assert {hit.id for hit in one[:-1]} <= {hit.id for hit in other}


def analyze(store: PostgresVectorStore, schema: str) -> None:
    pool: Any = store.native_client
    with pool.connection() as connection:
        connection.execute(sql.SQL("ANALYZE {}").format(sql.Identifier(schema, store.collection)))


@pytest.mark.parametrize("metric", METRICS)
def test_exact_searches_are_those_of_the_embedded_store(
    make: Make, rng: np.random.Generator, metric: str
) -> None:
    # S1, S2, S4, S8: random data, every kind of request
    stores: list[VectorStore] = [make(metric=metric, index="none"), SimpleVectorStore(metric=metric)]
    given = documents(rng, 1500, 24)
    for store in stores:
        store.add(given)
    filters = [
        None,
        "m == 5",
        "n < 30 or tags == 't3'",
        "not (m > 90) and tags != 't1'",
        "n == -1",
        "x is null",
    ]
    ids = [document.id for document in given[:40]]
    for number in range(60):
        request = SearchRequest(
            vector=given[3].vector if number % 9 == 0 else unit(rng.normal(size=24)).astype(np.float32),
            top_k=[1, 3, 10, 40, 1500][number % 5],
            filter=filters[number % 6],
            ids=ids if number % 4 == 0 else None,
            exact=True,
            include=["text", "metadata", "vector"],
        )
        ours, theirs = (store.similarity_search(request) for store in stores)
        assert_alike(ours, theirs)
        by_id = {hit.id: hit for hit in theirs}
        for hit in ours[:-1]:
            assert hit.metadata == by_id[hit.id].metadata
            assert hit.text == by_id[hit.id].text
            assert hit.vector is not None
            expected: Any = by_id[hit.id].vector
            assert np.array_equal(hit.vector, expected)
    near = SearchRequest(near_id="d00007", top_k=12, exact=True)
    assert_alike(*(store.similarity_search(near) for store in stores))


def test_ties_at_the_cut_are_settled_by_id(make: Make, rng: np.random.Generator) -> None:
    # S1
    store = make(index="none")
    names = [f"{n:03}" for n in rng.permutation(200)] + ["Z", "a", "é", "\uffff", "\U0001f600"]
    store.add([Document(None, id=name, vector=[0.3, 0.4, 0.5]) for name in names])
    for k in (1, 50, 203, 205):
        hits = store.similarity_search(SearchRequest(vector=[1.0, 2.0, 3.0], top_k=k))
        assert [hit.id for hit in hits] == sorted(names)[:k]
        assert len({hit.score for hit in hits}) == 1


@pytest.fixture(scope="module")
def indexed(server: str) -> Iterator[tuple[PostgresVectorStore, list[Document]]]:
    """A collection whose index is used, made once for this module; the planner would rather read so few rows."""

    def configure(connection: psycopg.Connection[Any]) -> None:
        connection.execute("SET enable_seqscan = off")

    where = target(server)
    where["dbname"] = where.pop("database", None)
    rng = np.random.default_rng(5)
    with ConnectionPool(kwargs={**where, "autocommit": True}, configure=configure, min_size=1) as pool:
        store = PostgresVectorStore(
            client=pool,
            collection=f"test_{uuid.uuid4().hex}",
            m=8,
            ef_construction=32,
            dimension=16,
            timeout=60,
        )
        given = documents(rng, 3000, 16)
        store.add(given)
        analyze(store, "public")
        yield store, given
        store.drop_collection()
        store.close()


def plan_of(store: PostgresVectorStore, **request: Any) -> str:
    """Return how the server answers a search."""
    query = msgspec.structs.replace(Query(filter=TRUE, vector=np.ones(16, dtype=np.float32), k=10), **request)
    script = store._search_script(query)
    statement = next(script)
    assert isinstance(statement, Statement)
    pool: Any = store.native_client
    with pool.connection() as connection, connection.transaction():
        for name, value in statement.settings.items():
            connection.execute("SELECT set_config(%s, %s, true)", (name, value))
        cursor = connection.cursor()
        register(cursor)
        rows = cursor.execute(sql.SQL("EXPLAIN ") + statement.query, statement.parameters).fetchall()
    return "\n".join(row[0] for row in rows)


def recall(store: VectorStore, rng: np.random.Generator, size: int, **request: Any) -> float:
    """Return recall@10 against exact searches, over 30 queries."""
    found = 0
    for _ in range(30):
        vector = unit(rng.normal(size=size)).astype(np.float32)
        wanted, got = (
            {
                hit.id
                for hit in store.similarity_search(
                    SearchRequest(vector=vector, top_k=10, exact=exact, **request)
                )
            }
            for exact in (True, False)
        )
        found += len(wanted & got)
    return found / 300


def test_the_index_is_used_where_it_may_be(indexed: Any) -> None:
    # S6
    store, _ = indexed
    assert "_vector on " in plan_of(store)
    assert "_vector on " in plan_of(store, k=500)
    forms: list[dict[str, Any]] = [{"exact": True}, {"k": 501}, {"ids": ("a", "b")}]
    for exact in forms:
        assert "_vector on " not in plan_of(store, **exact)


def test_the_index_finds_nearly_all(indexed: Any, rng: np.random.Generator) -> None:
    # S6
    store, _ = indexed
    assert recall(store, rng, 16) >= 0.95


@pytest.mark.parametrize("given", ["m == 5", "n < 30", "tags == 't3'", "m != 5"])  # 1 %, 1 %, 20 %, 99 %
def test_filtered_searches_find_nearly_all(indexed: Any, rng: np.random.Generator, given: str) -> None:
    # S4, S6
    store, _ = indexed
    assert recall(store, rng, 16, filter=given) >= 0.95


@pytest.mark.slow
@pytest.mark.parametrize("given", [None, "m == 5", "n < 100"])
def test_the_default_index_reaches_the_promised_recall(server: str, schema: str, given: str | None) -> None:
    # S6: a thousand vectors repeated with jitter, 10,000 of 256 dimensions, 100 queries; filters of 1 %
    rng = np.random.default_rng(1)
    base = unit(rng.normal(size=(1000, 256)))
    vectors = np.repeat(base, 10, axis=0) + rng.normal(size=(10_000, 256)) * 0.02
    options: dict[str, Any] = {**target(server), "schema": schema, "timeout": 60.0}
    with PostgresVectorStore(**options) as store:
        store.add(
            Document(None, id=f"{n:05}", metadata={"n": int(n), "m": int(n) % 100}, vector=vectors[n])
            for n in rng.permutation(10_000)
        )
        analyze(store, schema)
        found = 0
        for query in base[rng.integers(0, 1000, size=100)] + rng.normal(size=(100, 256)) * 0.05:
            wanted, got = (
                {
                    hit.id
                    for hit in store.similarity_search(
                        SearchRequest(vector=query, exact=exact, top_k=10, filter=given)
                    )
                }
                for exact in (True, False)
            )
            found += len(wanted & got)
    assert found / 1000 >= 0.95


def test_however_rare_the_matches_are_they_are_found(indexed: Any) -> None:
    # S4: one, two and three matches in 3,000; the query points away from them
    store, given = indexed
    for wanted in (1, 2, 3):
        vector = -given[wanted - 1].vector
        hits = store.similarity_search(SearchRequest(vector=vector, top_k=10, filter=f"n < {wanted}"))
        assert {hit.id for hit in hits} == {document.id for document in given[:wanted]}


def test_as_many_as_asked_for(indexed: Any) -> None:
    # S4, S5
    store, given = indexed
    for k, wanted in ((400, None), (500, "tags == 't2'"), (501, None), (3000, None), (10_000, "m != 5")):
        hits = store.similarity_search(
            SearchRequest(vector=given[0].vector, top_k=k, filter=wanted, include=["metadata"])
        )
        matching = 2970 if wanted == "m != 5" else 600 if wanted else 3000
        assert len(hits) == min(k, matching)
        scores = [hit.score for hit in hits]
        assert scores == sorted(scores, reverse=True)


def test_what_was_deleted_or_replaced_does_not_shorten_the_answer(
    make: Make, rng: np.random.Generator
) -> None:
    # S4, S7: entries of dead rows stand in the index until it is vacuumed
    store = make(dimension=8, m=4, ef_construction=16)
    vectors = unit(rng.normal(size=(2100, 8))).astype(np.float32)
    store.add([Document(None, id=f"{n:04}", vector=vector) for n, vector in enumerate(vectors)])
    near = np.argsort(-(vectors @ vectors[0]))
    store.delete([f"{n:04}" for n in near[:300]])
    hits = store.similarity_search(SearchRequest(vector=vectors[0], top_k=20))
    assert len(hits) == 20
    assert not {hit.id for hit in hits} & {f"{n:04}" for n in near[:300]}


@pytest.mark.parametrize(
    ("matching", "seen", "rows", "k", "exact"),
    [
        (5, 999, 999, 4, True),  # the sample is the table
        (0, 1000, 1e6, 4, True),  # none in the sample
        (1000, 1000, 1e6, 4, False),  # nearly all match
        (10, 1000, 1e6, 10, False),  # 1 % of a million: 1,000 visits against a million rows
        (10, 1000, 5000, 10, True),  # 1 % of 5,000: all rows are cheaper
        (1, 1000, 1e6, 11, True),  # more visits than the index makes
    ],
)
def test_when_exact_is_better(matching: int, seen: int, rows: float, k: int, exact: bool) -> None:
    # S4
    assert prefer_exact(matching, seen, rows, k) is exact


def test_full_text_knows_words_and_no_syntax(make: Make) -> None:
    # S9
    store = make(dimension=1)
    texts = {
        "a": "Mail user@example.org/path, foo_bar, v1.2 and -5e3",
        "b": "x" * 3000 + " end",
        "c": "Größe É e\u0301",
        "d": None,
        "e": "it's a 'quoted' \\ : word",
    }
    store.add([Document(text, id=name, vector=[1.0]) for name, text in texts.items()])
    expected = {
        "example": "a", "path": "a", "bar": "a", "5e3": "a", "2 nothing": "a", "x" * 3000: "b", "x" * 2999: "",
        "GRÖSSE größe": "c", "é": "c", "end | !x:*": "b", "'quoted'": "e", "\\": "", "<->": "", "mail & nothing": "a",
    }  # fmt: skip
    for query, found in expected.items():
        hits = store.similarity_search(query, mode="fulltext", top_k=9)
        assert "".join(sorted(hit.id for hit in hits)) == found, query
    assert store.similarity_search("quoted word", mode="fulltext")[0].rank_score


def test_the_largest_texts_are_indexed(make: Make) -> None:
    # D8, S9: 256 KiB of words, all different, or all alike, or one
    store = make(dimension=1)
    size = 256 * 1024
    distinct = " ".join(f"{n:x}" for n in range(50_000))[:size]
    texts = [distinct, "a " * (size // 2), "b" * size, "\u4e00 " * (size // 4)]
    store.add([Document(text, id=str(n), vector=[1.0]) for n, text in enumerate(texts)])
    for query, found in (("9c3f", "0"), ("a", "01"), ("b" * size, "2"), ("\u4e00", "3")):
        hits = store.similarity_search(query, mode="fulltext", include=[])
        assert "".join(sorted(hit.id for hit in hits)) == found


def test_a_collection_that_was_made_anew_is_noticed(make: Make) -> None:
    # D5, S2: an open store would compare by the wrong metric
    one, two = make(metric="cosine", dimension=2), make(metric="euclidean", dimension=2)
    one.add([Document(None, id="1", vector=[1.0, 0.0])])
    request = SearchRequest(vector=[1.0, 0.0])
    old = make()
    assert old.similarity_search(request)[0].id == "1"
    one.drop_collection()
    two.add([Document(None, id="2", vector=[3.0, 0.0])])
    with pytest.raises(CollectionMismatchError, match="anew"):
        old.similarity_search(request)
    assert old.similarity_search(request)[0].score == pytest.approx(1 / 5)
