"""Fixtures: the server of the run, and stores on it."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from plugins.neo4j.tests.servers import client, rows, target

from entrepot_conformance.keeper import shared_server
from entrepot_neo4j import Neo4jChatMemoryRepository, Neo4jVectorStore
from entrepot_neo4j.conformance import SERVER

if TYPE_CHECKING:
    from collections.abc import Iterator

    from neo4j import Driver
    from plugins.neo4j.tests.servers import Make, MakeMemory


@pytest.fixture(scope="session")
def server(pytestconfig: pytest.Config) -> str:
    """The URL of a server."""
    return shared_server(pytestconfig, SERVER).url


@pytest.fixture
def admin(server: str) -> Iterator[Driver]:
    with client(server) as connected:
        yield connected


@pytest.fixture
def name(admin: Driver, server: str) -> Iterator[str]:
    """What begins the names of a test's collections; none of them is left after it."""
    prefix = f"test_{uuid.uuid4().hex}"
    yield prefix
    text = "MATCH (c:EntrepotCollection) WHERE c.name STARTS WITH $prefix RETURN c.name"
    for (left,) in rows(admin, text, prefix=prefix):
        with Neo4jVectorStore(collection=left, **target(server)) as store:
            store.drop_collection()


@pytest.fixture
def make(server: str, name: str) -> Iterator[Make]:
    """Make stores; all of a test see the same collection unless they name another."""
    opened: list[Neo4jVectorStore] = []

    def make(**options: Any) -> Neo4jVectorStore:
        given: dict[str, Any] = {"collection": name, **target(server), **options}
        store = Neo4jVectorStore(**given).connect()
        opened.append(store)
        return store

    yield make
    for store in opened:
        store.close()


@pytest.fixture
def make_memory(server: str, name: str) -> Iterator[MakeMemory]:
    """Make memories; all of a test see the same one unless they name another."""
    opened: list[Neo4jChatMemoryRepository] = []

    def make(**options: Any) -> Neo4jChatMemoryRepository:
        given: dict[str, Any] = {"memory": name, **target(server), **options}
        memory = Neo4jChatMemoryRepository(**given).connect()
        opened.append(memory)
        return memory

    yield make
    for memory in opened:
        memory.close()


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20261130)
