"""Vector store and chat memory of entrepot in Apache Cassandra 5.

The driver loads when one of these names is used, not when the plugin is listed.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from entrepot_cassandra.config import CassandraConfig, CassandraMemoryConfig
    from entrepot_cassandra.filters import CassandraFilterConverter
    from entrepot_cassandra.memory import CassandraChatMemoryRepository
    from entrepot_cassandra.store import CassandraVectorStore

__all__ = [
    "CassandraChatMemoryRepository",
    "CassandraConfig",
    "CassandraFilterConverter",
    "CassandraMemoryConfig",
    "CassandraVectorStore",
]

_HOMES: Final = {
    "CassandraChatMemoryRepository": "entrepot_cassandra.memory",
    "CassandraConfig": "entrepot_cassandra.config",
    "CassandraFilterConverter": "entrepot_cassandra.filters",
    "CassandraMemoryConfig": "entrepot_cassandra.config",
    "CassandraVectorStore": "entrepot_cassandra.store",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
