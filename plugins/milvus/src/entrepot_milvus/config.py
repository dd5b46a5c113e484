"""What ``milvus://``, ``milvuss://`` and ``milvus-lite://`` mean to `open_vector_store`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal

from entrepot.errors import ConfigurationError
from entrepot.opening import VectorStoreConfig

if TYPE_CHECKING:
    from entrepot.urls import StoreURL

LITE_TIMEOUT: Final = 60.0
"""Seconds: five searches of six thousand documents with wide filters take ten on a busy machine."""


class MilvusConfig(VectorStoreConfig, frozen=True, kw_only=True):
    """Options of `MilvusVectorStore`: ``milvus://[user:password@][host][:port]/collection``.

    Attributes:
        host: The server.
        port: Its port.
        user: Who logs in.
        password: The password; never shown.
        token: Instead of user and password: a token or an API key, by default that of the environment variable
            MILVUS_TOKEN; never shown.
        database: The database; None is the server's default.
        partition: A partition of the collection, which is a collection of its own to the store.
        tls: Whether to use TLS; ``milvuss://`` does.
        ca_file: TLS: the file of certificates to trust instead of the system's.
        cert_file: TLS: the client's own certificate.
        key_file: TLS: its key.
        server_name: TLS: the name in the server's certificate, where it is not the host's.
        index: ``flat`` compares all that match; ``hnsw`` makes new collections with an approximate index.
        m: HNSW: edges of a node, when a collection is made.
        ef_construction: HNSW: candidates while the index is made.
        ef_search: HNSW: candidates of a search.
        shards: Shards of a collection that is made; None is the server's default.
        replicas: Copies in memory of a collection that is made; with more than one, consistency must be strong.
        consistency: What reads wait for: ``strong`` for all that was written before, by anyone; ``bounded``,
            ``session`` or ``eventually`` for less, and writes then wait until they are seen.
    """

    scheme: ClassVar[str] = "milvus"
    objects: ClassVar[frozenset[str]] = frozenset({"client", "mapping"})

    host: str | None = None
    port: int | None = None
    user: str | None = None
    password: str | None = None
    token: str | None = None
    database: str | None = None
    partition: str | None = None
    tls: bool = False
    ca_file: str | None = None
    cert_file: str | None = None
    key_file: str | None = None
    server_name: str | None = None
    index: Literal["flat", "hnsw"] = "flat"
    m: int = 16
    ef_construction: int = 200
    ef_search: int = 200
    shards: int | None = None
    replicas: int | None = None
    consistency: Literal["strong", "bounded", "session", "eventually"] = "strong"

    @classmethod
    def from_url(cls, url: StoreURL) -> dict[str, Any]:
        """Return the parts of the URL; the path is the collection, a password without a user is a token."""
        if "/" in url.path:
            msg = f"{url.scheme}:// has the name of the collection as its path, without a slash in it"
            raise ConfigurationError(
                msg,
                hint="a database is chosen by database=; a collection whose name holds a slash is given as collection=",
            )
        parts = {
            "host": url.host,
            "port": url.port,
            "user": url.user or None,
            "password": url.password if url.user else None,
            "token": None if url.user else url.password,
            "tls": True if url.scheme == "milvuss" else None,
            "collection": url.path or None,
        }
        return {name: value for name, value in parts.items() if value is not None}


class MilvusLiteConfig(VectorStoreConfig, frozen=True, kw_only=True):
    """Options of `MilvusLiteVectorStore`.

    ``milvus-lite:///relative/file.db`` and ``milvus-lite:////absolute/file.db`` name the folder that Milvus Lite
    keeps its data in; its own clients want the name to end in ``.db``. The collection is a parameter:
    ``?collection=articles``.

    Attributes:
        path: The folder.
        index: ``flat`` compares all that match; ``hnsw`` makes new collections with an approximate index.
        m: HNSW: edges of a node, when a collection is made.
        ef_construction: HNSW: candidates while the index is made.
        ef_search: HNSW: candidates of a search.
        timeout: Seconds for each exchange (E4): Milvus Lite computes within this process, in Python.
    """

    scheme: ClassVar[str] = "milvus-lite"
    objects: ClassVar[frozenset[str]] = frozenset({"client", "mapping"})

    path: str | None = None
    index: Literal["flat", "hnsw"] = "flat"
    m: int = 16
    ef_construction: int = 200
    ef_search: int = 200
    timeout: float = LITE_TIMEOUT

    @classmethod
    def from_url(cls, url: StoreURL) -> dict[str, Any]:
        """Return ``path``."""
        if url.host is not None or url.user is not None or url.password is not None or url.port is not None:
            msg = "milvus-lite:// has neither host nor user nor port"
            raise ConfigurationError(
                msg,
                hint="a server is milvus://; a relative path has three slashes, as in milvus-lite:///file.db",
            )
        if not url.has_path:
            return {}
        if not url.path:
            msg = "milvus-lite:/// names no folder; is a variable behind it empty?"
            raise ConfigurationError(msg, hint="name it as in milvus-lite:///file.db")
        return {"path": url.path}
