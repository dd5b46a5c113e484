"""Vector store of entrepot in Qdrant: a server, or the client's local mode.

The driver loads when one of these names is used, not when the plugin is listed.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from entrepot_qdrant.config import QdrantConfig, QdrantLocalConfig
    from entrepot_qdrant.filters import QdrantFilterConverter
    from entrepot_qdrant.mapped_store import MappedQdrantLocalVectorStore, MappedQdrantVectorStore
    from entrepot_qdrant.store import QdrantLocalVectorStore, QdrantVectorStore

__all__ = [
    "MappedQdrantLocalVectorStore",
    "MappedQdrantVectorStore",
    "QdrantConfig",
    "QdrantFilterConverter",
    "QdrantLocalConfig",
    "QdrantLocalVectorStore",
    "QdrantVectorStore",
]

_HOMES: Final = {
    "MappedQdrantLocalVectorStore": "entrepot_qdrant.mapped_store",
    "MappedQdrantVectorStore": "entrepot_qdrant.mapped_store",
    "QdrantConfig": "entrepot_qdrant.config",
    "QdrantFilterConverter": "entrepot_qdrant.filters",
    "QdrantLocalConfig": "entrepot_qdrant.config",
    "QdrantLocalVectorStore": "entrepot_qdrant.store",
    "QdrantVectorStore": "entrepot_qdrant.store",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
