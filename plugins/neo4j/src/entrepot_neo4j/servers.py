"""From the options of a store or memory to the server that they name."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from entrepot.errors import ConfigurationError
from entrepot_neo4j.sessions import Address, Server

PASSWORD: Final = "ENTREPOT_NEO4J_PASSWORD"  # noqa: S105 - the name of a variable
"""The environment variable with the password, where a user is named and none is given."""
_PORT: Final = 7687
_MOST_PORT: Final = 65_535
_MOST_POOL: Final = 1000


def server_of(  # noqa: PLR0913 - the options of the backend
    *,
    host: str | None,
    port: int | None,
    user: str | None,
    password: str | None,
    database: str | None,
    routing: bool,
    tls: bool,
    ca_file: str | None,
    pool_size: int,
    timeout: float,
    client: object,
) -> Server:
    """Return the server.

    Raises:
        ConfigurationError: An option is out of bounds, or two contradict each other.
    """
    check_range("pool_size", pool_size, 1, _MOST_POOL)
    if port is not None:
        check_range("port", port, 1, _MOST_PORT)
    if ca_file is not None and not tls:
        msg = "a file of certificates is given, and TLS is off"
        raise ConfigurationError(msg, hint="write neo4j+s:// or tls=True")
    if ca_file is not None and not Path(ca_file).is_file():
        msg = "ca_file names a file that is not there"
        raise ConfigurationError(msg, hint="a relative path is one from the working directory")
    if client is not None and (
        tls or not routing or any(part is not None for part in (host, port, user, password))
    ):
        msg = "the client says where the server is, and host, port, user, password or tls do as well"
        raise ConfigurationError(msg, hint="name the collection or memory alone, as in neo4j:///articles")
    if client is None and user is not None and password is None:
        password = os.environ.get(PASSWORD) or None
    if client is None and user is not None and password is None:
        msg = "a user is named, and no password"
        raise ConfigurationError(msg, hint=f"give one in the URL, as password=, or in {PASSWORD}")
    address = Address(
        host=host or "localhost",
        port=port or _PORT,
        routing=routing,
        login=None if password is None else (user or "neo4j", password),
        database=database,
        tls=tls,
        ca_file=ca_file,
        pool_size=pool_size,
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
