"""What the client raises, in the errors of entrepot: E1, E2, E4."""

from __future__ import annotations

import grpc  # type: ignore[import-untyped]
import httpx
import pytest
from qdrant_client.common.client_exceptions import ResourceExhaustedResponse
from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

from entrepot.errors import (
    AuthenticationError,
    BackendError,
    CollectionNotFoundError,
    EntrepotError,
    OperationTimeoutError,
    StoreInUseError,
    UnreachableError,
)
from entrepot_qdrant import faults
from entrepot_qdrant.faults import CollectionExistsError

SECRET = "hunter2"


def status(code: int, content: str = "") -> UnexpectedResponse:
    return UnexpectedResponse(code, "x", f"{content} {SECRET}".encode(), httpx.Headers())


def wrapped(error: Exception) -> ResponseHandlingException:
    return ResponseHandlingException(error)


class Rpc(grpc.RpcError):  # type: ignore[misc]
    def __init__(self, code: grpc.StatusCode) -> None:
        self._code = code

    def code(self) -> grpc.StatusCode:
        return self._code

    def __str__(self) -> str:
        return f"{self._code.name} {SECRET}"


@pytest.mark.parametrize(
    ("raised", "kind", "retryable", "outcome"),
    [
        (status(401), AuthenticationError, False, "not_done"),
        (status(403), AuthenticationError, False, "not_done"),
        (status(404, "Not found: Collection `x` doesn't exist!"), CollectionNotFoundError, False, "not_done"),
        (status(404, "<html>"), BackendError, False, "not_done"),
        (status(409), CollectionExistsError, False, "not_done"),
        (status(400, "Collection `x` already exists!"), CollectionExistsError, False, "not_done"),
        (status(400, "Format error"), BackendError, False, "not_done"),
        (status(408), OperationTimeoutError, True, "unknown"),
        (status(413), BackendError, False, "not_done"),
        (status(429), BackendError, True, "not_done"),
        (status(500), BackendError, True, "unknown"),
        (status(503), BackendError, True, "unknown"),
        (ResourceExhaustedResponse(SECRET, 1), BackendError, True, "not_done"),
        (wrapped(httpx.ConnectError(SECRET)), UnreachableError, True, "not_done"),
        (wrapped(httpx.ConnectTimeout(SECRET)), UnreachableError, True, "not_done"),
        (wrapped(httpx.PoolTimeout(SECRET)), OperationTimeoutError, True, "not_done"),
        (wrapped(httpx.ReadTimeout(SECRET)), OperationTimeoutError, True, "unknown"),
        (wrapped(httpx.WriteTimeout(SECRET)), OperationTimeoutError, True, "unknown"),
        (wrapped(httpx.ReadError(SECRET)), UnreachableError, True, "unknown"),
        (wrapped(httpx.RemoteProtocolError(SECRET)), UnreachableError, True, "unknown"),
        (wrapped(ValueError(SECRET)), BackendError, False, "unknown"),
        (TimeoutError(SECRET), OperationTimeoutError, True, "unknown"),
        (ConnectionResetError(SECRET), UnreachableError, True, "unknown"),
        (Rpc(grpc.StatusCode.UNAUTHENTICATED), AuthenticationError, False, "not_done"),
        (Rpc(grpc.StatusCode.PERMISSION_DENIED), AuthenticationError, False, "not_done"),
        (Rpc(grpc.StatusCode.NOT_FOUND), CollectionNotFoundError, False, "not_done"),
        (Rpc(grpc.StatusCode.ALREADY_EXISTS), CollectionExistsError, False, "not_done"),
        (Rpc(grpc.StatusCode.RESOURCE_EXHAUSTED), BackendError, True, "not_done"),
        (Rpc(grpc.StatusCode.DEADLINE_EXCEEDED), OperationTimeoutError, True, "unknown"),
        (Rpc(grpc.StatusCode.UNAVAILABLE), UnreachableError, True, "unknown"),
        (Rpc(grpc.StatusCode.INVALID_ARGUMENT), BackendError, False, "not_done"),
        (Rpc(grpc.StatusCode.INTERNAL), BackendError, False, "unknown"),
    ],
    ids=lambda each: type(each).__name__ if isinstance(each, Exception) else str(each),
)
def test_errors_over_a_network(
    raised: Exception, kind: type[EntrepotError], retryable: bool, outcome: str
) -> None:
    # E1, E2, E4: and what a server says never shows
    error = faults.remote(raised, "there", "articles", "unknown")
    assert type(error) is kind
    assert (error.retryable, error.outcome) == (retryable, outcome)
    assert SECRET not in str(error)


def test_a_certificate_that_is_not_trusted() -> None:
    # E2: says what to do, and is not tried again
    raised = wrapped(httpx.ConnectError("[SSL: CERTIFICATE_VERIFY_FAILED] self-signed"))
    error = faults.remote(raised, "there", "articles", "not_done")
    assert type(error) is UnreachableError
    assert not error.retryable
    assert "ca_file" in str(error)


@pytest.mark.parametrize(
    ("raised", "kind"),
    [
        (ValueError("Collection articles not found"), CollectionNotFoundError),
        (ValueError("Collection articles already exists"), CollectionExistsError),
        (RuntimeError("Storage folder x is already accessed by another instance"), StoreInUseError),
        (ValueError(SECRET), BackendError),
        (IndexError(SECRET), BackendError),
    ],
    ids=str,
)
def test_errors_of_the_local_mode(raised: Exception, kind: type[EntrepotError]) -> None:
    # E1
    error = faults.local(raised, "there", "articles")
    assert type(error) is kind
    assert SECRET not in str(error)
