"""The entry point ``shelf``: what this distribution provides. Imports no driver."""

from __future__ import annotations

from typing import TYPE_CHECKING

from entrepot.capabilities import Capabilities

# memory: begin
from entrepot.plugins import ChatMemorySpec, FilterConverterSpec, VectorStoreSpec, hookimpl

# memory: else
from entrepot.plugins import FilterConverterSpec, VectorStoreSpec, hookimpl
# memory: end

if TYPE_CHECKING:
    from entrepot_conformance.targets import TargetSpec

# REPLACE: say what your engine does. What is declined is refused by the core before anything is sent; the
# suite checks that what is declared works, and that what works is declared. Limits not given are the least
# ones of D8; None means that only memory bounds them.
CAPABILITIES = Capabilities(exact=True, conditional_write="atomic", pushdown="partial")
# memory: begin
MEMORY_CAPABILITIES = Capabilities(ttl=True, memory_search=False)
# memory: end


@hookimpl
def entrepot_vector_stores() -> list[VectorStoreSpec]:
    """Return the vector store; its parts are imported when it is opened."""
    return [
        VectorStoreSpec(
            name="shelf",
            factory="entrepot_shelf.store:ShelfVectorStore",
            config="entrepot_shelf.config:ShelfConfig",
            capabilities=CAPABILITIES,
            summary="Shelf",
        )
    ]


# memory: begin
@hookimpl
def entrepot_chat_memory_repositories() -> list[ChatMemorySpec]:
    """Return the chat memory."""
    return [
        ChatMemorySpec(
            name="shelf",
            factory="entrepot_shelf.memory:ShelfChatMemoryRepository",
            config="entrepot_shelf.config:ShelfMemoryConfig",
            capabilities=MEMORY_CAPABILITIES,
            summary="conversations in Shelf",
        )
    ]


# memory: end
@hookimpl
def entrepot_filter_converters() -> list[FilterConverterSpec]:
    """Return the converter, for showing what becomes of a filter."""
    return [
        FilterConverterSpec(
            name="shelf",
            factory="entrepot_shelf.filters:ShelfFilterConverter",
        )
    ]


@hookimpl
def entrepot_conformance_targets() -> list[TargetSpec]:
    """Return what the suite runs on; only the suite calls this."""
    from entrepot_conformance.targets import TargetSpec

    # REPLACE: with a server of its own, give a ServerSpec (see conformance.py), witness="real server", and
    # opens="{url}/{name}".
    return [
        TargetSpec(
            name="shelf",
            kind="store",
            opens="shelf://localhost:7000/{name}",
            witness="embedded",
            versions="entrepot_shelf.conformance:versions",
            summary="Shelf",
        ),
        # memory: begin
        TargetSpec(
            name="shelf",
            kind="memory",
            opens="shelf://localhost:7000/{name}",
            witness="embedded",
            versions="entrepot_shelf.conformance:versions",
            summary="conversations in Shelf",
        ),
        # memory: end
    ]
