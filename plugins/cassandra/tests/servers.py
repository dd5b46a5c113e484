"""The tests' own ways to a server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from entrepot.urls import parse_url
from entrepot_cassandra import CassandraConfig

if TYPE_CHECKING:
    from collections.abc import Callable

    from entrepot_cassandra import CassandraChatMemoryRepository, CassandraVectorStore

    Make = Callable[..., CassandraVectorStore]
    MakeMemory = Callable[..., CassandraChatMemoryRepository]

KEYSPACE = "entrepot_tests"


def target(url: str) -> dict[str, Any]:
    """Return the options of a store or a memory for a server."""
    return {
        **CassandraConfig.from_url(parse_url(url)),
        "keyspace": KEYSPACE,
        "create_keyspace": True,
    }
