"""What the driver raises, in the errors of entrepot (E1, E2, E4). Pure functions.

A server's message may quote values, so none goes into ours: the exception is the cause, and the server's code, with its
name, says the rest.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, cast

from pymongo import errors as driver

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
    from collections.abc import Mapping

    from entrepot.errors import Outcome

_WORD: Final = re.compile(r"[A-Za-z]{3,60}")
_AUTHENTICATION: Final = frozenset({18, 8000})
_FORBIDDEN: Final = 13
_DUPLICATE: Final = frozenset({11000, 11001})
_TIMES: Final = frozenset({50, 262})
_GOING: Final = frozenset({91, 189, 10107, 11600, 11602, 13435, 13436})
"""The server stops, or is no primary any more."""
_NO_SUCH: Final = frozenset({59, 115, 31082, 40324, 6047401})
"""The server has no such command or stage; 31082 if it has no search beside it."""
_TOO_LARGE: Final = frozenset({10334, 17280, 17419, 17420, 10003})
_TOO_DEEP: Final = frozenset({15, 5490})
_EXISTS: Final = 48
_MISSING: Final = 26


class CollectionExistsError(BackendError):
    """A collection of the engine was to be made and is there."""


class DuplicateKeyError(BackendError):
    """Documents were to be inserted and are there. `rows` are the places of those operations; all others were done."""

    rows: tuple[int, ...] = (0,)


class NoSearchError(BackendError):
    """The server has no search beside it, or does not know the command."""


class ForbiddenError(AuthenticationError):
    """The server knows who asks and does not allow this."""


def remote(error: Exception, where: str, collection: str, lost: Outcome) -> EntrepotError:
    """Return the error for an exception of the driver.

    Args:
        error: What was raised.
        where: The server.
        collection: What was worked on.
        lost: What is known if no answer came: ``"unknown"`` once something that writes was sent.
    """
    if isinstance(error, driver.BulkWriteError):
        return _of_bulk(error, where, collection)
    if isinstance(error, driver.DocumentTooLarge):
        return SizeLimitError("a document or a request is larger than the 16 MiB that MongoDB takes")
    if isinstance(error, driver.OperationFailure):
        code = error.code or 0
        if isinstance(error, driver.WTimeoutError | driver.WriteConcernError):
            return _unacknowledged(where)
        return answered(code, (error.details or {}).get("codeName"), where, collection, lost)
    return _lost(error, where, lost)


def _lost(error: Exception, where: str, lost: Outcome) -> EntrepotError:
    """Return the error for an answer that did not come."""
    if isinstance(error, driver.ServerSelectionTimeoutError):
        return UnreachableError(
            f"no server to be had at {where}",
            hint="check host and port, and that the server runs; of a replica set, that it has a primary",
            outcome="not_done",
        )
    if isinstance(error, driver.WaitQueueTimeoutError):
        return OperationTimeoutError(
            f"no connection to {where} was free in time",
            hint="raise pool_size or timeout",
            outcome="not_done",
        )
    if isinstance(error, driver.NetworkTimeout | TimeoutError) or (
        isinstance(error, driver.PyMongoError) and error.timeout
    ):
        return OperationTimeoutError(f"no answer from {where} in time", outcome=lost)
    if isinstance(error, driver.NotPrimaryError):
        return UnreachableError(f"{where} is no primary any more", outcome=lost)
    if isinstance(error, driver.ConnectionFailure | OSError):
        return UnreachableError(f"the connection to {where} broke", outcome=lost)
    if isinstance(error, driver.ConfigurationError):
        return ConfigurationError(
            f"the driver cannot use the options of {where} ({type(error).__name__})",
            hint="check host, hosts, srv, replica_set, the login and the certificates; the cause says more",
        )
    return BackendError(f"the driver failed with {type(error).__name__}", outcome=lost)


def _unacknowledged(where: str) -> OperationTimeoutError:
    return OperationTimeoutError(
        f"{where} wrote, and the majority of the replica set did not confirm it in time", outcome="unknown"
    )


def _of_bulk(error: driver.BulkWriteError, where: str, collection: str) -> EntrepotError:
    """Return the error for operations of which some failed; one that no second try mends goes first."""
    details = cast("Mapping[str, Any]", error.details)
    failed = [one for one in details.get("writeErrors", ()) if one.get("code") not in _DUPLICATE]
    rows = tuple(
        sorted(one["index"] for one in details.get("writeErrors", ()) if one.get("code") in _DUPLICATE)
    )
    if failed:
        errors = [
            answered(one.get("code", 0), one.get("codeName"), where, collection, "unknown") for one in failed
        ]
        told = next((one for one in errors if not one.retryable), errors[0])
        told.outcome = "unknown"
        return told
    if details.get("writeConcernErrors"):
        return _unacknowledged(where)
    duplicate = DuplicateKeyError(f"{where} has documents of the same keys already")
    duplicate.rows = rows
    return duplicate


def answered(code: int, name: object, where: str, collection: str, lost: Outcome) -> EntrepotError:
    """Return the error for an answer that is one.

    Args:
        code: The server's code.
        name: What the server calls it.
        where: The server.
        collection: What was worked on.
        lost: What is known of a write that failed on the server.
    """
    said = f"{code} {name}" if isinstance(name, str) and _WORD.fullmatch(name) else str(code)
    if code in _AUTHENTICATION:
        return AuthenticationError(
            f"{where} refused the login",
            hint="check user, password and auth_source; the password comes from the URL, the arguments or "
            "ENTREPOT_MONGODB_PASSWORD",
        )
    if code == _FORBIDDEN:
        return ForbiddenError(
            f"{where} does not allow this ({said})", hint="grant the user the role readWrite"
        )
    if code in _DUPLICATE:
        return DuplicateKeyError(f"{where} has a document of the same key already")
    if code == _MISSING:
        return CollectionNotFoundError(f"there is no collection {collection!r}")
    if code == _EXISTS:
        return CollectionExistsError(f"{where} has a collection of the name already")
    if code in _NO_SUCH:
        return NoSearchError(f"{where} does not know the command ({said})")
    if code in _TIMES:
        return OperationTimeoutError(f"{where} gave up in time", outcome=lost)
    if code in _GOING:
        return UnreachableError(f"{where} stops, or is no primary any more ({said})", outcome=lost)
    if code in _TOO_LARGE:
        return SizeLimitError("a document or a request is larger than the 16 MiB that MongoDB takes")
    if code in _TOO_DEEP:
        return BackendError(f"{where} takes less nesting ({said})", hint="use a flatter filter")
    return BackendError(f"{where} refused the request ({said})", outcome=lost)
