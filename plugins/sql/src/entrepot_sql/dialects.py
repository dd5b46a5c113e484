"""What differs between database systems: the one seam. Everything else is plain SQLAlchemy Core.

A new system is a subclass of `Dialect` in a module of its own and a row in `SYSTEMS`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, ClassVar, Final, cast

from sqlalchemy import exc

from entrepot.errors import BackendError, ConfigurationError, EntrepotError, OperationTimeoutError

if TYPE_CHECKING:
    from collections.abc import Generator
    from contextlib import AbstractContextManager

    from sqlalchemy import URL, ColumnElement, Connection, Engine

    from entrepot_sql.schema import Schema
    from entrepot_sql.writes import Writes


class Dialect(ABC):
    """How one database system connects, locks and fails; an object belongs to one repository."""

    name: ClassVar[str]
    """SQLAlchemy's name of the system."""
    driver: ClassVar[str]
    """The driver that is used where the URL names none."""
    id_bytes: ClassVar[int | None] = None
    """Bytes of the longest id, where the system's indexes take less than the contract allows."""
    streams: ClassVar[bool] = True
    """Whether a result can be left before its end without reading the rest."""

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

    def settle(  # noqa: B027 - most have nothing to look at
        self, connection: Connection, schema: Schema, timeout: float
    ) -> None:
        """Look at a database of this repository's own engine before its tables are used.

        Args:
            connection: A connection to it.
            schema: The tables, which may not be there yet.
            timeout: Seconds.

        Raises:
            EntrepotError: It could not keep the contract.
        """

    # --- transactions -----------------------------------------------------------------------------------

    @abstractmethod
    def bounded(self, connection: Connection, timeout: float) -> AbstractContextManager[None]:
        """Bound what the connection does within, waiting for others included, in seconds."""

    @abstractmethod
    def turn(self, timeout: float, *, writing: bool) -> AbstractContextManager[None]:
        """Wait for a thread's turn to use the database, where threads of one repository shall queue up."""

    def begin(self, connection: Connection) -> None:  # noqa: B027 - most begin by themselves
        """Begin a transaction that writes, where its first statement does not."""

    # --- statements -------------------------------------------------------------------------------------

    @abstractmethod
    def writes(self, schema: Schema) -> Writes:
        """Return how conversations are claimed and messages stored."""

    @abstractmethod
    def contains(self, column: ColumnElement[bytes], needle: ColumnElement[bytes]) -> ColumnElement[bool]:
        """Return whether bytes stand in a column, byte for byte; true where the system cannot tell."""

    # --- errors -----------------------------------------------------------------------------------------

    @abstractmethod
    def fault(self, error: BaseException, where: str, *, ending: bool) -> EntrepotError:
        """Return the error for an exception of the driver, without its message, which may quote values.

        `ending` says that the transaction's end was under way: if the connection broke, nobody knows what
        became of it.
        """


SYSTEMS: Final = {
    "sqlite": "entrepot_sql.sqlite:SqliteDialect",
    "postgresql": "entrepot_sql.postgresql:PostgresqlDialect",
    "mysql": "entrepot_sql.mysql:MysqlDialect",
    "mariadb": "entrepot_sql.mysql:MariadbDialect",
    "oracle": "entrepot_sql.oracle:OracleDialect",
    "mssql": "entrepot_sql.mssql:MssqlDialect",
}
"""Where the seam of each system stands, by SQLAlchemy's name."""


def dialect_of(name: str) -> Dialect:
    """Return the seam for a database system; a driver loads when it is used.

    Raises:
        ConfigurationError: There is none.
    """
    if name not in SYSTEMS:
        raise ConfigurationError(
            f"entrepot-sql does not know the database system {name!r}", hint=f"it knows {', '.join(SYSTEMS)}"
        )
    module, _, kind = SYSTEMS[name].partition(":")
    return cast("Dialect", getattr(import_module(module), kind)())


def with_driver(url: URL) -> URL:
    """Return a URL that names its driver: the usual one of its system, if it names none."""
    system = url.get_backend_name()
    return url.set(drivername=f"{system}+{dialect_of(system).driver}") if "+" not in url.drivername else url


@contextmanager
def translated(dialect: Dialect, where: str, *, ending: bool = False) -> Generator[None]:
    """Turn what SQLAlchemy and the driver raise into the errors of entrepot (E1).

    The cause is the driver's own exception: SQLAlchemy's would show the statement's values.
    """
    try:
        yield
    except EntrepotError:
        raise
    except exc.DBAPIError as error:
        cause = error.orig or error
        raise dialect.fault(cause, where, ending=ending) from cause
    except exc.TimeoutError as error:
        raise OperationTimeoutError(
            f"no connection to {where} became free in time", outcome="not_done"
        ) from error
    except exc.SQLAlchemyError as error:
        raise BackendError(f"SQLAlchemy failed with {type(error).__name__} on {where}") from error
