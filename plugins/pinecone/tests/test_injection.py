"""Whatever a name or a value holds, it is data: F10, D1, D3, D5."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from entrepot import Document, F, SearchRequest
from entrepot_conformance.hostile import ACTS, BREAKERS

if TYPE_CHECKING:
    from plugins.pinecone.tests.conftest import Make

pytestmark = pytest.mark.slow  # there is no server but in a container

OWN = [
    "$ne",
    "$or",
    "$exists",
    "_v",
    "_m",
    "_t",
    "e_value",
    "nl_value",
    "made",
    "entrepot.catalog",
    "__default__",
    "__proto__",
    ".",
    "..",
    "a.b",
    ".a",
    "$",
    '{"$ne": 1}',
    "&ids=made",
    "?namespace=entrepot.catalog",
    "#",
    "a/../b",
    "a%2fb",
    "+",
    "\x01",
    "\x7f",
    " ",
    " a ",
    "A",
    "a",
    "\u00e9",
    "e\u0301",
    "\ud7ff",
    "\uffff",
    "\U0010ffff",
    "x" * 512,
    "\U0001f600" * 300,
]
NAMES = list(dict.fromkeys([*OWN, *ACTS, *BREAKERS]))
VECTOR = [1.0, 1.0]


def test_ids_values_and_keys(make: Make) -> None:
    # D1, D3, F10: every name as id, as value, in a list and as key, each found by itself alone
    store = make(metric="euclidean")
    documents: list[Document] = []
    for n, name in enumerate(NAMES):
        metadata: dict[str, Any] = {"value": name, "list": [name, "shared"], name: n}
        documents.append(Document(name, id=name, metadata=metadata, vector=VECTOR))
    store.add(documents)
    assert [document.id for document in store.get(NAMES)] == NAMES
    for n, name in enumerate(NAMES):
        (found,) = store.scan((F.value == name) & (F.list == name))
        assert (found.id, found.text) == (name, name)
        assert found.metadata["value"] == name
        if name not in {"value", "list"}:
            assert [hit.id for hit in store.scan((F[name] == n) & (F[name] >= n), include=[])] == [name]
            assert store.count(F.value <= name) == sum(other <= name for other in NAMES)
    assert store.count(F.list == "shared") == len(NAMES)
    store.update(NAMES[::5], set={NAMES[0]: "changed"})
    assert store.count(F[NAMES[0]] == "changed") == len(NAMES[::5])
    for name in NAMES[::7]:
        store.delete([name])
    left = set(NAMES) - set(NAMES[::7])
    assert {document.id for document in store.scan(include=[])} == left


def test_searches_push_every_name_down(make: Make) -> None:
    # F10, S4: the engine itself holds the filter
    store = make(metric="euclidean")
    store.add(
        [
            Document(None, id=f"{n}", metadata={"value": name, name: n}, vector=VECTOR)
            for n, name in enumerate(NAMES)
        ]
    )
    for n, name in enumerate(NAMES):
        if name != "value":
            for tree in (F.value == name, F[name] == n, F[name] >= n, F[name].is_not_null()):
                assert store.explain(tree).exact
                request = SearchRequest(vector=VECTOR, top_k=1, filter=tree)
                assert [hit.id for hit in store.similarity_search(request)] == [f"{n}"]


def test_collections(make: Make) -> None:
    # D5: collections of hostile names beside one another, and a neighbour that must not notice
    neighbour = make(metric="euclidean")
    neighbour.add([Document("x", id="1", metadata={"k": 1}, vector=VECTOR)])
    for name in NAMES[:40]:
        store = make(collection=name, metric="euclidean")
        store.add([Document(name, id=name, metadata={"k": name}, vector=VECTOR)])
    assert {*NAMES[:40], neighbour.collection} <= set(neighbour.list_collections())
    for name in NAMES[:40]:
        store = make(collection=name)
        assert [document.text for document in store.scan(F.k == name)] == [name]
        store.drop_collection()
    assert set(NAMES[:40]).isdisjoint(neighbour.list_collections())
    assert neighbour.count("k == 1") == 1
