"""The conformance suite's way to Pinecone's API: a server that is there, or a container.

Only the suite imports this module.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any, Final

from entrepot.urls import parse_url
from entrepot_conformance.servers import ServerAbsentError, ServerSpec
from entrepot_pinecone.commands import CONTROL, read
from entrepot_pinecone.config import PineconeConfig
from entrepot_pinecone.servers import server_of
from entrepot_pinecone.sessions import API_VERSION

if TYPE_CHECKING:
    from pathlib import Path

    from entrepot_conformance.targets import KnownFailure
    from entrepot_pinecone.commands import Script

SERVER: Final = ServerSpec(
    name="pinecone",
    image="needledb:0.1.0",
    port=8080,
    url="pinecone+http://:pclocal@{host}:{port}",
    ready="entrepot_pinecone.conformance:ready",
    process="entrepot_pinecone.conformance:start",
)
"""Pinecone's API: ENTREPOT_PINECONE_URL or ENTREPOT_PINECONE_IMAGE; by default NeedleDB, an emulator."""


def known_failures() -> tuple[KnownFailure, ...]:
    """Return what is known to fail on the server of the suite."""
    return ()


def start(folder: Path, port: int) -> subprocess.Popen[bytes]:
    """Start NeedleDB, where it is installed beside this package.

    Raises:
        ServerAbsentError: It is not.
    """
    if importlib.util.find_spec("needledb") is None:
        msg = "needledb is not installed"
        raise ServerAbsentError(msg)
    command = [sys.executable, "-m", "needledb.cli", "serve", "--data", str(folder), "--host", "127.0.0.1"]
    return subprocess.Popen(  # noqa: S603 - our own command
        [*command, "--port", str(port), "--log-level", "warning"],
        env={**os.environ, "NEEDLEDB_API_KEY": "pclocal"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def ready(url: str) -> None:
    """Return if the server answers.

    Raises:
        EntrepotError: It does not.
    """
    options: dict[str, Any] = PineconeConfig.from_url(parse_url(url))
    options.pop("collection", None)
    server = server_of(**options, timeout=5.0)
    try:
        server.run(_asked())
    finally:
        server.close()


def _asked() -> Script[None]:
    yield read(CONTROL, "/indexes")


def versions(url: str) -> dict[str, str]:
    """Return what answers, and the version of the API that is asked for."""
    ready(url)
    kind = "emulator of Pinecone (NeedleDB 0.1.0 by default)" if "pinecone+http://" in url else "Pinecone"
    return {kind: f"API {API_VERSION}"}
