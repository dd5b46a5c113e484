"""Names in the engine: the one place where a name of the user's becomes part of a name there (F10). Pure functions.

Metadata keys are never names of fields: they are parts of values. A collection's documents lie in a collection of the
engine whose name nothing else ever has: so what is written for a collection that was dropped never lands in the one that
was made after it, although the engine makes collections by being written to.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple
from uuid import uuid4

from entrepot.encoding import digest
from entrepot.errors import ConfigurationError

CATALOG: Final = "entrepot.collections"
"""The engine's collection with the records of all collections of a database."""
_PLAIN: Final = re.compile(r"(?!(?:entrepot|system)(?:\.|\Z|-))[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}(?<!\.)")
_DATABASE: Final = re.compile(r'[^/\\. "$*<>:|?\0]{1,63}')


def plain(name: str) -> bool:
    """Whether a name of the user's can be that of a collection of the engine, as it is."""
    return _PLAIN.fullmatch(name) is not None


def engine_name(name: str) -> str:
    """Return what stands for a name in the engine: itself if the engine takes it, else a digest."""
    return name if plain(name) else "entrepot-" + digest("collection", name)


def new_generation(collection: str) -> str:
    """Return the name of a collection of the engine that there never was."""
    return f"{engine_name(collection)}.{uuid4().hex[:16]}"


class MemoryNames(NamedTuple):
    """The engine's collections of a chat memory.

    Attributes:
        log: The operations on all conversations, one document each.
        heads: The conversations, for listing them.
    """

    log: str
    heads: str


def memory_names(memory: str) -> MemoryNames:
    """Return the names of a memory's collections."""
    name = engine_name(memory)
    return MemoryNames(f"{name}.log", f"{name}.heads")


def check_database(name: str) -> None:
    """Refuse a name that no database can have.

    Raises:
        ConfigurationError: It is none.
    """
    if not _DATABASE.fullmatch(name) or len(name.encode()) > 63:  # noqa: PLR2004
        msg = "the name of the database is none that MongoDB takes"
        raise ConfigurationError(msg, hint='up to 63 bytes, without spaces, dots and / \\ " $ * < > : | ?')
