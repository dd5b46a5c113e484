"""Beyond 2,000 dimensions the index holds 16-bit floats; hits are compared in full: S1, S2, S4, S6, D5."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from plugins.postgres.tests.servers import target
from psycopg import sql
from psycopg_pool import ConnectionPool

from entrepot import Document, F, SearchRequest
from entrepot.errors import ConfigurationError
from entrepot_postgres import PostgresVectorStore

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray
    from plugins.postgres.tests.servers import Make

DIMENSION = 3072
COUNT = 300


def vectors_of(rng: np.random.Generator, count: int = COUNT) -> NDArray[np.float32]:
    """Return vectors, some of them nearer to one another than 16-bit floats tell apart."""
    vectors = rng.standard_normal((count, DIMENSION))
    vectors[10:20] = vectors[10] + 1e-4 * rng.standard_normal((10, DIMENSION))
    vectors[21] = vectors[20]
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors.astype(np.float32)


def expected(metric: str, vectors: NDArray[np.float32], query: NDArray[np.float32]) -> dict[str, float]:
    """Return S2's scores in float64."""
    wide, asked = vectors.astype(np.float64), query.astype(np.float64)
    near, far = (1 + wide @ asked) / 2, 1 / (1 + ((wide - asked) ** 2).sum(axis=1))
    scores = far if metric == "euclidean" else near
    return {f"{number:03}": float(score) for number, score in enumerate(scores)}


def best(scores: dict[str, float], k: int) -> list[str]:
    return sorted(scores, key=lambda name: (-scores[name], name))[:k]


@pytest.fixture
def by_index(server: str) -> Iterator[ConnectionPool[Any]]:
    """Connections that use an index wherever one can be used, also in a small table."""
    options = target(server)
    options["dbname"] = options.pop("database", None)
    kwargs = {**options, "options": "-c enable_seqscan=off -c enable_bitmapscan=off"}
    with ConnectionPool(kwargs=kwargs, min_size=1, max_size=1) as pool:
        yield pool


@pytest.mark.parametrize("metric", ["cosine", "dot", "euclidean"])
def test_ids_order_and_scores(
    make: Make, rng: np.random.Generator, by_index: ConnectionPool[Any], schema: str, metric: str
) -> None:
    # S1, S2, S4: by the index, by the planner's choice, and exactly
    store = make(metric=metric, dimension=DIMENSION, m=8, ef_construction=32)
    vectors = vectors_of(rng)
    store.add([Document(None, id=f"{n:03}", vector=vectors[n], metadata={"n": n}) for n in range(COUNT)])
    assert store.capabilities.ann
    assert store.stats().details["index"] == "hnsw"
    indexed = PostgresVectorStore(client=by_index, schema=schema)
    scans = sql.SQL(
        "SELECT sum(idx_scan) FROM pg_stat_user_indexes WHERE schemaname = %s AND indexrelname LIKE %s"
    )
    for row in (10, 20, 57):
        scores = expected(metric, vectors, vectors[row])
        for request, asked in (
            (SearchRequest(vector=vectors[row], top_k=12), store),
            (SearchRequest(vector=vectors[row], top_k=12), indexed),
            (SearchRequest(vector=vectors[row], top_k=12, exact=True), store),
        ):
            hits = asked.similarity_search(request)
            assert [hit.score for hit in hits] == pytest.approx([scores[hit.id] for hit in hits], abs=1e-5)
            ordered = sorted(scores.values(), reverse=True)[:12]
            assert [hit.score for hit in hits] == pytest.approx(ordered, abs=1e-6)
            if row != 10:
                assert [hit.id for hit in hits] == best(scores, 12)
    with by_index.connection() as connection:
        connection.execute("SELECT pg_stat_force_next_flush()")
        connection.commit()
        counted = connection.execute(scans, (schema, "%vector")).fetchone()
        assert counted is not None
        assert counted[0] >= 3
    rare = store.similarity_search(SearchRequest(vector=vectors[10], top_k=5, filter=F.n.in_([299, 3])))
    assert {hit.id for hit in rare} == {"299", "003"}
    got = store.get(["057"], include=["vector"])[0]
    assert np.allclose(np.asarray(got.vector), vectors[57], atol=1e-6)


def test_vectors_that_16_bits_cannot_hold(make: Make, rng: np.random.Generator) -> None:
    # D9, S4: finite float32 is taken and found, by Euclidean distance too
    store = make(metric="euclidean", dimension=DIMENSION, m=8, ef_construction=32)
    vectors = vectors_of(rng, 40)
    vectors[5] *= 1e6
    vectors[6] *= 1e20
    store.add([Document(None, id=f"{n:03}", vector=vectors[n]) for n in range(40)])
    for row in (3, 5, 6):
        scores = expected("euclidean", vectors, vectors[row])
        hits = store.similarity_search(SearchRequest(vector=vectors[row], top_k=3))
        assert hits[0].id == f"{row:03}"
        assert hits[0].score == pytest.approx(1.0, abs=1e-4)
        assert [hit.score for hit in hits] == pytest.approx([scores[hit.id] for hit in hits], abs=1e-4)
    between = (vectors[5] * np.float32(0.06)).astype(np.float32)  # short enough, and near to a long one
    hits = store.similarity_search(SearchRequest(vector=between, top_k=40))
    assert len(hits) == 40


def test_beyond_what_the_index_takes(make: Make, rng: np.random.Generator) -> None:
    # S4, D5: up to 4,000 dimensions with an index, up to 16,000 without, more never
    make(collection="last", dimension=4000).create_collection()
    with pytest.raises(ConfigurationError, match=r"4000.*\n?.*index='none'"):
        make(collection="none", dimension=4001).create_collection()
    store = make(collection="exact", dimension=4001, index="none")
    vectors = rng.standard_normal((20, 4001)).astype(np.float32)
    store.add([Document(None, id=f"{n:03}", vector=vector) for n, vector in enumerate(vectors)])
    assert not store.capabilities.ann
    assert store.stats().details["index"] == "none"
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    scores = expected("cosine", unit, unit[7])
    hits = store.similarity_search(SearchRequest(vector=vectors[7], top_k=20))
    assert [hit.id for hit in hits] == best(scores, 20)
    assert [hit.score for hit in hits] == pytest.approx(sorted(scores.values(), reverse=True), abs=1e-5)
    reopened = make(collection="exact")  # by default settings
    assert reopened.count() == 20
    make(collection="widest", dimension=16_000, index="none").create_collection()
    with pytest.raises(ConfigurationError, match="16000"):
        make(collection="wider", dimension=16_001, index="none").create_collection()
