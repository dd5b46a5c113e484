"""From the options of a store or a memory to the server that they name."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final

from entrepot.errors import ConfigurationError
from entrepot_mongodb.names import check_database
from entrepot_mongodb.sessions import Address, Server

PASSWORD: Final = "ENTREPOT_MONGODB_PASSWORD"  # noqa: S105 - the name of a variable
"""The environment variable with the password, where a user is named and none is given."""
_MOST_PORT: Final = 65_535
_MOST_POOL: Final = 1000


def server_of(  # noqa: PLR0913 - the options of the backend
    *,
    host: str | None = None,
    port: int | None = None,
    user: str | None = None,
    password: str | None = None,
    database: str = "entrepot",
    hosts: str | None = None,
    srv: bool = False,
    replica_set: str | None = None,
    direct: bool | None = None,
    auth_source: str | None = None,
    auth_mechanism: str | None = None,
    tls: bool | None = None,
    ca_file: str | None = None,
    cert_file: str | None = None,
    check_hostname: bool = True,
    pool_size: int = 8,
    timeout: float,
    client: object = None,
) -> Server:
    """Return the server.

    Raises:
        ConfigurationError: An option is out of bounds, or two contradict each other.
    """
    check_range("pool_size", pool_size, 1, _MOST_POOL)
    check_database(database)
    if port is not None:
        check_range("port", port, 1, _MOST_PORT)
    others = tuple(part.strip() for part in hosts.split(",")) if hosts else ()
    if not all(others):
        msg = "hosts names a server without a name"
        raise ConfigurationError(msg, hint="such as hosts=b.example.org:27017,c.example.org")
    if srv and (port is not None or others or direct):
        msg = "mongodb+srv:// finds servers and ports by DNS, and port, hosts or direct name some as well"
        raise ConfigurationError(msg, hint="write mongodb:// with a port, or leave it out")
    if direct and others:
        msg = "direct speaks with one server alone, and hosts names others"
        raise ConfigurationError(msg)
    if tls is not True and not srv and (ca_file is not None or cert_file is not None):
        msg = "a certificate is given, and TLS is off"
        raise ConfigurationError(msg, hint="write tls=true")
    for name, file in (("ca_file", ca_file), ("cert_file", cert_file)):
        if file is not None and not Path(file).is_file():
            msg = f"{name} names a file that is not there"
            raise ConfigurationError(msg, hint="a relative path is one from the working directory")
    told: dict[str, Any] = {
        "replicaSet": replica_set,
        "directConnection": direct,
        "authSource": auth_source,
        "authMechanism": auth_mechanism,
        "tls": tls,
        "tlsCAFile": ca_file,
        "tlsCertificateKeyFile": cert_file,
        "tlsAllowInvalidHostnames": None if check_hostname else True,
    }
    options = {name: value for name, value in told.items() if value is not None}
    if client is not None and (
        options or srv or others or any(p is not None for p in (host, port, user, password))
    ):
        msg = "the client says where the server is and how to log in, and other options do as well"
        raise ConfigurationError(
            msg, hint="name database and collection alone, as in mongodb:///app/articles"
        )
    if password is not None and user is None:
        msg = "a password is given, and no user"
        raise ConfigurationError(msg, hint="name the user in the URL, or as user=")
    if client is None and user is not None and password is None:
        password = os.environ.get(PASSWORD) or None
    if user is not None and password is None and auth_mechanism is None:
        msg = "a user is named, and no password"
        raise ConfigurationError(msg, hint=f"give one in the URL, as password=, or in {PASSWORD}")
    address = Address(
        host=host or "localhost",
        port=port,
        hosts=others,
        srv=srv,
        database=database,
        options=options,
        login=None if user is None else (user, password),
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
