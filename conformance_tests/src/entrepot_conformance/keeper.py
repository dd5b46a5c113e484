"""Keeps the servers of one run of pytest: each is started once, by the first test that needs it, and removed.

The run's first process holds a lock in the run's folder. For each server one more process, the keeper, starts
it, writes its URL beside the lock, and waits for that lock: the system releases it when the run ends, however
it ends, and the keeper removes the server. Workers of pytest-xdist find the URL there too.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec
import pytest
from filelock import FileLock

from entrepot_conformance.servers import PATIENCE, WAYS, ServerAbsentError, ServerSpec, Way, running_server

if TYPE_CHECKING:
    from collections.abc import Sequence

_run = pytest.StashKey["Run"]()
_PAUSE: Final = 0.02
_PATIENT_PAUSE: Final = 0.1


class SharedServer(msgspec.Struct, frozen=True, kw_only=True):
    """The server of a run.

    Attributes:
        url: Its URL, up to what names a collection.
        via: How it was had.
        absent: Why there is none; empty if there is one.
    """

    url: str = ""
    via: Way = "url"
    absent: str = ""


class Run:
    """The servers of one run.

    Args:
        folder: The run's folder; None makes a new one, whose lock this process then holds.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._lock: FileLock | None = None
        if folder is None:
            folder = Path(tempfile.mkdtemp(prefix="entrepot-servers-"))
            self._lock = FileLock(folder / "run.lock")
            self._lock.acquire()
        self.folder = folder
        self._known: dict[str, SharedServer] = {}

    def server(self, spec: ServerSpec, via: Sequence[Way] = ()) -> SharedServer:
        """Return a server; start it if no process of this run did so."""
        if spec.name not in self._known:
            self._known[spec.name] = self._asked(spec, via)
        return self._known[spec.name]

    def _asked(self, spec: ServerSpec, via: Sequence[Way]) -> SharedServer:
        answer = self.folder / f"{spec.name}.json"
        with FileLock(self.folder / f"{spec.name}.lock"):
            if not answer.exists():
                order = self.folder / f"{spec.name}.order"
                order.write_bytes(msgspec.json.encode({"spec": spec, "via": tuple(via)}))
                with (self.folder / f"{spec.name}.log").open("wb") as log:
                    process = subprocess.Popen(  # noqa: S603 - this interpreter, on files of this run
                        [sys.executable, "-m", __name__, str(self.folder), spec.name],
                        stdin=subprocess.DEVNULL,
                        stdout=log,
                        stderr=log,
                        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
                        start_new_session=True,
                    )
                while not answer.exists():
                    if process.poll() is not None and not answer.exists():
                        said = (self.folder / f"{spec.name}.log").read_text("utf-8", errors="replace")
                        raise RuntimeError(f"the keeper of {spec.name} ended:\n{said}")
                    time.sleep(_PAUSE)
                # It outlives this process or not as the run does: nobody here waits for it.
                process.returncode = 0
        return msgspec.json.decode(answer.read_bytes(), type=SharedServer)

    def close(self) -> None:
        """Let go of the servers, and wait until they are removed; only in the run's first process."""
        if self._lock is None:
            return
        self._lock.release()
        end = time.monotonic() + PATIENCE
        while any(self.folder.glob("*.json")) and time.monotonic() < end:
            time.sleep(_PAUSE)
        shutil.rmtree(self.folder, ignore_errors=True)


def run_of(config: pytest.Config) -> Run:
    """Return the run that a process of pytest belongs to."""
    if _run not in config.stash:
        given: dict[str, Any] = getattr(config, "workerinput", {})
        folder = given.get("entrepot_servers")
        config.stash[_run] = run = Run(None if folder is None else Path(folder))
        config.add_cleanup(run.close)
    return config.stash[_run]


def find_server(config: pytest.Config, spec: ServerSpec) -> SharedServer:
    """Return the run's server; one that starts it if this is the first call for it.

    Raises:
        ServerAbsentError: It cannot be had.
    """
    server = run_of(config).server(spec, ways(config))
    if server.absent:
        raise ServerAbsentError(server.absent)
    return server


def shared_server(config: pytest.Config, spec: ServerSpec) -> SharedServer:
    """Return the run's server, for a fixture; without one the test is skipped, or fails where it is required."""
    try:
        return find_server(config, spec)
    except ServerAbsentError as error:
        if spec.name in required(config):
            pytest.fail(f"{error}\nit is required by --require or ENTREPOT_REQUIRE", pytrace=False)
        pytest.skip(str(error))


def ways(config: pytest.Config) -> tuple[Way, ...]:
    """Return the ways that ``--via`` or ENTREPOT_VIA name; none means all."""
    named = _words(config.getoption("entrepot_via") or os.environ.get("ENTREPOT_VIA", ""))
    if unknown := [word for word in named if word not in WAYS]:
        raise pytest.UsageError(f"there is no way {unknown[0]!r} to a server; there are {', '.join(WAYS)}")
    return tuple(way for way in WAYS if way in named)


def required(config: pytest.Config) -> frozenset[str]:
    """Return the names of the servers that ``--require`` or ENTREPOT_REQUIRE name."""
    return frozenset(_words(config.getoption("entrepot_require") or os.environ.get("ENTREPOT_REQUIRE", "")))


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


class _Order(msgspec.Struct):
    spec: ServerSpec
    via: tuple[Way, ...]


def main(folder: Path, name: str) -> None:
    """Start a server, tell where it is, and remove it when the run is over."""

    def end(number: int, _frame: object) -> None:
        sys.exit(128 + number)

    signal.signal(signal.SIGTERM, end)
    order = msgspec.json.decode((folder / f"{name}.order").read_bytes(), type=_Order)
    answer, lock = folder / f"{name}.json", FileLock(folder / "run.lock")

    def tell(server: SharedServer) -> None:
        part = answer.with_suffix(".part")
        part.write_bytes(msgspec.json.encode(server))
        part.replace(answer)

    try:
        with running_server(order.spec, order.via) as server:
            tell(SharedServer(url=server.url, via=server.via))
            lock.acquire(poll_interval=_PATIENT_PAUSE)
    except ServerAbsentError as error:
        tell(SharedServer(absent=str(error)))
        lock.acquire(poll_interval=_PATIENT_PAUSE)
    finally:
        answer.unlink(missing_ok=True)
        lock.release()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
