"""Names in queries, and words: F10, D5, S9."""

from __future__ import annotations

import pytest

from entrepot_neo4j.conversations import Conversation, begin_of
from entrepot_neo4j.names import label_of, names_of, new_generation, quoted
from entrepot_neo4j.words import queries_of, words_in

ODD = [
    "a b", "", "-a", "_a", "1a", "é", "a" * 101, "Entrepot_x", "entrepot", "ENTREPOTx", "a/b", "a`b", "a\\u0060b",
    "a`) DETACH DELETE (n", "a'", 'a"', "a\nb", "a\0b", "😀", "x" * 512,
]  # fmt: skip


def test_plain_names_are_labels_and_all_others_are_known_by_a_digest() -> None:
    # D5, F10
    for plain in ("articles", "Articles", "a_1", "a" * 100):
        assert label_of(plain) == plain
    labels = [label_of(name) for name in ODD]
    assert len(set(labels)) == len(ODD)
    for label in labels:
        assert label.startswith("Entrepot_")
        assert quoted(label) == f"`{label}`"


@pytest.mark.parametrize(
    "name", [name for name in ODD if name not in {"entrepot", "Entrepot_x", "ENTREPOTx", "a" * 101}]
)
def test_nothing_but_letters_digits_and_underscores_is_quoted(name: str) -> None:
    # F10
    for text in (name, f"x{name}" if name[:1] in {"-", "1", "_", ""} else name):
        if text.isascii() and text.replace("_", "").isalnum() and text[:1].isalpha() and len(text) <= 200:
            assert quoted(text) == f"`{text}`"
        else:
            with pytest.raises(ValueError, match="letters"):
                quoted(text)


def test_every_generation_is_new() -> None:
    # D5
    made = {new_generation() for _ in range(100)}
    assert len(made) == 100
    names = names_of(label_of("a`b"), made.pop())
    assert len(set(names)) == len(names)
    for name in names:
        assert name.strip("`").replace("_", "").isalnum()


def test_conversations_of_memories_never_meet() -> None:
    # M6
    names = ["a", "a ", "A", "a\uffff", "a😀", "ab", "a/b", "a:b", "é", "e\u0301"]
    ids = {Conversation(memory, name).id for memory in names for name in names}
    assert len(ids) == len(names) ** 2
    for memory in names:
        begin = begin_of(memory)
        within = {one for one in ids if begin < one < begin[:-1] + "\1"}
        assert within == {Conversation(memory, name).id for name in names}


def test_words_are_lower_case_runs_of_letters_and_digits() -> None:
    # S9
    assert words_in("It's NOT a_b, foo-bar: 5.5% (x) AND Straße") == [
        "it", "s", "not", "a", "b", "foo", "bar", "5", "5", "x", "and", "straße",
    ]  # fmt: skip
    assert words_in('\t \n + - && || ! ( ) { } [ ] ^ " ~ * ? : \\ /') == []


def test_a_word_that_the_engine_would_cut_is_one_of_its_own() -> None:
    # S9
    long = ["x" * 200, "x" * 201, "x" * 300, "x" * 300 + "y"]
    (kept, *others) = words_in(" ".join(long))
    assert kept == long[0]
    assert len(set(others)) == 3
    assert all(len(word) < 50 and word.isalnum() for word in others)
    assert queries_of(long[2].upper()) == words_in(long[2])


def test_many_words_are_several_queries() -> None:
    # S9
    text = " ".join(f"w{n}" for n in range(2500)) + " w1 w2"
    asked = queries_of(text)
    assert [len(one.split()) for one in asked] == [1000, 1000, 500]
    assert " ".join(asked).split() == [f"w{n}" for n in range(2500)]
    assert queries_of("?!") == []
