"""From the options of a store or a memory to the server that they name."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final

from entrepot.errors import ConfigurationError
from entrepot_redis.sessions import Address, Server

if TYPE_CHECKING:
    from collections.abc import Mapping

PASSWORD: Final = "ENTREPOT_REDIS_PASSWORD"  # noqa: S105 - the name of a variable
"""The environment variable with the password, where none is given and the server is."""
_PORT: Final = 6379
_MOST_PORT: Final = 65_535
_MOST_POOL: Final = 1000


def server_of(  # noqa: PLR0913 - the options of a server
    *,
    host: str | None,
    port: int | None,
    user: str | None,
    password: str | None,
    db: int,
    tls: bool,
    ca_file: str | None,
    cert_file: str | None,
    key_file: str | None,
    check_hostname: bool,
    pool_size: int,
    protocol: int,
    timeout: float,
    client: object,
) -> Server:
    """Return the server.

    Raises:
        ConfigurationError: An option is out of bounds, or the client says what options say as well.
    """
    if type(pool_size) is not int or not 1 <= pool_size <= _MOST_POOL:
        msg = f"pool_size must be an int from 1 to {_MOST_POOL}, not {pool_size!r}"
        raise ConfigurationError(msg)
    if protocol not in {2, 3}:
        msg = f"protocol must be 2 or 3, not {protocol!r}"
        raise ConfigurationError(msg)
    if port is not None and (type(port) is not int or not 1 <= port <= _MOST_PORT):
        msg = f"port must be an int from 1 to {_MOST_PORT}, not {port!r}"
        raise ConfigurationError(msg)
    if type(db) is not int or db < 0:
        msg = f"db must be an int of at least 0, not {db!r}"
        raise ConfigurationError(msg)
    files = {"ssl_ca_certs": ca_file, "ssl_certfile": cert_file, "ssl_keyfile": key_file}
    if not tls and any(file is not None for file in files.values()):
        msg = "a file of certificates is given, and TLS is off"
        raise ConfigurationError(msg, hint="write rediss:// or tls=True")
    given = (host, port, user, password, db or None, tls or None)
    if client is not None and any(part is not None for part in given):
        msg = "the client says where the server is, and host, port, user, password, db or tls do as well"
        raise ConfigurationError(msg, hint="name the collection alone, as in redis:///articles")
    if password is None and client is None:
        password = os.environ.get(PASSWORD) or None
    options: Mapping[str, Any] | None = None
    if tls:
        options = {
            "ssl_check_hostname": check_hostname,
            **{name: file for name, file in files.items() if file is not None},
        }
    address = Address(host or "localhost", port or _PORT, db, user, password, protocol, options)
    return Server(address, pool_size=pool_size, timeout=timeout, client=client)
