"""Fixtures of the tests of failures: a proxy before the run's server, and servers that may be stopped."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from entrepot_conformance.keeper import ways
from entrepot_conformance.proxy import Proxy
from entrepot_conformance.recording import spec_of
from entrepot_conformance.servers import WAYS

if TYPE_CHECKING:
    from collections.abc import Generator

    from entrepot_conformance.endpoints import Memories, Stores
    from entrepot_conformance.servers import Way

TIMEOUT = 2.0
"""Seconds that the stores of these tests give an exchange."""
SLOW_TIMEOUT = 4.0
"""The same, of an engine that calls itself slow."""
SLACK = 2.0
"""Seconds that a refusal may come later on a busy machine."""
CUTS = (0, 1, 5, 40, 400)
"""Bytes of answers after which a connection breaks."""
WRONG = "not-the-password-7f3a"
"""A password that no server has."""


@contextmanager
def proxied(target: Stores | Memories) -> Generator[Proxy]:
    """Put a proxy before the server: what `target` opens from now on goes through it."""
    given = target.address
    parts = urlsplit(given)
    assert parts.hostname is not None
    assert parts.port is not None
    with Proxy(parts.hostname, parts.port) as proxy:
        target.address = at(given, "127.0.0.1", proxy.port)
        yield proxy
        target.close()
        target.address = given


def at(url: str, host: str, port: int) -> str:
    """Return a server's URL with another address."""
    parts = urlsplit(url)
    login = f"{parts.netloc.rpartition('@')[0]}@" if "@" in parts.netloc else ""
    return parts._replace(netloc=f"{login}{host}:{port}").geturl()


@contextmanager
def in_time(timeout: float) -> Generator[None]:
    """Check that what happens within ends in time."""
    began = time.monotonic()
    yield
    took = time.monotonic() - began
    assert took < timeout + SLACK, f"took {took:.1f} s of a timeout of {timeout:g} s"


@pytest.fixture
def timeout(request: pytest.FixtureRequest) -> float:
    """Return the seconds that an exchange with the test's target gets."""
    spec = spec_of(request.node)
    return SLOW_TIMEOUT if spec is not None and spec.slow else TIMEOUT


def late(timeout: float) -> float:
    """Return the seconds after which an answer comes too late."""
    return timeout + SLACK + 2.0


def with_password(url: str, password: str) -> str:
    """Return a server's URL with another password; it must have one."""
    parts = urlsplit(url)
    user, _, address = parts.netloc.rpartition("@")
    assert ":" in user, "the server of the suite has no password: its ServerSpec must give it one"
    return parts._replace(netloc=f"{user.partition(':')[0]}:{password}@{address}").geturl()


def startable(config: pytest.Config) -> tuple[Way, ...]:
    """Return the ways to a server that the suite may stop."""
    return tuple(way for way in ways(config) or WAYS if way != "url")


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known."""
    config.addinivalue_line("markers", "restarts: stops a server, so it needs one that the suite starts")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what stops servers, where servers are only had by their URLs."""
    if not startable(config):
        left_out = [item for item in items if item.get_closest_marker("restarts") is not None]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]
