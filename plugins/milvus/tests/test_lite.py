"""Milvus Lite: one engine for the stores of a process, and nothing comes between."""

# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio
import logging
import os
import stat
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pymilvus import AsyncMilvusClient, MilvusClient  # type: ignore[import-untyped]

from entrepot import Document, F, SearchRequest
from entrepot.errors import (
    BackendError,
    ClosedError,
    CollectionMismatchError,
    CollectionNotFoundError,
    DuplicateIdError,
    OutsideViewError,
    StoreInUseError,
)
from entrepot_milvus import MilvusLiteVectorStore, MilvusVectorStore, lite

if TYPE_CHECKING:
    from plugins.milvus.tests.servers import MakeLite


def document(name: str, **metadata: Any) -> Document:
    return Document(f"text of {name}", id=name, metadata=metadata, vector=[1.0, float(len(name))])


def test_stores_on_one_folder_share_an_engine(make_lite: MakeLite, tmp_path: Path) -> None:
    # E5, S7
    one, two = make_lite(), make_lite(path=str(tmp_path / "." / "lite.db"))
    assert one.native_client is two.native_client
    one.add([document("a", n=1)])
    assert [found.id for found in two.scan(F.n == 1)] == ["a"]
    one.close()
    two.add([document("b", n=2)])
    assert two.count() == 2
    two.close()
    assert not lite._shared
    with pytest.raises(ClosedError):
        two.count()


def test_what_was_written_is_there_when_the_folder_is_opened_again(make_lite: MakeLite) -> None:
    # D4
    store = make_lite()
    store.add([document("a", n=1)])
    store.close()
    again = make_lite()
    assert [(found.id, found.text, found.metadata) for found in again.scan(F.n == 1)] == [
        ("a", "text of a", {"n": 1})
    ]
    assert [hit.id for hit in again.similarity_search(SearchRequest(vector=[1.0, 1.0]))] == ["a"]


def test_a_folder_belongs_to_one_process(make_lite: MakeLite, tmp_path: Path) -> None:
    # E2
    store = make_lite()
    store.add([document("a")])
    code = (
        "import sys\n"
        "from entrepot.errors import StoreInUseError\n"
        "from entrepot_milvus import MilvusLiteVectorStore\n"
        "try:\n"
        "    MilvusLiteVectorStore(path=sys.argv[1]).connect()\n"
        "except StoreInUseError:\n"
        "    sys.exit(7)\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "lite.db")]
    assert subprocess.run(command, check=False, timeout=60).returncode == 7
    assert store.count() == 1


def test_the_socket_is_this_users_alone(make_lite: MakeLite) -> None:
    # E2: no port that others of the machine could reach
    before = set(Path(tempfile.gettempdir()).glob("entrepot-milvus-*"))
    store = make_lite()
    [folder] = set(Path(tempfile.gettempdir()).glob("entrepot-milvus-*")) - before
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert folder.stat().st_uid == os.getuid()
    store.close()
    assert not folder.exists()


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    # E1
    (tmp_path / "file").write_text("x")
    with pytest.raises(BackendError):
        MilvusLiteVectorStore(path=str(tmp_path / "file" / "lite.db")).connect()
    with pytest.raises(StoreInUseError), _locked(tmp_path / "two.db"):
        MilvusLiteVectorStore(path=str(tmp_path / "two.db")).connect()


class _locked:  # noqa: N801 - a context manager
    def __init__(self, path: Path) -> None:
        self.path = path

    def __enter__(self) -> None:
        from milvus_lite.db import MilvusLite  # type: ignore[import-untyped]

        self.database = MilvusLite(str(self.path))

    def __exit__(self, *_: object) -> None:
        self.database.close()


def test_a_client_of_the_users_stays_open(tmp_path: Path) -> None:
    # E5
    with make_client(tmp_path) as client:
        store = MilvusLiteVectorStore(client=client).connect()
        store.add([document("a", n=1)])
        other = MilvusLiteVectorStore(client=client).connect()
        assert other.count(F.n == 1) == 1
        store.close()
        other.close()
        assert client.list_collections() == ["default"]
        with pytest.raises(ValueError, match="Lite"):
            MilvusVectorStore(client=client).connect()


class make_client:  # noqa: N801 - a context manager
    def __init__(self, folder: Path) -> None:
        self.path = str(folder / "own.db")

    def __enter__(self) -> Any:
        self.client: Any = MilvusClient(self.path, dedicated=True)
        return self.client

    def __exit__(self, *_: object) -> None:
        from milvus_lite.server_manager import server_manager_instance  # type: ignore[import-untyped]

        self.client.close()
        server_manager_instance.release_server(self.path)


def test_writes_of_views_are_one_step(make_lite: MakeLite) -> None:
    # T2: of many threads that claim an id through views of their own, one has it
    store = make_lite()
    store.create_collection(dimension=2)
    views = [store.where(F.tenant == f"t{n}") for n in range(8)]
    refused: list[int] = []

    def claim(n: int) -> None:
        try:
            views[n].add([document("contested")])
        except OutsideViewError:
            refused.append(n)

    threads = [threading.Thread(target=claim, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    [found] = store.get(["contested"])
    [winner] = {f"t{n}" for n in range(8)} - {f"t{n}" for n in refused}
    assert found.metadata["tenant"] == winner


def test_ids_are_inserted_once(make_lite: MakeLite) -> None:
    # D2: of many threads one inserts
    store = make_lite()
    store.create_collection(dimension=2)
    done: list[int] = []

    def insert(n: int) -> None:
        try:
            store.add([document("a", n=n)], if_exists="error")
        except DuplicateIdError:
            return
        done.append(n)

    threads = [threading.Thread(target=insert, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    [found] = store.get(["a"])
    assert done == [found.metadata["n"]]


def test_a_collection_that_was_made_anew_is_noticed(make_lite: MakeLite) -> None:
    # D5
    one, two = make_lite(metric="euclidean"), make_lite()
    one.add([document("a")])
    two.drop_collection()
    with pytest.raises(CollectionNotFoundError):
        one.count()
    two.add([document("a"), document("b")])
    assert one._place is None
    assert two.count() == 2
    with pytest.raises(CollectionMismatchError):
        one.count()


def test_equal_vectors_tie_exactly_and_by_id(make_lite: MakeLite) -> None:
    # S1: the engine's own scores of equal vectors differ
    store = make_lite(metric="cosine")
    store.add([Document(None, id=f"{n:03}", vector=[0.3, 0.1, 0.7]) for n in range(150)])
    store.add([Document(None, id=f"near{n}", vector=[0.3, 0.1, 0.7 + n / 50]) for n in range(1, 30)])
    for k in (1, 7, 100, 149):
        hits = store.similarity_search(SearchRequest(vector=[1.0, 0.0, 2.0], top_k=k, exact=True))
        scores = [hit.score or 0.0 for hit in hits]
        assert scores == sorted(scores, reverse=True)
        ties = [hit.id for hit in hits if not hit.id.startswith("near")]
        assert ties == [f"{n:03}" for n in range(len(ties))]
        assert len({hit.score for hit in hits if not hit.id.startswith("near")}) <= 1


def test_exact_searches_of_an_approximate_index(make_lite: MakeLite) -> None:
    # S6
    store = make_lite(index="hnsw", metric="euclidean")
    store.add([Document(None, id=f"{n:03}", metadata={"n": n}, vector=[1.0, float(n)]) for n in range(300)])
    assert store.capabilities.ann
    request = SearchRequest(vector=[1.0, 100.2], top_k=5, exact=True, filter=F.n > 100)
    assert [hit.id for hit in store.similarity_search(request)] == ["101", "102", "103", "104", "105"]


def test_words_are_ranked(make_lite: MakeLite) -> None:
    # S9
    store = make_lite()
    texts = {"1": "red fox", "2": "red red red fish", "3": "blue_fish", "4": "", "5": "nothing of it"}
    store.add([Document(text, id=name, vector=[1.0, 1.0]) for name, text in texts.items()])
    hits = store.similarity_search("FISH red", mode="fulltext", top_k=10)
    assert {hit.id for hit in hits} == {"1", "2", "3"}
    assert hits[0].id == "2"
    ranks = [hit.rank_score or 0.0 for hit in hits]
    assert ranks == sorted(ranks, reverse=True)
    assert store.similarity_search("... !", mode="fulltext") == []


def test_failures_are_not_logged_with_what_was_asked(
    make_lite: MakeLite, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    # O1
    store = make_lite()
    with caplog.at_level(logging.DEBUG), pytest.raises(CollectionNotFoundError):
        store.count(F.secret == "hunter2")
    assert "nope" not in caplog.text
    assert "Traceback" not in caplog.text + capfd.readouterr().err


def test_async_clients_are_no_clients_of_lite() -> None:
    client: Any = AsyncMilvusClient.__new__(AsyncMilvusClient)
    with pytest.raises(ValueError, match="MilvusClient"):
        MilvusLiteVectorStore(client=client)


def test_async_operations_go_through_threads(make_lite: MakeLite) -> None:
    # E3
    async def twins() -> int:
        store = make_lite()
        await store.aadd([document(str(n), n=n) for n in range(20)])
        counts = await asyncio.gather(*(store.acount(F.n < n) for n in range(20)))
        await store.aclose()
        return sum(counts)

    assert asyncio.run(twins()) == sum(range(20))
