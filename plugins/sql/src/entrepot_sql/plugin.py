"""The entry point ``sql``: what this distribution provides. Imports neither SQLAlchemy nor a driver."""

from __future__ import annotations

from typing import TYPE_CHECKING

from entrepot.capabilities import Capabilities
from entrepot.plugins import ChatMemorySpec, hookimpl

if TYPE_CHECKING:
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
            summary="conversations in SQL databases: SQLite",
        )
    ]


@hookimpl
def entrepot_conformance_targets() -> list[TargetSpec]:
    """Return what the conformance suite runs on; only the suite calls this."""
    from entrepot_conformance.targets import TargetSpec  # noqa: PLC0415 - the suite need not be installed

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
    ]
