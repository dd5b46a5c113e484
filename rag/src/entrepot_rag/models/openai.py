"""Chat models over HTTP: OpenAI's, and those of any server with its interface (Ollama, vLLM, LM Studio, ...).

Needs the extra `entrepot-rag[openai]`: httpx sends, tenacity repeats.
"""

from __future__ import annotations

import importlib.util
import math
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, Self
from urllib.parse import urlsplit

from entrepot.clients import Clients
from entrepot.embeddings.openai_wire import TransientError, aretrying, retrying
from entrepot.errors import (
    ConfigurationError,
    DriverNotFoundError,
    EntrepotError,
    OperationTimeoutError,
    UnreachableError,
)
from entrepot_rag.errors import ChatModelError
from entrepot_rag.models.events import Events
from entrepot_rag.models.openai_wire import Endpoint

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Generator, Iterator, Mapping
    from types import TracebackType

    import httpx

    from entrepot_rag.chat import ChatResponse, Chunk, Prompt

DEFAULT_BASE_URL: Final = "https://api.openai.com/v1"


class OpenAIChatModel:
    """A chat model behind an OpenAI-compatible server: calls and streams, sync and async.

    Refused connections, broken ones and the statuses 408, 409, 425, 429 and 5xx are tried again, after what
    ``Retry-After`` asks or else after a random time that doubles its bound (0.5 s, 1 s, ... 8 s). A stream is tried again
    until its first piece has come, and not after. A stream that ends without saying why is an error.

    The object is thread-safe and keeps one connection pool, and for async code one an event loop; close it, or use it
    in a ``with`` block.

    Args:
        model: The server's name for the model.
        api_key: The key; by default OPENAI_API_KEY. A server other than OpenAI's may need none. It never shows in a
            repr, an error or a log.
        base_url: Where the interface lives; by default OPENAI_BASE_URL, then OpenAI's own.
        timeout: Seconds until an answer begins, and between two pieces of it.
        max_retries: Further tries after the first.
        headers: Further headers, for gateways.
        client: An `httpx.Client` to use; it is not closed here.
        async_client: An `httpx.AsyncClient` to use, in its own event loop; it is not closed here.

    Raises:
        DriverNotFoundError: The extra is not installed.
        ConfigurationError: No key for OpenAI's own server, or an argument is out of range.
    """

    def __init__(  # noqa: PLR0913 - one argument for each thing that users set
        self,
        model: str,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        timeout: float = 60.0,
        max_retries: int = 3,
        headers: Mapping[str, str] | None = None,
        client: httpx.Client | None = None,
        async_client: httpx.AsyncClient | None = None,
    ) -> None:
        _require_extra()
        import httpx

        base_url = (base_url or os.environ.get("OPENAI_BASE_URL") or DEFAULT_BASE_URL).rstrip("/")
        api_key = (api_key or os.environ.get("OPENAI_API_KEY") or "").strip() or None
        _check(model, base_url, api_key, timeout, max_retries)
        if api_key is None and base_url == DEFAULT_BASE_URL:
            msg = "OpenAI's chat models need a key"
            raise ConfigurationError(
                msg, hint="set OPENAI_API_KEY, or pass api_key=; for a server of your own pass base_url="
            )
        self.name = model
        self.base_url = base_url
        self._endpoint = Endpoint(base_url, model, api_key)
        self._headers = {**(headers or {}), "Content-Type": "application/json"}
        if api_key is not None:
            self._headers["Authorization"] = f"Bearer {api_key}"
        self._timeout = timeout
        self._max_retries = max_retries
        self._clients: Clients[httpx.Client, httpx.AsyncClient] = Clients(
            where=self._endpoint.place,
            make=lambda: httpx.Client(timeout=timeout),
            close=lambda one: one.close(),
            amake=lambda: httpx.AsyncClient(timeout=timeout),
            aclose=lambda one: one.aclose(),
        )
        self._given = client
        self._agiven = async_client

    def __repr__(self) -> str:
        return f"OpenAIChatModel(model={self.name!r}, base_url={self.base_url!r})"

    # --- calls ------------------------------------------------------------------------------------------

    def call(self, prompt: Prompt, /) -> ChatResponse:
        """Return the answer.

        Raises:
            UnreachableError: No connection, or it broke.
            AuthenticationError: The server refused the key (401, 403).
            OperationTimeoutError: No answer within the timeout.
            ModelRefusedError: The server refuses the request.
            ChatModelError: The server failed or answered wrongly.
        """
        body = self._endpoint.body(prompt, stream=False)
        try:
            return retrying(self._max_retries, math.inf)(self._post, body)
        except TransientError as error:
            raise error.error from error.__cause__

    async def acall(self, prompt: Prompt, /) -> ChatResponse:
        """As `call`."""
        body = self._endpoint.body(prompt, stream=False)
        try:
            return await aretrying(self._max_retries, math.inf)(self._apost, body)
        except TransientError as error:
            raise error.error from error.__cause__

    def _post(self, body: bytes) -> ChatResponse:
        with self._transport_errors():
            response = self._client().post(
                self._url, content=body, headers=self._headers, timeout=self._timeout
            )
        self._endpoint.check(response.status_code, response.headers, response.content)
        return self._endpoint.response(response.content)

    async def _apost(self, body: bytes) -> ChatResponse:
        with self._transport_errors():
            client = await self._aclient()
            response = await client.post(
                self._url, content=body, headers=self._headers, timeout=self._timeout
            )
        self._endpoint.check(response.status_code, response.headers, response.content)
        return self._endpoint.response(response.content)

    # --- streams ----------------------------------------------------------------------------------------

    def stream(self, prompt: Prompt, /) -> Iterator[Chunk]:
        """Return the pieces of the answer, as they come. Closing the iterator ends the request.

        Raises:
            EntrepotError: As `call`; also while pieces come.
        """
        body = self._endpoint.body(prompt, stream=True)
        try:
            response: httpx.Response = retrying(self._max_retries, math.inf)(self._opened, body)
        except TransientError as error:
            raise error.error from error.__cause__
        reading = _Reading(self._endpoint)
        try:
            with self._reading_errors():
                for piece in response.iter_bytes():
                    yield from reading.feed(piece)
                    if reading.is_done:
                        return
            yield from reading.finish()
        finally:
            response.close()

    async def astream(self, prompt: Prompt, /) -> AsyncIterator[Chunk]:
        """As `stream`."""
        body = self._endpoint.body(prompt, stream=True)
        try:
            response: httpx.Response = await aretrying(self._max_retries, math.inf)(self._aopened, body)
        except TransientError as error:
            raise error.error from error.__cause__
        reading = _Reading(self._endpoint)
        try:
            with self._reading_errors():
                async for piece in response.aiter_bytes():
                    for chunk in reading.feed(piece):
                        yield chunk
                    if reading.is_done:
                        return
            for chunk in reading.finish():
                yield chunk
        finally:
            await response.aclose()

    def _opened(self, body: bytes) -> httpx.Response:
        """Send, and return a response that is still to be read, if the server takes the request."""
        with self._transport_errors():
            client = self._client()
            request = client.build_request(
                "POST", self._url, content=body, headers=self._headers, timeout=self._timeout
            )
            response = client.send(request, stream=True)
            if response.is_success:
                return response
            content = response.read()
        self._endpoint.check(response.status_code, response.headers, content)
        raise AssertionError  # no status is both

    async def _aopened(self, body: bytes) -> httpx.Response:
        with self._transport_errors():
            client = await self._aclient()
            request = client.build_request(
                "POST", self._url, content=body, headers=self._headers, timeout=self._timeout
            )
            response = await client.send(request, stream=True)
            if response.is_success:
                return response
            content = await response.aread()
        self._endpoint.check(response.status_code, response.headers, content)
        raise AssertionError  # as above

    # --- faults -----------------------------------------------------------------------------------------

    @contextmanager
    def _transport_errors(self) -> Generator[None]:
        """Turn the exceptions of httpx into ours, or into a failure worth another try."""
        import httpx

        place = self._endpoint.place
        try:
            yield
        except EntrepotError:
            raise
        except httpx.ConnectTimeout as error:
            msg = f"no connection to {place} within {self._timeout:g} s"
            raise UnreachableError(msg) from error
        except httpx.TimeoutException as error:
            msg = f"no answer from {place} within {self._timeout:g} s"
            raise OperationTimeoutError(msg) from error
        except httpx.ConnectError as error:
            raise TransientError(UnreachableError(f"no connection to {place}")) from error
        except httpx.TransportError as error:
            raise TransientError(UnreachableError(f"the connection to {place} broke")) from error
        except httpx.HTTPError as error:
            msg = f"the request to {place} failed: {type(error).__name__}"
            raise ChatModelError(msg) from error

    @contextmanager
    def _reading_errors(self) -> Generator[None]:
        """As `_transport_errors`, while an answer is read: it cannot be asked for again."""
        try:
            with self._transport_errors():
                yield
        except TransientError as error:
            raise error.error from error.__cause__

    # --- connections ------------------------------------------------------------------------------------

    @property
    def _url(self) -> str:
        return f"{self.base_url}/chat/completions"

    def _client(self) -> httpx.Client:
        own = self._given
        if own is None or self._clients.is_closed:
            return self._clients.sync()
        return own

    async def _aclient(self) -> httpx.AsyncClient:
        own = self._agiven
        if own is None or self._clients.is_closed:
            return await self._clients.here()
        return own

    def close(self) -> None:
        """Close the connections; idempotent."""
        self._clients.close()

    async def aclose(self) -> None:
        """As `close`, and waits for those of this event loop."""
        await self._clients.aclose()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


class _Reading:
    """Reads one stream: bytes to pieces, and whether it came to its end."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._events = Events()
        self._reasons: dict[int, bool] = {}
        self.is_done = False

    def feed(self, piece: bytes) -> Iterator[Chunk]:
        for data in self._events.feed(piece):
            yield from self._read(data)

    def _read(self, data: bytes) -> Iterator[Chunk]:
        if self.is_done:
            return
        chunks = self._endpoint.chunks(data)
        if chunks is None:
            self.is_done = True
            return
        for chunk in chunks:
            if chunk.text or chunk.fragments or chunk.finish_reason is not None:
                ended = self._reasons.get(chunk.generation, False)
                self._reasons[chunk.generation] = ended or chunk.finish_reason is not None
            yield chunk

    def finish(self) -> Iterator[Chunk]:
        """Judge a stream whose bytes ended without the mark of its end.

        Raises:
            ChatModelError: An answer did not say why it ended, so the stream was cut.
        """
        for data in self._events.finish():
            try:
                chunks = list(self._read(data))
            except ChatModelError:
                break  # an event that was cut, too
            yield from chunks
        if not self.is_done and not (self._reasons and all(self._reasons.values())):
            msg = f"the stream of {self._endpoint.place} ended in the middle"
            raise ChatModelError(msg, retryable=True, hint="ask again")


def _require_extra() -> None:
    missing = [name for name in ("httpx", "tenacity") if importlib.util.find_spec(name) is None]
    if missing:
        msg = f"OpenAIChatModel needs {' and '.join(missing)}, which is not installed"
        raise DriverNotFoundError(msg, hint='pip install "entrepot-rag[openai]"')


def _check(model: str, base_url: str, key: str | None, timeout: float, retries: int) -> None:
    given: Any = model
    if not isinstance(given, str) or not given:
        msg = "the model has no name"
        raise ConfigurationError(msg)
    try:
        parts = urlsplit(base_url)
        fits = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        fits = fits and parts.username is None and not parts.query and not parts.fragment
    except ValueError:
        fits = False
    if not fits:
        msg = "base_url is no http or https address, or holds a login, a query or a fragment"
        raise ConfigurationError(
            msg, hint="as in 'http://localhost:8000/v1'; the key goes into api_key= or OPENAI_API_KEY"
        )
    if key is not None and not (key.isascii() and key.isprintable()):
        msg = "the key holds characters that no key has"
        raise ConfigurationError(msg, hint="check how OPENAI_API_KEY is set")
    if type(timeout) not in (int, float) or not (timeout > 0 and math.isfinite(timeout)):
        msg = f"timeout must be a number of seconds above 0, not {timeout!r}"
        raise ConfigurationError(msg)
    if type(retries) is not int or retries < 0:
        msg = f"max_retries must be an int of at least 0, not {retries!r}"
        raise ConfigurationError(msg)
