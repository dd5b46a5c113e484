"""The entry points ``postgres`` and ``postgresql``: what this distribution provides. Imports no driver."""

from __future__ import annotations

from typing import TYPE_CHECKING

from entrepot.capabilities import Capabilities, Limits
from entrepot.plugins import ChatMemorySpec, FilterConverterSpec, VectorStoreSpec, hookimpl

if TYPE_CHECKING:
    from entrepot_conformance.targets import TargetSpec

POSTGRES_LIMITS = Limits(
    text_bytes=256 * 1024,  # what a text's words take in a tsvector stays below its limit of 1 MB
    metadata_bytes=1024 * 1024,
    string_bytes=None,
    keys=None,
    list_elements=None,
    dimension=16_000,
    write_batch=250,
)
POSTGRES_CAPABILITIES = Capabilities(
    fulltext=True,
    hybrid=True,
    ann=True,
    conditional_write="atomic",
    atomic_batch=True,
    limits=POSTGRES_LIMITS,
)
POSTGRES_MEMORY_CAPABILITIES = Capabilities(ttl=True, memory_search=True)
_SCHEMES = ("postgres", "postgresql")


@hookimpl
def entrepot_vector_stores() -> list[VectorStoreSpec]:
    """Return the store, under both names that URLs of PostgreSQL begin with."""
    return [
        VectorStoreSpec(
            name=name,
            factory="entrepot_postgres.mapped_store:open_postgres",
            config="entrepot_postgres.config:PostgresConfig",
            capabilities=POSTGRES_CAPABILITIES,
            summary="PostgreSQL with pgvector",
        )
        for name in _SCHEMES
    ]


@hookimpl
def entrepot_chat_memory_repositories() -> list[ChatMemorySpec]:
    """Return the chat memory, under the same names."""
    return [
        ChatMemorySpec(
            name=name,
            factory="entrepot_postgres.memory:PostgresChatMemoryRepository",
            config="entrepot_postgres.config:PostgresMemoryConfig",
            capabilities=POSTGRES_MEMORY_CAPABILITIES,
            summary="conversations in PostgreSQL",
        )
        for name in _SCHEMES
    ]


@hookimpl
def entrepot_filter_converters() -> list[FilterConverterSpec]:
    """Return the converter, for showing what becomes of a filter."""
    return [FilterConverterSpec(name="postgres", factory="entrepot_postgres.filters:PostgresFilterConverter")]


@hookimpl
def entrepot_conformance_targets() -> list[TargetSpec]:
    """Return what the conformance suite runs on; only the suite calls this."""
    from entrepot_conformance.targets import TargetSpec  # noqa: PLC0415 - the suite need not be installed
    from entrepot_postgres.conformance import SERVER  # noqa: PLC0415

    # The store's index is a small one, which is soon made.
    return [
        TargetSpec(
            name="postgres",
            kind="store",
            opens="{url}/{name}?m=8&ef_construction=32",
            witness="real server",
            server=SERVER,
            versions="entrepot_postgres.conformance:versions",
            summary="PostgreSQL with pgvector",
        ),
        TargetSpec(
            name="postgres",
            kind="memory",
            opens="{url}/{name}",
            witness="real server",
            server=SERVER,
            versions="entrepot_postgres.conformance:versions",
            summary="conversations in PostgreSQL",
        ),
    ]
