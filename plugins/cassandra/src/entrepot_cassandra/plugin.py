"""The entry point ``cassandra``: what this distribution provides. Imports no driver."""

from __future__ import annotations

from typing import TYPE_CHECKING

from entrepot.capabilities import Capabilities, Limits
from entrepot.plugins import ChatMemorySpec, FilterConverterSpec, VectorStoreSpec, hookimpl

if TYPE_CHECKING:
    from entrepot_conformance.targets import TargetSpec

CAPABILITIES = Capabilities(
    ann=True,
    conditional_write="atomic",
    pushdown="partial",
    limits=Limits(
        text_bytes=1024 * 1024,
        metadata_bytes=128 * 1024,
        string_bytes=None,
        keys=None,
        list_elements=10_000,
        dimension=8192,
        write_batch=100,
    ),
)
MEMORY_CAPABILITIES = Capabilities(ttl=True)


@hookimpl
def entrepot_vector_stores() -> list[VectorStoreSpec]:
    """Return the store."""
    return [
        VectorStoreSpec(
            name="cassandra",
            factory="entrepot_cassandra.store:CassandraVectorStore",
            config="entrepot_cassandra.config:CassandraConfig",
            capabilities=CAPABILITIES,
            summary="Apache Cassandra 5 with its storage-attached indexes",
        )
    ]


@hookimpl
def entrepot_chat_memory_repositories() -> list[ChatMemorySpec]:
    """Return the chat memory."""
    return [
        ChatMemorySpec(
            name="cassandra",
            factory="entrepot_cassandra.memory:CassandraChatMemoryRepository",
            config="entrepot_cassandra.config:CassandraMemoryConfig",
            capabilities=MEMORY_CAPABILITIES,
            summary="conversations in Apache Cassandra",
        )
    ]


@hookimpl
def entrepot_filter_converters() -> list[FilterConverterSpec]:
    """Return the converter, for showing what becomes of a filter."""
    return [
        FilterConverterSpec(name="cassandra", factory="entrepot_cassandra.filters:CassandraFilterConverter")
    ]


@hookimpl
def entrepot_conformance_targets() -> list[TargetSpec]:
    """Return what the conformance suite runs on; only the suite calls this."""
    from entrepot_cassandra.conformance import SERVER  # noqa: PLC0415 - the suite need not be installed
    from entrepot_conformance.targets import TargetSpec  # noqa: PLC0415

    return [
        TargetSpec(
            name="cassandra",
            kind="store",
            # Each slot is two indexes, and making those is most of what a test waits for.
            opens="{url}/entrepot_suite/{name}?create_keyspace=true&slots=4",
            witness="real server",
            server=SERVER,
            slow=True,
            versions="entrepot_cassandra.conformance:versions",
            summary="Apache Cassandra, one node",
        ),
        TargetSpec(
            name="cassandra",
            kind="memory",
            opens="{url}/entrepot_suite/{name}?create_keyspace=true",
            witness="real server",
            server=SERVER,
            slow=True,
            resets="entrepot_cassandra.conformance:forget_earlier",
            versions="entrepot_cassandra.conformance:versions",
            summary="conversations in Apache Cassandra, one node",
        ),
    ]
