"""The conformance suite's way to Elasticsearch: a server that is there, or a container.

Only the suite imports this module.
"""

from __future__ import annotations

import os
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Final, cast
from uuid import uuid4

from entrepot import Document, SearchRequest
from entrepot.urls import parse_url
from entrepot_conformance.servers import ServerSpec
from entrepot_elasticsearch.commands import read
from entrepot_elasticsearch.config import ElasticsearchConfig
from entrepot_elasticsearch.servers import server_of
from entrepot_elasticsearch.store import ElasticsearchVectorStore

if TYPE_CHECKING:
    from entrepot_elasticsearch.commands import Script

SERVER: Final = ServerSpec(
    name="elasticsearch",
    image="elasticsearch:8.19.21",
    port=9200,
    # Without security there is no login; what the URL says of one is sent and not looked at.
    url="elasticsearch://elastic:entrepot@{host}:{port}",
    environment=(
        ("discovery.type", "single-node"),
        ("xpack.security.enabled", "false"),
        ("ES_JAVA_OPTS", "-Xms1g -Xmx1g"),
    ),
    ready="entrepot_elasticsearch.conformance:ready",
)
"""Elasticsearch: ENTREPOT_ELASTICSEARCH_URL or ENTREPOT_ELASTICSEARCH_IMAGE; no wheel has the server."""


def _told(url: str, *, timeout: float = 5.0, **more: str) -> dict[str, Any]:
    options: dict[str, Any] = {**ElasticsearchConfig.from_url(parse_url(url)), **more}
    server = server_of(
        host=options.get("host"), port=options.get("port"), user=options.get("user"),
        password=options.get("password"), api_key=None, tls=options.get("tls", False), ca_file=None,
        cert_file=None, key_file=None, fingerprint=None, prefix=options.get("prefix"), pool_size=1, timeout=timeout, client=None,
    )  # fmt: skip
    try:
        return server.run(_state())
    finally:
        server.close()


def _state() -> Script[dict[str, Any]]:
    yield read("/_cluster/health?wait_for_status=yellow&timeout=1s")
    return cast("dict[str, Any]", (yield read("/")))


def has_logins() -> bool:
    """Whether the suite is told of a server of its user's with a login; its own server has none."""
    url = os.environ.get(f"ENTREPOT_{SERVER.variable}_URL")
    return url is not None and parse_url(url).password is not None


def ready(url: str) -> None:
    """Return if the server answers, and has made an index and searched it: the first time takes it seconds.

    Raises:
        EntrepotError: It does not, or could not.
    """
    _told(url)
    options = ElasticsearchConfig.from_url(parse_url(url))
    options["collection"] = f"ready-{uuid4().hex}"
    with ElasticsearchVectorStore(**options, timeout=60.0).connect() as store:
        store.add([Document("ready", id="1", metadata={"n": 1}, vector=[1.0, 0.0])])
        store.similarity_search(SearchRequest(vector=[1.0, 0.0], filter="n == 1"))
        store.drop_collection()


def versions(url: str) -> dict[str, str]:
    """Return the versions of server, search engine and driver."""
    server = _told(url)["version"]
    return {
        "Elasticsearch": str(server["number"]),
        "Lucene": str(server["lucene_version"]),
        "elasticsearch-py": version("elasticsearch"),
    }
