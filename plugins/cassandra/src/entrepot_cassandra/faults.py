"""What the driver raises, in the errors of entrepot (E1, E2, E4). Pure functions.

A server's message may quote values, so none goes into ours: the exception is the cause.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from entrepot.errors import (
    AuthenticationError,
    BackendError,
    EntrepotError,
    OperationTimeoutError,
    UnreachableError,
)
from entrepot_cassandra.driver import (
    AlreadyExists,
    AuthenticationFailed,
    ConfigurationException,
    ConnectionException,
    ErrorMessage,
    InvalidRequest,
    IsBootstrappingErrorMessage,
    NoConnectionsAvailable,
    NoHostAvailable,
    OperationTimedOut,
    OverloadedErrorMessage,
    SyntaxException,
    Timeout,
    Unauthorized,
    Unavailable,
    UnresolvableContactPoints,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from entrepot.errors import Outcome

_GONE: Final = "does not exist"
_PASSWORD: Final = (
    "check user and password; they come from the URL, the arguments or ENTREPOT_CASSANDRA_PASSWORD"  # noqa: S105
)
_RAN_OUT: Final = "the node gave up in time"


class MissingError(BackendError):
    """A table or a keyspace is not there."""


class ForbiddenError(AuthenticationError):
    """The server knows who asks and does not allow this."""


def remote(error: BaseException, where: str, lost: Outcome) -> EntrepotError:
    """Return the error for an exception of the driver.

    Args:
        error: What was raised.
        where: The server.
        lost: What is known if no answer came: ``"unknown"`` once something that writes was sent.
    """
    if isinstance(error, EntrepotError):
        return error
    causes = list(_chain(error))
    if any(isinstance(one, AuthenticationFailed) for one in causes):
        return AuthenticationError(f"{where} refused the login", hint=_PASSWORD)
    if isinstance(error, UnresolvableContactPoints):
        return UnreachableError(f"the host of {where} is not known")
    if isinstance(error, NoHostAvailable):
        return _no_host(error, where)
    if isinstance(error, OperationTimedOut | TimeoutError):
        return OperationTimeoutError(f"no answer from {where} in time", outcome=lost)
    if isinstance(error, ConnectionException | NoConnectionsAvailable | OSError):
        return broken(where, lost)
    return _answered(error, where, lost)


def broken(where: str, lost: Outcome) -> UnreachableError:
    """Return the error for a connection that broke."""
    return UnreachableError(f"the connection to {where} broke", outcome=lost)


def _no_host(error: BaseException, where: str) -> EntrepotError:
    """Return the error for a statement that no node took: nothing was sent."""
    if any(isinstance(one, OperationTimedOut | TimeoutError) for one in _inner(error)):
        return UnreachableError(f"no connection to {where} in time")
    return UnreachableError(f"no connection to {where}")


def _answered(error: BaseException, where: str, lost: Outcome) -> EntrepotError:
    """Return the error for what a server said."""
    kind = type(error).__name__
    if isinstance(error, Unauthorized):
        return ForbiddenError(f"{where} does not allow this", hint="grant the user's role what it needs")
    if isinstance(error, AlreadyExists):
        return BackendError(f"{where} has a table or a keyspace of the name already", retryable=True)
    if isinstance(error, InvalidRequest | ConfigurationException) and _GONE in str(error):
        return MissingError(f"{where} has no such table or keyspace")
    if isinstance(error, InvalidRequest | SyntaxException | ConfigurationException):
        return BackendError(f"{where} refused the statement ({kind})")
    if isinstance(error, Unavailable):
        return BackendError(
            f"too few replicas of {where} are up",
            hint="start the nodes that are down, or use consistency='local_quorum'",
            retryable=True,
        )
    if isinstance(error, OverloadedErrorMessage | IsBootstrappingErrorMessage):
        return BackendError(f"{where} takes no statements now ({kind})", retryable=True)
    if isinstance(error, Timeout):
        return OperationTimeoutError(f"{where}: {_RAN_OUT}", outcome=lost)
    if isinstance(error, ErrorMessage) or kind in {"ReadFailure", "WriteFailure"}:
        return BackendError(f"{where} failed ({kind})", retryable=True, outcome=lost)
    return BackendError(f"the driver failed with {kind}", outcome=lost)


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
            for cause in (one.__cause__, one.__context__, *_inner(one))
            if isinstance(cause, BaseException)
        ]


def _inner(error: BaseException) -> list[object]:
    """Return what the driver tells of each node."""
    told = getattr(error, "errors", None)
    return list(cast("dict[object, object]", told).values()) if isinstance(told, dict) else []
