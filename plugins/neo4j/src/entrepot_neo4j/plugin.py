"""The entry points ``neo4j``, ``neo4j+s``, ``bolt`` and ``bolt+s``: what this distribution provides.

Imports no driver.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from entrepot.capabilities import Capabilities, Limits
from entrepot.plugins import ChatMemorySpec, FilterConverterSpec, VectorStoreSpec, hookimpl

if TYPE_CHECKING:
    from entrepot_conformance.targets import TargetSpec

NEO4J_CAPABILITIES = Capabilities(
    fulltext=True,
    hybrid=True,
    ann=True,
    conditional_write="atomic",
    atomic_batch=True,
    limits=Limits(
        text_bytes=1024 * 1024,
        metadata_bytes=256 * 1024,
        string_bytes=None,
        keys=None,
        list_elements=None,
        dimension=4096,
        write_batch=500,
    ),
)
NEO4J_MEMORY_CAPABILITIES = Capabilities(ttl=True)
_SCHEMES = {
    "neo4j": "",
    "neo4j+s": ", over TLS",
    "bolt": ", one server of a cluster",
    "bolt+s": ", one server of a cluster, over TLS",
}


@hookimpl
def entrepot_vector_stores() -> list[VectorStoreSpec]:
    """Return the store, under the schemes that Neo4j's own URLs have."""
    return [
        VectorStoreSpec(
            name=name,
            factory="entrepot_neo4j.store:Neo4jVectorStore",
            config="entrepot_neo4j.config:Neo4jConfig",
            capabilities=NEO4J_CAPABILITIES,
            summary="Neo4j" + how,
        )
        for name, how in _SCHEMES.items()
    ]


@hookimpl
def entrepot_chat_memory_repositories() -> list[ChatMemorySpec]:
    """Return the chat memory, under the same schemes."""
    return [
        ChatMemorySpec(
            name=name,
            factory="entrepot_neo4j.memory:Neo4jChatMemoryRepository",
            config="entrepot_neo4j.config:Neo4jMemoryConfig",
            capabilities=NEO4J_MEMORY_CAPABILITIES,
            summary="conversations in Neo4j" + how,
        )
        for name, how in _SCHEMES.items()
    ]


@hookimpl
def entrepot_filter_converters() -> list[FilterConverterSpec]:
    """Return the converter, for showing what becomes of a filter."""
    return [FilterConverterSpec(name="neo4j", factory="entrepot_neo4j.filters:Neo4jFilterConverter")]


@hookimpl
def entrepot_conformance_targets() -> list[TargetSpec]:
    """Return what the conformance suite runs on; only the suite calls this."""
    from entrepot_conformance.targets import TargetSpec  # noqa: PLC0415 - the suite need not be installed
    from entrepot_neo4j.conformance import SERVER  # noqa: PLC0415

    return [
        TargetSpec(
            name="neo4j",
            kind="store",
            opens="{url}/{name}",
            witness="real server",
            server=SERVER,
            slow=True,
            versions="entrepot_neo4j.conformance:versions",
            summary="Neo4j",
        ),
        TargetSpec(
            name="neo4j",
            kind="memory",
            opens="{url}/{name}",
            witness="real server",
            server=SERVER,
            slow=True,
            versions="entrepot_neo4j.conformance:versions",
            summary="conversations in Neo4j",
        ),
    ]
