"""What the suite does not see: this backend's URLs, clients, timeouts and errors."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import duckdb
import pytest
from entrepot import Document, open_vector_store
from entrepot.errors import (
    ClosedError,
    ConfigurationError,
    OperationTimeoutError,
    StoreInUseError,
    UnreachableError,
)

from entrepot_duckdb.database import Database
from entrepot_duckdb.store import DuckdbVectorStore


def document(name: str) -> Document:
    return Document("a", id=name, metadata={"n": 1}, vector=[1.0, 0.0])


def test_a_file_holds_several_collections(tmp_path: Path) -> None:
    url = f"duckdb:///{tmp_path}/articles.db"
    with (
        open_vector_store(f"{url}?collection=books") as books,
        open_vector_store(f"{url}?collection=Books") as other,
    ):
        books.add([document("1")])
        other.add([document("2")])
        assert books.list_collections() == ["Books", "books"]
    with open_vector_store(f"{url}?collection=books") as again:
        assert [found.id for found in again.scan()] == ["1"]


def test_databases_in_memory_are_shared_by_name() -> None:
    with open_vector_store("duckdb://one") as store, open_vector_store("duckdb://two") as other:
        store.add([document("1")])
        with open_vector_store("duckdb://one") as same:
            assert same.count() == 1
        assert other.list_collections() == []


def test_a_client_stays_open() -> None:
    with duckdb.connect(":memory:") as client:
        with DuckdbVectorStore(client=client, collection="books") as store:
            store.add([document("1")])
            assert store.native_client is client
        assert client.execute("SELECT name FROM entrepot.collections").fetchall() == [("books",)]


@pytest.mark.parametrize(
    "url", ["duckdb://articles.db", "duckdb:///", "duckdb://a:b@host/c", "duckdb://host/c"]
)
def test_a_url_that_means_nothing_is_refused(url: str) -> None:
    with pytest.raises(ConfigurationError):
        open_vector_store(url)


def test_what_cannot_be_opened_says_why(tmp_path: Path) -> None:
    # E2
    with pytest.raises(UnreachableError, match="cannot be opened"):
        open_vector_store(f"duckdb:///{tmp_path}/missing/articles.db")
    path = tmp_path / "articles.db"
    program = f"import duckdb; c = duckdb.connect({str(path)!r}); print(flush=True); input()"
    with subprocess.Popen(  # noqa: S603
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None
        other.stdout.readline()
        with pytest.raises(StoreInUseError):
            open_vector_store(f"duckdb:///{path}")
        other.communicate(b"\n")


def test_statements_and_waiting_writers_end_with_the_timeout() -> None:
    # E4
    database = Database.open(":memory:timeouts")
    with pytest.raises(OperationTimeoutError), database.reading(0.1) as cursor:
        cursor.execute("SELECT sum(sin(i)) FROM range(100_000_000_000) numbers(i)").fetchall()
    with database.writing(1), pytest.raises(OperationTimeoutError), database.writing(0.1):
        pass
    database.close()


def test_closing_waits_for_what_is_under_way() -> None:
    # E5
    store = open_vector_store("duckdb://closing")
    store.add([document(str(number)) for number in range(500)])
    failures: list[BaseException] = []
    begun = threading.Barrier(4)

    def read() -> None:
        begun.wait()
        try:
            while True:
                store.count("n == 1")
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    begun.wait()
    store.close()
    for thread in threads:
        thread.join()
    assert [type(failure) for failure in failures] == [ClosedError] * 3
