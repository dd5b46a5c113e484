"""What ``neo4j://``, ``neo4j+s://``, ``bolt://`` and ``bolt+s://`` mean to `open_vector_store` and `open_chat_memory`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal

from entrepot.errors import ConfigurationError
from entrepot.opening import ChatMemoryConfig, VectorStoreConfig

if TYPE_CHECKING:
    from entrepot.urls import StoreURL

SCHEMES = ("neo4j", "neo4j+s", "bolt", "bolt+s")


class Neo4jConfig(VectorStoreConfig, frozen=True, kw_only=True):
    """Options of `Neo4jVectorStore`: ``neo4j://[user:password@][host][:port]/[database/]collection``.

    Attributes:
        host: The server.
        port: Its port.
        user: Who logs in.
        password: The password, by default that of the environment variable ENTREPOT_NEO4J_PASSWORD, where a user
            is named; never shown.
        database: The database, by default the user's home database; it must exist.
        routing: Whether the server is asked for the others of its cluster; ``bolt://`` talks to this one alone.
        tls: Whether to use TLS; ``neo4j+s://`` and ``bolt+s://`` do.
        ca_file: TLS: the file of certificates to trust instead of the system's.
        pool_size: Most connections at a time; for async use, in each event loop.
        index: ``hnsw`` makes new collections with an approximate index, ``flat`` compares all that match.
        m: HNSW: edges of a node, when a collection is made.
        ef_construction: HNSW: candidates while the index is made.
        ef_search: HNSW: least candidates of a search.
    """

    scheme: ClassVar[str] = "neo4j"
    objects: ClassVar[frozenset[str]] = frozenset({"client"})
    takes_driver: ClassVar[bool] = True

    host: str | None = None
    port: int | None = None
    user: str | None = None
    password: str | None = None
    database: str | None = None
    routing: bool = True
    tls: bool = False
    ca_file: str | None = None
    pool_size: int = 8
    index: Literal["flat", "hnsw"] = "hnsw"
    m: int = 16
    ef_construction: int = 100
    ef_search: int = 100

    @classmethod
    def from_url(cls, url: StoreURL) -> dict[str, Any]:
        """Return the parts of the URL; a single name in the path is the collection."""
        return _parts(url, "collection")


class Neo4jMemoryConfig(ChatMemoryConfig, frozen=True, kw_only=True):
    """Options of `Neo4jChatMemoryRepository`: ``neo4j://[user:password@][host][:port]/[database/]memory``.

    Attributes:
        memory: The memory's name: its conversations are apart from those of others in the database.

    The others are those of `Neo4jConfig`.
    """

    scheme: ClassVar[str] = "neo4j"
    objects: ClassVar[frozenset[str]] = frozenset({"client"})
    takes_driver: ClassVar[bool] = True

    memory: str = "chat"
    host: str | None = None
    port: int | None = None
    user: str | None = None
    password: str | None = None
    database: str | None = None
    routing: bool = True
    tls: bool = False
    ca_file: str | None = None
    pool_size: int = 8

    @classmethod
    def from_url(cls, url: StoreURL) -> dict[str, Any]:
        """Return the parts of the URL; a single name in the path is the memory's."""
        return _parts(url, "memory")


def _parts(url: StoreURL, last: str) -> dict[str, Any]:
    """Return the parts of a URL as options; `last` is what the end of its path is called."""
    if url.scheme not in SCHEMES:
        msg = f"{url.scheme}:// is no scheme of Neo4j"
        raise ConfigurationError(msg, hint=f"write one of {', '.join(f'{one}://' for one in SCHEMES)}")
    database, slash, name = url.path.partition("/")
    if not slash:
        database, name = "", database
    if "/" in name or (slash and not (database and name)):
        msg = f"{url.scheme}:// has a path of database/{last}, or of a {last} alone"
        raise ConfigurationError(
            msg,
            hint=f"such as {url.scheme}://localhost/neo4j/articles; a {last} whose name holds a slash is given as {last}=",
        )
    parts = {
        "host": url.host,
        "port": url.port,
        "user": url.user or None,
        "password": url.password,
        "database": database or None,
        "routing": False if url.scheme.startswith("bolt") else None,
        "tls": True if url.scheme.endswith("+s") else None,
        last: name or None,
    }
    return {name: value for name, value in parts.items() if value is not None}
