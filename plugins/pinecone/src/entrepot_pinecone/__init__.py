"""Vector store of entrepot in Pinecone.

What asks the service loads when one of these names is used, not when the plugin is listed.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from entrepot_pinecone.config import PineconeConfig
    from entrepot_pinecone.filters import PineconeFilterConverter
    from entrepot_pinecone.store import PineconeVectorStore

__all__ = ["PineconeConfig", "PineconeFilterConverter", "PineconeVectorStore"]

_HOMES: Final = {
    "PineconeConfig": "entrepot_pinecone.config",
    "PineconeFilterConverter": "entrepot_pinecone.filters",
    "PineconeVectorStore": "entrepot_pinecone.store",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
