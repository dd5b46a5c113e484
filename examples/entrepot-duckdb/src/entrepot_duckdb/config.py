"""The options of this backend, and what a URL says."""

from __future__ import annotations

from typing import ClassVar

from entrepot.errors import ConfigurationError
from entrepot.opening import VectorStoreConfig
from entrepot.urls import StoreURL

SHARED_MEMORY = ":memory:entrepot"
"""The database of ``duckdb://``: in memory, one for all objects of the process that name no other."""


class DuckdbConfig(VectorStoreConfig, frozen=True, kw_only=True):
    """A collection in a DuckDB database.

    ``duckdb:///articles.db?collection=articles`` is a file, relative to the working directory; four slashes
    begin an absolute path. ``duckdb://`` is a database in memory, and ``duckdb://name`` another one.

    Attributes:
        database: The path of a file, or ``:memory:name``, which all objects of the process share.
    """

    scheme: ClassVar[str] = "duckdb"
    objects: ClassVar[frozenset[str]] = frozenset({"client"})

    database: str = SHARED_MEMORY

    @classmethod
    def from_url(cls, url: StoreURL) -> dict[str, object]:
        """Return the options that the parts of a URL give; parameters behind ``?`` are added by the core."""
        if url.user or url.password or url.port:
            msg = "a DuckDB database has no user, password or port"
            raise ConfigurationError(msg, hint="duckdb:///file.db?collection=name")
        if url.host and (url.has_path or "." in url.host):
            msg = f"{url.host!r} stands where the name of a database in memory would"
            raise ConfigurationError(msg, hint="a file has three slashes: duckdb:///file.db")
        if url.has_path and not url.path:
            msg = "the path of the file is missing"
            raise ConfigurationError(msg, hint="duckdb:///file.db, or duckdb:// for a database in memory")
        database = url.path or (url.host and f":memory:{url.host}")
        return {"database": database} if database else {}
