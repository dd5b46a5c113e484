"""What differs between database systems: the one seam. Everything else is plain SQLAlchemy Core.

A new system is a subclass of `Dialect` in a module of its own and a row in `dialect_of`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import contextmanager
from typing import TYPE_CHECKING, ClassVar, Final

from sqlalchemy import exc

from entrepot.errors import BackendError, ConfigurationError, EntrepotError, OperationTimeoutError

if TYPE_CHECKING:
    from collections.abc import Generator
    from contextlib import AbstractContextManager

    from sqlalchemy import URL, ColumnElement, Connection, Engine, Executable


class Dialect(ABC):
    """How one database system connects, locks and fails; an object belongs to one repository."""

    name: ClassVar[str]
    """SQLAlchemy's name of the system."""

    # --- connecting -------------------------------------------------------------------------------------

    @abstractmethod
    def make_engine(self, url: URL, timeout: float) -> Engine:
        """Make the engine of a repository that was given a URL.

        Raises:
            ConfigurationError: A part of the URL means nothing here.
        """

    @abstractmethod
    def check_engine(self, engine: Engine) -> None:
        """Refuse an engine of the user's that could not keep the contract.

        Raises:
            ConfigurationError: Says what to use instead.
        """

    @abstractmethod
    def label(self, url: URL) -> str:
        """Return the name of the database for spans and errors; no secret, no folder."""

    @abstractmethod
    def settle(self, connection: Connection, *, foreign: bool, timeout: float) -> None:
        """Refuse what other software made, then make the settings that the database itself keeps.

        `foreign` says whether there are tables, and none of this library; `timeout` is in seconds.
        """

    # --- transactions -----------------------------------------------------------------------------------

    @abstractmethod
    def arm(self, connection: Connection, timeout: float) -> None:
        """Bound how long the connection's next statements wait for others, in seconds."""

    @abstractmethod
    def turn(self, timeout: float, *, writing: bool) -> AbstractContextManager[None]:
        """Wait for a thread's turn to use the database, where threads of one repository shall queue up."""

    @abstractmethod
    def begin(self, connection: Connection) -> None:
        """Begin a transaction that writes; what it reads no other writer changes before its end."""

    # --- statements -------------------------------------------------------------------------------------

    claim: ClassVar[Executable]
    """Makes the conversation or counts its next place up; returns its number and the next place, and
    nothing if it has expired. The row stays locked until the transaction ends."""
    store: ClassVar[Executable]
    """Inserts messages, leaving out those whose id the conversation has."""

    @abstractmethod
    def contains(self, column: ColumnElement[bytes], needle: ColumnElement[bytes]) -> ColumnElement[bool]:
        """Return whether bytes stand in a column, byte for byte."""

    # --- errors -----------------------------------------------------------------------------------------

    @abstractmethod
    def fault(self, error: BaseException, where: str) -> EntrepotError:
        """Return the error for an exception of the driver, without its message, which may quote values."""


_SYSTEMS: Final = ("sqlite",)


def dialect_of(name: str) -> Dialect:
    """Return the seam for a database system.

    Raises:
        ConfigurationError: There is none yet.
    """
    if name == "sqlite":
        from entrepot_sql.sqlite import SqliteDialect  # noqa: PLC0415 - a driver loads when it is used

        return SqliteDialect()
    raise ConfigurationError(
        f"entrepot-sql does not know the database system {name!r}", hint=f"it knows {', '.join(_SYSTEMS)}"
    )


@contextmanager
def translated(dialect: Dialect, where: str) -> Generator[None]:
    """Turn what SQLAlchemy and the driver raise into the errors of entrepot (E1).

    The cause is the driver's own exception: SQLAlchemy's would show the statement's values.
    """
    try:
        yield
    except EntrepotError:
        raise
    except exc.DBAPIError as error:
        cause = error.orig or error
        raise dialect.fault(cause, where) from cause
    except exc.TimeoutError as error:
        raise OperationTimeoutError(
            f"no connection to {where} became free in time", outcome="not_done"
        ) from error
    except exc.SQLAlchemyError as error:
        raise BackendError(f"SQLAlchemy failed with {type(error).__name__} on {where}") from error
