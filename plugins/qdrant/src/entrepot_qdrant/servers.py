"""From the options of a store to what it works on."""

from __future__ import annotations

import os
from typing import Final

from entrepot.errors import ConfigurationError
from entrepot_qdrant.local import is_local
from entrepot_qdrant.sessions import Address, Server

API_KEY: Final = "QDRANT_API_KEY"
"""The environment variable that holds the API key."""
_PORT: Final = 6333
_GRPC_PORT: Final = 6334
_MOST_PORT: Final = 65_535
_MOST_POOL: Final = 1000


def server_of(  # noqa: PLR0913 - the options of the backend
    *,
    host: str | None,
    port: int | None,
    api_key: str | None,
    tls: bool,
    ca_file: str | None,
    prefix: str | None,
    grpc: bool,
    grpc_port: int | None,
    pool_size: int,
    timeout: float,
    client: object,
) -> Server:
    """Return the server.

    Raises:
        ConfigurationError: An option is out of bounds, or two contradict each other.
    """
    check_range("pool_size", pool_size, 1, _MOST_POOL)
    for name, value in (("port", port), ("grpc_port", grpc_port)):
        if value is not None:
            check_range(name, value, 1, _MOST_PORT)
    if ca_file is not None and not tls:
        msg = "a file of certificates is given, and TLS is off"
        raise ConfigurationError(msg, hint="write qdrants:// or tls=True")
    if ca_file is not None and grpc:
        msg = "gRPC trusts the certificates of the system, and a file of certificates is given"
        raise ConfigurationError(msg, hint="use REST, or give a client")
    if grpc_port is not None and not grpc:
        msg = "a port for gRPC is given, and gRPC is off"
        raise ConfigurationError(msg, hint="write grpc=true")
    given = (host, port, api_key, tls or None, prefix, grpc or None)
    if client is not None and any(part is not None for part in given):
        msg = "the client says where the server is, and host, port, api_key, tls, prefix or grpc do as well"
        raise ConfigurationError(msg, hint="name the collection alone, as in qdrant:///articles")
    if client is not None and is_local(client):
        msg = "the client is in local mode"
        raise ConfigurationError(msg, hint="clients in local mode go with qdrant-local://")
    if api_key is None and client is None:
        api_key = os.environ.get(API_KEY) or None
    address = Address(
        host or "localhost",
        port or _PORT,
        (grpc_port or _GRPC_PORT) if grpc else None,
        api_key,
        tls,
        ca_file,
        prefix,
        pool_size,
    )
    return Server(address, timeout=timeout, client=client)


def check_range(name: str, value: object, least: int, most: int) -> None:
    """Refuse a number that is out of bounds.

    Raises:
        ConfigurationError: It is, or it is no int.
    """
    if type(value) is not int or not least <= value <= most:
        msg = f"{name} must be an int from {least} to {most}, not {value!r}"
        raise ConfigurationError(msg)
