"""What ``elasticsearch://`` and ``elasticsearch+https://`` mean to `open_vector_store`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal

from entrepot.errors import ConfigurationError
from entrepot.opening import VectorStoreConfig

if TYPE_CHECKING:
    from entrepot.urls import StoreURL

SCHEMES = ("elasticsearch", "elasticsearch+http", "elasticsearch+https")


class ElasticsearchConfig(VectorStoreConfig, frozen=True, kw_only=True):
    """Options of `ElasticsearchVectorStore`: ``elasticsearch://[user:password@][host][:port]/collection``.

    Attributes:
        host: The server.
        port: Its port.
        user: Who logs in.
        password: The password, by default that of the environment variable ENTREPOT_ELASTICSEARCH_PASSWORD; never
            shown.
        api_key: An API key instead, by default that of ENTREPOT_ELASTICSEARCH_API_KEY; never shown.
        tls: Whether to use TLS; ``elasticsearch+https://`` does.
        ca_file: TLS: the file of certificates to trust instead of the system's.
        cert_file: TLS: the client's own certificate.
        key_file: TLS: its key.
        fingerprint: TLS: the SHA-256 of the certificate to trust, in hexadecimal.
        prefix: What stands before the paths of the server, behind a proxy.
        pool_size: Connections that stay open; for async use, in each event loop.
        index: ``hnsw`` makes new collections with an approximate index, ``flat`` compares all that match.
        m: HNSW: edges of a node, when a collection is made.
        ef_construction: HNSW: candidates while the index is made.
        ef_search: HNSW: least candidates of a search.
        shards: Shards of a new collection.
        replicas: Copies of each shard of a new collection.
    """

    scheme: ClassVar[str] = "elasticsearch"
    objects: ClassVar[frozenset[str]] = frozenset({"client", "mapping"})
    takes_driver: ClassVar[bool] = True

    host: str | None = None
    port: int | None = None
    user: str | None = None
    password: str | None = None
    api_key: str | None = None
    tls: bool = False
    ca_file: str | None = None
    cert_file: str | None = None
    key_file: str | None = None
    fingerprint: str | None = None
    prefix: str | None = None
    pool_size: int = 8
    index: Literal["flat", "hnsw"] = "hnsw"
    m: int = 16
    ef_construction: int = 128
    ef_search: int = 200
    shards: int = 1
    replicas: int = 0

    @classmethod
    def from_url(cls, url: StoreURL) -> dict[str, Any]:
        """Return the parts of the URL; the path is the collection."""
        if url.scheme not in SCHEMES:
            msg = f"{url.scheme}:// is no scheme of Elasticsearch"
            raise ConfigurationError(msg, hint="write elasticsearch:// or elasticsearch+https://")
        if "/" in url.path:
            msg = f"{url.scheme}:// has the name of the collection as its path, without a slash in it"
            raise ConfigurationError(
                msg,
                hint="a collection whose name holds one is given as collection=, a proxy's path as prefix=",
            )
        parts = {
            "host": url.host,
            "port": url.port,
            "user": url.user or None,
            "password": url.password,
            "tls": True if url.scheme == "elasticsearch+https" else None,
            "collection": url.path or None,
        }
        return {name: value for name, value in parts.items() if value is not None}
