"""What reads documents: searches, pages, counts, by id. Scripts.

``doc`` is the row of a document in every statement, as `filters.PostgresClause` expects.
"""

from __future__ import annotations

import base64
import binascii
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from psycopg import sql

from entrepot.capabilities import Metric
from entrepot.errors import CollectionMismatchError, RequestError
from entrepot.filters import TRUE
from entrepot.metadata import decode_metadata
from entrepot.records import Hit, Page, StoredRecord
from entrepot.search import SearchMode
from entrepot_postgres.catalog import MAX_HALF_NORM, half_of
from entrepot_postgres.scripts import Statement, decoded
from entrepot_postgres.vectors import pack, unpack
from entrepot_postgres.words import tsquery

if TYPE_CHECKING:
    from collections.abc import Sequence

    from entrepot.filters import Converted
    from entrepot.records import Query
    from entrepot_postgres.binary import Packed
    from entrepot_postgres.catalog import Place
    from entrepot_postgres.filters import PostgresClause
    from entrepot_postgres.names import Names
    from entrepot_postgres.scripts import Row, Rows, Script

SAMPLE: Final = 1000
"""Rows of which a filter is asked before the index is used; with fewer, a filtered search is exact."""
MOST_BY_INDEX: Final = 500
"""Most hits that the index is asked for: its candidates are limited to 1,000."""
MAX_EF: Final = 1000
_MAX_SCAN: Final = 20_000
"""Rows that pgvector visits at most for one search of its index (`hnsw.max_scan_tuples`)."""
_MORE_BY_HALF: Final = 40
"""Candidates beyond twice the hits that an index of 16-bit floats is asked for."""
_VISIT: Final = 10
"""What visiting a row by the index costs, in rows of a plain scan."""

_OPERATORS: Final = {
    Metric.COSINE: sql.SQL("<#>"),  # the negated dot product; vectors are stored with norm 1 (D9)
    Metric.DOT: sql.SQL("<#>"),
    Metric.EUCLIDEAN: sql.SQL("<->"),
}


class Condition(NamedTuple):
    """What stands behind WHERE, and what is bound to it."""

    where: sql.SQL | sql.Composed
    bound: tuple[object, ...]


def constant(text: str) -> sql.SQL:
    """Return the SQL of a `PostgresClause`: joined constants of the converter, in which nothing varies (F10)."""
    checked: Any = text
    return sql.SQL(checked)


def condition(query: Query) -> Condition:
    """Return the condition of a query: its filter and its ids."""
    converted: Converted[PostgresClause] = query.pushed
    parts: list[str] = []
    bound: list[object] = []
    if query.filter is not TRUE:
        parts.append(converted.query.sql)
        bound += converted.query.bound
    if query.ids is not None:
        parts.append("doc.id = ANY(%s::text[])")
        bound.append(list(query.ids))
    return Condition(constant(" AND ".join(parts) or "true"), tuple(bound))


def _columns(include: Sequence[str]) -> sql.SQL | sql.Composed:
    """Return the columns of a record, NULL for the parts that are not asked for."""
    text = "doc.text" if "text" in include else "NULL::text"
    metadata = "doc.metadata" if "metadata" in include else "NULL::text"
    vector = "doc.embedding" if "vector" in include else "NULL::text"
    return sql.SQL("doc.id, {}, {}, {}").format(sql.SQL(text), sql.SQL(metadata), sql.SQL(vector))


def _record(row: Row) -> StoredRecord:
    name, text, metadata, vector = row[:4]
    return StoredRecord(
        name,
        text,
        None if metadata is None else decode_metadata(metadata.encode()),
        None if vector is None else unpack(vector),
    )


def _records(rows: Rows) -> list[StoredRecord]:
    return list(map(_record, rows))


# --- searching --------------------------------------------------------------------------------------------


def search(names: Names, place: Place, query: Query, ef_search: int) -> Script[list[Hit]]:
    """Return the best hits, by vector or by words.

    Raises:
        CollectionMismatchError: The collection was made anew since the store looked at it.
    """
    if query.mode is SearchMode.FULLTEXT:
        return (yield from _by_words(names, query))
    if query.vector is None:
        return []
    exact = query.exact or not place.indexed or query.ids is not None or query.k > MOST_BY_INDEX
    if not exact and query.filter is not TRUE:
        exact = yield from _exact_is_better(names, place, query)
    return (yield from _by_vector(names, place, query, ef_search, exact=exact))


def _exact_is_better(names: Names, place: Place, query: Query) -> Script[bool]:
    where, bound = condition(query)
    statement = _sampled(names.table.as_string(None), where.as_string(None))
    [(matching, seen, rows)] = yield Statement(statement, (*bound, place.table))
    return prefer_exact(matching, seen, max(rows or 0.0, seen), query.k)


@lru_cache(maxsize=1024)
def _sampled(table: str, where: str) -> sql.SQL:
    composed = sql.SQL(
        "SELECT count(*) FILTER (WHERE {}), count(*),"
        " (SELECT reltuples::float8 FROM pg_class WHERE oid = %s::bigint::oid)"
        " FROM (SELECT terms FROM {} LIMIT {}) AS doc"
    ).format(constant(where), constant(table), sql.Literal(SAMPLE))
    return constant(composed.as_string(None))


def prefer_exact(matching: int, seen: int, rows: float, k: int) -> bool:
    """Whether reading all rows beats visiting rows in the order of the index until k match.

    Args:
        matching: Rows of a sample that match the filter.
        seen: Rows of the sample; fewer than 1,000 are the whole table.
        rows: Rows of the table, about.
        k: Hits that are wanted.
    """
    if seen < SAMPLE or not matching:
        return True
    visits = k * seen / matching
    return visits > _MAX_SCAN / 2 or visits * _VISIT > rows


@lru_cache(maxsize=1024)
def _nearest(  # noqa: PLR0913, PLR0917 - the parts that vary
    table: str,
    include: tuple[str, ...],
    operator: str,
    where: str,
    k: int,
    exact: bool,  # noqa: FBT001
) -> sql.SQL:
    """Return the statement of a search; composing it takes longer than sending it, so it is kept.

    The table is a quoted name; operator and condition are constants of this package.
    """
    # The sum is no expression that the index has, so the planner sorts all that match; ties by id (S1).
    composed = sql.SQL(
        "SELECT {}, doc.tableoid::bigint, (doc.embedding {} %b::vector){} AS distance"
        " FROM {} AS doc WHERE {} ORDER BY {} LIMIT {}"
    ).format(
        _columns(include),
        constant(operator),
        sql.SQL(" + 0" if exact else ""),
        constant(table),
        constant(where),
        sql.SQL("distance, id" if exact else "distance"),
        sql.Literal(k),
    )
    return constant(composed.as_string(None))


def _by_vector(names: Names, place: Place, query: Query, ef_search: int, *, exact: bool) -> Script[list[Hit]]:
    if not exact and place.half:
        found = yield from _by_half(names, place, query, ef_search)
        if found is not None:
            return found
        exact = True
    where, bound = condition(query)
    statement = _nearest(
        names.table.as_string(None),
        query.include,
        _OPERATORS[place.info.metric].as_string(None),
        where.as_string(None),
        query.k,
        exact,
    )
    settings = {} if exact else _index_settings(query, ef_search)
    rows = yield Statement(statement, (_packed(query), *bound), settings)
    return (yield from decoded(rows, partial(_hits, place)))


def _by_half(names: Names, place: Place, query: Query, ef_search: int) -> Script[list[Hit] | None]:
    """Take candidates from an index of 16-bit floats, and compare them in full; None where that may miss.

    A vector too long for the index is nearer than the last hit only if the triangle inequality allows it.
    """
    euclidean = place.info.metric is Metric.EUCLIDEAN
    length = 0.0 if query.vector is None else float(np.linalg.norm(query.vector.astype(np.float64)))
    if euclidean and length >= MAX_HALF_NORM:
        return None
    where, bound = condition(query)
    settings = _index_settings(query, ef_search)
    statement = sql.SQL(
        "SELECT {}, doc.place, (doc.embedding {} %b::vector) AS distance FROM ("
        "SELECT doc.*, doc.tableoid::bigint AS place FROM {} AS doc WHERE {}"
        " ORDER BY {} {} %b::vector::halfvec({}) LIMIT {}) AS doc ORDER BY distance, id LIMIT {}"
    ).format(
        _columns(query.include),
        _OPERATORS[place.info.metric],
        names.table,
        where,
        half_of(sql.SQL("doc.embedding"), place.info),
        _OPERATORS[place.info.metric],
        sql.Literal(place.info.dimension),
        sql.Literal(min(MAX_EF, 2 * query.k + _MORE_BY_HALF)),
        sql.Literal(query.k),
    )
    rows = yield Statement(statement, (_packed(query), *bound, _packed(query)), settings)
    hits = yield from decoded(rows, partial(_hits, place))
    if euclidean and hits and hits[-1].raw >= (MAX_HALF_NORM - length) ** 2:
        return None
    return hits


def _index_settings(query: Query, ef_search: int) -> dict[str, str]:
    width = min(MAX_EF, max(ef_search, 2 * query.k))
    return {"hnsw.ef_search": str(width), "hnsw.iterative_scan": "relaxed_order"}


def _packed(query: Query) -> Packed | None:
    return None if query.vector is None else pack(query.vector)


def _hits(place: Place, rows: Sequence[Row]) -> list[Hit]:
    _refuse_another(place, rows)
    if place.info.metric is Metric.EUCLIDEAN:
        return [Hit(row[5] * row[5], _record(row)) for row in rows]
    return [Hit(-row[5], _record(row)) for row in rows]


def _refuse_another(place: Place, rows: Sequence[Row]) -> None:
    """Refuse rows of another table than the one that was described: its metric may differ."""
    if rows and rows[0][4] != place.table:
        raise made_anew(place)


def made_anew(place: Place) -> CollectionMismatchError:
    """Return the error for a table that is not the one that was described."""
    msg = f"collection {place.info.name!r} was dropped and made anew meanwhile"
    return CollectionMismatchError(
        msg, hint="the store knows the new one now: try again, if it is the one you mean"
    )


def _by_words(names: Names, query: Query) -> Script[list[Hit]]:
    words = tsquery(query.words or "")
    if words is None:
        return []
    where, bound = condition(query)
    statement = sql.SQL(
        "SELECT {}, ts_rank(doc.words, %s::text::tsquery, 1) AS rank FROM {} AS doc"
        " WHERE doc.words @@ %s::text::tsquery AND {} ORDER BY rank DESC, id LIMIT {}"
    ).format(_columns(query.include), names.table, where, sql.Literal(query.k))
    rows = yield Statement(statement, (words, words, *bound))
    return (yield from decoded(rows, _ranked))


def _ranked(rows: Rows) -> list[Hit]:
    return [Hit(row[4], _record(row)) for row in rows]


# --- by id, by page, counted ------------------------------------------------------------------------------


def fetch(names: Names, ids: Sequence[str], include: Sequence[str]) -> Script[list[StoredRecord]]:
    """Return the documents with these ids that are there."""
    statement = sql.SQL("SELECT {} FROM {} AS doc WHERE doc.id = ANY(%s::text[])").format(
        _columns(include), names.table
    )
    rows = yield Statement(statement, (list(ids),))
    return (yield from decoded(rows, _records))


def scan(names: Names, query: Query, token: str | None, size: int) -> Script[Page[StoredRecord]]:
    """Return a page in the order of ids, which no write changes: what is there throughout comes once (D7)."""
    where, bound = condition(query)
    statement = sql.SQL(
        "SELECT {} FROM {} AS doc WHERE doc.id > %s::text AND {} ORDER BY doc.id LIMIT {}"
    ).format(_columns(query.include), names.table, where, sql.Literal(size + 1))
    rows = yield Statement(statement, (place_of(token), *bound))
    more = len(rows) > size
    page = yield from decoded(rows[:size], _records)
    return Page(page, token_at(page[-1].id) if more else None)


def count(names: Names, query: Query) -> Script[int]:
    """Return how many documents match."""
    where, bound = condition(query)
    [(number,)] = yield Statement(
        sql.SQL("SELECT count(*) FROM {} AS doc WHERE {}").format(names.table, where), bound
    )
    return int(number)


def token_at(name: str) -> str:
    """Return the token of what stands behind an id."""
    return base64.urlsafe_b64encode(name.encode()).decode()


def place_of(token: str | None) -> str:
    """Return the id that a token stands behind, the empty string for the beginning."""
    if token is None:
        return ""
    try:
        name = base64.b64decode(token, altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError, TypeError):
        name = ""
    if not name or "\0" in name:
        msg = "the token is none of this store's"
        raise RequestError(msg, hint="pass the token of a scan or of one of its pages")
    return name
