"""Writers beside one another: D2, D6, D7, D10, T2, E4."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import psycopg
import pytest
from plugins.postgres.tests.servers import connect
from psycopg import sql

from entrepot import Document, F
from entrepot.errors import (
    BatchError,
    EntrepotError,
    OutsideViewError,
    SizeLimitError,
)
from entrepot_postgres import PostgresVectorStore

if TYPE_CHECKING:
    from collections.abc import Callable

    from plugins.postgres.tests.servers import Make

    from entrepot.records import IfExists


def in_threads(*jobs: Callable[[], None]) -> None:
    """Run jobs at once and raise what any of them raised."""
    errors: list[BaseException] = []

    def guarded(job: Callable[[], None]) -> None:
        try:
            job()
        except BaseException as error:  # noqa: BLE001 - handed to the test
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(job,)) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def documents(names: Any, **metadata: Any) -> list[Document]:
    return [Document("t", id=name, metadata=metadata, vector=[1.0, 2.0]) for name in names]


class Strict(PostgresVectorStore):
    """Counts what would have been tried again."""

    faults: list[EntrepotError]

    def _answer(self, script: Any) -> Any:
        try:
            return super()._answer(script)
        except EntrepotError as error:
            self.faults.append(error)
            raise


def test_crossed_batches_never_lock_each_other_out(make: Make, server: str, schema: str) -> None:
    # D2, E4: upserts, updates and deletes of the same ids in opposite orders
    from plugins.postgres.tests.servers import target

    make(dimension=2, index="none").create_collection()
    store = Strict(**target(server), schema=schema)
    store.faults = []
    names = [f"{n:02}" for n in range(40)]
    orders = [names, names[::-1], [str(name) for name in np.random.default_rng(1).permutation(names)]]

    def write(order: list[str], tag: int) -> Callable[[], None]:
        def job() -> None:
            for n in range(25):
                store.add(documents(order, w=tag, n=n))
                store.update(order[::2], set={"u": n})
                if n % 5 == 0:
                    store.delete(order[:10])

        return job

    in_threads(*(write(order, tag) for tag, order in enumerate(orders)))
    assert store.faults == []
    assert store.count() >= 30
    store.close()


@pytest.mark.parametrize("mode", ["replace", "skip", "error"])
def test_one_statement_writes_whole_batches(make: Make, mode: IfExists) -> None:
    # D2, D6: a reader sees all of a sub-batch or nothing of it
    store = make(dimension=2, index="none")
    store.create_collection()
    done = threading.Event()

    def write() -> None:
        for n in range(20):
            store.add(documents([f"{n:02}-{place}" for place in range(50)], n=n), if_exists=mode)
        done.set()

    def read() -> None:
        while not done.is_set():
            assert store.count() % 50 == 0

    in_threads(write, read)


def test_delete_by_filter_spares_what_changed_meanwhile(make: Make, server: str, schema: str) -> None:
    # D7: another writer holds two rows that match, changes one, and lets go
    store = make(dimension=2, index="none")
    store.add(documents(["a", "b", "c"], k=1))
    table = sql.Identifier(schema, "default")
    with connect(server) as other:
        with other.transaction():
            other.execute(sql.SQL("UPDATE {} SET text = 'changed' WHERE id = 'b'").format(table))
            other.execute(sql.SQL("SELECT 1 FROM {} WHERE id = 'c' FOR UPDATE").format(table))
            thread = threading.Thread(target=lambda: store.delete(filter="k == 1"))
            thread.start()
            wait_until_blocked(other)
        thread.join()
    assert [(document.id, document.text) for document in store.scan()] == [("b", "changed")]


def wait_until_blocked(connection: psycopg.Connection[Any]) -> None:
    """Wait until another session waits for a lock."""
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%%doc%%'"
    for _ in range(10_000):
        connection.execute("SELECT pg_stat_clear_snapshot()")
        row = connection.execute(waiting).fetchone()
        if row and row[0]:
            return
        threading.Event().wait(0.005)
    pytest.fail("nobody waits")


def test_an_update_builds_on_what_another_wrote_meanwhile(make: Make) -> None:
    # D10: read and write are one step; no increment is lost
    store = make(dimension=2, index="none")
    store.add(documents(["x"]))

    def job(number: int) -> Callable[[], None]:
        def run() -> None:
            for n in range(20):
                assert store.update(["x"], set={f"{number}-{n}": n}) == ["x"]

        return run

    in_threads(*(job(number) for number in range(4)))
    (document,) = store.get(["x"])
    assert len(document.metadata) == 80


def test_an_update_keeps_the_limits(make: Make) -> None:
    # D8, D10
    store = make(dimension=2, index="none")
    store.add(documents(["x"], k="a" * 1_000_000))
    with pytest.raises(SizeLimitError):
        store.update(["x"], set={"more": "b" * 100_000})
    assert store.get(["x"])[0].metadata.keys() == {"k"}


def test_a_view_never_takes_over_a_row_that_appears_meanwhile(make: Make, server: str, schema: str) -> None:
    # T2: the other tenant's insert is not committed when the view's write begins
    store = make(dimension=2, index="none")
    store.create_collection()
    view = store.where(F.tenant == "a")
    caught: list[Exception] = []

    def claim() -> None:
        try:
            view.add(documents(["w", "x", "y"]))
        except OutsideViewError as error:
            caught.append(error)

    with connect(server) as other:
        with other.transaction():
            other.execute(
                sql.SQL(
                    "INSERT INTO {} VALUES ('x', 'theirs', '{{\"tenant\":\"b\"}}', '{{\"tenant\":\"b\"}}', '', '[1,0]')"
                ).format(sql.Identifier(schema, "default"))
            )
            thread = threading.Thread(target=claim)
            thread.start()
            wait_until_blocked(other)
        thread.join()
    assert [str(error).splitlines()[0] for error in caught] == [
        "the id 'x' belongs to a document outside of the view"
    ]
    assert [(document.id, document.text) for document in store.scan()] == [("x", "theirs")]


def test_a_large_batch_goes_in_sub_batches_and_tells_what_was_written(
    make: Make, server: str, schema: str
) -> None:
    # D6: the database refuses a row of the third sub-batch
    store = make(dimension=2, index="none")
    store.create_collection()
    with connect(server) as other:
        other.execute(
            sql.SQL("ALTER TABLE {} ADD CONSTRAINT refused CHECK (id <> '00600')").format(
                sql.Identifier(schema, "default")
            )
        )
    names = [f"{n:05}" for n in range(900)]
    with pytest.raises(BatchError) as caught:
        store.add(documents(names, secret="hunter2"))
    error = caught.value
    assert error.written == tuple(names[:500])
    assert set(error.failed) == set(names[500:])
    assert error.unknown == ()
    assert "hunter2" not in str(error) + str(error.failed)
    assert isinstance(error.__cause__, EntrepotError)
    assert isinstance(error.__cause__.__cause__, psycopg.errors.CheckViolation)
    assert store.count() == 500


def test_metadata_is_kept_byte_for_byte(make: Make, server: str, schema: str) -> None:
    # D4: in the order and the form that the core wrote
    store = make(dimension=2, index="none")
    store.add(documents(["x"], z=1, a=-0.0, f=1e300, big=9.223372036854775e18, empty=[]))
    with connect(server) as other:
        row = other.execute(
            sql.SQL("SELECT metadata, terms::text FROM {}").format(sql.Identifier(schema, "default"))
        ).fetchone()
    assert row is not None
    assert row[0] == '{"z":1,"a":-0.0,"f":1e300,"big":9.223372036854775e18,"empty":[]}'
    assert "empty" not in row[1]


def test_scans_yield_what_was_there_throughout_once(make: Make, rng: np.random.Generator) -> None:
    # D7: others are added, replaced and deleted between any two of the ids
    store = make(dimension=2, index="none")
    stable = sorted({f"{n:04}" for n in rng.integers(0, 10_000, size=300)})
    store.add(documents(stable, k=0))
    done = threading.Event()

    def disturb() -> None:
        n = 0
        while not done.is_set():
            n += 1
            passing = [f"{number:04}x" for number in rng.integers(0, 10_000, size=20)]
            store.add(documents(dict.fromkeys(passing)))
            store.update([stable[n % len(stable)]], set={"k": n})
            store.add(documents([stable[-1 - n % len(stable)]], k=n))
            store.delete(list(dict.fromkeys(passing))[:15])

    def scan() -> None:
        for size in (1, 7, 50):
            seen = [document.id for document in store.scan("k >= 0", batch_size=size, include=[])]
            assert seen == sorted(set(seen))
            assert set(stable) <= set(seen)
        done.set()

    in_threads(disturb, scan)


def test_a_token_of_others_is_refused(make: Make) -> None:
    # D7
    from entrepot.errors import RequestError

    store = make(dimension=2, index="none")
    store.create_collection()
    for token in ("", "x", "é", "====", "AA==", "' OR 1=1"):
        with pytest.raises(RequestError, match="token"):
            list(store.scan(token=token))
