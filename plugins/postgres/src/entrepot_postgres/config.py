"""What ``postgres://`` means to `open_vector_store`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal

from entrepot.errors import ConfigurationError
from entrepot.opening import VectorStoreConfig

if TYPE_CHECKING:
    from collections.abc import Iterator

    from entrepot.urls import StoreURL


class PostgresConfig(VectorStoreConfig, frozen=True, kw_only=True):
    """Options of `PostgresVectorStore`: ``postgres://[user[:password]@][host][:port]/[database/]collection``.

    What is left out is what libpq makes of it: the environment variables PGHOST, PGPORT, PGUSER,
    PGPASSWORD, PGDATABASE and PGSSLMODE, a password file, and their defaults.

    Attributes:
        host: The server, or the folder of its socket.
        port: Its port.
        user: Who logs in.
        password: The password; never shown.
        database: The database; it must exist.
        schema: The schema that the tables lie in; made with the first collection if it is not there.
        sslmode: libpq's way of using TLS, such as ``require`` or ``verify-full``.
        pool_size: Most connections at a time; for async use, in each event loop.
        index: ``hnsw`` makes new collections with an approximate index, ``none`` without: all
            searches are exact then. Above 2,000 dimensions there is no index either way.
        m: HNSW: edges of a node, when an index is made.
        ef_construction: HNSW: candidates while the index is made.
        ef_search: HNSW: candidates of a search, 1 to 1,000; more is slower and finds more.
    """

    scheme: ClassVar[str] = "postgres"
    objects: ClassVar[frozenset[str]] = frozenset({"client"})

    host: str | None = None
    port: int | None = None
    user: str | None = None
    password: str | None = None
    database: str | None = None
    schema: str = "public"
    sslmode: str | None = None
    pool_size: int = 8
    index: Literal["hnsw", "none"] = "hnsw"
    m: int = 16
    ef_construction: int = 64
    ef_search: int = 200

    @classmethod
    def from_url(cls, url: StoreURL) -> dict[str, Any]:
        """Return the parts of the URL; a single name in the path is the collection."""
        database, slash, collection = url.path.partition("/")
        if not slash:
            database, collection = "", database
        if "/" in collection or (slash and not (database and collection)):
            msg = f"{url.scheme}:// has a path of database/collection, or of a collection alone"
            raise ConfigurationError(msg, hint=f"such as {url.scheme}://localhost/app/articles")
        parts = {
            "host": url.host,
            "port": url.port,
            "user": url.user,
            "password": url.password,
            "database": database or None,
            "collection": collection or None,
        }
        return {name: value for name, value in parts.items() if value is not None}

    def _shown(self) -> Iterator[tuple[str, object]]:
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if value is not None:
                yield name, "***" if name == "password" else value

    def __repr__(self) -> str:
        """Return the options without the password."""
        return f"PostgresConfig({', '.join(f'{name}={value!r}' for name, value in self._shown())})"

    __str__ = __repr__

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        """Return the options without the password, for rich."""
        return list(self._shown())
