"""Hostile inputs wherever a caller gives a string: stored, found and named as they are, with no other effect: F10."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from entrepot import Document, F, SearchRequest, parse_filter
from entrepot.errors import ConfigurationError, FilterError
from entrepot.filters import evaluate, format_filter
from entrepot_conformance.hostile import HOSTILE
from entrepot_conformance.tests.store.data import declined

if TYPE_CHECKING:
    from entrepot_conformance.endpoints import Stores

SHARES = 4
"""Tests that share the inputs between them, so that they run beside each other."""


def test_there_are_hundreds_of_them() -> None:
    # F10
    assert len(set(HOSTILE)) >= 500


@pytest.mark.parametrize("share", range(SHARES))
def test_ids_keys_values_and_texts_are_data(stores: Stores, share: int) -> None:
    # F10, D1, D3, D4
    inputs = HOSTILE[share::SHARES]
    canary = stores(beside="canary")
    canary.add([Document("a bird", id="canary", metadata={"k": "v"}, vector=[1.0, 0.0])])
    store = stores()
    store.add(
        [
            Document(odd, id=odd, metadata={odd: number, "k": odd, "l": [odd, "other"]}, vector=[1.0, number])
            for number, odd in enumerate(inputs)
        ]
    )
    assert {found.id: (found.text, found.metadata["k"]) for found in store.scan()} == {
        odd: (odd, odd) for odd in inputs
    }
    for number, odd in enumerate(inputs):
        assert {found.id for found in store.scan(F.k == odd)} == {odd}
        assert store.count(parse_filter(format_filter((F[odd] == number) & (F.l == odd)))) == 1
    assert store.count(~F.k.in_(list(inputs))) == 0
    assert [found.id for found in store.get(inputs[:50])] == list(inputs[:50])
    for odd in inputs[:10]:
        hits = store.similarity_search(SearchRequest(near_id=odd, top_k=2, ids=inputs[:20]))
        assert {hit.id for hit in hits} <= set(inputs[:20]) - {odd}
        store.update([odd], set={odd: "new"})
        assert store.count(F[odd] == "new") == 1
    store.delete(list(inputs[: len(inputs) // 2]))
    assert {found.id for found in store.scan()} == set(inputs[len(inputs) // 2 :])
    assert [(found.id, found.text, found.metadata) for found in canary.scan()] == [
        ("canary", "a bird", {"k": "v"})
    ]


def test_words_of_a_search_are_words(stores: Stores) -> None:
    # F10, S9: never syntax, whatever stands around the word
    store = stores()
    store.add(
        [
            Document("a needle in hay", id="1", vector=[1.0, 0.0]),
            Document("canary drop table", id="2", vector=[1.0, 1.0]),
        ]
    )
    if declined(store, "fulltext"):
        return
    for odd in HOSTILE[::3]:
        hits = {hit.id for hit in store.similarity_search(f"{odd} needle", mode="fulltext", top_k=5)}
        assert hits >= {"1"}
    assert store.count() == 2


def test_texts_of_filters_are_parsed_or_refused(stores: Stores) -> None:
    # F10, F7: a hostile text never reaches the engine as it is
    store = stores()
    store.add([Document("x", id="1", metadata={"k": "v"}, vector=[1.0, 0.0])])
    for odd in HOSTILE[::2]:
        for text in (f"k == 'v'{odd}", f"k == {odd}", f"{odd} == 'v'"):
            try:
                expected = int(evaluate(parse_filter(text), {"k": "v"}))
            except FilterError:
                with pytest.raises(FilterError):
                    store.count(text)
            else:
                assert store.count(text) == expected
    assert [(found.id, found.metadata) for found in store.scan()] == [("1", {"k": "v"})]


def test_names_of_collections_that_differ_are_different_collections(stores: Stores) -> None:
    # D5, F10: nothing is folded, trimmed, composed or cut
    names = ("books", "Books", "books ", "bo oks", "books.", "caf\u00e9", "cafe\u0301", "b" * 70, "b" * 71)
    made: dict[str, str] = {}
    for name in names:
        with suppress(ConfigurationError):  # a name that the engine cannot have is refused
            stores(beside=name).add([Document(name, id="1", vector=[1.0, 0.0])])
            made[name] = name
    assert len(made) >= 2
    for name in made:
        assert [found.text for found in stores(beside=name).scan()] == [name]


def test_names_of_collections_are_names_or_refused(stores: Stores) -> None:
    # F10, D5
    canary = stores(beside="canary")
    canary.add([Document("a bird", id="canary", vector=[1.0, 0.0])])
    for odd in HOSTILE[::40]:
        with suppress(ConfigurationError):
            store = stores(beside=odd)
            store.add([Document(odd, id="1", vector=[1.0, 0.0])])
            assert [found.text for found in store.scan()] == [odd]
            store.drop_collection()
    assert [(found.id, found.text) for found in canary.scan()] == [("canary", "a bird")]
