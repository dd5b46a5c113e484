"""Tables of other software, read by a mapping: D5, D7, D9, S1 to S5, S8, T1."""

from __future__ import annotations

import asyncio
import threading
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from plugins.postgres.tests import layouts
from plugins.postgres.tests.servers import target
from psycopg import sql
from psycopg_pool import ConnectionPool

import entrepot as ep
from entrepot import Document, F, SearchRequest
from entrepot.errors import (
    CollectionMismatchError,
    CollectionNotFoundError,
    ConfigurationError,
    RequestError,
    UnknownOptionError,
    UnsupportedError,
    UnsupportedSearchModeError,
)
from entrepot.filters import evaluate
from entrepot_postgres import MappedPostgresVectorStore, columns, mapped_reading

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from plugins.postgres.tests.layouts import Layout, Row

Admin = Any
LAYOUTS: dict[str, Any] = {
    "langchain": layouts.langchain,
    "langchain columns": layouts.langchain_columns,
    "spring": layouts.spring,
}


@pytest.fixture
def mapped(server: str, schema: str) -> Iterator[Callable[..., MappedPostgresVectorStore]]:
    opened: list[MappedPostgresVectorStore] = []

    def mapped(layout: Layout, **options: Any) -> MappedPostgresVectorStore:
        given: dict[str, Any] = {**target(server), "schema": schema, "collection": layout.table, **options}
        store = MappedPostgresVectorStore(mapping=layout.mapping, **given)
        opened.append(store)
        return store.connect()

    yield mapped
    for store in opened:
        store.close()


def cosine_scores(rows: list[Row], query: list[float]) -> dict[str, float]:
    """Return S2's score of each document, in float64."""
    vectors = np.array([row.vector for row in rows], dtype=np.float64)
    asked = np.array(query, dtype=np.float64)
    cosines = vectors @ asked / np.linalg.norm(vectors, axis=1) / np.linalg.norm(asked)
    return {row.id: (1 + cosine) / 2 for row, cosine in zip(rows, cosines, strict=True)}


def ranked(scores: dict[str, float]) -> list[str]:
    return sorted(scores, key=lambda name: (-round(scores[name], 6), name))


# --- the three layouts ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", LAYOUTS)
def test_everything_that_reads(mapped: Any, admin: Admin, schema: str, kind: str) -> None:
    # D5, D7, D9, F9, S1 to S5, S8
    rows = layouts.rows_of(60)
    store = mapped(LAYOUTS[kind](admin, schema, rows))
    metadata = {row.id: row.metadata for row in rows}
    query = [1.0, -2.0, 0.5, 0.0, 3.0, 1.0, -1.0, 0.25]
    assert store.collection_exists()
    assert store.count() == 60
    assert store.stats().dimension == layouts.DIMENSION

    ids = [rows[7].id, "unknown", rows[3].id]
    got = store.get(ids, include=["text", "metadata", "vector"])
    assert [document.id for document in got] == [rows[7].id, rows[3].id]
    assert [document.text for document in got] == ["text 7", "text 3"]
    assert [document.metadata for document in got] == [rows[7].metadata, rows[3].metadata]
    norm = np.linalg.norm(np.array(rows[7].vector))
    assert np.allclose(np.asarray(got[0].vector), np.array(rows[7].vector) / norm, atol=1e-6)

    pages = list(store.scan(batch_size=7))
    assert sorted(document.id for document in pages) == sorted(metadata)
    assert {document.id: document.metadata for document in pages} == metadata

    filters = (
        None,
        F.source == "file1.md",
        F.source.in_(["file1.md", "file2.md", 5]) & (F.page < 3),
        (F.score >= 3.25) & ~(F.draft == True),  # noqa: E712 - a filter
        (F.tags == "t3") | F.rare.is_not_null(),
        F.rare.is_null() & (F.page != 2),
        F.page == 100,
        F.page == 2.0,
    )
    for given in filters:
        expected = {name for name, value in metadata.items() if given is None or evaluate(given, value)}
        scores = {name: score for name, score in cosine_scores(rows, query).items() if name in expected}
        assert store.count(given) == len(expected)
        assert {document.id for document in store.scan(given, batch_size=11)} == expected
        for exact in (False, True):
            hits = store.similarity_search(SearchRequest(vector=query, top_k=10, filter=given, exact=exact))
            assert [hit.id for hit in hits] == ranked(scores)[:10]
            for hit in hits:
                assert hit.score == pytest.approx(scores[hit.id], abs=1e-4)
                assert hit.metadata == metadata[hit.id]

    near = store.similarity_search(SearchRequest(near_id=rows[0].id, top_k=1))
    assert [hit.id for hit in near] == [rows[1].id]
    assert near[0].score == pytest.approx(1.0, abs=1e-4)
    some = [rows[2].id, rows[9].id, "none"]
    assert {hit.id for hit in store.similarity_search(SearchRequest(vector=query, ids=some))} == set(some[:2])
    assert len(store.similarity_search(SearchRequest(vector=query, top_k=10_000))) == 60
    assert store.explain(F.page > 1).exact

    view = store.where(F.source == "file1.md")
    assert view.count() == 12
    assert view.get([rows[2].id]) == []


@pytest.mark.parametrize("kind", LAYOUTS)
async def test_the_async_twins(mapped: Any, admin: Admin, schema: str, kind: str) -> None:
    # E3
    rows = layouts.rows_of(20)
    store = mapped(LAYOUTS[kind](admin, schema, rows))
    query = SearchRequest(vector=[1.0] * 8, filter=F.page < 4)
    assert await store.acount(F.page < 4) == store.count(F.page < 4)
    assert await store.asimilarity_search(query) == store.similarity_search(query)
    assert await store.aget([rows[0].id]) == store.get([rows[0].id])
    assert [document async for document in store.ascan(batch_size=6)] == list(store.scan(batch_size=6))


async def test_many_rows_are_decoded_beside_the_event_loop(
    mapped: Any, admin: Admin, schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # E3
    store = mapped(layouts.spring(admin, schema, layouts.rows_of(600)))
    threads: set[int] = set()
    decode = columns.metadata_of_json

    def noted(text: str) -> Any:
        threads.add(threading.get_ident())
        return decode(text)

    monkeypatch.setattr(mapped_reading, "metadata_of_json", noted)
    calls: list[tuple[Callable[[], Awaitable[object]], bool]] = [
        (lambda: store.asimilarity_search(SearchRequest(vector=[1.0] * 8, top_k=600)), True),
        (lambda: store.aget([row.id for row in layouts.rows_of(600)]), True),
        (lambda: store.aget([row.id for row in layouts.rows_of(5)]), False),
    ]
    for call, many in calls:
        threads.clear()
        await call()
        assert threads
        assert (threading.get_ident() not in threads) is many


def writes(store: ep.VectorStore, name: str) -> list[Callable[[], object]]:
    """Return every operation that would change something."""
    return [
        lambda: store.add([Document("text", id=name)]),
        lambda: asyncio.run(store.aadd([Document("text")])),
        lambda: store.update([name], set={"page": 1}),
        lambda: store.delete([name]),
        lambda: store.delete(filter=F.page == 1),
        store.delete_all,
        store.create_collection,
        store.drop_collection,
    ]


@pytest.mark.parametrize("kind", LAYOUTS)
def test_nothing_is_ever_written(mapped: Any, admin: Admin, schema: str, kind: str) -> None:
    # D5: refused before any I/O and before anything is embedded
    layout = LAYOUTS[kind](admin, schema, layouts.rows_of(5))

    class Model:
        name = "none"
        dimensions = 8

        def embed(self, texts: Any) -> Any:
            raise AssertionError(texts)

    store = mapped(layout, embedding=Model())
    content = sql.SQL("SELECT t::text FROM {} AS t ORDER BY 1").format(sql.Identifier(schema, layout.table))
    before = admin.execute(content).fetchall()
    name = layouts.rows_of(5)[0].id
    for writer in (store, store.where(F.page == 0)):
        for call in writes(writer, name):
            with pytest.raises(UnsupportedError) as caught:
                call()
            assert caught.value.capability in ("write", "view")
    assert admin.execute(content).fetchall() == before
    assert store.list_collections() == []


def test_words_are_declined(mapped: Any, admin: Admin, schema: str) -> None:
    # S9: the table holds no words as the contract has them
    store = mapped(layouts.spring(admin, schema, layouts.rows_of(5)))
    for mode in ("fulltext", "hybrid"):
        with pytest.raises(UnsupportedSearchModeError):
            store.similarity_search("text", mode=mode)


@pytest.mark.parametrize("metric", ["cosine", "dot", "euclidean"])
def test_metrics(mapped: Any, admin: Admin, schema: str, metric: str) -> None:
    # S1, S2: the index that there is serves the cosine alone
    rows = layouts.rows_of(40)
    unit = [row._replace(vector=[x / float(np.linalg.norm(row.vector)) for x in row.vector]) for row in rows]
    store = mapped(layouts.spring(admin, schema, unit), metric=metric)
    query = unit[5].vector
    vectors, asked = np.array([row.vector for row in unit]), np.array(query)
    found = {
        "cosine": (1 + vectors @ asked) / 2,
        "dot": (1 + vectors @ asked) / 2,
        "euclidean": 1 / (1 + ((vectors - asked) ** 2).sum(axis=1)),
    }[metric]
    scores = {row.id: float(score) for row, score in zip(unit, found, strict=True)}
    hits = store.similarity_search(SearchRequest(vector=query, top_k=40))
    assert [hit.id for hit in hits] == ranked(scores)
    assert [hit.score for hit in hits] == pytest.approx([scores[hit.id] for hit in hits], abs=1e-4)
    assert store.capabilities.ann is (metric == "cosine")


def test_the_index_is_used_and_completed(mapped: Any, admin: Admin, schema: str) -> None:
    # S4, S6: 3,000 rows, a filter that one row matches
    rows = layouts.rows_of(3000)
    rows[77].metadata["rare"] = "one"
    layout = layouts.spring(admin, schema, rows)
    admin.execute(sql.SQL("ANALYZE {}").format(sql.Identifier(schema, layout.table)))
    store = mapped(layout)
    query = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]
    best = ranked(cosine_scores(rows, query))[:10]
    found = [hit.id for hit in store.similarity_search(SearchRequest(vector=query, top_k=10))]
    assert len(set(found) & set(best)) >= 9
    only = store.similarity_search(SearchRequest(vector=query, top_k=10, filter=F.rare == "one"))
    assert [hit.id for hit in only] == [rows[77].id]


def test_vectors_that_cannot_be_compared_are_not_found(mapped: Any, admin: Admin, schema: str) -> None:
    # S2, S4: NULL, zero, and another dimension; they count and scan as documents
    layout = layouts.langchain(admin, schema, layouts.rows_of(3))
    table = sql.Identifier(schema, layout.table)
    add = sql.SQL("INSERT INTO {} SELECT %s, collection_id, %s, NULL, NULL FROM {} WHERE cmetadata @> %s")
    for name, vector in (("null", None), ("zero", str([0] * 8)), ("short", "[1,2]")):
        admin.execute(add.format(table, table), (name, vector, '{"page": 1}'))
    store = mapped(layout, dimension=8)
    assert store.count() == 6
    assert len(list(store.scan())) == 6
    hits = store.similarity_search(SearchRequest(vector=[1.0] * 8, top_k=10))
    assert {hit.id for hit in hits} == {row.id for row in layouts.rows_of(3)}
    assert store.get(["null"], include=["text", "vector", "metadata"])[0].metadata == {}


# --- what a mapping may say -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mapping", "kind", "told"),
    [
        ("id", ConfigurationError, "dict"),
        ({"ident": "id"}, UnknownOptionError, "id"),
        ({"id": None}, ConfigurationError, "str"),
        ({"id": ""}, ConfigurationError, "empty"),
        ({"id": "x" * 64}, ConfigurationError, "63 bytes"),
        ({"columns": "source"}, ConfigurationError, "columns"),
        ({"columns": {"": "source"}}, ConfigurationError, "metadata key"),
        ({"only": {"content": 1.5}}, ConfigurationError, "only"),
        ({"only": {"id": "no uuid"}}, ConfigurationError, "cannot hold"),
        ({"text": "nowhere"}, CollectionMismatchError, "no column 'nowhere'"),
        ({"text": "metadata"}, CollectionMismatchError, "text or varchar"),
        ({"metadata": "content"}, CollectionMismatchError, "json or jsonb"),
        ({"vector": "content"}, CollectionMismatchError, "vector or halfvec"),
        ({"columns": ["metadata"]}, CollectionMismatchError, "has type json"),
        ({"id": "embedding"}, CollectionMismatchError, "uuid"),
    ],
    ids=repr,
)
def test_mappings_that_cannot_be(  # noqa: PLR0913, PLR0917 - what is tried
    mapped: Any, schema: str, mapping: Any, kind: type[Exception], told: str, admin: Admin
) -> None:
    # E1, D5
    layout = layouts.spring(admin, schema, [])
    with pytest.raises(kind, match=told) as caught:
        mapped(layout._replace(mapping=mapping)).count()
    assert "hint" in str(caught.value)


def test_opened_by_url(server: str, admin: Admin, schema: str) -> None:
    # D5, E2: with a mapping the name is the table's, letter by letter; without one it is refused as foreign
    layouts.spring(admin, schema, layouts.rows_of(4))
    url = f"{server}/vector_store"
    with pytest.raises(CollectionMismatchError), ep.open_vector_store(url, schema=schema) as store:
        store.count()
    mapping = {"text": "content", "metadata": "metadata"}
    with ep.open_vector_store(url, schema=schema, mapping=mapping) as store:
        assert store.count() == 4
        with pytest.raises(RequestError, match="token"):
            list(store.scan(token="eA=="))
    with ep.open_vector_store(f"{server}/Vector_store", schema=schema, mapping=mapping) as store:
        assert not store.collection_exists()
        with pytest.raises(CollectionNotFoundError):
            store.count()
    with pytest.raises(ConfigurationError, match="63 bytes"):
        ep.open_vector_store(f"{server}/{'x' * 64}", schema=schema, mapping=mapping)


def test_views_and_odd_names_are_tables_too(mapped: Any, admin: Admin, schema: str) -> None:
    # D5, F10
    layouts.spring(admin, schema, layouts.rows_of(6))
    names = ['a"b', "%s", "{0}", "x' OR true --"]
    columns = sql.SQL(", ").join(
        sql.SQL("{} AS {}").format(sql.Identifier(old), sql.Identifier(new))
        for old, new in zip(["id", "content", "metadata", "embedding"], names, strict=True)
    )
    view = 'odd %s "view" {}'
    create = sql.SQL("CREATE VIEW {} AS SELECT {}, 'x' AS {} FROM {} WHERE content <> 'text 3'")
    admin.execute(
        create.format(
            sql.Identifier(schema, view),
            columns,
            sql.Identifier("%b"),
            sql.Identifier(schema, "vector_store"),
        )
    )
    mapping = dict(zip(["id", "text", "metadata", "vector"], names, strict=True))
    store = mapped(layouts.Layout(view, {**mapping, "columns": {"k": "%b"}, "only": {"%b": "x"}}))
    assert store.count() == 5
    assert store.count((F.k == "x") & (F.page >= 1)) == 4
    assert store.count(F.k >= "y") == 0
    hits = store.similarity_search(SearchRequest(vector=[1.0] * 8, top_k=9, filter=F.source.is_not_null()))
    assert len(hits) == 5
    assert hits[0].metadata["k"] == "x"
    assert store.stats().details["index"] == "none"


@pytest.mark.parametrize("kind", ["bigint", "varchar", "char(3)", "uuid"])
def test_kinds_of_ids(mapped: Any, admin: Admin, schema: str, kind: str) -> None:
    # D1, D7
    layouts.run(admin, schema, f"CREATE TABLE {{s}}.t (id {kind} PRIMARY KEY, embedding vector(2))")
    names = {
        "bigint": ["-5", "7", "10"],
        "varchar": ["A", "a ", "é"],
        "char(3)": ["A", "b", "c"],
        "uuid": [row.id for row in layouts.rows_of(3)],
    }[kind]
    for name in names:
        admin.execute(
            sql.SQL("INSERT INTO {} VALUES (%s, '[1,2]')").format(sql.Identifier(schema, "t")), (name,)
        )
    store = mapped(layouts.Layout("t", {}))
    assert sorted(document.id for document in store.scan(batch_size=1)) == sorted(names)
    asked = [*names, "07", "a", "x" * 512, "99999999999999999999", "ü", names[0].upper() + "?"]
    assert [document.id for document in store.get(asked)] == names
    hits = store.similarity_search(SearchRequest(vector=[1.0, 2.0], top_k=3))
    assert [hit.id for hit in hits] == sorted(names)


def test_ids_that_are_not_unique_are_refused(mapped: Any, admin: Admin, schema: str) -> None:
    # D1, D7: neither left out at the end of a page nor given twice
    layouts.run(admin, schema, "CREATE TABLE {s}.t (id text, embedding vector(2))")
    layouts.run(admin, schema, "INSERT INTO {s}.t SELECT n::text, '[1,2]' FROM generate_series(1, 6) AS n")
    store = mapped(layouts.Layout("t", {}))
    assert len(list(store.scan(batch_size=2))) == 6
    layouts.run(admin, schema, "INSERT INTO {s}.t VALUES ('2', '[2,1]')")
    for size in (1, 2, 3, 100):
        with pytest.raises(CollectionMismatchError, match="not unique"):
            list(store.scan(batch_size=size))
    with pytest.raises(CollectionMismatchError, match="not unique"):
        store.get(["1", "2"])
    with pytest.raises(CollectionMismatchError, match="not unique"):
        store.similarity_search(SearchRequest(vector=[1.0, 2.0], top_k=10))
    assert [document.id for document in store.get(["1"])] == ["1"]


def test_the_least_and_greatest_ids(mapped: Any, admin: Admin, schema: str) -> None:
    # D7
    layouts.run(admin, schema, "CREATE TABLE {s}.t (id bigint PRIMARY KEY, embedding vector(2))")
    names = [str(-(2**63)), str(1 - 2**63), "0", str(2**63 - 1)]
    for name in names:
        layouts.run(admin, schema, f"INSERT INTO {{s}}.t VALUES ({name}, '[1,2]')")
    store = mapped(layouts.Layout("t", {}))
    assert [document.id for document in store.scan(batch_size=1)] == names
    assert [document.id for document in store.get([*names, str(2**63), str(-(2**63) - 1)])] == names


def test_dot_refuses_vectors_whose_scores_would_be_none(mapped: Any, admin: Admin, schema: str) -> None:
    # S2, D9: a score is in [0, 1]
    layouts.run(admin, schema, "CREATE TABLE {s}.t (id text PRIMARY KEY, embedding vector(2))")
    layouts.run(admin, schema, "INSERT INTO {s}.t VALUES ('a', '[1,0]'), ('b', '[0,1]')")
    store = mapped(layouts.Layout("t", {}), metric="dot")
    assert [hit.score for hit in store.similarity_search(SearchRequest(vector=[1.0, 0.0]))] == [1.0, 0.5]
    layouts.run(admin, schema, "INSERT INTO {s}.t VALUES ('c', '[3,0]')")
    with pytest.raises(CollectionMismatchError, match="norm"):
        store.similarity_search(SearchRequest(vector=[1.0, 0.0]))


@pytest.mark.parametrize("zone", ["America/New_York", "Pacific/Kiritimati"])
def test_times_at_the_ends_in_any_zone(server: str, admin: Admin, schema: str, zone: str) -> None:
    # D3, D4: years 1 and 9999 are read whatever the connection's zone is
    layouts.run(
        admin,
        schema,
        "CREATE TABLE {s}.t (id text PRIMARY KEY, embedding vector(2), at timestamptz, many timestamptz[])",
    )
    layouts.run(
        admin,
        schema,
        "INSERT INTO {s}.t SELECT t, '[1,2]', t::timestamptz, ARRAY[t::timestamptz]"
        " FROM unnest(ARRAY['0001-01-01 00:00:00+00', '9999-12-31 23:59:59.999999+00']) AS t",
    )
    options = target(server)
    options["dbname"] = options.pop("database", None)
    with ConnectionPool(kwargs={**options, "options": f"-c TimeZone={zone}"}, min_size=1) as pool:
        store = MappedPostgresVectorStore(
            mapping={"columns": ["at", "many"]}, collection="t", schema=schema, client=pool
        ).connect()
        first, last = datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)
        assert [document.metadata for document in store.scan()] == [
            {"at": first, "many": [first]},
            {"at": last, "many": [last]},
        ]
        assert store.count(F.at == first) == store.count(F.many >= last) == 1
        with pool.connection() as connection:
            row = connection.execute("SHOW TimeZone").fetchone()
            assert row == (zone,)
        store.close()


@pytest.mark.parametrize("name", ["", "x" * 513])
def test_ids_that_no_document_can_have_are_refused(mapped: Any, admin: Admin, schema: str, name: str) -> None:
    # D1
    layouts.run(admin, schema, "CREATE TABLE {s}.t (id text PRIMARY KEY, embedding vector(2))")
    layouts.run(admin, schema, f"INSERT INTO {{s}}.t VALUES ('a', '[1,2]'), ('{name}', '[1,2]')")
    store = mapped(layouts.Layout("t", {}))
    for size in (1, 2):
        with pytest.raises(CollectionMismatchError, match="an id of the table"):
            list(store.scan(batch_size=size))
    assert [document.id for document in store.get(["a"])] == ["a"]
