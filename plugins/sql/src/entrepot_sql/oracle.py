"""Oracle, over python-oracledb in its thin mode."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, Final

from sqlalchemy import func

from entrepot_sql.server import ServerDialect
from entrepot_sql.writes import PlainWrites, Writes

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

    from sqlalchemy import URL, ColumnElement, Connection

    from entrepot_sql.schema import Schema

_CALL_TIMEOUT: Final = "DPY-4024"


class OracleDialect(ServerDialect):
    """Ids are RAW, which has 2,000 bytes at most; a message is a BLOB."""

    name: ClassVar[str] = "oracle"
    driver: ClassVar[str] = "oracledb"
    id_bytes: ClassVar[int | None] = 2000

    again: ClassVar[frozenset[int | str]] = frozenset({"ORA-00060", "ORA-08177", "ORA-00001", "ORA-00955", "ORA-12516", "ORA-12520"})  # fmt: skip
    waited: ClassVar[frozenset[int | str]] = frozenset({"ORA-30006", "ORA-00054", "ORA-01013"})
    login: ClassVar[frozenset[int | str]] = frozenset({"ORA-01017", "ORA-28000", "ORA-28001", "ORA-01005"})
    absent: ClassVar[frozenset[int | str]] = frozenset({"ORA-12514", "ORA-12505", "DPY-6001", "DPY-6003"})
    full: ClassVar[frozenset[int | str]] = frozenset({"ORA-01653", "ORA-01654", "ORA-01536", "ORA-01688"})

    def connect_args(self, timeout: float) -> Mapping[str, Any]:
        """Return the driver's options."""
        return {"tcp_connect_timeout": timeout}

    def label(self, url: URL) -> str:
        """Return the name of the database or service."""
        return url.database or str(url.query.get("service_name", ""))

    @contextmanager
    def bounded(self, connection: Connection, timeout: float) -> Generator[None]:
        """Bound each round trip to the server."""
        driver: Any = connection.connection.driver_connection
        driver.call_timeout = max(1, int(timeout * 1000))
        yield

    def writes(self, schema: Schema) -> Writes:
        """Write without upserts."""
        return PlainWrites(schema)

    def contains(self, column: ColumnElement[bytes], needle: ColumnElement[bytes]) -> ColumnElement[bool]:
        """Compare bytes of a BLOB."""
        return func.dbms_lob.instr(column, needle) > 0

    # --- errors -----------------------------------------------------------------------------------------

    def code(self, error: BaseException) -> int | str | None:
        """Return the full code, such as ORA-00060."""
        first: object = error.args[0] if error.args else None
        code = getattr(first, "full_code", None)
        return code if isinstance(code, str) else None

    def late(self, error: BaseException) -> bool:
        """Return whether a round trip took too long."""
        return self.code(error) == _CALL_TIMEOUT or super().late(error)

    def lost(self, error: BaseException) -> bool:
        """Return whether the driver says that the session cannot go on."""
        code = str(self.code(error))
        recoverable = getattr(error.args[0] if error.args else None, "isrecoverable", False) is True
        return recoverable or code.startswith(("DPY-60", "DPY-4011", "ORA-03113", "ORA-03114", "ORA-125"))
