"""100,000 documents loaded, searched, scanned and deleted by filter; in a process of its own, for its memory.

Called by `benchmarks.servers` with the URL of a collection; prints one line of JSON.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from benchmarks.stores import documents

import entrepot as ep

if TYPE_CHECKING:
    from collections.abc import Iterator

ROWS, DIMENSION, PIECE, TOP_K, SEARCHES = 100_000, 64, 2_000, 10, 50


def megabytes(field: str) -> float:
    """Return what Linux says of this process: VmRSS now, VmHWM at most so far."""
    lines = Path("/proc/self/status").read_text("utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field)) / 1024


def some() -> Iterator[list[ep.Document]]:
    """Yield the documents in pieces; they are made when they are asked for."""
    random = np.random.default_rng(9)
    for start in range(0, ROWS, PIECE):
        vectors = random.standard_normal((PIECE, DIMENSION), dtype=np.float32)
        yield [
            ep.Document(one.text, id=f"{number:08}", metadata=one.metadata, vector=one.vector)
            for number, one in enumerate(documents(vectors), start)
        ]


def main(url: str) -> None:
    """Measure one server."""
    took: dict[str, Any] = {}

    def timed(name: str, started: float) -> None:
        took[name] = round(time.perf_counter() - started, 1)

    with ep.open_vector_store(url, metric="cosine", timeout=600) as store:
        store.create_collection(dimension=DIMENSION)
        before = megabytes("VmRSS")
        started = time.perf_counter()
        for piece in some():
            store.add(piece)
        timed("load", started)
        assert store.count() == ROWS
        started = time.perf_counter()
        random = np.random.default_rng(10)
        for _ in range(SEARCHES):
            vector = random.standard_normal(DIMENSION, dtype=np.float32)
            assert len(store.similarity_search(ep.SearchRequest(vector=vector, top_k=TOP_K))) == TOP_K
        took["search"] = round((time.perf_counter() - started) / SEARCHES * 1e3, 1)
        started = time.perf_counter()
        assert len({document.id for document in store.scan(batch_size=PIECE)}) == ROWS
        timed("scan", started)
        matching = store.count("share <= 30")
        started = time.perf_counter()
        store.delete(filter="share <= 30")
        timed("delete", started)
        assert store.count() == ROWS - matching
        took["megabytes"] = round(megabytes("VmHWM") - before, 1)
        store.drop_collection()
    print(json.dumps(took))


if __name__ == "__main__":
    main(sys.argv[1])
