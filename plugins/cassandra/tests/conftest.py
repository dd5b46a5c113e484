"""Fixtures: the server of the run, and stores and memories on it."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from plugins.cassandra.tests.servers import target

from entrepot_cassandra import CassandraChatMemoryRepository, CassandraVectorStore
from entrepot_cassandra.conformance import SERVER
from entrepot_conformance.keeper import shared_server

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plugins.cassandra.tests.servers import Make, MakeMemory


@pytest.fixture(scope="session")
def server(pytestconfig: pytest.Config) -> str:
    """The URL of a server."""
    return shared_server(pytestconfig, SERVER).url


@pytest.fixture
def name() -> str:
    """What begins the names of a test's collections."""
    return f"test-{uuid.uuid4().hex}"


@pytest.fixture
def make(server: str, name: str) -> Iterator[Make]:
    """Make stores; all of a test see the same collection unless they name another. They are dropped in the end."""
    opened: dict[str, list[CassandraVectorStore]] = {}

    def make(**options: Any) -> CassandraVectorStore:
        given: dict[str, Any] = {"collection": name, **target(server), **options}
        store = CassandraVectorStore(**given).connect()
        opened.setdefault(store.collection, []).append(store)
        return store

    yield make
    for stores in opened.values():
        living = [store for store in stores if not store.is_closed]
        if living:
            living[0].drop_collection()
        for store in living:
            store.close()


@pytest.fixture
def make_memory(server: str, name: str) -> Iterator[MakeMemory]:
    """Make memories; all of a test see the same one, which is dropped in the end."""
    opened: list[CassandraChatMemoryRepository] = []

    def make(**options: Any) -> CassandraChatMemoryRepository:
        given: dict[str, Any] = {"memory": name, **target(server), **options}
        memory = CassandraChatMemoryRepository(**given).connect()
        opened.append(memory)
        return memory

    yield make
    for number, memory in enumerate(opened):
        if number == 0:
            session: Any = memory.native_client
            session.execute(f"DROP TABLE IF EXISTS {memory._table.path}")  # pyright: ignore[reportPrivateUsage]
        memory.close()


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20261130)
