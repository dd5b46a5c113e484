"""Looking at a table that other software made: whether it is what a mapping says. A script."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias
from uuid import UUID

from psycopg import sql

from entrepot.capabilities import Metric
from entrepot.errors import CollectionMismatchError, ConfigurationError
from entrepot.filters import FilterOp
from entrepot.records import CollectionInfo
from entrepot_postgres.columns import KINDS, Column, quoted
from entrepot_postgres.filters import PostgresClause, joined
from entrepot_postgres.mapped_filters import of_column
from entrepot_postgres.reading import constant
from entrepot_postgres.scripts import Statement

if TYPE_CHECKING:
    from entrepot_postgres.mapping import Fixed, TableMapping
    from entrepot_postgres.names import Name
    from entrepot_postgres.scripts import Script

IdKind: TypeAlias = Literal["uuid", "int", "text", "string"]

_VECTORS: Final = ("vector", "halfvec")
_TEXTS: Final = ("text", "varchar", "bpchar", "citext", "name")
_CLASSES: Final = {
    Metric.COSINE: "vector_cosine_ops",
    Metric.DOT: "vector_ip_ops",
    Metric.EUCLIDEAN: "vector_l2_ops",
}


class Table(NamedTuple):
    """A table as the database has it, and as a mapping has it read. All SQL is quoted.

    Attributes:
        info: Name, dimension and metric.
        indexed: Whether it has an HNSW index for the metric.
        oid: The number that the database gave to it.
        name: Its name.
        id: The id column.
        id_kind: What ids are.
        order: What pages are sorted by.
        text: The text column, as text.
        vector: The vector column, as ``vector``.
        json: The metadata column, as ``jsonb``.
        columns: The typed columns, by metadata key.
        only: What makes a row a document.
    """

    info: CollectionInfo
    indexed: bool
    oid: int
    name: Name
    id: str
    id_kind: IdKind
    order: str
    text: str | None
    vector: str
    json: str | None
    columns: dict[str, Column]
    only: PostgresClause

    @property
    def ann(self) -> bool:
        """Whether searches may be approximate."""
        return self.indexed


class _Found(NamedTuple):
    """A column as the database has it: its type without domain, that of its elements, and more."""

    type: str
    element: str | None
    is_enum: bool
    size: int
    is_folded: bool


def describe(
    name: Name, collection: str, mapping: TableMapping, metric: Metric, dimension: int | None
) -> Script[Table | None]:
    """Return a table or view, or None if there is none.

    Raises:
        CollectionMismatchError: It lacks a column, or one is of a type that cannot be what it is named for.
    """
    rows = yield Statement(_COLUMNS, (name.text,))
    if not rows:
        return None
    oid = rows[0][0]
    found = {row[1]: _Found(*row[2:]) for row in rows}
    for column in mapping.names:
        if column not in found:
            msg = f"the table {collection!r} has no column {column!r}"
            raise CollectionMismatchError(msg, hint=f"it has {', '.join(sorted(found))}")
    vector, size = _vector(collection, mapping.vector, found[mapping.vector])
    columns = {key: _column(collection, column, found[column]) for key, column in mapping.columns.items()}
    only = [
        _held(column, _column(collection, column, found[column]), v) for column, v in mapping.only.items()
    ]
    only.append(PostgresClause(f"{quoted(mapping.id)} IS NOT NULL"))
    is_document = joined(" AND ", only)
    if size is None:
        size = (
            dimension if dimension is not None else (yield from _first_dimension(name, vector, is_document))
        )
    if size is None:
        msg = f"the table {collection!r} does not say how many components its vectors have"
        raise CollectionMismatchError(msg, hint="open it with dimension=...")
    indexes = yield Statement(_INDEXES, (oid, mapping.vector, _CLASSES[metric]))
    id_kind = _id_kind(collection, mapping.id, found[mapping.id])
    identifier = quoted(mapping.id)
    return Table(
        info=CollectionInfo(name=collection, dimension=size, metric=metric),
        indexed=bool(indexes) and found[mapping.vector].type == "vector",
        oid=oid,
        name=name,
        id=identifier if id_kind != "string" else f"{identifier}::text",
        id_kind=id_kind,
        order=identifier if id_kind != "string" else f'{identifier}::text COLLATE "C"',
        text=_text(collection, mapping.text, found),
        vector=vector,
        json=_json(collection, mapping.metadata, found),
        columns=columns,
        only=is_document,
    )


_COLUMNS: Final = sql.SQL(
    "SELECT a.attrelid::bigint, a.attname::text, base.typname::text, element.typname::text,"
    " base.typtype = 'e' OR coalesce(element.typtype = 'e', false), a.atttypmod,"
    " coalesce(NOT c.collisdeterministic, false)"
    " FROM pg_attribute AS a JOIN pg_type AS given ON given.oid = a.atttypid"
    " JOIN pg_type AS base ON base.oid = CASE given.typtype WHEN 'd' THEN given.typbasetype ELSE given.oid END"
    " LEFT JOIN pg_type AS element ON element.oid = base.typelem AND base.typcategory = 'A'"
    " LEFT JOIN pg_collation AS c ON c.oid = a.attcollation"
    " WHERE a.attrelid = to_regclass(%s) AND a.attnum > 0 AND NOT a.attisdropped"
)
_INDEXES: Final = sql.SQL(
    "SELECT 1 FROM pg_index AS i JOIN pg_class AS k ON k.oid = i.indexrelid JOIN pg_am AS m ON m.oid = k.relam"
    " JOIN pg_opclass AS o ON o.oid = i.indclass[0]"
    " JOIN pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]"
    " WHERE i.indrelid = %s::bigint::oid AND a.attname = %s AND m.amname = 'hnsw' AND o.opcname = %s"
    " AND i.indisvalid AND i.indpred IS NULL"
)


def _first_dimension(name: Name, vector: str, is_document: PostgresClause) -> Script[int | None]:
    statement = sql.SQL(
        "SELECT vector_dims({0}) FROM {1} AS doc WHERE {2} AND {0} IS NOT NULL LIMIT 1"
    ).format(constant(vector), name, constant(is_document.sql))
    rows = yield Statement(statement, is_document.bound)
    return rows[0][0] if rows else None


def _vector(collection: str, column: str, found: _Found) -> tuple[str, int | None]:
    if found.type not in _VECTORS:
        raise _mismatch(collection, column, found, "vector or halfvec")
    size = found.size if found.size > 0 else None
    return quoted(column) if found.type == "vector" else f"{quoted(column)}::vector", size


def _text(collection: str, column: str | None, found: dict[str, _Found]) -> str | None:
    if column is None:
        return None
    if found[column].type not in _TEXTS:
        raise _mismatch(collection, column, found[column], "text or varchar")
    return f"{quoted(column)}::text"


def _json(collection: str, column: str | None, found: dict[str, _Found]) -> str | None:
    if column is None:
        return None
    if found[column].type not in ("json", "jsonb"):
        raise _mismatch(collection, column, found[column], "json or jsonb")
    return quoted(column) if found[column].type == "jsonb" else f"{quoted(column)}::jsonb"


def _column(collection: str, column: str, found: _Found) -> Column:
    kind = "string" if found.is_enum else KINDS.get(found.element or found.type)
    if kind is None:
        raise _mismatch(collection, column, found, f"one of {', '.join(KINDS)}, an enum, or an array of them")
    return Column(quoted(column), kind, found.element is not None)


def _id_kind(collection: str, column: str, found: _Found) -> IdKind:
    kind = "string" if found.is_enum else KINDS.get(found.type)
    if kind not in ("uuid", "int", "text", "string"):
        raise _mismatch(collection, column, found, "text, varchar, uuid or an integer")
    return "string" if found.is_folded else kind


def _held(name: str, column: Column, value: Fixed) -> PostgresClause:
    """Return that a column has a value.

    Raises:
        ConfigurationError: It cannot have it.
    """
    asked = value
    if column.kind == "uuid" and isinstance(value, str):
        try:
            asked = str(UUID(value))
        except ValueError:
            asked = ""
    clause = of_column(column, FilterOp.EQ, asked)
    if not clause.bound:
        msg = f"mapping: the column {name!r} cannot hold {value!r}"
        raise ConfigurationError(msg, hint="only= holds columns to values of their types")
    return PostgresClause(f"({clause.sql})", clause.bound)


def _mismatch(collection: str, column: str, found: _Found, wanted: str) -> CollectionMismatchError:
    msg = f"the column {column!r} of {collection!r} has type {found.type}"
    return CollectionMismatchError(msg, hint=f"a column that is named for this has type {wanted}")
