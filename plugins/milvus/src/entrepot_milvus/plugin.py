"""The entry points ``milvus``, ``milvuss`` and ``milvus-lite``: what this distribution provides.

Imports no driver.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from entrepot.capabilities import Capabilities, Limits
from entrepot.plugins import FilterConverterSpec, VectorStoreSpec, hookimpl

if TYPE_CHECKING:
    from entrepot_conformance.targets import TargetSpec

LONGEST: Final = 65_535
"""Bytes of the longest text that a field takes."""

# The JSON of so much metadata fits into two fields, at six characters of JSON for a byte; its tokens fit into an
# array of 4,096, and the ends of its ranges into a field of JSON.
LIMITS: Final = Limits(
    text_bytes=LONGEST,
    metadata_bytes=16 * 1024,
    string_bytes=16 * 1024,
    keys=256,
    list_elements=2500,
    dimension=32_768,
    write_batch=1000,
)
WORDED_LIMITS: Final = msgspec.structs.replace(LIMITS, text_bytes=2 * LONGEST // 3)
"""Where texts are kept a second time, as words in lower case, which may take half as much again."""
CAPABILITIES: Final = Capabilities(
    # Milvus compares nothing when it writes: what depends on a document is read before.
    conditional_write="checked",
    atomic_batch=True,
    pushdown="partial",
    limits=LIMITS,
)
LITE_CAPABILITIES: Final = Capabilities(
    fulltext=True,
    hybrid=True,
    conditional_write="atomic",
    atomic_batch=True,
    pushdown="partial",
    limits=WORDED_LIMITS,
)


@hookimpl
def entrepot_vector_stores() -> list[VectorStoreSpec]:
    """Return the store on a server, without and with TLS, and in Milvus Lite."""
    served = [
        VectorStoreSpec(
            name=name,
            factory="entrepot_milvus.mapped_store:open_milvus",
            config="entrepot_milvus.config:MilvusConfig",
            capabilities=CAPABILITIES,
            summary="a Milvus server" + (", over TLS" if name == "milvuss" else ""),
        )
        for name in ("milvus", "milvuss")
    ]
    lite = VectorStoreSpec(
        name="milvus-lite",
        factory="entrepot_milvus.mapped_store:open_milvus_lite",
        config="entrepot_milvus.config:MilvusLiteConfig",
        capabilities=LITE_CAPABILITIES,
        summary="Milvus Lite, within the process, in a folder",
    )
    return [*served, lite]


@hookimpl
def entrepot_filter_converters() -> list[FilterConverterSpec]:
    """Return the converter, for showing what becomes of a filter."""
    return [FilterConverterSpec(name="milvus", factory="entrepot_milvus.filters:MilvusFilterConverter")]


@hookimpl
def entrepot_conformance_targets() -> list[TargetSpec]:
    """Return what the conformance suite runs on; only the suite calls this."""
    from entrepot_conformance.targets import TargetSpec  # noqa: PLC0415 - the suite need not be installed
    from entrepot_milvus.conformance import SERVER  # noqa: PLC0415

    return [
        TargetSpec(
            name="milvus-lite",
            kind="store",
            opens="milvus-lite:///{folder}/lite.db?collection={name}",
            witness="embedded",
            versions="entrepot_milvus.conformance:lite_versions",
            summary="Milvus Lite, in a folder",
        ),
        TargetSpec(
            name="milvus",
            kind="store",
            opens="{url}/{name}",
            witness="real server",
            server=SERVER,
            versions="entrepot_milvus.conformance:versions",
            summary="a Milvus server, 2.3.5, an older version",
        ),
    ]
