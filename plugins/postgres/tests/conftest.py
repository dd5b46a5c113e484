"""Fixtures: the server of the run, and stores and memories on it."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from plugins.postgres.tests.servers import connect, target
from psycopg import sql

from entrepot_conformance.keeper import shared_server
from entrepot_postgres import PostgresVectorStore
from entrepot_postgres.conformance import SERVER

if TYPE_CHECKING:
    from collections.abc import Iterator

    import psycopg
    from plugins.postgres.tests.servers import Make


@pytest.fixture(scope="session")
def server(pytestconfig: pytest.Config) -> str:
    """The URL of a server, up to the database."""
    return shared_server(pytestconfig, SERVER).url


@pytest.fixture(scope="session")
def admin(server: str) -> Iterator[psycopg.Connection[Any]]:
    with connect(server) as connection:
        yield connection


@pytest.fixture
def schema(admin: psycopg.Connection[Any]) -> Iterator[str]:
    """A schema that was never used; it is gone after the test."""
    name = f"test_{uuid.uuid4().hex}"
    yield name
    admin.execute(sql.SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(sql.Identifier(name)))


@pytest.fixture
def make(server: str, schema: str) -> Iterator[Make]:
    """Make stores on one endpoint: all of a test see the same collections."""
    opened: list[PostgresVectorStore] = []

    def make(**options: Any) -> PostgresVectorStore:
        given: dict[str, Any] = {**target(server), "schema": schema, **options}
        store = PostgresVectorStore(**given)
        opened.append(store)
        return store

    yield make
    for store in opened:
        store.close()


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20261130)
