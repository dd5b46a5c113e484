"""From the options of a store or a memory to the server that they name."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from entrepot.errors import ConfigurationError
from entrepot_cassandra.names import quoted
from entrepot_cassandra.sessions import Address, Server

PASSWORD: Final = "ENTREPOT_CASSANDRA_PASSWORD"  # noqa: S105 - the name of a variable
"""The environment variable with the password, where a user is named and none is given."""
_PORT: Final = 9042
_MOST_PORT: Final = 65_535
_MOST_REPLICAS: Final = 100
_MOST_AT_ONCE: Final = 1000


def server_of(  # noqa: PLR0913 - the options of the backend
    *,
    host: str | None,
    port: int | None,
    user: str | None,
    password: str | None,
    keyspace: str | None,
    datacenter: str | None,
    consistency: str,
    create_keyspace: bool,
    replication: int,
    concurrency: int,
    tls: bool,
    ca_file: str | None,
    cert_file: str | None,
    key_file: str | None,
    check_hostname: bool,
    timeout: float,
    client: object,
) -> Server:
    """Return the server.

    Raises:
        ConfigurationError: An option is out of bounds, or two contradict each other.
    """
    if port is not None:
        check_range("port", port, 1, _MOST_PORT)
    check_range("replication", replication, 1, _MOST_REPLICAS)
    check_range("concurrency", concurrency, 1, _MOST_AT_ONCE)
    if consistency not in {"quorum", "local_quorum"}:
        msg = f"consistency must be 'quorum' or 'local_quorum', not {consistency!r}"
        raise ConfigurationError(msg)
    if keyspace is None:
        msg = "no keyspace is named"
        raise ConfigurationError(msg, hint="write cassandra://host/keyspace/name, or give keyspace=")
    quoted(keyspace)
    if not tls and any(part is not None for part in (ca_file, cert_file, key_file)):
        msg = "a certificate is given, and TLS is off"
        raise ConfigurationError(msg, hint="add tls=true")
    for name, file in (("ca_file", ca_file), ("cert_file", cert_file), ("key_file", key_file)):
        if file is not None and not Path(file).is_file():
            msg = f"{name} names a file that is not there"
            raise ConfigurationError(msg, hint="a relative path is one from the working directory")
    if key_file is not None and cert_file is None:
        msg = "key_file is given without the certificate it belongs to"
        raise ConfigurationError(msg, hint="give cert_file as well")
    given = (host, port, user, password, datacenter, tls or None)
    if client is not None and any(part is not None for part in given):
        msg = "the client says where the server is, and host, port, user, password, datacenter or tls do as well"
        raise ConfigurationError(msg, hint="name the keyspace alone, as in cassandra:///shop/articles")
    if client is None:
        if user is not None and password is None:
            password = os.environ.get(PASSWORD) or None
        if (user is None) is not (password is None):
            msg = "a login has a user and a password, and one of them is missing"
            raise ConfigurationError(
                msg, hint=f"give both in the URL or as arguments; a user's password may be in {PASSWORD}"
            )
    login = None if user is None or password is None else (user, password)
    address = Address(
        host=host or "localhost",
        port=port or _PORT,
        login=login,
        datacenter=datacenter,
        tls=tls,
        ca_file=ca_file,
        cert_file=cert_file,
        key_file=key_file,
        check_hostname=check_hostname,
    )
    return Server(
        address,
        keyspace=keyspace,
        local=consistency == "local_quorum",
        replication=replication if create_keyspace else None,
        concurrency=concurrency,
        timeout=timeout,
        client=client,
    )


def check_range(name: str, value: object, least: int, most: int) -> None:
    """Refuse a number that is out of bounds.

    Raises:
        ConfigurationError: It is, or it is no int.
    """
    if type(value) is not int or not least <= value <= most:
        msg = f"{name} must be an int from {least} to {most}, not {value!r}"
        raise ConfigurationError(msg)
