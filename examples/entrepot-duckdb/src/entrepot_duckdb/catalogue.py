"""Which collections a database holds, and what they record about themselves (D5).

Everything of this library lies in the schema ``entrepot``. Each collection has a table of its own, since an
array of DuckDB has a fixed length. Tables have numbers: names of collections tell cases apart, names of
tables do not.
"""

from __future__ import annotations

from typing import NamedTuple

import duckdb
from entrepot.capabilities import Metric
from entrepot.errors import CollectionMismatchError, CollectionNotFoundError
from entrepot.records import CollectionInfo

_MAKE = (
    "CREATE SCHEMA IF NOT EXISTS entrepot",
    """CREATE TABLE IF NOT EXISTS entrepot.collections (
        name VARCHAR NOT NULL, number INTEGER NOT NULL, dimension INTEGER NOT NULL,
        metric VARCHAR NOT NULL, model VARCHAR, layout INTEGER NOT NULL)""",
)
_FIND = "SELECT number, dimension, metric, model, layout FROM entrepot.collections WHERE name = ?"
_NEXT = "SELECT coalesce(max(number), 0) + 1 FROM entrepot.collections"


class Collection(NamedTuple):
    """A collection that exists: its table, and what it records about itself."""

    table: str
    info: CollectionInfo


def find(cursor: duckdb.DuckDBPyConnection, name: str) -> Collection | None:
    """Return a collection, or None if there is none of that name."""
    try:
        row = cursor.execute(_FIND, [name]).fetchone()
    except duckdb.CatalogException:
        return None  # a database without collections
    except duckdb.BinderException as error:
        msg = "the table entrepot.collections was made by other software"
        raise CollectionMismatchError(msg) from error
    if row is None:
        return None
    number, dimension, metric, model, layout = row
    info = CollectionInfo(name=name, dimension=dimension, metric=Metric(metric), model=model, layout=layout)
    return Collection(_table(number), info)


def existing(cursor: duckdb.DuckDBPyConnection, name: str) -> Collection:
    """Return a collection.

    Raises:
        CollectionNotFoundError: There is none.
    """
    found = find(cursor, name)
    if found is None:
        msg = f"there is no collection {name!r}"
        raise CollectionNotFoundError(msg)
    return found


def make(cursor: duckdb.DuckDBPyConnection, info: CollectionInfo) -> None:
    """Make a collection; leave alone one that is there and fits."""
    for statement in _MAKE:
        cursor.execute(statement)
    there = find(cursor, info.name)
    if there is not None:
        refuse_another(info, there.info)
        return
    (number,) = cursor.execute(_NEXT).fetchone() or (1,)
    cursor.execute(
        "INSERT INTO entrepot.collections VALUES (?, ?, ?, ?, ?, ?)",
        [info.name, number, info.dimension, info.metric.value, info.model, info.layout],
    )
    # No primary key: DuckDB 1.4 refuses to write an id that was deleted while others still read it. That
    # writers take turns keeps ids apart.
    cursor.execute(
        f"""CREATE TABLE {_table(number)} (
        id VARCHAR NOT NULL, text VARCHAR, metadata VARCHAR NOT NULL,
        codes MAP(VARCHAR, VARCHAR[]) NOT NULL, vector FLOAT[{info.dimension:d}] NOT NULL)"""
    )


def drop(cursor: duckdb.DuckDBPyConnection, name: str) -> None:
    """Remove a collection; a missing one is no error."""
    found = find(cursor, name)
    if found is not None:
        cursor.execute(f"DROP TABLE {found.table}")
        cursor.execute("DELETE FROM entrepot.collections WHERE name = ?", [name])


def names(cursor: duckdb.DuckDBPyConnection) -> list[str]:
    """Return the names of all collections, sorted."""
    try:
        rows = cursor.execute("SELECT name FROM entrepot.collections ORDER BY name").fetchall()
    except duckdb.CatalogException:
        return []
    return [name for (name,) in rows]


def refuse_another(wanted: CollectionInfo, there: CollectionInfo) -> None:
    """Refuse a collection whose vectors are others than those that were prepared for it."""
    if (wanted.dimension, wanted.metric) != (there.dimension, there.metric):
        msg = f"collection {there.name!r} has dimension {there.dimension} and metric {there.metric}"
        raise CollectionMismatchError(msg)


def _table(number: int) -> str:
    return f"entrepot.documents_{number:d}"
