"""MySQL and MariaDB, over PyMySQL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from sqlalchemy import func
from sqlalchemy.dialects.mysql import insert

from entrepot.errors import BackendError
from entrepot_sql.server import ServerDialect
from entrepot_sql.writes import PlainWrites, Writes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlalchemy import ColumnElement, Connection

    from entrepot_sql.schema import Schema


class MysqlDialect(ServerDialect):
    """InnoDB keeps the row of a conversation locked; bytes are compared as bytes."""

    name: ClassVar[str] = "mysql"
    driver: ClassVar[str] = "pymysql"
    streams: ClassVar[bool] = False

    again: ClassVar[frozenset[int | str]] = frozenset({1213, 1020, 1040, 1050, 1062, 1412})
    waited: ClassVar[frozenset[int | str]] = frozenset({1205, 1969, 3024})
    login: ClassVar[frozenset[int | str]] = frozenset({1045, 1044, 1698, 1862})
    absent: ClassVar[frozenset[int | str]] = frozenset({1049})
    full: ClassVar[frozenset[int | str]] = frozenset({1021, 1114, 1153})

    def connect_args(self, timeout: float) -> Mapping[str, Any]:
        """Return PyMySQL's options; the server's own wait for a lock ends in time as well."""
        seconds = max(1, int(timeout))
        return {
            "connect_timeout": seconds,
            "read_timeout": timeout,
            "write_timeout": timeout,
            "charset": "utf8mb4",
            "init_command": f"SET SESSION innodb_lock_wait_timeout = {seconds}, sql_mode = 'TRADITIONAL'",
        }

    def settle(self, connection: Connection, schema: Schema, timeout: float) -> None:  # noqa: ARG002 - as the seam has it
        """Refuse a server whose commits do not reach the disk before they return."""
        setting = connection.exec_driver_sql("SELECT @@innodb_flush_log_at_trx_commit").scalar()
        if setting != 1:
            msg = f"the server has innodb_flush_log_at_trx_commit = {setting}"
            raise BackendError(msg, hint="set it to 1: what returned must not be lost")

    def writes(self, schema: Schema) -> Writes:
        """Wait for whoever makes the same conversation by a clause that locks its row at once.

        A failed INSERT takes a shared lock, and two that have it wait for each other.
        """
        row = insert(schema.conversation)
        return PlainWrites(schema, row.on_duplicate_key_update(name=schema.conversation.c.name))

    def contains(self, column: ColumnElement[bytes], needle: ColumnElement[bytes]) -> ColumnElement[bool]:
        """Compare bytes: what has no character set has no collation."""
        return func.locate(needle, column) > 0

    # --- errors -----------------------------------------------------------------------------------------

    def code(self, error: BaseException) -> int | str | None:
        """Return the number that stands first in the driver's exceptions."""
        first = error.args[0] if error.args else None
        return first if isinstance(first, int) else None

    def late(self, error: BaseException) -> bool:
        """Return whether the driver's read timed out: it says so in the message of a lost connection."""
        return super().late(error) or (self.code(error) in {2003, 2013} and "timed out" in str(error))

    def lost(self, error: BaseException) -> bool:
        """Return whether the number is one of the client's for a connection, or there is none."""
        return self.code(error) in {0, 2002, 2003, 2006, 2013, 2014, 2055, 1053, 1077, 1079, 1152, 1927, 4031}


class MariadbDialect(MysqlDialect):
    """As MySQL."""

    name: ClassVar[str] = "mariadb"
