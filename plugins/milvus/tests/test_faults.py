"""What pymilvus raises, in the errors of entrepot: E1, E2, E4."""

from __future__ import annotations

from typing import Any

import grpc  # type: ignore[import-untyped]
import pytest
from pymilvus.exceptions import (  # type: ignore[import-untyped]
    DescribeCollectionException,
    MilvusException,
    ParamError,
)

from entrepot.errors import (
    AuthenticationError,
    BackendError,
    ClosedError,
    CollectionNotFoundError,
    ConfigurationError,
    EntrepotError,
    OperationTimeoutError,
    UnreachableError,
)
from entrepot_milvus import faults
from entrepot_milvus.commands import change, read
from entrepot_milvus.exchanges import Exchange

SECRET = "hunter2"


class Lost(grpc.RpcError):  # type: ignore[misc]
    """What gRPC raises for a call."""

    def __init__(self, status: Any) -> None:
        super().__init__(SECRET)
        self._status = status

    def code(self) -> Any:
        return self._status


def caused(error: Exception, cause: Exception) -> Exception:
    error.__cause__ = cause
    return error


def itself(error: Exception) -> Exception:
    """As the client raises them: ``raise e from e``."""
    return caused(error, error)


def coded(status: Any) -> Exception:
    error: Exception = MilvusException(status, SECRET)
    return error


STATUS = grpc.StatusCode


@pytest.mark.parametrize(
    ("raised", "kind", "retryable", "outcome"),
    [
        (MilvusException(100, f"collection not found[{SECRET}]"), CollectionNotFoundError, False, "not_done"),
        (itself(DescribeCollectionException(100, f"can't find collection {SECRET}")), CollectionNotFoundError, False, "not_done"),
        (MilvusException(65535, f"can't find collection {SECRET}"), CollectionNotFoundError, False, "not_done"),
        (MilvusException(101, f"failed to query: collection not loaded {SECRET}"), faults.NotLoadedError, True, "not_done"),
        (MilvusException(200, f"partition not found[partition={SECRET}]"), faults.StaleError, False, "not_done"),
        (MilvusException(65535, f"partition name {SECRET} not found"), faults.StaleError, False, "not_done"),
        (MilvusException(800, f"database not found {SECRET}"), ConfigurationError, False, "not_done"),
        (MilvusException(1401, f"permission deny {SECRET}"), AuthenticationError, False, "not_done"),
        (MilvusException(65535, f"create duplicate collection with different parameters {SECRET}"), faults.ExistsError, False, "not_done"),
        (MilvusException(1, f"collection {SECRET} already exists"), faults.ExistsError, False, "not_done"),
        (MilvusException(8, f"rate limit {SECRET}"), BackendError, True, "not_done"),
        (MilvusException(3, f"memory {SECRET}"), BackendError, False, "not_done"),
        (MilvusException(9, f"deny to write {SECRET}"), BackendError, False, "not_done"),
        (MilvusException(1100, f"cannot parse expression {SECRET}"), faults.RefusedError, False, "unknown"),
        (MilvusException(1, f"[load] Retry timeout: 2s {SECRET}"), OperationTimeoutError, True, "unknown"),
        (MilvusException(65535, f"query results exceed the maxOutputSize Limit {SECRET}"), faults.TooLargeError, False, "not_done"),
        (itself(coded(STATUS.UNAVAILABLE)), UnreachableError, True, "unknown"),
        (coded(STATUS.DEADLINE_EXCEEDED), OperationTimeoutError, True, "unknown"),
        (caused(MilvusException(2, f"Fail connecting {SECRET}"), Lost(STATUS.UNAVAILABLE)), UnreachableError, True, "unknown"),
        (caused(MilvusException(2, f"Fail connecting {SECRET}"), Lost(STATUS.UNAUTHENTICATED)), AuthenticationError, False, "not_done"),
        (MilvusException(2, f"Fail connecting {SECRET}"), UnreachableError, True, "unknown"),
        (Lost(STATUS.UNAVAILABLE), UnreachableError, True, "unknown"),
        (Lost(STATUS.DEADLINE_EXCEEDED), OperationTimeoutError, True, "unknown"),
        (Lost(STATUS.PERMISSION_DENIED), AuthenticationError, False, "not_done"),
        (Lost(STATUS.RESOURCE_EXHAUSTED), faults.TooLargeError, False, "unknown"),
        (Lost(STATUS.UNIMPLEMENTED), BackendError, False, "unknown"),
        (Lost(STATUS.INTERNAL), BackendError, False, "unknown"),
        (grpc.FutureTimeoutError(SECRET), OperationTimeoutError, True, "unknown"),
        (TimeoutError(SECRET), OperationTimeoutError, True, "unknown"),
        (OSError(SECRET), UnreachableError, True, "unknown"),
        (ParamError(message=SECRET), faults.RefusedError, False, "unknown"),
        (MilvusException(65535, f"incomplete query result, missing id {SECRET}"), BackendError, True, "not_done"),
        (ValueError(f"Cannot invoke RPC on closed channel! {SECRET}"), BackendError, False, "unknown"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)  # fmt: skip
def test_faults(raised: Exception, kind: type[EntrepotError], retryable: bool, outcome: str) -> None:
    # E1, E4: and nothing of the server's message
    error = faults.fault(raised, "there", "articles", "unknown")
    assert type(error) is kind
    assert (error.retryable, error.outcome) == (retryable, outcome)
    assert SECRET not in str(error)


@pytest.mark.parametrize(
    ("raised", "kind"),
    [
        (caused(MilvusException(2, SECRET), Lost(STATUS.UNAUTHENTICATED)), AuthenticationError),
        (caused(MilvusException(2, SECRET), Lost(STATUS.UNAVAILABLE)), UnreachableError),
        (caused(MilvusException(2, SECRET), Lost(STATUS.DEADLINE_EXCEEDED)), UnreachableError),
        (grpc.FutureTimeoutError(SECRET), UnreachableError),
        (MilvusException(800, SECRET), ConfigurationError),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_connecting(raised: Exception, kind: type[EntrepotError]) -> None:
    # E2: nothing was done yet
    error = faults.connecting(raised, "there")
    assert type(error) is kind
    assert error.outcome == "not_done"
    assert SECRET not in str(error)


def test_what_is_known_after_a_write() -> None:
    # E4: once something was written, no later failure undoes it
    exchange = Exchange("there", "articles", 1.0, lambda: False)
    refused: Exception = MilvusException(3, SECRET)
    first = exchange.failed(refused, change("upsert"))
    assert isinstance(first, BackendError)
    assert first.outcome == "not_done"
    assert first.__cause__ == refused
    exchange.done(change("upsert"))
    second = exchange.failed(refused, read("query"))
    assert isinstance(second, BackendError)
    assert second.outcome == "unknown"


def test_what_is_not_the_drivers_goes_on_as_it_is() -> None:
    # E1: the core names it
    exchange = Exchange("there", "articles", 1.0, lambda: False)
    error = KeyError("x")
    assert exchange.failed(error, read("query")) is error
    known = ConfigurationError("x")
    assert exchange.failed(known, read("query")) is known


def test_a_client_that_was_closed_under_a_call() -> None:
    # E5
    exchange = Exchange("there", "articles", 1.0, lambda: True)
    assert isinstance(exchange.failed(ValueError("x"), read("query")), ClosedError)
