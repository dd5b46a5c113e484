"""Fixtures: stores in local mode, and a stand-in for a server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from plugins.qdrant.tests.emulator import Emulator, emulator

from entrepot_qdrant import QdrantLocalVectorStore, QdrantVectorStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    MakeLocal = Callable[..., QdrantLocalVectorStore]
    MakeServed = Callable[..., QdrantVectorStore]


@pytest.fixture
def make(request: pytest.FixtureRequest) -> Iterator[MakeLocal]:
    """Make stores in local mode: all of a test see the same collections, unless it says where."""
    opened: list[QdrantLocalVectorStore] = []

    def make(**options: Any) -> QdrantLocalVectorStore:
        given: dict[str, Any] = {**options}
        if not {"path", "client", "memory"} & set(given):
            given["memory"] = request.node.name
        store = QdrantLocalVectorStore(**given).connect()
        opened.append(store)
        return store

    yield make
    for store in opened:
        store.close()


@pytest.fixture
def server() -> Iterator[Emulator]:
    """A stand-in for a server."""
    with emulator() as running:
        yield running


@pytest.fixture
def served(server: Emulator) -> Iterator[MakeServed]:
    """Make stores on the stand-in."""
    opened: list[QdrantVectorStore] = []

    def make(**options: Any) -> QdrantVectorStore:
        given: dict[str, Any] = {"host": "127.0.0.1", "port": server.port, **options}
        store = QdrantVectorStore(**given).connect()
        opened.append(store)
        return store

    yield make
    for store in opened:
        store.close()


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20261130)
