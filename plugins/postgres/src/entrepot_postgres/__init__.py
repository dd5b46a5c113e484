"""Vector store and chat memory of entrepot in PostgreSQL with pgvector, over psycopg 3.

The driver loads when one of these names is used, not when the plugin is listed.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from entrepot_postgres.config import PostgresConfig, PostgresMemoryConfig
    from entrepot_postgres.filters import PostgresClause, PostgresFilterConverter
    from entrepot_postgres.mapped_store import MappedPostgresVectorStore
    from entrepot_postgres.memory import PostgresChatMemoryRepository
    from entrepot_postgres.store import PostgresVectorStore

__all__ = [
    "MappedPostgresVectorStore",
    "PostgresChatMemoryRepository",
    "PostgresClause",
    "PostgresConfig",
    "PostgresFilterConverter",
    "PostgresMemoryConfig",
    "PostgresVectorStore",
]

_HOMES: Final = {
    "MappedPostgresVectorStore": "entrepot_postgres.mapped_store",
    "PostgresChatMemoryRepository": "entrepot_postgres.memory",
    "PostgresClause": "entrepot_postgres.filters",
    "PostgresConfig": "entrepot_postgres.config",
    "PostgresFilterConverter": "entrepot_postgres.filters",
    "PostgresMemoryConfig": "entrepot_postgres.config",
    "PostgresVectorStore": "entrepot_postgres.store",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
