"""Vector store and chat memory of entrepot in Neo4j.

The driver loads when one of these names is used, not when the plugin is listed.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from entrepot_neo4j.config import Neo4jConfig, Neo4jMemoryConfig
    from entrepot_neo4j.filters import Neo4jFilterConverter
    from entrepot_neo4j.memory import Neo4jChatMemoryRepository
    from entrepot_neo4j.store import Neo4jVectorStore

__all__ = [
    "Neo4jChatMemoryRepository",
    "Neo4jConfig",
    "Neo4jFilterConverter",
    "Neo4jMemoryConfig",
    "Neo4jVectorStore",
]

_HOMES: Final = {
    "Neo4jChatMemoryRepository": "entrepot_neo4j.memory",
    "Neo4jConfig": "entrepot_neo4j.config",
    "Neo4jFilterConverter": "entrepot_neo4j.filters",
    "Neo4jMemoryConfig": "entrepot_neo4j.config",
    "Neo4jVectorStore": "entrepot_neo4j.store",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
