"""What redis-py raises, in the errors of entrepot (E1, E2, E4). Pure functions.

A server's message may quote values, so none goes into ours: the exception is the cause, and the first
word of the message, Redis' code, says the rest.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from redis import exceptions

from entrepot.errors import (
    AuthenticationError,
    BackendError,
    CollectionMismatchError,
    CollectionNotFoundError,
    ConfigurationError,
    EntrepotError,
    OperationTimeoutError,
    UnreachableError,
)

if TYPE_CHECKING:
    from entrepot.errors import Outcome

_CODE: Final = re.compile(r"[A-Z]{3,20}\b")
_NO_INDEX: Final = ("no such index", "unknown index name", "index not found", "search_index_not_found")
_NO_COMMAND: Final = "unknown command"
_LOGIN: Final = ("WRONGPASS", "NOAUTH", "invalid password", "without any password", "invalid username")
_CLUSTER: Final = (
    exceptions.MovedError,
    exceptions.AskError,
    exceptions.ClusterCrossSlotError,
    exceptions.ClusterDownError,
    exceptions.TryAgainError,
)


class DeadlineError(exceptions.RedisError):
    """The server did not answer by the end of the exchange."""


class PartialAnswerError(exceptions.RedisError):
    """The server warned that its answer is not whole."""


def connecting(error: Exception, where: str) -> EntrepotError:
    """Return the error for an exception at connecting; nothing was done yet."""
    text = str(error)
    if isinstance(error, exceptions.AuthenticationError | exceptions.AuthorizationError) or any(
        part in text for part in _LOGIN
    ):
        return AuthenticationError(
            f"{where} refused the login",
            hint="check user and password; a password comes from the URL, the argument or ENTREPOT_REDIS_PASSWORD",
        )
    if isinstance(error, exceptions.BusyLoadingError):
        return UnreachableError(f"{where} is loading its data", hint="try again when it is up")
    if isinstance(error, exceptions.MaxConnectionsError):
        return OperationTimeoutError(
            f"no connection to {where} is free", hint="give the client more connections", outcome="not_done"
        )
    if isinstance(error, exceptions.TimeoutError | DeadlineError | TimeoutError):
        return UnreachableError(f"no connection to {where} in time")
    if "CERTIFICATE_VERIFY_FAILED" in text:
        return UnreachableError(
            f"{where} has a certificate that is not trusted",
            hint="ca_file= names what to trust; the host in the address must be the certificate's",
            retryable=False,
        )
    if "DB index is out of range" in text:
        return ConfigurationError(f"{where} has no such database", hint="choose another db")
    if "max number of clients" in text:
        return UnreachableError(f"{where} has no connection left", hint="lower pool_size")
    if isinstance(error, exceptions.ConnectionError | OSError):
        return UnreachableError(f"no connection to {where}")
    return BackendError(f"connecting to {where} failed with {type(error).__name__}")


def no_connection(where: str) -> EntrepotError:
    """Return the error for a pool whose connections are all in use."""
    return OperationTimeoutError(
        f"no connection to {where} became free in time", hint="raise pool_size or timeout", outcome="not_done"
    )


def running(error: Exception, where: str, collection: str, lost: Outcome) -> EntrepotError:
    """Return the error for an exception of a command.

    Args:
        error: What redis-py raised.
        where: The server.
        collection: What was worked on.
        lost: What is known if no answer came: ``"unknown"`` once something that writes was sent.
    """
    if isinstance(error, DeadlineError | exceptions.TimeoutError | TimeoutError):
        return OperationTimeoutError(f"no answer from {where} in time", outcome=lost)
    if isinstance(error, exceptions.BusyLoadingError):
        return UnreachableError(f"{where} is loading its data", hint="try again when it is up")
    if isinstance(error, exceptions.AuthenticationError | exceptions.AuthorizationError):
        return connecting(error, where)
    if isinstance(error, PartialAnswerError):
        return BackendError(
            f"{where} answered in part only", hint="give it more time or memory", retryable=True
        )
    if isinstance(error, exceptions.ConnectionError | OSError | exceptions.InvalidResponse):
        return UnreachableError(f"the connection to {where} broke", outcome=lost)
    if isinstance(error, _CLUSTER):
        return cluster(where)
    if isinstance(error, exceptions.ResponseError):
        return _refused(error, where, collection)
    return BackendError(f"{where} failed with {type(error).__name__}", outcome=lost)


def cluster(where: str) -> ConfigurationError:
    """Return the error for a server that is part of a cluster."""
    return ConfigurationError(
        f"{where} is a Redis Cluster, whose nodes each hold a part of the keys",
        hint="use a single server with its replicas, or a proxy that shows a cluster as one server",
    )


def _refused(error: exceptions.ResponseError, where: str, collection: str) -> EntrepotError:
    """Return the error for an answer that is an error; a script that ends with one may have begun to write."""
    text = str(error)
    lowered = text.lower()
    if any(part in lowered for part in _NO_INDEX):
        return CollectionNotFoundError(f"there is no collection {collection!r}")
    if _NO_COMMAND in lowered:
        return ConfigurationError(
            f"{where} lacks a command that this needs",
            hint="use Redis 8, or Redis Stack 7.4, whose search engine is part of it",
        )
    if "WRONGTYPE" in text:
        return CollectionMismatchError(
            f"a key of {collection!r} holds something that this library did not write",
            hint="choose another name or namespace",
        )
    if isinstance(error, exceptions.NoPermissionError | exceptions.ReadOnlyError) or "NOPERM" in text:
        return BackendError(
            f"{where} does not allow this ({_code(text)})",
            hint="grant the user what the operation needs, or use a server that takes writes",
        )
    if isinstance(error, exceptions.OutOfMemoryError) or "OOM" in text:
        return BackendError(f"{where} is out of memory", hint="raise maxmemory, or remove something")
    if text.startswith(("BUSY", "MASTERDOWN", "NOREPLICAS")):
        return BackendError(f"{where} is busy ({_code(text)})", retryable=True)
    return BackendError(f"{where} failed ({_code(text)})")


def _code(text: str) -> str:
    found = _CODE.match(text)
    return found[0] if found else "ERR"
