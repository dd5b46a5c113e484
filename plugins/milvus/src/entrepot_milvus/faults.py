"""What pymilvus raises, in the errors of entrepot (E1, E2, E4). Pure functions.

A server's message quotes expressions and names, so none goes into ours: the exception is the cause.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import grpc  # type: ignore[import-untyped]
from pymilvus.exceptions import MilvusException  # type: ignore[import-untyped]

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
    from entrepot.errors import Outcome

DRIVER_ERRORS: Final = (MilvusException, grpc.RpcError, grpc.FutureTimeoutError, OSError, ValueError)
"""What the client raises; a ValueError is gRPC's about a channel that is closed."""

_UNAVAILABLE: Final = 2
_OUT_OF_MEMORY: Final = 3
_TOO_MANY: Final = frozenset({4, 8})
_DENIED: Final = 9
_NO_COLLECTION: Final = 100
_NOT_LOADED: Final = 101
_NO_PARTITION: Final = 200
_NO_DATABASE: Final = 800
_LOGIN: Final = frozenset({1400, 1401})
_LOST_PARTITION: Final = re.compile(r"partition .*not found", re.IGNORECASE)
_NO_SUCH_COLLECTION: Final = ("collection not found", "can't find collection")
_TORN: Final = "incomplete query result"
_EXISTS: Final = ("already exist", "duplicate collection")
_TOO_LARGE: Final = ("maxoutputsize", "larger than max", "message length too large", "exceeds the limit size")


class ExistsError(BackendError):
    """What was to be made is there."""


class NotLoadedError(BackendError):
    """The collection is there and not in memory."""

    retryable = True


class StaleError(CollectionNotFoundError):
    """The collection has no such partition: it may have been dropped and made anew."""


class RefusedError(BackendError):
    """The server refused a request for a reason of its own."""


class TooLargeError(BackendError):
    """An answer would be larger than the engine gives."""


def fault(error: Exception, where: str, collection: str, lost: Outcome) -> EntrepotError:
    """Return the error for an exception of the client.

    Args:
        error: What was raised.
        where: The server.
        collection: What was worked on.
        lost: What is known if no answer came: ``"unknown"`` once something that writes was sent.
    """
    status = status_of(error)
    if status is not None:
        return _unanswered(status, where, lost)
    if isinstance(error, MilvusException):
        return _answered(error, where, collection, lost)
    if isinstance(error, grpc.FutureTimeoutError | TimeoutError):
        return OperationTimeoutError(f"no answer from {where} in time", outcome=lost)
    if isinstance(error, OSError):
        return UnreachableError(f"the connection to {where} broke", outcome=lost)
    return BackendError(f"{where} failed with {type(error).__name__}", outcome=lost)


def status_of(error: BaseException) -> Any:
    """Return the status of gRPC that an exception of the client goes back to, or None."""
    seen: BaseException | None = error
    while seen is not None:
        code: Any = getattr(seen, "code", None)
        code = code() if callable(code) else code
        if isinstance(code, grpc.StatusCode):
            return code
        # An answer of the server: what came before it was got over.
        if isinstance(seen, MilvusException) and code not in {_UNAVAILABLE, 1}:
            return None
        # The client raises exceptions from themselves.
        seen = None if seen.__cause__ is seen else seen.__cause__
    return None


def _unanswered(status: Any, where: str, lost: Outcome) -> EntrepotError:
    if status in {grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED}:
        return _refused_login(where)
    if status is grpc.StatusCode.DEADLINE_EXCEEDED:
        return OperationTimeoutError(f"no answer from {where} in time", outcome=lost)
    if status is grpc.StatusCode.UNAVAILABLE:
        return UnreachableError(f"no connection to {where}, or it broke", outcome=lost)
    if status is grpc.StatusCode.RESOURCE_EXHAUSTED:
        return TooLargeError(f"{where} gives or takes no message of this size", outcome=lost)
    if status is grpc.StatusCode.UNIMPLEMENTED:
        return BackendError(
            f"{where} does not know a request that this needs", hint="use Milvus 2.3.5 or newer", outcome=lost
        )
    return BackendError(f"{where} failed ({status.name})", outcome=lost)


def _answered(error: MilvusException, where: str, collection: str, lost: Outcome) -> EntrepotError:
    code: Any = error.code
    message = str(error.message).lower()
    if code == _NO_COLLECTION or any(part in message for part in _NO_SUCH_COLLECTION):
        return CollectionNotFoundError(f"there is no collection {collection!r}")
    if code == _NO_PARTITION or _LOST_PARTITION.search(message):
        return StaleError(f"there is no collection {collection!r}")
    if code == _NOT_LOADED:
        return NotLoadedError(f"collection {collection!r} is not in memory")
    if code == _NO_DATABASE:
        return ConfigurationError(
            f"{where} has no such database", hint="create it first, or choose another by database="
        )
    if code in _LOGIN:
        return _refused_login(where)
    if any(part in message for part in _EXISTS):
        return ExistsError(f"{where} has a collection {collection!r} already")
    if any(part in message for part in _TOO_LARGE):
        return TooLargeError(f"an answer of {where} would be too large", hint="ask for fewer documents")
    if code in _TOO_MANY:
        return BackendError(
            f"{where} takes no more requests now", hint="ask less often, or raise its limits", retryable=True
        )
    if code == _OUT_OF_MEMORY:
        return BackendError(f"{where} is out of memory", hint="give it more, or release collections")
    if code == _DENIED:
        return BackendError(f"{where} denies the request", hint="look at its quotas and its disk")
    if "timeout" in message or "deadline exceeded" in message:
        return OperationTimeoutError(f"no answer from {where} in time", outcome=lost)
    if code == _UNAVAILABLE:
        return UnreachableError(f"no connection to {where}", outcome=lost)
    if _TORN in message:
        return BackendError(f"{where} replaced a document while it read it", retryable=True)
    return RefusedError(f"{where} failed (code {getattr(code, 'value', code)})", outcome=lost)


def _refused_login(where: str) -> AuthenticationError:
    return AuthenticationError(
        f"{where} refused the login, or what it allows",
        hint="check user and password, or the token and its rights; they come from the URL, the arguments or MILVUS_TOKEN",
    )


def connecting(error: Exception, where: str) -> EntrepotError:
    """Return the error for an exception at connecting; nothing was done yet."""
    status = status_of(error)
    if status is grpc.StatusCode.DEADLINE_EXCEEDED or isinstance(
        error, grpc.FutureTimeoutError | TimeoutError
    ):
        return UnreachableError(f"no connection to {where} in time")
    return fault(error, where, "", "not_done")
