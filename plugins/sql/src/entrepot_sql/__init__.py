"""Chat memory of entrepot in SQL databases, over SQLAlchemy Core."""

from __future__ import annotations

from entrepot_sql.config import SqlConfig
from entrepot_sql.repository import SqlChatMemoryRepository

__all__ = ["SqlChatMemoryRepository", "SqlConfig"]
