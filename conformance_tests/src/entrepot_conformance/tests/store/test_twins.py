"""Every public operation and its async twin: E3, and what other rules promise of both."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import pytest

from entrepot import Document, F, SearchRequest, Stats, VectorStore
from entrepot.errors import EntrepotError
from entrepot_conformance.tests.store.data import letter_model
from entrepot_conformance.tests.ticking import LONGEST_GAP, least_gaps, longest_gap

if TYPE_CHECKING:
    from entrepot_conformance.endpoints import Stores


@dataclass(frozen=True)
class Call:
    """A call of a public operation; its twin is called with the same arguments."""

    method: str
    args: tuple[Any, ...] = ()
    options: dict[str, Any] = field(default_factory=dict[str, Any])


def call(method: str, *args: Any, **options: Any) -> Call:
    return Call(method, args, options)


def documents() -> list[Document]:
    return [
        Document(
            "ab" * (n + 1) + "c" * n,
            id=f"{n:02}",
            metadata={"n": n, "tenant": "ab"[n % 2], "list": list(range(n))},
        )
        for n in range(12)
    ]


PARTS: Final = ("text", "metadata", "vector")
NEAR: Final = [1.0, 2, 0, 0, 0, 0, 0, 0]

CALLS: Final = [
    call("count"),  # D5: there is no collection yet
    call("similarity_search", "abc"),
    call("create_collection"),
    call("create_collection", dimension=5),
    call("collection_exists"),
    call("list_collections"),
    call("add", documents()),
    call("add", documents()[3:5], if_exists="skip"),
    call("add", documents()[:1], if_exists="error"),  # D2
    call("add", documents()[:1] * 2),
    call("add", [Document("a", id="bad", metadata={"x": {}})]),  # D3
    call("add", [Document("a", id="x" * 513)]),  # D1
    call("add", [Document(None, id="bad", vector=[1.0])]),  # D9
    call("add", "text"),
    call("count"),
    call("count", "n > 3 and not (list < 2)"),  # F
    call("count", F.n.in_([])),
    call("count", "n ="),  # F7, F8
    call("count", 5),
    call("get", ["03", "unknown", "01", "03"], include=PARTS),  # D7
    call("get", "03"),
    call("get", []),
    call("scan", "n >= 3", batch_size=2),
    call("scan", include=["vector"]),
    call("scan", batch_size=0),
    call("similarity_search", "abc", top_k=7),  # S1, S2, S4
    call("similarity_search", "abc", top_k=3, threshold=0.9, include=PARTS),  # S3
    call("similarity_search", "abc", filter="n > 8", exact=True),
    call("similarity_search", SearchRequest(vector=NEAR, top_k=20)),  # S8
    call("similarity_search", SearchRequest(near_id="03", top_k=5)),
    call("similarity_search", SearchRequest(near_id="unknown")),
    call("similarity_search", SearchRequest("abc", ids=["01", "07", "unknown"])),
    call("similarity_search", SearchRequest(vector=[1.0])),
    call("similarity_search", "abc", top_k=0),  # S5
    call("similarity_search", "abc", top_k=-1),
    call("similarity_search", "abc", filter=lambda: None),
    call("similarity_search", "abc", mode="fulltext"),  # S9
    call("similarity_search", "ababc", mode="fulltext", filter="n > 0"),
    call("similarity_search", "ababc", mode="hybrid", top_k=6),
    call("similarity_search_batch", ["abc", SearchRequest(vector=NEAR, top_k=2), "abc"]),
    call("similarity_search_batch", "abc"),
    call("similarity_search_batch", []),
    call("stats"),
    call("update", ["01", "unknown", "02"], set={"m": 1, "n": None}, unset=["list"]),  # D10
    call("update", ["01"], set={"m": {}}),
    call("update", "01", set={"m": 1}),
    call("get", ["01", "02"]),
    call("delete", ["01", "unknown"]),  # D7
    call("delete", []),
    call("delete"),
    call("delete", filter="n >= 9"),
    call("scan"),
    call("delete_all"),
    call("count"),
    call("drop_collection"),
    call("collection_exists"),
    call("drop_collection"),
    call("scan"),
]
"""What is done to two collections, in this order: to the one by each operation, to the other by its twin."""

OPERATIONS: Final = {
    name.removeprefix("a")
    for name in dir(VectorStore)
    if name.startswith("a") and not name.startswith("as_") and hasattr(VectorStore, name.removeprefix("a"))
} - {"close", "connect"}
"""Every public operation that has a twin, but for opening and closing."""


def told(store: VectorStore, answer: object) -> object:
    """Return an answer so that those of two collections can be compared."""
    if isinstance(answer, EntrepotError):
        attributes = (answer.retryable, answer.outcome, answer.hint)
        return type(answer), str(answer).replace(store.collection, "COLLECTION"), attributes
    if isinstance(answer, Stats):
        return answer.backend, answer.count, answer.dimension, answer.metric, answer.model
    return answer


def done(store: VectorStore, each: Call) -> object:
    try:
        answer: Any = getattr(store, each.method)(*each.args, **each.options)
        if each.method == "list_collections":
            return store.collection in answer
        return told(store, sorted_scan(answer) if each.method == "scan" else answer)
    except EntrepotError as error:
        return told(store, error)


async def adone(store: VectorStore, each: Call) -> object:
    try:
        made: Any = getattr(store, f"a{each.method}")(*each.args, **each.options)
        if each.method == "scan":
            return told(store, sorted_scan([document async for document in made]))
        answer: Any = await made
        if each.method == "list_collections":
            return store.collection in answer
        return told(store, answer)
    except EntrepotError as error:
        return told(store, error)


def sorted_scan(found: Any) -> list[Document]:
    return sorted(found, key=lambda document: document.id)


def test_the_table_holds_every_operation() -> None:
    # E3
    assert {each.method for each in CALLS} == OPERATIONS


@pytest.mark.parametrize("through", ["store", "view"])
def test_operations_and_their_twins_answer_alike(stores: Stores, through: str) -> None:
    # E3: values, errors and their words, on the store and through a view
    def opened(beside: str) -> VectorStore:
        store = stores(embedding=letter_model(), beside=beside)
        if through == "store":
            return store
        return store.where(F.tenant == "a")

    one = opened("sync")
    expected = [done(one, each) for each in CALLS]

    async def twins() -> list[object]:
        other = opened("async")
        return [await adone(other, each) for each in CALLS]

    answers = asyncio.run(twins())
    for each, answer, wanted in zip(CALLS, answers, expected, strict=True):
        assert answer == wanted, each


def test_a_retriever_has_its_twin(stores: Stores) -> None:
    # E3
    store = stores(embedding=letter_model())
    store.add(documents())
    retriever = store.as_retriever()

    async def twin() -> list[Document]:
        return await retriever.asimilarity_search("abc", top_k=5, filter="n > 2", include=PARTS)

    expected = retriever.similarity_search("abc", top_k=5, filter="n > 2", include=PARTS)
    assert asyncio.run(twin()) == expected


def test_pages_of_a_scan_are_those_of_its_twin(stores: Stores) -> None:
    # E3, D7: and a token of the one serves the other
    store = stores(embedding=letter_model())
    store.add(documents())
    pages = list(store.scan(batch_size=5).pages())

    async def twin() -> tuple[list[Any], list[Document]]:
        found = [page async for page in store.ascan(batch_size=5).pages()]
        rest = [document async for document in store.ascan(batch_size=5, token=pages[0].token)]
        return found, rest

    found, rest = asyncio.run(twin())
    assert [page.items for page in found] == [page.items for page in pages]
    assert rest == [document for page in pages[1:] for document in page.items]


@pytest.mark.large
@pytest.mark.alone
def test_no_twin_of_a_store_blocks_the_event_loop(stores: Stores) -> None:
    # E3: the largest gap of each operation on some thousand documents, however long a slow engine takes for them
    store = stores(dimension=32, timeout=60.0)
    store.create_collection()
    many = [
        Document(
            f"word{n % 97} " * 20,
            id=f"{n:05}",
            metadata={"n": n, "list": [n, n + 1], "name": f"name {n}", "more": list(range(n, n + 60))},
            vector=[1.0 + n % 7, *(float((n * k) % 11) for k in range(31))],
        )
        for n in range(6000)
    ]
    query = SearchRequest(vector=[1.0] * 32, top_k=1000, filter="list > 10 or name < 'name 5'")
    names = [document.id for document in many]

    async def all_of(scan: Any) -> int:
        return len([document async for document in scan])

    async def gaps() -> dict[str, float]:
        found = {
            "aadd": await longest_gap(store.aadd(many)),
            "acount": await longest_gap(store.acount("list > 10 or not (name < 'name 5')")),
            "aget": await longest_gap(store.aget(names, include=PARTS)),
            "ascan": await longest_gap(all_of(store.ascan("n >= 0", batch_size=1000))),
            "asimilarity_search": await longest_gap(store.asimilarity_search(query)),
            "asimilarity_search_batch": await longest_gap(store.asimilarity_search_batch([query] * 5)),
            "aupdate": await longest_gap(store.aupdate(names[:1000], set={"m": 1})),
            "view.aadd": await longest_gap(store.where("t == 'x'").aadd(many[:0])),
            "astats": await longest_gap(store.astats()),
            "adelete": await longest_gap(store.adelete(names[:1000])),
            "adelete by filter": await longest_gap(store.adelete(filter="n < 2000")),
            "adelete_all": await longest_gap(store.adelete_all()),
        }
        if store.capabilities.fulltext:
            words = SearchRequest("word1 word2", mode="fulltext", top_k=500)
            found["fulltext"] = await longest_gap(store.asimilarity_search(words))
        return found

    best = least_gaps(gaps)
    assert max(best.values()) <= LONGEST_GAP, str(best)
