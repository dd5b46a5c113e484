"""Fixtures: the server of the run, and stores on it and in Milvus Lite."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

import pytest
from plugins.milvus.tests.servers import target

from entrepot_conformance.keeper import shared_server
from entrepot_milvus import MilvusLiteVectorStore, MilvusVectorStore
from entrepot_milvus.conformance import SERVER, native

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from plugins.milvus.tests.servers import Make, MakeLite


@pytest.fixture(scope="session")
def server(pytestconfig: pytest.Config) -> str:
    """The URL of a server."""
    return shared_server(pytestconfig, SERVER).url


@pytest.fixture
def admin(server: str) -> Iterator[Any]:
    client = native(server)
    yield client
    client.close()


@pytest.fixture
def name(admin: Any) -> Iterator[str]:
    """A name of a collection that was never used; nothing that begins with it is left after the test."""
    made = f"test_{uuid.uuid4().hex}"
    yield made
    for collection in admin.list_collections():
        properties: dict[str, str] = admin.describe_collection(collection).get("properties") or {}
        record = properties.get("entrepot", "")
        if collection.startswith(made) or made in record:
            admin.drop_collection(collection)


@pytest.fixture
def make(server: str, name: str) -> Iterator[Make]:
    """Make stores on one endpoint: all of a test see the same collections."""
    opened: list[MilvusVectorStore] = []

    def make(**options: Any) -> MilvusVectorStore:
        given: dict[str, Any] = {**target(server), "collection": name, **options}
        store = MilvusVectorStore(**given).connect()
        opened.append(store)
        return store

    yield make
    for store in opened:
        store.close()


@pytest.fixture
def make_lite(tmp_path: Path) -> Iterator[MakeLite]:
    """Make stores in one folder."""
    opened: list[MilvusLiteVectorStore] = []

    def make(**options: Any) -> MilvusLiteVectorStore:
        given: dict[str, Any] = {"path": str(tmp_path / "lite.db"), **options}
        store = MilvusLiteVectorStore(**given).connect()
        opened.append(store)
        return store

    yield make
    for store in opened:
        store.close()
