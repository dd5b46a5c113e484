"""The tests' own ways to a server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from neo4j import GraphDatabase

from entrepot.urls import parse_url
from entrepot_neo4j import Neo4jConfig

if TYPE_CHECKING:
    from collections.abc import Callable

    from neo4j import Driver

    from entrepot_neo4j import Neo4jChatMemoryRepository, Neo4jVectorStore

    Make = Callable[..., Neo4jVectorStore]
    MakeMemory = Callable[..., Neo4jChatMemoryRepository]


def target(url: str) -> dict[str, Any]:
    """Return a store's options for a server."""
    return Neo4jConfig.from_url(parse_url(url))


def client(url: str) -> Driver:
    """Return a driver for a server."""
    given = target(url)
    login = (given["user"], given["password"])
    driver = cast("Any", GraphDatabase).driver(f"neo4j://{given['host']}:{given['port']}", auth=login)
    return cast("Driver", driver)


def rows(driver: Driver, text: str, **parameters: Any) -> list[list[Any]]:
    """Return the rows of a query."""
    found = driver.execute_query(cast("Any", text), parameters)
    return [record.values() for record in found.records]
