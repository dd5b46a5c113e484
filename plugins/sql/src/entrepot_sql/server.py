"""What database systems with a server share: a pool of connections, READ COMMITTED, no queue of their own."""

from __future__ import annotations

from abc import abstractmethod
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, ClassVar, Final

from sqlalchemy import create_engine

from entrepot.errors import (
    AuthenticationError,
    BackendError,
    ConfigurationError,
    EntrepotError,
    OperationTimeoutError,
    UnreachableError,
)
from entrepot_sql.dialects import Dialect

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping
    from contextlib import AbstractContextManager

    from sqlalchemy import URL, Connection, Engine

    from entrepot.errors import Outcome

_CONNECTIONS: Final = 16
"""Most connections of a repository; further threads wait for one."""
_AT_ONCE: Final = nullcontext()


class ServerDialect(Dialect):
    """A system whose server keeps transactions apart; its subclasses know its driver.

    Statements run at READ COMMITTED: each reads one state of the database, and a row is locked before what
    hangs on it is read.
    """

    isolation: ClassVar[str] = "READ COMMITTED"

    @abstractmethod
    def connect_args(self, timeout: float) -> Mapping[str, Any]:
        """Return what the driver's connect takes so that nothing waits longer than this, in seconds."""

    @abstractmethod
    def code(self, error: BaseException) -> int | str | None:
        """Return the server's or driver's code of an exception."""

    again: ClassVar[frozenset[int | str]]
    """Codes of a transaction that the server gave up, and that may be tried again."""
    waited: ClassVar[frozenset[int | str]]
    """Codes of a statement that waited for too long; the transaction is rolled back."""
    login: ClassVar[frozenset[int | str]]
    """Codes of a login that was refused."""
    absent: ClassVar[frozenset[int | str]]
    """Codes of a database that is not there."""
    full: ClassVar[frozenset[int | str]] = frozenset()
    """Codes of something that has no room left."""

    @abstractmethod
    def lost(self, error: BaseException) -> bool:
        """Return whether there is no connection, or not any more."""

    def late(self, error: BaseException) -> bool:
        """Return whether the driver gave up waiting for the server."""
        return isinstance(error, TimeoutError)

    # --- connecting -------------------------------------------------------------------------------------

    def make_engine(self, url: URL, timeout: float) -> Engine:
        """Make an engine whose statements end in time."""
        if not url.database:
            msg = f"sql+{self.name}:// does not say which database"
            raise ConfigurationError(msg, hint=f"write sql+{self.name}://user:password@host/database")
        if url.get_dialect().is_async:
            msg = f"the driver of {url.drivername} is for asyncio only"
            raise ConfigurationError(
                msg, hint=f"use sql+{self.name}+{self.driver}://; async calls run in worker threads"
            )
        return create_engine(
            url,
            hide_parameters=True,
            pool_size=_CONNECTIONS,
            max_overflow=0,
            pool_timeout=timeout,
            pool_use_lifo=True,  # the youngest first, so that those that are not needed may end
            isolation_level=self.isolation,
            connect_args=dict(self.connect_args(timeout)),
        )

    def check_engine(self, engine: Engine) -> None:
        """Refuse an engine for asyncio."""
        if engine.dialect.is_async:
            msg = f"the driver {engine.dialect.driver} is for asyncio only"
            raise ConfigurationError(msg, hint="use create_engine; async calls run in worker threads")

    def label(self, url: URL) -> str:
        """Return the database's name."""
        return url.database or ""

    # --- transactions -----------------------------------------------------------------------------------

    @contextmanager
    def bounded(self, connection: Connection, timeout: float) -> Generator[None]:  # noqa: ARG002 - as the seam has it
        """Leave it to what the connection was opened with."""
        yield

    def turn(self, timeout: float, *, writing: bool) -> AbstractContextManager[None]:  # noqa: ARG002 - as the seam has it
        """Leave waiting to the server."""
        return _AT_ONCE

    # --- errors -----------------------------------------------------------------------------------------

    def fault(self, error: BaseException, where: str, *, ending: bool) -> EntrepotError:
        """Tell by the code what happened. Before its end, a transaction that broke off has done nothing."""
        code = self.code(error)
        lost: Outcome = "unknown" if ending else "not_done"
        if code in self.login:
            return AuthenticationError(f"{where} refused the login", hint="check user and password")
        if code in self.absent:
            return ConfigurationError(
                f"{where} is not there", hint="create the database, or name another one"
            )
        if code in self.waited:
            return OperationTimeoutError(f"{where} took longer than the timeout", outcome="not_done")
        if self.late(error):
            return OperationTimeoutError(f"no answer from {where} in time", outcome=lost)
        if code in self.again:
            return BackendError(
                f"{where} had to give up the transaction ({code})",
                hint="the same call may succeed",
                retryable=True,
            )
        if code in self.full:
            return BackendError(f"there is no room left for this in {where} ({code})", hint="make room")
        if self.lost(error):
            return UnreachableError(f"no connection to {where}, or it broke", outcome=lost)
        told = "" if code is None else f" ({code})"
        return BackendError(f"{where} failed with {type(error).__name__}{told}", outcome=lost)
