"""Measurements of entrepot: `uv run nox -s bench`, `uv run nox -s bench -- --json FILE`.

Figures are ratios to a plain piece of numpy or Python that does the same work on the same machine in the
same run, so that figures of different machines compare: 1.5 means half as long again as the plain piece.
Times are the best of several repetitions, taken in turns.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import entrepot as ep
from entrepot.filters import evaluate, parse_filter

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

DOCUMENTS, DIMENSION, TOP_K, REPETITIONS = 10_000, 256, 10, 30
TEXT = "country == 'BG' and (year >= 2020 or tags in ['new', 'hot']) and not draft == true"


def ratio(ours: Callable[[], object], plain: Callable[[], object]) -> dict[str, float]:
    """Return the best times of both in microseconds, and the ratio of ours to the plain one."""
    best = [float("inf"), float("inf")]
    for _ in range(REPETITIONS):
        for place, function in enumerate((ours, plain)):
            started = time.perf_counter()
            function()
            best[place] = min(best[place], time.perf_counter() - started)
    return {
        "microseconds": round(best[0] * 1e6, 1),
        "plain": round(best[1] * 1e6, 1),
        "ratio": round(best[0] / best[1], 2),
    }


def unit_vectors(count: int, seed: int) -> NDArray[np.float32]:
    """Return random unit vectors of shape (count, DIMENSION)."""
    vectors = np.random.default_rng(seed).standard_normal((count, DIMENSION), dtype=np.float32)
    unit: NDArray[np.float32] = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return unit


def filled() -> tuple[ep.VectorStore, NDArray[np.float32], list[int]]:
    """Return a store in memory, its vectors, and the year of each document."""
    vectors = unit_vectors(DOCUMENTS, seed=1)
    years = [1950 + number % 100 for number in range(DOCUMENTS)]
    store = ep.open_vector_store("simple://")
    store.add(
        ep.Document(id=f"{number:05}", vector=vector, metadata={"year": years[number]})
        for number, vector in enumerate(vectors)
    )
    return store, vectors, years


def nearest(vectors: NDArray[np.float32], query: NDArray[np.float32]) -> list[int]:
    """Return the rows of the TOP_K nearest vectors, best first."""
    similar = vectors @ query
    best = np.argpartition(-similar, TOP_K)[:TOP_K]
    return [int(row) for row in best[np.argsort(-similar[best])]]


def search() -> dict[str, float]:
    """One search by vector, against one product of matrix and vector with a partition."""
    store, vectors, _ = filled()
    query = unit_vectors(1, seed=2)[0]
    request = ep.SearchRequest(vector=query, top_k=TOP_K)
    assert [int(hit.id) for hit in store.similarity_search(request)] == nearest(vectors, query)
    return ratio(lambda: store.similarity_search(request), lambda: nearest(vectors, query))


def filtered_search() -> dict[str, float]:
    """One search with a filter that a hundredth matches, against the same over a boolean mask."""
    store, vectors, years = filled()
    query = unit_vectors(1, seed=2)[0]
    column = np.array(years)
    request = ep.SearchRequest(vector=query, top_k=TOP_K, filter="year == 1960")

    def plain() -> list[int]:
        rows = np.flatnonzero(column == 1960)  # noqa: PLR2004 - as in the filter
        return [int(row) for row in rows[nearest(vectors[rows], query)]]

    assert [int(hit.id) for hit in store.similarity_search(request)] == plain()
    return ratio(lambda: store.similarity_search(request), plain)


def filter_parse() -> dict[str, float]:
    """Parsing a filter of four comparisons, against `json.loads` of the same tree as JSON.

    Each text is new, so that no cache answers.
    """
    tree = {
        "and": [
            {"eq": ["country", "BG"]},
            {"or": [{"gte": ["year", 2020]}, {"in": ["tags", ["new", "hot"]]}]},
            {"not": {"eq": ["draft", True]}},
        ]
    }
    as_json = json.dumps(tree)
    texts = iter([f"{TEXT} and n == {number}" for number in range(REPETITIONS)])
    return ratio(lambda: parse_filter(next(texts)), lambda: json.loads(as_json))


def filter_evaluate() -> dict[str, float]:
    """Evaluating a filter on one document, against the same condition written in Python."""
    expression = parse_filter(TEXT)
    metadata: dict[str, Any] = {"country": "BG", "year": 2024, "tags": ["old"], "draft": False}

    def plain() -> bool:
        return (
            metadata["country"] == "BG"
            and (metadata["year"] >= 2020 or bool({"new", "hot"} & set(metadata["tags"])))  # noqa: PLR2004
            and metadata["draft"] is not True
        )

    assert evaluate(expression, metadata) is plain()
    return ratio(lambda: evaluate(expression, metadata), plain)


def import_time() -> dict[str, float]:
    """Starting Python with `import entrepot`, against starting it with nothing."""

    def start(code: str) -> Callable[[], object]:
        return lambda: subprocess.run([sys.executable, "-c", code], check=True)

    return ratio(start("import entrepot"), start("pass"))


MEASUREMENTS: dict[str, Callable[[], dict[str, float]]] = {
    function.__name__: function
    for function in (search, filtered_search, filter_parse, filter_evaluate, import_time)
}


def main() -> None:
    """Run the measurements that were asked for, all by default, and print their figures."""
    parser = argparse.ArgumentParser(description="Measure entrepot against plain numpy and Python.")
    parser.add_argument(
        "names", nargs="*", help=f"measurements to run, all by default: {', '.join(MEASUREMENTS)}"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures to FILE")
    arguments = parser.parse_args()
    unknown = set(arguments.names) - MEASUREMENTS.keys()
    if unknown:
        parser.error(f"no measurement is called {', '.join(sorted(unknown))}")
    results: dict[str, Any] = {
        "machine": {
            "python": platform.python_version(),
            "system": platform.system(),
            "processor": platform.machine(),
        },
        "measurements": {},
    }
    for name in arguments.names or MEASUREMENTS:
        figures = results["measurements"][name] = MEASUREMENTS[name]()
        print(
            f"{name:<16} {figures['microseconds']:>10.1f} µs   plain {figures['plain']:>9.1f} µs   ratio {figures['ratio']}"
        )
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=2) + "\n", "utf-8")


if __name__ == "__main__":
    main()
