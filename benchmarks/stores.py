"""The embedded store against plain numpy on the same arrays: searching, adding, opening, memory."""

from __future__ import annotations

import gc
import tempfile
import tracemalloc
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from benchmarks.measure import Line, ratio, seconds

import entrepot as ep
from entrepot.metadata import encode_metadata

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    Matrix = NDArray[np.float32]

ROWS, DIMENSION, TOP_K = 100_000, 384, 10
QUERIES = 100
SHARES = {
    "1 %": ("share == 1", 0.01, 2.5),
    "10 %": ("share <= 10", 0.10, 1.5),
    "50 %": ("share <= 50", 0.50, 1.5),
}


def metadata_of(row: int) -> dict[str, Any]:
    """Return five keys: a country, a year, a price, tags, and the hundredth that the row belongs to."""
    return {
        "country": ("BG", "DE", "FR", "UK")[row % 4],
        "year": 1990 + row % 40,
        "price": row % 977 / 4,
        "tags": ["a", "b"] if row % 2 else ["c"],
        "share": row * 7 % 100 + 1,
    }


def documents(vectors: Matrix, *, bare: bool = False) -> Iterator[ep.Document]:
    """Return documents of 300 characters of text and five keys, or of a vector alone."""
    for row, vector in enumerate(vectors):
        if bare:
            yield ep.Document(None, id=f"{row:08}", vector=vector)
        else:
            text = f"document {row} ".ljust(300, "abcdefghi "[row % 10])
            yield ep.Document(text, id=f"{row:08}", metadata=metadata_of(row), vector=vector)


def unit_vectors(count: int, seed: int) -> Matrix:
    """Return random unit vectors, float32 of shape (count, DIMENSION)."""
    vectors = np.random.default_rng(seed).standard_normal((count, DIMENSION), dtype=np.float32)
    unit: Matrix = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return unit


def lines() -> Iterator[Line]:
    """Measure everything about the embedded store."""
    vectors, queries = unit_vectors(ROWS, 1), unit_vectors(QUERIES, 2)
    prepared = list(documents(vectors))
    store = ep.SimpleVectorStore()
    gc.collect()
    took = seconds(lambda: store.add(prepared))
    yield Line("add, in memory, 100k x 384", 100_000, value=round(ROWS / took), unit="documents/s", more=True)
    yield from _searches(store, vectors, queries)
    store.close()
    yield from _durable(prepared)
    yield from _sizes(vectors)


def _searches(store: ep.VectorStore, vectors: Matrix, queries: Matrix) -> Iterator[Line]:
    turn = iter(range(10**9))

    def query() -> Matrix:
        found: Matrix = queries[next(turn) % QUERIES]
        return found

    def ours(filter_text: str | None) -> Callable[[], object]:
        return lambda: store.similarity_search(
            ep.SearchRequest(vector=query(), top_k=TOP_K, filter=filter_text)
        )

    def plain(rows: NDArray[np.intp] | None) -> Callable[[], object]:
        def search() -> object:
            products = (vectors if rows is None else vectors[rows]) @ query()
            return np.argpartition(products, products.size - TOP_K)[products.size - TOP_K :]

        return search

    yield ratio("search, no filter, 100k x 384", 1.3, ours(None), plain(None))
    share = np.arange(ROWS) * 7 % 100 + 1
    for name, (text, part, goal) in SHARES.items():
        rows = np.flatnonzero(share <= part * 100)
        yield ratio(f"search, filter of {name}, 100k x 384", goal, ours(text), plain(rows), repetitions=60)
    requests = [ep.SearchRequest(vector=vector, top_k=TOP_K) for vector in queries]
    yield ratio(
        "batch of 100 queries, 100k x 384",
        1.3,
        lambda: store.similarity_search_batch(requests),
        lambda: queries @ vectors.T,
        repetitions=7,
    )


def _durable(prepared: list[ep.Document]) -> Iterator[Line]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "store.db"
        with ep.SimpleVectorStore(path) as store:
            took = seconds(lambda: store.add(prepared))
        yield Line(
            "add, durable, 100k x 384", 30_000, value=round(ROWS / took), unit="documents/s", more=True
        )

        def opened() -> None:
            with ep.SimpleVectorStore(path) as store:
                assert store.count() == ROWS

        yield ratio(
            "open the durable store, against reading its file", 3.0, opened, path.read_bytes, repetitions=5
        )


def _sizes(vectors: Matrix) -> Iterator[Line]:
    """Count what Python and numpy allocate for a store: with vectors and ids alone, and with everything."""

    def traced(*, bare: bool) -> tuple[int, int]:
        gc.collect()
        tracemalloc.start()
        store = ep.SimpleVectorStore()
        store.add(documents(vectors, bare=bare))
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        if not bare:
            store.count("country == 'BG' and year > 2000 and price < 50 and tags == 'a' and share == 1")
            gc.collect()
        columns = tracemalloc.get_traced_memory()[0] - before
        tracemalloc.stop()
        store.close()
        return before, columns

    bare, _ = traced(bare=True)
    full, columns = traced(bare=False)
    yield Line(
        "memory of vectors and index, against the raw float32",
        1.3,
        ratio=(bare + columns) / vectors.nbytes,
        plain=f"{vectors.nbytes / 1e6:,.0f} MB",
    )
    content = sum(
        len(document.text or "") + len(encode_metadata(document.metadata)) for document in documents(vectors)
    )
    yield Line(
        "memory of texts and metadata, against their UTF-8 bytes",
        1.5,
        ratio=(full - bare) / content,
        plain=f"{content / 1e6:,.0f} MB",
    )
