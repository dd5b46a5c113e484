"""What ``pinecone://`` means to `open_vector_store`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from entrepot.errors import ConfigurationError
from entrepot.opening import VectorStoreConfig

if TYPE_CHECKING:
    from entrepot.urls import StoreURL

SCHEMES = ("pinecone", "pinecone+https", "pinecone+http")


class PineconeConfig(VectorStoreConfig, frozen=True, kw_only=True):
    """Options of `PineconeVectorStore`: ``pinecone://index``, or ``pinecone+http://[:key@]host[:port]/index``.

    The first is an index of the service, the second one of another server of its API, such as one for tests.

    Attributes:
        api_key: The API key, by default that of the environment variable PINECONE_API_KEY; never shown.
        namespace: The namespace of the index that holds the documents; the default one if it is empty.
        control: Where indexes are described, made and deleted: ``https://api.pinecone.io`` unless the URL names
            a server, or the environment variable PINECONE_CONTROLLER_HOST.
        host: Where the index itself answers, as the console shows it; the control plane tells it if none is given.
        cloud: Where a new index is made: ``aws``, ``gcp`` or ``azure``.
        region: The region of that cloud.
        pool_size: Most connections at a time; for async use, in each event loop.
    """

    scheme: ClassVar[str] = "pinecone"
    objects: ClassVar[frozenset[str]] = frozenset({"client"})
    takes_driver: ClassVar[bool] = True

    api_key: str | None = None
    namespace: str = ""
    control: str | None = None
    host: str | None = None
    cloud: str = "aws"
    region: str = "us-east-1"
    pool_size: int = 8

    @classmethod
    def from_url(cls, url: StoreURL) -> dict[str, Any]:
        """Return the parts of the URL: its host is the index, unless a path follows, which then is the index."""
        if url.scheme not in SCHEMES:
            msg = f"{url.scheme}:// is no scheme of Pinecone"
            raise ConfigurationError(msg, hint="write pinecone://index, or pinecone+http://host:port/index")
        if "/" in url.path:
            msg = f"{url.scheme}:// has the name of the index as its path, without a slash in it"
            raise ConfigurationError(msg, hint="a collection whose name holds one is given as collection=")
        if url.user:
            msg = f"{url.scheme}:// takes an API key and no user"
            raise ConfigurationError(
                msg, hint="write the key where a password stands, as in pinecone://:key@index"
            )
        parts: dict[str, Any] = {"api_key": url.password}
        if url.has_path or url.port is not None:
            kind = "http" if url.scheme == "pinecone+http" else "https"
            if url.host is not None:
                host = f"[{url.host}]" if ":" in url.host else url.host
                port = "" if url.port is None else f":{url.port}"
                parts["control"] = f"{kind}://{host}{port}"
            parts["collection"] = url.path or None
        elif url.scheme != "pinecone":
            msg = f"{url.scheme}:// names a server, and then the index as its path"
            raise ConfigurationError(msg, hint=f"such as {url.scheme}://127.0.0.1:5080/articles")
        else:
            parts["collection"] = url.host
        return {name: value for name, value in parts.items() if value is not None}
