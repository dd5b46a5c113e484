"""SQL Server, over pyodbc."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, Final

from sqlalchemy import true

from entrepot.errors import ConfigurationError
from entrepot_sql.server import ServerDialect
from entrepot_sql.writes import PlainWrites, Writes

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

    from sqlalchemy import ColumnElement, Connection

    from entrepot_sql.schema import Schema

_SNAPSHOTS: Final = "SELECT is_read_committed_snapshot_on FROM sys.databases WHERE name = DB_NAME()"


class MssqlDialect(ServerDialect):
    """Ids are VARBINARY; the database must have READ_COMMITTED_SNAPSHOT, so that a statement reads one state."""

    name: ClassVar[str] = "mssql"
    driver: ClassVar[str] = "pyodbc"
    id_bytes: ClassVar[int | None] = 1600

    # The driver's SQLSTATEs; the server's own numbers stand in the message.
    again: ClassVar[frozenset[int | str]] = frozenset({"40001", "23000", "42S01"})
    waited: ClassVar[frozenset[int | str]] = frozenset()
    login: ClassVar[frozenset[int | str]] = frozenset({"28000"})
    absent: ClassVar[frozenset[int | str]] = frozenset({"3D000"})

    def connect_args(self, timeout: float) -> Mapping[str, Any]:
        """Return the seconds that a login may take."""
        return {"timeout": max(1, int(timeout))}

    def settle(self, connection: Connection, schema: Schema, timeout: float) -> None:  # noqa: ARG002 - as the seam has it
        """Refuse a database where a reading could see half of a write."""
        if not connection.exec_driver_sql(_SNAPSHOTS).scalar():
            msg = f"the database {self.label(connection.engine.url)!r} has no READ_COMMITTED_SNAPSHOT"
            raise ConfigurationError(msg, hint="ALTER DATABASE ... SET READ_COMMITTED_SNAPSHOT ON")

    @contextmanager
    def bounded(self, connection: Connection, timeout: float) -> Generator[None]:
        """Bound each statement, in whole seconds as the driver counts."""
        driver: Any = connection.connection.driver_connection
        driver.timeout = max(1, int(timeout))
        yield

    def writes(self, schema: Schema) -> Writes:
        """Write without upserts: MERGE locks too little by itself."""
        return PlainWrites(schema)

    def contains(self, column: ColumnElement[bytes], needle: ColumnElement[bytes]) -> ColumnElement[bool]:  # noqa: ARG002 - as the seam has it
        """Leave nothing out: CHARINDEX would compare characters by a collation."""
        return true()

    # --- errors -----------------------------------------------------------------------------------------

    def code(self, error: BaseException) -> int | str | None:
        """Return the SQLSTATE, which stands first in the driver's exceptions."""
        first = error.args[0] if error.args else None
        return first if isinstance(first, str) else None

    def late(self, error: BaseException) -> bool:
        """Return whether the driver gave up waiting."""
        return self.code(error) in {"HYT00", "HYT01"} or super().late(error)

    def lost(self, error: BaseException) -> bool:
        """Return whether the SQLSTATE is one of a connection."""
        return str(self.code(error)).startswith("08")
