"""From the options of a store to the server that they name."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from entrepot.errors import ConfigurationError
from entrepot_elasticsearch.sessions import Address, Server

PASSWORD: Final = "ENTREPOT_ELASTICSEARCH_PASSWORD"  # noqa: S105 - the name of a variable
"""The environment variable with the password, where a user is named and none is given."""
API_KEY: Final = "ENTREPOT_ELASTICSEARCH_API_KEY"
"""The environment variable with the API key, where neither a user nor a key is given."""
_PORT: Final = 9200
_MOST_PORT: Final = 65_535
_MOST_POOL: Final = 1000


def server_of(  # noqa: PLR0913 - the options of the backend
    *,
    host: str | None,
    port: int | None,
    user: str | None,
    password: str | None,
    api_key: str | None,
    tls: bool,
    ca_file: str | None,
    cert_file: str | None,
    key_file: str | None,
    fingerprint: str | None,
    prefix: str | None,
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
    if not tls and any(part is not None for part in (ca_file, cert_file, key_file, fingerprint)):
        msg = "a certificate is given, and TLS is off"
        raise ConfigurationError(msg, hint="write elasticsearch+https:// or tls=True")
    for name, file in (("ca_file", ca_file), ("cert_file", cert_file), ("key_file", key_file)):
        if file is not None and not Path(file).is_file():
            msg = f"{name} names a file that is not there"
            raise ConfigurationError(msg, hint="a relative path is one from the working directory")
    if key_file is not None and cert_file is None:
        msg = "key_file is given without the certificate it belongs to"
        raise ConfigurationError(msg, hint="give cert_file as well")
    given = (host, port, user, password, api_key, tls or None, prefix)
    if client is not None and any(part is not None for part in given):
        msg = "the client says where the server is, and host, port, user, password, api_key, tls or prefix do as well"
        raise ConfigurationError(msg, hint="name the collection alone, as in elasticsearch:///articles")
    if api_key is not None and (user is not None or password is not None):
        msg = "both an API key and a user or password are given"
        raise ConfigurationError(msg, hint="log in by one of them")
    if client is None:
        if user is not None and password is None:
            password = os.environ.get(PASSWORD) or None
        if user is not None and password is None:
            msg = "a user is named, and no password"
            raise ConfigurationError(msg, hint=f"give one in the URL, as password=, or in {PASSWORD}")
        if user is None and password is None and api_key is None:
            api_key = os.environ.get(API_KEY) or None
    login = None if password is None else (user or "elastic", password)
    address = Address(
        host=host or "localhost",
        port=port or _PORT,
        tls=tls,
        prefix=("/" + prefix.strip("/")).rstrip("/") if prefix else "",
        login=login,
        api_key=api_key,
        ca_file=ca_file,
        cert_file=cert_file,
        key_file=key_file,
        fingerprint=fingerprint,
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
