"""What reads documents out of a table that other software made: searches, pages, counts, by id. Scripts.

``doc`` is a row of the table in every statement.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from psycopg import sql

from entrepot.capabilities import Metric
from entrepot.errors import CollectionMismatchError, RequestError
from entrepot.filters import TRUE
from entrepot.metadata import name_fault
from entrepot.records import Hit, Page, StoredRecord
from entrepot_postgres.columns import SETTINGS, metadata_of_json
from entrepot_postgres.mapped_filters import MappedFilterConverter, is_uuid
from entrepot_postgres.reading import (
    MAX_EF,
    MOST_BY_INDEX,
    SAMPLE,
    Condition,
    constant,
    place_of,
    prefer_exact,
    token_at,
)
from entrepot_postgres.scripts import Statement, decoded
from entrepot_postgres.vectors import pack, unpack

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from entrepot.records import Query
    from entrepot_postgres.mapped_table import Table
    from entrepot_postgres.scripts import Row, Rows, Script

_OPERATORS: Final = {
    Metric.COSINE: sql.SQL("<=>"),  # vectors are stored with any norm
    Metric.DOT: sql.SQL("<#>"),
    Metric.EUCLIDEAN: sql.SQL("<->"),
}
_CASTS: Final = {"uuid": "uuid", "int": "int8", "text": "text", "string": "text"}
_MOST_DOT: Final = 1.0 + 2e-3
"""The dot product of two vectors whose norms are 1 within 1e-3 (D9)."""
_FIRST_OF_ROW: Final = 4
"""Id, text, JSON and vector stand before the typed columns."""


def condition(table: Table, query: Query) -> Condition:
    """Return the condition of a query: what makes a row a document, its filter and its ids."""
    parts: list[sql.SQL | sql.Composed] = [constant(table.only.sql)]
    bound: list[object] = [*table.only.bound]
    if query.filter is not TRUE:
        clause = MappedFilterConverter(table.columns, table.json).convert(query.filter).query
        parts.append(constant(clause.sql))
        bound += clause.bound
    if query.ids is not None:
        parts.append(_among(table))
        bound.append(_ids(table, query.ids))
    return Condition(sql.SQL(" AND ").join(parts), tuple(bound))


def _among(table: Table) -> sql.SQL:
    exactly = ' COLLATE "C"' if table.id_kind == "string" else ""
    return constant(f"{table.id}{exactly} = ANY(%s::text[]::{_CASTS[table.id_kind]}[])")


def _ids(table: Table, ids: Sequence[str]) -> list[str]:
    """Return the ids that the id column can hold."""
    return [name for name in ids if _is_id(table, name)]


def _is_id(table: Table, name: str) -> bool:
    if table.id_kind == "uuid":
        return is_uuid(name)
    if table.id_kind == "int":
        digits = name.removeprefix("-")
        return (
            digits.isascii() and digits.isdigit() and str(int(name)) == name and -(2**63) <= int(name) < 2**63
        )
    return True


def _columns(table: Table, include: Sequence[str]) -> sql.SQL:
    """Return the columns of a record, NULL for the parts that are not asked for."""
    text = table.text if table.text is not None and "text" in include else "NULL::text"
    json = f"{table.json}::text" if table.json is not None and "metadata" in include else "NULL::text"
    vector = table.vector if "vector" in include else "NULL::vector"
    typed = [column.read for column in table.columns.values()] if "metadata" in include else []
    return constant(", ".join([f"{table.id}::text", text, json, vector, *typed]))


def _record(table: Table, include: Sequence[str], row: Row) -> StoredRecord:
    name, text, json, vector = row[:_FIRST_OF_ROW]
    metadata: dict[str, Any] | None = None
    if "metadata" in include:
        metadata = {} if json is None else metadata_of_json(json)
        for (key, column), read in zip(table.columns.items(), row[_FIRST_OF_ROW:], strict=False):
            metadata.pop(key, None)
            value = column.value(read)
            if value is not None:
                metadata[key] = value
    return StoredRecord(name, text, metadata, None if vector is None else _vector(table, unpack(vector)))


def _vector(table: Table, stored: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return a vector as the contract has it: with norm 1 under cosine and dot (D9)."""
    if table.info.metric is Metric.EUCLIDEAN:
        return stored
    exact = stored.astype(np.float64)
    norm = float(np.linalg.norm(exact))
    return stored if norm == 0.0 or not math.isfinite(norm) else (exact / norm).astype(np.float32)


# --- searching --------------------------------------------------------------------------------------------


def search(table: Table, query: Query, ef_search: int) -> Script[list[Hit]]:
    """Return the nearest documents; rows whose vector cannot be compared are none."""
    if query.vector is None:
        return []
    exact = query.exact or not table.indexed or query.ids is not None or query.k > MOST_BY_INDEX
    if not exact and query.filter is not TRUE:
        exact = yield from _exact_is_better(table, query)
    where, bound = condition(table, query)
    statement = (_by_all if exact else _by_index)(table, query, where)
    settings = dict(SETTINGS)
    if not exact:
        width = min(MAX_EF, max(ef_search, 2 * query.k))
        settings |= {"hnsw.ef_search": str(width), "hnsw.iterative_scan": "relaxed_order"}
    rows = yield Statement(statement, (pack(query.vector), *bound), settings)
    return (yield from decoded(rows, partial(_hits, table, query.include)))


def _hits(table: Table, include: Sequence[str], rows: Rows) -> list[Hit]:
    hits: list[Hit] = []
    metric = table.info.metric
    _check_ids(table, rows)
    for *row, distance in rows:
        if distance is None or not math.isfinite(distance):
            continue
        if metric is Metric.DOT and abs(distance) > _MOST_DOT:
            msg = f"the table {table.info.name!r} holds vectors whose norm is not 1, which dot asks for"
            raise CollectionMismatchError(msg, hint="open it with metric='cosine', or store them with norm 1")
        hits.append(Hit(_raw(metric, distance), _record(table, include, tuple(row))))
    return hits


def _check_ids(table: Table, rows: Rows) -> None:
    """Refuse rows that share an id: neither pages nor hits could tell them apart; and ids that are none (D1, D7)."""
    for row in rows:
        fault = name_fault(row[0])
        if fault is not None:
            msg = f"an id of the table {table.info.name!r} {fault}"
            raise CollectionMismatchError(
                msg, hint="leave the row out by only=, or name another column as id"
            )
    if len({row[0] for row in rows}) < len(rows):
        msg = f"ids of the table {table.info.name!r} are not unique: several rows have one"
        raise CollectionMismatchError(msg, hint="name another column as id, or narrow the rows by only=")


def _records(table: Table, include: Sequence[str], rows: Rows) -> list[StoredRecord]:
    _check_ids(table, rows)
    return [_record(table, include, row) for row in rows]


def _by_all(table: Table, query: Query, where: sql.Composable) -> sql.Composed:
    """Return the statement that compares every row: one without a comparable vector has no distance."""
    distance = sql.SQL("CASE WHEN vector_dims({0}) = {1} THEN {0} {2} %b::vector END").format(
        constant(table.vector), sql.Literal(table.info.dimension), _OPERATORS[table.info.metric]
    )
    # The sum is no expression that an index has.
    return sql.SQL(
        "SELECT {}, near.distance FROM {} AS doc CROSS JOIN LATERAL (SELECT {} + 0 AS distance) AS near"
        " WHERE {} AND near.distance < 'Infinity'::float8"
        ' ORDER BY near.distance, {}::text COLLATE "C" LIMIT {}'
    ).format(
        _columns(table, query.include),
        table.name,
        distance,
        where,
        constant(table.id),
        sql.Literal(query.k),
    )


def _by_index(table: Table, query: Query, where: sql.Composable) -> sql.Composed:
    return sql.SQL(
        "SELECT {}, ({} {} %b::vector) AS distance FROM {} AS doc WHERE {} ORDER BY distance LIMIT {}"
    ).format(
        _columns(table, query.include),
        constant(table.vector),
        _OPERATORS[table.info.metric],
        table.name,
        where,
        sql.Literal(query.k),
    )


def _raw(metric: Metric, distance: float) -> float:
    """Return what the core makes a score of: the cosine, the dot product or the squared distance."""
    if metric is Metric.EUCLIDEAN:
        return distance * distance
    return 1.0 - distance if metric is Metric.COSINE else -distance


def _exact_is_better(table: Table, query: Query) -> Script[bool]:
    where, bound = condition(table, query)
    statement = sql.SQL(
        "SELECT count(*) FILTER (WHERE {}), count(*),"
        " (SELECT reltuples::float8 FROM pg_class WHERE oid = %s::bigint::oid)"
        " FROM (SELECT * FROM {} LIMIT {}) AS doc"
    ).format(where, table.name, sql.Literal(SAMPLE))
    [(matching, seen, rows)] = yield Statement(statement, (*bound, table.oid), SETTINGS)
    return prefer_exact(matching, seen, max(rows or 0.0, seen), query.k)


# --- by id, by page, counted ------------------------------------------------------------------------------


def fetch(table: Table, ids: Sequence[str], include: Sequence[str]) -> Script[list[StoredRecord]]:
    """Return the documents with these ids that are there."""
    statement = sql.SQL("SELECT {} FROM {} AS doc WHERE {} AND {}").format(
        _columns(table, include), table.name, _among(table), constant(table.only.sql)
    )
    rows = yield Statement(statement, (_ids(table, ids), *table.only.bound), SETTINGS)
    return (yield from decoded(rows, partial(_records, table, include)))


def scan(table: Table, query: Query, token: str | None, size: int) -> Script[Page[StoredRecord]]:
    """Return a page in the order that the index of the id column has (D7)."""
    where, bound = condition(table, query)
    behind: sql.SQL = sql.SQL("true")
    if token is not None:
        place = place_of(token)
        if not _is_id(table, place):
            msg = "the token is none of this store's"
            raise RequestError(msg, hint="pass the token of a scan or of one of its pages")
        behind = constant(f"{table.order} > %s::text::{_CASTS[table.id_kind]}")
        bound = (place, *bound)
    statement = sql.SQL("SELECT {} FROM {} AS doc WHERE {} AND {} ORDER BY {} LIMIT {}").format(
        _columns(table, query.include),
        table.name,
        behind,
        where,
        constant(table.order),
        sql.Literal(size + 1),
    )
    rows = yield Statement(statement, bound, SETTINGS)
    _check_ids(table, rows)  # also across the end of the page
    page = yield from decoded(rows[:size], partial(_records, table, query.include))
    return Page(page, token_at(page[-1].id) if len(rows) > size else None)


def count(table: Table, query: Query) -> Script[int]:
    """Return how many documents match."""
    where, bound = condition(table, query)
    statement = sql.SQL("SELECT count(*) FROM {} AS doc WHERE {}").format(table.name, where)
    [(number,)] = yield Statement(statement, bound, SETTINGS)
    return int(number)
