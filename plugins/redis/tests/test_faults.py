"""What redis-py raises, in the errors of entrepot: E1, E2, E4."""

from __future__ import annotations

import pytest
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
from entrepot_redis import faults

SECRET = "hunter2"


@pytest.mark.parametrize(
    ("raised", "kind"),
    [
        (exceptions.AuthenticationError("WRONGPASS invalid username-password pair"), AuthenticationError),
        (exceptions.AuthenticationError("NOAUTH Authentication required."), AuthenticationError),
        (exceptions.ResponseError("WRONGPASS x"), AuthenticationError),
        (exceptions.BusyLoadingError("Redis is loading the dataset in memory"), UnreachableError),
        (exceptions.ConnectionError("Error 111 connecting"), UnreachableError),
        (exceptions.ConnectionError("max number of clients reached"), UnreachableError),
        (exceptions.MaxConnectionsError("Too many connections"), OperationTimeoutError),
        (exceptions.TimeoutError("Timeout connecting to server"), UnreachableError),
        (TimeoutError(), UnreachableError),
        (exceptions.ResponseError("DB index is out of range"), ConfigurationError),
        (OSError("x"), UnreachableError),
        (exceptions.DataError("x"), BackendError),
    ],
    ids=str,
)
def test_connecting(raised: Exception, kind: type[EntrepotError]) -> None:
    # E2: nothing was done yet
    raised.args = (f"{raised.args[0] if raised.args else ''} {SECRET}",)
    error = faults.connecting(raised, "there")
    assert type(error) is kind
    assert error.outcome == "not_done"
    assert SECRET not in str(error)


def test_a_certificate_that_is_not_trusted() -> None:
    # E2: says what to do, and is not tried again
    raised = exceptions.ConnectionError(
        "Error 1 connecting to x:1. [SSL: CERTIFICATE_VERIFY_FAILED] self-signed"
    )
    error = faults.connecting(raised, "there")
    assert type(error) is UnreachableError
    assert not error.retryable
    assert "ca_file" in str(error)


@pytest.mark.parametrize(
    ("raised", "kind", "retryable", "outcome"),
    [
        (faults.DeadlineError("x"), OperationTimeoutError, True, "unknown"),
        (exceptions.TimeoutError("x"), OperationTimeoutError, True, "unknown"),
        (TimeoutError("x"), OperationTimeoutError, True, "unknown"),
        (exceptions.ConnectionError("x"), UnreachableError, True, "unknown"),
        (exceptions.InvalidResponse("x"), UnreachableError, True, "unknown"),
        (OSError("x"), UnreachableError, True, "unknown"),
        (exceptions.BusyLoadingError("x"), UnreachableError, True, "not_done"),
        (exceptions.AuthenticationError("x"), AuthenticationError, False, "not_done"),
        (faults.PartialAnswerError("x"), BackendError, True, "not_done"),
        (exceptions.ResponseError("no such index"), CollectionNotFoundError, False, "not_done"),
        (exceptions.ResponseError("Unknown Index name"), CollectionNotFoundError, False, "not_done"),
        (exceptions.ResponseError("SEARCH_INDEX_NOT_FOUND Index not found"), CollectionNotFoundError, False, "not_done"),
        (exceptions.ResponseError("unknown command 'FT.SEARCH'"), ConfigurationError, False, "not_done"),
        (exceptions.ResponseError("WRONGTYPE Operation against a key"), CollectionMismatchError, False, "not_done"),
        (exceptions.NoPermissionError("User has no permissions"), BackendError, False, "not_done"),
        (exceptions.ReadOnlyError("You can't write against a read only replica"), BackendError, False, "not_done"),
        (exceptions.OutOfMemoryError("command not allowed when used memory"), BackendError, False, "not_done"),
        (exceptions.ResponseError("BUSY Redis is busy running a script"), BackendError, True, "not_done"),
        (exceptions.MovedError("1 127.0.0.1:7000"), ConfigurationError, False, "not_done"),
        (exceptions.ClusterCrossSlotError("x"), ConfigurationError, False, "not_done"),
        (exceptions.ResponseError("Syntax error at offset 3"), BackendError, False, "not_done"),
        (exceptions.DataError("x"), BackendError, False, "unknown"),
    ],
    ids=str,
)  # fmt: skip
def test_running(raised: Exception, kind: type[EntrepotError], retryable: bool, outcome: str) -> None:
    # E1, E4
    if not isinstance(raised, exceptions.MovedError):
        raised.args = (f"{raised.args[0]} {SECRET}",)
    error = faults.running(raised, "there", "articles", "unknown")
    assert type(error) is kind
    assert (error.retryable, error.outcome) == (retryable, outcome)
    assert SECRET not in str(error)
