"""Whatever a name or a value holds, it is data: F10, D3, D5, M6."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from entrepot import Document, F, UserMessage
from entrepot_conformance.hostile import ACTS, BREAKERS
from entrepot_mongodb.names import CATALOG

if TYPE_CHECKING:
    from plugins.mongodb.tests.servers import Make, Remember
    from pymongo.database import Database

pytestmark = pytest.mark.slow  # there is no server but in a container

OWN = [
    "$where",
    "$ne",
    "$or",
    "$expr",
    "$set",
    "_id",
    "v",
    "t",
    "t.0",
    "d",
    "d.j",
    "__proto__",
    ".",
    "..",
    "a.b",
    ".a",
    "a.",
    "$",
    "$$ROOT",
    '{"$ne": 1}',
    '{"$gt": ""}',
    "'; return true; var x='",
    "function() { return true }",
    "/.*/",
    ".*",
    "ObjectId('6b0df5452560156a48643f04')",
    "ISODate('2026-01-31')",
    "\x01",
    "\x7f",
    " ",
    " a ",
    "A",
    "a",
    "\u00e9",
    "e\u0301",
    "\ud7ff",
    "\ue000",
    "\uffff",
    "\U0001f600",
    "\U0010ffff",
    "system.indexes",
    "admin.$cmd",
    "entrepot.collections",
    "x" * 512,
    "\U0001f600" * 512,
]
NAMES = list(dict.fromkeys([*OWN, *ACTS, *BREAKERS]))
VECTOR = [1.0, 1.0]


def test_ids_values_and_keys(make: Make) -> None:
    # D1, D3, F10: every name as id, as value, in a list and as key, each found by itself alone
    store = make(metric="euclidean")
    store.add(
        [
            Document(
                name, id=name, metadata={"value": name, "list": [name, "shared"], name: n}, vector=VECTOR
            )
            for n, name in enumerate(NAMES)
        ]
    )
    assert [document.id for document in store.get(NAMES)] == NAMES
    for n, name in enumerate(NAMES):
        (found,) = store.scan((F.value == name) & (F.list == name))
        assert (found.id, found.text) == (name, name)
        assert found.metadata["value"] == name
        if name not in {"value", "list"}:
            assert [found.id for found in store.scan((F[name] == n) & (F[name] >= n), include=[])] == [name]
            assert store.count(F.value <= name) == sum(other <= name for other in NAMES)
    assert store.count(F.list == "shared") == len(NAMES)
    store.update(NAMES[::5], set={NAMES[0]: "changed"})
    assert store.count(F[NAMES[0]] == "changed") == len(NAMES[::5])
    for name in NAMES[::7]:
        store.delete([name])
    left = set(NAMES) - set(NAMES[::7])
    assert {document.id for document in store.scan(include=[])} == left


def test_collections(make: Make, database: Database[dict[str, Any]]) -> None:
    # D5: collections of hostile names beside one another, and a neighbour that must not notice
    neighbour = make(collection="neighbour", metric="euclidean")
    neighbour.add([Document("x", id="1", metadata={"k": 1}, vector=VECTOR)])
    names = [name for name in NAMES if name != "neighbour"]
    for name in names:
        store = make(collection=name, metric="euclidean")
        store.add([Document(name, id=name, metadata={"k": name}, vector=VECTOR)])
    assert set(neighbour.list_collections()) == {*names, "neighbour"}
    for name in names:
        store = make(collection=name)
        assert [document.text for document in store.scan(F.k == name)] == [name]
        store.drop_collection()
    assert neighbour.list_collections() == ["neighbour"]
    assert neighbour.count("k == 1") == 1
    left = [name for name in database.list_collection_names() if name != CATALOG]
    assert len(left) == 1


def test_conversations_and_messages(remember: Remember, database: Database[dict[str, Any]]) -> None:
    # M6: every name as memory, conversation id and message id
    neighbour = remember(memory="neighbour")
    neighbour.append("c", [UserMessage("x", id="1")])
    memory = remember()
    for name in NAMES:
        memory.append(name, [UserMessage(name, id=name), UserMessage("two", id="the second")])
    for name in NAMES:
        assert memory.messages(name)[0].text == name
        memory.truncate(name, after=name)
        assert [message.text for message in memory.messages(name)] == [name]
    listed: list[str] = []
    cursor: str | None = None
    while True:
        page = memory.conversation_ids(limit=17, cursor=cursor)
        listed += page.items
        cursor = page.token
        if cursor is None:
            break
    assert sorted(listed) == sorted(NAMES)
    for name in NAMES[::2]:
        memory.delete(name)
    for name in NAMES:
        assert [message.text for message in memory.messages(name)] == ([] if name in NAMES[::2] else [name])
    for name in NAMES[:20]:
        other = remember(memory=name)
        other.append("c", [UserMessage(name)])
        assert [message.text for message in other.messages("c")] == [name]
        other.delete("c")
    assert [message.text for message in neighbour.messages("c")] == ["x"]
    assert database["neighbour.log"].count_documents({}) == 1
