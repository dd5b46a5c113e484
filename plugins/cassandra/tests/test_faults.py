# pyright: reportUnknownArgumentType=false
"""What the driver raises becomes errors of the library: E1, E2, E4. No server is needed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from cassandra import (  # type: ignore[import-untyped]
    AlreadyExists,
    AuthenticationFailed,
    InvalidRequest,
    OperationTimedOut,
    ReadFailure,
    ReadTimeout,
    Unauthorized,
    Unavailable,
    WriteFailure,
    WriteTimeout,
)
from cassandra.cluster import NoHostAvailable  # type: ignore[import-untyped]
from cassandra.connection import ConnectionShutdown  # type: ignore[import-untyped]
from cassandra.protocol import OverloadedErrorMessage, ServerError  # type: ignore[import-untyped]

from entrepot.errors import (
    AuthenticationError,
    BackendError,
    OperationTimeoutError,
    UnreachableError,
)
from entrepot_cassandra import faults

if TYPE_CHECKING:
    from entrepot.errors import EntrepotError

VALUE = "a value of the user's"


def told(error: Any, lost: Any = "unknown") -> EntrepotError:
    return faults.remote(error, "Cassandra at h:1", lost)


@pytest.mark.parametrize(
    ("error", "kind", "retryable", "outcome"),
    [
        (NoHostAvailable("none", {}), UnreachableError, True, "not_done"),
        (NoHostAvailable("none", {"h": OperationTimedOut()}), UnreachableError, True, "not_done"),
        (NoHostAvailable("none", {"h": AuthenticationFailed(VALUE)}), AuthenticationError, False, "not_done"),
        (AuthenticationFailed(VALUE), AuthenticationError, False, "not_done"),
        (Unauthorized(VALUE), faults.ForbiddenError, False, "not_done"),
        (ConnectionShutdown(VALUE), UnreachableError, True, "unknown"),
        (OSError(VALUE), UnreachableError, True, "unknown"),
        (OperationTimedOut(), OperationTimeoutError, True, "unknown"),
        (WriteTimeout(VALUE, write_type=5), OperationTimeoutError, True, "unknown"),
        (ReadTimeout(VALUE), OperationTimeoutError, True, "unknown"),
        (WriteFailure(VALUE), BackendError, True, "unknown"),
        (ReadFailure(VALUE), BackendError, True, "unknown"),
        (Unavailable(VALUE), BackendError, True, "not_done"),
        (OverloadedErrorMessage(0x1001, VALUE, None), BackendError, True, "not_done"),
        (ServerError(0, VALUE, None), BackendError, True, "unknown"),
        (InvalidRequest(VALUE), BackendError, False, "not_done"),
        (InvalidRequest("table x does not exist"), faults.MissingError, False, "not_done"),
        (InvalidRequest("keyspace x does not exist"), faults.MissingError, False, "not_done"),
        (AlreadyExists("k", "t"), BackendError, True, "not_done"),
        (ValueError(VALUE), BackendError, False, "unknown"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else None,
)
def test_each_has_its_class(error: Any, kind: type, retryable: bool, outcome: str) -> None:
    # E1, E2, E4
    found = told(error)
    assert type(found) is kind
    assert (found.retryable, found.outcome) == (retryable, outcome)
    assert VALUE not in str(found)


def test_what_was_not_sent_is_not_done() -> None:
    # E4
    for error in (ConnectionShutdown("x"), OperationTimedOut(), WriteFailure("x"), ServerError(0, "x", None)):
        assert told(error, "not_done").outcome == "not_done"


def test_an_error_of_the_library_stays_what_it_is() -> None:
    mine = BackendError("mine")
    assert told(mine) is mine
