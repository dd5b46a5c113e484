"""A connection of the driver that notices its end.

The driver's reactor libev takes an end of the stream for one only where no part of an answer has come before it. Where an
answer breaks off in the middle, whoever waits for it would wait until the time is up, and the reactor's thread would spin
(cassandra-driver 3.30.1, `LibevConnection.handle_read`). So an end of the stream is told to it as an error of the socket.
"""

from __future__ import annotations

import errno
from typing import Any

from entrepot_cassandra.driver import (
    DefaultConnection,
)


class _Socket:
    """A socket whose end is an error."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def recv(self, size: int) -> bytes:
        data: bytes = self._inner.recv(size)
        if not data:
            raise ConnectionResetError(errno.ECONNRESET, "the server closed the connection")
        return data

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


class EndingConnection(DefaultConnection):  # type: ignore[misc]
    """The reactor's own connection, over a socket whose end is an error."""

    def _connect_socket(self) -> None:
        parent: Any = super()
        parent._connect_socket()  # noqa: SLF001 - of the class that this one extends
        self._socket: Any = _Socket(self._socket)


def connection_class() -> Any:
    """Return the class of connections: where the reactor is not one that reads by `recv`, the driver's own."""
    return EndingConnection if DefaultConnection.__name__ == "LibevConnection" else DefaultConnection
