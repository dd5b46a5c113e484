"""Fixtures: the server of the run, and stores on it."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

import pytest

from entrepot.urls import parse_url
from entrepot_conformance.keeper import shared_server
from entrepot_pinecone import PineconeConfig, PineconeVectorStore
from entrepot_pinecone.conformance import SERVER

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Make = Callable[..., PineconeVectorStore]


@pytest.fixture(scope="session")
def server(pytestconfig: pytest.Config) -> str:
    """The URL of a server."""
    return shared_server(pytestconfig, SERVER).url


@pytest.fixture
def make(server: str) -> Iterator[Make]:
    """Make stores; all of a test see the same collection unless they name another namespace."""
    opened: list[PineconeVectorStore] = []
    given = PineconeConfig.from_url(parse_url(server))
    given["collection"] = f"test-{uuid.uuid4().hex[:16]}"

    def make(**options: Any) -> PineconeVectorStore:
        store = PineconeVectorStore(**{**given, **options}).connect()
        opened.append(store)
        return store

    yield make
    for store in opened:
        store.drop_collection()
        store.close()
