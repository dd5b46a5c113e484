"""The embedded store in a file: what returned is there, whatever happens; one writer, many readers."""

from __future__ import annotations

import random
import signal
import sqlite3
import subprocess
import sys
import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from entrepot import Document, SearchRequest, SimpleVectorStore
from entrepot.capabilities import Metric
from entrepot.errors import (
    BackendError,
    CollectionMismatchError,
    CollectionNotFoundError,
    ConfigurationError,
    CorruptDataError,
    SizeLimitError,
    StoreInUseError,
    UnreachableError,
    UnsupportedError,
)
from entrepot.records import Record

if TYPE_CHECKING:
    from pathlib import Path

# Adds batches of three for ever, now and then replacing and deleting, and says so after each call returned.
WRITER = textwrap.dedent("""
    import sys
    from entrepot import Document, SimpleVectorStore
    store = SimpleVectorStore(sys.argv[1])
    start = int(sys.argv[2])
    for n in range(start, start + 100_000):
        store.add([Document(f"text {n}", id=f"{n}-{part}", metadata={"n": n}, vector=[1.0, n, part]) for part in range(3)])
        print(f"add {n}", flush=True)
        if n % 7 == 3:
            store.delete([f"{n - 1}-{part}" for part in range(3)])
            print(f"delete {n - 1}", flush=True)
        if n % 7 == 5:
            store.update([f"{n - 2}-{part}" for part in range(3)], set={"updated": True})
            print(f"update {n - 2}", flush=True)
""")


def killed_writer(path: Path, start: int, rng: random.Random) -> list[tuple[str, int]]:
    """Run a writer, kill it at a random moment, and return what it said had returned."""
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path), str(start)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    said: list[tuple[str, int]] = []
    stop = rng.randint(1, 40)
    for line in process.stdout:
        verb, _, number = line.partition(" ")
        said.append((verb, int(number)))
        if len(said) == stop:
            break
    # Between this line and the kill the writer goes on: the kill falls anywhere within its next calls.
    process.send_signal(signal.SIGKILL)
    for line in process.stdout:
        if line.endswith("\n"):
            verb, _, number = line.partition(" ")
            said.append((verb, int(number)))
    process.stdout.close()
    assert process.wait() == -signal.SIGKILL
    return said


@pytest.mark.slow
def test_a_killed_writer_loses_nothing_that_returned(tmp_path: Path) -> None:
    # D6, D7, E4: 50 times SIGKILL; every add that returned is there, none is half there
    path = tmp_path / "store.db"
    rng = random.Random(7)
    there: dict[int, bool] = {}  # number -> whether it was updated
    start = 0
    kills = 0
    while kills < 50:
        said = killed_writer(path, start, rng)
        kills += 1
        deleted: set[int] = set()
        for verb, number in said:
            if verb == "add":
                there[number] = False
            elif verb == "update":
                there.update({number: True} if number in there else {})
            else:
                there.pop(number, None)
                deleted.add(number)
        last = max((number for _, number in said), default=start)
        with SimpleVectorStore(path) as store:
            found: dict[int, dict[str, Document]] = {}
            for document in store.scan(include=["text", "metadata", "vector"]):
                start_of_id, _, part = document.id.partition("-")
                found.setdefault(int(start_of_id), {})[part] = document
            for number, parts in found.items():
                assert set(parts) == {"0", "1", "2"}, f"{number} is half there"
                assert {document.metadata["n"] for document in parts.values()} == {number}
                assert len({document.metadata.get("updated") for document in parts.values()}) == 1
                assert {document.text for document in parts.values()} == {f"text {number}"}
                assert all(
                    document.vector is not None and document.vector.any() for document in parts.values()
                )
            for number, updated in there.items():
                if number in found:
                    if updated:
                        assert found[number]["0"].metadata.get("updated") is True
                else:
                    # Only a deletion under way when the writer died may have taken it.
                    assert number == last - 1, f"{number} is lost"
            assert not deleted & set(found)
            for number in set(found) - set(there):
                assert number > last - 2, f"{number} came from nowhere"
            there = {number: bool(parts["0"].metadata.get("updated")) for number, parts in found.items()}
        start = max([*found, start]) + 10


def test_the_file_is_written_with_full_synchronisation(tmp_path: Path) -> None:
    # the promise that a crash of the machine loses nothing rests on these settings
    with SimpleVectorStore(tmp_path / "s.db") as store:
        database = store._database  # pyright: ignore[reportPrivateUsage]
        assert database is not None
        log = database.log
        assert log is not None
        assert log.pragma("synchronous") == 2  # FULL
        assert log.pragma("journal_mode") == "wal"


def test_what_was_written_is_there_after_opening_again(tmp_path: Path) -> None:
    # D4
    path = tmp_path / "s.db"
    with SimpleVectorStore(path, metric="dot") as store:
        store.add(
            [
                Document("ä", id="1", metadata={"n": 1.0}, vector=[1.0, 0.0]),
                Document(None, id="2", vector=[0, 1.0]),
            ]
        )
        store.update(["1"], set={"m": [True]})
        store.delete(["2"])
        before = store.get(["1"], include=["text", "metadata", "vector"])
        stats = store.stats()
    with SimpleVectorStore(path) as store:
        assert store.get(["1", "2"], include=["text", "metadata", "vector"]) == before
        again = store.stats()
        assert (again.metric, again.dimension, again.count) == (stats.metric, stats.dimension, stats.count)


def in_another_process(code: str, *arguments: object) -> str:
    ended = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
    )
    return (ended.stdout + ended.stderr).strip()


def test_a_second_writer_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    code = """
        import sys
        from entrepot import SimpleVectorStore, StoreInUseError
        try:
            SimpleVectorStore(sys.argv[1])
        except StoreInUseError as error:
            print(error)
    """
    with SimpleVectorStore(path):
        assert "another process writes to 's.db'" in in_another_process(code, path)
    assert in_another_process(code, path) == ""


def test_a_reader_follows_the_writers_commits(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    code = """
        import sys
        from entrepot import SimpleVectorStore, Document, SearchRequest
        store = SimpleVectorStore(sys.argv[1], read_only=True)
        for line in sys.stdin:
            print([d.id for d in store.similarity_search(SearchRequest(vector=[1.0, 0.0], top_k=9))], flush=True)
    """
    with SimpleVectorStore(path) as store:
        store.add([Document(None, id="1", vector=[1.0, 0.0])])
        reader = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(code), str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert reader.stdin is not None
        assert reader.stdout is not None

        def seen() -> str:
            reader.stdin.write("\n")  # type: ignore[union-attr]  # pyright: ignore[reportOptionalMemberAccess]
            reader.stdin.flush()  # type: ignore[union-attr]  # pyright: ignore[reportOptionalMemberAccess]
            return reader.stdout.readline().strip()  # type: ignore[union-attr]  # pyright: ignore[reportOptionalMemberAccess]

        assert seen() == "['1']"
        store.add([Document(None, id="2", vector=[1.0, 1.0])])
        assert seen() == "['1', '2']"
        store.delete(["1"])
        assert seen() == "['2']"
        for n in range(1500):  # beyond the point where the log is rewritten
            store.add([Document(None, id="2", vector=[1.0, n])])
        store.add([Document(None, id="3", vector=[1.0, 0.0])])
        assert store.stats().details["dead_rows"] < 1500
        assert seen() == "['3', '2']"
        store.drop_collection()
        store.add([Document(None, id="new", vector=[1.0, 0.0])])
        assert seen() == "['new']"
        reader.stdin.close()
        assert reader.wait() == 0
        reader.stdout.close()


def test_a_reader_cannot_write(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    with SimpleVectorStore(path) as store:
        store.add([Document(None, id="1", vector=[1.0])])
        with SimpleVectorStore(path, read_only=True) as reader:
            assert reader.count() == 1
            for write in (
                lambda: reader.add([Document(None, vector=[1.0])]),
                lambda: reader.delete(["1"]),
                lambda: reader.update(["1"], set={"a": 1}),
                reader.drop_collection,
                lambda: SimpleVectorStore(path, read_only=True, collection="other").create_collection(
                    dimension=1
                ),
            ):
                with pytest.raises(UnsupportedError, match="read_only"):
                    write()
            assert reader.count() == 1


def test_files_that_are_not_ours_are_refused(tmp_path: Path) -> None:
    # D5
    other = tmp_path / "other.db"
    connection = sqlite3.connect(other)
    connection.execute("CREATE TABLE t (x)")
    connection.commit()
    connection.close()
    before = other.read_bytes()
    with pytest.raises(CorruptDataError, match="other software"):
        SimpleVectorStore(other)
    text = tmp_path / "text.db"
    text.write_text("this is not a database, but it is long enough to be taken for one " * 20)
    with pytest.raises(CorruptDataError):
        SimpleVectorStore(text)
    assert other.read_bytes() == before
    with pytest.raises(UnreachableError):
        SimpleVectorStore(tmp_path / "missing" / "s.db")
    with pytest.raises(UnreachableError):
        SimpleVectorStore(tmp_path / "missing.db", read_only=True)
    assert not (tmp_path / "missing.db").exists()
    with pytest.raises(ConfigurationError):
        SimpleVectorStore(read_only=True)
    with pytest.raises(ConfigurationError):
        SimpleVectorStore(tmp_path / "a.db", memory="name")
    SimpleVectorStore(tmp_path / "text2.db").close()  # a failed open leaves no lock behind
    other.unlink()
    SimpleVectorStore(other).close()


def test_a_mistyped_path_makes_no_file_when_nothing_may_be_made(tmp_path: Path) -> None:
    # D5
    path = tmp_path / "s.db"
    with SimpleVectorStore(path, create=False) as store:
        for use in (store.count, lambda: store.add([Document(None, vector=[1.0])])):
            with pytest.raises(CollectionNotFoundError):
                use()
        assert store.list_collections() == []
        store.drop_collection()
        assert list(tmp_path.iterdir()) == []
        with SimpleVectorStore(path) as writer:
            writer.add([Document(None, id="1", vector=[1.0])])
            assert store.count() == 1
        store.add([Document(None, id="2", vector=[1.0])])
    with SimpleVectorStore(path, create=False) as store:
        assert store.count() == 2


def test_save_and_load(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    with SimpleVectorStore(metric="euclidean", collection="c") as store:
        with pytest.raises(CollectionNotFoundError):
            store.save(tmp_path / "none.db")
        store.add(
            [Document(f"t{n}", id=str(n), metadata={"n": n}, vector=rng.normal(size=5)) for n in range(300)]
        )
        store.delete(filter="n < 100")
        store.save(tmp_path / "saved.db")
        store.save(tmp_path / "saved.db")
        request = SearchRequest(vector=rng.normal(size=5), top_k=10)
        with SimpleVectorStore.load(tmp_path / "saved.db", collection="c") as loaded:
            assert loaded.count() == 200
            assert loaded.similarity_search(request) == store.similarity_search(request)
            loaded.delete_all()
        with SimpleVectorStore(tmp_path / "saved.db", collection="c") as opened:
            assert opened.count() == 200
            assert opened.similarity_search(request) == store.similarity_search(request)
        with pytest.raises(CollectionNotFoundError):
            SimpleVectorStore.load(tmp_path / "saved.db")
    # SQLite's own files may stay beside it; nothing else does.
    assert {name.partition("-")[0] for name in (path.name for path in tmp_path.iterdir())} == {
        "saved.db",
        "saved.db.lock",
    }


def test_one_large_write_is_split_and_still_whole(tmp_path: Path) -> None:
    # D6: more documents than one segment takes
    rng = np.random.default_rng(1)
    vectors = rng.normal(size=(25_000, 3)).astype(np.float32)
    with SimpleVectorStore(tmp_path / "s.db") as store:
        store.add([Document(None, id=f"{n:05}", vector=vectors[n]) for n in range(25_000)])
    with SimpleVectorStore(tmp_path / "s.db", read_only=True) as store:
        assert store.count() == 25_000
        assert sum(1 for _ in store.scan()) == 25_000


def document(name: str, *vector: float) -> Document:
    return Document(None, id=name, vector=list(vector or (1.0,)))


def log_of(store: SimpleVectorStore) -> Any:
    database = store._database  # pyright: ignore[reportPrivateUsage]
    assert database is not None
    assert database.log is not None
    return database.log


# --- one writer -------------------------------------------------------------------------------------------

OPEN_AND_ADD = """
    import sys
    from entrepot import Document, SimpleVectorStore, StoreInUseError
    try:
        with SimpleVectorStore(sys.argv[1]) as store:
            store.add([Document(None, id="other", vector=[1.0])])
            print("added")
    except StoreInUseError as error:
        print(error.message)
"""


def test_a_link_is_no_way_around_the_lock(tmp_path: Path) -> None:
    path, link, second = tmp_path / "s.db", tmp_path / "link.db", tmp_path / "second.db"
    with SimpleVectorStore(path) as store:
        store.add([document("1")])
        link.symlink_to(path)
        assert in_another_process(OPEN_AND_ADD, link) == "another process writes to 's.db'"
        with SimpleVectorStore(link) as same:
            same.add([document("2")])
        assert store.count() == 2
        second.hardlink_to(path)
        assert "hard links" in in_another_process(OPEN_AND_ADD, second)
    # SQLite keeps a WAL for each name, so neither is safe to write while both are there.
    for name in (path, second, link):
        with pytest.raises(StoreInUseError, match="2 names"):
            SimpleVectorStore(name)
    with SimpleVectorStore(second, read_only=True) as reader:
        assert reader.count() == 2
    second.unlink()
    assert in_another_process(OPEN_AND_ADD, link) == "added"
    with SimpleVectorStore(path) as store:
        assert store.count() == 3


def test_a_forked_child_keeps_no_lock_and_may_close_what_it_inherited(tmp_path: Path) -> None:
    # E5
    code = """
        import os, sys
        from entrepot import Document, ForkError, SimpleVectorStore
        path = sys.argv[1]
        store = SimpleVectorStore(path)
        store.add([Document(None, id="1", vector=[1.0])])
        to_child, to_parent = os.pipe(), os.pipe()
        if os.fork() == 0:
            os.close(to_child[1])
            with store:
                try:
                    store.count()
                except ForkError:
                    os.write(to_parent[1], b"r")  # refused
            os.write(to_parent[1], b"c")  # closed
            os.read(to_child[0], 1)
            with SimpleVectorStore(path) as own:
                os.write(to_parent[1], b"2" if own.count() == 2 else b"?")
            os._exit(0)
        os.close(to_parent[1])
        print(os.read(to_parent[0], 1).decode(), os.read(to_parent[0], 1).decode())
        store.add([Document(None, id="2", vector=[1.0])])  # the child's close took nothing from here
        store.close()
        SimpleVectorStore(path).close()  # while the child lives
        os.write(to_child[1], b"x")
        print(os.read(to_parent[0], 1).decode())
        os.wait()
    """
    assert in_another_process(code, tmp_path / "s.db").split() == ["r", "c", "2"]


def test_the_parents_lock_survives_its_childs_end(tmp_path: Path) -> None:
    # E5
    code = """
        import os, subprocess, sys
        from entrepot import SimpleVectorStore
        with SimpleVectorStore(sys.argv[1]) as store:
            if os.fork() == 0:
                store.close()
                os._exit(0)
            os.wait()
            print(subprocess.run([sys.executable, "-c", sys.argv[2], sys.argv[1]], capture_output=True, text=True).stdout)
    """
    said = in_another_process(code, tmp_path / "s.db", textwrap.dedent(OPEN_AND_ADD))
    assert said == "another process writes to 's.db'"


# --- a collection that was made anew ------------------------------------------------------------------------


@pytest.mark.parametrize("other", [{"dimension": 4}, {"metric": "euclidean", "dimension": 2}])
def test_what_was_prepared_for_another_collection_never_reaches_the_file(
    tmp_path: Path, other: dict[str, Any]
) -> None:
    # D5
    path = tmp_path / "s.db"
    stale, fresh = SimpleVectorStore(path), SimpleVectorStore(path, **other)
    stale.add([document("old", 1.0, 0.0)])
    fresh.drop_collection()
    kept = np.eye(other["dimension"], dtype=np.float32)[0]
    fresh.add([Document(None, id="kept", vector=kept)])
    record = Record("z", None, {}, b"\x80", np.array([0.0, 1.0], dtype=np.float32))
    with pytest.raises(CollectionMismatchError, match="made anew"):
        stale._write([record], "replace")  # pyright: ignore[reportPrivateUsage]
    assert stale._info is None  # pyright: ignore[reportPrivateUsage]
    assert stale.count() == 1
    fresh.update(["kept"], set={"a": 1})
    stale.close()
    fresh.close()
    with SimpleVectorStore(path) as again:
        assert [found.id for found in again.scan()] == ["kept"]
        stats = again.stats()
        assert (stats.dimension, stats.metric) == (other["dimension"], other.get("metric", Metric.COSINE))


def test_what_cannot_be_shown_is_not_committed(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    with SimpleVectorStore(path) as store:
        store.add([document("1", 1.0, 0.0)])
        store._info = None  # pyright: ignore[reportPrivateUsage]
        record = Record("z", None, {}, b"\x80", np.ones(3, dtype=np.float32))
        with pytest.raises(CollectionMismatchError, match="dimension 2"):
            store._write([record], "replace")  # pyright: ignore[reportPrivateUsage]
    with SimpleVectorStore(path) as store:
        assert store.count() == 1


# --- readers ------------------------------------------------------------------------------------------------


def test_writes_refused_by_a_reader_do_not_block_its_reads(tmp_path: Path) -> None:
    # in a process of its own, which can be left if its threads wait for each other
    code = """
        import os, sys, threading
        from entrepot import Document, SimpleVectorStore, UnsupportedError
        writer = SimpleVectorStore(sys.argv[1])
        writer.add([Document(None, id="1", vector=[1.0])])
        reader = SimpleVectorStore(sys.argv[1], read_only=True)
        reader.count()
        refused, done = [], threading.Event()

        def write():
            while not done.is_set():
                try:
                    reader.add([Document(None, id="2", vector=[1.0])])
                except UnsupportedError:
                    refused.append(1)

        def commit():  # each commit lets the reader look for more
            while not done.is_set():
                writer.add([Document(None, id="1", vector=[1.0])])

        def read():
            while len(refused) < 500:
                reader.count()
            done.set()

        for work in (write, commit, read):
            threading.Thread(target=work, daemon=True).start()
        print("done" if done.wait(20) else "stuck", flush=True)
        os._exit(0)
    """
    assert in_another_process(code, tmp_path / "s.db") == "done"


def test_a_reader_sees_one_instant_when_the_log_is_rewritten_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # S7: between what the reader learns of the collection and its segments, the writer deletes and compacts
    path = tmp_path / "s.db"
    with SimpleVectorStore(path) as writer, SimpleVectorStore(path, read_only=True) as reader:
        writer.add([document("marker")])
        assert reader.count() == 1
        log = log_of(reader)
        stored = log.stored

        def meanwhile(name: str) -> object:
            found = stored(name)
            monkeypatch.undo()
            writer.delete(["marker"])
            writer.add([document("late")])
            for start in range(0, 2200, 1100):  # the second replaces the first: the log is rewritten
                writer.add([document(f"{n - start}") for n in range(start, start + 1100)])
            writer.delete(["late"])
            return found

        monkeypatch.setattr(log, "stored", meanwhile)
        writer.add([document("more")])
        ids = {found.id for found in reader.scan()}
        assert ids == {"marker", "more"}
        assert {found.id for found in reader.get(["marker", "late", "1099"])} == {"1099"}


def test_a_reader_notices_a_collection_made_anew(tmp_path: Path) -> None:
    # D5: of the same dimension and metric, as the first of the file
    path = tmp_path / "s.db"
    with SimpleVectorStore(path) as writer, SimpleVectorStore(path, read_only=True) as reader:
        writer.add([document("old")])
        assert reader.count() == 1
        writer.drop_collection()
        writer.add([document("new")])
        assert [found.id for found in reader.scan()] == ["new"]


# --- what SQLite does not take in one row ---------------------------------------------------------------------


def rows_of(path: Path) -> int:
    connection = sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)
    try:
        return int(connection.execute("SELECT count(*) FROM segment WHERE ids IS NOT NULL").fetchone()[0])
    finally:
        connection.close()


def test_writes_and_compactions_larger_than_a_row_are_split(tmp_path: Path) -> None:
    # D6, E4
    path = tmp_path / "s.db"
    rng = np.random.default_rng(3)
    vectors = rng.normal(size=(1200, 64)).astype(np.float32)
    with SimpleVectorStore(path) as store, SimpleVectorStore(path, create=False) as other:
        store.create_collection(dimension=64)
        connection = log_of(store)._connection
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 100_000)  # each write has 307,200 bytes of vectors
        with SimpleVectorStore(path, read_only=True) as reader:
            for text in ("a", "b", "c"):
                store.add([Document(text * (n % 90), id=f"{n}", vector=vectors[n]) for n in range(1200)])
                assert reader.count() == other.count() == 1200
            assert rows_of(path) > 1
        assert store.stats().details["dead_rows"] == 0  # the last one was followed by a compaction
        store.delete([f"{n}" for n in range(600)])
        with pytest.raises(SizeLimitError):
            store.add([Document("x" * 200_000, id="large", vector=vectors[0])])
        store.add([Document("new", id="new", vector=vectors[0])])
    with SimpleVectorStore(path) as store:
        assert store.count() == 601
        (found,) = store.get(["1199"], include=["text", "vector"])
        assert found.text == "c" * (1199 % 90)
        assert found.vector == pytest.approx(vectors[1199] / np.linalg.norm(vectors[1199]), abs=1e-6)


def test_a_failed_compaction_does_not_fail_the_write_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    # E4
    path = tmp_path / "s.db"
    with SimpleVectorStore(path) as store:
        store.add([document(f"{n}") for n in range(1100)])

        def full(*_: object) -> int:
            msg = "the disk is full"
            raise BackendError(msg)

        monkeypatch.setattr(log_of(store), "rewrite", full)
        store.delete([f"{n}" for n in range(1050)])
        store.add([document("new")])
        assert "could not be compacted" in caplog.text
        assert store.count() == 51
        assert store.stats().details["dead_rows"] == 0
    with SimpleVectorStore(path) as store:
        assert store.count() == 51


# --- files ----------------------------------------------------------------------------------------------------


def test_save_takes_the_place_of_a_file_whose_writer_crashed(tmp_path: Path) -> None:
    # D4
    path = tmp_path / "s.db"
    code = """
        import os, sys
        from entrepot import Document, SimpleVectorStore
        store = SimpleVectorStore(sys.argv[1])
        for n in range(50):
            store.add([Document("x" * 5000, id=f"{n}", vector=[1.0, n])])
        os._exit(0)
    """
    in_another_process(code, path)
    assert path.with_name("s.db-wal").stat().st_size > 0
    with SimpleVectorStore() as memory:
        memory.add([document("saved", 1.0, 2.0, 3.0)])
        memory.save(path)
    with SimpleVectorStore(path) as store:
        assert [found.id for found in store.scan()] == ["saved"]
        assert store.stats().dimension == 3


def test_save_leaves_a_file_alone_that_somebody_writes_to(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    code = """
        import sys
        from entrepot import Document, SimpleVectorStore, StoreInUseError
        with SimpleVectorStore() as store:
            store.add([Document(None, vector=[1.0])])
            try:
                store.save(sys.argv[1])
            except StoreInUseError as error:
                print(error.message)
    """
    with SimpleVectorStore(path) as store:
        store.add([document("1")])
        assert in_another_process(code, path) == "another process writes to 's.db'"
        with pytest.raises(StoreInUseError, match="this process"):
            store.save(path)
        store.add([document("2")])
    with SimpleVectorStore(path) as store:
        assert store.count() == 2


def test_save_to_where_no_file_can_be(tmp_path: Path) -> None:
    # E1
    with SimpleVectorStore() as store:
        store.add([document("1")])
        with pytest.raises(UnreachableError, match="No such file") as caught:
            store.save(tmp_path / "nodir" / "x.db")
        assert isinstance(caught.value.__cause__, OSError)
        for path in (tmp_path, ".", f"{tmp_path}/a\0b.db", f"{tmp_path}/\ud800.db"):
            with pytest.raises(ConfigurationError):
                store.save(path)
    assert list(tmp_path.iterdir()) == []
    for name in ("a\0b.db", "\ud800.db"):
        with pytest.raises(ConfigurationError):
            SimpleVectorStore(tmp_path / name)


@pytest.mark.parametrize("replaced", [False, True])
def test_a_file_that_was_taken_away_takes_no_writes(tmp_path: Path, *, replaced: bool) -> None:
    # E1: a write into it would be acknowledged and lost
    path = tmp_path / "s.db"
    with SimpleVectorStore(path) as store:
        store.add([document("1")])
        path.unlink()
        if replaced:
            path.write_bytes(b"")
        for use in (
            store.stats,
            lambda: store.add([document("2")]),
            lambda: store.update(["1"], set={"a": 1}),
            lambda: store.delete(["1"]),
            store.drop_collection,
        ):
            with pytest.raises(UnreachableError) as caught:
                use()
            assert not caught.value.retryable
            assert caught.value.outcome == "not_done"
        assert store.count() == 1
    for left in tmp_path.iterdir():
        left.unlink()
    SimpleVectorStore(path).close()
