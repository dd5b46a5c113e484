"""What changes documents. Scripts.

Whatever touches several documents takes them in the order of their ids, in code points, so that two writers
never wait for each other in a circle.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from psycopg import sql

from entrepot.drafts import check_sizes
from entrepot.errors import DuplicateIdError, OutsideViewError
from entrepot.filters import TRUE
from entrepot.guards import changed, changed_inside, refuse_outside
from entrepot.metadata import decode_metadata, encode_metadata
from entrepot.records import StoredRecord
from entrepot_postgres.filters import PostgresFilterConverter
from entrepot_postgres.reading import condition, constant, made_anew
from entrepot_postgres.scripts import Statement
from entrepot_postgres.terms import json_terms
from entrepot_postgres.vectors import pack_all
from entrepot_postgres.words import tsvector

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from entrepot.capabilities import Limits
    from entrepot.filters import Normal
    from entrepot.records import IfExists, Query, Record
    from entrepot_postgres.catalog import Place
    from entrepot_postgres.names import Names
    from entrepot_postgres.scripts import Script


class Batch(NamedTuple):
    """Documents ready to be bound, in the order of their ids, for the table that they were encoded for."""

    ids: list[str]
    columns: tuple[object, ...]
    place: Place


def batch_of(records: Sequence[Record], place: Place) -> Batch:
    """Encode documents; takes milliseconds for each 100 KB of text."""
    ordered = sorted(records, key=lambda record: record.id)
    ids = [record.id for record in ordered]
    columns = (
        ids,
        [record.text for record in ordered],
        [record.metadata_json.decode() for record in ordered],
        [json_terms(record.metadata) for record in ordered],
        [tsvector(record.text) for record in ordered],
        pack_all([record.vector for record in ordered], place.vector),
    )
    return Batch(ids, columns, place)


def write(names: Names, batch: Batch, if_exists: IfExists, inside: Normal = TRUE) -> Script[None]:
    """Write whole documents, by one statement that also checks what it replaces (D2, T2).

    Raises:
        DuplicateIdError: Under ``if_exists="error"`` an id exists.
        OutsideViewError: A stored document lies outside the filter.
        CollectionMismatchError: The collection was made anew since the store looked at it; its metric, and
            so the form of its vectors, may be another. Nothing was written.
    """
    table = names.table.text
    bound: list[object] = [*batch.columns, table, batch.place.table]
    conflict: sql.SQL | sql.Composed = sql.SQL("DO NOTHING")
    if if_exists == "replace":
        conflict = sql.SQL(
            "DO UPDATE SET text = excluded.text, metadata = excluded.metadata, terms = excluded.terms,"
            " words = excluded.words, embedding = excluded.embedding"
        )
        if inside is not TRUE:
            clause = PostgresFilterConverter().convert(inside).query
            conflict += sql.SQL(" WHERE ") + constant(clause.sql)
            bound += clause.bound
    statement = sql.SQL(
        "INSERT INTO {} AS doc (id, text, metadata, terms, words, embedding)"
        " SELECT given.id, given.text, given.metadata, given.terms::jsonb, given.words::tsvector, given.embedding"
        " FROM unnest(%s::text[], %s::text[], %s::text[], %s::text[], %s::text[], %b::vector[])"
        " AS given(id, text, metadata, terms, words, embedding)"
        " WHERE to_regclass(%s)::oid::bigint = %s"
        " ON CONFLICT (id) {} RETURNING doc.id"
    ).format(names.table, conflict)
    rows = yield Statement(statement, bound)
    if len(rows) == len(batch.ids):
        return
    [(now,)] = yield Statement(sql.SQL("SELECT to_regclass(%s)::oid::bigint"), (table,))
    if now != batch.place.table:
        raise made_anew(batch.place)
    written = {row[0] for row in rows}
    left = [name for name in batch.ids if name not in written]
    if if_exists == "replace":
        raise _outside(left[0])
    if inside is not TRUE:
        refuse_outside((yield from _metadata(names, left)), inside)
    if if_exists == "error":
        msg = f"{len(left)} ids exist already, the first is {left[0]!r}"
        raise DuplicateIdError(msg, ids=left, hint="nothing was written; use if_exists='replace' or 'skip'")


def update(  # noqa: PLR0913, PLR0917 - what an update is
    names: Names,
    ids: Sequence[str],
    changes: Mapping[str, Any],
    unset: Sequence[str],
    limits: Limits,
    inside: Normal = TRUE,
) -> Script[list[str]]:
    """Change metadata of documents that stay locked from the reading to the end; return the ids there were.

    Raises:
        OutsideViewError: A document would leave the filter; those outside are left alone.
        SizeLimitError: A document would exceed a limit (D8).
    """
    stored = yield from _metadata(names, ids, lock=True)
    there = {record.id for record in stored}
    if inside is not TRUE:
        there = changed_inside(stored, changes, unset, inside)
    texts: list[str] = []
    terms: list[str] = []
    touched = [record for record in stored if record.id in there]
    for record in touched:
        metadata = changed(record.metadata or {}, changes, unset)
        encoded = encode_metadata(metadata)
        check_sizes(record.id, None, metadata, encoded, limits)
        texts.append(encoded.decode())
        terms.append(json_terms(metadata))
    if touched:
        statement = sql.SQL(
            "UPDATE {} AS doc SET metadata = given.metadata, terms = given.terms::jsonb"
            " FROM unnest(%s::text[], %s::text[], %s::text[]) AS given(id, metadata, terms)"
            " WHERE doc.id = given.id"
        ).format(names.table)
        yield Statement(statement, ([record.id for record in touched], texts, terms))
    return [name for name in ids if name in there]


def delete_ids(names: Names, ids: Sequence[str], inside: Normal = TRUE) -> Script[None]:
    """Delete documents by id.

    Raises:
        OutsideViewError: One of them lies outside the filter.
    """
    stored = yield from _metadata(names, ids, lock=True)
    refuse_outside(stored, inside)
    if stored:
        statement = sql.SQL("DELETE FROM {} AS doc WHERE doc.id = ANY(%s::text[])").format(names.table)
        yield Statement(statement, ([record.id for record in stored],))


def delete_matching(names: Names, query: Query) -> Script[None]:
    """Delete what matched when the statement began and has not changed since (D7).

    A row that another writer changed meanwhile has another place (ctid) and another writer (xmin) by the
    time it is its turn, and is left alone.
    """
    where, bound = condition(query)
    statement = sql.SQL(
        "WITH found AS MATERIALIZED (SELECT doc.id, doc.ctid AS place, doc.xmin AS writer FROM {} AS doc WHERE {})"
        " DELETE FROM {} AS doc USING found"
        " WHERE doc.id = found.id AND doc.ctid = found.place AND doc.xmin = found.writer"
    ).format(names.table, where, names.table)
    yield Statement(statement, bound)


def _metadata(names: Names, ids: Sequence[str], *, lock: bool = False) -> Script[list[StoredRecord]]:
    """Return documents with their metadata, in the order of ids; locked until the transaction ends."""
    statement = sql.SQL(
        "SELECT doc.id, doc.metadata FROM {} AS doc WHERE doc.id = ANY(%s::text[]) ORDER BY doc.id{}"
    ).format(names.table, sql.SQL(" FOR UPDATE" if lock else ""))
    rows = yield Statement(statement, (list(ids),))
    return [StoredRecord(name, None, decode_metadata(metadata.encode())) for name, metadata in rows]


def _outside(name: str) -> OutsideViewError:
    msg = f"the id {name!r} belongs to a document outside of the view"
    return OutsideViewError(msg, hint="choose another id")
