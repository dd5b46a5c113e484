"""What ``postgres://`` means to `open_vector_store` and to `open_chat_memory`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal

from entrepot.errors import ConfigurationError
from entrepot.metadata import name_fault
from entrepot.opening import ChatMemoryConfig, VectorStoreConfig

if TYPE_CHECKING:
    from entrepot.urls import StoreURL

_MAX_SCHEMA_BYTES: Final = 63


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
            searches are exact then. Above 4,000 dimensions only ``none`` is possible.
        m: HNSW: edges of a node, when an index is made.
        ef_construction: HNSW: candidates while the index is made.
        ef_search: HNSW: candidates of a search, 1 to 1,000; more is slower and finds more.
    """

    scheme: ClassVar[str] = "postgres"
    objects: ClassVar[frozenset[str]] = frozenset({"client", "mapping"})

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
        return _parts(url, "collection")


class PostgresMemoryConfig(ChatMemoryConfig, frozen=True, kw_only=True):
    """Options of `PostgresChatMemoryRepository`: ``postgres://[user[:password]@][host][:port]/[database/]name``.

    What is left out is what libpq makes of it, as in `PostgresConfig`.

    Attributes:
        host: The server, or the folder of its socket.
        port: Its port.
        user: Who logs in.
        password: The password; never shown.
        database: The database; it must exist.
        name: The memory's name: its conversations are apart from those of others in the schema.
        schema: The schema that the tables lie in; made if it is not there.
        sslmode: libpq's way of using TLS, such as ``require`` or ``verify-full``.
        pool_size: Most connections at a time; for async use, in each event loop.
    """

    scheme: ClassVar[str] = "postgres"
    objects: ClassVar[frozenset[str]] = frozenset({"client"})

    host: str | None = None
    port: int | None = None
    user: str | None = None
    password: str | None = None
    database: str | None = None
    name: str = "chat"
    schema: str = "public"
    sslmode: str | None = None
    pool_size: int = 8

    @classmethod
    def from_url(cls, url: StoreURL) -> dict[str, Any]:
        """Return the parts of the URL; a single name in the path is the memory's."""
        return _parts(url, "name")


def _parts(url: StoreURL, last: str) -> dict[str, Any]:
    """Return the parts of a URL as options; `last` is what the end of its path is called."""
    database, slash, name = url.path.partition("/")
    if not slash:
        database, name = "", database
    if "/" in name or (slash and not (database and name)):
        msg = f"{url.scheme}:// has a path of database/{last}, or of a {last} alone"
        raise ConfigurationError(msg, hint=f"such as {url.scheme}://localhost/app/articles")
    parts = {
        "host": url.host,
        "port": url.port,
        "user": url.user,
        "password": url.password,
        "database": database or None,
        last: name or None,
    }
    return {name: value for name, value in parts.items() if value is not None}


# --- what stores and memories check alike -----------------------------------------------------------------


def connection_target(  # noqa: PLR0913, PLR0917 - the parts of an address
    client: object,
    host: str | None,
    port: int | None,
    user: str | None,
    password: str | None,
    database: str | None,
    sslmode: str | None,
) -> dict[str, Any]:
    """Return an address as psycopg's keywords, without what is not given.

    Raises:
        ConfigurationError: There is a client as well, which says where the server is.
    """
    parts = {
        "host": host,
        "port": port,
        "user": user,
        "password": password,
        "dbname": database,
        "sslmode": sslmode,
    }
    target = {name: value for name, value in parts.items() if value is not None}
    if client is not None and target:
        msg = "the client says where the server is, and host, port, user, password or database do as well"
        raise ConfigurationError(msg, hint="name the collection or memory alone, as in postgres:///articles")
    return target


def target_of(options: dict[str, Any]) -> dict[str, Any]:
    """Return the address among a config's options as psycopg's keywords."""
    names = ("host", "port", "user", "password", "database", "sslmode")
    return connection_target(None, *(options.get(name) for name in names))


def check_schema(schema: str) -> None:
    """Refuse a name that no schema can have."""
    fault = name_fault(schema)
    if fault is None and len(schema.encode()) > _MAX_SCHEMA_BYTES:
        fault = f"has {len(schema.encode())} bytes, PostgreSQL takes {_MAX_SCHEMA_BYTES}"
    if fault is not None:
        msg = f"the name of the schema {fault}"
        raise ConfigurationError(msg)


def check_range(name: str, value: object, least: int, most: int) -> None:
    """Refuse an option that is no int from `least` to `most`."""
    if type(value) is not int or not least <= value <= most:
        msg = f"{name} must be an int from {least} to {most}, not {value!r}"
        raise ConfigurationError(msg)


def check_pool_size(pool_size: object) -> None:
    """Refuse a size that no pool can have."""
    check_range("pool_size", pool_size, 1, 1000)
