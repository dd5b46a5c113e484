"""The conformance suite's way to a server that is there: ``--target postgres``."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from entrepot import open_vector_store

if TYPE_CHECKING:
    from pathlib import Path

    from entrepot import VectorStore

ADDRESS = "ENTREPOT_POSTGRES_URL"
"""The environment variable with the URL of the server and its database."""


def open_store(*, folder: Path, name: str, **options: Any) -> VectorStore:  # noqa: ARG001 - the suite's call
    """Open a collection on the server of ENTREPOT_POSTGRES_URL, by default ``postgres://localhost/postgres``."""
    address = os.environ.get(ADDRESS, "postgres://localhost/postgres").rstrip("/")
    return open_vector_store(f"{address}/{name}", **options)
