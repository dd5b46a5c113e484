"""Names in the engine: the one place where a name of the user's becomes part of a name there (F10). Pure functions.

Milvus takes letters, digits and ``_`` in names of collections and partitions. A name of such characters that is short
stays as it is; others are known by a digest, and the collection records its name. So do metadata keys, which become
members of a JSON field.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from entrepot.encoding import digest, engine_id, key_token

_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,99}")
_KEY: Final = re.compile(r"[A-Za-z0-9_]{1,24}")

OWN_PARTITION: Final = "documents"
"""The partition of stores that name none."""


def collection_name(name: str) -> str:
    """Return the engine's name of a collection, different for every name."""
    # What begins with an underscore is never kept, so no name meets a digest.
    return name if _NAME.fullmatch(name) else "_" + digest("collection", name)


def partition_name(name: str | None, generation: str) -> str:
    """Return the engine's name of a partition.

    It tells which collection of its name it belongs to: a store that knows one that was dropped meanwhile asks
    for partitions that its successor does not have.

    Args:
        name: As the user gave it; None for the partition of stores that name none.
        generation: Of the collection, hexadecimal.
    """
    if name is None:
        return f"{OWN_PARTITION}_{generation}"
    return f"_{digest('partition', name)}_{generation}"


@lru_cache(maxsize=65_536)
def point_id(name: str) -> str:
    """Return the primary key of a document: 32 hexadecimal digits."""
    return engine_id(name).hex


@lru_cache(maxsize=4096)
def key_name(key: str) -> str:
    """Return the name of a metadata key in the ranges: itself, or a hyphen and a digest."""
    return key if _KEY.fullmatch(key) else "-" + key_token(key)
