# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownLambdaType=false
# pyright: reportUnknownMemberType=false
"""The converters: their clauses, written by hand for every leaf, and what they find. F1 to F6, F9, F10."""

from __future__ import annotations

import random
from typing import Any

import pytest
from core.tests.filters.strategies import any_scalars, expressions, leaves
from hypothesis import given
from plugins.mongodb.tests.dsl import fields_of, holds, levels

from entrepot import F, parse_filter
from entrepot.filters import Expression, evaluate
from entrepot_conformance.fuzz import make_documents, make_filter
from entrepot_mongodb import MongoDBFilterConverter
from entrepot_mongodb.filters import MOST_BYTES, MOST_LEVELS, SearchFilterConverter

DOCUMENTS = make_documents(20261130)
FIELDS = {name: fields_of(metadata) for name, metadata in DOCUMENTS.items()}


def sent(given: str | Expression) -> dict[str, Any]:
    tree = parse_filter(given) if isinstance(given, str) else given
    converted = MongoDBFilterConverter().convert(tree)
    assert converted.exact
    return converted.query


def searched(given: str) -> dict[str, Any]:
    return SearchFilterConverter().convert(parse_filter(given)).query


def some(*words: str) -> dict[str, Any]:
    return {"t": {"$in": list(words)}}


def none(*words: str) -> dict[str, Any]:
    return {"t": {"$nin": list(words)}}


def between(**bounds: str) -> dict[str, Any]:
    return {"t": {"$elemMatch": {f"${sign}": at for sign, at in bounds.items()}}}


def outside(**bounds: str) -> dict[str, Any]:
    return {"t": {"$not": between(**bounds)["t"]}}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("k is null", none("k\0")),
        ("k is not null", some("k\0")),
        ("k == true", some("k\0b1")),
        ("k != false", none("k\0b0")),
        ("k == 'a b'", some("k\0sa b")),
        ("k == ''", some("k\0s")),
        ("k in ['a', true]", some("k\0sa", "k\0b1")),
        ("k not in ['a', true]", none("k\0sa", "k\0b1")),
        ("k in []", {"_id": {"$in": []}}),
        ("k not in []", {}),
        ("k < 'b'", between(gte="k\0s", lt="k\0sb")),
        ("k <= 'b'", between(gte="k\0s", lte="k\0sb")),
        ("k > 'b'", between(gt="k\0sb", lt="k\0t")),
        ("k >= 'b'", between(gte="k\0sb", lt="k\0t")),
        ("not k < 'b'", outside(gte="k\0s", lt="k\0sb")),
        ("not k >= 'b'", outside(gte="k\0sb", lt="k\0t")),
        ("k == 'a' or k == 'b' or j is not null", some("k\0sa", "k\0sb", "j\0")),
        ("k != 'a' and j is null", none("k\0sa", "j\0")),
        ("k == 'a' and k == 'b'", {"$and": [some("k\0sa"), some("k\0sb")]}),
        ("k == 'a' and j != 'b'", {"$and": [some("k\0sa"), none("j\0sb")]}),
        ("k == 'a' or j != 'b'", {"$or": [some("k\0sa"), none("j\0sb")]}),
        ("k != 'a' or j != 'b'", {"$or": [none("k\0sa"), none("j\0sb")]}),
        ("k == '$where' and `$or` == 1 or `a.b` is null", None),
    ],
)
def test_leaves_as_they_are_sent(text: str, expected: dict[str, Any] | None) -> None:
    # F2 to F5, F9
    query = sent(text)
    if expected is not None:
        assert query == expected
    assert names_of(query) <= {"t", "_id", "$and", "$or", "$in", "$nin", "$not", "$elemMatch", "$gte", "$gt", "$lt", "$lte"}  # fmt: skip


def names_of(query: Any) -> set[str]:
    """Return the names of all fields and operators of a query."""
    if isinstance(query, dict):
        return set(query) | {name for part in query.values() for name in names_of(part)}
    return {name for part in query for name in names_of(part)} if isinstance(query, list) else set()


def bare_bounds(query: Any, *, within: bool = False) -> int:
    """Return how many bounds stand outside of `$elemMatch`."""
    if isinstance(query, dict):
        return sum(
            (name in {"$gt", "$gte", "$lt", "$lte"} and not within)
            + bare_bounds(part, within=name == "$elemMatch")
            for name, part in query.items()
        )
    return sum(bare_bounds(part) for part in query) if isinstance(query, list) else 0


def test_bounds_stand_in_one_element_each() -> None:
    # F2: one array holds the tokens of all keys, so two bare bounds might be met by two elements
    document = fields_of({"k": ["a", "z"]})
    bounds = {"$gte": "k\0sm", "$lt": "k\0sn"}
    assert holds({"t": bounds}, document)  # as a server reads it; a double of it may not
    assert not holds({"t": {"$elemMatch": bounds}}, document)
    rng = random.Random(20261130)
    ranges = 0
    for _ in range(500):
        query = MongoDBFilterConverter().convert(make_filter(rng)).query
        assert bare_bounds(query) == 0
        ranges += "$elemMatch" in names_of(query)
    assert ranges > 100


def test_ranges_of_numbers_and_instants_lie_within_one_key_and_kind() -> None:
    # F4
    for text, letter in (("5", "n"), ("-0.5", "n"), ("datetime '2026-01-31T12:00:00Z'", "d")):
        low, high = f"k\0{letter}", "k\0" + chr(ord(letter) + 1)
        below = sent(f"k < {text}")["t"]["$elemMatch"]
        assert below["$gte"] == low
        assert low < below["$lt"] < high
        assert sent(f"k >= {text}")["t"]["$elemMatch"] == {"$gte": below["$lt"], "$lt": high}


def test_comparisons_of_one_key_are_never_merged() -> None:
    # F2: different elements of a list may satisfy them
    both = sent("k > 3 and k < 5")
    assert len(both["$and"]) == 2
    assert holds(both, fields_of({"k": [1, 10]}))


def test_thousands_of_filters_find_what_the_evaluator_says() -> None:
    # F1 to F5, F9: exactly where the converter says so, else a superset
    rng = random.Random(20261130)
    exact = 0
    for _ in range(300):
        tree = make_filter(rng)
        converted = MongoDBFilterConverter().convert(tree)
        found = {name for name, fields in FIELDS.items() if holds(converted.query, fields)}
        expected = {name for name, metadata in DOCUMENTS.items() if evaluate(tree, metadata)}
        assert found == expected if converted.exact else found >= expected
        exact += converted.exact
        superset = SearchFilterConverter().convert(tree).query
        assert {name for name, fields in FIELDS.items() if holds(superset, fields)} >= expected
    assert exact > 280


@given(expressions(), leaves(), any_scalars())
def test_any_filter_on_any_value(tree: Expression, leaf: Expression, value: Any) -> None:
    # F1 to F5
    for asked in (tree, leaf, tree & leaf, tree | ~leaf):
        converted = MongoDBFilterConverter().convert(asked)
        superset = SearchFilterConverter().convert(asked).query
        for metadata in ({}, {"x": value}, {"x": [value]}):
            wanted = evaluate(asked, metadata)
            found = holds(converted.query, fields_of(metadata))
            assert found is wanted if converted.exact else found or not wanted
            assert holds(superset, fields_of(metadata)) or not wanted


def test_the_order_of_strings_is_that_of_code_points_in_utf8_and_in_utf16() -> None:
    # F4: servers compare bytes of UTF-8, doubles of them UTF-16 units
    texts = ["", "a", "\u00e9", "\ud7fe", "\ud7ff", "\ue000", "\uffff", "\U00010000", "\U0010ffff"]
    texts += [f"{text}{end}" for text in texts for end in ("\x01", "z", "\uffff", "\U0001f600")]
    for key in ("k", "\uffff", "\U0001f600", "k" * 200):
        stored = {text: list(fields_of({key: text})["t"]) for text in texts}
        for operand in texts:
            for tree in (F[key] < operand, F[key] <= operand, F[key] > operand, F[key] == operand):
                expected = [text for text in texts if evaluate(tree, {key: text})]
                query = sent(tree)
                assert [text for text in texts if holds(query, {"t": stored[text]})] == expected
                turned = _in_units(query)
                assert [text for text in texts if holds(turned, {"t": _in_units(stored[text])})] == expected


def _in_units(part: Any) -> Any:
    """Return a query with its strings as UTF-16 units, each as one character."""
    if isinstance(part, dict):
        return {name: _in_units(one) for name, one in part.items()}
    if isinstance(part, list):
        return [_in_units(one) for one in part]
    data = part.encode("utf-16-be")
    return "".join(chr(int.from_bytes(data[at : at + 2], "big")) for at in range(0, len(data), 2))


@pytest.mark.parametrize("converter", [MongoDBFilterConverter, SearchFilterConverter])
def test_what_is_nested_deeper_than_bson_takes_is_left_out(converter: type[MongoDBFilterConverter]) -> None:
    # F6, F9: of 100 levels the command and the ids of a request need some
    def nested(depth: int) -> Expression:
        tree = F.k != 0
        for level in range(1, depth):
            tree = (tree | (F.k == level)) if level % 2 else (tree & (F.j == level))
        return tree

    for depth in (5, MOST_LEVELS, MOST_LEVELS + 1, 60, 99):
        converted = converter().convert(nested(depth))
        assert converted.exact is (depth <= MOST_LEVELS + 1)
        assert levels(converted.query) <= 90
        for metadata in ({}, {"k": 0}, {"k": [1, 3], "j": [2, 4]}, {"j": list(range(0, 100, 2))}):
            assert holds(converted.query, fields_of(metadata)) or not evaluate(nested(depth), metadata)


def test_no_more_bytes_than_a_command_takes() -> None:
    # F6, F9
    text = "😀" * 2000
    tree = F.k == text
    for n in range(600):
        tree = tree & (F.k != f"{text}{n}")
    converted = MongoDBFilterConverter().convert(tree)
    assert not converted.exact
    tokens = [one for part in converted.query["$and"] for one in next(iter(part["t"].values()))]
    assert MOST_BYTES / 2 < sum(len(one.encode()) for one in tokens) <= MOST_BYTES
    assert holds(converted.query, fields_of({"k": text}))


def test_ten_thousand_equalities_are_one_list() -> None:
    # F6
    tree = F.k == 0
    for n in range(1, 5000):
        tree = tree | (F.k == n)
    assert sent(tree) == some(*(word for n in range(5000) for word in sent(F.k == n)["t"]["$in"]))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("k == 'a'", some("k\0sa")),
        ("k not in ['a', 'b']", none("k\0sa", "k\0sb")),
        ("k > 3", some("k\0")),
        ("not k > 3", {}),
        ("k > 3 and j == 'a'", {"$and": [some("k\0"), some("j\0sa")]}),
        ("k > 3 or j == 'a'", some("k\0", "j\0sa")),
        ("not k > 3 or j == 'a'", {}),
        ("not k > 3 and j == 'a'", some("j\0sa")),
        ("k is null", none("k\0")),
    ],
)
def test_what_the_vector_search_is_asked_for(text: str, expected: dict[str, Any]) -> None:
    # F9: equality and its complement, and of a range that its key is there
    assert searched(text) == expected
