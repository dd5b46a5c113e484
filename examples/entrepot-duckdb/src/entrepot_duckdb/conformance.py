"""What the conformance suite needs to know of this backend; nothing else imports this module."""

from __future__ import annotations

from importlib.metadata import version


def versions(url: str) -> dict[str, str]:
    """Return the versions of engine and driver, for the report: one wheel holds both."""
    return {"DuckDB": version("duckdb")}
