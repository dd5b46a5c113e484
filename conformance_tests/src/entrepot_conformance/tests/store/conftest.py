"""Fixtures that the tests of stores share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from entrepot_conformance.tests.store.data import document, letter_model

if TYPE_CHECKING:
    from entrepot import FunctionEmbeddingModel, VectorStore
    from entrepot_conformance.endpoints import Stores

TENANTS = ("a", "b", "c")


@pytest.fixture
def model() -> FunctionEmbeddingModel:
    """Return a model that counts letters."""
    return letter_model()


@pytest.fixture
def store(stores: Stores, model: FunctionEmbeddingModel) -> VectorStore:
    """Return a store on a fresh endpoint, with a model."""
    return stores(embedding=model)


@pytest.fixture
def rng() -> np.random.Generator:
    """Return a seeded generator."""
    return np.random.default_rng(20261130)


@pytest.fixture
def shared(stores: Stores) -> VectorStore:
    """Return a store that holds five documents of each of three tenants."""
    store = stores(metric="euclidean")
    store.add([document(f"{t}{n}", n, tenant=t, n=n) for t in TENANTS for n in range(5)])
    return store
