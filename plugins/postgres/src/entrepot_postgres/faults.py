"""What psycopg raises, in the errors of entrepot (E1, E2, E4). Pure functions.

A driver's message may quote values, so none goes into ours: the exception is the cause, and the SQLSTATE,
PostgreSQL's code of five characters, says the rest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import psycopg
from psycopg import errors
from psycopg_pool import PoolClosed

from entrepot.errors import (
    AuthenticationError,
    BackendError,
    ClosedError,
    CollectionMismatchError,
    CollectionNotFoundError,
    ConfigurationError,
    EntrepotError,
    OperationTimeoutError,
    UnreachableError,
)

if TYPE_CHECKING:
    from entrepot.errors import Outcome

_LOGIN: Final = ("authentication failed", "no password supplied", "no pg_hba.conf entry", 'role "')
"""Parts of messages at connecting, where libpq gives no SQLSTATE."""
_AGAIN: Final = (
    errors.DeadlockDetected,
    errors.SerializationFailure,
    errors.LockNotAvailable,
    errors.UniqueViolation,
    errors.TooManyConnections,
)
_GONE: Final = (
    errors.AdminShutdown,
    errors.CrashShutdown,
    errors.CannotConnectNow,
    errors.DatabaseDropped,
    errors.IdleSessionTimeout,
    errors.IdleInTransactionSessionTimeout,
)


class DeadlineError(psycopg.OperationalError):
    """The server did not answer by the end of the exchange, nor did it cancel the statement."""


def connecting(error: Exception, where: str) -> EntrepotError:
    """Return the error for an exception at connecting; nothing was done yet."""
    if isinstance(error, errors.ConnectionTimeout | TimeoutError):
        return UnreachableError(f"no connection to {where} in time")
    text = str(error)
    if any(part in text for part in _LOGIN):
        return AuthenticationError(
            f"{where} refused the login",
            hint="check user and password; a password comes from the URL, the argument or PGPASSWORD",
        )
    if 'database "' in text and "does not exist" in text:
        return ConfigurationError(f"{where} is not there", hint="create the database, or name another one")
    if "too many clients" in text or "remaining connection slots" in text:
        return UnreachableError(
            f"{where} has no connection left", hint="lower pool_size, or raise max_connections of the server"
        )
    if isinstance(error, psycopg.OperationalError):
        return UnreachableError(f"no connection to {where}")
    return BackendError(f"connecting to {where} failed with {type(error).__name__}")


def no_connection(error: Exception, where: str, last: Exception | None) -> EntrepotError:
    """Return the error for a pool that gave no connection.

    Args:
        error: What the pool raised, or that nothing became free in time.
        where: The server and its database.
        last: What the pool's own tries to connect ended in, if they failed.
    """
    if isinstance(error, PoolClosed):
        return ClosedError(f"the pool of connections to {where} is closed")
    if last is not None:
        return connecting(last, where)
    return OperationTimeoutError(
        f"no connection to {where} became free in time",
        hint="raise pool_size or timeout",
        outcome="not_done",
    )


def running(error: Exception, where: str, collection: str, lost: Outcome) -> EntrepotError:
    """Return the error for an exception of a statement.

    Args:
        error: What psycopg raised.
        where: The server and its database.
        collection: What was worked on.
        lost: What is known if the connection broke: ``"unknown"`` once the end of a transaction was sent.
    """
    state = error.sqlstate if isinstance(error, psycopg.Error) else None
    if isinstance(error, DeadlineError | TimeoutError):
        return OperationTimeoutError(f"no answer from {where} in time", outcome=lost)
    if isinstance(error, errors.QueryCanceled):
        return OperationTimeoutError(f"{where} took longer than the timeout", outcome="not_done")
    if isinstance(error, errors.UndefinedTable | errors.InvalidSchemaName):
        return CollectionNotFoundError(f"there is no collection {collection!r}")
    if isinstance(error, errors.UndefinedColumn | errors.DatatypeMismatch) or state == "22000":
        return CollectionMismatchError(
            f"the table of collection {collection!r} is not what it was when the store looked",
            hint="another program may have made the collection anew; open the store again",
        )
    if isinstance(error, errors.InsufficientPrivilege | errors.ReadOnlySqlTransaction):
        return BackendError(
            f"{where} does not allow this (SQLSTATE {state})",
            hint="grant the user what the operation needs, or use a server that takes writes",
        )
    if isinstance(error, _AGAIN):
        return BackendError(
            f"{where} had to give up the transaction (SQLSTATE {state})",
            hint="the same call may succeed",
            retryable=True,
        )
    if isinstance(error, _GONE) or (isinstance(error, psycopg.OperationalError) and state is None):
        return UnreachableError(f"the connection to {where} broke", outcome=lost)
    code = f" (SQLSTATE {state})" if state else ""
    return BackendError(
        f"{where} failed with {type(error).__name__}{code}", outcome="not_done" if state else lost
    )
