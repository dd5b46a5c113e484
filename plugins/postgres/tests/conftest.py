"""Fixtures: a server, that of ENTREPOT_POSTGRES_URL or one that is started for the session, and stores on it."""

from __future__ import annotations

import os
import uuid
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from plugins.postgres.tests.servers import connect, running_server, target
from psycopg import sql

from entrepot_conformance.endpoints import Stores
from entrepot_conformance.targets import TargetSpec
from entrepot_postgres import PostgresVectorStore

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import psycopg
    from plugins.postgres.tests.servers import Make


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    """The URL of a server, up to the database."""
    url = os.environ.get("ENTREPOT_POSTGRES_URL")
    if url:
        yield url.rstrip("/")
        return
    with running_server() as (started, _):
        yield started


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
def stores(server: str, schema: str, tmp_path: Path) -> Iterator[Stores]:
    """What opens stores for the tests of the conformance suite, on an endpoint of each test's own.

    The index is a small one, which is soon made; S6 is asked of the default one elsewhere.
    """
    spec = TargetSpec(
        name="postgres",
        kind="store",
        opens=f"{server}/{{name}}?schema={schema}&m=8&ef_construction=32",
        witness="real server",
    )
    opened = Stores(spec, tmp_path, f"test-{uuid.uuid4().hex}")
    yield opened
    opened.close()


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20261130)
