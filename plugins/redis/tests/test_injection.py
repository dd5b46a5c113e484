"""Whatever a name or a value holds, it is data: F10, D3, D5, M6."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from plugins.redis.tests.hostile import hostile_names

from entrepot import Document, F, UserMessage, open_chat_memory, open_vector_store

if TYPE_CHECKING:
    from plugins.redis.tests.servers import Make, MakeMemory

NAMES = hostile_names(600)
VECTOR = [1.0, 1.0]


def snapshot(admin: Any, prefix: str) -> dict[bytes, Any]:
    """Return all keys that begin with a prefix, and what their values are, as the server dumps them."""
    keys = sorted(key for key in admin.keys("*") if key.startswith(prefix.encode()))
    return {key: admin.dump(key) for key in keys}


def test_ids_values_and_keys(make: Make) -> None:
    # D1, D3, F10: every name as id, as value, in a list and as key, each found by itself alone
    store = make()
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
        if n % 5 == 0 and name not in {"value", "list"}:
            assert [found.id for found in store.scan((F[name] == n) & (F[name] >= n), include=[])] == [name]
            assert store.count(F.value <= name) == sum(other <= name for other in NAMES)
    assert store.count(F.list == "shared") == len(NAMES)
    for name in NAMES[::7]:
        store.delete([name])
    left = set(NAMES) - set(NAMES[::7])
    assert {document.id for document in store.scan(include=[])} == left


def test_words_of_queries(make: Make) -> None:
    # S9
    store = make()
    store.add([Document("quiet words", id="1", vector=VECTOR)])
    for name in NAMES:
        assert store.similarity_search(name, mode="fulltext") == []


def test_collections_and_namespaces(make: Make, admin: Any, namespace: str) -> None:
    # D5: stores of hostile names beside one another, and a neighbour that must not notice
    neighbour = make(collection="neighbour")
    neighbour.add([Document("x", id="a:d:b", metadata={"k": 1}, vector=VECTOR)])
    before = snapshot(admin, f"{namespace}:neighbour")
    names = NAMES[:80] + NAMES[520:]
    for at in range(0, len(names), 40):
        part = names[at : at + 40]
        for name in part:
            store = make(collection=name)
            store.add([Document(name, id=":" + name[:500], metadata={"k": name}, vector=VECTOR)])
            store.close()
        assert set(part) < set(neighbour.list_collections())
        for name in part:
            store = make(collection=name)
            assert [document.text for document in store.scan(F.k == name)] == [name]
            store.drop_collection()
            store.close()
    assert neighbour.list_collections() == ["neighbour"]
    assert snapshot(admin, f"{namespace}:neighbour") == before
    assert neighbour.count("k == 1") == 1


def test_namespaces_do_not_leak(make: Make, namespace: str) -> None:
    # D5
    one = make(namespace=namespace, collection="a:b")
    two = make(namespace=f"{namespace}:a", collection="b")
    one.add([Document("one", id="1", vector=VECTOR)])
    two.add([Document("two", id="1", vector=VECTOR)])
    assert [document.text for document in one.scan()] == ["one"]
    assert two.list_collections() == ["b"]
    two.drop_collection()
    assert one.count() == 1


def test_urls(server: str, namespace: str) -> None:
    # D5, M6: through a URL the names are the same
    for name in [
        name for name in NAMES[:120] if "/" not in name and not name.isdecimal() and name.isprintable()
    ]:
        path = quote(name, safe="")
        with open_vector_store(f"{server}/{path}?namespace={namespace}") as store:
            assert store.collection == name
            store.add([Document("x", id="1", vector=VECTOR)])
            assert store.list_collections() == [name]
            store.drop_collection()
    for name in (":", "*", "a b", "é", "%"):
        with open_chat_memory(f"{server}/{namespace}{quote(name)}") as memory:
            memory.append("c", [UserMessage(name)])
            assert memory.conversation_ids().items == ["c"]
            memory.delete("c")


def test_conversations_and_messages(make_memory: MakeMemory, admin: Any, namespace: str) -> None:
    # M6: every name as conversation id and message id
    neighbour = make_memory(memory=f"{namespace}-neighbour")
    neighbour.append("c", [UserMessage("x", id="1")])
    before = snapshot(admin, f"{namespace}-neighbour")
    memory = make_memory()
    for name in NAMES:
        messages = [UserMessage(name, id=name, metadata={"k": name}), UserMessage("two", id="the second")]
        memory.append(name, messages)
    for name in NAMES[::3]:
        found = memory.messages(name)
        assert found[0].text == name
        latest = memory.latest(name, "user")
        assert latest is not None
        assert latest.id == found[-1].id
        (hit,) = memory.search(metadata={"k": name})
        assert (hit.conversation_id, hit.message.id) == (name, name)
        memory.truncate(name, after=name)
        assert [message.text for message in memory.messages(name)] == [name]
    listed: list[str] = []
    cursor: str | None = None
    while True:
        page = memory.conversation_ids(limit=100, cursor=cursor)
        listed += page.items
        cursor = page.token
        if cursor is None:
            break
    assert listed == sorted(NAMES, key=str.encode)
    for name in NAMES:
        memory.delete(name)
    left = {key for key in admin.keys("*") if key.startswith(f"{namespace}/".encode())}
    assert left == {f"{namespace}/{key}".encode() for key in ("generation", "heads")}
    assert snapshot(admin, f"{namespace}-neighbour") == before
    neighbour.delete("c")
