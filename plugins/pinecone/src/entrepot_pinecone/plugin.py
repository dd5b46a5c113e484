"""The entry point ``pinecone``: what this distribution provides.

Imports no HTTP client.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from entrepot.capabilities import Capabilities, Limits
from entrepot.plugins import FilterConverterSpec, VectorStoreSpec, hookimpl

if TYPE_CHECKING:
    from entrepot_conformance.targets import TargetSpec

CAPABILITIES = Capabilities(
    ann=True,
    conditional_write="checked",
    pushdown="partial",
    # A record of the engine has at most 40 KB of metadata: text, metadata as JSON, and what filters ask for,
    # which may be several times the metadata (`entrepot_pinecone.fields`).
    limits=Limits(
        text_bytes=20_000,
        metadata_bytes=16_384,
        string_bytes=8192,
        keys=100,
        list_elements=500,
        record_bytes=20_000,
        dimension=20_000,
        write_batch=500,
        top_k=10_000,
    ),
)


@hookimpl
def entrepot_vector_stores() -> list[VectorStoreSpec]:
    """Return the store."""
    return [
        VectorStoreSpec(
            name="pinecone",
            factory="entrepot_pinecone.store:PineconeVectorStore",
            config="entrepot_pinecone.config:PineconeConfig",
            capabilities=CAPABILITIES,
            summary="Pinecone, a namespace of an index",
        )
    ]


@hookimpl
def entrepot_filter_converters() -> list[FilterConverterSpec]:
    """Return the converter, for showing what becomes of a filter."""
    return [FilterConverterSpec(name="pinecone", factory="entrepot_pinecone.filters:PineconeFilterConverter")]


@hookimpl
def entrepot_conformance_targets() -> list[TargetSpec]:
    """Return what the conformance suite runs on; only the suite calls this."""
    from entrepot_conformance.targets import TargetSpec  # noqa: PLC0415 - the suite need not be installed
    from entrepot_pinecone.conformance import SERVER, known_failures  # noqa: PLC0415

    return [
        TargetSpec(
            name="pinecone",
            kind="store",
            opens="{url}/{name}",
            witness="emulator",
            server=SERVER,
            versions="entrepot_pinecone.conformance:versions",
            summary="Pinecone's API as NeedleDB has it, unless ENTREPOT_PINECONE_URL names a server",
            known_failures=known_failures(),
        )
    ]
