"""Real servers: what a plugin says of its own (`ServerSpec`), and the three ways to one.

In this order, unless ``--via`` names some:

1. ``url``: the environment variable ``ENTREPOT_<NAME>_URL`` names a server that is there;
2. ``container``: Testcontainers starts the official image, or that of ``ENTREPOT_<NAME>_IMAGE``;
3. ``process``: a program out of PyPI's wheels, where the plugin knows some.

A server that was started is removed again, whatever happens to the tests (`entrepot_conformance.keeper`).
"""

from __future__ import annotations

import gc
import importlib
import os
import shutil
import socket
import subprocess
import tempfile
import time
import warnings
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypeAlias, cast, get_args

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

Way: TypeAlias = Literal["url", "container", "process"]
"""How a server is had: it is there already, in a container, or as a process of a wheel's program."""
WAYS: Final[tuple[Way, ...]] = get_args(Way)
"""All ways, in the order in which they are tried."""

PATIENCE: Final = 120.0
"""Seconds for a server to be ready, or to end."""
_PAUSE: Final = 0.05
_HOST: Final = "127.0.0.1"


@dataclass(frozen=True, kw_only=True)
class ServerSpec:
    """A backend's real server, and how to start one.

    Attributes:
        name: Its name, as in ``--require NAME``, ``ENTREPOT_<NAME>_URL`` and ``ENTREPOT_<NAME>_IMAGE``.
        image: The official image and its tag.
        port: Where it listens within the container.
        url: Its URL as the plugin takes it, up to what names a collection; ``{host}`` and ``{port}``
            stand for the address.
        ready: ``module:function``, called with the URL until it returns; it raises while the server
            does not answer.
        environment: Environment variables of the container.
        command: What the container runs; empty for the image's own command.
        process: ``module:function`` that starts the server out of PyPI's wheels: called with a folder for
            its data, which a second start finds again, and a port on loopback; returns the running
            `subprocess.Popen`. Raises `ServerAbsentError` where there is no such program.
    """

    name: str
    image: str
    port: int
    url: str
    ready: str
    environment: tuple[tuple[str, str], ...] = ()
    command: tuple[str, ...] = ()
    process: str | None = None

    @property
    def variable(self) -> str:
        """The middle of this server's environment variables: ``REDIS`` of ``ENTREPOT_REDIS_URL``."""
        return self.name.upper().replace("-", "_")


class ServerAbsentError(Exception):
    """A server cannot be had; tells each way that was tried and why it failed."""


class RunningServer(Protocol):
    """A server that answers.

    Attributes:
        url: Its URL, up to what names a collection.
        via: How it was had.
    """

    url: str
    via: Way

    def stop(self) -> None:
        """Stop the server and keep its data; not for one that was there already."""

    def start(self) -> None:
        """Start it again, at the same address and on the same data, and wait until it is ready."""


@contextmanager
def running_server(spec: ServerSpec, via: Sequence[Way] = ()) -> Generator[RunningServer]:
    """Have a server, start it if need be, and remove what was started.

    Args:
        spec: Which one.
        via: The ways to try; none means all, in the order of `WAYS`.

    Raises:
        ServerAbsentError: No way led to a server.
    """
    reasons: list[str] = []
    for way in WAYS:
        if via and way not in via:
            continue
        try:
            server = _OPENERS[way](spec)
        except ServerAbsentError as error:
            reasons.append(f"{way}: {error}")
            continue
        try:
            yield server
        finally:
            server.remove()
        return
    raise ServerAbsentError(f"no {spec.name} server can be had; " + "; ".join(reasons))


class _Given:
    """A server that is there."""

    def __init__(self, spec: ServerSpec) -> None:
        self.via: Way = "url"
        variable = f"ENTREPOT_{spec.variable}_URL"
        self.url = os.environ.get(variable, "").rstrip("/")
        if not self.url:
            msg = f"{variable} is not set"
            raise ServerAbsentError(msg)

    def stop(self) -> None:
        msg = "the suite does not stop a server that it has not started"
        raise RuntimeError(msg)

    start = stop

    def remove(self) -> None:
        """Leave it alone."""


class _Container:
    """A server in a container."""

    def __init__(self, spec: ServerSpec) -> None:
        self.via: Way = "container"
        self._spec = spec
        image = os.environ.get(f"ENTREPOT_{spec.variable}_IMAGE", spec.image)
        container = _new_container(image)
        port = _free_port()
        # A port that is fixed, so that the address outlives a stop.
        container.with_bind_ports(spec.port, port)
        for name, value in spec.environment:
            container.with_env(name, value)
        if spec.command:
            container.with_command(list(spec.command))
        self._container = container
        try:
            container.start()
        except Exception as error:
            self.remove()
            raise ServerAbsentError(f"{image} does not start: {error}") from error
        self.url = spec.url.format(host=container.get_container_host_ip(), port=port)
        try:
            _await(spec, self.url, self._alive)
        except ServerAbsentError as error:
            log = _tail(b"".join(container.get_logs()).decode(errors="replace"))
            self.remove()
            raise ServerAbsentError(f"{error}\n{log}") from error

    def _alive(self) -> bool:
        wrapped = self._container.get_wrapped_container()
        wrapped.reload()
        return cast("str", wrapped.status) == "running"

    def stop(self) -> None:
        self._container.get_wrapped_container().stop(timeout=30)

    def start(self) -> None:
        self._container.get_wrapped_container().start()
        _await(self._spec, self.url, self._alive)

    def remove(self) -> None:
        self._container.stop()
        self._container.get_docker_client().client.close()


class _Process:
    """A server that a program out of a wheel runs."""

    def __init__(self, spec: ServerSpec) -> None:
        self.via: Way = "process"
        if spec.process is None:
            msg = "no wheel has this server"
            raise ServerAbsentError(msg)
        self._spec = spec
        self._begin = imported(spec.process)
        self._folder = Path(tempfile.mkdtemp(prefix=f"entrepot-{spec.name}-"))
        self._port = _free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self.url = spec.url.format(host=_HOST, port=self._port)
        try:
            self.start()
        except BaseException:
            self.remove()
            raise

    def start(self) -> None:
        process = cast("subprocess.Popen[bytes]", self._begin(self._folder, self._port))
        self._process = process
        _await(self._spec, self.url, lambda: process.poll() is None)

    def stop(self) -> None:
        process, self._process = self._process, None
        if process is None or process.poll() is not None:
            return
        process.terminate()
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def remove(self) -> None:
        self.stop()
        shutil.rmtree(self._folder, ignore_errors=True)


_OPENERS: Final[dict[Way, type[_Given | _Container | _Process]]] = {
    "url": _Given,
    "container": _Container,
    "process": _Process,
}


def _new_container(image: str) -> Any:
    """Return a container of an image that is here, or was pulled just now."""
    try:
        import docker  # type: ignore[import-untyped] # noqa: PLC0415 - an extra, and half a second
        from docker.errors import (  # type: ignore[import-untyped] # noqa: PLC0415
            APIError,
            DockerException,
            ImageNotFound,
        )
        from testcontainers.core.config import testcontainers_config  # noqa: PLC0415
        from testcontainers.core.container import DockerContainer  # noqa: PLC0415
    except ModuleNotFoundError as error:
        msg = 'Testcontainers is not installed: pip install "entrepot-conformance[containers]"'
        raise ServerAbsentError(msg) from error
    # Ryuk is one more image, and the keeper removes what it started.
    testcontainers_config.ryuk_disabled = True
    engine: Any = None
    reason = ""
    try:
        engine = cast("Any", docker).from_env()
    except DockerException as error:
        reason = f"no Docker engine answers: {error}"
    if engine is None:
        # The client that could not be made leaves its socket open: let it go here, without a warning elsewhere.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            gc.collect()
        raise ServerAbsentError(reason)
    try:
        engine.images.get(image)
    except ImageNotFound:
        try:
            engine.images.pull(*image.rpartition(":")[::2])
        except APIError as error:
            msg = f"the image {image} cannot be had: {error.explanation or error}"
            raise ServerAbsentError(msg) from error
    finally:
        engine.close()
    return DockerContainer(image)


def _await(spec: ServerSpec, url: str, alive: Callable[[], bool]) -> None:
    """Wait until the server answers."""
    ready, end = imported(spec.ready), time.monotonic() + PATIENCE
    while True:
        try:
            ready(url)
        except Exception as error:
            if not alive():
                raise ServerAbsentError(f"{spec.name} ended while it started") from error
            if time.monotonic() > end:
                raise ServerAbsentError(f"{spec.name} does not answer in {PATIENCE:g} s: {error}") from error
            time.sleep(_PAUSE)
        else:
            return


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((_HOST, 0))
        return int(probe.getsockname()[1])


def imported(path: str) -> Any:
    """Return what ``module:attribute`` names."""
    module, _, attribute = path.partition(":")
    return getattr(importlib.import_module(module), attribute)


def _tail(text: str, lines: int = 20) -> str:
    return "\n".join(text.splitlines()[-lines:])
