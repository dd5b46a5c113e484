"""The options of this backend, and what a URL says."""

from __future__ import annotations

import os
from typing import ClassVar

# memory: begin
from entrepot.opening import ChatMemoryConfig, VectorStoreConfig

# memory: else
from entrepot.opening import VectorStoreConfig

# memory: end
from entrepot.urls import StoreURL

PASSWORD = "SHELF_PASSWORD"  # noqa: S105
"""The environment variable that holds a password, where neither URL nor argument gives one."""


class ShelfConfig(VectorStoreConfig, frozen=True, kw_only=True):
    """A collection of Shelf: ``shelf://:password@host:port/collection``.

    Attributes:
        host: The server.
        port: Its port.
        password: Of the server; SHELF_PASSWORD if not given.
    """

    scheme: ClassVar[str] = "shelf"

    host: str = "localhost"
    port: int = 7000
    password: str | None = None

    @classmethod
    def from_url(cls, url: StoreURL) -> dict[str, object]:
        """Return the options that the parts of a URL give; parameters behind ``?`` are added by the core."""
        return _address(url, path="collection")


# memory: begin
class ShelfMemoryConfig(ChatMemoryConfig, frozen=True, kw_only=True):
    """Conversations in Shelf: ``shelf://:password@host:port/name``.

    Attributes:
        host: The server.
        port: Its port.
        password: Of the server; SHELF_PASSWORD if not given.
        name: Which of the server's memories.
    """

    scheme: ClassVar[str] = "shelf"

    host: str = "localhost"
    port: int = 7000
    password: str | None = None
    name: str = "conversations"

    @classmethod
    def from_url(cls, url: StoreURL) -> dict[str, object]:
        """Return the options that the parts of a URL give."""
        return _address(url, path="name")


# memory: end
def _address(url: StoreURL, path: str) -> dict[str, object]:
    parts = {"host": url.host, "port": url.port, "password": url.password, path: url.path}
    return {name: value for name, value in parts.items() if value}


def password_of(given: str | None) -> str | None:
    """Return the password of the argument, or else of the environment."""
    return given or os.environ.get(PASSWORD)
