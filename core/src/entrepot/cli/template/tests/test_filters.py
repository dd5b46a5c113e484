"""Translation, clause by clause; the suite compares answers on thousands of random filters."""

from __future__ import annotations

import pytest
from entrepot.filters import parse_filter

from entrepot_shelf import ShelfFilterConverter


@pytest.mark.parametrize(
    ("text", "clause"),
    [
        # F2, F3: negation keeps what lacks the key
        ("k == 'x'", {"eq": ["k", "x"]}),
        ("k != 'x'", {"not": {"eq": ["k", "x"]}}),
        ("NOT k < 5", {"not": {"lt": ["k", 5]}}),
        ("k IN [1, 'x']", {"any": [{"eq": ["k", 1]}, {"eq": ["k", "x"]}]}),
        # F1
        ("k IS NULL", {"not": {"has": "k"}}),
        (
            "a == true AND (b >= 1 OR c == '')",
            {"all": [{"eq": ["a", True]}, {"any": [{"gte": ["b", 1]}, {"eq": ["c", ""]}]}]},
        ),
        # F10: a key and a value are data
        ("`k\\\" OR 1` == '\\' OR 1 = 1'", {"eq": ['k" OR 1', "' OR 1 = 1"]}),
    ],
)
def test_what_the_engine_knows_is_exact(text: str, clause: object) -> None:
    converted = ShelfFilterConverter().convert(parse_filter(text))
    assert converted.query == clause
    assert converted.exact


@pytest.mark.parametrize(
    ("text", "clause"),
    [
        # F4, F9: doubles merge these, so the core looks again
        ("k == 9007199254740993", {"eq": ["k", 9007199254740993]}),
        ("k < 9007199254740993", {"lte": ["k", 9007199254740993]}),
        ("k != 9007199254740993", {"all": []}),
        ("k > datetime '2026-01-31T12:00:00Z' AND a == 1", {"eq": ["a", 1]}),
    ],
)
def test_what_it_does_not_know_is_a_superset(text: str, clause: object) -> None:
    converted = ShelfFilterConverter().convert(parse_filter(text))
    assert converted.query == clause
    assert not converted.exact
