"""Fixtures: the server of the run, and stores and memories on it."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from plugins.redis.tests.servers import client, target

from entrepot_conformance.endpoints import Stores
from entrepot_conformance.keeper import shared_server
from entrepot_conformance.targets import TargetSpec
from entrepot_redis import RedisChatMemoryRepository, RedisVectorStore
from entrepot_redis.conformance import SERVER

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from plugins.redis.tests.servers import Make, MakeMemory


@pytest.fixture(scope="session")
def server(pytestconfig: pytest.Config) -> str:
    """The URL of a server."""
    return shared_server(pytestconfig, SERVER).url


@pytest.fixture
def admin(server: str) -> Iterator[Any]:
    with client(server) as connected:
        yield connected


@pytest.fixture
def namespace(admin: Any) -> Iterator[str]:
    """A namespace that was never used; nothing of it is left after the test."""
    name = f"test-{uuid.uuid4().hex}"
    yield name
    for index in admin.execute_command("FT._LIST"):
        if index.startswith(name.encode()):
            admin.execute_command("FT.DROPINDEX", index, "DD")
    for key in admin.scan_iter(match=f"{name}*", count=1000):
        admin.delete(key)


@pytest.fixture
def make(server: str, namespace: str) -> Iterator[Make]:
    """Make stores on one endpoint: all of a test see the same collections."""
    opened: list[RedisVectorStore] = []

    def make(**options: Any) -> RedisVectorStore:
        given: dict[str, Any] = {**target(server), "namespace": namespace, **options}
        store = RedisVectorStore(**given).connect()
        opened.append(store)
        return store

    yield make
    for store in opened:
        store.close()


@pytest.fixture
def make_memory(server: str, namespace: str) -> Iterator[MakeMemory]:
    """Make memories on one endpoint: all of a test see the same conversations."""
    opened: list[RedisChatMemoryRepository] = []

    def make(**options: Any) -> RedisChatMemoryRepository:
        given: dict[str, Any] = {**target(server), "memory": namespace, **options}
        memory = RedisChatMemoryRepository(**given).connect()
        opened.append(memory)
        return memory

    yield make
    for memory in opened:
        memory.close()


@pytest.fixture
def stores(request: pytest.FixtureRequest, server: str, namespace: str, tmp_path: Path) -> Iterator[Stores]:
    """What opens stores for the suite's tests; a parameter of the fixture holds further options of the URL."""
    more = getattr(request, "param", "")
    opens = f"{server}/{{name}}?namespace={namespace}{more}"
    spec = TargetSpec(name="redis", kind="store", opens=opens, witness="real server")
    opened = Stores(spec, tmp_path, f"test-{uuid.uuid4().hex}")
    yield opened
    opened.close()


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20261130)
