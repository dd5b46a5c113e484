"""What ``redis://`` and ``rediss://`` mean to `open_vector_store` and `open_chat_memory`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal

from entrepot.errors import ConfigurationError
from entrepot.opening import ChatMemoryConfig, VectorStoreConfig

if TYPE_CHECKING:
    from entrepot.urls import StoreURL


class RedisConfig(VectorStoreConfig, frozen=True, kw_only=True):
    """Options of `RedisVectorStore`: ``redis://[user[:password]@][host][:port]/collection``.

    Attributes:
        host: The server.
        port: Its port.
        user: Who logs in, by an ACL; None is the default user.
        password: The password, by default that of the environment variable ENTREPOT_REDIS_PASSWORD; never
            shown.
        db: The database; indexes exist in database 0 alone.
        namespace: What the keys of all collections begin with.
        tls: Whether to use TLS; ``rediss://`` does.
        ca_file: TLS: the file of certificates to trust instead of the system's.
        cert_file: TLS: the client's own certificate.
        key_file: TLS: its key.
        check_hostname: TLS: whether the certificate must be the host's.
        pool_size: Most connections at a time; for async use, in each event loop.
        protocol: The version of the protocol, 3 or 2.
        index: ``flat`` compares all that match; ``hnsw`` makes new collections with an approximate index.
        m: HNSW: edges of a node, when an index is made.
        ef_construction: HNSW: candidates while the index is made.
        ef_search: HNSW: candidates of a search.
        max_columns: Most numeric fields that a collection's index gets for ranges, up to 1,000.
    """

    scheme: ClassVar[str] = "redis"
    objects: ClassVar[frozenset[str]] = frozenset({"client"})

    host: str | None = None
    port: int | None = None
    user: str | None = None
    password: str | None = None
    db: int = 0
    namespace: str = "entrepot"
    tls: bool = False
    ca_file: str | None = None
    cert_file: str | None = None
    key_file: str | None = None
    check_hostname: bool = True
    pool_size: int = 8
    protocol: Literal[2, 3] = 3
    index: Literal["flat", "hnsw"] = "flat"
    m: int = 16
    ef_construction: int = 200
    ef_search: int = 200
    max_columns: int = 1000

    @classmethod
    def from_url(cls, url: StoreURL) -> dict[str, Any]:
        """Return the parts of the URL; the path is the collection."""
        return _parts(url, "collection")


class RedisMemoryConfig(ChatMemoryConfig, frozen=True, kw_only=True):
    """Options of `RedisChatMemoryRepository`: ``redis://[user[:password]@][host][:port]/memory``.

    Attributes:
        memory: What the keys of the memory begin with.
        questions: Whether messages are indexed, for `search` (M10); by default where the server has a
            search engine and the database is 0.
        db: The database.

    The others are those of `RedisConfig`.
    """

    scheme: ClassVar[str] = "redis"
    objects: ClassVar[frozenset[str]] = frozenset({"client"})

    memory: str = "chat"
    host: str | None = None
    port: int | None = None
    user: str | None = None
    password: str | None = None
    db: int = 0
    tls: bool = False
    ca_file: str | None = None
    cert_file: str | None = None
    key_file: str | None = None
    check_hostname: bool = True
    pool_size: int = 8
    protocol: Literal[2, 3] = 3
    questions: bool | None = None

    @classmethod
    def from_url(cls, url: StoreURL) -> dict[str, Any]:
        """Return the parts of the URL; the path is the name of the memory."""
        return _parts(url, "memory")


def _parts(url: StoreURL, what: str) -> dict[str, Any]:
    if "/" in url.path:
        msg = f"{url.scheme}:// has the name of the {what} as its path, without a slash in it"
        raise ConfigurationError(msg, hint=f"a {what} whose name holds one is given as {what}=")
    if url.path.isdecimal():
        # Elsewhere the path of such a URL is a database, and a collection called 0 would be a surprise.
        msg = (
            f"{url.scheme}:// has the name of the {what} as its path, and {url.path!r} looks like a database"
        )
        raise ConfigurationError(
            msg, hint=f"databases are chosen by db=, as in /articles?db=0; give the {what} as {what}="
        )
    parts = {
        "host": url.host,
        "port": url.port,
        "user": url.user or None,
        "password": url.password,
        "tls": True if url.scheme == "rediss" else None,
        what: url.path or None,
    }
    return {name: value for name, value in parts.items() if value is not None}
