# pyright: reportPrivateUsage=false
"""What only the engine can show: conditional writes, slots, exact searches, limits. Needs a server."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from plugins.cassandra.tests.servers import KEYSPACE, target

from entrepot import Document, F, SearchRequest
from entrepot.errors import (
    BatchError,
    CollectionNotFoundError,
    ConfigurationError,
    DuplicateIdError,
    OutsideViewError,
    SizeLimitError,
    VectorError,
)
from entrepot.messages import UserMessage
from entrepot_cassandra import CassandraVectorStore, changing, conversations, reading
from entrepot_cassandra.driver import Cluster

if TYPE_CHECKING:
    from plugins.cassandra.tests.servers import Make, MakeMemory

pytestmark = pytest.mark.slow  # there is no server but in a container

VECTOR = [1.0, 1.0]
HOSTILE = [
    "'", "''", '"', "`", "\\", ";", "--", "/*", "*", "%", "_", "?", ":x", "$$", "{", "}", "[", "]", "(", ")",
    "x'; DROP TABLE x; --", '"; DROP KEYSPACE x; --', "NULL", "null", "true", "token(id)", "ALLOW FILTERING",
    "a b", " a", "a ", "A", "a", "a.b", "é", "e\u0301", "\U0001f600", "\uffff", "x" * 512, "\U0001f600" * 512,
]  # fmt: skip


def documents(count: int, **metadata: Any) -> list[Document]:
    return [Document(None, id=f"{n:03}", metadata={"n": n, **metadata}, vector=VECTOR) for n in range(count)]


def test_whatever_a_name_or_a_value_holds_is_data(make: Make, name: str) -> None:
    # F10, D1, D3: a neighbour must not notice
    canary = make(collection=f"{name}-canary")
    canary.add([Document("quiet", id="x", metadata={"k": 1}, vector=VECTOR)])
    store = make()
    store.add(
        [
            Document(
                text, id=text, metadata={"value": text, "list": [text, "shared"], text: n}, vector=VECTOR
            )
            for n, text in enumerate(HOSTILE)
        ]
    )
    assert [found.id for found in store.get(HOSTILE)] == HOSTILE
    for n, text in enumerate(HOSTILE):
        (found,) = store.scan((F.value == text) & (F.list == text))
        assert (found.id, found.text) == (text, text)
        assert [one.id for one in store.scan((F[text] == n) & (F[text] >= n), include=[])] == [text]
        assert store.count(F.value <= text) == sum(other <= text for other in HOSTILE)
    assert canary.count("k == 1") == canary.count() == 1


def test_a_key_that_gets_a_slot_later_is_absent_in_older_documents(make: Make) -> None:
    # F1: nothing is written anew
    store = make(slots=2)
    store.add(documents(20, first=1))
    assert set(store._here().keys) == {"n", "first"}
    other = make()
    other.add([Document(None, id="new", metadata={"late": 5}, vector=VECTOR)])
    for asked in (store, other, make()):
        assert asked.count("late is null") == 20
        assert asked.count("late > 4") == 1
        assert asked.count("not (late > 4)") == 20
        assert asked.count("n is null") == 1


def test_writers_with_old_catalogues_claim_each_key_once(make: Make) -> None:
    # D2: a document never lacks a slot that its key has
    root = make()
    root.create_collection(dimension=2)
    stores = [make() for _ in range(3)]

    def fill(number: int) -> None:
        for part in range(6):
            keys = {f"k{(number + part + at) % 9}": number * 100 + part for at in range(3)}
            stores[number].add([Document(None, id=f"{number}-{part}", metadata=keys, vector=VECTOR)])

    threads = [threading.Thread(target=fill, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    everything = [found.metadata for found in root.scan()]
    fresh = make()
    assert len(everything) == 18
    for key in (f"k{at}" for at in range(9)):
        for bound in (0, 100, 103, 205):
            wanted = sum(metadata.get(key, -1) >= bound for metadata in everything)
            assert fresh.count(F[key] >= bound) == wanted
    slots = list(fresh._here().keys.values())
    assert sorted(slots) == list(range(8))


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
def test_exact_searches_are_those_of_numpy(make: Make, rng: np.random.Generator, metric: str) -> None:
    # S1, S2, S6: beyond the 1,000 that the index gives as well
    vectors = rng.normal(size=(1200, 8)).astype(np.float32)
    if metric == "cosine":
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    vectors[500:520] = vectors[0]
    store = make(metric=metric)
    store.add([Document(None, id=f"{n:04}", metadata={"n": n}, vector=vectors[n]) for n in range(1200)])
    query = vectors[0].astype(np.float64)
    if metric == "cosine":
        score = (1.0 + vectors.astype(np.float64) @ query) / 2.0
    else:
        score = 1.0 / (1.0 + ((vectors.astype(np.float64) - query) ** 2).sum(axis=1))
    for k, wanted in ((5, 1200), (1001, 1200), (30, 510), (3, 2)):
        order = sorted(range(wanted), key=lambda n: (-round(float(score[n]), 6), n))
        hits = store.similarity_search(
            SearchRequest(vector=vectors[0], top_k=k, exact=k <= 1000, filter=F.n < wanted)
        )
        assert [hit.score for hit in hits] == pytest.approx([score[n] for n in order[:k]], abs=2e-6)
        tied = [f"{n:04}" for n in order[:k] if abs(score[n] - score[order[0]]) < 1e-7]
        assert [hit.id for hit in hits][: len(tied)] == tied


def test_one_dimension_will_do_under_every_metric(make: Make, name: str) -> None:
    # D9: the engine refuses a cosine of one dimension
    for metric in ("cosine", "dot", "euclidean"):
        store = make(collection=f"{name}-{metric}", metric=metric)
        store.add([Document(None, id=str(sign), vector=[float(sign)]) for sign in (-1, 1)])
        hits = store.similarity_search(SearchRequest(vector=[1.0], top_k=2))
        assert [hit.id for hit in hits] == ["1", "-1"]
        assert [hit.score for hit in hits] == pytest.approx([1.0, 0.2 if metric == "euclidean" else 0.0])


def test_a_vector_that_the_engine_could_not_read_again_is_refused(make: Make) -> None:
    # D9
    store = make(metric="euclidean", dimension=2)
    with pytest.raises((VectorError, BatchError)):
        store.add([Document(None, id="long", vector=[3e38, 3e38])])
    store.add([Document(None, id="short", vector=VECTOR)])
    assert store.count() == 1


def test_a_collection_made_anew_is_not_the_old_one(make: Make) -> None:
    # D5
    old, new = make(), make()
    old.add(documents(3))
    new.drop_collection()
    new.add([Document(None, id="other", vector=VECTOR)])
    with pytest.raises(CollectionNotFoundError):
        old.count()
    for call in (
        lambda: old.add(documents(3)),
        lambda: old.update(["000"], set={"k": 1}),
        lambda: old.delete(["000"]),
        lambda: old.count("n > 1"),
    ):
        old.count()
        old._place = old._here()._replace(
            table="e_gone_0123456789abcdef"
        )  # what one knows that has not noticed
        with pytest.raises((CollectionNotFoundError, BatchError)):
            call()
    assert [found.id for found in old.scan()] == ["other"]


def test_a_missing_keyspace_is_not_made_by_a_typing_error(server: str) -> None:
    # D5, E2
    options: dict[str, Any] = {
        **target(server),
        "keyspace": "entrepot_tests_typo",
        "create_keyspace": False,
    }
    with pytest.raises(ConfigurationError, match="no keyspace"):
        CassandraVectorStore(**options).connect()


def test_updates_at_once_lose_nothing(make: Make) -> None:
    # D10: each change names the state that it was made of
    store = make()
    store.add([Document("text", id="1", metadata={f"k{n}": 0 for n in range(4)}, vector=VECTOR)])

    def count_up(key: str) -> None:
        for value in range(1, 6):
            assert store.update(["1"], set={key: value}) == ["1"]

    threads = [threading.Thread(target=count_up, args=(f"k{n}",)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (found,) = store.get(["1"], include=["text", "metadata"])
    assert found.metadata == {f"k{n}": 5 for n in range(4)}
    assert found.text == "text"


def test_upserts_of_one_document_at_once_leave_one_of_them_whole(make: Make) -> None:
    # D2: plain writes of one microsecond would mix their columns
    store = make()
    store.create_collection(dimension=2)
    mixed: list[object] = []
    over = threading.Event()

    def write(number: int) -> None:
        for part in range(15):
            name = f"{number}-{part}"
            store.add([Document(name, id="1", metadata={"name": name, name: True}, vector=VECTOR)])

    def look() -> None:
        while not over.is_set():
            found = store.get(["1"])
            mixed.extend(one for one in found if one.metadata != {"name": one.text, str(one.text): True})

    writers = [threading.Thread(target=write, args=(number,)) for number in range(3)]
    reader = threading.Thread(target=look)
    for thread in (reader, *writers):
        thread.start()
    for thread in writers:
        thread.join()
    over.set()
    reader.join()
    assert mixed == []
    (found,) = store.get(["1"])
    assert store.count(F.name == found.text) == 1
    assert store.count("name is not null") == 1


Meddle = Callable[[Callable[[], object]], None]


@pytest.fixture
def meddle(monkeypatch: pytest.MonkeyPatch) -> Meddle:
    """Have another writer come in, once, between what a write reads and what it then writes."""
    real = reading.stored
    pending: list[Callable[[], object]] = []

    def meddled(*given: Any) -> Any:
        found = yield from real(*given)
        if pending:
            pending.pop()()
        return found

    monkeypatch.setattr(changing, "stored", meddled)
    return pending.append


def in_tenant(tenant: str, text: str, *names: str) -> list[Document]:
    return [Document(text, id=name, metadata={"tenant": tenant}, vector=VECTOR) for name in names]


def test_a_part_of_a_batch_that_meets_another_writer_is_told(make: Make, meddle: Meddle) -> None:
    # T2, D2, D6, E4: nothing foreign is replaced, nothing is taken back, and nobody says that nothing was done
    store, other = make(), make()
    view = store.where("tenant == 'a'")
    store.add(in_tenant("a", "old", "0", "1", "2"))
    meddle(lambda: other.add(in_tenant("b", "theirs", "1")))
    with pytest.raises(BatchError) as caught:
        view.add(in_tenant("a", "new", "0", "1", "2", "3"))
    assert isinstance(caught.value.__cause__, OutsideViewError)
    assert caught.value.unknown == ("0", "1", "2", "3")
    expected = {"0": "new", "1": "theirs", "2": "new", "3": "new"}
    assert {found.id: found.text for found in store.scan()} == expected
    meddle(lambda: other.add(in_tenant("b", "theirs", "5")))
    with pytest.raises(BatchError) as twice:
        store.add(in_tenant("a", "new", "4", "5"), if_exists="error")
    assert isinstance(twice.value.__cause__, DuplicateIdError)
    assert twice.value.__cause__.ids == ("5",)
    assert [found.text for found in store.get(["4", "5"])] == ["new", "theirs"]


def test_a_session_of_the_users_is_used_and_not_closed(server: str, make: Make, name: str) -> None:
    # E5
    make().add(documents(2))
    options = target(server)
    from entrepot_cassandra.sessions import Address

    address = Address(options["host"], options["port"], (options["user"], options["password"]), None, False, None, None, None, True)  # fmt: skip
    cluster = address.cluster(10.0)
    session: Any = cluster.connect()
    try:
        store = CassandraVectorStore(collection=name, keyspace=KEYSPACE, client=session).connect()
        assert id(store.native_client) == id(session)
        assert store.count() == 2
        store.close()
        assert session.execute("SELECT key FROM system.local").one()[0] == "local"
    finally:
        cluster.shutdown()
    assert isinstance(cluster, Cluster)


def test_one_session_serves_threads_and_event_loops(make: Make) -> None:
    # E3, E5
    store = make()
    store.add(documents(10))

    async def ask() -> list[int]:
        return await asyncio.gather(*(store.acount(F.n < n) for n in range(10)))

    assert asyncio.run(ask()) == asyncio.run(ask()) == list(range(10))
    assert store.count() == 10


# --- the memory -------------------------------------------------------------------------------------------


def test_a_reader_between_two_pages_never_mixes_two_states(
    make_memory: MakeMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    # M4: what was read in pages is held against the head
    monkeypatch.setattr(conversations, "_PAGE", 10)
    memory = make_memory()
    states = {kind: [UserMessage(f"{kind} {n}") for n in range(60)] for kind in "ab"}
    memory.replace("c", states["a"])
    over = threading.Event()
    seen: list[list[str | None]] = []

    def look() -> None:
        while not over.is_set():
            seen.append([message.text for message in memory.messages("c")])

    reader = threading.Thread(target=look)
    reader.start()
    other = make_memory()
    for _ in range(6):
        for kind in "ba":
            other.replace("c", states[kind])
        other.truncate("c", after=states["a"][29].id)
    over.set()
    reader.join()
    whole = {kind: [message.text for message in states[kind]] for kind in "ab"}
    assert all(found in (whole["a"], whole["b"], whole["a"][:30]) for found in seen)


def test_a_conversation_made_anew_shares_nothing_with_the_old_one(make_memory: MakeMemory) -> None:
    # M5, M1
    memory = make_memory()
    old = [UserMessage(f"old {n}") for n in range(5)]
    memory.append("c", old)
    memory.delete("c")
    memory.append("c", [*old[:2], UserMessage("new")])
    assert [message.text for message in memory.messages("c")] == ["old 0", "old 1", "new"]
    assert memory.conversation_ids().items == ["c"]


def test_a_batch_that_the_engine_cannot_take_is_refused(
    make_memory: MakeMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    # M2, M3
    monkeypatch.setattr(conversations, "LARGEST", 10_000)
    memory = make_memory()
    with pytest.raises(SizeLimitError):
        memory.append("c", [UserMessage("x" * 20_000)])
    assert memory.messages("c") == []
