"""The local mode's side effects: what is on the disk when an operation returned, and the garbage collector."""

from __future__ import annotations

import asyncio
import gc
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from entrepot import Document
from entrepot.errors import BatchError
from entrepot_qdrant import disk

if TYPE_CHECKING:
    from pathlib import Path

    from plugins.qdrant.tests.conftest import MakeLocal

    from entrepot_qdrant import QdrantLocalVectorStore


def documents(count: int, start: int = 0) -> list[Document]:
    return [
        Document(f"word{n}", id=f"{n:05}", metadata={"n": n}, vector=[1.0, float(n)])
        for n in range(start, start + count)
    ]


def connections(store: QdrantLocalVectorStore) -> list[Any]:
    """Return what the client writes through."""
    local: Any = vars(store.native_client)["_client"]
    return [collection.storage.storage for collection in local.collections.values()]


# --- the disk ---------------------------------------------------------------------------------------------


def test_each_call_is_one_commit_that_the_disk_has(make: MakeLocal, tmp_path: Path) -> None:
    # D2, D7: what returned is there after a power cut, by SQLite's own settings
    store = make(path=str(tmp_path))
    store.add(documents(1))
    (connection,) = connections(store)
    assert connection.execute("PRAGMA synchronous").fetchone() == (2,)  # FULL
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)
    said: list[str] = []
    connection.set_trace_callback(said.append)
    for call in (
        lambda: store.add(documents(50)),
        lambda: store.update(["00001", "00002"], set={"m": 1}),
        lambda: store.delete(["00001", "00002"]),
        lambda: store.delete(filter="n > 40"),
    ):
        said.clear()
        call()
        assert said.count("COMMIT") == 1
        assert not connection.in_transaction
    said.clear()
    store.count("n > 3")
    assert said == []


def test_what_returned_outlives_the_process(tmp_path: Path, make: MakeLocal) -> None:
    # D2, D7: it is killed between two operations, and the folder is as it was then
    code = (
        "import sys, time\nfrom entrepot import Document, open_vector_store\n"
        "store = open_vector_store('qdrant-local:///' + sys.argv[1])\n"
        "store.add([Document('x', id=str(n), vector=[1.0, 2.0]) for n in range(120)])\n"
        "store.delete(['3'])\nstore.update(['4'], set={'m': 1})\nprint('done', flush=True)\ntime.sleep(60)\n"
    )
    folder = tmp_path / "one"
    with subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", code, str(folder)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "done\n"
        shutil.copytree(folder, tmp_path / "copy")  # no journal is needed to read it
        os.kill(process.pid, signal.SIGKILL)
    for name in ("one", "copy"):
        store = make(path=str(tmp_path / name))
        assert store.count() == 119
        assert [each.metadata for each in store.get(["3", "4"])] == [{"m": 1}]


def test_what_the_disk_did_not_take_is_not_read_either(
    make: MakeLocal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # E4: the error says so, and the store goes on with what is on the disk
    store, other = make(path=str(tmp_path)), make(path=str(tmp_path))
    store.add(documents(2))
    full = iter([True])

    def commit(_self: object) -> None:
        if next(full, False):
            raise sqlite3.OperationalError("disk is full hunter2")

    monkeypatch.setattr(disk._Connection, "commit", commit, raising=False)  # pyright: ignore[reportPrivateUsage]
    with pytest.raises(BatchError) as caught:
        store.add(documents(3, start=2))
    assert list(caught.value.unknown) == ["00002", "00003", "00004"]
    assert "hunter2" not in str(caught.value)
    monkeypatch.undo()
    assert other.count() == store.count() == 2
    store.add(documents(1, start=2))
    assert other.count() == 3


def test_a_client_without_its_databases_commits_by_itself(tmp_path: Path) -> None:
    # where the client has changed within, nothing is held back
    client = disk.open_folder(tmp_path)
    vars(client)["_client"], held = object(), vars(client)["_client"]
    with disk.one_commit(client):
        pass
    vars(client)["_client"] = held
    client.close()


# --- the garbage collector ---------------------------------------------------------------------------------


def test_the_garbage_collector_is_left_alone(make: MakeLocal, monkeypatch: pytest.MonkeyPatch) -> None:
    # it is the program's, in sync and async operations
    store = make()
    store.add(documents(1))
    client: Any = store.native_client
    seen: list[object] = []
    plain = client.count

    def noted(**arguments: Any) -> Any:
        seen.append((gc.isenabled(), gc.get_threshold(), gc.get_freeze_count()))
        return plain(**arguments)

    monkeypatch.setattr(client, "count", noted)
    before = (gc.isenabled(), gc.get_threshold(), gc.get_freeze_count())
    store.count()
    asyncio.run(store.acount())
    assert seen == [before, before]
