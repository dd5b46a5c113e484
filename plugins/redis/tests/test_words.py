"""Words: S9."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from entrepot import Document
from entrepot_redis.words import odd_words, spaced, unspaced, words_of

if TYPE_CHECKING:
    from plugins.redis.tests.servers import Make


def test_words_are_runs_of_letters_and_digits() -> None:
    assert words_of("Über snake_case, A-1 a") == ["über", "snake", "case", "a", "1"]
    assert words_of("...") == []
    assert len(words_of("x" * 5000)[0]) == 24


def test_only_what_the_engine_would_cut_otherwise_is_kept_twice() -> None:
    assert odd_words("Plain words, cut at signs: (a-b) c+d\te\u00e9") == ""
    assert odd_words("plain snake_case plain") == "snake case"
    assert odd_words("say \u201chello there\u201d now") == "hello there"
    assert odd_words("a/b c\\d e|f") == "a b c d e f"
    assert odd_words("a\u00a0b") == "a b"


@given(
    st.text(
        alphabet=st.one_of(st.sampled_from("a \\\n\r\t\x01\x7f,"), st.characters(codec="utf-8")), max_size=30
    )
)
def test_stored_texts_are_read_as_they_were(text: str) -> None:
    # D4
    assert unspaced(spaced(text)) == text


def test_a_long_text_without_spaces_takes_no_time() -> None:
    began = time.perf_counter()
    odd_words("a" * 300_000)
    odd_words("a_" * 150_000)
    assert time.perf_counter() - began < 5  # a pattern that goes back would take minutes


SIGNS = [chr(code) for code in range(1, 128) if not chr(code).isalnum()] + [
    "\u00a0",
    "\u2028",
    "\u201c",
    "\u2014",
    "\u3000",
    "\u00ad",
    "\u0301",
    "\U0001f600",
]


def test_words_are_found_whatever_stands_between_them(make: Make) -> None:
    # S9
    store = make()
    texts = {f"{n}": f"left{n}{sign}right{n}" for n, sign in enumerate(SIGNS)}
    store.add([Document(text, id=name, vector=[1.0, 1.0]) for name, text in texts.items()])
    for n in range(len(SIGNS)):
        for word in (f"left{n}", f"RIGHT{n}"):
            assert [hit.id for hit in store.similarity_search(word, mode="fulltext")] == [str(n)], SIGNS[n]


@pytest.mark.parametrize(
    "query",
    [
        "inf",
        "nan",
        "1e5",
        "007",
        "-5",
        "@x:(a)",
        "a|b",
        "$v",
        "*",
        '"a b"',
        "ismissing(@t)",
        "a => {$weight: 0}",
        "%a%",
    ],
)
def test_nothing_in_a_query_is_syntax(make: Make, query: str) -> None:
    # S9, F10
    store = make()
    words = words_of(query)
    store.add([Document(f"before {word} after", id=word, vector=[1.0, 1.0]) for word in words])
    store.add([Document("something else", id="else", vector=[1.0, 1.0])])
    found = {hit.id for hit in store.similarity_search(query, mode="fulltext", top_k=20)}
    assert found == set(words)


def test_very_long_words_are_told_apart(make: Make) -> None:
    # S9
    store = make()
    store.add([Document("x" * 5000 + end, id=end, vector=[1.0, 1.0]) for end in ("a", "b")])
    assert [hit.id for hit in store.similarity_search("x" * 5000 + "b", mode="fulltext")] == ["b"]


def test_no_sign_hides_a_word_or_makes_one_of_two(make: Make) -> None:
    # S9: also behind a backslash, which the engine takes for an escape; and D4
    store = make(metric="euclidean")
    between = [
        *SIGNS,
        *(f"\\{sign}" for sign in SIGNS),
        *(f"{sign}\\" for sign in SIGNS),
        *(f"{sign} " for sign in SIGNS),
    ]
    texts = {f"{n}": f"set{sign}up" for n, sign in enumerate(between)}
    store.add([Document(text, id=name, vector=[1.0, 1.0]) for name, text in texts.items()])
    store.add([Document("setup", id="one", vector=[1.0, 1.0])])
    everything = len(texts) + 1
    for word, expected in (("set", set(texts)), ("up", set(texts)), ("setup", {"one"})):
        hits = store.similarity_search(word, mode="fulltext", top_k=everything)
        assert {hit.id for hit in hits} == expected
    assert {document.id: document.text for document in store.scan()} == {**texts, "one": "setup"}


def test_a_letter_that_is_two_signs_in_lower_case(make: Make) -> None:
    # S9: "\u0130" is an i and a dot above it, which is no letter
    store = make(metric="euclidean")
    store.add([Document("set\u0130up", id="a", vector=[1.0, 1.0])])
    for word, count in (("seti", 1), ("up", 1), ("SET\u0130UP", 1), ("set", 0), ("setup", 0), ("setiup", 0)):
        assert len(store.similarity_search(word, mode="fulltext")) == count, word
