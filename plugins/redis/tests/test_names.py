"""Names in keys: no two meet, and none holds a separator. M6, D5, F10."""

from __future__ import annotations

import re

from core.tests.filters.strategies import well_formed_text
from hypothesis import given

from entrepot_redis.names import escaped, memory_names, store_names

NAMES = well_formed_text(min_size=1, max_size=80)


def test_plain_names_stand_as_they_are() -> None:
    assert escaped("articles-2.v_1") == "articles-2.v_1"
    assert escaped("a:b") == "a%3Ab"
    assert escaped("a/b{c}*") == "a%2Fb%7Bc%7D%2A"
    assert escaped("%3A") == "%253A"
    assert escaped("é") == "%C3%A9"


@given(NAMES, NAMES)
def test_names_never_share_an_escape(one: str, two: str) -> None:
    # D5
    assert (escaped(one) == escaped(two)) is (one == two)
    assert re.fullmatch(r"[A-Za-z0-9_.%-]{1,64}", escaped(one))


def test_long_names_differ_by_their_digest() -> None:
    names = ["x" * 64, "x" * 65, "x" * 66, "x" * 512, "y" + "x" * 511, "é" * 40, "é" * 41]
    assert len({escaped(name) for name in names}) == len(names)
    assert all(len(escaped(name)) <= 64 for name in names)


@given(NAMES, NAMES, NAMES)
def test_no_key_of_one_collection_is_taken_for_one_of_another(space: str, one: str, two: str) -> None:
    # D5: whatever the ids are, as generations are digits
    first, second = store_names(space, one), store_names(space, two)
    assert first.prefix("7").startswith(first.base.encode())
    assert first.prefix("7").startswith(second.prefix("7")) is (one == two)
    assert not first.prefix("1").startswith(first.prefix("11"))
    own = {first.record, first.columns, first.registry, first.counter}
    assert len(own) == 4
    assert not any(key.encode().startswith(first.prefix("7")) for key in own)


@given(NAMES, NAMES)
def test_a_memory_and_a_collection_of_one_name_share_nothing(name: str, conversation: str) -> None:
    # M6: the separators differ, and neither stands in an escaped name
    memory, store = memory_names(name), store_names(name, name)
    assert memory.base.endswith("/")
    assert "/" not in store.base
    assert memory.log(conversation) != memory.ids(conversation)
    taken = {memory.conversations, memory.heads, memory.due, memory.counter, memory.said}
    assert len(taken) == 5
    assert not {key.encode() for key in taken} & {memory.log(conversation), memory.ids(conversation)}
