"""Names in the database: the one place where a name becomes SQL. Pure functions.

Identifiers cannot be bound as parameters, so they are quoted by `Name`, over psycopg's own Identifier, which
doubles the quotes inside. PostgreSQL cuts names beyond 63 bytes; what is long or unusual gets a name with a digest.
"""

from __future__ import annotations

import re
from hashlib import sha256
from typing import TYPE_CHECKING, Final, NamedTuple

from psycopg import sql

if TYPE_CHECKING:
    from psycopg.abc import AdaptContext

_PLAIN: Final = re.compile(r"[a-z_][a-z0-9_]{0,62}")
_OTHER: Final = re.compile(r"[^a-z0-9]+")
_DIGESTED: Final = re.compile(r".*_[0-9a-f]{20}")
_MAX_MEMORY: Final = 37
REGISTRY: Final = "entrepot_collections"
"""The table that lists the collections of a schema."""
MEMORIES: Final = "entrepot_memories"
"""The table that lists the chat memories of a schema."""


def relation_of(collection: str) -> str:
    """Return the name of a collection's table: the collection's own where it is a plain name.

    Any other becomes ``entrepot_``, what is readable of it, and 80 bits of its digest, so that two
    collections never share a table.
    """
    if _PLAIN.fullmatch(collection) and not collection.startswith(("entrepot_", "pg_")):
        return collection
    return f"entrepot_{_readable(collection, 24)}_{_digest(collection)}"


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:20]


def _readable(name: str, length: int) -> str:
    return _OTHER.sub("_", name.lower()).strip("_")[:length]


class Name(sql.Identifier):
    """A quoted name, as it stands in a statement with placeholders: percent signs are doubled.

    psycopg's own leaves them as they are, and takes them for placeholders.
    """

    def as_bytes(self, context: AdaptContext | None = None) -> bytes:
        """Return the name as it stands in a statement."""
        return super().as_bytes(context).replace(b"%", b"%%")

    @property
    def text(self) -> str:
        """The quoted name as a value to be bound, for ``to_regclass`` and its like."""
        return sql.Identifier(*self._obj).as_string(None)


class Names(NamedTuple):
    """What a collection's statements call things, ready to be put into SQL."""

    relation: str
    schema: Name
    table: Name
    registry: Name
    key: Name
    by_terms: Name
    by_words: Name
    by_vector: Name


def names_of(schema: str, collection: str) -> Names:
    """Return the quoted names of a collection in a schema."""
    relation = relation_of(collection)
    digest = _digest(relation)
    return Names(
        relation=relation,
        schema=Name(schema),
        table=Name(schema, relation),
        registry=Name(schema, REGISTRY),
        key=Name(f"entrepot_{digest}_key"),
        by_terms=Name(f"entrepot_{digest}_terms"),
        by_words=Name(f"entrepot_{digest}_words"),
        by_vector=Name(f"entrepot_{digest}_vector"),
    )


class MemoryNames(NamedTuple):
    """What a chat memory's statements call things, ready to be put into SQL."""

    stem: str
    schema: Name
    registry: Name
    conversations: Name
    messages: Name


def stem_of(memory: str) -> str:
    """Return what the names of a chat memory's two tables begin with.

    ``entrepot_`` and the memory's own name where that is a plain one of at most 37 characters, else what
    is readable of it and its digest. Behind it stands ``_conversations`` or ``_messages``, which the name
    of no collection's table ends with.
    """
    if _PLAIN.fullmatch(memory) and len(memory) <= _MAX_MEMORY and not _DIGESTED.fullmatch(memory):
        return f"entrepot_{memory}"
    return f"entrepot_{_readable(memory, 16)}_{_digest(memory)}"


def memory_names_of(schema: str, memory: str) -> MemoryNames:
    """Return the quoted names of a chat memory in a schema."""
    stem = stem_of(memory)
    return MemoryNames(
        stem=stem,
        schema=Name(schema),
        registry=Name(schema, MEMORIES),
        conversations=Name(schema, f"{stem}_conversations"),
        messages=Name(schema, f"{stem}_messages"),
    )
