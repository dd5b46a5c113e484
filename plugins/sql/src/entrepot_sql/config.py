"""What ``sql+...://`` means to `open_chat_memory`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from sqlalchemy import URL, Engine

from entrepot.errors import ConfigurationError
from entrepot.opening import ChatMemoryConfig
from entrepot_sql.repository import SqlChatMemoryRepository

if TYPE_CHECKING:
    from collections.abc import Mapping

    from entrepot.urls import StoreURL


class SqlConfig(ChatMemoryConfig, frozen=True, kw_only=True):
    """Options of `SqlChatMemoryRepository`: the parts of a SQLAlchemy URL, by name.

    Attributes:
        engine: The database system, with its driver if it is not the usual one, as in ``sqlite`` or
            ``sqlite+pysqlite``.
        database: The name of the database; the path of the file for SQLite, None for one in memory.
        user: Who logs in.
        password: The password; never shown.
        host: The server.
        port: Its port.
        table: What the names of the tables begin with.
        schema: The database's schema to put them in; None for the one that the login has.
        parameters: What the driver takes beside these, as in ``?parameters.sslmode=require``.
    """

    scheme: ClassVar[str] = "sql"
    objects: ClassVar[frozenset[str]] = frozenset({"client"})
    takes_driver: ClassVar[bool] = True
    secrets: ClassVar[frozenset[str]] = frozenset({"password", "parameters"})

    engine: str = "sqlite"
    database: str | None = None
    user: str | None = None
    password: str | None = None
    host: str | None = None
    port: int | None = None
    table: str = "entrepot"
    schema: str | None = None
    parameters: dict[str, str] = {}  # noqa: RUF012 - msgspec makes a new one for each

    @classmethod
    def from_url(cls, url: StoreURL) -> dict[str, Any]:
        """Return the parts of the SQLAlchemy URL that stands behind ``sql+``."""
        engine = url.scheme.partition("+")[2]
        if not engine:
            msg = "sql:// does not say which database system"
            raise ConfigurationError(
                msg, hint="put sql+ before a SQLAlchemy URL, as in sql+sqlite:///chat.db"
            )
        parts = {
            "engine": engine,
            "database": url.path or None,
            "user": url.user,
            "password": url.password,
            "host": url.host,
            "port": url.port,
        }
        return {name: value for name, value in parts.items() if value is not None}


def open_sql(  # noqa: PLR0913 - the fields of SqlConfig
    *,
    engine: str,
    database: str | None,
    user: str | None,
    password: str | None,
    host: str | None,
    port: int | None,
    table: str,
    schema: str | None,
    parameters: Mapping[str, str],
    ttl: float | None,
    timeout: float,
    client: object = None,
) -> SqlChatMemoryRepository:
    """Make a repository of the fields of `SqlConfig`.

    `client` is a SQLAlchemy Engine to use; it says where the database is, so the URL must not (E5).

    Raises:
        ConfigurationError: The parts contradict one another.
    """
    url = URL.create(engine, user, password, host, port, database, dict(parameters))
    if client is None:
        return SqlChatMemoryRepository(url, table=table, schema=schema, ttl=ttl, timeout=timeout)
    if not isinstance(client, Engine):
        msg = f"client must be a SQLAlchemy Engine, not {type(client).__name__}"
        raise ConfigurationError(msg, hint="create_engine makes one; a create_async_engine is not used")
    if url != URL.create(engine):
        msg = f"the client says where the database is, and the sql+{engine}:// URL does as well"
        raise ConfigurationError(msg, hint=f"write sql+{engine}:// and nothing else")
    if client.dialect.name != url.get_backend_name():
        msg = f"sql+{engine}:// does not fit a client for {client.dialect.name}"
        raise ConfigurationError(msg, hint=f"write sql+{client.dialect.name}://")
    return SqlChatMemoryRepository(client, table=table, schema=schema, ttl=ttl, timeout=timeout)
