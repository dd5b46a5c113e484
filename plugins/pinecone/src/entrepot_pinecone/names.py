"""Names in the engine: the one place where a name of the user's becomes part of a name there (F10). Pure functions."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from entrepot.encoding import digest, engine_id
from entrepot.errors import ConfigurationError

CATALOG: Final = "entrepot.catalog"
"""The namespace with the records of an index's collections."""
MADE: Final = "made"
"""The id of a record there: this library made the index, and deletes it with the last collection."""
_INDEX: Final = re.compile(r"(?!entrepot-)[a-z0-9](?:[a-z0-9-]{0,43}[a-z0-9])?")
_ID: Final = re.compile(r"[!-~](?:[ -~]{0,510}[!-~])?")
_MAPPED: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
_KEY: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,23}")
_NAMESPACE: Final = re.compile(r"[!-~]{0,512}")


def index_name(collection: str) -> str:
    """Return the index of a collection: its name if an index can have it, else a digest."""
    return collection if _INDEX.fullmatch(collection) else "entrepot-" + digest("collection", collection)


def record_id(name: str) -> str:
    """Return the engine's id of a document: its own if the engine takes it, else a UUID of version 5 (D1).

    An id that looks like such a UUID is mapped too, so that two ids never meet.
    """
    if _ID.fullmatch(name) and not _MAPPED.fullmatch(name):
        return name
    return str(engine_id(name))


def catalog_id(namespace: str) -> str:
    """Return the id of the record of the collection in a namespace."""
    return "namespace-" + digest("namespace", namespace)


@lru_cache(maxsize=4096)
def field_part(key: str) -> str:
    """Return what stands for a metadata key in names of fields: itself if it is a short word, else a digest."""
    return key if _KEY.fullmatch(key) else "0" + digest("key", key)


def check_namespace(name: str) -> None:
    """Refuse a name that no namespace can have.

    Raises:
        ConfigurationError: It is none.
    """
    if not _NAMESPACE.fullmatch(name) or name == CATALOG:
        msg = "the name of the namespace is none that can be used"
        raise ConfigurationError(msg, hint=f"up to 512 characters of ASCII without spaces, and not {CATALOG}")
