"""Collections: what there is, how they are made, and what each records about itself (D5). Scripts.

The registry is a table of the schema with one row a collection. What makes and drops collections holds an
advisory lock of the database until its transaction ends, so that many at once make each thing once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from psycopg import sql

from entrepot.capabilities import Metric
from entrepot.errors import BackendError, CollectionMismatchError, ConfigurationError
from entrepot.records import LAYOUT_VERSION, CollectionInfo
from entrepot_postgres.scripts import Statement

if TYPE_CHECKING:
    from entrepot_postgres.names import Name, Names
    from entrepot_postgres.scripts import Rows, Script

MAX_INDEXED: Final = 2000
"""Most components of a vector that pgvector's HNSW takes; beyond, the index holds 16-bit floats."""
MAX_HALF: Final = 4000
"""Most components of a ``halfvec`` that it takes."""
_LEAST_PGVECTOR: Final = (0, 8)
"""The first version whose index scans go on until enough rows pass a filter."""
LOCK: Final = 0x656E_7472_6570_6F74
"""The advisory lock of this library: its name in ASCII."""
LOOKS: Final = 5
"""How often tables and the registry are looked at anew while they contradict each other."""

_OPERATOR_CLASSES: Final = {
    Metric.COSINE: "ip_ops",  # vectors are stored with norm 1 (D9)
    Metric.DOT: "ip_ops",
    Metric.EUCLIDEAN: "l2_ops",
}


MAX_HALF_NORM: Final = 65_000
"""Vectors shorter than this fit 16-bit floats, which end at 65,504."""


class Place(NamedTuple):
    """A collection as the database has it.

    Attributes:
        info: What it records about itself.
        indexed: Whether it has an approximate index.
        half: Whether that index holds 16-bit floats.
        table: The number that the database gave to its table.
        vector: The number that the database gave to pgvector's type.
    """

    info: CollectionInfo
    indexed: bool
    half: bool
    table: int
    vector: int

    @property
    def ann(self) -> bool:
        """Whether searches may be approximate."""
        return self.indexed


class IndexPlan(NamedTuple):
    """The index that a new collection gets: None for exact searches alone."""

    m: int
    ef_construction: int


def check_server() -> Script[str]:
    """Refuse a database that cannot keep the contract; return the version of the server.

    Raises:
        ConfigurationError: Not UTF-8, or no pgvector of a version that is recent enough.
    """
    query = sql.SQL(
        "SELECT current_setting('server_encoding'), current_setting('server_version'),"
        " coalesce((SELECT extversion FROM pg_extension WHERE extname = 'vector'),"
        " (SELECT default_version FROM pg_available_extensions WHERE name = 'vector'))"
    )
    [(encoding, version, vector)] = yield Statement(query)
    if encoding != "UTF8":
        msg = f"the database is encoded in {encoding}, which does not sort by code point"
        raise ConfigurationError(msg, hint="use a database made with ENCODING 'UTF8'")
    if vector is None:
        msg = "the server has no extension pgvector"
        raise ConfigurationError(msg, hint="install pgvector on the server, or use an image that has it")
    if tuple(int(part) for part in vector.split(".")[:2]) < _LEAST_PGVECTOR:
        msg = f"pgvector {vector} is too old"
        raise ConfigurationError(msg, hint="ALTER EXTENSION vector UPDATE, to 0.8 at least")
    return str(version)


def _registered(names: Names) -> Script[tuple[bool, int | None]]:
    """Return whether there is a registry, and the number of the collection's table, if something has its name."""
    query = sql.SQL("SELECT to_regclass(%s) IS NOT NULL, to_regclass(%s)::oid::bigint")
    quoted = [names.registry.text, names.table.text]
    [(registry, table)] = yield Statement(query, quoted)
    return registry, table


def until_settled() -> Statement:
    """Return the statement that waits for whoever makes or drops tables of this library."""
    return Statement(sql.SQL("SELECT pg_advisory_xact_lock_shared(%s::bigint)"), (LOCK,))


def _looked_up(names: Names, collection: str) -> Script[tuple[int | None, Rows]]:
    """Return the number of a collection's table, and its row of the registry; each may be missing."""
    registry, table = yield from _registered(names)
    if not registry:
        return table, []
    query = sql.SQL(
        "SELECT layout, metric, dimension, model, index,"
        " to_regtype('vector')::oid::bigint FROM {} WHERE name = %s"
    ).format(names.registry)
    return table, (yield Statement(query, (collection,)))


def describe(names: Names, schema: str, collection: str) -> Script[Place | None]:
    """Return a collection, or None if there is none.

    Raises:
        CollectionMismatchError: A table of its name is not this library's, or its layout is newer.
    """
    table, rows = yield from _looked_up(names, collection)
    for _ in range(LOOKS):
        if bool(rows) is (table is not None):
            break
        # It may have been made or dropped between the two looks: again, once nobody is at it.
        yield until_settled()
        table, rows = yield from _looked_up(names, collection)
    if not rows:
        if table is not None:
            raise _foreign(names, schema, collection)
        return None
    layout, metric, dimension, model, index, vector = rows[0]
    if layout != LAYOUT_VERSION:
        msg = f"collection {collection!r} has layout {layout}, this version reads layout {LAYOUT_VERSION}"
        raise CollectionMismatchError(
            msg, hint="use the version of entrepot-postgres that made it, or a newer one"
        )
    if table is None:
        msg = f"the registry lists collection {collection!r}, and its table {names.relation!r} is not there"
        raise CollectionMismatchError(msg, hint="drop_collection() removes what is left of it")
    if vector is None:
        raise _hidden()
    info = CollectionInfo(
        name=collection, dimension=dimension, metric=Metric(metric), model=model, layout=layout
    )
    half = index == "hnsw_halfvec"
    return Place(info, indexed=half or index == "hnsw", half=half, table=table, vector=vector)


def create(names: Names, schema: str, info: CollectionInfo, plan: IndexPlan | None) -> Script[Place]:
    """Make a collection, unless it is there; return it.

    Raises:
        CollectionMismatchError: It is there by now with another metric or dimension, or something else
            has its name.
        ConfigurationError: The index does not take so many dimensions.
    """
    if plan is not None and info.dimension > MAX_HALF:
        msg = f"vectors of {info.dimension} components; pgvector's index takes {MAX_HALF} at most"
        raise ConfigurationError(
            msg, hint="index='none' makes a collection whose searches all compare every vector"
        )
    yield Statement(sql.SQL("SELECT pg_advisory_xact_lock(%s::bigint)"), (LOCK,))
    yield from _prepare(names)
    known = yield from describe(names, schema, info.name)
    if known is None:
        for query in _tables(names, info, plan):
            yield Statement(query)
        index = "none" if plan is None else "hnsw_halfvec" if info.dimension > MAX_INDEXED else "hnsw"
        query = sql.SQL(
            "INSERT INTO {} (name, relation, layout, metric, dimension, model, index)"
            " VALUES (%s, %s, %s, %s, %s, %s, %s)"
        ).format(names.registry)
        row = (info.name, names.relation, info.layout, str(info.metric), info.dimension, info.model, index)
        yield Statement(query, row)
        known = yield from describe(names, schema, info.name)
    if known is None or (known.info.metric, known.info.dimension) != (info.metric, info.dimension):
        msg = f"collection {info.name!r} was made at the same time with another metric or dimension"
        raise CollectionMismatchError(msg, hint="open the store again")
    return known


def _prepare(names: Names) -> Script[None]:
    """Make what all collections of a schema share, where it is not there; each thing may need a privilege."""
    query = sql.SQL("SELECT to_regnamespace(%s) IS NULL, to_regtype('vector') IS NULL")
    [(no_schema, no_type)] = yield Statement(query, (names.schema.text,))
    if no_schema:
        yield Statement(sql.SQL("CREATE SCHEMA {}").format(names.schema))
    if no_type:
        yield Statement(sql.SQL("CREATE EXTENSION IF NOT EXISTS vector"))
        [(hidden,)] = yield Statement(sql.SQL("SELECT to_regtype('vector') IS NULL"))
        if hidden:
            raise _hidden()
    registry, _ = yield from _registered(names)
    if not registry:
        yield Statement(
            sql.SQL(
                'CREATE TABLE {} (name text COLLATE "C" PRIMARY KEY, relation text NOT NULL UNIQUE,'
                " layout integer NOT NULL, metric text NOT NULL, dimension integer NOT NULL, model text,"
                " index text NOT NULL)"
            ).format(names.registry)
        )


def _tables(names: Names, info: CollectionInfo, plan: IndexPlan | None) -> list[sql.Composed]:
    dimension = sql.Literal(int(info.dimension))
    statements = [
        sql.SQL(
            'CREATE TABLE {} (id text COLLATE "C" NOT NULL CONSTRAINT {} PRIMARY KEY, text text,'
            " metadata text NOT NULL, terms jsonb NOT NULL, words tsvector NOT NULL,"
            " embedding vector({}) NOT NULL)"
        ).format(names.table, names.key, dimension),
        sql.SQL("CREATE INDEX {} ON {} USING gin (terms jsonb_path_ops)").format(names.by_terms, names.table),
        sql.SQL("CREATE INDEX {} ON {} USING gin (words)").format(names.by_words, names.table),
    ]
    if plan is not None:
        half = info.dimension > MAX_INDEXED
        operators = f"{'halfvec' if half else 'vector'}_{_OPERATOR_CLASSES[info.metric]}"
        statements.append(
            sql.SQL("CREATE INDEX {} ON {} USING hnsw (({}) {}) WITH (m = {}, ef_construction = {})").format(
                names.by_vector,
                names.table,
                half_of(sql.SQL("embedding"), info) if half else sql.SQL("embedding"),
                sql.Identifier(operators),
                sql.Literal(plan.m),
                sql.Literal(plan.ef_construction),
            )
        )
    return statements


def half_of(vector: sql.SQL, info: CollectionInfo) -> sql.Composed:
    """Return a vector in 16-bit floats, as an index above 2,000 dimensions holds it.

    A component beyond `MAX_HALF_NORM` has none, so a vector that long, which under cosine and dot there is
    not, is left out of the index as NULL.
    """
    if info.metric is not Metric.EUCLIDEAN:
        return sql.SQL("{}::halfvec({})").format(vector, sql.Literal(info.dimension))
    return sql.SQL("(CASE WHEN vector_norm({0}) < {1} THEN {0}::halfvec({2}) END)::halfvec({2})").format(
        vector, sql.Literal(MAX_HALF_NORM), sql.Literal(info.dimension)
    )


def drop(names: Names, schema: str, collection: str) -> Script[None]:
    """Remove a collection; a missing one is no error.

    Raises:
        CollectionMismatchError: The table of its name is not this library's.
    """
    yield Statement(sql.SQL("SELECT pg_advisory_xact_lock(%s::bigint)"), (LOCK,))
    registry, table = yield from _registered(names)
    gone: Rows = []
    if registry:
        query = sql.SQL("DELETE FROM {} WHERE name = %s RETURNING name").format(names.registry)
        gone = yield Statement(query, (collection,))
    if not gone:
        if table is not None:
            raise _foreign(names, schema, collection)
        return
    yield Statement(sql.SQL("DROP TABLE IF EXISTS {}").format(names.table))


def list_collections(names: Names) -> Script[list[str]]:
    """Return the names of the collections of the schema, sorted by code point."""
    registry, _ = yield from _registered(names)
    if not registry:
        return []
    rows = yield Statement(sql.SQL("SELECT name FROM {} ORDER BY name").format(names.registry))
    return [row[0] for row in rows]


def details(table: Name, *, indexed: bool) -> Script[dict[str, object]]:
    """Return the bytes of a table and of all its indexes, and what kind of index searches use."""
    query = sql.SQL("SELECT pg_table_size(%s::regclass), pg_indexes_size(%s::regclass)")
    [(rows, indexes)] = yield Statement(query, (table.text, table.text))
    return {"table_bytes": rows, "index_bytes": indexes, "index": "hnsw" if indexed else "none"}


def _hidden() -> BackendError:
    msg = "the type vector is not on the search path of the connection"
    return BackendError(msg, hint="put the schema of the extension into the role's search_path")


def _foreign(names: Names, schema: str, collection: str) -> CollectionMismatchError:
    msg = f"the table {names.relation!r} of schema {schema!r} was not made by this library"
    hint = f"choose another name than {collection!r} for the collection, or another schema"
    return CollectionMismatchError(msg, hint=hint)
