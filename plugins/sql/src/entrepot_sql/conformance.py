"""The conformance suite's way to servers: MariaDB and PostgreSQL.

Only the suite imports this module.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib import metadata
from typing import TYPE_CHECKING, Final

import sqlalchemy
from sqlalchemy import create_engine, make_url

from entrepot_conformance.servers import ServerAbsentError, ServerSpec
from entrepot_sql.dialects import with_driver

if TYPE_CHECKING:
    from pathlib import Path

_PASSWORD: Final = "entrepot"  # noqa: S105 - of a server that lives as long as the tests
_DATABASE: Final = "entrepot"

MARIADB: Final = ServerSpec(
    name="mariadb",
    image="mariadb:11",
    port=3306,
    url=f"sql+mariadb://entrepot:{_PASSWORD}@{{host}}:{{port}}/{_DATABASE}",
    environment=(
        ("MARIADB_RANDOM_ROOT_PASSWORD", "1"),
        ("MARIADB_USER", "entrepot"),
        ("MARIADB_PASSWORD", _PASSWORD),
        ("MARIADB_DATABASE", _DATABASE),
    ),
    ready="entrepot_sql.conformance:ready",
    process="entrepot_sql.conformance:start_mariadb",
)
"""MariaDB: ENTREPOT_MARIADB_URL, ENTREPOT_MARIADB_IMAGE, or the program ``mariadbd`` of this machine."""

POSTGRESQL: Final = ServerSpec(
    name="sql-postgres",
    image="pgvector/pgvector:pg18",
    port=5432,
    url=f"sql+postgresql://postgres:{_PASSWORD}@{{host}}:{{port}}/postgres",
    environment=(("POSTGRES_PASSWORD", _PASSWORD),),
    ready="entrepot_sql.conformance:ready",
)
"""PostgreSQL over SQLAlchemy: ENTREPOT_SQL_POSTGRES_URL, ENTREPOT_SQL_POSTGRES_IMAGE."""


def _connected(url: str) -> sqlalchemy.Connection:
    target = with_driver(make_url(url.removeprefix("sql+")))
    return create_engine(
        target, poolclass=sqlalchemy.NullPool, connect_args={"connect_timeout": 10}
    ).connect()


def ready(url: str) -> None:
    """Return if the server answers and takes the login.

    Raises:
        sqlalchemy.exc.DBAPIError: It does not.
    """
    with _connected(url) as connection:
        connection.exec_driver_sql("SELECT 1")


def versions(url: str) -> dict[str, str]:
    """Return the versions of server, SQLAlchemy and driver."""
    with _connected(url) as connection:
        version = ".".join(str(part) for part in connection.dialect.server_version_info or ())
        system = {"mariadb": "MariaDB", "postgresql": "PostgreSQL"}[connection.dialect.name]
        driver = connection.dialect.driver
    return {system: version, "SQLAlchemy": sqlalchemy.__version__, driver: metadata.version(driver)}


# --- out of the machine's programs ------------------------------------------------------------------------


class _Mariadb(subprocess.Popen[bytes]):
    """A server that is killed when it shall end: what was committed survives that."""

    def terminate(self) -> None:
        self.kill()


def start_mariadb(folder: Path, port: int) -> subprocess.Popen[bytes]:
    """Start the machine's MariaDB on loopback; its data stay in the folder.

    Raises:
        ServerAbsentError: There is no such program.
    """
    server, install = shutil.which("mariadbd") or _SBIN, shutil.which("mariadb-install-db")
    if sys.platform == "win32" or install is None or not os.access(server, os.X_OK):
        msg = "the program mariadbd is not installed; Debian's package is mariadb-server"
        raise ServerAbsentError(msg)
    user = _unprivileged(folder)
    data = folder / "data"
    common = ["--no-defaults", f"--datadir={data}"]
    if not (data / "mysql").exists():
        made = [install, *common, "--skip-test-db", "--auth-root-authentication-method=normal"]
        subprocess.run(made, check=True, capture_output=True, cwd=folder, user=user)  # noqa: S603 - a program of the machine
    first = folder / "first.sql"
    first.write_text("\n".join(_FIRST))
    with (folder / "log").open("ab") as log:
        return _Mariadb(
            [
                *(
                    server,
                    *common,
                    f"--port={port}",
                    "--bind-address=127.0.0.1",
                    f"--socket={folder / 'socket'}",
                ),
                *("--skip-name-resolve", f"--pid-file={folder / 'pid'}", "--max-connections=300"),
                f"--init-file={first}",
            ],
            stdout=log,
            stderr=subprocess.STDOUT,
            cwd=folder,
            user=user,
            extra_groups=None if user is None else [],
        )


_FIRST: Final = (
    f"CREATE DATABASE IF NOT EXISTS {_DATABASE} CHARACTER SET utf8mb4;",
    f"CREATE USER IF NOT EXISTS entrepot@'%' IDENTIFIED BY '{_PASSWORD}';",
    f"GRANT ALL ON {_DATABASE}.* TO entrepot@'%';",
)
_SBIN: Final = "/usr/sbin/mariadbd"
"""Where Debian has it, which is not on every user's path."""


def _unprivileged(folder: Path) -> int | None:
    """Return the user to run the server as, who gets the folder; None for the one who runs this."""
    if os.geteuid() != 0:
        return None
    import pwd  # noqa: PLC0415 - not on every platform

    nobody = pwd.getpwnam("nobody")
    os.chown(folder, nobody.pw_uid, nobody.pw_gid)
    return nobody.pw_uid
