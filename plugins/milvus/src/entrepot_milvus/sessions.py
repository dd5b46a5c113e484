"""A Milvus server: clients for sync and async code, and how scripts run on them (E3 to E5)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

import grpc  # type: ignore[import-untyped]
from pymilvus import AsyncMilvusClient, MilvusClient  # type: ignore[import-untyped]
from pymilvus.exceptions import MilvusException  # type: ignore[import-untyped]

from entrepot.clients import Clients
from entrepot.errors import ConfigurationError
from entrepot.exchange import remaining
from entrepot.scripted import acarry_out, carry_out
from entrepot_milvus import faults
from entrepot_milvus.exchanges import Exchange, silence

if TYPE_CHECKING:
    from collections.abc import Mapping

    from entrepot.scripted import Script
    from entrepot_milvus.commands import Call

T = TypeVar("T")


def _close(client: Any) -> None:
    client.close()


_CONNECTING: Final = (MilvusException, grpc.RpcError, grpc.FutureTimeoutError, OSError, ValueError)
_CHANNEL: Final = {
    # After a connection broke the next call makes another at once, and within its own time.
    "grpc.use_local_subchannel_pool": 1,
    "grpc.initial_reconnect_backoff_ms": 100,
    "grpc.min_reconnect_backoff_ms": 100,
    "grpc.max_reconnect_backoff_ms": 1000,
}


_ROWS_AT_ONCE: Final = 50
"""Rows of a request that is built on the event loop: a few milliseconds."""


class Address(NamedTuple):
    """Where a server is, and how to log in.

    Attributes:
        host: The server.
        port: Its port.
        token: A token, or user and password with a colon between; None for no login.
        database: The database; None for the default.
        tls: What the client is told about TLS; None without it.
    """

    host: str
    port: int
    token: str | None
    database: str | None
    tls: Mapping[str, str] | None

    def __repr__(self) -> str:
        """Return the address without the token: a debugger or a report shows local variables."""
        return f"Address({self.where})"

    @property
    def where(self) -> str:
        """The address for errors: no login."""
        return f"Milvus at {self.host}:{self.port}" + (f", database {self.database}" if self.database else "")

    def keywords(self, timeout: float) -> dict[str, Any]:
        """Return the keywords of a client of the driver."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return {
            "uri": f"{'http' if self.tls is None else 'https'}://{host}:{self.port}",
            "token": self.token or "",
            "db_name": self.database or "",
            "timeout": timeout,
            "dedicated": True,
            "grpc_options": _CHANNEL,
            **({} if self.tls is None else {"secure": True, **self.tls}),
        }


class _Link:
    """An async client, of an event loop or of the user's, that connects when it is first used.

    Args:
        client: The client.
        connected: Whether it is the user's, who connects it or leaves that to its first call.
    """

    def __init__(self, client: Any, *, connected: bool = False) -> None:
        self.client = client
        self._connected = connected
        self._turn: asyncio.Lock | None = None

    async def connect(self, timeout: float) -> Any:  # noqa: ASYNC109 - the driver's own
        """Return the client, connected once."""
        if not self._connected:
            if self._turn is None:
                self._turn = asyncio.Lock()
            async with self._turn, asyncio.timeout(timeout):
                if not self._connected:
                    # Its first call connects; the client offers no other way.
                    await self.client.get_server_version(timeout=timeout)
                    self._connected = True
        return self.client

    async def close(self) -> None:
        """Close the client."""
        await self.client.close()


class Server:
    """A server, reached by clients that are made when they are needed.

    Args:
        address: Where it is.
        timeout: Seconds for what is outside of an exchange.
        client: A client of the user's, which is used and not closed.
    """

    def __init__(self, address: Address, *, timeout: float, client: object = None) -> None:
        if client is not None and not isinstance(client, MilvusClient | AsyncMilvusClient):
            msg = f"client must be a MilvusClient or an AsyncMilvusClient, not {type(client).__name__}"
            raise ConfigurationError(msg)
        silence()
        self.where = address.where if client is None else "the client's Milvus"
        self.timeout = timeout
        self._address = address
        self._given: Any = client
        self._clients: Clients[Any, _Link] = Clients(
            where=self.where,
            make=self._made,
            close=_close,
            amake=lambda: _Link(AsyncMilvusClient(**address.keywords(timeout))),
            aclose=_Link.close,
            given=client if isinstance(client, MilvusClient) else None,
            agiven=_Link(client, connected=True) if isinstance(client, AsyncMilvusClient) else None,
        )
        self.has_sync = self._clients.has_sync
        self.has_async = self._clients.has_async

    @property
    def native(self) -> object:
        """The driver's client: the user's, or that of sync operations."""
        return self._given if self._given is not None else self._clients.sync()

    def _made(self) -> Any:
        try:
            return MilvusClient(**self._address.keywords(remaining(self.timeout)))
        except _CONNECTING as error:
            raise faults.connecting(error, self.where) from error

    async def _connected(self) -> Any:
        link = await self._clients.here()
        try:
            return await link.connect(remaining(self.timeout))
        except _CONNECTING as error:
            raise faults.connecting(error, self.where) from error

    def close(self) -> None:
        """Close the clients of this library; those of event loops that still run follow soon."""
        self._clients.close()

    async def aclose(self) -> None:
        """As `close`, and waits for the client of the running loop."""
        await self._clients.aclose()

    def _exchange(self, collection: str) -> Exchange:
        return Exchange(self.where, collection, self.timeout, lambda: self._clients.is_closed)

    # --- scripts ----------------------------------------------------------------------------------------

    def run(self, script: Script[T], collection: str = "") -> T:
        """Carry out a script within what is left of the exchange."""
        exchange = self._exchange(collection)
        client = self._clients.sync()

        def ask(call: Call) -> Any:
            try:
                answer = getattr(client, call.method)(**exchange.arguments(call))
            except Exception as error:  # noqa: BLE001 - what is not the driver's goes on as it is
                fault = exchange.failed(error, call)
                raise fault from fault.__cause__
            exchange.done(call)
            return answer

        return carry_out(script, ask)

    def _called(self, call: Call, exchange: Exchange) -> Any:
        return getattr(self._clients.sync(), call.method)(**exchange.arguments(call))

    async def arun(self, script: Script[T], collection: str = "") -> T:
        """As `run`."""
        exchange = self._exchange(collection)
        client = await self._connected()

        async def ask(call: Call) -> Any:
            try:
                async with asyncio.timeout(exchange.left):
                    if self._given is None and len(call.arguments.get("data", ())) > _ROWS_AT_ONCE:
                        # The client builds a request on the event loop, which takes too long for many rows (E3).
                        answer = await asyncio.to_thread(self._called, call, exchange)
                    else:
                        answer = await getattr(client, call.method)(**exchange.arguments(call))
            except Exception as error:  # noqa: BLE001 - what is not the driver's goes on as it is
                fault = exchange.failed(error, call)
                raise fault from fault.__cause__
            exchange.done(call)
            return answer

        return await acarry_out(script, ask)
