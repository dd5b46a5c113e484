"""Vector store and chat memory of entrepot in Redis, over redis-py.

The driver loads when one of these names is used, not when the plugin is listed.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from entrepot_redis.config import RedisConfig, RedisMemoryConfig
    from entrepot_redis.filters import RedisFilterConverter
    from entrepot_redis.memory import RedisChatMemoryRepository
    from entrepot_redis.store import RedisVectorStore

__all__ = [
    "RedisChatMemoryRepository",
    "RedisConfig",
    "RedisFilterConverter",
    "RedisMemoryConfig",
    "RedisVectorStore",
]

_HOMES: Final = {
    "RedisChatMemoryRepository": "entrepot_redis.memory",
    "RedisConfig": "entrepot_redis.config",
    "RedisFilterConverter": "entrepot_redis.filters",
    "RedisMemoryConfig": "entrepot_redis.config",
    "RedisVectorStore": "entrepot_redis.store",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
