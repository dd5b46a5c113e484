"""Tables as other software makes them, and documents as that software writes them, by plain SQL.

The layouts are those of langchain-postgres (PGVector, and PGVectorStore with columns of its own) and of
Spring AI's PgVectorStore, as their documentation and their SQL have them.
"""

from __future__ import annotations

import json
import uuid
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from psycopg import sql

if TYPE_CHECKING:
    import psycopg

NAMESPACE = uuid.UUID("6ba7b810-9dad-11d1-80b4-00c04fd430c8")
DIMENSION = 8


class Row(NamedTuple):
    """A document that other software wrote."""

    id: str
    text: str
    metadata: dict[str, Any]
    vector: list[float]


class Layout(NamedTuple):
    """A table with documents, and the mapping that reads it."""

    table: str
    mapping: dict[str, Any]


def rows_of(count: int, seed: int = 3) -> list[Row]:
    """Make documents whose vectors have any norm, with one pair of equal ones."""
    rng = np.random.default_rng(seed)
    vectors = rng.standard_normal((count, DIMENSION)) * rng.uniform(0.1, 5.0, (count, 1))
    vectors[1] = vectors[0]
    return [
        Row(
            str(uuid.uuid5(NAMESPACE, str(n))),
            f"text {n}",
            {
                "source": f"file{n % 5}.md",
                "page": n % 7,
                "score": n / 4,
                "draft": n % 3 == 0,
                "tags": [f"t{n % 2}", f"t{n % 4}"],
                **({} if n % 6 else {"rare": "yes"}),
            },
            vectors[n].astype(np.float32).tolist(),
        )
        for n in range(count)
    ]


def langchain(admin: psycopg.Connection[Any], schema: str, rows: list[Row]) -> Layout:
    """PGVector: all collections in one table, whose vectors have no fixed dimension."""
    run(
        admin,
        schema,
        """
        CREATE TABLE {s}.langchain_pg_collection (
            uuid UUID NOT NULL PRIMARY KEY, name VARCHAR NOT NULL UNIQUE, cmetadata JSON
        )
        """,
        """
        CREATE TABLE {s}.langchain_pg_embedding (
            id VARCHAR NOT NULL PRIMARY KEY,
            collection_id UUID REFERENCES {s}.langchain_pg_collection (uuid) ON DELETE CASCADE,
            embedding VECTOR, document VARCHAR, cmetadata JSONB
        )
        """,
        "CREATE INDEX ix_cmetadata_gin ON {s}.langchain_pg_embedding USING gin (cmetadata jsonb_path_ops)",
    )
    ours, other = str(uuid.uuid4()), str(uuid.uuid4())
    add = sql.SQL("INSERT INTO {}.langchain_pg_collection VALUES (%s, %s, '{{}}')").format(
        sql.Identifier(schema)
    )
    admin.execute(add, (ours, "docs"))
    admin.execute(add, (other, "another"))
    insert = sql.SQL("INSERT INTO {}.langchain_pg_embedding VALUES (%s, %s, %s, %s, %s)").format(
        sql.Identifier(schema)
    )
    for row in rows:
        admin.execute(insert, (row.id, ours, str(row.vector), row.text, json.dumps(row.metadata)))
    admin.execute(insert, ("other", other, "[1,2,3]", "of another collection", '{"source": "file1.md"}'))
    return Layout(
        "langchain_pg_embedding",
        {"text": "document", "metadata": "cmetadata", "only": {"collection_id": ours.upper()}},
    )


def langchain_columns(admin: psycopg.Connection[Any], schema: str, rows: list[Row]) -> Layout:
    """PGVectorStore: a table for each, some metadata in columns and the rest in json."""
    run(
        admin,
        schema,
        """
        CREATE TABLE {s}."my docs" (
            "langchain_id" UUID PRIMARY KEY, "content" TEXT NOT NULL, "embedding" vector(8) NOT NULL,
            "source" TEXT, "page" INTEGER, "langchain_metadata" JSON
        )
        """,
    )
    insert = sql.SQL('INSERT INTO {}."my docs" VALUES (%s, %s, %s, %s, %s, %s)').format(
        sql.Identifier(schema)
    )
    for row in rows:
        rest = {key: value for key, value in row.metadata.items() if key not in ("source", "page")}
        values = (row.metadata["source"], row.metadata["page"], json.dumps(rest))
        admin.execute(insert, (row.id, row.text, str(row.vector), *values))
    return Layout(
        "my docs",
        {
            "id": "langchain_id",
            "text": "content",
            "metadata": "langchain_metadata",
            "columns": ["source", "page"],
        },
    )


def spring(admin: psycopg.Connection[Any], schema: str, rows: list[Row]) -> Layout:
    """PgVectorStore of Spring AI: json, and an HNSW index for the cosine."""
    run(
        admin,
        schema,
        """
        CREATE TABLE {s}.vector_store (
            id uuid DEFAULT gen_random_uuid() PRIMARY KEY, content text, metadata json, embedding vector(8)
        )
        """,
        "CREATE INDEX ON {s}.vector_store USING HNSW (embedding vector_cosine_ops)",
    )
    insert = sql.SQL("INSERT INTO {}.vector_store (id, content, metadata, embedding) VALUES (%s, %s, %s, %s)")
    for row in rows:
        values = (row.id, row.text, json.dumps(row.metadata), str(row.vector))
        admin.execute(insert.format(sql.Identifier(schema)), values)
    return Layout("vector_store", {"text": "content", "metadata": "metadata"})


def run(admin: psycopg.Connection[Any], schema: str, *statements: str) -> None:
    """Run statements in a schema, which is made, with pgvector in the database."""
    admin.execute("SELECT pg_advisory_lock(7)")
    try:
        admin.execute("CREATE EXTENSION IF NOT EXISTS vector")
    finally:
        admin.execute("SELECT pg_advisory_unlock(7)")
    admin.execute(sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(sql.Identifier(schema)))
    for statement in statements:
        checked: Any = statement
        admin.execute(sql.SQL(checked).format(s=sql.Identifier(schema)))
