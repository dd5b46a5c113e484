"""The converter: its clauses, written by hand for every leaf, and what they find. F1 to F6, F9, F10."""

from __future__ import annotations

import random
from typing import Any

import pytest
from core.tests.filters.strategies import any_scalars, expressions, leaves
from hypothesis import given
from plugins.elasticsearch.tests.dsl import clauses, fields_of, holds, levels

from entrepot import F, parse_filter
from entrepot.filters import Expression, evaluate
from entrepot_conformance.fuzz import make_documents, make_filter
from entrepot_elasticsearch import ElasticsearchFilterConverter
from entrepot_elasticsearch.filters import MOST_CLAUSES, MOST_LEVELS

DOCUMENTS = make_documents(20261130)
FIELDS = {name: fields_of(metadata) for name, metadata in DOCUMENTS.items()}


def sent(given: str | Expression) -> dict[str, Any]:
    tree = parse_filter(given) if isinstance(given, str) else given
    converted = ElasticsearchFilterConverter().convert(tree)
    assert converted.exact
    return converted.query


def tokens(*words: str) -> dict[str, Any]:
    return {"terms": {"tokens": list(words)}}


def between(field: str = "tokens", **bounds: str) -> dict[str, Any]:
    return {"range": {field: bounds}}


def no(*ways: dict[str, Any]) -> dict[str, Any]:
    return {"bool": {"must_not": list(ways)}}


def some(*ways: dict[str, Any]) -> dict[str, Any]:
    return {"bool": {"should": list(ways), "minimum_should_match": 1}}


LONG = "x" * 600


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("k is null", no(tokens("k\0"))),
        ("k is not null", tokens("k\0")),
        ("k == true", tokens("k\0b1")),
        ("k != false", no(tokens("k\0b0"))),
        ("k == 'a b'", tokens("k\0sa b")),
        ("k == ''", tokens("k\0s")),
        ("k in ['a', true]", tokens("k\0sa", "k\0b1")),
        ("k not in ['a', true]", no(tokens("k\0sa", "k\0b1"))),
        ("k in []", {"match_none": {}}),
        ("k not in []", {"match_all": {}}),
        ("k < 'b'", some(between(gte="k\0s", lt="k\0sb"), between("long", gte="k\0s", lt="k\0sb"))),
        ("k <= 'b'", some(between(gte="k\0s", lte="k\0sb"), between("long", gte="k\0s", lte="k\0sb"))),
        ("k > 'b'", some(between(gt="k\0sb", lt="k\0t"), between("long", gt="k\0sb", lt="k\0t"))),
        ("k >= 'b'", some(between(gte="k\0sb", lt="k\0t"), between("long", gte="k\0sb", lt="k\0t"))),
        ("not k < 'b'", no(between(gte="k\0s", lt="k\0sb"), between("long", gte="k\0s", lt="k\0sb"))),
        (
            f"k > '{LONG}'",
            some(between(gt="k\0s" + "x" * 513, lt="k\0t"), between("long", gt="k\0s" + LONG, lt="k\0t")),
        ),
        ("k == 'a' or k == 'b' or j is not null", tokens("k\0sa", "k\0sb", "j\0")),
        ("k != 'a' and j is null", no(tokens("k\0sa", "j\0"))),
        ("k == 'a' and k == 'b'", {"bool": {"filter": [tokens("k\0sa"), tokens("k\0sb")]}}),
        (
            "k == 'a' and j != 'b'",
            {"bool": {"filter": [tokens("k\0sa")], "must_not": [tokens("j\0sb")]}},
        ),
        ("k == 'a' or j != 'b'", some(tokens("k\0sa"), no(tokens("j\0sb")))),
        (
            "k == 'a' or j < 'b'",
            some(tokens("k\0sa"), between(gte="j\0s", lt="j\0sb"), between("long", gte="j\0s", lt="j\0sb")),
        ),
    ],
)
def test_leaves_as_they_are_sent(text: str, expected: dict[str, Any]) -> None:
    # F2 to F5, F9
    assert sent(text) == expected


def test_ranges_of_numbers_and_instants_lie_within_one_key_and_kind() -> None:
    # F4
    for text, letter in (("5", "n"), ("-0.5", "n"), ("datetime '2026-01-31T12:00:00Z'", "d")):
        low, high = f"k\0{letter}", "k\0" + chr(ord(letter) + 1)
        (below,) = sent(f"k < {text}")["range"].values()
        assert below["gte"] == low
        assert low < below["lt"] < high
        (above,) = sent(f"k >= {text}")["range"].values()
        assert above == {"gte": below["lt"], "lt": high}


def test_comparisons_of_one_key_are_never_merged() -> None:
    # F2: different elements of a list may satisfy them
    both = sent("k > 3 and k < 5")
    assert len(both["bool"]["filter"]) == 2
    assert holds(both, fields_of({"k": [1, 10]}))


def test_thousands_of_filters_find_what_the_evaluator_says() -> None:
    # F1 to F5, F9: exactly where the converter says so, else a superset
    rng = random.Random(20261130)
    exact = 0
    for _ in range(1500):
        tree = make_filter(rng)
        converted = ElasticsearchFilterConverter().convert(tree)
        found = {name for name, fields in FIELDS.items() if holds(converted.query, fields)}
        expected = {name for name, metadata in DOCUMENTS.items() if evaluate(tree, metadata)}
        assert found == expected if converted.exact else found >= expected
        exact += converted.exact
    assert exact > 1400


@given(expressions(), leaves(), any_scalars())
def test_any_filter_on_any_value(tree: Expression, leaf: Expression, value: Any) -> None:
    # F1 to F5
    for asked in (tree, leaf, tree & leaf, tree | ~leaf):
        converted = ElasticsearchFilterConverter().convert(asked)
        for metadata in ({}, {"x": value}, {"x": [value]}):
            wanted = evaluate(asked, metadata)
            found = holds(converted.query, fields_of(metadata))
            assert found is wanted if converted.exact else found or not wanted


def test_strings_and_keys_of_every_length() -> None:
    # F4, F10: up to 512 bytes whole, beyond by a digest and whole for ranges; keys beyond 128 bytes by a digest
    ends = ["", "a", "é", "€", "\uffff", "😀", "\U0010ffff"]
    texts = [
        unit * (512 // len(unit.encode()) + more) + end
        for unit in ("x", "é", "😀")
        for more in (-1, 0, 1)
        for end in ends
    ]
    for key in ("k", "é" * 64, "é" * 65, "k" * 512):
        fields = {text: fields_of({key: text}) for text in texts}
        for operand in texts[::3]:
            for tree in (F[key] < operand, F[key] >= operand, F[key] == operand, ~(F[key] <= operand)):
                query = sent(tree)
                assert [text for text in texts if holds(query, fields[text])] == [
                    text for text in texts if evaluate(tree, {key: text})
                ]


def test_terms_and_bounds_keep_the_limits_of_the_engine() -> None:
    # D8: a term has at most 32,766 bytes, a bound of a range that an index answers at most 1,000
    text = "😀" * 8000
    fields = fields_of({"😀" * 512: [text, text[:128]], "k" * 128: "x" * 512})
    assert max(len(term.encode()) for term in fields["tokens"]) <= 1000
    assert max(len(term.encode()) for term in fields["long"]) <= 32_766
    for key in ("😀" * 512, "k" * 128):
        for part in sent(F[key] < text)["bool"]["should"]:
            for bound in part["range"].get("tokens", {}).values():
                assert len(bound.encode()) <= 1000


def test_what_is_nested_deeper_than_the_engine_takes_is_left_out() -> None:
    # F6, F9
    def nested(depth: int) -> Expression:
        tree = F.k != 0
        for level in range(1, depth):
            tree = (tree | (F.k == level)) if level % 2 else (tree & (F.j == level))
        return tree

    for depth in (5, MOST_LEVELS, MOST_LEVELS + 1, 60, 99):
        converted = ElasticsearchFilterConverter().convert(nested(depth))
        assert converted.exact is (depth <= MOST_LEVELS + 1)
        assert levels(converted.query) <= MOST_LEVELS + 1
        for metadata in ({}, {"k": 0}, {"k": [1, 3], "j": [2, 4]}, {"j": list(range(0, 100, 2))}):
            assert holds(converted.query, fields_of(metadata)) or not evaluate(nested(depth), metadata)


def test_no_more_clauses_than_every_server_takes() -> None:
    # F6, F9: equalities are one list; of ranges what is beyond is left out
    def conjunction(count: int) -> Expression:
        tree = F.k > 0
        for n in range(1, count):
            tree = tree & (F.k > n)
        return tree

    few, many = (
        ElasticsearchFilterConverter().convert(conjunction(500)),
        ElasticsearchFilterConverter().convert(conjunction(501)),
    )
    assert few.exact
    assert clauses(few.query) == 500
    assert not many.exact
    assert clauses(many.query) <= MOST_CLAUSES
    tree = F.k == 0
    for n in range(1, 5000):
        tree = tree | (F.k == n)
    assert sent(tree) == {
        "terms": {"tokens": [word for n in range(5000) for word in sent(F.k == n)["terms"]["tokens"]]}
    }
