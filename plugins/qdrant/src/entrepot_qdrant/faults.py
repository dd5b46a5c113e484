"""What the client raises, in the errors of entrepot (E1, E2, E4). Pure functions.

A server's message may quote values, so none goes into ours: the exception is the cause.
"""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Final

import grpc  # type: ignore[import-untyped]
import httpx  # noqa: TID253 - the driver is built on it, and loads it
from qdrant_client.common.client_exceptions import QdrantException, ResourceExhaustedResponse
from qdrant_client.http.exceptions import ApiException, ResponseHandlingException, UnexpectedResponse

from entrepot.errors import (
    AuthenticationError,
    BackendError,
    CollectionNotFoundError,
    EntrepotError,
    OperationTimeoutError,
    StoreInUseError,
    UnreachableError,
)

if TYPE_CHECKING:
    from entrepot.errors import Outcome

DRIVER_ERRORS: Final = (ApiException, QdrantException, grpc.RpcError, httpx.HTTPError, OSError)
"""What the client raises over a network."""
_UNAUTHORIZED: Final = 401
_FORBIDDEN: Final = 403
_NOT_FOUND: Final = 404
_TIMEOUT: Final = 408
_CONFLICT: Final = 409
_TOO_LARGE: Final = 413
_TOO_MANY: Final = 429
_SERVER: Final = 500


class CollectionExistsError(BackendError):
    """A collection was to be made and is there."""


def remote(error: Exception, where: str, collection: str, lost: Outcome) -> EntrepotError:
    """Return the error for an exception of the client over a network.

    Args:
        error: What was raised.
        where: The server.
        collection: What was worked on.
        lost: What is known if no answer came: ``"unknown"`` once something that writes was sent.
    """
    if isinstance(error, ResponseHandlingException):
        error = error.source
    if isinstance(error, UnexpectedResponse):
        return _answered(error, where, collection, lost)
    if isinstance(error, ResourceExhaustedResponse):
        return _too_many(where)
    if isinstance(error, grpc.RpcError):
        return _over_grpc(error, where, collection, lost)
    return _lost(error, where, lost)


def _lost(error: Exception, where: str, lost: Outcome) -> EntrepotError:
    """Return the error for an answer that did not come, or was none."""
    if "CERTIFICATE_VERIFY_FAILED" in str(error):
        return UnreachableError(
            f"{where} has a certificate that is not trusted",
            hint="ca_file= names what to trust; the host in the address must be the certificate's",
            retryable=False,
        )
    if isinstance(error, httpx.PoolTimeout):
        return OperationTimeoutError(
            f"no connection to {where} became free in time",
            hint="raise pool_size or timeout",
            outcome="not_done",
        )
    if isinstance(error, httpx.ConnectTimeout):
        return UnreachableError(f"no connection to {where} in time")
    if isinstance(error, httpx.ConnectError):
        return UnreachableError(f"no connection to {where}")
    if isinstance(error, httpx.TimeoutException | TimeoutError):
        return OperationTimeoutError(f"no answer from {where} in time", outcome=lost)
    if isinstance(error, httpx.HTTPError | OSError):
        return UnreachableError(f"the connection to {where} broke", outcome=lost)
    return BackendError(
        f"what answers at {where} is not Qdrant, or of a version that the client does not know",
        hint="check host, port and prefix",
        outcome=lost,
    )


def _answered(error: UnexpectedResponse, where: str, collection: str, lost: Outcome) -> EntrepotError:
    code = error.status_code or 0
    if code in {_UNAUTHORIZED, _FORBIDDEN}:
        return _refused_login(where)
    if code == _NOT_FOUND:
        if b"ollection" in error.content or b"Not found" in error.content:
            return _missing(collection)
        return BackendError(f"{where} has no such path", hint="check host, port and prefix")
    if code == _CONFLICT:
        return CollectionExistsError(f"{where} has a collection {collection!r} already")
    if code == _TOO_MANY:
        return _too_many(where)
    if code == _TIMEOUT:
        return OperationTimeoutError(f"{where} gave up in time", outcome=lost)
    if code == _TOO_LARGE:
        return BackendError(f"the request is larger than {where} takes", hint="write smaller documents")
    if code >= _SERVER:
        return BackendError(f"{where} failed (status {code})", retryable=True, outcome=lost)
    if b"already exists" in error.content:
        return CollectionExistsError(f"{where} has a collection {collection!r} already")
    return BackendError(f"{where} refused the request (status {code})")


def _over_grpc(error: grpc.RpcError, where: str, collection: str, lost: Outcome) -> EntrepotError:
    code = error.code() if hasattr(error, "code") else grpc.StatusCode.UNKNOWN
    if code in {grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED}:
        return _refused_login(where)
    if code is grpc.StatusCode.NOT_FOUND:
        return _missing(collection)
    if code is grpc.StatusCode.ALREADY_EXISTS:
        return CollectionExistsError(f"{where} has a collection {collection!r} already")
    if code is grpc.StatusCode.RESOURCE_EXHAUSTED:
        return _too_many(where)
    if code is grpc.StatusCode.DEADLINE_EXCEEDED:
        return OperationTimeoutError(f"no answer from {where} in time", outcome=lost)
    if code is grpc.StatusCode.UNAVAILABLE:
        return UnreachableError(f"no connection to {where}, or it broke", outcome=lost)
    if code is grpc.StatusCode.INVALID_ARGUMENT:
        return BackendError(f"{where} refused the request ({code.name})")
    return BackendError(f"{where} failed ({code.name})", outcome=lost)


def _refused_login(where: str) -> AuthenticationError:
    return AuthenticationError(
        f"{where} refused the login, or what it allows",
        hint="check the API key and its rights; it comes from the URL, the argument or QDRANT_API_KEY",
    )


def _missing(collection: str) -> CollectionNotFoundError:
    return CollectionNotFoundError(f"there is no collection {collection!r}")


def _too_many(where: str) -> BackendError:
    return BackendError(
        f"{where} takes no more requests now", hint="ask less often, or raise its limits", retryable=True
    )


def local(error: Exception, where: str, collection: str) -> EntrepotError:
    """Return the error for an exception of the client in its local mode."""
    text = str(error)
    if isinstance(error, ValueError) and text.startswith("Collection ") and text.endswith(" not found"):
        return _missing(collection)
    if isinstance(error, ValueError) and text.endswith(" already exists"):
        return CollectionExistsError(f"{where} has a collection {collection!r} already")
    if isinstance(error, RuntimeError) and "already accessed" in text:
        return StoreInUseError(
            f"{where} is open in another process",
            hint="close it there; several processes share a Qdrant server",
        )
    lost: Outcome = "unknown" if isinstance(error, sqlite3.Error) else "not_done"
    return BackendError(f"{where} failed with {type(error).__name__}", outcome=lost)
