"""The conformance suite's way to Qdrant: a server that is there, a container, or the client's local mode.

Only the suite imports this module.
"""

from __future__ import annotations

from importlib.metadata import version
from typing import TYPE_CHECKING, Final, cast

from entrepot.urls import parse_url
from entrepot_conformance.servers import ServerSpec
from entrepot_qdrant.config import QdrantConfig
from entrepot_qdrant.servers import server_of

if TYPE_CHECKING:
    from qdrant_client import QdrantClient

_KEY: Final = "entrepot"

SERVER: Final = ServerSpec(
    name="qdrant",
    image="qdrant/qdrant:v1.18.3",
    port=6333,
    url=f"qdrant://:{_KEY}@{{host}}:{{port}}",
    environment=(("QDRANT__SERVICE__API_KEY", _KEY),),
    ready="entrepot_qdrant.conformance:ready",
)
"""Qdrant: ENTREPOT_QDRANT_URL or ENTREPOT_QDRANT_IMAGE; no wheel has the server."""


def _server_version(url: str) -> str:
    options = QdrantConfig.from_url(parse_url(url))
    server = server_of(
        host=options.get("host"), port=options.get("port"), api_key=options.get("api_key"),
        tls=options.get("tls", False), ca_file=None, prefix=None, grpc=False, grpc_port=None, pool_size=1,
        timeout=5.0, client=None,
    )  # fmt: skip
    try:
        client = cast("QdrantClient", server.native)
        client.get_collections()  # needs the key, where the version needs none
        return str(client.info().version)
    finally:
        server.close()


def ready(url: str) -> None:
    """Return if the server answers.

    Raises:
        qdrant_client.http.exceptions.ApiException: It does not.
    """
    _server_version(url)


def versions(url: str) -> dict[str, str]:
    """Return the versions of server and driver."""
    return {"Qdrant": _server_version(url), "qdrant-client": version("qdrant-client")}


def local_versions(_url: str) -> dict[str, str]:
    """Return the version of the driver, which is the engine."""
    return {"qdrant-client": version("qdrant-client")}
