"""Milvus Lite: the engine within this process, in a folder.

Stores of one process on one folder share an engine and a lock, and a script runs whole under that lock: the engine is
not made for several writers, and nothing comes between what a script reads and what it writes.

The driver reaches the engine by gRPC. Here that goes over a socket in a folder that none but this user can enter, where
the system has such sockets; the driver's own way is a port on loopback, which every user of the machine can reach.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import tempfile
import threading
import weakref
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from pymilvus import MilvusClient  # type: ignore[import-untyped]

from entrepot.errors import (
    BackendError,
    ClosedError,
    ConfigurationError,
    DriverNotFoundError,
    EntrepotError,
    OperationTimeoutError,
    StoreInUseError,
)
from entrepot.exchange import remaining
from entrepot.scripted import carry_out
from entrepot_milvus.exchanges import Exchange, silence

if TYPE_CHECKING:
    from entrepot.scripted import Script
    from entrepot_milvus.commands import Call

T = TypeVar("T")

_WORKERS: Final = 2
_GRACE: Final = 2.0
"""Seconds that calls under way get when an engine ends."""


class Engine:
    """An engine, its client and lock, and how many stores use it.

    Attributes:
        client: The driver's client.
        lock: Held for a whole script.
        users: Stores on it.
    """

    def __init__(self, client: Any) -> None:
        self.client = client
        self.lock = threading.RLock()
        self.users = 0

    def end(self) -> None:
        """Leave the client alone: it is the user's."""


class _Own(Engine):
    """An engine that was started here.

    Raises:
        DriverNotFoundError: milvus-lite is not installed.
        StoreInUseError: Another process, or another client of this one, has the folder open.
        BackendError: It cannot be opened.
    """

    def __init__(self, path: Path, where: str, timeout: float) -> None:
        try:
            from milvus_lite.adapter.grpc.server import start_server_in_thread  # type: ignore[import-untyped] # noqa: PLC0415 - an extra
            from milvus_lite.exceptions import DataDirLockedError  # type: ignore[import-untyped] # noqa: PLC0415
        except ModuleNotFoundError as error:
            msg = "milvus-lite:// needs the package milvus-lite"
            raise DriverNotFoundError(msg, hint="pip install 'entrepot-milvus[lite]'") from error
        self._folder: str | None = None
        host, port = "127.0.0.1", 0
        if hasattr(socket, "AF_UNIX"):
            self._folder = tempfile.mkdtemp(prefix="entrepot-milvus-")
            host, port = f"unix:{self._folder}/engine", 1
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._server, self._database, port = start_server_in_thread(
                str(path), host=host, port=port, max_workers=_WORKERS
            )
        except DataDirLockedError as error:
            self._forget_folder()
            msg = f"{where} is open in another process, or in another client of this one"
            raise StoreInUseError(
                msg, hint="close it there, or give that client; several processes share a Milvus server"
            ) from error
        except Exception as error:
            self._forget_folder()
            msg = f"{where} cannot be opened ({type(error).__name__})"
            raise BackendError(msg, hint="the cause says more") from error
        uri = f"{host}:1" if self._folder else f"http://{host}:{port}"
        try:
            super().__init__(MilvusClient(uri=uri, timeout=timeout, dedicated=True, grpc_options=_QUIET))
        except Exception as error:
            self._stop()
            msg = f"{where} does not answer"
            raise BackendError(msg, retryable=True) from error

    def end(self) -> None:
        """End the engine."""
        self.client.close()
        self._stop()

    def _stop(self) -> None:
        self._server.stop(grace=_GRACE).wait()
        self._database.close()
        self._forget_folder()

    def _forget_folder(self) -> None:
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)


_QUIET: Final = {"grpc.keepalive_time_ms": 2**31 - 1, "grpc.keepalive_permit_without_calls": False}
"""No pings: the engine takes too many of them for an attack, and it cannot vanish."""

_shared: dict[tuple[str, int], Engine] = {}
"""Engines that stores share, by folder and process: a fork shares none."""
_given: weakref.WeakKeyDictionary[Any, Engine] = weakref.WeakKeyDictionary()
_shared_lock: Final = threading.Lock()


class LiteEndpoint:
    """One store's hold on an engine.

    Args:
        path: The folder.
        timeout: Seconds to wait for other stores, outside of an exchange.
        client: A client of the user's, which is used and not closed.
    """

    has_sync = True
    has_async = False

    def __init__(self, *, path: str | None, timeout: float, client: object = None) -> None:
        if (path is None) is (client is None):
            msg = "a store in Milvus Lite has a folder or a client, and not both"
            raise ConfigurationError(msg, hint="name the folder as in milvus-lite:///file.db")
        if client is not None and not isinstance(client, MilvusClient):
            msg = f"client must be a MilvusClient on a file, not {type(client).__name__}"
            raise ConfigurationError(msg)
        silence()
        self.where = "the client's Milvus Lite" if path is None else f"Milvus Lite in {path!r}"
        self.timeout = timeout
        self._client: Any = client
        self._path = None if path is None else _resolved(path)
        self._engine: Engine | None = None
        self._closed = False

    def _closed_error(self) -> ClosedError:
        return ClosedError(f"the store in {self.where} was closed")

    def open(self) -> Engine:
        """Take hold of the engine.

        Raises:
            StoreInUseError: Another process has the folder open.
        """
        with _shared_lock:
            if self._closed:
                raise self._closed_error()
            if self._engine is None:
                self._engine = self._found()
                self._engine.users += 1
            return self._engine

    def _found(self) -> Engine:
        if self._path is None:
            return _given.setdefault(self._client, Engine(self._client))
        key = (str(self._path), os.getpid())
        if key not in _shared:
            _shared[key] = _Own(self._path, self.where, remaining(self.timeout))
        return _shared[key]

    def close(self) -> None:
        """Give the engine back; the last store ends it. A client of the user's stays open."""
        with _shared_lock:
            self._closed = True
            engine, self._engine = self._engine, None
            if engine is None:
                return
            engine.users -= 1
            if engine.users or self._path is None:
                return
            key = (str(self._path), os.getpid())
            if _shared.get(key) is not engine:  # in a fork: it is the parent's
                return
            del _shared[key]
            with engine.lock:
                engine.end()

    async def aclose(self) -> None:
        """As `close`."""
        await asyncio.to_thread(self.close)

    @property
    def native(self) -> object:
        """The driver's client."""
        return self.open().client

    def run(self, script: Script[T], collection: str = "") -> T:
        """Carry out a script, alone on its engine."""
        engine = self.open()
        if not engine.lock.acquire(timeout=remaining(self.timeout)):
            msg = f"{self.where} was busy with other operations"
            raise OperationTimeoutError(msg, outcome="not_done")
        try:
            if self._engine is not engine:  # closed while this waited
                raise self._closed_error()
            exchange = Exchange(self.where, collection, self.timeout, lambda: self._closed)

            def ask(call: Call) -> Any:
                try:
                    answer = getattr(engine.client, call.method)(**exchange.arguments(call))
                except EntrepotError:
                    raise
                except Exception as error:  # noqa: BLE001 - what is not the driver's goes on as it is
                    fault = exchange.failed(error, call)
                    raise fault from fault.__cause__
                exchange.done(call)
                return answer

            return carry_out(script, ask)
        finally:
            engine.lock.release()

    async def arun(self, script: Script[T], collection: str = "") -> T:
        """As `run`, in a worker thread."""
        return await asyncio.to_thread(self.run, script, collection)


def _resolved(path: str) -> Path:
    """Return the folder itself, so that it has one engine whatever link leads to it."""
    with suppress(OSError, ValueError, RuntimeError):
        return Path(path).resolve()
    msg = f"{path!r} cannot be the path of a folder"
    raise ConfigurationError(msg, hint="choose another path")
