"""The conformance suite's way to Milvus: a server that is there, a container, or Milvus Lite.

Only the suite imports this module.
"""

from __future__ import annotations

from importlib.metadata import version
from typing import Any, Final, cast

from entrepot.urls import parse_url
from entrepot_conformance.servers import ServerSpec
from entrepot_milvus.config import MilvusConfig
from entrepot_milvus.servers import server_of

_PASSWORD: Final = "Milvus"  # noqa: S105 - what every new server has

SERVER: Final = ServerSpec(
    name="milvus",
    image="milvusdb/milvus:v2.3.5",
    port=19530,
    url=f"milvus://root:{_PASSWORD}@{{host}}:{{port}}",
    command=("milvus", "run", "standalone"),
    environment=(
        ("COMMON_SECURITY_AUTHORIZATIONENABLED", "true"),
        ("COMMON_STORAGETYPE", "local"),
        ("DEPLOY_MODE", "STANDALONE"),
        ("ETCD_USE_EMBED", "true"),
        ("ETCD_DATA_DIR", "/var/lib/milvus/etcd"),
        # A strong read waits for the next tick, 200 ms apart unless told otherwise; and a new collection for checks
        # that are a second apart.
        ("PROXY_TIMETICKINTERVAL", "20"),
        ("QUERYCOORD_CHECKINTERVAL", "100"),
        ("QUERYCOORD_CHECKCHANNELINTERVAL", "100"),
        ("QUERYCOORD_DISTPULLINTERVAL", "100"),
    ),
    ready="entrepot_milvus.conformance:ready",
)
"""Milvus: ENTREPOT_MILVUS_URL or ENTREPOT_MILVUS_IMAGE. The wheel `milvus` has a server that listens on every address
of the machine and has no option against it, so none is started out of it."""


def native(url: str) -> Any:
    """Return the client of a server by its URL, up to what names a collection; to be closed."""
    options = MilvusConfig.from_url(parse_url(url))
    server = server_of(
        host=options.get("host"), port=options.get("port"), user=options.get("user"),
        password=options.get("password"), token=options.get("token"), database=None,
        tls=options.get("tls", False), ca_file=None, cert_file=None, key_file=None, server_name=None,
        timeout=20.0, client=None,
    )  # fmt: skip
    return cast("Any", server.native)


def ready(url: str) -> None:
    """Return if the server answers, and searches what it has: after a start it takes a while to load that again.

    Raises:
        EntrepotError: There is no connection.
        pymilvus.exceptions.MilvusException: It is not ready yet.
    """
    client = native(url)
    try:
        for name in client.list_collections(timeout=5.0):
            client.query(name, output_fields=["count(*)"], consistency_level="Strong", timeout=5.0)
    finally:
        client.close()


def versions(url: str) -> dict[str, str]:
    """Return the versions of server and driver."""
    client = native(url)
    try:
        return {"Milvus": str(client.get_server_version()), "pymilvus": version("pymilvus")}
    finally:
        client.close()


def lite_versions(_url: str) -> dict[str, str]:
    """Return the versions of engine and driver."""
    return {"Milvus Lite": version("milvus-lite"), "pymilvus": version("pymilvus")}
