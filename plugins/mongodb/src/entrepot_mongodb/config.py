"""What ``mongodb://`` and ``mongodb+srv://`` mean to `open_vector_store` and `open_chat_memory`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal

from entrepot.errors import ConfigurationError
from entrepot.opening import ChatMemoryConfig, VectorStoreConfig

if TYPE_CHECKING:
    from entrepot.urls import StoreURL

SCHEMES = ("mongodb", "mongodb+srv")


class MongoDBConfig(VectorStoreConfig, frozen=True, kw_only=True):
    """Options of `MongoDBVectorStore`: ``mongodb://[user[:password]@][host][:port]/[database/]collection``.

    Attributes:
        host: The server.
        port: Its port.
        user: Who logs in.
        password: The password, by default that of the environment variable ENTREPOT_MONGODB_PASSWORD; never
            shown.
        database: The database.
        hosts: Other members of the replica set, or other routers: ``b.example.org:27017,c.example.org``.
        srv: Whether the host names a DNS record that tells the servers; ``mongodb+srv://`` does.
        replica_set: The name that the replica set must have.
        direct: Whether to speak with this server alone, whatever it says of others; None leaves it to the driver.
        auth_source: The database that knows the user, by default ``admin``.
        auth_mechanism: How to log in, such as ``SCRAM-SHA-256`` or ``MONGODB-X509``; by default the server says.
        tls: Whether to use TLS; ``mongodb+srv://`` does unless told otherwise.
        ca_file: TLS: the file of certificates to trust instead of the system's.
        cert_file: TLS: the client's own certificate and its key, in one file.
        check_hostname: TLS: whether the certificate must be the host's.
        pool_size: Most connections at a time to each server; for async use, in each event loop.
        index: ``hnsw`` makes new collections with an index for ``$vectorSearch``; ``flat`` compares all that match,
            in this process; ``auto`` is ``hnsw`` where the server has that search, and ``flat`` elsewhere.
        ef_search: HNSW: least candidates of a search.
        binary: How vectors are stored: ``vector`` is BSON's binary vector (subtype 9), ``plain`` are the same
            numbers as plain bytes (subtype 0); ``auto`` is ``vector`` on servers that know sessions.
    """

    scheme: ClassVar[str] = "mongodb"
    objects: ClassVar[frozenset[str]] = frozenset({"client"})
    takes_driver: ClassVar[bool] = True

    host: str | None = None
    port: int | None = None
    user: str | None = None
    password: str | None = None
    database: str = "entrepot"
    hosts: str | None = None
    srv: bool = False
    replica_set: str | None = None
    direct: bool | None = None
    auth_source: str | None = None
    auth_mechanism: str | None = None
    tls: bool | None = None
    ca_file: str | None = None
    cert_file: str | None = None
    check_hostname: bool = True
    pool_size: int = 8
    index: Literal["auto", "flat", "hnsw"] = "auto"
    ef_search: int = 200
    binary: Literal["auto", "plain", "vector"] = "auto"

    @classmethod
    def from_url(cls, url: StoreURL) -> dict[str, Any]:
        """Return the parts of the URL; a single name in the path is the collection."""
        return _parts(url, "collection")


class MongoDBMemoryConfig(ChatMemoryConfig, frozen=True, kw_only=True):
    """Options of `MongoDBChatMemoryRepository`: ``mongodb://[user[:password]@][host][:port]/[database/]memory``.

    Attributes:
        memory: The memory's name: its conversations are apart from those of others in the database.

    The others are those of `MongoDBConfig`.
    """

    scheme: ClassVar[str] = "mongodb"
    objects: ClassVar[frozenset[str]] = frozenset({"client"})
    takes_driver: ClassVar[bool] = True

    memory: str = "chat"
    host: str | None = None
    port: int | None = None
    user: str | None = None
    password: str | None = None
    database: str = "entrepot"
    hosts: str | None = None
    srv: bool = False
    replica_set: str | None = None
    direct: bool | None = None
    auth_source: str | None = None
    auth_mechanism: str | None = None
    tls: bool | None = None
    ca_file: str | None = None
    cert_file: str | None = None
    check_hostname: bool = True
    pool_size: int = 8

    @classmethod
    def from_url(cls, url: StoreURL) -> dict[str, Any]:
        """Return the parts of the URL; a single name in the path is the memory's."""
        return _parts(url, "memory")


def _parts(url: StoreURL, last: str) -> dict[str, Any]:
    """Return the parts of a URL as options; `last` is what the end of its path is called."""
    if url.scheme not in SCHEMES:
        msg = f"{url.scheme}:// is no scheme of MongoDB"
        raise ConfigurationError(msg, hint="write mongodb:// or mongodb+srv://")
    database, slash, name = url.path.partition("/")
    if not slash:
        database, name = "", database
    if "/" in name or (slash and not (database and name)):
        msg = f"{url.scheme}:// has a path of database/{last}, or of a {last} alone"
        raise ConfigurationError(
            msg,
            hint=f"such as {url.scheme}://localhost/app/articles; a name that holds a slash is given as {last}=",
        )
    parts = {
        "host": url.host,
        "port": url.port,
        "user": url.user or None,
        "password": url.password,
        "srv": True if url.scheme == "mongodb+srv" else None,
        "database": database or None,
        last: name or None,
    }
    return {name: value for name, value in parts.items() if value is not None}
