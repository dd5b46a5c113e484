"""Connections to a server: clients, the time that a call may take, and how scripts run (E3 to E5).

`Server.run` carries a script out on a `QdrantClient`, `Server.arun` on an `AsyncQdrantClient` of the running event
loop. Every request waits for as long as the exchange has left.
"""

from __future__ import annotations

import asyncio
import inspect
import math
import ssl
import time
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

import httpx  # noqa: TID253 - the driver is built on it, and loads it
from qdrant_client import AsyncQdrantClient, QdrantClient

from entrepot.clients import Clients
from entrepot.errors import ClosedError, ConfigurationError, EntrepotError
from entrepot.exchange import remaining
from entrepot.scripted import acarry_out, carry_out
from entrepot_qdrant import faults

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

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
        self._address = address
        self._clients: Clients[QdrantClient, AsyncQdrantClient] = Clients(
            where=self.where,
            make=self._made,
            close=QdrantClient.close,
            amake=self._amade,
            aclose=AsyncQdrantClient.close,
            given=client if isinstance(client, QdrantClient) else None,
            agiven=client if isinstance(client, AsyncQdrantClient) else None,
        )
        self.has_sync = self._clients.has_sync
        self.has_async = self._clients.has_async

    @property
    def native(self) -> object:
        """The driver's client: the user's, or that of sync operations."""
        return self._clients.native

    def open(self) -> None:
        """Make no connection yet; the first script does."""

    # --- clients ----------------------------------------------------------------------------------------

    def _made(self) -> QdrantClient:
        client = QdrantClient(**self._address.keywords(self.timeout))
        client.http.client.add_middleware(self._middle)
        return client

    def _amade(self) -> AsyncQdrantClient:
        client = AsyncQdrantClient(**self._address.keywords(self.timeout))
        client.http.client.add_middleware(self._amiddle)
        return client

    def _middle(
        self, request: httpx.Request, send: Callable[[httpx.Request], httpx.Response]
    ) -> httpx.Response:
        return send(_bounded(request, self.timeout))

    async def _amiddle(self, request: httpx.Request, send: Callable[[httpx.Request], Any]) -> httpx.Response:
        return cast("httpx.Response", await send(_bounded(request, self.timeout)))

    def close(self) -> None:
        """Close the clients of this library; those of event loops that still run follow soon."""
        self._clients.close()

    async def aclose(self) -> None:
        """As `close`, and waits for the client of the running loop."""
        await self._clients.aclose()

    # --- scripts ----------------------------------------------------------------------------------------

    def run(self, script: Script[T], collection: str = "") -> T:
        """Carry out a script within what is left of the exchange."""
        until = time.monotonic() + remaining(self.timeout)
        client = self._clients.sync()
        course = _Course(self, collection)

        def ask(call: Call) -> object:
            with course.faults(call):
                return getattr(client, call.method)(**call.arguments, **self._timeout(call, until))

        return carry_out(script, ask)

    async def arun(self, script: Script[T], collection: str = "") -> T:
        """As `run`."""
        until = time.monotonic() + remaining(self.timeout)
        client = await self._clients.here()
        course = _Course(self, collection)

        async def ask(call: Call) -> object:
            with course.faults(call):
                async with asyncio.timeout(max(until - time.monotonic(), 0.001)):
                    return await getattr(client, call.method)(**call.arguments, **self._timeout(call, until))

        return await acarry_out(script, ask)

    def fault(self, error: Exception, collection: str, lost: Outcome) -> Exception:
        """Return what an exception of a call is for the caller; what is not the driver's stays as it is."""
        if self._clients.is_closed:  # the client was closed under the call
            return ClosedError(f"the store on {self.where} was closed", outcome=lost)
        if not isinstance(error, faults.DRIVER_ERRORS):
            return error
        return faults.remote(error, self.where, collection, lost)

    def _timeout(self, call: Call, until: float) -> dict[str, int]:
        """Return the timeout of a call over gRPC, which takes whole seconds; REST is bounded by request."""
        if self._address.grpc_port is None or not _takes_timeout(call.method):
            return {}
        return {"timeout": max(1, math.ceil(until - time.monotonic()))}


class _Course:
    """What is known of an operation if a call of it fails."""

    def __init__(self, server: Server, collection: str) -> None:
        self._server = server
        self._collection = collection
        self._lost: Outcome = "not_done"

    @contextmanager
    def faults(self, call: Call) -> Generator[None]:
        """Raise what the driver raises as an error of entrepot."""
        self._lost = "unknown" if call.writes else self._lost
        try:
            yield
        except EntrepotError:
            raise
        except Exception as error:
            raise self._server.fault(error, self._collection, self._lost) from error


@lru_cache(maxsize=64)
def _takes_timeout(method: str) -> bool:
    return "timeout" in inspect.signature(getattr(QdrantClient, method)).parameters
