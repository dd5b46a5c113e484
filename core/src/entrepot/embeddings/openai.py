"""Embeddings over HTTP, from OpenAI or any server with its interface (vLLM, Ollama, LocalAI, ...).

Needs the extra `entrepot[openai]`: httpx sends, tenacity repeats. One request is
``POST <base_url>/embeddings`` with ``{"model", "input", "encoding_format"[, "dimensions"]}``.
"""

from __future__ import annotations

import asyncio
import importlib.util
import math
import os
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, Self, cast
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

import numpy as np

from entrepot.embedding import DimensionProbe, check_dimensions, check_embeddings
from entrepot.embeddings import openai_wire as wire
from entrepot.errors import (
    ArgumentTypeError,
    ClosedError,
    ConfigurationError,
    DriverNotFoundError,
    EmbeddingError,
    EntrepotError,
    OperationTimeoutError,
    UnembeddableTextError,
    UnreachableError,
)

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence
    from types import TracebackType

    import httpx

    from entrepot.embedding import TokenCounter, Vectors
    from entrepot.embeddings.openai_wire import Row, Usage

DEFAULT_MODEL: Final = "text-embedding-3-small"
DEFAULT_BASE_URL: Final = "https://api.openai.com/v1"
MAX_INPUTS: Final = 2048
"""Texts of one request, by OpenAI's reference."""
MAX_INPUT_TOKENS: Final = 8191
"""Tokens of one text, by OpenAI's reference for its embedding models."""

_DIMENSIONS: Final = {
    "text-embedding-3-small": 1536,
    "text-embedding-3-large": 3072,
    "text-embedding-ada-002": 1536,
}


@dataclass(frozen=True)
class TokenUsage:
    """What the server has counted since the model was made.

    Attributes:
        prompt_tokens: Tokens of the texts.
        total_tokens: Tokens billed.
        requests: Requests that were answered with vectors.
    """

    prompt_tokens: int = 0
    total_tokens: int = 0
    requests: int = 0


class OpenAIEmbeddingModel:
    """An embedding model behind an OpenAI-compatible server, sync and async.

    Refused connections, broken ones and the statuses 408, 409, 425, 429 and 5xx are tried again, after
    what ``Retry-After`` asks or else after a random time that doubles its bound (0.5 s, 1 s, ... 8 s), all
    within `timeout`. A wait that would not end in time is not begun.

    The object is thread-safe and keeps one connection pool, and for async use one an event loop; close it
    with `close` or `aclose`, or use it in a ``with`` block.

    Args:
        model: The server's name for the model.
        api_key: The key; by default the environment variable ``OPENAI_API_KEY``. A server other than
            OpenAI's may need none. It never shows in a repr, an error or a log.
        base_url: Where the interface lives; by default ``OPENAI_BASE_URL``, then OpenAI's own.
        dimensions: Ask the server for vectors of this length (text-embedding-3 and some others can).
            Without it the length is known for OpenAI's models, and asked for once otherwise.
        timeout: Seconds for one request of up to 2,048 texts with all its retries. A server that
            sends its answer drop by drop can stretch a sync call to twice that.
        max_retries: Further tries after the first.
        encoding_format: How vectors travel; ``"base64"`` is a quarter of the bytes. Both are understood
            whatever the server sends.
        headers: Further headers, for gateways.
        token_counter: Counts tokens for batching; an estimate by default.
        max_tokens: The longest text that the model takes.
        client: An `httpx.Client` to use; it is not closed here.
        async_client: An `httpx.AsyncClient` to use, in its own event loop; it is not closed here.

    Raises:
        DriverNotFoundError: The extra is not installed.
        ConfigurationError: No key for OpenAI's own server, or an argument is out of range.
    """

    def __init__(  # noqa: PLR0913 - one argument for each thing that users set
        self,
        model: str = DEFAULT_MODEL,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        dimensions: int | None = None,
        timeout: float = 10.0,
        max_retries: int = 4,
        encoding_format: Literal["base64", "float"] = "base64",
        headers: Mapping[str, str] | None = None,
        token_counter: TokenCounter | None = None,
        max_tokens: int | None = MAX_INPUT_TOKENS,
        client: httpx.Client | None = None,
        async_client: httpx.AsyncClient | None = None,
    ) -> None:
        _require_extra()
        base_url = (base_url or os.environ.get("OPENAI_BASE_URL") or DEFAULT_BASE_URL).rstrip("/")
        api_key = (api_key or os.environ.get("OPENAI_API_KEY") or "").strip() or None
        dimensions = None if dimensions is None else check_dimensions(dimensions)
        _check(model, base_url, api_key, timeout, max_retries, encoding_format)
        if api_key is None and base_url == DEFAULT_BASE_URL:
            raise ConfigurationError(
                "OpenAI's embedding models need a key",
                hint="set OPENAI_API_KEY, or pass api_key=; for a server of your own pass base_url=",
            )
        self.model = model
        self.name = f"openai/{model}" + (f":{dimensions}" if dimensions is not None else "")
        self.base_url = base_url
        self.token_counter = token_counter
        self.max_tokens = max_tokens
        self._endpoint = wire.Endpoint(base_url, model, api_key)
        self._headers = {**(headers or {}), "Content-Type": "application/json"}
        if api_key is not None:
            self._headers["Authorization"] = f"Bearer {api_key}"
        self._asked = dimensions
        self._known = dimensions or (_DIMENSIONS.get(model) if base_url == DEFAULT_BASE_URL else None)
        self._probe = DimensionProbe(self.embed, model=self.name)
        self._timeout = timeout
        self._max_retries = max_retries
        self._encoding_format = encoding_format
        self._lock = threading.Lock()
        self._usage = TokenUsage()
        self._closed = False
        self._given_client = client
        self._given_async_client = async_client
        self._client: httpx.Client | None = None
        self._client_pid = 0
        self._async_clients: WeakKeyDictionary[asyncio.AbstractEventLoop, httpx.AsyncClient] = (
            WeakKeyDictionary()
        )

    def __repr__(self) -> str:
        return f"OpenAIEmbeddingModel(name={self.name!r}, base_url={self.base_url!r})"

    @property
    def dimensions(self) -> int:
        """Length of the vectors; asks the server once if neither the caller nor the name tells."""
        return self._known if self._known is not None else self._probe.get()

    @property
    def usage(self) -> TokenUsage:
        """Tokens and requests so far."""
        return self._usage

    # --- embedding ------------------------------------------------------------------------------------

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return the vectors as a float32 array of shape ``(len(texts), dimensions)``.

        Raises:
            UnembeddableTextError: A text is empty; `index` is its position. Nothing was sent.
            UnreachableError: No connection, or it broke.
            AuthenticationError: The server refused the key (401, 403).
            OperationTimeoutError: No answer within the timeout.
            EmbeddingError: The server refused the request or answered wrongly.
        """
        parts: list[Vectors] = []
        for chunk in _chunks(texts):
            body, deadline = self._body(chunk), time.monotonic() + self._timeout
            retrying = wire.retrying(self._max_retries, self._timeout)
            try:
                rows, usage = retrying(self._post, body, len(chunk), deadline)
            except wire.TransientError as error:
                raise error.error from error.__cause__
            parts.append(self._vectors(rows, usage))
        return np.concatenate(parts) if parts else np.empty((0, self.dimensions), dtype=np.float32)

    async def aembed(self, texts: Sequence[str]) -> Vectors:
        """As `embed`, on the event loop."""
        parts: list[Vectors] = []
        for chunk in _chunks(texts):
            body, deadline = self._body(chunk), time.monotonic() + self._timeout
            retrying = wire.aretrying(self._max_retries, self._timeout)
            try:
                answer: tuple[list[Row], Usage] = await retrying(self._apost, body, len(chunk), deadline)
            except wire.TransientError as error:
                raise error.error from error.__cause__
            parts.append(self._vectors(*answer))
        if parts:
            return np.concatenate(parts)
        return np.empty((0, self._known or await self._probe.aget()), dtype=np.float32)

    def _body(self, texts: Sequence[str]) -> bytes:
        return self._endpoint.body(texts, self._encoding_format, self._asked)

    def _post(self, body: bytes, count: int, deadline: float) -> tuple[list[Row], Usage]:
        """Send once, read the answer up to the deadline, and judge it."""
        client, url, left = self._sync_client(), self._url, self._left(deadline)
        with (
            self._transport_errors(client),
            client.stream("POST", url, content=body, headers=self._headers, timeout=left) as response,
        ):
            content = bytearray()
            for piece in response.iter_bytes():
                content += piece
                self._left(deadline)
        return self._endpoint.rows(response.status_code, response.headers, bytes(content), count)

    async def _apost(self, body: bytes, count: int, deadline: float) -> tuple[list[Row], Usage]:
        client, url, left = self._async_client(), self._url, self._left(deadline)
        with self._transport_errors(client):
            async with asyncio.timeout(left):
                response = await client.post(url, content=body, headers=self._headers, timeout=left)
        return self._endpoint.rows(response.status_code, response.headers, response.content, count)

    @property
    def _url(self) -> str:
        return f"{self.base_url}/embeddings"

    @contextmanager
    def _transport_errors(self, client: httpx.Client | httpx.AsyncClient) -> Generator[None]:
        """Turn the exceptions of httpx into those of entrepot, or into a failure worth another try."""
        import httpx

        try:
            yield
        except EntrepotError:
            raise
        except httpx.ConnectTimeout as error:
            raise UnreachableError(
                f"no connection to {self._endpoint.place} within {self._timeout:g} s"
            ) from error
        except (httpx.TimeoutException, TimeoutError) as error:
            raise self._late() from error
        except httpx.ConnectError as error:
            raise wire.TransientError(UnreachableError(f"no connection to {self._endpoint.place}")) from error
        except httpx.TransportError as error:
            raise wire.TransientError(
                UnreachableError(f"the connection to {self._endpoint.place} broke")
            ) from error
        except Exception as error:
            if client.is_closed:
                raise ClosedError(f"the client given to {self.name!r} was closed") from error
            raise EmbeddingError(
                f"the request to {self._endpoint.place} failed: {type(error).__name__}"
            ) from error

    def _left(self, deadline: float) -> float:
        """Return the seconds until the deadline."""
        left = deadline - time.monotonic()
        if left <= 0:
            raise self._late()
        return left

    def _late(self) -> OperationTimeoutError:
        return OperationTimeoutError(f"no answer from {self._endpoint.place} within {self._timeout:g} s")

    def _vectors(self, rows: list[Row], usage: Usage) -> Vectors:
        """Check the vectors of one request and count what it used."""
        vectors = check_embeddings(rows, len(rows), self._known or self._probe.known, model=self.name)
        self._probe.learn(vectors)
        with self._lock:
            self._usage = TokenUsage(
                self._usage.prompt_tokens + usage.prompt_tokens,
                self._usage.total_tokens + usage.total_tokens,
                self._usage.requests + 1,
            )
        return vectors

    # --- life cycle -----------------------------------------------------------------------------------

    def _sync_client(self) -> httpx.Client:
        import httpx

        with self._lock:
            self._refuse_closed()
            if self._given_client is not None:
                return self._given_client
            # After a fork the parent's connections must not be used here.
            if self._client is None or self._client_pid != os.getpid():
                self._client, self._client_pid = httpx.Client(), os.getpid()
            return self._client

    def _async_client(self) -> httpx.AsyncClient:
        import httpx

        with self._lock:
            self._refuse_closed()
            if self._given_async_client is not None:
                return self._given_async_client
            loop = asyncio.get_running_loop()
            client = self._async_clients.get(loop)
            if client is None:
                client = self._async_clients[loop] = httpx.AsyncClient()
            return client

    def _refuse_closed(self) -> None:
        if self._closed:
            raise ClosedError(f"the embedding model {self.name!r} was closed")

    def close(self) -> None:
        """Close the connections of sync calls; idempotent. After async use call `aclose` instead."""
        with self._lock:
            self._closed = True
            client, self._client = self._client, None
        if client is not None and self._client_pid == os.getpid():
            client.close()

    async def aclose(self) -> None:
        """Close the connections of sync calls and of this event loop; idempotent."""
        self.close()
        with self._lock:
            client = self._async_clients.pop(asyncio.get_running_loop(), None)
        if client is not None:
            await client.aclose()

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


def _require_extra() -> None:
    missing = [name for name in ("httpx", "tenacity") if importlib.util.find_spec(name) is None]
    if missing:
        raise DriverNotFoundError(
            f"the embedding model 'openai' needs {' and '.join(missing)}, which is not installed",
            hint='pip install "entrepot[openai]"',
        )


def _check(  # noqa: PLR0913, PLR0917 - all that users set
    model: str,
    base_url: str,
    key: str | None,
    timeout: float,
    retries: int,
    encoding: str,
) -> None:
    if not isinstance(cast("object", model), str) or not model:
        raise ConfigurationError("the model has no name", hint=f"as in 'openai:{DEFAULT_MODEL}'")
    try:
        parts = urlsplit(base_url)
        fault = parts.scheme not in ("http", "https") or not parts.hostname or parts.port == 0
        secret = parts.username is not None or parts.query or parts.fragment
    except ValueError:
        fault, secret = True, True
    if fault or secret:
        raise ConfigurationError(
            "base_url is no http or https address, or holds a login, a query or a fragment",
            hint="as in 'http://localhost:8000/v1'; the key goes into api_key= or OPENAI_API_KEY",
        )
    if key is not None and not (key.isascii() and key.isprintable()):
        raise ConfigurationError(
            "the key holds characters that no key has", hint="check how OPENAI_API_KEY is set"
        )
    if type(timeout) not in (int, float) or not (timeout > 0 and math.isfinite(timeout)):
        raise ConfigurationError(f"timeout must be a number of seconds above 0, not {timeout!r}")
    if type(retries) is not int or retries < 0:
        raise ConfigurationError(f"max_retries must be an int of at least 0, not {retries!r}")
    if encoding not in ("base64", "float"):
        raise ConfigurationError(f"encoding_format must be 'base64' or 'float', not {encoding!r}")


def _chunks(texts: Sequence[str]) -> list[list[str]]:
    """Cut the texts into requests, refusing what the interface refuses, before anything is sent."""
    if isinstance(texts, str):
        raise ArgumentTypeError("embed() takes a list of texts, not a bare string")
    for index, text in enumerate(texts):
        if not text:
            raise UnembeddableTextError(
                "OpenAI's interface takes no empty text",
                index=index,
                hint="give the document a text, or a vector of its own",
            )
    return [list(texts[start : start + MAX_INPUTS]) for start in range(0, len(texts), MAX_INPUTS)]
