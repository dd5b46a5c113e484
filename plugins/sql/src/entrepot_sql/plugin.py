"""The entry point ``sql``: what this distribution provides. Imports neither SQLAlchemy nor a driver."""

from __future__ import annotations

from typing import TYPE_CHECKING

from entrepot.capabilities import Capabilities
from entrepot.plugins import ChatMemorySpec, hookimpl

if TYPE_CHECKING:
    from entrepot_conformance.servers import ServerSpec
    from entrepot_conformance.targets import TargetSpec


@hookimpl
def entrepot_chat_memory_repositories() -> list[ChatMemorySpec]:
    """Return the chat memory in SQL databases."""
    return [
        ChatMemorySpec(
            name="sql",
            factory="entrepot_sql.config:open_sql",
            config="entrepot_sql.config:SqlConfig",
            capabilities=Capabilities(ttl=True, memory_search=True),
            summary="conversations in SQL databases: SQLite, PostgreSQL, MariaDB, MySQL, Oracle, SQL Server",
        )
    ]


@hookimpl
def entrepot_conformance_targets() -> list[TargetSpec]:
    """Return what the conformance suite runs on; only the suite calls this."""
    from entrepot_conformance.targets import TargetSpec  # noqa: PLC0415 - the suite need not be installed
    from entrepot_sql.conformance import MARIADB, POSTGRESQL  # noqa: PLC0415

    def on_a_server(server: ServerSpec, summary: str) -> TargetSpec:
        return TargetSpec(
            name=server.name,
            kind="memory",
            opens="{url}?table={name}",
            witness="real server",
            server=server,
            versions="entrepot_sql.conformance:versions",
            summary=summary,
        )

    return [
        TargetSpec(
            name="sqlite",
            kind="memory",
            opens="sql+sqlite:///{folder}/chat.db",
            witness="embedded",
            summary="SQLite, one file",
        ),
        TargetSpec(
            name="sqlite-memory",
            kind="memory",
            opens="sql+sqlite://",
            witness="embedded",
            shared=False,
            durable=False,
            summary="SQLite, in memory",
        ),
        on_a_server(MARIADB, "MariaDB over SQLAlchemy"),
        on_a_server(POSTGRESQL, "PostgreSQL over SQLAlchemy"),
    ]
