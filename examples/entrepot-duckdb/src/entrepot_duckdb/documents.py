"""The documents of one collection, within one transaction: each method is one statement.

A row keeps a document whole: id, text, metadata as one JSON text, vector (D4). Beside them stand the codes
that filters compare.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import duckdb
import msgspec
import numpy as np
from entrepot.capabilities import Metric
from entrepot.metadata import Metadata, decode_metadata, encode_metadata
from entrepot.records import Hit, Query, Record, StoredRecord

from entrepot_duckdb.catalogue import Collection
from entrepot_duckdb.filters import Clause, codes_of, joined

EVERYTHING = ("text", "metadata", "vector")


class Documents:
    """What can be done with the rows of a collection."""

    def __init__(self, cursor: duckdb.DuckDBPyConnection, collection: Collection) -> None:
        self._cursor = cursor
        self.collection = collection
        self._table = collection.table
        self._dimension = collection.info.dimension

    # --- reading --------------------------------------------------------------------------------------

    def fetch(self, ids: Iterable[str], include: Sequence[str]) -> list[StoredRecord]:
        """Return the documents with these ids, in any order."""
        return self._records(with_ids(ids), include)

    def page(self, query: Query, after: str | None, size: int) -> list[StoredRecord]:
        """Return the first documents whose ids come after another one, in the order of ids."""
        which = where(query)
        if after is not None:
            which = joined([which, Clause("id > ?", (after,))], "AND")
        return self._records(which, query.include, f"ORDER BY id LIMIT {size:d}")

    def count(self, query: Query) -> int:
        """Return how many documents match."""
        which = where(query)
        (count,) = self._execute(f"SELECT count(*) FROM {self._table} WHERE {which.sql}", which.values)[0]
        return int(count)

    def nearest(self, query: Query) -> list[Hit]:
        """Return the nearest documents of those that match; equal ones in the order of ids (S1).

        Sums are made in doubles, as a square of float32 may overflow.
        """
        if query.vector is None:
            return []
        vectors = f"vector::DOUBLE[{self._dimension:d}], ?::DOUBLE[{self._dimension:d}]"
        squared = self.collection.info.metric is Metric.EUCLIDEAN
        if squared:
            raw, order = f"array_distance({vectors})", "raw, id"
        else:
            raw, order = f"array_inner_product({vectors})", "raw DESC, id"
        which = where(query)
        rows = self._execute(
            f"SELECT {raw} AS raw, {_columns(query.include)} FROM {self._table} WHERE {which.sql} "
            f"ORDER BY {order} LIMIT {query.k:d}",
            (query.vector.tolist(), *which.values),
        )
        return [Hit(found[0] ** 2 if squared else found[0], _record(found[1:])) for found in rows]

    # --- writing --------------------------------------------------------------------------------------

    def insert(self, records: Sequence[Record]) -> None:
        """Insert documents whose ids are not there."""
        rows = [
            _indexed(record.id, record.metadata) | {"text": record.text, "vector": record.vector.tolist()}
            for record in records
        ]
        source, value = _as_rows(rows, text="VARCHAR", vector=f"FLOAT[{self._dimension:d}]")
        self._execute(f"INSERT INTO {self._table} BY NAME {source}", (value,))

    def change(self, metadata: Mapping[str, Metadata]) -> None:
        """Replace the metadata of documents, given by id."""
        source, value = _as_rows([_indexed(name, new) for name, new in metadata.items()])
        self._execute(
            f"UPDATE {self._table} AS old SET metadata = new.metadata, codes = new.codes "
            f"FROM ({source}) AS new WHERE old.id = new.id",
            (value,),
        )

    def remove(self, which: Clause) -> None:
        """Remove all documents that a condition holds for."""
        self._execute(f"DELETE FROM {self._table} WHERE {which.sql}", which.values)

    # --- statements -----------------------------------------------------------------------------------

    def _execute(self, sql: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        return self._cursor.execute(sql, list(values)).fetchall()

    def _records(self, which: Clause, include: Sequence[str], tail: str = "") -> list[StoredRecord]:
        sql = f"SELECT {_columns(include)} FROM {self._table} WHERE {which.sql} {tail}"
        return [_record(row) for row in self._execute(sql, which.values)]


def _indexed(name: str, metadata: Metadata) -> dict[str, Any]:
    """Return what a row keeps of metadata: all of it as JSON text (D4), and what filters compare."""
    return {"id": name, "metadata": encode_metadata(metadata).decode(), "codes": codes_of(metadata)}


def _as_rows(rows: Sequence[dict[str, Any]], **types: str) -> tuple[str, str]:
    """Return a SELECT of rows, and the value of the one question mark in it.

    They go in as one JSON text, which DuckDB reads in half the time of lists of parameters.
    """
    types |= {"id": "VARCHAR", "metadata": "VARCHAR", "codes": "MAP(VARCHAR, VARCHAR[])"}
    shape = msgspec.json.encode([types]).decode()
    return f"SELECT unnest(from_json(?, '{shape}'), recursive := true)", msgspec.json.encode(rows).decode()


def with_ids(ids: Iterable[str]) -> Clause:
    """Return the condition that a document has one of these ids."""
    return Clause("id IN (SELECT unnest(?::VARCHAR[]))", (list(ids),))


def where(query: Query) -> Clause:
    """Return the condition of a query: its filter, and the ids that it is restricted to."""
    pushed: Clause = query.pushed.query
    return pushed if query.ids is None else joined([with_ids(query.ids), pushed], "AND")


def _columns(include: Sequence[str]) -> str:
    return ", ".join(["id", *(part if part in include else "NULL" for part in EVERYTHING)])


def _record(row: Sequence[Any]) -> StoredRecord:
    """Return a row of `_columns` as a record."""
    name, text, metadata, vector = row
    return StoredRecord(
        name,
        text,
        None if metadata is None else decode_metadata(metadata.encode()),
        None if vector is None else np.array(vector, dtype=np.float32),
    )
