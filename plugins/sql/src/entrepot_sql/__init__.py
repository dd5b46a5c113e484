"""Chat memory of entrepot in SQL databases, over SQLAlchemy Core.

Importing this loads nothing: SQLAlchemy is loaded when one of the names is used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from entrepot_sql.config import SqlConfig
    from entrepot_sql.repository import SqlChatMemoryRepository
    from entrepot_sql.spring import import_spring_ai

__all__ = ["SqlChatMemoryRepository", "SqlConfig", "import_spring_ai"]

_MODULES = {
    "SqlChatMemoryRepository": "entrepot_sql.repository",
    "SqlConfig": "entrepot_sql.config",
    "import_spring_ai": "entrepot_sql.spring",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
