"""The tests' own ways to a server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from elasticsearch import Elasticsearch

from entrepot.urls import parse_url
from entrepot_elasticsearch import ElasticsearchConfig

if TYPE_CHECKING:
    from collections.abc import Callable

    from entrepot_elasticsearch import ElasticsearchVectorStore

    Make = Callable[..., ElasticsearchVectorStore]


def target(url: str) -> dict[str, Any]:
    """Return a store's options for a server."""
    return ElasticsearchConfig.from_url(parse_url(url))


def client(url: str) -> Elasticsearch:
    """Return a client of the driver for a server."""
    options = target(url)
    return Elasticsearch(f"http://{options['host']}:{options['port']}", request_timeout=60)
