# ruff: noqa: ARG002 - a driver that answers at once looks at nothing
"""What the core adds to a driver's own work, and what it costs to have it: import time and packages."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from importlib.metadata import requires
from typing import TYPE_CHECKING, Any

import numpy as np
from benchmarks.measure import Line, medians
from packaging.requirements import Requirement

import entrepot as ep
from entrepot.observation import without_observation
from entrepot.records import CollectionInfo, Hit, Page, StoredRecord

if TYPE_CHECKING:
    from collections.abc import Iterator

DIMENSION, DOCUMENTS = 384, 1000


class Instant(ep.VectorStore):
    """A store whose driver answers at once."""

    backend = "instant"

    def __init__(self) -> None:
        super().__init__(collection="articles")
        self._canned = [
            Hit(1.0 - n / 100, StoredRecord(str(n), "x" * 300, {"country": "BG", "year": 2020, "n": n}))
            for n in range(10)
        ]

    def _close(self) -> None: ...

    def _describe(self) -> CollectionInfo:
        return CollectionInfo(name="articles", dimension=DIMENSION)

    def _create(self, info: CollectionInfo) -> None: ...

    def _drop(self) -> None: ...

    def _list_collections(self) -> list[str]:
        return []

    def _write(self, records: Any, if_exists: Any) -> object: ...

    def _update(self, ids: Any, changes: Any, unset: Any) -> list[str]:
        return []

    def _fetch(self, ids: Any, include: Any) -> list[StoredRecord]:
        return []

    def _search(self, query: Any) -> list[Hit]:
        return self._canned

    def _scan(self, query: Any, token: Any, size: int) -> Page[StoredRecord]:
        return Page([], None)

    def _count(self, query: Any) -> int:
        return 0

    def _delete(self, target: Any) -> None: ...


def lines() -> Iterator[Line]:
    """Measure the overhead of a search and of an add, the import, and the packages."""
    yield from _adapter()
    yield _import()
    yield Line("packages that the bare core installs", 4, value=len(_packages("entrepot")), unit="packages")


def _adapter() -> Iterator[Line]:
    store = Instant()
    request = ep.SearchRequest(vector=np.ones(DIMENSION, dtype=np.float32), top_k=10, filter="year >= 2020")
    vectors = np.random.default_rng(1).standard_normal((DOCUMENTS, DIMENSION), dtype=np.float32)
    documents = [
        ep.Document(
            "x" * 300,
            id=str(n),
            metadata={"country": "BG", "year": 2020, "price": n / 4, "tags": ["a", "b"], "active": True},
            vector=vectors[n],
        )
        for n in range(DOCUMENTS)
    ]
    many = range(100)
    with without_observation():
        search, add = medians(
            lambda: [store.similarity_search(request) for _ in many],
            lambda: store.add(documents),
            repetitions=30,
        )
    yield Line("overhead of a search with 10 hits", 20, value=round(search / len(many) * 1e6, 1), unit="us")
    yield Line("overhead of add", 3, value=round(add / DOCUMENTS * 1e6, 2), unit="us/document")


def _import() -> Line:
    def took(code: str) -> float:
        started = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True)
        return time.perf_counter() - started

    codes = ("pass", "import numpy", "import entrepot")
    for code in codes:
        took(code)  # compiles what is not compiled yet
    times = {code: statistics.median(took(code) for _ in range(15)) for code in codes}
    bare = times["pass"]
    numpy = times["import numpy"] - bare
    return Line(
        "import entrepot, against import numpy",
        0.6,
        ratio=(times["import entrepot"] - bare) / numpy,
        plain=f"{numpy * 1e6:,.0f} us",
    )


def _packages(name: str, seen: set[str] | None = None) -> set[str]:
    """Return what installing a distribution without extras brings, itself included."""
    found: set[str] = seen if seen is not None else set()
    found.add(name)
    for text in requires(name) or []:
        requirement = Requirement(text)
        wanted = requirement.marker is None or requirement.marker.evaluate({"extra": ""})
        if wanted and requirement.name not in found:
            _packages(requirement.name, found)
    return found
