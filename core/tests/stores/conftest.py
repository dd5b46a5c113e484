"""Stores to test, each in memory and in a file, and models that need no extra."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from entrepot import FunctionEmbeddingModel, SimpleVectorStore

if TYPE_CHECKING:
    from pathlib import Path

Make = Callable[..., SimpleVectorStore]


def letters(texts: Any) -> Any:
    """Embed a text as its counts of the letters a to h: plain enough to compute by hand."""
    return [[text.count(letter) for letter in "abcdefgh"] for text in texts]


@pytest.fixture
def model() -> FunctionEmbeddingModel:
    return FunctionEmbeddingModel(letters, "letters", 8)


@pytest.fixture(params=["memory", "durable"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Make]:
    """Make stores on one endpoint: all of a test see the same database."""
    opened: list[SimpleVectorStore] = []

    def make(**options: Any) -> SimpleVectorStore:
        if request.param == "memory":
            options.setdefault("memory", str(tmp_path))
        else:
            options.setdefault("path", tmp_path / "store.db")
        store = SimpleVectorStore(**options)
        opened.append(store)
        return store

    yield make
    for store in opened:
        store.close()


@pytest.fixture
def store(make: Make, model: FunctionEmbeddingModel) -> SimpleVectorStore:
    return make(embedding=model)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20261130)
