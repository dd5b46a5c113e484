"""What the tests know of servers: options of a URL, connections, and a server of a test's own."""

from __future__ import annotations

import socket
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from entrepot.urls import parse_url
from entrepot_conformance.servers import RunningServer, running_server
from entrepot_postgres import PostgresConfig, PostgresVectorStore
from entrepot_postgres.conformance import SERVER
from entrepot_postgres.conformance import connect as connect_to

if TYPE_CHECKING:
    import psycopg

Make = Callable[..., PostgresVectorStore]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def own_server() -> Generator[RunningServer]:
    """Run a server out of the wheel for one test, which may stop it or change its settings."""
    with running_server(SERVER, via=["process"]) as server:
        yield server


def target(url: str) -> dict[str, Any]:
    """Return a URL as the options of a store, without a collection."""
    options = PostgresConfig.from_url(parse_url(f"{url}/unused"))
    del options["collection"]
    return options


def connect(url: str) -> psycopg.Connection[Any]:
    return connect_to(url)
