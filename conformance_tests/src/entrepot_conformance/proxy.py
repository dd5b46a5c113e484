"""A TCP proxy that harms what goes through it: answers that come late, break off, or never come."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final, Self

if TYPE_CHECKING:
    from collections.abc import Generator

_CHUNK: Final = 65_536


class Proxy:
    """Forwards connections on a port of loopback to a server, and harms them when told to.

    Args:
        host: Of the server.
        port: Of the server.

    Attributes:
        port: Where the proxy listens, on 127.0.0.1.
        harmed: How often it has harmed a connection.
    """

    def __init__(self, host: str, port: int) -> None:
        self._server = (host, port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.harmed = 0
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._delay = 0.0
        self._left: int | None = None
        self._times = 0
        self._cut_at = 0
        self._lose_requests = False
        self._closed = threading.Event()
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Self:
        """Nothing more: it runs already."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the proxy and all its connections."""
        self._closed.set()
        self._listener.close()
        self.break_all()

    def break_all(self) -> None:
        """Break every connection."""
        with self._lock:
            doomed, self._open = self._open, set()
        for one in doomed:
            _shut(one)

    @contextmanager
    def delaying(self, seconds: float) -> Generator[None]:
        """Hold every answer back for so many seconds."""
        self._delay = seconds
        try:
            yield
        finally:
            self._delay = 0.0

    @contextmanager
    def cutting(self, after: int, times: int = 1_000_000) -> Generator[None]:
        """Break a connection once so many more bytes of answers have passed; the last of them does pass.

        Args:
            after: Bytes of answers, of all connections together, that still pass; 0 loses the answer whole.
            times: How many connections are broken so, one after the other.
        """
        with self._lock:
            self._cut_at, self._left, self._times = after, after, times
        try:
            yield
        finally:
            with self._lock:
                self._left, self._times = None, 0

    @contextmanager
    def losing_requests(self) -> Generator[None]:
        """Break a connection as soon as the client sends anything: the server never hears of it."""
        self._lose_requests = True
        try:
            yield
        finally:
            self._lose_requests = False

    def _accept(self) -> None:
        while not self._closed.is_set():
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(self._server, timeout=10)
            except OSError:
                _shut(client)
                continue
            server.settimeout(None)
            for one in (client, server):
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self._lock:
                self._open |= {client, server}
            threading.Thread(target=self._requests, args=(client, server), daemon=True).start()
            threading.Thread(target=self._answers, args=(client, server), daemon=True).start()

    def _requests(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while data := client.recv(_CHUNK):
                if self._lose_requests:
                    self.harmed += 1
                    break
                server.sendall(data)
        self._end(client, server)

    def _answers(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while data := server.recv(_CHUNK):
                if self._delay:
                    self.harmed += 1
                    time.sleep(self._delay)
                allowed = self._allowed(len(data))
                client.sendall(data[:allowed])
                if allowed < len(data) or allowed == 0:
                    break
        self._end(client, server)

    def _allowed(self, size: int) -> int:
        """Return how many of so many bytes pass; fewer than all means that the connection breaks then."""
        with self._lock:
            if self._left is None or self._times == 0:
                return size
            if size <= self._left:
                self._left -= size
                return size
            allowed, self._left = self._left, self._cut_at
            self._times -= 1
            self.harmed += 1
            return allowed

    def _end(self, *ends: socket.socket) -> None:
        with self._lock:
            self._open -= set(ends)
        for one in ends:
            _shut(one)


def _shut(one: socket.socket) -> None:
    with suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
    one.close()
