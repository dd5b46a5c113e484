"""The tests' own ways to a server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pymongo import MongoClient

from entrepot.urls import parse_url
from entrepot_mongodb import MongoDBConfig

if TYPE_CHECKING:
    from collections.abc import Callable

    from entrepot_mongodb import MongoDBChatMemoryRepository, MongoDBVectorStore

    Make = Callable[..., MongoDBVectorStore]
    Remember = Callable[..., MongoDBChatMemoryRepository]


def target(url: str) -> dict[str, Any]:
    """Return a store's options for a server."""
    return MongoDBConfig.from_url(parse_url(url))


def client(url: str, **options: Any) -> MongoClient[dict[str, Any]]:
    """Return a client of the driver for a server."""
    given = target(url)
    return MongoClient(
        given["host"], given["port"], username=given.get("user"), password=given.get("password"), **options
    )
