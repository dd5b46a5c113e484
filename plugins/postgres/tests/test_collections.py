"""Collections, the registry, and tables of others: D5, T, F10."""

from __future__ import annotations

import threading
from functools import partial
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from psycopg import sql

import entrepot as ep
from entrepot import Document
from entrepot.errors import CollectionMismatchError, CollectionNotFoundError, EntrepotError
from entrepot_postgres.catalog import describe
from entrepot_postgres.memory_tables import is_ready
from entrepot_postgres.names import memory_names_of, names_of, relation_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from plugins.postgres.tests.servers import Make

    Admin = psycopg.Connection[Any]


def at_once(count: int, job: Callable[[int], None]) -> list[BaseException]:
    """Run a job in threads that start together; return what they raised."""
    errors: list[BaseException] = []
    start = threading.Barrier(count)

    def run(number: int) -> None:
        start.wait()
        try:
            job(number)
        except BaseException as error:  # noqa: BLE001 - handed to the test
            errors.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return errors


def test_many_make_one_collection_at_once(make: Make) -> None:
    # D5: the schema, the registry and the table are made once
    stores = [make(dimension=2, pool_size=1) for _ in range(8)]

    def job(number: int) -> None:
        stores[number].add([Document(None, id=str(number), vector=[1.0, number])])

    assert at_once(8, job) == []
    assert stores[0].count() == 8
    assert stores[0].list_collections() == ["default"]


def test_of_two_that_disagree_one_is_refused(make: Make) -> None:
    # D5
    stores = [make(dimension=2 + number % 2, pool_size=1) for number in range(6)]

    def job(number: int) -> None:
        size = 2 + number % 2
        stores[number].add([Document(None, id=str(number), vector=[1.0] * size)])

    errors = at_once(6, job)
    assert len(errors) == 3
    assert all(isinstance(error, CollectionMismatchError) for error in errors)
    assert make().count() == 3


def test_making_and_dropping_at_once(make: Make) -> None:
    # D5, E1: every outcome is an error of the tree or none
    stores = [make(dimension=2, pool_size=1) for _ in range(6)]

    def job(number: int) -> None:
        for _ in range(5):
            try:
                if number % 2:
                    stores[number].drop_collection()
                else:
                    stores[number].add([Document(None, id=str(number), vector=[1.0, 1.0])])
            except CollectionNotFoundError:
                pass
            except EntrepotError as error:
                if not (error.retryable or isinstance(error, CollectionMismatchError)):
                    raise

    assert at_once(6, job) == []


def test_a_table_of_others_is_left_alone(make: Make, admin: Admin, schema: str) -> None:
    # D5
    table = sql.Identifier(schema, "articles")
    admin.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(schema)))
    admin.execute(sql.SQL("CREATE TABLE {} (id text, content text)").format(table))
    admin.execute(sql.SQL("INSERT INTO {} VALUES ('1', 'theirs')").format(table))
    for prepared in (False, True):
        store = make(collection="articles", dimension=2)
        calls: list[Callable[[], object]] = [
            store.count,
            store.create_collection,
            partial(store.add, [Document(None, vector=[1.0, 2.0])]),
            store.drop_collection,
        ]
        for call in calls:
            with pytest.raises(CollectionMismatchError, match="not made by this library"):
                call()
        if not prepared:
            make(collection="other", dimension=2).create_collection()  # now there is a registry
    assert admin.execute(sql.SQL("SELECT content FROM {}").format(table)).fetchall() == [("theirs",)]


def test_a_newer_layout_is_refused(make: Make, admin: Admin, schema: str) -> None:
    # D5
    make(dimension=2).create_collection()
    admin.execute(sql.SQL("UPDATE {} SET layout = 99").format(sql.Identifier(schema, "entrepot_collections")))
    with pytest.raises(CollectionMismatchError, match="layout 99"):
        make().count()


def test_a_table_that_is_gone_is_told_and_can_be_cleared(make: Make, admin: Admin, schema: str) -> None:
    # D5
    store = make(dimension=2)
    store.create_collection()
    admin.execute(sql.SQL("DROP TABLE {}").format(sql.Identifier(schema, "default")))
    with pytest.raises(CollectionNotFoundError):
        store.count()
    with pytest.raises(CollectionMismatchError, match="is not there"):
        make().count()
    make().drop_collection()
    store.add([Document(None, id="1", vector=[1.0, 1.0])])
    assert store.count() == 1


def test_collections_are_those_of_a_schema(make: Make, schema: str) -> None:
    # D5
    make(dimension=2, collection="b").create_collection()
    make(dimension=2, collection="Z").create_collection()
    make(dimension=2, collection="ä").create_collection()
    assert make().list_collections() == ["Z", "b", "ä"]
    assert make(schema=f"{schema}_none").list_collections() == []
    with pytest.raises(CollectionNotFoundError):
        make(schema=f"{schema}_none").count()


def test_a_url_opens_what_a_url_made(server: str, schema: str) -> None:
    # D5, S7
    url = f"{server}/articles?schema={schema}"
    with ep.open_vector_store(f"{url}&metric=euclidean&index=none") as store:
        store.add([Document("a", id="1", vector=[1.0, 2.0])])
    with ep.open_vector_store(url.replace("postgres://", "postgresql://", 1)) as store:
        stats = store.stats()
        assert (stats.backend, stats.count, stats.metric, stats.details["index"]) == (
            "postgresql",
            1,
            "euclidean",
            "none",
        )
        assert stats.details["table_bytes"] > 0


ODD = [
    "'", '"', "`", "\\", "\\'", "''", '""', ";", "--", "/*", "*/", "%", "%s", "%%", "%(a)s", "$1", "$$", "$a$", ":a", "?",
    "{}", "{0}", "[", "]", "()", "<>", "=", "\n", "\r", "\t", "\x01", "\x08", "\x1b", "\x7f", "\x85", "\u2028", "\u202e",
    "\u0130", "\ufeff", "\uffff", "\U0001f600", "é", "e\u0301", "ß", " ", " a", "a ", "null", "NULL", "true", "1", "1.0",
    "-1", "1e5", "0x1", "NaN", "Infinity", "now()", "current_user", "select 1", "'; DROP TABLE articles; --",
    '"; DROP TABLE articles; --', "' OR '1'='1", "') OR true --", "\\'; DELETE FROM docs; --", "$$; DROP SCHEMA public; $$",
    '{"$gt": 1}', '{"a":1}', '["a"]', "$.a", "$.* ? (@ > 0)", '" ? (true)', '"] || true', "@>", "a.b", "a->b", "a->>b",
    "pg_sleep(9)", "\\x41", "E'\\x41'", "U&'\\0041'", "\\N", "\\.", "COPY", "%(x)", "%b", "{a,b}", "(1,2)", "[1,2]", "::text",
    "public.docs", "entrepot_collections", "x" * 512, "\U0001f600" * 512, "a\u0300" * 200, "'" * 300, '"' * 300, "\\" * 300,
    "<script>", "../../etc/passwd", "%00", "\\u0000", "&amp;", "|", "&", "!", "'a' | 'b'", "a:*", "<->", "datetime", "\u00a0",
]  # fmt: skip


def test_odd_strings_have_no_effect_but_to_be_stored(make: Make, admin: Admin, schema: str) -> None:
    # F10, D1, D3, D4: ids, keys, values, texts, words, tokens
    assert len(set(ODD)) >= 100
    tables = "SELECT count(*) FROM pg_tables WHERE schemaname IN (%s, 'pg_catalog')"
    store = make(dimension=2, index="none")
    store.create_collection()
    before = admin.execute(tables, (schema,)).fetchone()
    store.add(
        [
            Document(text, id=text, metadata={text: text, "list": [text, "x"]}, vector=[1.0, 2.0])
            for text in ODD
        ]
    )
    assert store.count() == len(ODD)
    read = {document.id: document for document in store.get(ODD)}
    for text in ODD:
        document = read[text]
        expected = {"list": [text, "x"], text: text} if text != "list" else {}
        assert document.text == text
        assert document.metadata == expected
        for found in (
            ep.F[text] == text,
            ep.F.list == text,
            ep.F[text].in_([text, 1]),
            ep.F[text].is_not_null(),
        ):
            assert [hit.id for hit in store.scan(found, include=[])] == [text]
        assert [hit.id for hit in store.scan((ep.F[text] >= text) & (ep.F[text] <= text), include=[])] == [
            text
        ]
        store.similarity_search(text, mode="fulltext", top_k=3)
    assert sorted(document.id for document in store.scan(batch_size=7)) == sorted(ODD)
    assert store.update(ODD[:50], set={"'": '"'}, unset=ODD[50:]) == ODD[:50]
    store.delete(ODD[:100])
    assert sorted(document.id for document in store.scan()) == sorted(ODD[100:])
    assert admin.execute(tables, (schema,)).fetchone() == before


def test_odd_names_of_collections_are_names(make: Make, admin: Admin, schema: str) -> None:
    # F10, D5
    names = [text for text in ODD if len(text) <= 512]
    assert len({relation_of(name) for name in names}) == len(names)
    store = make(dimension=2, index="none")
    for name in names[::8]:
        with make(collection=name, dimension=2, index="none") as other:
            other.add([Document(name, id="1", vector=[1.0, 2.0])])
            assert [document.text for document in other.scan()] == [name]
    assert store.list_collections() == sorted(names[::8])
    rows = admin.execute("SELECT count(*) FROM pg_tables WHERE schemaname = %s", (schema,)).fetchone()
    assert rows == (len(names[::8]) + 1,)
    for name in names[::8]:
        with make(collection=name) as other:
            other.drop_collection()
    assert store.list_collections() == []


def test_odd_names_of_schemas_are_names(make: Make, admin: Admin, schema: str) -> None:
    # F10
    name = f'{schema[:40]}"; --'
    try:
        store = make(schema=name, dimension=2)
        store.add([Document("a", id="1", vector=[1.0, 2.0])])
        assert store.count() == 1
        assert make(schema=name).list_collections() == ["default"]
        assert store.stats().details["index"] == "hnsw"
    finally:
        admin.execute(sql.SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(sql.Identifier(name)))


def played(script: Any, answers: list[Any]) -> Any:
    """Carry out a script on answers that are given, all of which it must ask for."""
    next(script)
    for answer in answers[:-1]:
        script.send(answer)
    with pytest.raises(StopIteration) as end:
        script.send(answers[-1])
    return end.value.value


ROW = (1, "cosine", 2, None, "hnsw", 77)


@pytest.mark.parametrize(
    ("first", "then"),
    [
        ([[(True, None)], [ROW]], [[(True, 5)], [ROW]]),  # made between the two looks
        ([[(True, 5)], []], [[(True, None)], []]),  # dropped between them
        ([[(True, 5)], []], [[(True, 6)], [ROW]]),  # dropped and made anew
        ([[(False, 5)]], [[(True, 5)], [ROW]]),
    ],
)
def test_a_collection_in_the_making_is_looked_at_again(first: Any, then: Any) -> None:
    # D5, E2: a moment between two statements is no fault of the tables
    place = played(describe(names_of("s", "c"), "s", "c"), [*first, [(None,)], *then])
    table = then[0][0][1]
    assert (None if place is None else place.table) == table


def test_a_memory_in_the_making_is_looked_at_again() -> None:
    # E2
    names = memory_names_of("s", "c")
    first: list[Any] = [[("UTF8", True, False, False)], [(1,)]]
    then: list[Any] = [[("UTF8", True, True, True)], [(1,)]]
    assert played(is_ready(names, "c"), [*first, [(None,)], *then]) is True
