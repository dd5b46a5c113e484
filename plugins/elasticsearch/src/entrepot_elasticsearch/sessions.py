"""Connections to a server: clients, the time that a request may take, and how scripts run (E3 to E5).

`Server.run` carries a script out on an `Elasticsearch`, `Server.arun` on an `AsyncElasticsearch` of the running event
loop. Every request waits for as long as the exchange has left, and the client never tries again by itself.
"""

from __future__ import annotations

import asyncio
import io
import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar, cast

import msgspec
from elastic_transport import AiohttpHttpNode, Urllib3HttpNode
from elasticsearch import AsyncElasticsearch, Elasticsearch, JsonSerializer

from entrepot.clients import Clients
from entrepot.errors import ClosedError, ConfigurationError, EntrepotError, OperationTimeoutError
from entrepot.exchange import remaining
from entrepot.scripted import acarry_out, carry_out
from entrepot_elasticsearch import faults

if TYPE_CHECKING:
    from collections.abc import Mapping

    from entrepot.errors import Outcome
    from entrepot_elasticsearch.commands import Call, Script

T = TypeVar("T")

_JSON: Final = "application/vnd.elasticsearch+json"
_LINES: Final = "application/vnd.elasticsearch+x-ndjson"
# What servers of version 8 and 9 both speak, whichever version the client has.
_COMPATIBLE: Final = "; compatible-with=8"
_HEADERS: Final = {"accept": _JSON + _COMPATIBLE}
_BODY_HEADERS: Final = {**_HEADERS, "content-type": _JSON + _COMPATIBLE}
_LINES_HEADERS: Final = {**_HEADERS, "content-type": _LINES + _COMPATIBLE}
_MOST_TIMED: Final = 64
_LARGE: Final = 1 << 20
_AT_ONCE: Final = 200_000
"""Bytes of JSON that are read in the event loop: about a millisecond."""


class Address(NamedTuple):
    """Where a server is, and how to log in.

    Attributes:
        host: The server.
        port: Its port.
        tls: Whether to use TLS.
        prefix: What stands before the server's paths; empty, or with a slash before it.
        login: User and password.
        api_key: The API key.
        ca_file: TLS: what to trust instead of the system's certificates.
        cert_file: TLS: the client's own certificate.
        key_file: TLS: its key.
        fingerprint: TLS: the SHA-256 of the certificate to trust.
        pool_size: Most connections that stay open.
    """

    host: str
    port: int
    tls: bool
    prefix: str
    login: tuple[str, str] | None
    api_key: str | None
    ca_file: str | None
    cert_file: str | None
    key_file: str | None
    fingerprint: str | None
    pool_size: int

    def __repr__(self) -> str:
        """Return the address without password and key."""
        return f"<{self.where}>"

    @property
    def where(self) -> str:
        """The address for errors: no user, no password, no key."""
        return f"Elasticsearch at {self.host}:{self.port}"

    def keywords(self, node: type[object], timeout: float) -> dict[str, Any]:
        """Return the keywords of a client of the driver."""
        files = {
            "ca_certs": self.ca_file,
            "client_cert": self.cert_file,
            "client_key": self.key_file,
            "ssl_assert_fingerprint": self.fingerprint,
        }
        return {
            "hosts": [
                {
                    "host": self.host,
                    "port": self.port,
                    "scheme": "https" if self.tls else "http",
                    "path_prefix": self.prefix,
                }
            ],
            "connections_per_node": self.pool_size,
            "request_timeout": timeout,
            "max_retries": 0,
            "retry_on_timeout": False,
            "node_class": node,
            "serializers": {_JSON: _Reader()},
            **({"basic_auth": self.login} if self.login is not None else {}),
            **({"api_key": self.api_key} if self.api_key is not None else {}),
            **{name: file for name, file in files.items() if file is not None},
        }


class _Node(Urllib3HttpNode):
    """A connection that logs no requests: they hold texts and values (O1)."""

    def _log_request(self, *_: object, **__: object) -> None:
        return


class _AsyncNode(AiohttpHttpNode):
    """The same for async use; it sends large bodies piece by piece, as aiohttp wants it."""

    async def perform_request(  # type: ignore[override]
        self,
        method: str,
        target: str,
        body: bytes | None = None,
        headers: Any = None,
        request_timeout: Any = None,
    ) -> Any:
        """Send a request."""
        sent: Any = io.BytesIO(body) if body is not None and len(body) >= _LARGE else body
        return await super().perform_request(method, target, sent, headers, request_timeout)

    def _log_request(self, *_: object, **__: object) -> None:
        return


class _Reader(JsonSerializer):
    """Reads answers with msgspec, several times as fast as the standard library; large ones are left as they are.

    The driver reads answers in the event loop, where a large one would take too long (E3).
    """

    mimetype = _JSON

    def json_loads(self, data: bytes) -> Any:
        """Read JSON, if it is not large."""
        return data if len(data) > _AT_ONCE else msgspec.json.decode(data)


class _Timed:
    """A client's copies, one for each timeout: making one takes half a millisecond, using it nothing."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self._copies: dict[float, Any] = {}

    def within(self, seconds: float) -> Any:
        """Return a copy that waits about so long, at most a tenth longer."""
        step = 10.0 ** (len(str(max(1, int(seconds * 1000)))) - 2)  # of two digits, in milliseconds
        rounded = -(-seconds * 1000 // step) * step / 1000
        copy = self._copies.get(rounded)
        if copy is None:
            if len(self._copies) >= _MOST_TIMED:
                self._copies = {}
            copy = self.client.options(request_timeout=rounded, max_retries=0, retry_on_timeout=False)
            self._copies[rounded] = copy
        return copy


class Server:
    """A server, reached by clients that are made when they are needed.

    Args:
        address: Where it is.
        timeout: Seconds for what is outside of an exchange.
        client: A client of the user's, which is used and not closed.
    """

    def __init__(self, address: Address, *, timeout: float, client: object = None) -> None:
        if client is not None and not isinstance(client, Elasticsearch | AsyncElasticsearch):
            msg = f"client must be an Elasticsearch or an AsyncElasticsearch, not {type(client).__name__}"
            raise ConfigurationError(msg)
        self.where = address.where if client is None else "the client's Elasticsearch"
        self.timeout = timeout
        self._address = address
        self._clients: Clients[_Timed, _Timed] = Clients(
            where=self.where,
            make=lambda: self._made(Elasticsearch, _Node),
            close=lambda timed: timed.client.close(),
            amake=lambda: self._made(AsyncElasticsearch, _AsyncNode),
            aclose=lambda timed: timed.client.close(),
            given=_Timed(client) if isinstance(client, Elasticsearch) else None,
            agiven=_Timed(client) if isinstance(client, AsyncElasticsearch) else None,
        )
        self.has_sync = self._clients.has_sync
        self.has_async = self._clients.has_async

    @property
    def native(self) -> object:
        """The driver's client: the user's, or that of sync operations."""
        return cast("_Timed", self._clients.native).client

    def _made(self, kind: type[object], node: type[object]) -> _Timed:
        """Return a new client.

        Raises:
            ConfigurationError: The driver does not take what the options say, such as a file that is not there.
        """
        try:
            return _Timed(kind(**self._address.keywords(node, self.timeout)))
        except (ValueError, TypeError, OSError) as error:
            msg = f"the driver refuses the options of {self.where} ({type(error).__name__})"
            raise ConfigurationError(msg, hint="check host, prefix and the files of certificates") from error

    def close(self) -> None:
        """Close the clients of this library; those of event loops that still run follow soon."""
        self._clients.close()

    async def aclose(self) -> None:
        """As `close`, and waits for the client of the running loop."""
        await self._clients.aclose()

    # --- scripts ----------------------------------------------------------------------------------------

    def run(self, script: Script[T], collection: str = "") -> T:
        """Carry out a script within what is left of the exchange."""
        timed = self._clients.sync()
        state = _State(self, collection)

        def ask(call: Call) -> Any:
            left = state.sending(call)
            try:
                answer = timed.within(left).perform_request(
                    call.method, call.path, headers=_headers(call), body=call.body
                )
            except Exception as error:
                raise state.fault(error) from error
            body = answer.body
            return state.whole(msgspec.json.decode(body) if isinstance(body, bytes) else body)

        return carry_out(script, ask)

    async def arun(self, script: Script[T], collection: str = "") -> T:
        """As `run`."""
        timed = await self._clients.here()
        state = _State(self, collection)

        async def ask(call: Call) -> Any:
            left = state.sending(call)
            try:
                async with asyncio.timeout(left):
                    answer = await timed.within(left).perform_request(
                        call.method, call.path, headers=_headers(call), body=call.body
                    )
            except Exception as error:
                raise state.fault(error) from error
            body = answer.body
            if isinstance(body, bytes):
                body = await asyncio.to_thread(msgspec.json.decode, body)
            return state.whole(body)

        return await acarry_out(script, ask)

    @property
    def is_closed(self) -> bool:
        """Whether it was closed, perhaps under a call."""
        return self._clients.is_closed


class _State:
    """What is known of an exchange under way: until when it may go on, and whether it wrote."""

    def __init__(self, server: Server, collection: str) -> None:
        self._server = server
        self._collection = collection
        self._until = time.monotonic() + remaining(server.timeout)
        self._lost: Outcome = "not_done"
        self._writes = self._wrote = False

    def sending(self, call: Call) -> float:
        """Note that a request is sent; return the seconds it may take.

        Raises:
            OperationTimeoutError: None are left.
        """
        left = self._until - time.monotonic()
        if left <= 0.0:
            msg = f"{self._server.where} had no time left for all that was to be done"
            raise OperationTimeoutError(msg, outcome=self._lost)
        self._writes = call.writes
        if call.writes:
            self._lost = "unknown"
        return left

    def whole(self, body: Any) -> Any:
        """Return the JSON of an answer.

        Raises:
            UnreachableError: There is none, as the connection broke behind the answer's first line.
        """
        if not isinstance(body, dict):
            raise faults.broken(self._server.where, self._lost)
        self._wrote = self._wrote or self._writes
        return cast("dict[str, Any]", body)

    def fault(self, error: Exception) -> EntrepotError:
        """Return the error of entrepot for one of the driver's."""
        if self._server.is_closed:  # the client was closed under it
            return ClosedError(f"the store on {self._server.where} was closed", outcome=self._lost)
        told = faults.remote(error, self._server.where, self._collection, self._lost)
        if self._wrote:  # whatever became of this request, an earlier one changed something
            told.outcome = "unknown"
        return told


def _headers(call: Call) -> Mapping[str, str]:
    if call.body is None:
        return _HEADERS
    return cast("Mapping[str, str]", _LINES_HEADERS if call.lines else _BODY_HEADERS)
