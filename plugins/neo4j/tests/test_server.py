# pyright: reportPrivateUsage=false
"""What only the engine can show: layout, whole reads, exact searches, drops under writers, injection. Needs a server."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from plugins.neo4j.tests.model import holds
from plugins.neo4j.tests.servers import rows, target

from entrepot import Document, F, SearchRequest, UserMessage, parse_filter
from entrepot.errors import (
    CollectionMismatchError,
    CollectionNotFoundError,
    DuplicateIdError,
    OperationTimeoutError,
)
from entrepot.exchange import deadline
from entrepot_neo4j import Neo4jFilterConverter
from entrepot_neo4j.catalog import check, describe, sealed, together, whole
from entrepot_neo4j.commands import Unit, change, read
from entrepot_neo4j.filters import predicate
from entrepot_neo4j.names import label_of

if TYPE_CHECKING:
    from neo4j import Driver
    from numpy.typing import NDArray
    from plugins.neo4j.tests.servers import Make, MakeMemory

    from entrepot_neo4j.commands import Script

pytestmark = pytest.mark.slow  # there is no server but in a container

VECTOR = [1.0, 1.0]
HOSTILE = [
    "*", "a*", "?", ".", "a.b", '"', "'", "`", "``", "\\", "\\u0060", "\\u0027", "a\\u0060) DETACH DELETE (n", "{", "}",
    "$f", "$rows", "$", "//", "/* */", "a\nb", "%", "#", " ", "é", "e\u0301", "😀", "\ud7ff", "\ue000", "\uffff",
    "\U0010ffff", "' OR true //", "}) DETACH DELETE n //", "x OR y", "NOT", "+", "-", "~", "^2", ":", "(", "w:x",
    "[1 TO 5]", "t", "j", "id", "embedding", "entrepot", "Entrepot_x", "null", "true", "x" * 512, "😀" * 512,
]  # fmt: skip


def unit(rng: np.random.Generator, count: int, dimension: int) -> NDArray[np.float32]:
    matrix = rng.normal(size=(count, dimension))
    found: NDArray[np.float32] = (matrix / np.linalg.norm(matrix, axis=1, keepdims=True)).astype(np.float32)
    return found


def test_five_thousand_keys_make_no_property(make: Make, admin: Driver) -> None:
    # D3
    store = make()
    store.add(
        [
            Document(None, id=str(n), metadata={f"key {n} {k}": n + k for k in range(10)}, vector=VECTOR)
            for n in range(500)
        ]
    )
    generation = store._here().names.generation
    (kinds,) = rows(admin, f"MATCH (n:{generation}) UNWIND keys(n) AS k RETURN collect(DISTINCT k)")[0]
    assert set(kinds) == {"id", "v", "j", "t", "embedding"}
    for n in range(0, 500, 25):
        assert [one.id for one in store.scan((F[f"key {n} 3"] == n + 3) & (F[f"key {n} 9"] > n + 8))] == [
            str(n)
        ]
        assert store.count(F[f"key {n} 3"] < n + 3) == 0


def test_whatever_a_name_or_a_value_holds_is_data(make: Make, admin: Driver, name: str) -> None:
    # F10, D1, D3: a neighbour must not notice
    canary = make(collection=f"{name}_canary")
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
        assert store.count(F.value <= text) == sum(other <= text for other in HOSTILE[n:])
        assert canary.similarity_search(SearchRequest(text, mode="fulltext")) == []
        store.update([text], set={text: [text]})
        store.delete([text])
        assert store.count() == len(HOSTILE) - n - 1
    assert canary.count("k == 1") == canary.count() == 1
    assert rows(admin, f"MATCH (n:{canary.collection}) RETURN count(*)") == [[1]]


@pytest.mark.parametrize(
    "name_of", ["{} `x`", "{}\\u0060) DETACH DELETE (n", "{}'\"", "{} 😀", "Entrepot_{}"]
)
def test_any_name_is_a_collection(make: Make, name: str, name_of: str) -> None:
    # D5, F10
    called = name_of.format(name)
    store = make(collection=called)
    try:
        store.add([Document("a", id="x", vector=VECTOR)])
        assert called in store.list_collections()
        assert [hit.id for hit in store.similarity_search(SearchRequest("a", mode="fulltext"))] == ["x"]
        assert store.stats().details["label"] == label_of(called)
    finally:
        store.drop_collection()
    assert not store.collection_exists()


def test_predicates_are_read_by_the_engine_as_by_the_model(admin: Driver) -> None:
    # F1 to F5, F10: one statement for many filters and lists of tokens
    texts = [
        "x == 1", "x != 1", "x in [1, 2]", "x > 1", "not x > 1", "x is null", "x == 1 and y == 2", "x > 1 and x < 3",
        "x == 1 or y > 2", "x != 1 or not y > 2", "(x == 1 or y == 2) and (x > 0 or z is null)",
        "(x == 1 and y == 2) or (z is null and not x > 0)",
        "x > 0 and (y == 1 or (z == 'a' and (x < 9 or y is null)))",
        "x is null or (y > 1 and (x == 3 or (y < 3 and not (x < 2))))",
    ]  # fmt: skip
    documents: list[dict[str, Any]] = [
        {}, {"x": 1}, {"x": [1, 3], "y": 2}, {"x": 2, "y": [1, 3]}, {"y": 2, "z": "a"}, {"x": -1, "z": "b"}, {"x": [0, 9], "y": 1, "z": "a"},
    ]  # fmt: skip
    from entrepot_neo4j.tokens import tokens_of

    converter = Neo4jFilterConverter()
    for text in texts:
        clause = converter.convert(parse_filter(text)).query
        asked = predicate(clause)
        query = f"UNWIND $lists AS t WITH t, $f AS f RETURN {asked.text}"
        found = rows(admin, query, lists=[tokens_of(one) for one in documents], f=asked.parameter)
        assert [row[0] for row in found] == [holds(clause, tokens_of(one)) for one in documents], text


@pytest.mark.parametrize("index", ["hnsw", "flat"])
@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
def test_exact_searches_are_those_of_numpy(
    make: Make, rng: np.random.Generator, index: str, metric: str
) -> None:
    # S1, S6: ids and order, ties at the cut settled by id
    vectors = unit(rng, 1000, 8)
    vectors[500:600] = vectors[0]
    store = make(index=index, metric=metric)
    assert store.capabilities.ann
    store.add([Document(None, id=f"{n:04}", metadata={"n": n}, vector=vectors[n]) for n in range(1000)])
    assert store.capabilities.ann is (index == "hnsw")
    for query in (vectors[0], vectors[7], -vectors[0]):
        if metric == "cosine":
            score = (1.0 + vectors.astype(np.float64) @ query) / 2.0
        else:
            score = 1.0 / (1.0 + ((vectors.astype(np.float64) - query) ** 2).sum(axis=1))
        for k, wanted in ((5, 1000), (40, 1000), (1000, 1000), (30, 520), (3, 2)):
            order = sorted(range(wanted), key=lambda n: (-round(float(score[n]), 6), n))
            hits = store.similarity_search(
                SearchRequest(vector=query, top_k=k, exact=True, filter=F.n < wanted)
            )
            assert [hit.score for hit in hits] == pytest.approx([score[n] for n in order[:k]], abs=1e-6)
            tied = [f"{n:04}" for n in order[:k] if abs(score[n] - score[order[0]]) < 1e-7]
            assert [hit.id for hit in hits][: len(tied)] == tied


def test_a_search_with_a_filter_is_never_short(make: Make, rng: np.random.Generator) -> None:
    # S4: one document of a hundred matches, and those are the farthest
    vectors = unit(rng, 2000, 16)
    near = vectors @ vectors[0]
    rare = {int(n) for n in np.argsort(near)[:20]}
    store = make(ef_search=1)
    store.add(
        [Document(None, id=str(n), metadata={"rare": n in rare}, vector=vectors[n]) for n in range(2000)]
    )
    hits = store.similarity_search(SearchRequest(vector=vectors[0], top_k=15, filter="rare == true"))
    expected = sorted(rare, key=lambda n: -near[n])[:15]
    assert [hit.id for hit in hits] == [str(n) for n in expected]
    assert (
        len(store.similarity_search(SearchRequest(vector=vectors[0], top_k=50, filter="rare == true"))) == 20
    )


def test_a_read_that_meets_a_write_reads_again(make: Make) -> None:
    # D2
    store = make()
    store.add([Document(None, id=str(n), metadata={"g": 0}, vector=VECTOR) for n in range(3)])
    place, server = store._here(), store._server
    seen = place.seal.value
    tries: list[int] = []

    class Meddling:
        rows = 10
        text = f"MATCH (n:{place.names.generation}) RETURN count(*)"

        @property
        def parameters(self) -> dict[str, Any]:
            tries.append(1)
            if len(tries) == 1:
                make().update(["0"], set={"g": 1})
            return {}

    meddling: Any = Meddling()  # what is asked of a Statement
    assert server.run(whole(place, meddling)) == [[3]]
    assert len(tries) == 2
    assert place.seal.value not in (None, seen)


def test_what_is_read_by_several_statements_is_of_one_moment(make: Make) -> None:
    # D2: a call of several documents is seen whole, however many are asked for
    store = make()
    store.add([Document(None, id=str(n), metadata={"g": 0}, vector=VECTOR) for n in range(2)])
    store.count()
    place, server = store._here(), store._server
    text = f"MATCH (n:{place.names.generation} {{id: $id}}) RETURN n.j"
    tries: list[int] = []

    class Meddling:
        rows = 10

        def __init__(self) -> None:
            self.text = text

        @property
        def parameters(self) -> dict[str, Any]:
            tries.append(1)
            if len(tries) == 1:
                make().update(["0", "1"], set={"g": 1})
            return {"id": "1"}

    meddling: Any = Meddling()  # what is asked of a Statement
    found = server.run(together(place, [read(text, id="0"), meddling]))
    assert len(tries) == 2
    assert ['{"g":1}' in rows[0][0] for rows in found] == [True, True]
    names = [str(n) for n in range(2)]
    assert [one.metadata for one in store.get([f"none {n}" for n in range(1500)] + names)] == [{"g": 1}] * 2


def test_a_writer_waits_for_nobody_who_reads_but_at_the_end(make: Make) -> None:
    # S7: two writers of other documents go side by side; a seal is the last thing of each
    store, other = make(), make()
    store.add([Document(None, id=str(n), vector=VECTOR) for n in range(4)])
    other.count()
    place, far = store._here(), other._here()
    inside, go = threading.Event(), threading.Event()

    def nothing() -> Any:
        yield from ()

    def slow() -> Any:
        yield change(f"MATCH (n:{place.names.generation} {{id: '0'}}) SET n.v = 'slow'")
        inside.set()
        assert go.wait(30)

    writer = threading.Thread(target=lambda: store._server.run(sealed(place, slow)))
    writer.start()
    assert inside.wait(30)
    with deadline(20.0):
        other._server.run(sealed(far, nothing))
        assert other.count() == 4
    go.set()
    writer.join(30)
    assert not writer.is_alive()


def test_a_collection_that_was_dropped_takes_no_writes(make: Make, admin: Driver, name: str) -> None:
    # D5
    store, other = make(), make()
    store.add([Document(None, id="1", vector=VECTOR)])
    other.count()
    known = other._here()
    store.drop_collection()
    for call in (
        lambda: other.add([Document(None, id="2", vector=VECTOR)]),
        lambda: other.add([Document(None, id="2", vector=VECTOR)], if_exists="error"),
        lambda: other.update(["1"], set={"k": 1}),
        lambda: other.delete(["1"]),
        lambda: other.delete(filter="k is null"),
        lambda: other.get(["1"]),
        lambda: other.similarity_search(SearchRequest(vector=VECTOR)),
        lambda: other.similarity_search(SearchRequest("a", mode="fulltext")),
        lambda: list(other.scan()),
        other.count,
        other.stats,
    ):
        other._info, other._place, other._may_create = known.info, known, False
        with pytest.raises(CollectionNotFoundError):
            call()
    assert rows(admin, f"MATCH (n:{known.names.generation}) RETURN count(*)") == [[0]]
    assert rows(admin, "MATCH (c:EntrepotCollection {name: $name}) RETURN count(*)", name=name) == [[0]]
    assert rows(admin, "MATCH (c:EntrepotCollection) WHERE c.name IS NULL RETURN count(*)") == [[0]]
    left = f"SHOW INDEXES YIELD name WHERE name STARTS WITH '{known.generation}' RETURN name"
    assert rows(admin, left) == []


def test_a_writer_under_way_does_not_bring_a_dropped_collection_back(make: Make, admin: Driver) -> None:
    # D5
    store, other = make(), make()
    store.add([Document(None, id="1", vector=VECTOR)])
    place, server = store._here(), store._server
    dropped: list[bool] = []

    def late() -> Any:
        if not dropped:
            dropped.append(True)
            other.drop_collection()
        yield change(f"CREATE (:{place.names.generation} {{id: 'late'}})")

    with pytest.raises(CollectionNotFoundError):
        server.run(sealed(place, late))
    assert rows(admin, f"MATCH (n:{place.names.generation}) RETURN count(*)") == [[0]]
    with pytest.raises(CollectionNotFoundError):
        server.run(check(place))


def test_a_drop_that_broke_off_is_finished_when_the_name_is_used_again(
    make: Make, admin: Driver, name: str
) -> None:
    # D5
    store = make()
    store.add([Document(None, id="1", vector=VECTOR)])
    old = store._here().generation
    rows(
        admin,
        "MATCH (c:EntrepotCollection {name: $name}) WITH c, c.generation AS g REMOVE c.generation SET c.gone = g",
        name=name,
    )
    other = make()
    assert not other.collection_exists()
    assert name not in other.list_collections()
    other.add([Document(None, id="2", vector=VECTOR)])
    assert [one.id for one in other.scan()] == ["2"]
    assert rows(admin, f"MATCH (n:`{old}`) RETURN count(*)") == [[0]]


def test_nodes_of_others_are_left_alone(make: Make, admin: Driver, name: str) -> None:
    # D5
    rows(admin, f"CREATE (:{name} {{title: 'theirs'}})")
    try:
        with pytest.raises(CollectionMismatchError, match="not made by this library"):
            make().add([Document(None, id="1", vector=VECTOR)])
        assert rows(admin, f"MATCH (n:{name}) RETURN n.title") == [["theirs"]]
    finally:
        rows(admin, f"MATCH (n:{name}) DELETE n")


def test_a_newer_layout_is_refused(make: Make, admin: Driver, name: str) -> None:
    # D5
    make().add([Document(None, id="1", vector=VECTOR)])
    rows(admin, "MATCH (c:EntrepotCollection {name: $name}) SET c.layout = 2", name=name)
    with pytest.raises(CollectionMismatchError, match="layout 2"):
        make().count()
    rows(admin, "MATCH (c:EntrepotCollection {name: $name}) SET c.layout = 1", name=name)


def test_a_lock_leaves_no_mark(make: Make, admin: Driver) -> None:
    # D2, T2
    store = make()
    store.add([Document("a", id=str(n), metadata={"t": n % 2}, vector=VECTOR) for n in range(4)])
    view = store.where("t == 1")
    view.add([Document("b", id="1", vector=VECTOR), Document("b", id="9", vector=VECTOR)])
    store.add([Document("c", id="0", vector=VECTOR), Document("c", id="8", vector=VECTOR)], if_exists="skip")
    with pytest.raises(DuplicateIdError):
        store.add(
            [Document("c", id="0", vector=VECTOR), Document("c", id="7", vector=VECTOR)], if_exists="error"
        )
    view.update(["0", "1"], set={"k": 1})
    store.delete(filter="t == 0")
    generation = store._here().names.generation
    (kinds,) = rows(admin, f"MATCH (n:{generation}) UNWIND keys(n) AS k RETURN collect(DISTINCT k)")[0]
    assert set(kinds) == {"id", "v", "j", "t", "w", "embedding"}
    assert sorted(one.id for one in store.scan()) == ["1", "3", "8", "9"]


def test_a_transaction_that_takes_too_long_is_ended_on_the_server(make: Make, admin: Driver) -> None:
    # E4
    store = make()
    slow = "UNWIND range(1, 1000000000) AS x WITH x WHERE x % 7 = 9 RETURN count(*)"
    began = time.monotonic()
    with deadline(1.0), pytest.raises(OperationTimeoutError) as caught:
        store._server.run(iter_of(read(slow)))
    assert 0.9 < time.monotonic() - began < 4.0
    assert caught.value.retryable
    text = "SHOW TRANSACTIONS YIELD currentQuery WHERE currentQuery CONTAINS 'x % 7 = 9' AND NOT currentQuery CONTAINS 'SHOW' RETURN currentQuery"
    until = time.monotonic() + 20.0
    while rows(admin, text):
        assert time.monotonic() < until
        time.sleep(0.1)


def iter_of(statement: Any) -> Script[Any]:
    answer: Any = yield statement
    return answer


def test_transactions_that_give_way_are_begun_anew(make: Make) -> None:
    # E4: two that lock two nodes in opposite order
    store = make()
    store.add([Document(None, id=str(n), vector=VECTOR) for n in range(2)])
    place, server = store._here(), store._server
    meet = threading.Barrier(2)
    tries: list[str] = []

    def locking(first: str, second: str) -> Any:
        def unit() -> Any:
            tries.append(first)
            text = f"MATCH (n:{place.names.generation} {{id: $id}}) SET n.v = $mark"
            yield change(text, id=first, mark=first)
            if tries.count(first) == 1:
                meet.wait(20)
            yield change(text, id=second, mark=first)

        return lambda: server.run(asked(unit))

    def asked(unit: Any) -> Any:
        yield Unit(unit)

    threads = [threading.Thread(target=locking(*pair)) for pair in (("0", "1"), ("1", "0"))]
    for one in threads:
        one.start()
    for one in threads:
        one.join(30)
    assert len(tries) >= 3
    marks = server.run(whole(place, read(f"MATCH (n:{place.names.generation}) RETURN n.v")))
    assert marks in ([["0"], ["0"]], [["1"], ["1"]])


def test_an_index_that_several_make_at_once_is_made_once(make: Make, admin: Driver, name: str) -> None:
    # D5, M1, E4: the server looks whether it is there before it makes it, and refuses whoever comes in between
    server = make()._server
    meet = threading.Barrier(4)
    done: list[int] = []

    def making() -> None:
        for n in range(10):
            meet.wait(30)
            server.run(
                iter_of(change(f"CREATE INDEX `{name}_{n}` IF NOT EXISTS FOR (x:`{name}`) ON (x.p{n})"))
            )
            done.append(n)

    threads = [threading.Thread(target=making) for _ in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join(60)
    made = rows(admin, "SHOW INDEXES YIELD name WHERE name STARTS WITH $name RETURN name", name=f"{name}_")
    for (index,) in made:
        rows(admin, f"DROP INDEX `{index}`")
    assert sorted(done) == [n for n in range(10) for _ in range(4)]
    assert len(made) == 10


def test_a_client_that_is_given_is_used_and_stays_open(
    make: Make, admin: Driver, server: str, name: str
) -> None:
    # E5
    from entrepot_neo4j import Neo4jChatMemoryRepository, Neo4jVectorStore

    make().add([Document(None, id="1", vector=VECTOR)])
    with Neo4jVectorStore(collection=name, client=admin) as store:
        assert store.count() == 1
        assert store.native_client is admin
    with Neo4jChatMemoryRepository(memory=name, client=admin, database="neo4j").connect() as memory:
        memory.append("c", [UserMessage("a")])
        memory.delete("c")
    assert rows(admin, "RETURN 1") == [[1]]
    assert target(server)["user"] == "neo4j"


def test_a_server_is_asked_for_its_version_once(make: Make) -> None:
    store = make()
    assert store._version is not None
    assert store._version >= (5, 18)
    assert store._server.run(describe(store.collection, store._version)) is None


def test_memories_of_a_database_share_no_conversation(make_memory: MakeMemory, name: str) -> None:
    # M6, M9
    names = [name, f"{name} ", f"{name}\uffff", f"{name}😀", f"{name}/x"]
    memories = [make_memory(memory=one) for one in names]
    for one, memory in zip(names, memories, strict=True):
        memory.append("c", [UserMessage(one)])
        memory.append("d", [UserMessage(one)])
    for one, memory in zip(names, memories, strict=True):
        assert [message.text for message in memory.messages("c")] == [one]
        assert memory.conversation_ids().items == ["c", "d"]
        memory.delete("c")
        memory.delete("d")
    assert all(memory.conversation_ids().items == [] for memory in memories)


def test_places_are_never_given_twice(make_memory: MakeMemory, admin: Driver, name: str) -> None:
    # M1, M4: so that a reader notices a tail that was cut and grown again
    memory = make_memory()
    first = [UserMessage(str(n), id=str(n)) for n in range(4)]
    memory.append("c", first)
    memory.truncate("c", after="1")
    memory.append("c", [UserMessage("x", id="x")])
    text = (
        "MATCH (c:EntrepotConversation {memory: $memory}) MATCH (m:EntrepotMessage {c: c.h[0]})"
        " RETURN m.place, m.before, m.earlier ORDER BY m.place"
    )
    assert rows(admin, text, memory=name) == [[0, -1, -1], [1, 0, 0], [4, 1, 1]]
    assert [message.id for message in memory.messages("c", last=2)] == ["1", "x"]
    assert [message.id for message in memory.messages("c")] == ["0", "1", "x"]
    memory.delete("c")
