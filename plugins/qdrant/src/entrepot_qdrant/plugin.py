"""The entry points ``qdrant``, ``qdrants`` and ``qdrant-local``: what this distribution provides.

Imports no driver.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from entrepot.capabilities import Capabilities, Limits
from entrepot.plugins import FilterConverterSpec, VectorStoreSpec, hookimpl

if TYPE_CHECKING:
    from entrepot_conformance.targets import TargetSpec

LIMITS = Limits(
    text_bytes=1024 * 1024,
    metadata_bytes=128 * 1024,
    string_bytes=None,
    keys=None,
    list_elements=None,
    dimension=65_536,
    write_batch=100,
)
CAPABILITIES = Capabilities(
    fulltext=True,
    hybrid=True,
    ann=True,
    # A condition goes with each point and not with a batch of them, so a view's check is a read before the write.
    conditional_write="checked",
    pushdown="partial",
    limits=LIMITS,
)
LOCAL_CAPABILITIES = Capabilities(
    fulltext=True,
    hybrid=True,
    conditional_write="atomic",
    atomic_batch=True,
    pushdown="partial",
    limits=LIMITS,
)


@hookimpl
def entrepot_vector_stores() -> list[VectorStoreSpec]:
    """Return the store on a server, without and with TLS, and in the client's local mode."""
    served = [
        VectorStoreSpec(
            name=name,
            factory="entrepot_qdrant.mapped_store:open_qdrant",
            config="entrepot_qdrant.config:QdrantConfig",
            capabilities=CAPABILITIES,
            summary="a Qdrant server" + (", over TLS" if name == "qdrants" else ""),
        )
        for name in ("qdrant", "qdrants")
    ]
    local = VectorStoreSpec(
        name="qdrant-local",
        factory="entrepot_qdrant.mapped_store:open_qdrant_local",
        config="entrepot_qdrant.config:QdrantLocalConfig",
        capabilities=LOCAL_CAPABILITIES,
        summary="Qdrant's client in its local mode, in memory or in a folder",
    )
    return [*served, local]


@hookimpl
def entrepot_filter_converters() -> list[FilterConverterSpec]:
    """Return the converter, for showing what becomes of a filter."""
    return [FilterConverterSpec(name="qdrant", factory="entrepot_qdrant.filters:QdrantFilterConverter")]


@hookimpl
def entrepot_conformance_targets() -> list[TargetSpec]:
    """Return what the conformance suite runs on; only the suite calls this."""
    from entrepot_conformance.targets import TargetSpec  # noqa: PLC0415 - the suite need not be installed
    from entrepot_qdrant.conformance import SERVER  # noqa: PLC0415

    return [
        TargetSpec(
            name="qdrant-local",
            kind="store",
            opens="qdrant-local://suite?collection={name}",
            witness="embedded",
            durable=False,
            versions="entrepot_qdrant.conformance:local_versions",
            summary="Qdrant's client in its local mode, in memory",
        ),
        TargetSpec(
            name="qdrant-local-durable",
            kind="store",
            opens="qdrant-local:///{folder}/store?collection={name}",
            witness="embedded",
            versions="entrepot_qdrant.conformance:local_versions",
            summary="Qdrant's client in its local mode, in a folder",
        ),
        TargetSpec(
            name="qdrant",
            kind="store",
            opens="{url}/{name}",
            witness="real server",
            server=SERVER,
            versions="entrepot_qdrant.conformance:versions",
            summary="a Qdrant server",
        ),
    ]
