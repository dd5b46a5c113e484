"""What ``cassandra://`` means to `open_vector_store` and `open_chat_memory`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal

from entrepot.errors import ConfigurationError
from entrepot.opening import ChatMemoryConfig, VectorStoreConfig

if TYPE_CHECKING:
    from entrepot.urls import StoreURL

Consistency = Literal["quorum", "local_quorum"]


class CassandraConfig(VectorStoreConfig, frozen=True, kw_only=True):
    """Options of `CassandraVectorStore`: ``cassandra://[user[:password]@][host][:port]/keyspace/collection``.

    Attributes:
        host: A node; the driver finds the others.
        port: Its port.
        user: Who logs in.
        password: The password, by default that of the environment variable ENTREPOT_CASSANDRA_PASSWORD; never
            shown.
        keyspace: The keyspace, its letters as they are written.
        datacenter: The data centre whose nodes are asked; by default that of the first node.
        consistency: ``quorum`` counts the replicas of all data centres, ``local_quorum`` those of this one.
        create_keyspace: Whether to make a missing keyspace.
        replication: Replicas of each row in a keyspace that is made.
        concurrency: Statements under way at a time, for one call.
        slots: Keys of a collection that is made whose ranges the engine answers, as they first come.
        tls: Whether to use TLS.
        ca_file: TLS: the file of certificates to trust instead of the system's.
        cert_file: TLS: the client's own certificate.
        key_file: TLS: its key.
        check_hostname: TLS: whether the certificate must be the host's.
    """

    scheme: ClassVar[str] = "cassandra"
    objects: ClassVar[frozenset[str]] = frozenset({"client"})

    host: str | None = None
    port: int | None = None
    user: str | None = None
    password: str | None = None
    keyspace: str | None = None
    datacenter: str | None = None
    consistency: Consistency = "quorum"
    create_keyspace: bool = False
    replication: int = 1
    concurrency: int = 4
    slots: int = 8
    tls: bool = False
    ca_file: str | None = None
    cert_file: str | None = None
    key_file: str | None = None
    check_hostname: bool = True

    @classmethod
    def from_url(cls, url: StoreURL) -> dict[str, Any]:
        """Return the parts of the URL; the path is the keyspace and the collection, or the collection alone."""
        return _parts(url, "collection")


class CassandraMemoryConfig(ChatMemoryConfig, frozen=True, kw_only=True):
    """Options of `CassandraChatMemoryRepository`: ``cassandra://[user[:password]@][host][:port]/keyspace/memory``.

    Attributes:
        memory: The name of the memory; each has a table of its own.

    The others are those of `CassandraConfig`.
    """

    scheme: ClassVar[str] = "cassandra"
    objects: ClassVar[frozenset[str]] = frozenset({"client"})

    memory: str = "chat"
    host: str | None = None
    port: int | None = None
    user: str | None = None
    password: str | None = None
    keyspace: str | None = None
    datacenter: str | None = None
    consistency: Consistency = "quorum"
    create_keyspace: bool = False
    replication: int = 1
    tls: bool = False
    ca_file: str | None = None
    cert_file: str | None = None
    key_file: str | None = None
    check_hostname: bool = True

    @classmethod
    def from_url(cls, url: StoreURL) -> dict[str, Any]:
        """Return the parts of the URL; the path is the keyspace and the name of the memory."""
        return _parts(url, "memory")


def _parts(url: StoreURL, what: str) -> dict[str, Any]:
    names = url.path.split("/") if url.path else []
    if len(names) > 2 or not all(names):  # noqa: PLR2004 - keyspace and name
        msg = f"{url.scheme}:// has the keyspace and the name of the {what} as its path, as in /shop/articles"
        raise ConfigurationError(
            msg, hint=f"what holds a slash is given as {what}=, and its keyspace as keyspace="
        )
    name = names.pop() if names else None
    keyspace = names.pop() if names else None
    parts = {
        "host": url.host,
        "port": url.port,
        "user": url.user or None,
        "password": url.password,
        "keyspace": keyspace,
        what: name,
    }
    return {given: value for given, value in parts.items() if value is not None}
