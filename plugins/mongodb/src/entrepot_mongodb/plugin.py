"""The entry point ``mongodb``: what this distribution provides.

Imports no driver.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from entrepot.capabilities import Capabilities, Limits
from entrepot.plugins import ChatMemorySpec, FilterConverterSpec, VectorStoreSpec, hookimpl

if TYPE_CHECKING:
    from entrepot_conformance.targets import TargetSpec

CAPABILITIES = Capabilities(
    conditional_write="atomic",
    pushdown="partial",
    # A document of the engine has at most 16 MiB: text, metadata as JSON, and the tokens of all elements.
    limits=Limits(
        text_bytes=1024 * 1024,
        metadata_bytes=256 * 1024,
        string_bytes=None,
        keys=2000,
        list_elements=10_000,
        dimension=32_768,
        write_batch=500,
    ),
)
MEMORY_CAPABILITIES = Capabilities(ttl=True)


@hookimpl
def entrepot_vector_stores() -> list[VectorStoreSpec]:
    """Return the store."""
    return [
        VectorStoreSpec(
            name="mongodb",
            factory="entrepot_mongodb.store:MongoDBVectorStore",
            config="entrepot_mongodb.config:MongoDBConfig",
            capabilities=CAPABILITIES,
            summary="MongoDB, with or without its vector search",
        )
    ]


@hookimpl
def entrepot_chat_memory_repositories() -> list[ChatMemorySpec]:
    """Return the chat memory."""
    return [
        ChatMemorySpec(
            name="mongodb",
            factory="entrepot_mongodb.memory:MongoDBChatMemoryRepository",
            config="entrepot_mongodb.config:MongoDBMemoryConfig",
            capabilities=MEMORY_CAPABILITIES,
            summary="conversations in MongoDB",
        )
    ]


@hookimpl
def entrepot_filter_converters() -> list[FilterConverterSpec]:
    """Return the converter, for showing what becomes of a filter."""
    return [FilterConverterSpec(name="mongodb", factory="entrepot_mongodb.filters:MongoDBFilterConverter")]


@hookimpl
def entrepot_conformance_targets() -> list[TargetSpec]:
    """Return what the conformance suite runs on; only the suite calls this."""
    from entrepot_conformance.targets import TargetSpec  # noqa: PLC0415 - the suite need not be installed
    from entrepot_mongodb.conformance import SERVER, known_failures  # noqa: PLC0415

    return [
        TargetSpec(
            name="mongodb",
            kind="store",
            opens="{url}/{name}",
            witness="emulator",
            server=SERVER,
            versions="entrepot_mongodb.conformance:versions",
            summary="MongoDB's protocol; a double in memory unless ENTREPOT_MONGODB_URL names a server",
            known_failures=known_failures("store"),
        ),
        TargetSpec(
            name="mongodb",
            kind="memory",
            opens="{url}/{name}",
            witness="emulator",
            server=SERVER,
            versions="entrepot_mongodb.conformance:versions",
            summary="conversations over MongoDB's protocol; a double in memory unless ENTREPOT_MONGODB_URL names a server",
            known_failures=known_failures("memory"),
        ),
    ]
