"""Names in the engine: the one place where a name of the user's becomes part of a name there (F10). Pure functions.

An index has the name of its collection if the engine takes that; other collections are known by a digest, and each
index records the name of its collection. Metadata keys are never names: they are parts of values.
"""

from __future__ import annotations

import re
from base64 import urlsafe_b64encode
from typing import Final
from urllib.parse import quote
from uuid import uuid4

from entrepot.encoding import digest, engine_id

_PLAIN: Final = re.compile(r"(?!entrepot-)[a-z0-9][a-z0-9_.-]{0,99}")


def index_name(collection: str) -> str:
    """Return the name of a collection's index, different for every collection."""
    return collection if _PLAIN.fullmatch(collection) else "entrepot-" + digest("collection", collection)


def new_generation(index: str) -> str:
    """Return an alias that no index had before: what is sent to it meets this index or none."""
    return f"{index}.g{uuid4().hex[:16]}"


def document_key(name: str) -> str:
    """Return the engine's id of a document: it takes 512 bytes, where an id may have 512 characters (D1)."""
    return urlsafe_b64encode(engine_id(name).bytes).rstrip(b"=").decode()


def quoted(name: str) -> str:
    """Return a name as a part of a path."""
    return quote(name, safe="")
