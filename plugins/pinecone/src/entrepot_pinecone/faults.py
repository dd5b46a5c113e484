"""What HTTP and the server say, in the errors of entrepot (E1, E2, E4). Pure functions.

A server's message may quote values, so none goes into ours: the exception is the cause, and the server's code, a word of
its own, says the rest.
"""

from __future__ import annotations

import re
import ssl
from typing import TYPE_CHECKING, Any, Final, cast

import httpx  # noqa: TID253 - this module loads with the store
import msgspec

from entrepot.errors import (
    AuthenticationError,
    BackendError,
    CollectionNotFoundError,
    ConfigurationError,
    EntrepotError,
    OperationTimeoutError,
    SizeLimitError,
    UnreachableError,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from entrepot.errors import Outcome

_WORD: Final = re.compile(r"[A-Za-z_]{3,60}")
_UNAUTHORIZED: Final = 401
_PAYMENT: Final = 402
_FORBIDDEN: Final = 403
_NOT_FOUND: Final = 404
_TIMEOUT: Final = 408
_CONFLICT: Final = 409
_TOO_LARGE: Final = 413
_TOO_MANY: Final = 429
_SERVER: Final = 500


class IndexExistsError(BackendError):
    """An index was to be made and is there."""


class ForbiddenError(AuthenticationError):
    """The server knows who asks and does not allow this."""


def remote(error: Exception, where: str, collection: str, lost: Outcome) -> EntrepotError:
    """Return the error for an exception of the HTTP client, or of reading an answer.

    Args:
        error: What was raised.
        where: The server.
        collection: What was worked on.
        lost: What is known if no answer came: ``"unknown"`` once something that writes was sent.
    """
    if isinstance(error, httpx.HTTPStatusError):
        return answered(error.response.status_code, code_of(error.response.content), where, collection, lost)
    if isinstance(error, httpx.ConnectError):
        if any(isinstance(one, ssl.SSLError) for one in _chain(error)):
            return UnreachableError(
                f"no connection to {where} over TLS: its certificate is not trusted, or it speaks no TLS",
                hint="the URL of a server without TLS begins with pinecone+http://",
                retryable=False,
            )
        return UnreachableError(f"no connection to {where}")
    if isinstance(error, httpx.ConnectTimeout):
        return UnreachableError(f"no connection to {where} in time")
    if isinstance(error, httpx.PoolTimeout):
        return OperationTimeoutError(
            f"no connection to {where} was free in time",
            hint="raise pool_size or timeout",
            outcome="not_done",
        )
    if isinstance(error, httpx.TimeoutException | TimeoutError):
        return OperationTimeoutError(f"no answer from {where} in time", outcome=lost)
    if isinstance(error, httpx.UnsupportedProtocol | httpx.InvalidURL):
        return ConfigurationError(f"the address of {where} is none", hint="check control and host")
    if isinstance(error, httpx.TransportError | httpx.DecodingError | OSError):
        return UnreachableError(f"the connection to {where} broke", outcome=lost)
    if isinstance(error, msgspec.DecodeError):
        return BackendError(
            f"what answers at {where} is not Pinecone, or its answer is not whole",
            hint="check control and host",
            retryable=True,
            outcome=lost,
        )
    return BackendError(f"the HTTP client failed with {type(error).__name__}", outcome=lost)


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an exception and what led to it."""
    one: BaseException | None = error
    seen: set[int] = set()
    while one is not None and id(one) not in seen:
        seen.add(id(one))
        yield one
        one = one.__cause__ or one.__context__


def code_of(body: bytes) -> str | None:
    """Return the code of an error that a server describes, if it is a word."""
    try:
        told: Any = msgspec.json.decode(body)
    except msgspec.DecodeError:
        return None
    if not isinstance(told, dict):
        return None
    found = cast("dict[str, Any]", told)
    error = found.get("error")
    code = cast("dict[str, Any]", error).get("code") if isinstance(error, dict) else found.get("code")
    return code if isinstance(code, str) and _WORD.fullmatch(code) else None


def answered(status: int, code: str | None, where: str, collection: str, lost: Outcome) -> EntrepotError:
    """Return the error for an answer that is one.

    Args:
        status: Its HTTP status.
        code: What the server calls it.
        where: The server.
        collection: What was worked on.
        lost: What is known of a write that failed on the server.
    """
    said = f"{status} {code}" if code else f"status {status}"
    if status == _UNAUTHORIZED:
        return AuthenticationError(
            f"{where} refused the API key",
            hint="check api_key; it comes from the URL, the arguments or PINECONE_API_KEY",
        )
    if status == _FORBIDDEN:
        return ForbiddenError(
            f"{where} does not allow this ({said})",
            hint="what the key may do, a quota of the project, or the index's deletion protection forbids it",
        )
    if status == _PAYMENT:
        return BackendError(f"{where} asks for payment ({said})", hint="see the project's billing")
    if status == _NOT_FOUND:
        return CollectionNotFoundError(f"there is no collection {collection!r}")
    if status == _CONFLICT:
        return IndexExistsError(f"{where} has an index of the name already, or one that is being deleted")
    if status == _TOO_LARGE:
        return SizeLimitError(f"a request is larger than {where} takes")
    if status == _TOO_MANY:
        return BackendError(
            f"{where} takes no more requests now ({said})",
            hint="ask less often, or raise the limits of the project",
            retryable=True,
            outcome="not_done",
        )
    if status == _TIMEOUT:
        return OperationTimeoutError(f"{where} gave up in time", outcome=lost)
    if status >= _SERVER:
        return BackendError(f"{where} failed ({said})", retryable=True, outcome=lost)
    return BackendError(f"{where} refused the request ({said})")
