"""PostgreSQL, over psycopg 3."""

from __future__ import annotations

import os
import socket
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, ClassVar, Final

from sqlalchemy import func
from sqlalchemy.dialects.postgresql import insert

from entrepot.errors import BackendError
from entrepot_sql.server import ServerDialect
from entrepot_sql.writes import UpsertingWrites, Writes

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

    from sqlalchemy import ColumnElement, Connection

    from entrepot_sql.schema import Schema

_LATE: Final = "entrepot_late"


class PostgresqlDialect(ServerDialect):
    """The server's statement_timeout ends what takes too long; a server that falls silent is hung up on."""

    name: ClassVar[str] = "postgresql"
    driver: ClassVar[str] = "psycopg"

    again: ClassVar[frozenset[int | str]] = frozenset({"40P01", "40001", "23505", "53300", "42P07", "42710"})
    waited: ClassVar[frozenset[int | str]] = frozenset({"57014", "55P03"})
    login: ClassVar[frozenset[int | str]] = frozenset({"28P01", "28000", "login"})
    absent: ClassVar[frozenset[int | str]] = frozenset({"3D000", "absent"})
    full: ClassVar[frozenset[int | str]] = frozenset({"53100", "53200"})

    def connect_args(self, timeout: float) -> Mapping[str, Any]:
        """Return libpq's options."""
        return {
            "connect_timeout": max(2, int(timeout + 0.999)),  # libpq takes seconds, and no fewer than two
            "options": f"-c statement_timeout={max(1, int(timeout * 1000))}",
            "tcp_user_timeout": max(1, int(timeout * 1000)),
        }

    @contextmanager
    def bounded(self, connection: Connection, timeout: float) -> Generator[None]:
        """Hang up when the time is over: psycopg itself waits for an answer without end."""
        driver: Any = connection.connection.driver_connection
        late = threading.Event()

        def hang_up() -> None:
            late.set()
            with suppress(OSError), socket.socket(fileno=os.dup(driver.fileno())) as line:
                line.shutdown(socket.SHUT_RDWR)

        watch = threading.Timer(timeout, hang_up)
        watch.daemon = True
        watch.start()
        try:
            yield
        except Exception as error:
            cause = getattr(error, "orig", None)  # what `fault` is given
            if late.is_set() and cause is not None:
                cause.__dict__[_LATE] = True
            raise
        finally:
            watch.cancel()

    def writes(self, schema: Schema) -> Writes:
        """Upsert."""
        return UpsertingWrites(schema, insert)

    def contains(self, column: ColumnElement[bytes], needle: ColumnElement[bytes]) -> ColumnElement[bool]:
        """Compare bytes."""
        return func.pg_catalog.position(column, needle) > 0

    # --- errors -----------------------------------------------------------------------------------------

    def code(self, error: BaseException) -> int | str | None:
        """Return the SQLSTATE; at connecting libpq gives none, and its message has to do."""
        state = getattr(error, "sqlstate", None)
        if state is not None:
            return str(state)
        text = str(error)
        if "authentication failed" in text or "no password supplied" in text or "no pg_hba.conf" in text:
            return "login"
        return "absent" if 'database "' in text and "does not exist" in text else None

    def late(self, error: BaseException) -> bool:
        """Return whether it was hung up because the time was over."""
        return getattr(error, _LATE, False) is True or super().late(error)

    def lost(self, error: BaseException) -> bool:
        """Return whether libpq has no connection: it gives no SQLSTATE then, or that of a shutdown."""
        state = getattr(error, "sqlstate", None)
        broken = type(error).__name__ in {"OperationalError", "ConnectionTimeout", "InterfaceError"}
        return (broken and state is None) or str(state).startswith(("57P0", "08"))

    def settle(self, connection: Connection, schema: Schema, timeout: float) -> None:  # noqa: ARG002 - as the seam has it
        """Refuse a database whose commits do not reach the disk before they return."""
        if connection.exec_driver_sql("SHOW synchronous_commit").scalar() == "off":
            msg = f"the database {self.label(connection.engine.url)!r} has synchronous_commit = off"
            raise BackendError(
                msg, hint="set it to on for this user or database: what returned must not be lost"
            )
