"""From the options of a store to the server that they name."""

from __future__ import annotations

import os
from typing import Final

from entrepot.errors import ConfigurationError
from entrepot_milvus.sessions import Address, Server

TOKEN: Final = "MILVUS_TOKEN"  # noqa: S105 - the name of a variable
"""The environment variable that holds the token."""
_PORT: Final = 19_530
_MOST_PORT: Final = 65_535


def server_of(  # noqa: PLR0913 - the options of a server
    *,
    host: str | None,
    port: int | None,
    user: str | None,
    password: str | None,
    token: str | None,
    database: str | None,
    tls: bool,
    ca_file: str | None,
    cert_file: str | None,
    key_file: str | None,
    server_name: str | None,
    timeout: float,
    client: object,
) -> Server:
    """Return the server.

    Raises:
        ConfigurationError: An option is out of bounds, or two contradict each other.
    """
    if port is not None:
        check_range("port", port, 1, _MOST_PORT)
    if (user is None) is not (password is None):
        msg = "a login has user and password, and one of them is missing"
        raise ConfigurationError(msg, hint="a token alone is given as token=, or as in milvus://:token@host")
    if token is not None and user is not None:
        msg = "a login is a token, or user and password, and not both"
        raise ConfigurationError(msg)
    files = (ca_file, cert_file, key_file, server_name)
    if not tls and any(file is not None for file in files):
        msg = "something about certificates is given, and TLS is off"
        raise ConfigurationError(msg, hint="write milvuss:// or tls=True")
    if (cert_file is None) is not (key_file is None):
        msg = "a certificate of the client's own goes with its key, and one of them is missing"
        raise ConfigurationError(msg)
    if cert_file is not None and ca_file is None:
        msg = "a certificate of the client's own needs ca_file as well"
        raise ConfigurationError(msg, hint="ca_file names the certificates to trust")
    given = (host, port, user, token, database, tls or None)
    if client is not None and any(part is not None for part in given):
        msg = "the client says where the server is, and host, port, login, database or tls do as well"
        raise ConfigurationError(msg, hint="name the collection alone, as in milvus:///articles")
    if user is not None:
        token = f"{user}:{password}"
    elif token is None and client is None:
        token = os.environ.get(TOKEN) or None
    options = _files(ca_file, cert_file, key_file, server_name) if tls else None
    return Server(
        Address(host or "localhost", port or _PORT, token, database, options), timeout=timeout, client=client
    )


def _files(
    ca_file: str | None, cert_file: str | None, key_file: str | None, server_name: str | None
) -> dict[str, str]:
    """Return what the driver is told: it calls the trusted certificates otherwise if there is one of its own."""
    names = {
        "server_pem_path" if cert_file is None else "ca_pem_path": ca_file,
        "client_pem_path": cert_file,
        "client_key_path": key_file,
        "server_name": server_name,
    }
    return {name: value for name, value in names.items() if value is not None}


def check_range(name: str, value: object, least: int, most: int) -> None:
    """Refuse a number that is out of bounds.

    Raises:
        ConfigurationError: It is, or it is no int.
    """
    if type(value) is not int or not least <= value <= most:
        msg = f"{name} must be an int from {least} to {most:,}, not {value!r}"
        raise ConfigurationError(msg)
