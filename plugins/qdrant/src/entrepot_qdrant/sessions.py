"""Connections to a server: clients, the time that a call may take, and how scripts run (E3 to E5).

`Server.run` carries a script out on a `QdrantClient`, `Server.arun` on an `AsyncQdrantClient` of the running event
loop. Every request waits for as long as the exchange has left.
"""

from __future__ import annotations

import asyncio
import inspect
import math
import ssl
import threading
import time
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

import httpx  # noqa: TID253 - the driver is built on it, and loads it
from qdrant_client import AsyncQdrantClient, QdrantClient

from entrepot.errors import ClosedError, ConfigurationError, EntrepotError
from entrepot.exchange import remaining
from entrepot_qdrant import faults

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from entrepot.errors import Outcome
    from entrepot_qdrant.commands import Call, Script

T = TypeVar("T")


class Address(NamedTuple):
    """Where a server is, and how to log in.

    Attributes:
        host: The server.
        port: Its port for REST.
        grpc_port: Its port for gRPC; None to use REST alone.
        api_key: The API key.
        tls: Whether to use TLS.
        ca_file: What to trust instead of the system's certificates.
        prefix: What stands before the server's paths.
        pool_size: Most connections.
    """

    host: str
    port: int
    grpc_port: int | None
    api_key: str | None
    tls: bool
    ca_file: str | None
    prefix: str | None
    pool_size: int

    def __repr__(self) -> str:
        """Return the address without the key."""
        return f"<{self.where}>"

    @property
    def where(self) -> str:
        """The address for errors: no key."""
        return f"Qdrant at {self.host}:{self.port}"

    def keywords(self, timeout: float) -> dict[str, Any]:
        """Return the keywords of a client of the driver."""
        keywords: dict[str, Any] = {
            "host": self.host,
            "port": self.port,
            "https": self.tls,
            "prefix": self.prefix,
            "timeout": math.ceil(timeout),
            "check_compatibility": False,
            "limits": httpx.Limits(max_connections=self.pool_size, max_keepalive_connections=self.pool_size),
        }
        if self.api_key is not None:
            # As a header, because the client warns of an `api_key` without TLS, on loopback too.
            keywords["headers"] = {"api-key": self.api_key}
        if self.grpc_port is not None:
            keywords |= {"prefer_grpc": True, "grpc_port": self.grpc_port}
        if self.ca_file is not None:
            keywords["verify"] = ssl.create_default_context(cafile=self.ca_file)
        return keywords


def _bounded(request: httpx.Request, timeout: float) -> httpx.Request:
    left = remaining(timeout)
    request.extensions["timeout"] = dict.fromkeys(("connect", "read", "write", "pool"), left)
    return request


class _Loop:
    """The client of one event loop.

    It is closed when the loop ends: the loop then closes its async generators, and one of them is ours.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, client: AsyncQdrantClient) -> None:
        self.loop = loop
        self.client = client
        self._end: AsyncGenerator[None] | None = None

    async def begin(self) -> None:
        if self._end is None:
            self._end = self._closing()
            await anext(self._end)

    async def _closing(self) -> AsyncGenerator[None]:
        try:
            yield
        finally:
            await self.client.close()

    async def close(self) -> None:
        await self.client.close()

    def close_soon(self) -> None:
        """Have the client closed from outside of the loop."""
        if not self.loop.is_closed():
            self.loop.call_soon_threadsafe(lambda: self.loop.create_task(self.close()))


class Server:
    """A server, reached by clients that are made when they are needed.

    Args:
        address: Where it is.
        timeout: Seconds for what is outside of an exchange.
        client: A client of the user's, which is used and not closed.
    """

    is_local = False

    def __init__(self, address: Address, *, timeout: float, client: object = None) -> None:
        if client is not None and not isinstance(client, QdrantClient | AsyncQdrantClient):
            msg = f"client must be a QdrantClient or an AsyncQdrantClient, not {type(client).__name__}"
            raise ConfigurationError(msg)
        self.where = address.where if client is None else "the client's Qdrant"
        self.timeout = timeout
        self._given = client
        self._address = address
        self._lock = threading.Lock()
        self._client: QdrantClient | None = None
        self._loops: dict[int, _Loop] = {}
        self._closed = False

    @property
    def has_sync(self) -> bool:
        """Whether sync operations have a client."""
        return not isinstance(self._given, AsyncQdrantClient)

    @property
    def has_async(self) -> bool:
        """Whether async operations have a client of their own."""
        return not isinstance(self._given, QdrantClient)

    @property
    def native(self) -> object:
        """The driver's client: the user's, or that of sync operations."""
        return self._given if self._given is not None else self._sync()

    def open(self) -> None:
        """Make no connection yet; the first script does."""

    # --- clients ----------------------------------------------------------------------------------------

    def _sync(self) -> QdrantClient:
        if isinstance(self._given, QdrantClient):
            return self._given
        if self._given is not None:
            msg = "the client is an AsyncQdrantClient, which sync operations cannot use"
            raise ConfigurationError(msg, hint="use the async twin, or give a QdrantClient")
        with self._lock:
            self._check_open()
            if self._client is None:
                self._client = QdrantClient(**self._address.keywords(self.timeout))
                self._client.http.client.add_middleware(self._middle)
            return self._client

    def _middle(
        self, request: httpx.Request, send: Callable[[httpx.Request], httpx.Response]
    ) -> httpx.Response:
        return send(_bounded(request, self.timeout))

    async def _amiddle(self, request: httpx.Request, send: Callable[[httpx.Request], Any]) -> httpx.Response:
        return cast("httpx.Response", await send(_bounded(request, self.timeout)))

    async def _async(self) -> AsyncQdrantClient:
        if isinstance(self._given, AsyncQdrantClient):
            return self._given
        loop = asyncio.get_running_loop()
        with self._lock:
            self._check_open()
            known = self._loops.get(id(loop))
            if known is None or known.loop is not loop:
                self._loops = {key: other for key, other in self._loops.items() if not other.loop.is_closed()}
                client = AsyncQdrantClient(**self._address.keywords(self.timeout))
                client.http.client.add_middleware(self._amiddle)
                known = self._loops[id(loop)] = _Loop(loop, client)
        await known.begin()
        return known.client

    def _check_open(self) -> None:
        if self._closed:
            msg = f"the store on {self.where} was closed"
            raise ClosedError(msg)

    def close(self) -> None:
        """Close the clients of this library; those of event loops that still run follow soon."""
        with self._lock:
            self._closed = True
            client, self._client = self._client, None
            loops, self._loops = self._loops, {}
        for known in loops.values():
            known.close_soon()
        if client is not None:
            client.close()

    async def aclose(self) -> None:
        """As `close`, and waits for the client of the running loop."""
        loop = asyncio.get_running_loop()
        with self._lock:
            known = self._loops.pop(id(loop), None)
        if known is not None and known.loop is loop:
            await known.close()
        self.close()

    # --- scripts ----------------------------------------------------------------------------------------

    def run(self, script: Script[T], collection: str = "") -> T:
        """Carry out a script within what is left of the exchange."""
        until = time.monotonic() + remaining(self.timeout)
        client = self._sync()
        lost: Outcome = "not_done"
        try:
            call: Call = next(script)
            while True:
                lost = "unknown" if call.writes else lost
                try:
                    answer = getattr(client, call.method)(**call.arguments, **self._timeout(call, until))
                except Exception as error:  # noqa: BLE001 - what is not the driver's goes on as it is
                    call = script.throw(self._fault(error, collection, lost))
                else:
                    call = script.send(answer)
        except StopIteration as end:
            return cast("T", end.value)

    async def arun(self, script: Script[T], collection: str = "") -> T:
        """As `run`."""
        until = time.monotonic() + remaining(self.timeout)
        client = await self._async()
        lost: Outcome = "not_done"
        try:
            call: Call = next(script)
        except StopIteration as end:
            return cast("T", end.value)
        while True:
            lost = "unknown" if call.writes else lost
            fault: Exception | None = None
            answer: object = None
            try:
                async with asyncio.timeout(max(until - time.monotonic(), 0.001)):
                    answer = await getattr(client, call.method)(
                        **call.arguments, **self._timeout(call, until)
                    )
            except Exception as error:  # noqa: BLE001 - as above
                fault = self._fault(error, collection, lost)
            try:
                call = script.send(answer) if fault is None else script.throw(fault)
            except StopIteration as end:
                return cast("T", end.value)

    def _fault(self, error: Exception, collection: str, lost: Outcome) -> Exception:
        if self._closed and not isinstance(error, EntrepotError):  # the client was closed under it
            fault: EntrepotError = ClosedError(f"the store on {self.where} was closed", outcome=lost)
            fault.__cause__ = error
            return fault
        if isinstance(error, EntrepotError) or not isinstance(error, faults.DRIVER_ERRORS):
            return error
        fault = faults.remote(error, self.where, collection, lost)
        fault.__cause__ = error
        return fault

    def _timeout(self, call: Call, until: float) -> dict[str, int]:
        """Return the timeout of a call over gRPC, which takes whole seconds; REST is bounded by request."""
        if self._address.grpc_port is None or not _takes_timeout(call.method):
            return {}
        return {"timeout": max(1, math.ceil(until - time.monotonic()))}


@lru_cache(maxsize=64)
def _takes_timeout(method: str) -> bool:
    return "timeout" in inspect.signature(getattr(QdrantClient, method)).parameters
