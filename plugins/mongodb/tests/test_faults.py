"""What the driver raises, in the errors of entrepot: E1, E2, E4."""

from __future__ import annotations

from typing import Any

import pytest
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
from entrepot_mongodb.faults import (
    CollectionExistsError,
    DuplicateKeyError,
    ForbiddenError,
    NoSearchError,
    remote,
)

SECRET = "a value of the user's"


def told(error: Exception) -> EntrepotError:
    found = remote(error, "MongoDB at h:1", "articles", "unknown")
    assert SECRET not in str(found)
    return found


def failure(code: int, name: str = "Name") -> driver.OperationFailure:
    return driver.OperationFailure(SECRET, code, {"codeName": name, "errmsg": SECRET})


@pytest.mark.parametrize(
    ("code", "kind", "retryable", "outcome"),
    [
        (18, AuthenticationError, False, "not_done"),
        (8000, AuthenticationError, False, "not_done"),
        (13, ForbiddenError, False, "not_done"),
        (11000, DuplicateKeyError, False, "not_done"),
        (26, CollectionNotFoundError, False, "not_done"),
        (48, CollectionExistsError, False, "not_done"),
        (59, NoSearchError, False, "not_done"),
        (31082, NoSearchError, False, "not_done"),
        (40324, NoSearchError, False, "not_done"),
        (50, OperationTimeoutError, True, "unknown"),
        (91, UnreachableError, True, "unknown"),
        (10107, UnreachableError, True, "unknown"),
        (10334, SizeLimitError, False, "not_done"),
        (15, BackendError, False, "not_done"),
        (2, BackendError, False, "unknown"),
    ],
)
def test_answers(code: int, kind: type[EntrepotError], retryable: bool, outcome: str) -> None:
    found = told(failure(code))
    assert type(found) is kind
    assert found.retryable is retryable
    assert found.outcome == outcome


@pytest.mark.parametrize(
    ("error", "kind", "outcome"),
    [
        (driver.ServerSelectionTimeoutError(SECRET), UnreachableError, "not_done"),
        (driver.WaitQueueTimeoutError(SECRET), OperationTimeoutError, "not_done"),
        (driver.NetworkTimeout(SECRET), OperationTimeoutError, "unknown"),
        (TimeoutError(SECRET), OperationTimeoutError, "unknown"),
        (driver.NotPrimaryError(SECRET), UnreachableError, "unknown"),
        (driver.AutoReconnect(SECRET), UnreachableError, "unknown"),
        (driver.ConnectionFailure(SECRET), UnreachableError, "unknown"),
        (ConnectionResetError(SECRET), UnreachableError, "unknown"),
        (driver.ConfigurationError(SECRET), ConfigurationError, "not_done"),
        (driver.DocumentTooLarge(SECRET), SizeLimitError, "not_done"),
        (driver.WriteConcernError(SECRET, 64), OperationTimeoutError, "unknown"),
        (driver.WTimeoutError(SECRET, 64), OperationTimeoutError, "unknown"),
        (driver.InvalidOperation(SECRET), BackendError, "unknown"),
        (RuntimeError(SECRET), BackendError, "unknown"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else None,
)
def test_answers_that_did_not_come(error: Exception, kind: type[EntrepotError], outcome: str) -> None:
    found = told(error)
    assert type(found) is kind
    assert found.outcome == outcome


def bulk(*codes: int, unconfirmed: bool = False) -> driver.BulkWriteError:
    failed = [
        {"index": 2 * row, "code": code, "errmsg": SECRET, "op": SECRET} for row, code in enumerate(codes)
    ]
    details: dict[str, Any] = {
        "writeErrors": failed,
        "writeConcernErrors": [{"code": 64}] if unconfirmed else [],
    }
    return driver.BulkWriteError(details)


def test_of_many_operations_those_that_found_a_document_are_told_by_place() -> None:
    found = told(bulk(11000, 11000))
    assert isinstance(found, DuplicateKeyError)
    assert found.rows == (0, 2)


def test_another_failure_goes_first() -> None:
    found = told(bulk(11000, 121, 91))
    assert type(found) is BackendError
    assert not found.retryable
    assert found.outcome == "unknown"
    assert isinstance(told(bulk(11000, 91)), UnreachableError)


def test_what_the_majority_did_not_confirm_is_unknown() -> None:
    found = told(bulk(unconfirmed=True))
    assert isinstance(found, OperationTimeoutError)
    assert found.outcome == "unknown"


def test_a_name_of_the_server_is_told_only_if_it_is_a_word() -> None:
    assert "InterruptedDueToReplStateChange" in str(told(failure(11602, "InterruptedDueToReplStateChange")))
    assert SECRET not in str(told(failure(2, SECRET)))
