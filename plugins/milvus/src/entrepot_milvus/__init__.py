"""Vector store of entrepot in Milvus: a server, or Milvus Lite within the process.

The driver loads when one of these names is used, not when the plugin is listed.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from entrepot_milvus.config import MilvusConfig, MilvusLiteConfig
    from entrepot_milvus.filters import MilvusFilterConverter
    from entrepot_milvus.mapped_store import MappedMilvusLiteVectorStore, MappedMilvusVectorStore
    from entrepot_milvus.store import MilvusLiteVectorStore, MilvusVectorStore

__all__ = [
    "MappedMilvusLiteVectorStore",
    "MappedMilvusVectorStore",
    "MilvusConfig",
    "MilvusFilterConverter",
    "MilvusLiteConfig",
    "MilvusLiteVectorStore",
    "MilvusVectorStore",
]

_HOMES: Final = {
    "MappedMilvusLiteVectorStore": "entrepot_milvus.mapped_store",
    "MappedMilvusVectorStore": "entrepot_milvus.mapped_store",
    "MilvusConfig": "entrepot_milvus.config",
    "MilvusFilterConverter": "entrepot_milvus.filters",
    "MilvusLiteConfig": "entrepot_milvus.config",
    "MilvusLiteVectorStore": "entrepot_milvus.store",
    "MilvusVectorStore": "entrepot_milvus.store",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
