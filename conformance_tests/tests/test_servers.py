"""The ways to a server, and that none stays behind."""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
import textwrap
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import psutil
import pytest

from entrepot_conformance.servers import ServerAbsentError, ServerSpec, running_server

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PATIENCE = 30.0
SHELF = textwrap.dedent('''
    """A server that says how often it was started."""
    import pathlib, socket, subprocess, sys
    from urllib.parse import urlsplit

    from entrepot_conformance.servers import ServerSpec

    SERVE = """
    import pathlib, socket, sys
    folder, port = pathlib.Path(sys.argv[1]), int(sys.argv[2])
    with (folder / "starts").open("a") as starts:
        starts.write("x")
    with socket.create_server(("127.0.0.1", port)) as server:
        while True:
            connection, _ = server.accept()
            connection.sendall((folder / "starts").read_bytes())
            connection.close()
    """

    def start(folder, port):
        return subprocess.Popen([sys.executable, "-c", SERVE, str(folder), str(port)])

    def dies(folder, port):
        return subprocess.Popen([sys.executable, "-c", "raise SystemExit(3)"])

    def starts(url):
        address = urlsplit(url)
        with socket.create_connection((address.hostname, address.port), timeout=5) as connection:
            return connection.recv(100).decode()

    SERVER = ServerSpec(name="test-shelf", image="nowhere.invalid/shelf:1", port=1, url="shelf://{host}:{port}",
                        ready="shelf_server:starts", process="shelf_server:start")
''')
TESTS = textwrap.dedent("""
    import pathlib
    import pytest
    from entrepot_conformance.keeper import shared_server
    from shelf_server import SERVER, starts

    @pytest.mark.parametrize("number", range(4))
    def test_one(request, number):
        server = shared_server(request.config, SERVER)
        with pathlib.Path("seen").open("a") as seen:
            seen.write(f"{server.url} {server.via} {starts(server.url)}\\n")

    def test_waits(request):
        if pathlib.Path("wait").exists():
            pathlib.Path("waiting").touch()
            while pathlib.Path("wait").exists():
                pass
""")


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ServerSpec]:
    """The specification of a small server, in a module that can be imported."""
    (tmp_path / "shelf_server.py").write_text(SHELF)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.delenv("ENTREPOT_TEST_SHELF_URL", raising=False)
    yield module().SERVER
    del sys.modules["shelf_server"]


def module() -> Any:
    return importlib.import_module("shelf_server")


def starts(url: str) -> str:
    return str(module().starts(url))


def pytest_of(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    (folder / "test_shelf.py").write_text(TESTS)
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_shelf.py", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder), **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def running_servers() -> list[psutil.Process]:
    """The processes that name a data folder of the test's server."""
    found: list[psutil.Process] = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if any("entrepot-test-shelf-" in word for word in process.cmdline()):
                found.append(process)
    return found


def gone(*processes: psutil.Process) -> bool:
    return not psutil.wait_procs(processes, timeout=PATIENCE)[1]


def test_a_process_is_started_stopped_and_removed(shelf: ServerSpec) -> None:
    with running_server(shelf) as server:
        url = server.url
        assert server.via == "process"
        assert starts(url) == "x"
        server.stop()
        with pytest.raises(ConnectionRefusedError):
            starts(url)
        server.start()
        assert server.url == url
        assert starts(url) == "xx"  # on the data of before
    with pytest.raises(ConnectionRefusedError):
        starts(url)


def test_a_url_comes_first_and_is_left_alone(shelf: ServerSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    with running_server(shelf, ["process"]) as server:
        monkeypatch.setenv("ENTREPOT_TEST_SHELF_URL", server.url + "/")
        with running_server(shelf) as given:
            assert (given.url, given.via) == (server.url, "url")
            with pytest.raises(RuntimeError, match="not started"):
                given.stop()
        assert starts(server.url) == "x"


@pytest.mark.usefixtures("shelf")
@pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning"
)  # the Docker client's own socket
def test_an_absent_server_tells_every_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    absent = ServerSpec(
        name="test-shelf", image="shelf:1", port=1, url="shelf://{host}:{port}", ready="shelf_server:starts"
    )
    with pytest.raises(ServerAbsentError) as caught, running_server(absent):
        pass
    said = str(caught.value)
    assert "ENTREPOT_TEST_SHELF_URL is not set" in said
    assert "container: " in said
    assert "process: no wheel has this server" in said


def test_a_server_that_dies_is_told_at_once(shelf: ServerSpec) -> None:
    dying = ServerSpec(
        name="test-shelf",
        image="shelf:1",
        port=1,
        url=shelf.url,
        ready=shelf.ready,
        process="shelf_server:dies",
    )
    began = time.monotonic()
    with pytest.raises(ServerAbsentError, match="ended while it started"), running_server(dying, ["process"]):
        pass
    assert time.monotonic() - began < PATIENCE


@pytest.mark.usefixtures("shelf")
@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "two-workers"])
def test_a_run_has_one_server_and_removes_it(tmp_path: Path, workers: tuple[str, ...]) -> None:
    done = pytest_of(tmp_path, *workers, "--via", "process")
    assert done.returncode == 0, done.stdout + done.stderr
    seen = set((tmp_path / "seen").read_text().splitlines())
    assert len(seen) == 1
    url, via, count = seen.pop().split()
    assert (via, count) == ("process", "x")
    with pytest.raises(ConnectionRefusedError):
        starts(url)


@pytest.mark.usefixtures("shelf")
def test_a_killed_run_leaves_no_server(tmp_path: Path) -> None:
    (tmp_path / "test_shelf.py").write_text(TESTS)
    (tmp_path / "wait").touch()
    run = subprocess.Popen(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--via=process", "test_shelf.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        stdout=subprocess.DEVNULL,
    )
    end = time.monotonic() + PATIENCE
    while not (tmp_path / "waiting").exists():
        assert run.poll() is None
        assert time.monotonic() < end
        time.sleep(0.02)
    url = (tmp_path / "seen").read_text().split()[0]
    port = int(url.rpartition(":")[2])
    servers = [process for process in running_servers() if str(port) in process.cmdline()]
    assert servers
    run.send_signal(signal.SIGKILL)
    run.wait()
    assert gone(*servers)


@pytest.mark.usefixtures("shelf")
def test_a_required_server_that_is_absent_fails(tmp_path: Path) -> None:
    optional = pytest_of(tmp_path, "--via", "url")
    assert optional.returncode == 0, optional.stdout
    assert "4 skipped" in optional.stdout
    for arguments, variables in (
        (("--require", "test-shelf"), {}),
        ((), {"ENTREPOT_REQUIRE": "other, test-shelf"}),
    ):
        required = pytest_of(tmp_path, "--via", "url", *arguments, **variables)
        assert required.returncode == 1
        assert "it is required" in required.stdout
        assert "4 failed" in required.stdout


@pytest.mark.usefixtures("shelf")
def test_an_unknown_way_is_refused(tmp_path: Path) -> None:
    done = pytest_of(tmp_path, "--via", "telepathy")
    assert (
        "there is no way 'telepathy' to a server; there are url, container, process"
        in done.stdout + done.stderr
    )
