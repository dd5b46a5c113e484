"""Names in the database: the one place where a name becomes SQL. Pure functions.

Identifiers cannot be bound as parameters, so they are quoted by `psycopg.sql.Identifier`, which doubles the
quotes inside. PostgreSQL cuts names beyond 63 bytes; what is long or unusual gets a name with a digest.
"""

from __future__ import annotations

import re
from hashlib import sha256
from typing import Final, NamedTuple

from psycopg import sql

_PLAIN: Final = re.compile(r"[a-z_][a-z0-9_]{0,62}")
_OTHER: Final = re.compile(r"[^a-z0-9]+")
REGISTRY: Final = "entrepot_collections"
"""The table that lists the collections of a schema."""


def relation_of(collection: str) -> str:
    """Return the name of a collection's table: the collection's own where it is a plain name.

    Any other becomes ``entrepot_``, what is readable of it, and 80 bits of its digest, so that two
    collections never share a table.
    """
    if _PLAIN.fullmatch(collection) and not collection.startswith(("entrepot_", "pg_")):
        return collection
    readable = _OTHER.sub("_", collection.lower()).strip("_")[:24]
    return f"entrepot_{readable}_{_digest(collection)}"


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:20]


class Names(NamedTuple):
    """What a collection's statements call things, ready to be put into SQL."""

    relation: str
    schema: sql.Identifier
    table: sql.Identifier
    registry: sql.Identifier
    key: sql.Identifier
    by_terms: sql.Identifier
    by_words: sql.Identifier
    by_vector: sql.Identifier


def names_of(schema: str, collection: str) -> Names:
    """Return the quoted names of a collection in a schema."""
    relation = relation_of(collection)
    digest = _digest(relation)
    return Names(
        relation=relation,
        schema=sql.Identifier(schema),
        table=sql.Identifier(schema, relation),
        registry=sql.Identifier(schema, REGISTRY),
        key=sql.Identifier(f"entrepot_{digest}_key"),
        by_terms=sql.Identifier(f"entrepot_{digest}_terms"),
        by_words=sql.Identifier(f"entrepot_{digest}_words"),
        by_vector=sql.Identifier(f"entrepot_{digest}_vector"),
    )
