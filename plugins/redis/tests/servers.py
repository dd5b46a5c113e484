"""What the tests know of servers: options of a URL, and servers of a test's own."""

from __future__ import annotations

import socket
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import redis

from entrepot.urls import parse_url
from entrepot_redis import RedisChatMemoryRepository, RedisConfig, RedisVectorStore
from entrepot_redis.conformance import SERVER, connect, ready, start

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path

Make = Callable[..., RedisVectorStore]
MakeMemory = Callable[..., RedisChatMemoryRepository]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Own:
    """A server of a test's own, which it may kill and start again."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.folder = folder
        self.options = options
        self.port = free_port()
        self.url = SERVER.url.format(host="127.0.0.1", port=self.port)
        self.process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        self.process = start(self.folder, self.port, *self.options)
        while True:
            try:
                ready(self.url)
            except redis.RedisError:
                assert self.process.poll() is None, (self.folder / "log").read_text("utf-8", "replace")
            else:
                return

    def kill(self) -> None:
        """End the server as a power cut would, but for what the operating system still writes."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()


@contextmanager
def own_server(folder: Path, *options: str) -> Generator[Own]:
    own = Own(folder, *options)
    try:
        yield own
    finally:
        own.kill()


def target(url: str) -> dict[str, Any]:
    """Return a URL as the options of a store, without a collection."""
    return RedisConfig.from_url(parse_url(url))


def client(url: str) -> Any:
    """Return a client of redis-py, which gives bytes."""
    return connect(url)
