"""What psycopg raises, in the errors of entrepot: E1, E2, E4."""

from __future__ import annotations

import psycopg
import pytest
from psycopg import errors
from psycopg_pool import PoolClosed, PoolTimeout

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
from entrepot_postgres import faults

SECRET = "hunter2"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ('FATAL:  password authentication failed for user "x"', AuthenticationError),
        ("fe_sendauth: no password supplied", AuthenticationError),
        ("FATAL:  no pg_hba.conf entry for host", AuthenticationError),
        ('FATAL:  role "x" does not exist', AuthenticationError),
        ('FATAL:  database "x" does not exist', ConfigurationError),
        ("FATAL:  sorry, too many clients already", UnreachableError),
        ("Connection refused", UnreachableError),
    ],
)
def test_connecting(text: str, kind: type[EntrepotError]) -> None:
    # E2
    error = faults.connecting(psycopg.OperationalError(f"{text} {SECRET}"), "there")
    assert type(error) is kind
    assert SECRET not in str(error)
    assert error.outcome == "not_done"
    assert type(faults.connecting(errors.ConnectionTimeout("x"), "there")) is UnreachableError
    assert type(faults.connecting(psycopg.ProgrammingError("x"), "there")) is BackendError


def test_a_pool_that_gives_nothing() -> None:
    # E2, E4
    assert type(faults.no_connection(PoolClosed("x"), "there", None)) is ClosedError
    full = faults.no_connection(PoolTimeout("x"), "there", None)
    assert type(full) is OperationTimeoutError
    assert full.outcome == "not_done"
    down = faults.no_connection(PoolTimeout("x"), "there", psycopg.OperationalError("refused"))
    assert type(down) is UnreachableError


@pytest.mark.parametrize(
    ("raised", "kind", "retryable", "outcome"),
    [
        (errors.QueryCanceled, OperationTimeoutError, True, "not_done"),
        (faults.DeadlineError, OperationTimeoutError, True, "unknown"),
        (TimeoutError, OperationTimeoutError, True, "unknown"),
        (errors.UndefinedTable, CollectionNotFoundError, False, "not_done"),
        (errors.InvalidSchemaName, CollectionNotFoundError, False, "not_done"),
        (errors.UndefinedColumn, CollectionMismatchError, False, "not_done"),
        (errors.DataException, CollectionMismatchError, False, "not_done"),
        (errors.InsufficientPrivilege, BackendError, False, "not_done"),
        (errors.ReadOnlySqlTransaction, BackendError, False, "not_done"),
        (errors.DeadlockDetected, BackendError, True, "not_done"),
        (errors.SerializationFailure, BackendError, True, "not_done"),
        (errors.DiskFull, BackendError, False, "not_done"),
        (errors.AdminShutdown, UnreachableError, True, "unknown"),
        (psycopg.OperationalError, UnreachableError, True, "unknown"),
        (psycopg.InterfaceError, BackendError, False, "unknown"),
    ],
    ids=str,
)
def test_running(raised: type[Exception], kind: type[EntrepotError], retryable: bool, outcome: str) -> None:
    # E1, E4
    error = faults.running(raised(f"quotes {SECRET}"), "there", "articles", "unknown")
    assert type(error) is kind
    assert (error.retryable, error.outcome) == (retryable, outcome)
    assert SECRET not in str(error)
