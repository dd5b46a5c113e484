# pyright: reportPrivateUsage=false
"""Connections, time, pools, event loops, and servers that are away: E1 to E5."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from plugins.postgres.tests.servers import connect, free_port, own_server, target
from psycopg import sql
from psycopg_pool import AsyncConnectionPool, ConnectionPool

import entrepot as ep
from entrepot import Document, SearchRequest
from entrepot.errors import (
    AuthenticationError,
    BackendError,
    BatchError,
    ClosedError,
    ConfigurationError,
    OperationTimeoutError,
    UnreachableError,
)
from entrepot_postgres import changing

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from plugins.postgres.tests.servers import Make

    from entrepot_postgres import PostgresVectorStore

SECRET = "hunter2"


def url_of(server: str, collection: str, schema: str) -> str:
    return f"{server}/{collection}?schema={schema}&metric=euclidean&dimension=2"


def one(name: str) -> Document:
    return Document(name, id=name, vector=[1.0, 2.0])


def openings(address: str) -> list[Callable[[], Awaitable[object]]]:
    """Return both ways to open a store."""

    async def in_thread() -> object:
        return await asyncio.to_thread(ep.open_vector_store, address)

    async def natively() -> object:
        return await ep.aopen_vector_store(address)

    return [in_thread, natively]


# --- connecting -------------------------------------------------------------------------------------------


async def test_nobody_answers() -> None:
    # E2: at once where the port is closed
    address = f"postgres://u:{SECRET}@127.0.0.1:{free_port()}/db/c"
    for opening in openings(address):
        with pytest.raises(UnreachableError) as caught:
            await opening()
        assert SECRET not in str(caught.value) + repr(caught.value)
        assert isinstance(caught.value.__cause__, psycopg.OperationalError)
        assert caught.value.retryable


async def test_a_port_that_accepts_and_says_nothing() -> None:
    # E2: within the timeout; libpq waits at least two seconds
    import socket

    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        address = f"postgres://127.0.0.1:{silent.getsockname()[1]}/db/c?timeout=0.5"
        with pytest.raises(UnreachableError):
            await asyncio.to_thread(ep.open_vector_store, address)
        with pytest.raises(UnreachableError):
            await ep.aopen_vector_store(address)


async def test_the_login_and_the_database_are_checked(server: str) -> None:
    # E2
    wrong_user = f"postgres://nobody_of_that_name:{SECRET}@{server.rpartition('@')[2]}/c"
    wrong_database = f"{server.rpartition('/')[0]}/none_of_that_name/c"
    for address, kind in ((wrong_user, AuthenticationError), (wrong_database, ConfigurationError)):
        for opening in openings(address):
            with pytest.raises(kind) as caught:
                await opening()
            assert SECRET not in str(caught.value)


def test_the_password_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    # E2: a server that asks for one
    with own_server() as own:
        with connect(own.url) as admin:
            admin.execute(f"CREATE ROLE guarded LOGIN PASSWORD '{SECRET}'")
            admin.execute("GRANT CREATE ON SCHEMA public TO guarded")
            admin.execute("CREATE EXTENSION vector")
            row = admin.execute("SHOW hba_file").fetchone()
            assert row is not None
            Path(row[0]).write_text("host all all all scram-sha-256\n", "utf-8")
            admin.execute("SELECT pg_reload_conf()")
        address = own.url.replace("postgres:entrepot@", "guarded@") + "/c?dimension=2"
        with pytest.raises(AuthenticationError) as caught:
            ep.open_vector_store(address)
        assert "PGPASSWORD" in str(caught.value)
        with pytest.raises(AuthenticationError):
            ep.open_vector_store(address, password="wrong")
        with ep.open_vector_store(address, password=SECRET) as store:
            store.add([one("a")])
            assert SECRET not in repr(store)
        monkeypatch.setenv("PGPASSWORD", SECRET)
        with ep.open_vector_store(address) as store:
            assert store.count() == 1
        with_password = own.url.replace("postgres:entrepot@", f"guarded:{SECRET}@") + "/c"
        monkeypatch.delenv("PGPASSWORD")
        with ep.open_vector_store(with_password) as store:
            assert store.count() == 1


def test_a_database_that_does_not_sort_by_code_point_is_refused(
    server: str, admin: psycopg.Connection[Any]
) -> None:
    # F4: code point order is promised in UTF-8 alone
    name = f"latin_{os.getpid()}"
    admin.execute(
        sql.SQL("CREATE DATABASE {} ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0").format(
            sql.Identifier(name)
        )
    )
    try:
        with pytest.raises(ConfigurationError, match="LATIN1"):
            ep.open_vector_store(f"{server.rpartition('/')[0]}/{name}/c")
    finally:
        admin.execute(sql.SQL("DROP DATABASE {}").format(sql.Identifier(name)))


# --- time -------------------------------------------------------------------------------------------------


@pytest.fixture
def locked(server: str, schema: str, make: Make) -> Iterator[PostgresVectorStore]:
    """A store whose table another session holds for itself."""
    store = make(dimension=2, index="none")
    store.add([one("a")])
    with connect(server) as other, other.transaction():
        other.execute(
            sql.SQL("LOCK TABLE {} IN ACCESS EXCLUSIVE MODE").format(sql.Identifier(schema, "default"))
        )
        yield store


async def test_a_timeout_ends_what_waits(locked: PostgresVectorStore) -> None:
    # E4: the server cancels the statement; each try gets what is left
    start = time.monotonic()
    request = SearchRequest(vector=[1.0, 2.0], timeout=0.3)
    with pytest.raises(OperationTimeoutError) as caught:
        await asyncio.to_thread(locked.similarity_search, request)
    assert caught.value.outcome == "not_done"
    with pytest.raises(OperationTimeoutError):
        await locked.asimilarity_search(request)
    with pytest.raises(OperationTimeoutError) as caught:
        await locked.aadd([one("b")], timeout=0.3)
    assert caught.value.outcome == "not_done"
    assert time.monotonic() - start < 5


async def test_a_pool_that_is_used_up_is_told_apart(locked: PostgresVectorStore, make: Make) -> None:
    # E4: one connection, and it waits
    store = make(pool_size=1, timeout=2.0)
    store._info = locked._info
    store._place = locked._place

    def wait() -> None:
        with pytest.raises(OperationTimeoutError):
            store.count()

    waiting = threading.Thread(target=wait)
    waiting.start()
    pool: Any = store.native_client
    while pool.get_stats().get("pool_available", 1) or not pool.get_stats().get("pool_size"):  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    with pytest.raises(OperationTimeoutError, match="became free"):
        await asyncio.to_thread(store.similarity_search, SearchRequest(vector=[1.0, 2.0], timeout=0.1))
    waiting.join()
    with make(pool_size=1, timeout=0.5) as other:
        assert other.list_collections() == ["default"]


@pytest.mark.slow  # psycopg tries for five seconds to cancel an async statement
async def test_a_server_that_falls_silent_is_given_up() -> None:
    # E2, E4: the connection stands, and nothing comes
    with own_server() as own:
        address = url_of(own.url, "c", "public")
        with ep.open_vector_store(address, timeout=0.6) as store, connect(own.url) as admin:
            store.create_collection()
            for (
                name
            ) in "ab":  # by now the connections know their timeout, and what is sent first is the write
                store.add([one(name)])
                assert await store.acount() >= 1
            backends = "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> %s"
            stopped = [pid for (pid,) in admin.execute(backends, (admin.info.backend_pid,)).fetchall()]
            for pid in stopped:
                os.kill(pid, signal.SIGSTOP)
            try:
                start = time.monotonic()
                with pytest.raises(BatchError) as caught:
                    store.add([one("c")])
                assert caught.value.unknown == ("c",)
                assert isinstance(caught.value.__cause__, OperationTimeoutError)
                with pytest.raises(OperationTimeoutError):
                    await store.asimilarity_search(SearchRequest(vector=[1.0, 2.0]))
                assert time.monotonic() - start < 20
            finally:
                for pid in stopped:
                    os.kill(pid, signal.SIGCONT)
            assert store.count() >= 2
            assert await store.acount() >= 2


async def test_connections_that_the_server_ended_are_replaced(
    make: Make, admin: psycopg.Connection[Any]
) -> None:
    # E4: all that are idle, in both pools, more of them than there are tries
    store = make(dimension=2, index="none", pool_size=8)
    store.add([one("a")])
    pool: Any = store.native_client
    taken = [pool.getconn() for _ in range(8)]
    pids = [connection.info.backend_pid for connection in taken]
    for connection in taken:
        pool.putconn(connection)
    await asyncio.gather(*(store.acount() for _ in range(8)))
    pids += [connection.info.backend_pid for connection in store._server._here()._idle]
    assert len(pids) > 10
    for pid in pids:
        admin.execute("SELECT pg_terminate_backend(%s, 5000)", (pid,))
    assert store.count() == 1
    assert await store.acount() == 1
    store.add([one("b")])
    assert await store.acount() == 2


async def test_large_batches_are_encoded_beside_the_event_loop(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    # E3: through the store and through a view; what is small is not worth a thread
    store = make(dimension=2, index="none")
    await store.acreate_collection()
    encode, threads = changing.batch_of, list[int]()

    def noted(records: Any, place: Any) -> Any:
        threads.append(threading.get_ident())
        return encode(records, place)

    monkeypatch.setattr(changing, "batch_of", noted)
    view = store.where("n >= 0")
    for writer in (store, view):
        await writer.aadd([Document("word " * 6000, id="x", vector=[1.0, 2.0], metadata={"n": 1})])
        await writer.aadd([Document("word", id="x", vector=[1.0, 2.0], metadata={"n": 1})])
    own = threading.get_ident()
    assert [number == own for number in threads] == [False, True, False, True]


def test_a_server_that_is_gone_is_unreachable_within_the_timeout() -> None:
    # E2, E4
    with own_server() as own:
        store = ep.open_vector_store(url_of(own.url, "c", "public"), timeout=1.0)
        store.add([one("a")])
        own.stop()
        for call in (store.count, lambda: store.add([one("b")])):
            start = time.monotonic()
            with pytest.raises(UnreachableError):
                call()
            assert time.monotonic() - start < 5
        own.start()
        assert store.count() == 1
        store.close()


# --- pools and event loops --------------------------------------------------------------------------------


def pooled(server: str) -> dict[str, Any]:
    options = target(server)
    options["dbname"] = options.pop("database", None)
    return options


def test_a_pool_of_the_users_is_used_and_stays_open(server: str, schema: str) -> None:
    # E5: with and without autocommit, and with row factories of its own
    from psycopg.rows import dict_row

    for autocommit in (True, False):
        with ConnectionPool(
            kwargs={**pooled(server), "autocommit": autocommit, "row_factory": dict_row}, min_size=1
        ) as pool:
            store = ep.open_vector_store(f"postgres:///c?schema={schema}&dimension=2", client=pool)
            assert store.native_client is pool
            name = str(autocommit)
            store.add([one(name)])
            assert store.update([name], set={"k": 1}) == [name]
            assert store.similarity_search(SearchRequest(vector=[1.0, 2.0], filter="k == 1"))
            assert asyncio.run(store.acount("k == 1")) >= 1  # on a thread
            store.close()
            with pytest.raises(ClosedError):
                store.count()
            with pool.connection() as connection:
                row: Any = connection.execute("SHOW statement_timeout").fetchone()
                assert row == {"statement_timeout": "0"}
    with pytest.raises(ConfigurationError, match="client"):
        ep.open_vector_store(f"{server}/c", client=ConnectionPool(open=False))


async def test_an_async_pool_of_the_users(server: str, schema: str) -> None:
    # E5
    async with AsyncConnectionPool(kwargs=pooled(server), min_size=1, open=False) as pool:
        store = await ep.aopen_vector_store(f"postgres:///c?schema={schema}&dimension=2", client=pool)
        await store.aadd([one("a")])
        assert await store.acount() == 1
        with pytest.raises(ConfigurationError, match="async"):
            store.count()
        await store.aclose()
        async with pool.connection() as connection:
            assert await (await connection.execute("SELECT 1")).fetchone() == (1,)


def test_each_event_loop_has_its_own_connections(make: Make) -> None:
    # E5: loops one after the other, and two at a time in threads; nothing is left open
    store = make(dimension=2, index="none")
    store.create_collection()

    async def work(name: str) -> int:
        await asyncio.gather(*(store.aadd([one(f"{name}{n}")]) for n in range(5)))
        return await store.acount()

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert asyncio.run(work("a")) == 5
        assert asyncio.run(work("b")) == 10
        threads = [threading.Thread(target=asyncio.run, args=(work(name),)) for name in "cd"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert store.count() == 20
        asyncio.run(store.aclose())
    assert store._server._loops == {}


async def test_cancelling_leaves_a_usable_store(make: Make, server: str, schema: str) -> None:
    # E4: the statement is cancelled on the server too
    store = make(dimension=2, index="none", pool_size=1)
    await store.aadd([one("a")])
    with connect(server) as other, other.transaction():
        other.execute(
            sql.SQL("LOCK TABLE {} IN ACCESS EXCLUSIVE MODE").format(sql.Identifier(schema, "default"))
        )
        task = asyncio.create_task(store.aadd([one("b")]))
        waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE %s"
        while True:
            other.execute("SELECT pg_stat_clear_snapshot()")
            row = other.execute(waiting, (f"%{schema}%",)).fetchone()
            if row and row[0]:
                break
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert await store.acount() == 1
    await store.aadd([one("c")])
    assert await store.acount() == 2
    await store.aclose()


def test_the_plugin_is_listed_without_its_driver() -> None:
    # E2: listing plugins imports no driver
    import subprocess
    import sys

    code = (
        "import sys; from entrepot.plugins import plugin_manager;"
        "infos = [i for i in plugin_manager().plugins() if i.name.startswith('postgres')];"
        "assert len(infos) == 2 and not any(i.error for i in infos), infos;"
        "assert 'psycopg' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("factory", [psycopg.ClientCursor, psycopg.RawCursor, psycopg.ServerCursor])
def test_pools_may_have_any_kind_of_cursor(server: str, schema: str, factory: Any) -> None:
    # E5
    with ConnectionPool(kwargs={**pooled(server), "cursor_factory": factory}, min_size=1) as pool:
        store = ep.open_vector_store(f"postgres:///c?schema={schema}&dimension=2", client=pool)
        store.add([one("a")])
        assert [document.id for document in store.scan()] == ["a"]
        memory = ep.open_chat_memory("postgres:///chat", client=pool, schema=schema)
        memory.append("c", [ep.UserMessage("x")])
        assert len(memory.search(text="x")) == 1


@pytest.mark.parametrize("encoding", ["latin1", "sql_ascii"])
def test_pools_may_have_any_encoding(server: str, schema: str, encoding: str) -> None:
    # D4, E5: and keep it
    with ConnectionPool(
        kwargs={**pooled(server), "client_encoding": encoding}, min_size=1, max_size=1
    ) as pool:
        store = ep.open_vector_store(f"postgres:///c?schema={schema}&dimension=2", client=pool)
        store.add([Document("ю😀", id="ю😀", metadata={"ю😀": "ю😀"}, vector=[1.0, 2.0])])
        (document,) = store.scan(ep.F["ю😀"] == "ю😀")
        assert (document.id, document.text, document.metadata) == ("ю😀", "ю😀", {"ю😀": "ю😀"})
        memory = ep.open_chat_memory("postgres:///chat", client=pool, schema=schema)
        memory.append("ю😀", [ep.UserMessage("ю😀")])
        assert [hit.message.text for hit in memory.search(text="ю😀")] == ["ю😀"]
        with pool.connection() as connection:
            row = connection.execute("SHOW client_encoding").fetchone()
            assert row is not None
            assert str(row[0] if isinstance(row[0], str) else row[0].decode()).lower() == encoding


def test_a_search_path_without_the_type_is_told(server: str, schema: str) -> None:
    # E2
    with ConnectionPool(
        kwargs={**pooled(server), "options": "-c search_path=pg_catalog"}, min_size=1
    ) as pool:
        ep.open_vector_store(f"{server}/c?schema={schema}&dimension=2").create_collection()
        store = ep.open_vector_store(f"postgres:///d?schema={schema}&dimension=2", client=pool)
        with pytest.raises(BackendError, match="search path"):
            store.create_collection()
