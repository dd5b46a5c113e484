"""The conformance suite's way to MongoDB: a server that is there, or a container.

Only the suite imports this module.
"""

from __future__ import annotations

import os
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Final, Literal, cast

from entrepot.urls import parse_url
from entrepot_conformance.servers import ServerSpec
from entrepot_conformance.targets import KnownFailure
from entrepot_mongodb.commands import Call
from entrepot_mongodb.config import MongoDBConfig
from entrepot_mongodb.servers import server_of

if TYPE_CHECKING:
    from entrepot_mongodb.commands import Script

SERVER: Final = ServerSpec(
    name="mongodb",
    image="mongo-java-server:1.47.0",
    port=27017,
    url="mongodb://{host}:{port}",
    ready="entrepot_mongodb.conformance:ready",
)
"""MongoDB: ENTREPOT_MONGODB_URL or ENTREPOT_MONGODB_IMAGE; by default a double of the protocol, in memory."""


def _told(url: str, timeout: float = 5.0) -> tuple[dict[str, Any], dict[str, Any]]:
    options: dict[str, Any] = MongoDBConfig.from_url(parse_url(url))
    options.pop("collection", None)
    server = server_of(**options, timeout=timeout)
    try:
        return server.run(_state())
    finally:
        server.close()


def _state() -> Script[tuple[dict[str, Any], dict[str, Any]]]:
    hello = cast("dict[str, Any]", (yield Call(None, "command", ("hello",))))
    return hello, cast("dict[str, Any]", (yield Call(None, "command", ("buildInfo",))))


def known_failures(kind: Literal["memory", "store"]) -> tuple[KnownFailure, ...]:
    """Return what is known to fail on the server that the suite is told of, or on its own."""
    url = os.environ.get(f"ENTREPOT_{SERVER.variable}_URL")
    found: list[KnownFailure] = []
    if url is None or parse_url(url).password is None:
        found.append(
            KnownFailure(
                test=f"faults/test_{kind}_faults.py::test_a_wrong_password_is_refused_and_not_told",
                reason="the server of the suite, a double of MongoDB's protocol, has no logins",
            )
        )
    return tuple(found)


def ready(url: str) -> None:
    """Return if the server answers.

    Raises:
        EntrepotError: It does not.
    """
    _told(url)


def versions(url: str) -> dict[str, str]:
    """Return the versions of server and driver."""
    hello, build = _told(url)
    # A server knows sessions since its version 3.6; the double that the suite starts does not.
    kind = (
        "MongoDB" if "logicalSessionTimeoutMinutes" in hello else "double of MongoDB's protocol, as version"
    )
    return {kind: str(build["version"]), "PyMongo": version("pymongo")}
