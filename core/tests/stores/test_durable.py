"""The embedded store in a file: what returned is there, whatever happens; one writer, many readers."""

from __future__ import annotations

import random
import signal
import sqlite3
import subprocess
import sys
import textwrap
from typing import TYPE_CHECKING

import numpy as np
import pytest

from entrepot import Document, SearchRequest, SimpleVectorStore
from entrepot.errors import (
    CollectionNotFoundError,
    ConfigurationError,
    CorruptDataError,
    UnreachableError,
    UnsupportedError,
)

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
