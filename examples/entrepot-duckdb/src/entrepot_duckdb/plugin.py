"""The entry point ``duckdb``: what this distribution provides. Imports no driver."""

from __future__ import annotations

from typing import TYPE_CHECKING

from entrepot.capabilities import Capabilities, Limits
from entrepot.plugins import FilterConverterSpec, VectorStoreSpec, hookimpl

if TYPE_CHECKING:
    from entrepot_conformance.targets import TargetSpec

# Nothing but memory bounds what DuckDB takes, except for the length of its arrays.
LIMITS = Limits(
    text_bytes=None, metadata_bytes=None, string_bytes=None, keys=None, list_elements=None, dimension=100_000
)
CAPABILITIES = Capabilities(exact=True, conditional_write="atomic", pushdown="full", limits=LIMITS)


@hookimpl
def entrepot_vector_stores() -> list[VectorStoreSpec]:
    """Return the vector store; its parts are imported when it is opened."""
    return [
        VectorStoreSpec(
            name="duckdb",
            factory="entrepot_duckdb.store:DuckdbVectorStore",
            config="entrepot_duckdb.config:DuckdbConfig",
            capabilities=CAPABILITIES,
            summary="DuckDB, in a file or in memory",
        )
    ]


@hookimpl
def entrepot_filter_converters() -> list[FilterConverterSpec]:
    """Return the converter, for showing what becomes of a filter."""
    return [FilterConverterSpec(name="duckdb", factory="entrepot_duckdb.filters:DuckdbFilterConverter")]


@hookimpl
def entrepot_conformance_targets() -> list[TargetSpec]:
    """Return what the suite runs on; only the suite calls this."""
    from entrepot_conformance.targets import TargetSpec

    return [
        TargetSpec(
            name="duckdb",
            kind="store",
            opens="duckdb:///{folder}/documents.db?collection={name}",
            witness="embedded",
            versions="entrepot_duckdb.conformance:versions",
            summary="DuckDB in a file",
        ),
        TargetSpec(
            name="duckdb-memory",
            kind="store",
            opens="duckdb://?collection={name}",
            witness="embedded",
            durable=False,
            versions="entrepot_duckdb.conformance:versions",
            summary="DuckDB in memory",
        ),
    ]
