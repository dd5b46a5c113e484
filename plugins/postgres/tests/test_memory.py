# pyright: reportPrivateUsage=false
"""Chat memory in PostgreSQL: its tables, its plans, expiry and what it leaves behind (M1 to M10, E2, E5)."""

from __future__ import annotations

import asyncio
import json
import threading
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from plugins.postgres.tests.servers import target
from psycopg import sql
from psycopg_pool import AsyncConnectionPool, ConnectionPool

import entrepot as ep
from entrepot import UserMessage
from entrepot.errors import BackendError, ConfigurationError, CorruptDataError, RequestError
from entrepot_postgres import PostgresChatMemoryRepository
from entrepot_postgres.names import memory_names_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Admin = psycopg.Connection[Any]
NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


@pytest.fixture
def opened(server: str, schema: str) -> Iterator[Callable[..., PostgresChatMemoryRepository]]:
    memories: list[PostgresChatMemoryRepository] = []

    def opened(**options: Any) -> PostgresChatMemoryRepository:
        given: dict[str, Any] = {**target(server), "schema": schema, **options}
        memory = PostgresChatMemoryRepository(**given)
        memories.append(memory)
        return memory.connect()

    yield opened
    for memory in memories:
        memory.close()


def rows(admin: Admin, schema: str, name: str = "chat") -> tuple[int, int]:
    """Return how many conversations and messages the tables hold."""
    names = memory_names_of(schema, name)
    query = sql.SQL("SELECT (SELECT count(*) FROM {}), (SELECT count(*) FROM {})")
    row = admin.execute(query.format(names.conversations, names.messages)).fetchone()
    assert row is not None
    return row[0], row[1]


def late(admin: Admin, schema: str, conversation: str, seconds: float) -> None:
    """Put a conversation's expiry forward, as if so many seconds had passed."""
    query = sql.SQL("UPDATE {} SET expires = expires - make_interval(secs => %s) WHERE name = %s")
    admin.execute(
        query.format(memory_names_of(schema, "chat").conversations), (seconds, conversation.encode())
    )


def texts(memory: PostgresChatMemoryRepository, name: str = "c") -> list[str]:
    return [message.text for message in memory.messages(name)]


# --- tables -----------------------------------------------------------------------------------------------


def test_many_at_once_make_the_tables_once(opened: Any, admin: Admin, schema: str) -> None:
    # E2, E5: threads and event loops, in a schema that is not there either
    barrier = threading.Barrier(8)
    failed: list[Exception] = []

    def one(number: int) -> None:
        try:
            barrier.wait(30)
            opened().append("c", [UserMessage(str(number))])
        except Exception as error:  # noqa: BLE001 - told by the test
            failed.append(error)

    threads = [threading.Thread(target=one, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert rows(admin, schema) == (1, 8)


def test_memories_and_collections_of_one_name_are_apart(opened: Any, server: str, schema: str) -> None:
    # M6, D5
    for name in ("chat", "Chat", "chat_messages", "entrepot_chat", 'a"b%s', "x" * 512, "x" * 511 + "y"):
        with ep.open_vector_store(f"{server}/c", schema=schema, dimension=2) as store:
            other = store.where("n == 1")
            assert other is not None
        memory = opened(name=name)
        assert memory.conversation_ids().items == []
        memory.append("c", [UserMessage(name)])
    with ep.open_vector_store(f"{server}/chat_messages", schema=schema, dimension=2) as store:
        store.add([ep.Document("x", id="1", vector=[1.0, 0.0])])
        assert store.list_collections() == ["chat_messages"]
    assert texts(opened(name="chat_messages")) == ["chat_messages"]


def test_tables_of_others_are_refused(opened: Any, admin: Admin, schema: str) -> None:
    # D5 for memories
    opened().close()
    admin.execute(sql.SQL("DELETE FROM {}.entrepot_memories").format(sql.Identifier(schema)))
    with pytest.raises(CorruptDataError, match="not registered"):
        opened()
    query = sql.SQL("INSERT INTO {}.entrepot_memories VALUES ('chat', 'entrepot_chat', 99)")
    admin.execute(query.format(sql.Identifier(schema)))
    with pytest.raises(CorruptDataError, match="layout 99"):
        opened()


def test_tables_that_vanish_are_told(opened: Any, admin: Admin, schema: str) -> None:
    # E1
    memory = opened()
    admin.execute(sql.SQL("DROP TABLE {}").format(memory_names_of(schema, "chat").conversations))
    calls: list[Callable[[], object]] = [
        lambda: memory.append("c", [UserMessage("x")]),
        lambda: memory.messages("c"),
    ]
    for call in calls:
        with pytest.raises(BackendError, match="not there any more") as caught:
            call()
        assert isinstance(caught.value.__cause__, psycopg.errors.UndefinedTable)
    with pytest.raises(CorruptDataError, match="are not there"):
        opened()


def test_messages_are_readable_json_in_their_table(opened: Any, admin: Admin, schema: str) -> None:
    # M2: what another program sees
    opened().append("c", [UserMessage("ä\nx", id="1", metadata={"k": [1, None]})])
    query = sql.SQL("SELECT body, id, created FROM {}").format(memory_names_of(schema, "chat").messages)
    row = admin.execute(query).fetchone()
    assert row is not None
    assert json.loads(row[0])["metadata"] == {"k": [1, None]}
    assert row[1] == b"1"


# --- cost -------------------------------------------------------------------------------------------------


def test_readings_go_by_index(opened: Any, admin: Admin) -> None:
    # M7, M9, W2: PostgreSQL's own plans say so, on tables that have no statistics yet
    memory = opened()
    for number in range(4):
        many = [UserMessage(f"text {n}", created=NOON + timedelta(seconds=n)) for n in range(2500)]
        memory.append(f"c{number}", many)
    statements = memory._statements
    asked: dict[str, tuple[sql.SQL, tuple[object, ...]]] = {
        "last": (statements.last, (b"c1", 20)),
        "latest": (statements.latest, (b"c1", 1)),
        "names": (statements.names, (b"", 2)),
    }
    for name, (query, bound) in asked.items():
        plan = "\n".join(row[0] for row in admin.execute(sql.SQL("EXPLAIN (ANALYZE) ") + query, bound))
        assert "Seq Scan" not in plan, (name, plan)
        assert "Sort" not in plan, (name, plan)
        if name != "names":
            assert "Backward" in plan, (name, plan)


def test_an_append_rewrites_nothing(opened: Any, admin: Admin, schema: str) -> None:
    # M3: the rows that were there are the same versions afterwards; the conversation's row stays on its page
    memory = opened()
    memory.append("c", [UserMessage(str(n), id=str(n)) for n in range(100)])
    versions = sql.SQL("SELECT id, ctid::text, xmin::text FROM {} ORDER BY place LIMIT 100").format(
        memory_names_of(schema, "chat").messages
    )
    before = admin.execute(versions).fetchall()
    for number in range(50):
        memory.append("c", [UserMessage("more", id=f"more {number}")])
        memory.append("c", [UserMessage("again", id="5")])
    assert admin.execute(versions).fetchall() == before
    assert len(memory.messages("c")) == 150


# --- expiry -----------------------------------------------------------------------------------------------


def test_expiry_belongs_to_the_conversation(opened: Any, admin: Admin, schema: str) -> None:
    # M8: a writer without ttl keeps what is set, one with another ttl sets that; it survives replace
    ten, plain, hundred = opened(ttl=10), opened(), opened(ttl=100)
    ten.append("c", [UserMessage("one", id="1")])
    plain.append("c", [UserMessage("two", id="2")])
    late(admin, schema, "c", 9)
    assert texts(plain) == ["one", "two"]
    plain.replace("c", [UserMessage("three", id="3"), UserMessage("four")])
    late(admin, schema, "c", 9)
    plain.truncate("c", after="3")
    late(admin, schema, "c", 9)
    assert texts(plain) == ["three"]
    hundred.append("c", [UserMessage("five")])
    late(admin, schema, "c", 99)
    assert texts(ten) == ["three", "five"]
    late(admin, schema, "c", 1)
    assert texts(ten) == []
    plain.append("c", [UserMessage("new", id="1")])  # begins anew, without an expiry
    late(admin, schema, "c", 1000)
    assert texts(ten) == ["new"]
    assert rows(admin, schema) == (1, 1)


def test_replacing_what_expired_keeps_nothing_of_it(opened: Any, admin: Admin, schema: str) -> None:
    # M8, M4
    memory, plain = opened(ttl=10), opened()
    memory.append("c", [UserMessage("old", id="1")])
    late(admin, schema, "c", 11)
    plain.replace("c", [UserMessage("new", id="1")])
    assert texts(plain) == ["new"]
    late(admin, schema, "c", 1000)
    assert texts(plain) == ["new"]


def test_what_has_expired_is_removed(opened: Any, admin: Admin, schema: str) -> None:
    # M8: by later writes, and on demand; what another writer holds is left alone
    memory, plain = opened(ttl=1000), opened()
    for number in range(130):
        memory.append(f"c{number}", [UserMessage("x"), UserMessage("y")])
        late(admin, schema, f"c{number}", 1001)
    plain.append("kept", [UserMessage("x")])
    assert plain.conversation_ids().items == ["kept"]
    assert rows(admin, schema) == (131, 261)
    lock = sql.SQL("SELECT FROM {} WHERE name = 'c7' FOR UPDATE")
    with admin.transaction():
        admin.execute(lock.format(memory_names_of(schema, "chat").conversations))
        assert plain.remove_expired() == 129
    assert asyncio.run(plain.aremove_expired()) == 1
    assert rows(admin, schema) == (1, 1)
    memory.append("d", [UserMessage("x")])
    late(admin, schema, "d", 1001)
    memory._next_sweep = 0.0
    memory.append("e", [UserMessage("x")])
    assert rows(admin, schema) == (2, 2)


def test_writers_and_removers_leave_no_orphans(opened: Any, admin: Admin, schema: str) -> None:
    # M3, M4, M5: messages without a conversation would never be seen, nor removed
    memory = opened()

    def append() -> None:
        for number in range(60):
            memory.append("c", [UserMessage("x", id=f"{threading.get_ident()} {number}")])

    def remove() -> None:
        for number in range(30):
            memory.delete("c") if number % 2 else memory.replace("c", [UserMessage("y")])

    threads = [threading.Thread(target=job) for job in (append, append, remove, remove)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    memory.delete("c")
    assert rows(admin, schema) == (0, 0)


# --- pools and cursors ------------------------------------------------------------------------------------


def test_pools_of_the_users(server: str, schema: str) -> None:
    # E5: used by both colours, in a client encoding that lacks most characters, and left open
    options = target(server)
    options["dbname"] = options.pop("database", None)
    with ConnectionPool(kwargs={**options, "client_encoding": "latin1"}, min_size=1, max_size=2) as pool:
        with ep.open_chat_memory("postgres:///chat", client=pool, schema=schema) as memory:
            memory.append("ю", [UserMessage("ю😀", id="ю")])
            assert [message.text for message in memory.messages("ю")] == ["ю😀"]
            assert memory.search(text="ю😀")[0].conversation_id == "ю"
            assert asyncio.run(memory.amessages("ю")) == memory.messages("ю")
            assert memory.native_client is pool
        assert not pool.closed
        with pytest.raises(ConfigurationError, match="says where"):
            ep.open_chat_memory("postgres://localhost/chat", client=pool)


async def test_an_async_pool_of_the_users(server: str, schema: str) -> None:
    # E5
    options = target(server)
    options["dbname"] = options.pop("database", None)
    pool: AsyncConnectionPool[Any] = AsyncConnectionPool(kwargs=options, min_size=1, max_size=2, open=False)
    await pool.open()
    memory = await ep.aopen_chat_memory("postgres:///chat", client=pool, schema=schema)
    await memory.aappend("c", [UserMessage("x")])
    assert [hit.message.text for hit in await memory.asearch(text="x")] == ["x"]
    with pytest.raises(ConfigurationError, match="AsyncConnectionPool"):
        memory.messages("c")
    await memory.aclose()
    assert not pool.closed
    await pool.close()


@pytest.mark.parametrize("cursor", ["?", "a b", "€", "=", "A"], ids=repr)
def test_cursors_of_others_are_refused(opened: Any, cursor: str) -> None:
    # M9
    with pytest.raises(RequestError, match="cursor"):
        opened().conversation_ids(cursor=cursor)


def test_expiries_beyond_the_calendar(opened: Any) -> None:
    # M8: any positive number is one
    opened(ttl=1e300).append("c", [UserMessage("x")])
    assert texts(opened()) == ["x"]
    opened(ttl=1e-9).append("d", [UserMessage("x")])
    assert texts(opened(), "d") == []
