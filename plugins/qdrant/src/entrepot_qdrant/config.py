"""What ``qdrant://``, ``qdrants://`` and ``qdrant-local://`` mean to `open_vector_store`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal

from entrepot.errors import ConfigurationError
from entrepot.opening import VectorStoreConfig

if TYPE_CHECKING:
    from collections.abc import Iterator

    from entrepot.opening import BackendConfig
    from entrepot.urls import StoreURL


class QdrantConfig(VectorStoreConfig, frozen=True, kw_only=True):
    """Options of `QdrantVectorStore`: ``qdrant://[:key@][host][:port]/collection``.

    Attributes:
        host: The server.
        port: Its port for REST.
        api_key: The API key, by default that of the environment variable QDRANT_API_KEY; never shown.
        tls: Whether to use TLS; ``qdrants://`` does.
        ca_file: TLS over REST: the file of certificates to trust instead of the system's.
        prefix: What stands before the paths of the server, behind a proxy.
        grpc: Whether to use gRPC where the client can.
        grpc_port: The port for gRPC.
        pool_size: Most connections at a time; for async use, in each event loop.
        index: ``hnsw`` makes new collections with an approximate index, ``flat`` compares all that match.
        m: HNSW: edges of a node, when a collection is made.
        ef_construction: HNSW: candidates while the index is made.
        ef_search: HNSW: candidates of a search.
        quantization: HNSW: ``scalar`` or ``binary`` keeps small copies of the vectors to search in; what is
            found is scored by the vectors themselves.
        oversampling: Quantization: how many times k candidates are scored anew.
        shards: Shards of a new collection.
        replicas: Copies of each shard of a new collection.
        ordering: What a cluster promises about the order of writes: ``weak``, ``medium`` or ``strong``.
        consistency: From how many replicas a cluster reads: a number, ``majority``, ``quorum`` or ``all``.
        max_indexes: Most payload indexes of a collection; ranges of further keys are answered without one.
        average_words: FULLTEXT: the words of a text of average length, for new documents.
    """

    scheme: ClassVar[str] = "qdrant"
    objects: ClassVar[frozenset[str]] = frozenset({"client", "mapping"})

    host: str | None = None
    port: int | None = None
    api_key: str | None = None
    tls: bool = False
    ca_file: str | None = None
    prefix: str | None = None
    grpc: bool = False
    grpc_port: int | None = None
    pool_size: int = 8
    index: Literal["flat", "hnsw"] = "hnsw"
    m: int = 16
    ef_construction: int = 128
    ef_search: int = 128
    quantization: Literal["scalar", "binary"] | None = None
    oversampling: float = 3.0
    shards: int | None = None
    replicas: int | None = None
    ordering: Literal["weak", "medium", "strong"] = "weak"
    consistency: int | Literal["majority", "quorum", "all"] | None = None
    max_indexes: int = 64
    average_words: float = 256.0

    @classmethod
    def from_url(cls, url: StoreURL) -> dict[str, Any]:
        """Return the parts of the URL; the password is the API key, the path is the collection."""
        if url.user:
            msg = f"{url.scheme}:// has no user"
            raise ConfigurationError(msg, hint="an API key is given as in qdrants://:key@host/collection")
        if "/" in url.path:
            msg = f"{url.scheme}:// has the name of the collection as its path, without a slash in it"
            raise ConfigurationError(msg, hint="a collection whose name holds one is given as collection=")
        parts = {
            "host": url.host,
            "port": url.port,
            "api_key": url.password or None,
            "tls": True if url.scheme == "qdrants" else None,
            "collection": url.path or None,
        }
        return {name: value for name, value in parts.items() if value is not None}

    def __repr__(self) -> str:
        """Return the options without the API key."""
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in _shown(self))})"

    __str__ = __repr__

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        """Return the options without the API key, for rich."""
        return list(_shown(self))


class QdrantLocalConfig(VectorStoreConfig, frozen=True, kw_only=True):
    """Options of `QdrantLocalVectorStore`.

    ``qdrant-local://`` is a database in memory of the store alone, ``qdrant-local://name`` one that stores of
    this process share, ``qdrant-local:///relative/folder`` and ``qdrant-local:////absolute/folder`` a folder.
    The collection is a parameter: ``?collection=articles``.

    Attributes:
        path: The folder.
        memory: The name of a database in memory.
        average_words: FULLTEXT: the words of a text of average length, for new documents.
    """

    scheme: ClassVar[str] = "qdrant-local"
    objects: ClassVar[frozenset[str]] = frozenset({"client", "mapping"})

    path: str | None = None
    memory: str | None = None
    average_words: float = 256.0

    @classmethod
    def from_url(cls, url: StoreURL) -> dict[str, Any]:
        """Return ``path`` for a folder, ``memory`` for a name, nothing for a private database."""
        if url.user is not None or url.password is not None or url.port is not None:
            msg = "qdrant-local:// has neither user nor port"
            raise ConfigurationError(
                msg, hint="a server is qdrant://; a relative folder is qdrant-local:///folder"
            )
        if url.host is not None and url.has_path:
            msg = f"qdrant-local:// has either a name or a folder, not {url.host!r} and a path"
            raise ConfigurationError(
                msg, hint="a relative folder has three slashes; the collection is ?collection=name"
            )
        if url.host is not None:
            return {"memory": url.host}
        if not url.has_path:
            return {}
        if not url.path:
            msg = "qdrant-local:/// names no folder; is a variable behind it empty?"
            raise ConfigurationError(
                msg, hint="a folder is qdrant-local:///folder; qdrant-local:// alone is in memory"
            )
        return {"path": url.path}


def _shown(config: BackendConfig) -> Iterator[tuple[str, object]]:
    for name in config.__struct_fields__:
        value = getattr(config, name)
        if value is not None:
            yield name, "***" if name == "api_key" else value
