"""The conformance suite's way to Neo4j: a server that is there, or a container.

Only the suite imports this module.
"""

from __future__ import annotations

from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from entrepot import Document, SearchRequest, UserMessage
from entrepot.urls import parse_url
from entrepot_conformance.servers import ServerSpec
from entrepot_neo4j.catalog import check_server
from entrepot_neo4j.commands import read
from entrepot_neo4j.config import Neo4jConfig, Neo4jMemoryConfig
from entrepot_neo4j.memory import Neo4jChatMemoryRepository
from entrepot_neo4j.servers import server_of
from entrepot_neo4j.store import Neo4jVectorStore

if TYPE_CHECKING:
    from entrepot_neo4j.commands import Script

_PASSWORD: Final = "entrepot-neo4j"  # noqa: S105 - of a server that lives as long as the tests

SERVER: Final = ServerSpec(
    name="neo4j",
    image="neo4j:2026",
    port=7687,
    url=f"neo4j://neo4j:{_PASSWORD}@{{host}}:{{port}}",
    # A test tries wrong passwords.
    environment=(
        ("NEO4J_AUTH", f"neo4j/{_PASSWORD}"),
        ("NEO4J_dbms_security_auth__max__failed__attempts", "0"),
    ),
    ready="entrepot_neo4j.conformance:ready",
)
"""Neo4j: ENTREPOT_NEO4J_URL or ENTREPOT_NEO4J_IMAGE; no wheel has the server."""


def _told(url: str, script: Script[Any], *, timeout: float = 5.0) -> Any:
    options: dict[str, Any] = Neo4jConfig.from_url(parse_url(url))
    server = server_of(
        host=options.get("host"), port=options.get("port"), user=options.get("user"),
        password=options.get("password"), database=None, routing=options.get("routing", True),
        tls=options.get("tls", False), ca_file=None, pool_size=1, timeout=timeout, client=None,
    )  # fmt: skip
    try:
        return server.run(script)
    finally:
        server.close()


def ready(url: str) -> None:
    """Return if the server answers, and has done once what takes it seconds the first time: indexes, and a search.

    Raises:
        EntrepotError: It does not, or could not.
    """
    _told(url, check_server())
    options = Neo4jConfig.from_url(parse_url(url))
    options["collection"] = f"ready_{uuid4().hex}"
    with Neo4jVectorStore(**options, timeout=60.0).connect() as store:
        store.add([Document("ready", id="1", metadata={"n": 1}, vector=[1.0, 0.0])])
        store.similarity_search(SearchRequest(vector=[1.0, 0.0], filter="n == 1"))
        store.drop_collection()
    given = Neo4jMemoryConfig.from_url(parse_url(url))
    with Neo4jChatMemoryRepository(**given, timeout=60.0).connect() as memory:
        memory.append("ready", [UserMessage("ready")])
        memory.delete("ready")


def _components() -> Script[dict[str, Any]]:
    rows = yield read(
        "CALL dbms.components() YIELD name, versions, edition RETURN name, versions[0], edition"
    )
    return {name: (number, edition) for name, number, edition in rows}


def versions(url: str) -> dict[str, str]:
    """Return the versions of server and driver."""
    number, edition = _told(url, _components())["Neo4j Kernel"]
    return {"Neo4j": f"{number} {edition}", "neo4j driver": version("neo4j")}
