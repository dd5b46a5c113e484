"""Fixtures: the server of the run, and stores on it."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from plugins.elasticsearch.tests.servers import client, target

from entrepot_conformance.keeper import shared_server
from entrepot_elasticsearch import ElasticsearchVectorStore
from entrepot_elasticsearch.conformance import SERVER

if TYPE_CHECKING:
    from collections.abc import Iterator

    from elasticsearch import Elasticsearch
    from plugins.elasticsearch.tests.servers import Make


@pytest.fixture(scope="session")
def server(pytestconfig: pytest.Config) -> str:
    """The URL of a server."""
    return shared_server(pytestconfig, SERVER).url


@pytest.fixture
def admin(server: str) -> Iterator[Elasticsearch]:
    with client(server) as connected:
        yield connected


@pytest.fixture
def name(admin: Elasticsearch) -> Iterator[str]:
    """What begins the names of a test's indices; none of them is left after it."""
    prefix = f"test-{uuid.uuid4().hex}"
    yield prefix
    for index in admin.indices.get(index=f"{prefix}*"):
        admin.indices.delete(index=index)


@pytest.fixture
def make(server: str, name: str) -> Iterator[Make]:
    """Make stores; all of a test see the same collection unless they name another."""
    opened: list[ElasticsearchVectorStore] = []

    def make(**options: Any) -> ElasticsearchVectorStore:
        given: dict[str, Any] = {"collection": name, **target(server), **options}
        store = ElasticsearchVectorStore(**given).connect()
        opened.append(store)
        return store

    yield make
    for store in opened:
        store.close()


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20261130)
