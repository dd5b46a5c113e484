"""What the driver raises, in the errors of entrepot (E1, E2, E4). Pure functions.

A server's message may quote values, so none goes into ours: the exception is the cause, and the server's code, a word of
its own, says the rest.
"""

from __future__ import annotations

import re
import ssl
from typing import TYPE_CHECKING, Final

from neo4j.exceptions import (
    AuthError,
    ClientError,
    ConnectionAcquisitionTimeoutError,
    ConstraintError,
    DriverError,
    Forbidden,
    IncompleteCommit,
    Neo4jError,
    ServiceUnavailable,
    SessionExpired,
    TransientError,
    UnsupportedServerProduct,
)
from neo4j.exceptions import (
    ConfigurationError as DriverConfigurationError,
)

from entrepot.errors import (
    AuthenticationError,
    BackendError,
    ConfigurationError,
    EntrepotError,
    OperationTimeoutError,
    UnreachableError,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from entrepot.errors import Outcome

_CODE: Final = re.compile(r"Neo\.[A-Za-z]{1,40}\.[A-Za-z]{1,40}\.[A-Za-z]{1,80}")
_TIMED_OUT: Final = ("TransactionTimedOut", "TransactionTimedOutClientConfiguration", "Terminated")
_UNKNOWN_DATABASE: Final = "Neo.ClientError.Database.DatabaseNotFound"
_VANISHED: Final = "Neo.ClientError.Statement.EntityNotFound"
_BOOKMARKS: Final = (
    "Neo.ClientError.Transaction.InvalidBookmark",
    "Neo.ClientError.Transaction.InvalidBookmarkMixture",
    "Neo.TransientError.Transaction.BookmarkTimeout",
)
_NO_INDEX: Final = ("Neo.ClientError.Schema.IndexNotFound", "Neo.ClientError.Procedure.ProcedureCallFailed")
_MADE_BY_ANOTHER: Final = "Neo.ClientError.Schema.EquivalentSchemaRuleAlreadyExists"
"""IF NOT EXISTS looks before it makes: of two that make an index at once, one is told this. Once more, it finds it."""
_MEMORY: Final = "Neo.TransientError.General."


class IndexGoneError(BackendError):
    """An index that a query names is not there, or a procedure could not use it."""


def gave_way(error: Exception) -> bool:
    """Whether the server gave a transaction up for another one: nothing was done, and it may be begun anew.

    A node that was deleted while a transaction waited for it counts as such, and so do a unique id and an index that
    another one had made meanwhile.
    """
    if isinstance(error, TransientError):
        return not code_of(error).startswith(_MEMORY) and code_of(error) not in _BOOKMARKS
    return isinstance(error, Neo4jError) and (
        isinstance(error, ConstraintError) or code_of(error) in {_VANISHED, _MADE_BY_ANOTHER}
    )


def is_stale(error: Exception) -> bool:
    """Whether the server does not know the bookmarks that it was sent, as after its data were restored."""
    return isinstance(error, Neo4jError) and code_of(error) in _BOOKMARKS


def code_of(error: Neo4jError) -> str:
    """Return the server's code of an error."""
    code = error.code or ""
    return code if _CODE.fullmatch(code) else "an unknown code"


def remote(error: Exception, where: str, lost: Outcome) -> EntrepotError:
    """Return the error for an exception of the driver.

    Args:
        error: What was raised.
        where: The server.
        lost: What is known if no answer came: ``"unknown"`` once the end of a transaction that writes was sent.
    """
    if isinstance(error, Neo4jError):
        return _answered(error, where, lost)
    if isinstance(error, ConnectionAcquisitionTimeoutError):
        if any(isinstance(one, TimeoutError | OSError) for one in _chain(error)):
            return UnreachableError(f"no connection to {where} in time", outcome=lost)
        return OperationTimeoutError(
            f"no connection to {where} was free in time",
            hint="raise pool_size or timeout",
            outcome="not_done",
        )
    if isinstance(error, UnsupportedServerProduct):
        return ConfigurationError(f"what answers at {where} is not Neo4j", hint="check host and port")
    if isinstance(error, DriverConfigurationError):
        return ConfigurationError(
            f"the driver refuses the options of {where}", hint="check the parts of the URL"
        )
    if any(isinstance(one, ssl.SSLError | ssl.CertificateError) for one in _chain(error)):
        return UnreachableError(
            f"no connection to {where} over TLS: its certificate is not trusted, or it speaks no TLS",
            hint="ca_file= names what to trust; the host must be the certificate's",
            retryable=False,
        )
    if isinstance(error, IncompleteCommit):
        return UnreachableError(f"the connection to {where} broke at the end of a transaction", outcome=lost)
    if isinstance(error, ServiceUnavailable | SessionExpired | OSError):
        return UnreachableError(f"no connection to {where}, or it broke", outcome=lost)
    if "Handshake" in type(error).__name__ or "Protocol" in type(error).__name__:
        return UnreachableError(
            f"what answers at {where} does not speak Bolt as it should",
            hint="check host and port, and whether the server wants TLS: neo4j+s:// or bolt+s://",
            outcome=lost,
        )
    if isinstance(error, DriverError) and "closed" in str(error).lower():
        return BackendError(f"the driver's connection to {where} is closed", outcome=lost)
    return BackendError(f"the driver failed with {type(error).__name__}", outcome=lost)


def _answered(error: Neo4jError, where: str, lost: Outcome) -> EntrepotError:
    """Return the error for an answer that is one: the server has rolled the transaction back."""
    code = code_of(error)
    if isinstance(error, Forbidden):
        return AuthenticationError(
            f"{where} does not allow this ({code})", hint="grant the user what it needs"
        )
    if isinstance(error, AuthError) or code.startswith("Neo.ClientError.Security."):
        return AuthenticationError(
            f"{where} refused the login ({code})",
            hint="check user and password; they come from the URL, the arguments or ENTREPOT_NEO4J_PASSWORD",
        )
    if code == _UNKNOWN_DATABASE:
        return ConfigurationError(f"{where} has no such database", hint="database= names one that exists")
    if code.rpartition(".")[2] in _TIMED_OUT:
        return OperationTimeoutError(f"{where} gave the transaction up in time ({code})", outcome=lost)
    if is_stale(error):
        return BackendError(f"{where} does not know what it was told to wait for ({code})", retryable=True)
    if isinstance(error, TransientError):
        return BackendError(
            f"{where} cannot do this now ({code})", hint="ask less at a time, or give it more memory",
            retryable=True, outcome="not_done",
        )  # fmt: skip
    if gave_way(error):
        return BackendError(f"{where} met another transaction ({code})", retryable=True, outcome="not_done")
    if isinstance(error, ClientError):
        if code in _NO_INDEX:
            return IndexGoneError(f"{where} refused a query ({code})")
        return BackendError(f"{where} refused a query ({code})")
    return BackendError(f"{where} failed ({code})", outcome=lost)


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an exception and all that led to it."""
    pending: list[BaseException | None] = [error]
    seen: set[int] = set()
    while pending:
        one = pending.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        pending += [one.__cause__, one.__context__]
