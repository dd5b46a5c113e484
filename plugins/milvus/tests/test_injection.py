"""Whatever a name or a value holds, it is data: F10, D3, D5."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from entrepot import Document, F
from entrepot_conformance.hostile import HOSTILE
from entrepot_milvus import MilvusFilterConverter
from entrepot_milvus.expressions import rendered
from entrepot_milvus.names import collection_name

if TYPE_CHECKING:
    from plugins.milvus.tests.servers import Make, MakeLite

VECTOR = [1.0, 1.0]
CANARY = "canary"
"""A document that no filter below matches, and that every injection would find or delete."""
SYNTAX = [
    '"', "'", "\\", '\\"', '" or id != "', "' or id != '", '"] or id != ["', '") or array_contains(tokens, "',
    'id != ""', 'x" or "1" == "1', "%", "%%", "_", 'like "%"', "{v}", "${v}", "\n", "\t", "/* */", "--", "true",
    "null", "[]", "*", "//", "é", "e\u0301", "\u2028", "😀", '"; drop collection', "$meta", "#", "count(*)",
]  # fmt: skip


def check(store: Any) -> None:
    names = list(dict.fromkeys([*SYNTAX, *HOSTILE]))
    names = [name for name in names if 0 < len(name) <= 512]
    store.add([Document(CANARY, id=CANARY, metadata={CANARY: CANARY}, vector=VECTOR)])
    store.add(
        [
            Document(
                name, id=name, metadata={"value": name, "list": [name, "shared"], name: n}, vector=VECTOR
            )
            for n, name in enumerate(names)
        ]
    )
    assert [found.id for found in store.get(names)] == names
    for n, name in enumerate(names):
        (found,) = store.scan((F.value == name) & (F.list == name))
        assert (found.id, found.text) == (name, name)
        if n % 4 == 0 and name not in {"value", "list"}:
            assert [found.id for found in store.scan((F[name] == n) & (F[name] >= n), include=[])] == [name]
            assert store.count(F.value <= name) == sum(other <= name for other in names)
    assert store.count(F.list == "shared") == len(names)
    for name in names[::7]:
        store.delete([name])
    for name in names[1::7]:
        store.delete(filter=F.value == name)
    left = set(names) - set(names[::7]) - set(names[1::7])
    assert {found.id for found in store.scan(include=[])} == left | {CANARY}


def test_ids_values_and_keys_on_a_server(make: Make) -> None:
    # D1, D3, F10: every name as id, as value, in a list and as key, each found by itself alone
    check(make())


def test_ids_values_and_keys_in_lite(make_lite: MakeLite) -> None:
    # D1, D3, F10
    check(make_lite())


def test_collections_and_partitions(make: Make, name: str) -> None:
    # D5: names that would be syntax, beside one that must not notice
    neighbour = make()
    neighbour.add([Document("x", id="a", metadata={"k": 1}, vector=VECTOR)])
    for word in ('"', "a b", "é", "x' or '1"):
        collection = f"{name}{word}"
        store = make(collection=collection, partition=word)
        store.add([Document(word, id="a", metadata={"k": word}, vector=VECTOR)])
        assert collection in store.list_collections()
        assert [found.text for found in store.scan(F.k == word)] == [word]
        client: Any = store.native_client
        assert collection_name(collection) in client.list_collections()
        make(collection=collection).drop_collection()
    assert neighbour.count("k == 1") == 1


@pytest.mark.parametrize("word", [word for word in SYNTAX if not word.isalnum()])
def test_no_word_reaches_an_expression(word: str) -> None:
    # F10: not even in a range
    for expression in (F[word] < word, ~(F[word] >= word), F[word].in_([word, 1]), F[word].is_null()):
        text = rendered(MilvusFilterConverter().convert(expression).query)
        if len(word) > 3:
            assert word not in text
