"""Vector store of entrepot in Elasticsearch.

The driver loads when one of these names is used, not when the plugin is listed.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from entrepot_elasticsearch.config import ElasticsearchConfig
    from entrepot_elasticsearch.filters import ElasticsearchFilterConverter
    from entrepot_elasticsearch.mapped_store import MappedElasticsearchVectorStore
    from entrepot_elasticsearch.store import ElasticsearchVectorStore

__all__ = [
    "ElasticsearchConfig",
    "ElasticsearchFilterConverter",
    "ElasticsearchVectorStore",
    "MappedElasticsearchVectorStore",
]

_HOMES: Final = {
    "ElasticsearchConfig": "entrepot_elasticsearch.config",
    "ElasticsearchFilterConverter": "entrepot_elasticsearch.filters",
    "ElasticsearchVectorStore": "entrepot_elasticsearch.store",
    "MappedElasticsearchVectorStore": "entrepot_elasticsearch.mapped_store",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
