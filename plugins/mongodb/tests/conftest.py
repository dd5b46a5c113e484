"""Fixtures: the server of the run, stores and memories on it, and gates before it."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from plugins.mongodb.tests.gate import Gate
from plugins.mongodb.tests.servers import client, target

from entrepot_conformance.keeper import shared_server
from entrepot_mongodb import MongoDBChatMemoryRepository, MongoDBVectorStore
from entrepot_mongodb.conformance import SERVER

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plugins.mongodb.tests.servers import Make, Remember
    from pymongo.database import Database


@pytest.fixture(scope="session")
def server(pytestconfig: pytest.Config) -> str:
    """The URL of a server."""
    return shared_server(pytestconfig, SERVER).url


@pytest.fixture
def database(server: str) -> Iterator[Database[dict[str, Any]]]:
    """A database of a test's own; it is not left after it."""
    name = f"test-{uuid.uuid4().hex}"
    with client(server) as connected:
        yield connected[name]
        connected.drop_database(name)


@pytest.fixture
def make(server: str, database: Database[dict[str, Any]]) -> Iterator[Make]:
    """Make stores; all of a test see the same collection unless they name another."""
    opened: list[MongoDBVectorStore] = []

    def make(**options: Any) -> MongoDBVectorStore:
        given: dict[str, Any] = {"collection": "articles", "database": database.name, **options}
        if "client" not in options:
            given = {**target(server), **given}
        store = MongoDBVectorStore(**given).connect()
        opened.append(store)
        return store

    yield make
    for store in opened:
        store.close()


@pytest.fixture
def remember(server: str, database: Database[dict[str, Any]]) -> Iterator[Remember]:
    """Make memories; all of a test see the same conversations unless they name another."""
    opened: list[MongoDBChatMemoryRepository] = []

    def remember(**options: Any) -> MongoDBChatMemoryRepository:
        given: dict[str, Any] = {"memory": "talk", "database": database.name, **target(server), **options}
        memory = MongoDBChatMemoryRepository(**given).connect()
        opened.append(memory)
        return memory

    yield remember
    for memory in opened:
        memory.close()


@pytest.fixture
def search_gate(server: str) -> Iterator[Gate]:
    """A gate with a search beside the server."""
    given = target(server)
    with Gate(given["host"], given["port"], search=True) as gate:
        yield gate


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20261130)
