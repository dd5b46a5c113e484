"""Vector store and chat memory of entrepot in MongoDB.

The driver loads when one of these names is used, not when the plugin is listed.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from entrepot_mongodb.config import MongoDBConfig, MongoDBMemoryConfig
    from entrepot_mongodb.filters import MongoDBFilterConverter
    from entrepot_mongodb.memory import MongoDBChatMemoryRepository
    from entrepot_mongodb.store import MongoDBVectorStore

__all__ = [
    "MongoDBChatMemoryRepository",
    "MongoDBConfig",
    "MongoDBFilterConverter",
    "MongoDBMemoryConfig",
    "MongoDBVectorStore",
]

_HOMES: Final = {
    "MongoDBChatMemoryRepository": "entrepot_mongodb.memory",
    "MongoDBConfig": "entrepot_mongodb.config",
    "MongoDBFilterConverter": "entrepot_mongodb.filters",
    "MongoDBMemoryConfig": "entrepot_mongodb.config",
    "MongoDBVectorStore": "entrepot_mongodb.store",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
