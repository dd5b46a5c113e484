"""Hostile inputs wherever a caller gives a string: stored, found and named as they are, with no other effect (F10).

Beside them lie a table, a collection and a chat memory that must stay what they are, and no table, role or
function may come or go.
"""

from __future__ import annotations

from contextlib import suppress
from itertools import product
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest
from plugins.postgres.tests.servers import target
from psycopg import sql

import entrepot as ep
from entrepot import Document, EntrepotError, F, UserMessage
from entrepot_postgres import MappedPostgresVectorStore, PostgresChatMemoryRepository
from entrepot_postgres.names import memory_names_of, relation_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import psycopg
    from plugins.postgres.tests.servers import Make

BREAKERS = (
    "'",
    '"',
    "\\",
    "''",
    '""',
    "$$",
    "$1",
    "%s",
    "%(a)s",
    "%%",
    "{}",
    "{0}",
    "`",
    ")",
    "]",
    "}",
    "*/",
    "\n",
    "\x1f",
)
ACTS = (
    "; DROP TABLE canary; --",
    " OR 1=1 --",
    "); DELETE FROM canary; --",
    "; CREATE TABLE bad (x int); --",
    " UNION SELECT * FROM canary --",
    "; SELECT pg_sleep(5); --",
)
HOSTILE = [
    *(f"{breaker}{act}" for breaker, act in product(BREAKERS, ACTS)),
    '"] ? (true)', "$.*", "@ ? (@ == 1)", '{"$gt": 1}', "[*]", "' || 'x", "E'\\x41'", "::text", "NULL", "canary", "CANARY",
    "entrepot_collections", "entrepot_memories", "pg_catalog.pg_class", "public.canary", "x' & 'y", "a:*", "!a | b", "<->",
]  # fmt: skip
PARTS = 8
"""Tests that share the inputs between them, so that they run beside each other."""


@pytest.fixture
def canary(
    admin: psycopg.Connection[Any], make: Make, server: str, schema: str
) -> Iterator[Callable[[], Any]]:
    """Return what tells the state of everything that must stay."""
    store = make(collection="canary", dimension=2, index="none")
    store.add([Document("a bird", id="1", metadata={"k": "v"}, vector=[1.0, 2.0])])
    table = sql.Identifier(schema, "canary table")
    admin.execute(sql.SQL("CREATE TABLE {} AS SELECT 1 AS x").format(table))
    with ep.open_chat_memory(f"{server}/canary", schema=schema) as memory:
        memory.append("c", [UserMessage("tweet", id="1")])

        def state() -> Any:
            roles = admin.execute("SELECT rolname, rolsuper FROM pg_roles ORDER BY 1").fetchall()
            functions = admin.execute(
                "SELECT proname FROM pg_proc WHERE pronamespace = to_regnamespace(%s)", (schema,)
            ).fetchall()
            bad = admin.execute("SELECT count(*) FROM pg_class WHERE relname = 'bad'").fetchall()
            rows = admin.execute(sql.SQL("SELECT * FROM {}").format(table)).fetchall()
            return (
                list(store.scan()),
                rows,
                memory.messages("c"),
                memory.conversation_ids(),
                roles,
                functions,
                bad,
            )

        yield state


def part_of(number: int) -> list[str]:
    return HOSTILE[number::PARTS]


def test_there_are_enough() -> None:
    # each is an id, a key, a value, a text, a conversation id, a message id and a name of a collection at least
    assert len(set(HOSTILE)) == len(HOSTILE)
    assert len(HOSTILE) >= 130
    assert 7 * len(HOSTILE) >= 500


@pytest.mark.parametrize("number", range(PARTS))
def test_documents(make: Make, canary: Any, number: int) -> None:
    # F10, D1, D3, D4: ids, keys, values, texts, words, through views too
    hostile, before = part_of(number), canary()
    store = make(collection="attacked", dimension=2, index="none")
    store.add([Document(text, id=text, metadata={text: text}, vector=[1.0, 2.0]) for text in hostile])
    for text in hostile:
        key = F[text]
        matching: list[Any] = [
            key == text,
            key.in_([text, 1]),
            (key >= text) & (key <= text),
            key.is_not_null(),
        ]
        for given in matching:
            assert [document.id for document in store.scan(given)] == [text]
            assert store.count(~given) == len(hostile) - 1
        assert store.where(key == text).get(hostile) == store.get([text])
        assert store.get([text])[0].metadata == {text: text}
        store.similarity_search(text, mode="fulltext")
        assert store.update([text], set={f"{text} too": [text]}, unset=[text]) == [text]
        assert store.get([text])[0].metadata == {f"{text} too": [text]}
        with pytest.raises(EntrepotError):
            list(store.scan(token=text))
    store.delete(hostile[:3])
    store.delete(filter=F[f"{hostile[3]} too"] == hostile[3])
    assert store.count() == len(hostile) - 4
    assert canary() == before


@pytest.mark.parametrize("number", range(PARTS))
def test_conversations(server: str, canary: Any, schema: str, number: int) -> None:
    # F10, M2, M5, M6, M10
    hostile, before = part_of(number), canary()
    with ep.open_chat_memory(f"{server}/attacked", schema=schema) as memory:
        for text in hostile:
            memory.append(text, [UserMessage(text, id=text, metadata={text: text}), UserMessage("x")])
        assert sorted(memory.conversation_ids().items) == sorted(hostile)
        for text in hostile:
            first, second = memory.messages(text)
            assert (first.text, first.id, first.metadata) == (text, text, {text: text})
            assert memory.latest(text, "user") == second
            found = memory.search(text=text, metadata={text: text})
            assert [hit.conversation_id for hit in found] == [text]
            memory.truncate(text, after=text)
            assert memory.messages(text, last=5) == [first]
            with pytest.raises(EntrepotError):
                memory.conversation_ids(cursor=text)
        for text in hostile:
            memory.delete(text)
        assert memory.conversation_ids().items == []
    assert canary() == before


@pytest.mark.parametrize("number", range(PARTS))
def test_names(  # noqa: PLR0913, PLR0917 - what it looks at
    make: Make, server: str, admin: Any, canary: Any, schema: str, number: int
) -> None:
    # F10, D5: of collections and of memories, also within URLs, percent-encoded or as they stand
    hostile, before = [text for text in part_of(number) if text != "canary"], canary()
    for text in hostile:
        with make(collection=text, dimension=2, index="none") as store:
            store.add([Document("x", id="1", vector=[1.0, 2.0])])
            assert store.count() == 1
            assert text in store.list_collections()
            store.drop_collection()
        if "/" not in text:
            with ep.open_chat_memory(f"{server}/{quote(text, safe='')}?schema={schema}") as memory:
                memory.append("c", [UserMessage(text)])
                assert [message.text for message in memory.messages("c")] == [text]
        for url in (
            f"{server}/{text}?schema={schema}&dimension=2&index=none",
            f"{server}/x?schema={text}&index={text}",
        ):
            with suppress(EntrepotError), ep.open_vector_store(url) as opened:
                opened.collection_exists()
    names = {
        row[0] for row in admin.execute("SELECT tablename FROM pg_tables WHERE schemaname = %s", (schema,))
    }
    expected = {"canary", "canary table", "entrepot_collections", "entrepot_memories"}
    for memory_name in ["canary", *(text for text in hostile if "/" not in text)]:
        stem = memory_names_of(schema, memory_name).stem
        expected |= {f"{stem}_conversations", f"{stem}_messages"}
    assert names == expected
    assert canary() == before


@pytest.mark.parametrize(
    "number", [0, *(pytest.param(number, marks=pytest.mark.slow) for number in range(1, PARTS))]
)
def test_schemas(server: str, admin: Any, canary: Any, schema: str, number: int) -> None:
    # F10: names of schemas, which are made with the first table; and of tables and columns in a mapping
    hostile, before = [text for text in part_of(number) if len(text) < 60], canary()
    for text in hostile[:6]:
        name = f"{schema[:20]}{text}"[:60]
        with PostgresChatMemoryRepository(**target(server), schema=name) as memory:
            memory.connect().append("c", [UserMessage(text)])
            assert len(memory.messages("c")) == 1
        admin.execute(sql.SQL("DROP SCHEMA {} CASCADE").format(sql.Identifier(name)))
    for text in hostile:
        mappings: list[dict[str, Any]] = [
            {"id": text},
            {"text": text},
            {"columns": {text: text}},
            {"only": {"id": text}},
            {"only": {text: 1}},
        ]
        for mapping, table in product(mappings, (relation_of("canary"), text)):
            asked: dict[str, Any] = {**target(server), "schema": schema, "collection": table}
            with MappedPostgresVectorStore(mapping=mapping, **asked) as store, suppress(EntrepotError):
                store.count()
    assert canary() == before
