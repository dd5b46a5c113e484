"""The entry point ``elasticsearch``: what this distribution provides.

Imports no driver.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from entrepot.capabilities import Capabilities, Limits
from entrepot.plugins import FilterConverterSpec, VectorStoreSpec, hookimpl

if TYPE_CHECKING:
    from entrepot_conformance.targets import TargetSpec

CAPABILITIES = Capabilities(
    fulltext=True,
    hybrid=True,
    ann=True,
    conditional_write="atomic",
    pushdown="partial",
    limits=Limits(
        text_bytes=1024 * 1024,
        metadata_bytes=128 * 1024,
        string_bytes=32_000,
        keys=None,
        list_elements=None,
        dimension=4096,
        write_batch=1000,
    ),
)


@hookimpl
def entrepot_vector_stores() -> list[VectorStoreSpec]:
    """Return the store."""
    return [
        VectorStoreSpec(
            name="elasticsearch",
            factory="entrepot_elasticsearch.mapped_store:open_elasticsearch",
            config="entrepot_elasticsearch.config:ElasticsearchConfig",
            capabilities=CAPABILITIES,
            summary="Elasticsearch 8 and 9",
        )
    ]


@hookimpl
def entrepot_filter_converters() -> list[FilterConverterSpec]:
    """Return the converter, for showing what becomes of a filter."""
    return [
        FilterConverterSpec(
            name="elasticsearch", factory="entrepot_elasticsearch.filters:ElasticsearchFilterConverter"
        )
    ]


@hookimpl
def entrepot_conformance_targets() -> list[TargetSpec]:
    """Return what the conformance suite runs on; only the suite calls this."""
    from entrepot_conformance.targets import KnownFailure, TargetSpec  # noqa: PLC0415 - the suite need not be installed
    from entrepot_elasticsearch.conformance import SERVER, has_logins  # noqa: PLC0415

    open_door = KnownFailure(
        test="faults/test_store_faults.py::test_a_wrong_password_is_refused_and_not_told",
        reason="the server of the suite runs without security and takes every password",
    )
    return [
        TargetSpec(
            name="elasticsearch",
            kind="store",
            opens="{url}/{name}",
            witness="real server",
            server=SERVER,
            versions="entrepot_elasticsearch.conformance:versions",
            summary="Elasticsearch, without its security unless ENTREPOT_ELASTICSEARCH_URL is a server with logins",
            known_failures=() if has_logins() else (open_door,),
        )
    ]
