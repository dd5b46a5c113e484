"""From the options of a store to the service that they name."""

from __future__ import annotations

import os
import re
from typing import Final
from urllib.parse import urlsplit

from entrepot.errors import ConfigurationError
from entrepot_pinecone.sessions import Address, Server, is_loopback

API_KEY: Final = "PINECONE_API_KEY"
"""The environment variable with the API key, where none is given."""
CONTROLLER: Final = "PINECONE_CONTROLLER_HOST"
"""The environment variable with the URL of the control plane, where none is given."""
_SERVICE: Final = "https://api.pinecone.io"
_NO_KEY: Final = "pclocal"
"""What servers on this machine are told where no key is given; the emulators for tests ask for none, or for this."""
_KEY: Final = re.compile(r"[!-~]+")
_MOST_POOL: Final = 1000


def server_of(
    *,
    api_key: str | None = None,
    control: str | None = None,
    pool_size: int = 8,
    timeout: float,
    client: object = None,
) -> Server:
    """Return the service, or another server of its API.

    Raises:
        ConfigurationError: An option is out of bounds, or there is no API key.
    """
    check_range("pool_size", pool_size, 1, _MOST_POOL)
    base = checked_url("control", control or os.environ.get(CONTROLLER) or _SERVICE, "https")
    key = api_key or os.environ.get(API_KEY) or (_NO_KEY if is_loopback(base) else None)
    if key is None:
        msg = "there is no API key"
        raise ConfigurationError(msg, hint=f"give one as api_key=, in the URL, or in {API_KEY}")
    if not _KEY.fullmatch(key):
        msg = "the API key has characters that none has"
        raise ConfigurationError(msg, hint="copy it anew; a line end at its end is no part of it")
    return Server(Address(base, key, pool_size), timeout=timeout, client=client)


def checked_url(name: str, url: str, scheme: str) -> str:
    """Return the URL of a server, without a slash at its end; one without a scheme gets this one.

    Raises:
        ConfigurationError: It is none.
    """
    full = (url if "://" in url else f"{scheme}://{url}").rstrip("/")
    try:
        parts = urlsplit(full)
        fits = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        fits = False
        parts = urlsplit("")
    if not fits or "@" in parts.netloc or parts.query or parts.fragment:
        msg = f"{name} must be the URL of a server"
        raise ConfigurationError(msg, hint="such as https://articles-abc123.svc.aped-4627-b74a.pinecone.io")
    return full


def check_range(name: str, value: object, least: int, most: int) -> None:
    """Refuse a number that is out of bounds.

    Raises:
        ConfigurationError: It is, or it is no int.
    """
    if type(value) is not int or not least <= value <= most:
        msg = f"{name} must be an int from {least} to {most}, not {value!r}"
        raise ConfigurationError(msg)
