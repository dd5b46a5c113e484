"""What the client raises, in the errors of entrepot (E1, E2, E4). Pure functions.

A server's message may quote values, so none goes into ours: the exception is the cause, and the type of the server's
error, a word of its own, says the rest.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, cast

import aiohttp
from elastic_transport import ConnectionTimeout, SerializationError, TlsError, TransportError
from elasticsearch import ApiError, UnsupportedProductError
from urllib3.exceptions import ConnectTimeoutError, NewConnectionError

from entrepot.errors import (
    AuthenticationError,
    BackendError,
    CollectionNotFoundError,
    ConfigurationError,
    EntrepotError,
    OperationTimeoutError,
    UnreachableError,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from entrepot.errors import Outcome

_WORD: Final = re.compile(r"[a-z_]{3,80}")
_UNAUTHORIZED: Final = 401
_FORBIDDEN: Final = 403
_NOT_FOUND: Final = 404
_TIMEOUT: Final = 408
_TOO_LARGE: Final = 413
_TOO_MANY: Final = 429
_SERVER: Final = 500
_CONFLICT: Final = 409


class CollectionExistsError(BackendError):
    """An index was to be made and is there."""


class PointLostError(BackendError):
    """A point in time is over: it was kept for too long, or its node is gone."""


class ForbiddenError(AuthenticationError):
    """The server knows who asks and does not allow this."""


def remote(error: Exception, where: str, collection: str, lost: Outcome) -> EntrepotError:
    """Return the error for an exception of the client.

    Args:
        error: What was raised.
        where: The server.
        collection: What was worked on.
        lost: What is known if no answer came: ``"unknown"`` once something that writes was sent.
    """
    if isinstance(error, UnsupportedProductError):
        if not error.body:
            return broken(where, lost)
        return ConfigurationError(
            f"what answers at {where} does not say that it is Elasticsearch",
            hint="check host, port and prefix",
        )
    if isinstance(error, ApiError):
        return answered(error.status_code, error.body, where, collection, lost)
    return _lost(error, where, lost)


def broken(where: str, lost: Outcome) -> UnreachableError:
    """Return the error for an answer that broke off."""
    return UnreachableError(f"the connection to {where} broke", outcome=lost)


def _lost(error: Exception, where: str, lost: Outcome) -> EntrepotError:
    """Return the error for an answer that did not come, or was none."""
    if isinstance(error, TlsError):
        return UnreachableError(
            f"no connection to {where} over TLS: its certificate is not trusted, or it speaks no TLS",
            hint="ca_file= or fingerprint= names what to trust; the host must be the certificate's",
            retryable=False,
        )
    if any(
        isinstance(one, NewConnectionError | aiohttp.ClientConnectorError | ConnectionRefusedError)
        for one in _chain(error)
    ):
        return UnreachableError(f"no connection to {where}")
    if any(isinstance(one, ConnectTimeoutError | aiohttp.ConnectionTimeoutError) for one in _chain(error)):
        return UnreachableError(f"no connection to {where} in time")
    if isinstance(error, ConnectionTimeout | TimeoutError):
        return OperationTimeoutError(f"no answer from {where} in time", outcome=lost)
    if isinstance(error, SerializationError):
        return BackendError(
            f"what answers at {where} is not Elasticsearch, or its answer is not whole",
            hint="check host, port and prefix",
            retryable=True,
            outcome=lost,
        )
    if isinstance(error, TransportError | OSError | aiohttp.ClientError):
        return broken(where, lost)
    return BackendError(f"the driver failed with {type(error).__name__}", outcome=lost)


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an exception and all that led to it."""
    pending: list[BaseException] = [error]
    seen: set[int] = set()
    while pending:
        one = pending.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        pending += [
            cause
            for cause in (
                one.__cause__,
                one.__context__,
                *getattr(one, "errors", ()),
                getattr(one, "reason", None),
            )
            if isinstance(cause, BaseException)
        ]


def answered(status: int, body: object, where: str, collection: str, lost: Outcome) -> EntrepotError:
    """Return the error for an answer that is one, of a request or of a part of it.

    Args:
        status: Its HTTP status.
        body: What the server says.
        where: The server.
        collection: What was worked on.
        lost: What is known of a write that failed on the server.
    """
    kinds = error_types(body)
    first = kinds[0] if kinds else f"status {status}"
    if status == _UNAUTHORIZED:
        return AuthenticationError(
            f"{where} refused the login",
            hint="check user, password or api_key; they come from the URL, the arguments, "
            "ENTREPOT_ELASTICSEARCH_PASSWORD or ENTREPOT_ELASTICSEARCH_API_KEY",
        )
    if "cluster_block_exception" in kinds:
        return BackendError(
            f"{where} takes no writes now (cluster_block_exception)",
            hint="is its disk nearly full, or the index closed or read-only?",
        )
    if status == _FORBIDDEN:
        return ForbiddenError(f"{where} does not allow this ({first})", hint="grant the user what it needs")
    if "index_not_found_exception" in kinds or "index_closed_exception" in kinds:
        return CollectionNotFoundError(f"there is no collection {collection!r}")
    if "resource_already_exists_exception" in kinds:
        return CollectionExistsError(f"{where} has an index of the name already")
    if "search_context_missing_exception" in kinds:
        return PointLostError(f"{where} keeps the point in time no longer", retryable=True)
    if status == _NOT_FOUND:
        return BackendError(f"{where} has no such path ({first})", hint="check host, port and prefix")
    if status == _TOO_MANY:
        return BackendError(
            f"{where} takes no more requests now ({first})",
            hint="ask less often, or give it more memory",
            retryable=True,
            outcome=lost,
        )
    if status == _TIMEOUT:
        return OperationTimeoutError(f"{where} gave up in time", outcome=lost)
    if status == _TOO_LARGE:
        return BackendError(f"the request is larger than {where} takes", hint="write smaller documents")
    if status == _CONFLICT:
        return BackendError(f"{where} changed a document meanwhile ({first})", retryable=True, outcome=lost)
    if status >= _SERVER:
        return BackendError(f"{where} failed ({first})", retryable=True, outcome=lost)
    if "too_many_nested_clauses" in kinds or "too_many_clauses" in kinds:
        return BackendError(f"{where} takes fewer clauses ({first})", hint="use a smaller filter")
    return BackendError(f"{where} refused the request ({first})")


def error_types(body: object) -> list[str]:
    """Return the types of the errors in an answer, the outermost first."""
    found: list[str] = []
    pending: list[Any] = [body]
    while pending:
        one = pending.pop(0)
        if isinstance(one, list):
            pending += one
        elif isinstance(one, dict):
            told = cast("dict[str, Any]", one)
            kind = told.get("type")
            if isinstance(kind, str) and _WORD.fullmatch(kind):
                found.append(kind)
            pending += [
                told[name]
                for name in ("error", "root_cause", "caused_by", "reason", "failed_shards")
                if name in told
            ]
    return found
