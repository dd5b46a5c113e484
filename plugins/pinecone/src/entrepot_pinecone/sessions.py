"""Connections to Pinecone: HTTP clients, the time that a request may take, and how scripts run (E3 to E5).

`Server.run` carries a script out on an `httpx.Client`, `Server.arun` on an `httpx.AsyncClient` of the running event loop.
Every request waits for as long as the exchange has left. The service's own package is not used: its releases 7 to 10 differ in
what they call everything, and what is asked here are seven paths of an API with a version.
"""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar, cast
from urllib.parse import urlsplit

import httpx  # noqa: TID253 - this module loads with the store
import msgspec

from entrepot.clients import Clients
from entrepot.errors import ClosedError, ConfigurationError, EntrepotError, OperationTimeoutError
from entrepot.exchange import remaining
from entrepot.scripted import acarry_out, carry_out
from entrepot_pinecone import faults
from entrepot_pinecone.commands import Answer, Call, Pause

if TYPE_CHECKING:
    import ssl
    from collections.abc import Generator

    from entrepot.errors import Outcome
    from entrepot_pinecone.commands import Script

T = TypeVar("T")

API_VERSION: Final = "2025-10"
"""The version of the API that is asked for."""
_AT_ONCE: Final = 200_000
"""Bytes of JSON that are read in the event loop: about a millisecond."""
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
# In the order in which they are looked for: of newer servers first.
_COMMITTED: Final = ("x-pinecone-request-lsn", "x-pinecone-lsn-committed")
_INDEXED: Final = ("x-pinecone-max-indexed-lsn", "x-pinecone-lsn-reconciled")


class Address(NamedTuple):
    """Where the service is, and how to log in.

    Attributes:
        control: The URL of the control plane, without a slash at its end.
        api_key: The API key.
        pool_size: Most connections.
    """

    control: str
    api_key: str
    pool_size: int

    def __repr__(self) -> str:
        """Return the address without the key."""
        return f"<{self.where}>"

    @property
    def where(self) -> str:
        """The address for errors: no key."""
        return f"Pinecone at {urlsplit(self.control).netloc.rpartition('@')[2]}"

    @property
    def scheme(self) -> str:
        """Whether an index that is named without one speaks TLS: as the control plane does."""
        return urlsplit(self.control).scheme

    def keywords(self, timeout: float) -> dict[str, Any]:
        """Return the keywords of an HTTP client."""
        return {
            "timeout": timeout,
            "limits": httpx.Limits(max_connections=self.pool_size, max_keepalive_connections=self.pool_size),
            "verify": _trusted(),
            # A proxy of the environment is for what lies outside.
            "trust_env": urlsplit(self.control).hostname not in _LOOPBACK,
            "follow_redirects": False,
        }


@lru_cache(maxsize=1)
def _trusted() -> ssl.SSLContext:
    """Return what all clients trust; to read the certificates takes as long as some requests."""
    return httpx.create_ssl_context()


def is_loopback(url: str) -> bool:
    """Whether a URL is that of a server on this machine."""
    return urlsplit(url).hostname in _LOOPBACK


# --- the client's own log ---------------------------------------------------------------------------------

_ours: ContextVar[bool] = ContextVar("entrepot_pinecone_ours", default=False)


class _WithoutValues(logging.Filter):
    """Drops what the HTTP client would log of the requests of this library: ids stand in their URLs (O1)."""

    def filter(self, record: logging.LogRecord) -> bool:  # noqa: ARG002 - whatever it says
        return not _ours.get()


for _name in ("httpx", "httpcore.connection", "httpcore.http11", "httpcore.proxy"):
    logging.getLogger(_name).addFilter(_WithoutValues())


@contextmanager
def _unlogged() -> Generator[None]:
    token = _ours.set(True)
    try:
        yield
    finally:
        _ours.reset(token)


# --- the server -------------------------------------------------------------------------------------------


class Server:
    """The service, reached by clients that are made when they are needed.

    Args:
        address: Where it is.
        timeout: Seconds for what is outside of an exchange.
        client: An HTTP client of the user's, which is used and not closed.
    """

    def __init__(self, address: Address, *, timeout: float, client: object = None) -> None:
        if client is not None and not isinstance(client, httpx.Client | httpx.AsyncClient):
            msg = f"client must be an httpx.Client or an httpx.AsyncClient, not {type(client).__name__}"
            raise ConfigurationError(msg)
        self.where = address.where
        self.timeout = timeout
        self.address = address
        self._clients: Clients[httpx.Client, httpx.AsyncClient] = Clients(
            where=self.where,
            make=lambda: httpx.Client(**address.keywords(timeout)),
            close=lambda made: made.close(),
            amake=lambda: httpx.AsyncClient(**address.keywords(timeout)),
            aclose=lambda made: made.aclose(),
            given=client if isinstance(client, httpx.Client) else None,
            agiven=client if isinstance(client, httpx.AsyncClient) else None,
        )
        self.has_sync = self._clients.has_sync
        self.has_async = self._clients.has_async

    @property
    def native(self) -> object:
        """The HTTP client: the user's, or that of sync operations."""
        return self._clients.native

    def close(self) -> None:
        """Close the clients of this library; those of event loops that still run follow soon."""
        self._clients.close()

    async def aclose(self) -> None:
        """As `close`, and waits for the client of the running loop."""
        await self._clients.aclose()

    @property
    def is_closed(self) -> bool:
        """Whether it was closed, perhaps under a call."""
        return self._clients.is_closed

    # --- scripts ----------------------------------------------------------------------------------------

    def run(self, script: Script[T], collection: str = "") -> T:
        """Carry out a script within what is left of the exchange."""
        client = self._clients.sync()
        state = _State(self, collection)

        def ask(step: Call | Pause) -> Answer | None:
            left = state.sending(step)
            if isinstance(step, Pause):
                time.sleep(min(step.seconds, left))
                return None
            try:
                with _unlogged():
                    response = client.request(**self._request(step, left))
                response.raise_for_status()
                body = _decoded(response.content)
            except Exception as error:
                raise state.fault(error) from error
            return state.answered(response, body)

        return carry_out(script, ask)

    async def arun(self, script: Script[T], collection: str = "") -> T:
        """As `run`."""
        client = await self._clients.here()
        state = _State(self, collection)

        async def ask(step: Call | Pause) -> Answer | None:
            left = state.sending(step)
            if isinstance(step, Pause):
                await asyncio.sleep(min(step.seconds, left))
                return None
            try:
                with _unlogged():
                    async with asyncio.timeout(left):
                        response = await client.request(**self._request(step, left))
                response.raise_for_status()
                content = response.content
                if len(content) > _AT_ONCE:
                    body = await asyncio.to_thread(_decoded, content)
                else:
                    body = _decoded(content)
            except Exception as error:
                raise state.fault(error) from error
            return state.answered(response, body)

        return await acarry_out(script, ask)

    def _request(self, call: Call, left: float) -> dict[str, Any]:
        headers = {
            "Api-Key": self.address.api_key,
            "X-Pinecone-API-Version": API_VERSION,
            "Accept": "application/json",
        }
        if call.body is not None:
            headers["Content-Type"] = "application/json"
        return {
            "method": call.method,
            "url": (call.base or self.address.control) + call.path,
            "params": list(call.parameters) or None,
            "content": call.body,
            "headers": headers,
            "timeout": left,
        }


def _decoded(content: bytes) -> dict[str, Any]:
    return msgspec.json.decode(content, type=dict[str, Any]) if content else {}


class _State:
    """What is known of an exchange under way: until when it may go on, and whether it wrote."""

    def __init__(self, server: Server, collection: str) -> None:
        self._server = server
        self._collection = collection
        self._until = time.monotonic() + remaining(server.timeout)
        self._lost: Outcome = "not_done"
        self._writes = self._wrote = False

    def sending(self, step: Call | Pause) -> float:
        """Note that a request is sent; return the seconds it may take.

        Raises:
            OperationTimeoutError: None are left.
        """
        left = self._until - time.monotonic()
        if left <= 0.0:
            msg = f"{self._server.where} had no time left for all that was to be done"
            raise OperationTimeoutError(msg, outcome=self._lost)
        self._writes = isinstance(step, Call) and step.writes
        if self._writes:
            self._lost = "unknown"
        return left

    def answered(self, response: httpx.Response, body: dict[str, Any]) -> Answer:
        """Note that an answer came, and return it."""
        self._wrote = self._wrote or self._writes
        return Answer(body, _place(response, _COMMITTED), _place(response, _INDEXED))

    def fault(self, error: Exception) -> EntrepotError:
        """Return the error of entrepot for one of the client's."""
        if self._server.is_closed:  # the client was closed under it
            return ClosedError(f"the store on {self._server.where} was closed", outcome=self._lost)
        told = faults.remote(error, self._server.where, self._collection, self._lost)
        if self._wrote:  # whatever became of this request, an earlier one changed something
            told.outcome = "unknown"
        return told


def _place(response: httpx.Response, names: tuple[str, ...]) -> int | None:
    """Return a place in the index's log that the headers of an answer tell."""
    for name in names:
        told = cast("str | None", response.headers.get(name))
        if told is not None and told.isdecimal():
            return int(told)
    return None
