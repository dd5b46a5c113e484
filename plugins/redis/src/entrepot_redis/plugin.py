"""The entry points ``redis`` and ``rediss``: what this distribution provides. Imports no driver."""

from __future__ import annotations

from typing import TYPE_CHECKING

from entrepot.capabilities import Capabilities, Limits
from entrepot.plugins import ChatMemorySpec, FilterConverterSpec, VectorStoreSpec, hookimpl

if TYPE_CHECKING:
    from entrepot_conformance.targets import TargetSpec

REDIS_LIMITS = Limits(
    text_bytes=1024 * 1024,
    metadata_bytes=1024 * 1024,
    string_bytes=None,
    keys=None,
    list_elements=None,
    dimension=32_768,
    write_batch=100,
)
REDIS_CAPABILITIES = Capabilities(
    fulltext=True,
    hybrid=True,
    conditional_write="atomic",
    atomic_batch=True,
    pushdown="partial",
    limits=REDIS_LIMITS,
)
MEMORY_CAPABILITIES = Capabilities(ttl=True, memory_search=True)
_SCHEMES = ("redis", "rediss")


@hookimpl
def entrepot_vector_stores() -> list[VectorStoreSpec]:
    """Return the store, without and with TLS."""
    return [
        VectorStoreSpec(
            name=name,
            factory="entrepot_redis.store:RedisVectorStore",
            config="entrepot_redis.config:RedisConfig",
            capabilities=REDIS_CAPABILITIES,
            summary="Redis with its search engine" + (", over TLS" if name == "rediss" else ""),
        )
        for name in _SCHEMES
    ]


@hookimpl
def entrepot_chat_memory_repositories() -> list[ChatMemorySpec]:
    """Return the chat memory, without and with TLS."""
    return [
        ChatMemorySpec(
            name=name,
            factory="entrepot_redis.memory:RedisChatMemoryRepository",
            config="entrepot_redis.config:RedisMemoryConfig",
            capabilities=MEMORY_CAPABILITIES,
            summary="conversations in Redis" + (", over TLS" if name == "rediss" else ""),
        )
        for name in _SCHEMES
    ]


@hookimpl
def entrepot_filter_converters() -> list[FilterConverterSpec]:
    """Return the converter, for showing what becomes of a filter."""
    return [FilterConverterSpec(name="redis", factory="entrepot_redis.filters:RedisFilterConverter")]


@hookimpl
def entrepot_conformance_targets() -> list[TargetSpec]:
    """Return what the conformance suite runs on; only the suite calls this."""
    from entrepot_conformance.targets import TargetSpec  # noqa: PLC0415 - the suite need not be installed
    from entrepot_redis.conformance import SERVER  # noqa: PLC0415

    return [
        TargetSpec(
            name="redis",
            kind="store",
            opens="{url}/{name}",
            witness="real server",
            server=SERVER,
            versions="entrepot_redis.conformance:versions",
            summary="Redis with its search engine",
        ),
        TargetSpec(
            name="redis",
            kind="memory",
            opens="{url}/{name}",
            witness="real server",
            server=SERVER,
            versions="entrepot_redis.conformance:versions",
            summary="conversations in Redis",
        ),
    ]
