"""What the tests know of servers: options of a URL."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from entrepot.urls import parse_url
from entrepot_milvus import MilvusConfig, MilvusLiteVectorStore, MilvusVectorStore

Make = Callable[..., MilvusVectorStore]
MakeLite = Callable[..., MilvusLiteVectorStore]


def target(url: str) -> dict[str, Any]:
    """Return a URL as the options of a store, without a collection."""
    return MilvusConfig.from_url(parse_url(url))
