"""The entry point of what the core itself provides: the embedded store."""

from entrepot.capabilities import Capabilities, Limits
from entrepot.plugins import ChatMemorySpec, VectorStoreSpec, hookimpl

SIMPLE_LIMITS = Limits(
    text_bytes=None, metadata_bytes=None, string_bytes=None, keys=None, list_elements=None, write_batch=10_000
)
SIMPLE_CAPABILITIES = Capabilities(
    fulltext=True, hybrid=True, conditional_write="atomic", atomic_batch=True, limits=SIMPLE_LIMITS
)


@hookimpl
def entrepot_vector_stores() -> list[VectorStoreSpec]:
    """Return the embedded store."""
    return [
        VectorStoreSpec(
            name="simple",
            factory="entrepot.stores.simple:SimpleVectorStore",
            config="entrepot.stores.simple:SimpleConfig",
            capabilities=SIMPLE_CAPABILITIES,
            summary="embedded, in memory or in one SQLite file",
        )
    ]


@hookimpl
def entrepot_chat_memory_repositories() -> list[ChatMemorySpec]:
    """Return the chat memory of the process."""
    return [
        ChatMemorySpec(
            name="simple",
            factory="entrepot.memory.config:open_in_memory",
            config="entrepot.memory.config:InMemoryConfig",
            capabilities=Capabilities(ttl=True, memory_search=True),
            summary="conversations in memory",
        )
    ]
