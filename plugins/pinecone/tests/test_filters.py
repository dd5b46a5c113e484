"""The converter: its clauses, written by hand for every leaf, and what they find. F1 to F6, F9, F10."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any, cast

import pytest
from core.tests.filters.strategies import any_scalars, expressions, leaves
from hypothesis import given
from plugins.pinecone.tests.dsl import holds

from entrepot import F, parse_filter
from entrepot.filters import Expression, evaluate
from entrepot_conformance.fuzz import make_documents, make_filter
from entrepot_pinecone import PineconeFilterConverter
from entrepot_pinecone.tokens import fields_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from entrepot.metadata import Metadata

DOCUMENTS = make_documents(20261130)
FIELDS = {name: fields_of(cast("Metadata", metadata)) for name, metadata in DOCUMENTS.items()}


def converted(text: str) -> tuple[dict[str, Any], bool]:
    found = PineconeFilterConverter().convert(parse_filter(text))
    return found.query, found.exact


def absent_or(field: str, clause: dict[str, Any]) -> dict[str, Any]:
    return {"$or": [{field: {"$exists": False}}, {field: clause}]}


MOMENT = 1769860800000000.0
"""2026-01-31T12:00:00Z in microseconds."""
AB = float(0x6162 << 32)


@pytest.mark.parametrize(
    ("text", "clause", "exact"),
    [
        ("k is null", {"e_k": {"$exists": False}}, True),
        ("k is not null", {"e_k": {"$exists": True}}, True),
        ("k == true", {"e_k": {"$in": ["b1"]}}, True),
        ("k == 'ab'", {"e_k": {"$in": ["sab"]}}, True),
        ("k == ' ab'", {"e_k": {"$in": ["x206162"]}}, True),
        ("k == ''", {"e_k": {"$in": ["x"]}}, True),
        ("k == 'é'", {"e_k": {"$in": ["xc3a9"]}}, True),
        ("k in ['a', true]", {"e_k": {"$in": ["sa", "b1"]}}, True),
        ("k != 'a'", absent_or("e_k", {"$nin": ["sa"]}), False),
        ("k not in ['a', 'b']", absent_or("e_k", {"$nin": ["sa", "sb"]}), False),
        ("k in []", {"_v": {"$eq": ""}}, True),
        ("k not in []", {}, True),
        ("k < 5", {"nl_k": {"$lt": 5.0}}, True),
        ("k <= 5", {"nl_k": {"$lte": 5.0}}, True),
        ("k > 5", {"nh_k": {"$gt": 5.0}}, True),
        ("k >= 5", {"nh_k": {"$gte": 5.0}}, True),
        ("not k < 5", absent_or("nl_k", {"$gte": 5.0}), True),
        ("not k >= 5", absent_or("nh_k", {"$lt": 5.0}), True),
        ("k < 9007199254740993", {"nl_k": {"$lte": 9007199254740992.0}}, False),
        ("not k <= 9007199254740993", absent_or("nl_k", {"$gte": 9007199254740992.0}), False),
        ("k > datetime '2026-01-31T12:00:00Z'", {"dh_k": {"$gt": MOMENT}}, True),
        ("k < 'ab'", {"sl_k": {"$lt": AB}}, True),
        ("k > 'abcdefgh'", {"sh_k": {"$gte": float(int.from_bytes(b"abcdef", "big"))}}, False),
        (
            "k == 1 and k is not null",
            {"$and": [{"e_k": {"$in": ["no2fp"]}}, {"e_k": {"$exists": True}}]},
            True,
        ),
    ],
)
def test_leaves_as_they_are_sent(text: str, clause: dict[str, Any], exact: bool) -> None:
    # F2 to F5, F9
    found = converted(text)
    if "no2fp" in str(clause):  # how a number is written is the core's
        assert list(found[0]["$and"]) == [{"e_k": {"$in": [fields_of({"k": 1.0})["e_k"][0]]}}, {"e_k": {"$exists": True}}]  # fmt: skip
        assert found[1] is exact
        return
    assert found == (clause, exact)


def names_of(query: Any) -> set[str]:
    """Return the names of all fields and operators of a filter."""
    if isinstance(query, dict):
        clause = cast("dict[str, Any]", query)
        return set(clause) | {name for part in clause.values() for name in names_of(part)}
    parts = cast("Sequence[Any]", query if isinstance(query, list) else ())
    return {name for part in parts for name in names_of(part)}


def test_keys_are_no_operators_and_no_paths() -> None:
    # F10
    operators = {"$and", "$or", "$in", "$nin", "$exists", "$eq", "$gt", "$gte", "$lt", "$lte"}
    for key in ("$where", "$or", "a.b", 'a"b', "e_k", "_m", "é", "k" * 200, " ", "a b"):
        found = PineconeFilterConverter().convert((F[key] == "$ne") | (F[key] < 3) | F[key].is_null()).query
        fields = names_of(found) - operators
        assert len(fields) == 2
        assert all(name.isascii() and name.replace("_", "").isalnum() for name in fields)


def test_comparisons_of_one_key_are_never_merged() -> None:
    # F2: different elements of a list may satisfy them
    both = converted("k > 3 and k < 5")[0]
    assert len(both["$and"]) == 2
    assert holds(both, fields_of({"k": [1, 10]}))


@pytest.mark.parametrize("strict", [True, False])
def test_random_filters_find_what_the_evaluator_says(strict: bool) -> None:
    # F1 to F5, F9: exactly where the converter says so, else a superset, whichever way $nin is read
    rng = random.Random(20261130)
    exact = 0
    for _ in range(300):
        tree = make_filter(rng)
        made = PineconeFilterConverter().convert(tree)
        found = {name for name, fields in FIELDS.items() if holds(made.query, fields, strict=strict)}
        expected = {name for name, metadata in DOCUMENTS.items() if evaluate(tree, metadata)}
        assert found == expected if made.exact else found >= expected
        exact += made.exact
    assert exact > 80


@given(expressions(), leaves(), any_scalars())
def test_any_filter_on_any_value(tree: Expression, leaf: Expression, value: Any) -> None:
    # F1 to F5
    for asked in (tree, leaf, tree & leaf, tree | ~leaf):
        made = PineconeFilterConverter().convert(asked)
        documents: tuple[dict[str, Any], ...] = ({}, {"x": value}, {"x": [value]})
        for metadata in documents:
            wanted = evaluate(asked, metadata)
            for strict in (True, False):
                found = holds(made.query, fields_of(metadata), strict=strict)
                assert found is wanted if made.exact else found or not wanted
