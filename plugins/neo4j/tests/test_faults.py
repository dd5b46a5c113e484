# pyright: reportPrivateUsage=false, reportUnknownMemberType=false
"""What the driver raises, in the errors of entrepot: E1, E2, E4."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING, Any, cast

import pytest
from neo4j import exceptions as driver
from neo4j.exceptions import Neo4jError

from entrepot.errors import (
    AuthenticationError,
    BackendError,
    ClosedError,
    ConfigurationError,
    EntrepotError,
    OperationTimeoutError,
    UnreachableError,
)
from entrepot_neo4j.commands import Unit
from entrepot_neo4j.faults import IndexGoneError, code_of, gave_way, is_stale, remote
from entrepot_neo4j.sessions import Address, Server, _Attempt, _Exchange

if TYPE_CHECKING:
    from entrepot.errors import Outcome

SECRET = "quoted by the server"


def told(code: str) -> Neo4jError:
    """Return what the driver makes of a server's answer."""
    return Neo4jError._basic_hydrate(neo4j_code=code, message=SECRET)


def caused(error: Exception, cause: Exception) -> Exception:
    error.__cause__ = cause
    return error


CASES: list[tuple[Exception, type[EntrepotError], bool, Outcome]] = [
    (told("Neo.ClientError.Security.Unauthorized"), AuthenticationError, False, "not_done"),
    (told("Neo.ClientError.Security.AuthenticationRateLimit"), AuthenticationError, False, "not_done"),
    (told("Neo.ClientError.Security.Forbidden"), AuthenticationError, False, "not_done"),
    (told("Neo.ClientError.Database.DatabaseNotFound"), ConfigurationError, False, "not_done"),
    (told("Neo.ClientError.Transaction.TransactionTimedOut"), OperationTimeoutError, True, "unknown"),
    (told("Neo.ClientError.Transaction.TransactionTimedOutClientConfiguration"), OperationTimeoutError, True, "unknown"),
    (told("Neo.TransientError.Transaction.DeadlockDetected"), BackendError, True, "not_done"),
    (told("Neo.TransientError.General.MemoryPoolOutOfMemoryError"), BackendError, True, "not_done"),
    (told("Neo.ClientError.Schema.ConstraintValidationFailed"), BackendError, True, "not_done"),
    (told("Neo.ClientError.Statement.EntityNotFound"), BackendError, True, "not_done"),
    (told("Neo.ClientError.Schema.EquivalentSchemaRuleAlreadyExists"), BackendError, True, "not_done"),
    (told("Neo.ClientError.Transaction.InvalidBookmark"), BackendError, True, "not_done"),
    (told("Neo.ClientError.Procedure.ProcedureCallFailed"), IndexGoneError, False, "not_done"),
    (told("Neo.ClientError.Schema.IndexNotFound"), IndexGoneError, False, "not_done"),
    (told("Neo.ClientError.Statement.SyntaxError"), BackendError, False, "not_done"),
    (told("Neo.DatabaseError.Transaction.TransactionCommitFailed"), BackendError, False, "unknown"),
    (driver.ServiceUnavailable(SECRET), UnreachableError, True, "unknown"),
    (driver.SessionExpired(SECRET), UnreachableError, True, "unknown"),
    (driver.IncompleteCommit(SECRET), UnreachableError, True, "unknown"),
    (ConnectionResetError(SECRET), UnreachableError, True, "unknown"),
    (driver.ConnectionAcquisitionTimeoutError(SECRET), OperationTimeoutError, True, "not_done"),
    (caused(driver.ConnectionAcquisitionTimeoutError(SECRET), TimeoutError()), UnreachableError, True, "unknown"),
    (caused(driver.ServiceUnavailable(SECRET), ssl.SSLError(1, SECRET)), UnreachableError, False, "not_done"),
    (driver.UnsupportedServerProduct(SECRET), ConfigurationError, False, "not_done"),
    (driver.ConfigurationError(SECRET), ConfigurationError, False, "not_done"),
    (driver.ResultConsumedError(cast("Any", None), SECRET), BackendError, False, "unknown"),
]  # fmt: skip


@pytest.mark.parametrize(("error", "kind", "retryable", "outcome"), CASES, ids=range(len(CASES)))
def test_an_error_of_the_driver(
    error: Exception, kind: type[EntrepotError], retryable: bool, outcome: Outcome
) -> None:
    # E1, E2, E4: and what a server quotes goes no further
    found = remote(error, "Neo4j at h:1", "unknown")
    assert type(found) is kind
    assert found.retryable is retryable
    assert found.outcome == outcome
    assert SECRET not in str(found)


def test_a_code_that_is_none_is_not_told() -> None:
    # E1
    assert code_of(told("Neo.ClientError.Statement.SyntaxError")) == "Neo.ClientError.Statement.SyntaxError"
    assert code_of(told(f"Neo.ClientError.{SECRET}")) == "an unknown code"


def test_what_gave_way_to_others_is_begun_anew_and_nothing_else() -> None:
    # E4
    anew = {
        str(code_of(error)).rpartition(".")[2]
        for error, *_ in CASES
        if gave_way(error) and isinstance(error, Neo4jError)
    }
    assert anew == {
        "DeadlockDetected",
        "ConstraintValidationFailed",
        "EntityNotFound",
        "EquivalentSchemaRuleAlreadyExists",
    }
    stale = [error for error, *_ in CASES if is_stale(error)]
    assert len(stale) == 1


def exchange() -> tuple[Server, _Exchange]:
    server = Server(Address("h", 1, True, None, None, False, None, 1), timeout=5.0)
    return server, _Exchange(server)


def unit(*, changes: bool = True) -> Unit:
    return Unit(lambda: cast("Any", iter(())), changes=changes)


def test_what_is_known_of_a_write_without_an_answer() -> None:
    # E4: before its end was sent, certainly nothing was done
    _, under_way = exchange()
    broken = driver.ServiceUnavailable("x")
    attempt = under_way.attempt(unit())
    assert under_way.fault(attempt, broken).outcome == "not_done"
    attempt.ending = True
    assert under_way.fault(attempt, broken).outcome == "unknown"
    reading = under_way.attempt(unit(changes=False))
    reading.ending = True
    assert under_way.fault(reading, broken).outcome == "not_done"
    under_way.done(unit())
    assert under_way.fault(under_way.attempt(unit()), broken).outcome == "unknown"


def test_a_transaction_that_was_cut_off_is_a_timeout_and_not_begun_anew() -> None:
    # E4
    _, under_way = exchange()
    attempt = under_way.attempt(unit())
    deadlock = told("Neo.TransientError.Transaction.DeadlockDetected")
    assert under_way.pause(attempt, deadlock) is not None
    attempt.cut = True
    assert under_way.pause(attempt, deadlock) is None
    assert type(under_way.fault(attempt, driver.SessionExpired("x"))) is OperationTimeoutError


def test_a_server_that_was_closed_under_a_call() -> None:
    # E5
    server, under_way = exchange()
    attempt: _Attempt = under_way.attempt(unit())
    server.close()
    assert type(under_way.fault(attempt, driver.ServiceUnavailable("x"))) is ClosedError


def test_bookmarks_that_the_server_does_not_know_are_forgotten() -> None:
    # S7, E4
    server, under_way = exchange()
    server._bookmarks.update_bookmarks([], ["a", "b"])
    server._bookmarks.update_bookmarks(["a"], ["c"])
    assert set(server._bookmarks.get_bookmarks()) == {"b", "c"}
    found = under_way.fault(under_way.attempt(unit()), told("Neo.ClientError.Transaction.InvalidBookmark"))
    assert found.retryable
    assert not server._bookmarks.get_bookmarks()
