"""Translation, clause by clause; the suite compares answers on thousands of random filters."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from entrepot.encoding import element_text
from entrepot.filters import parse_filter

from entrepot_duckdb.filters import DuckdbFilterConverter, codes_of

HAS = "coalesce(list_contains(codes[?], ?), false)"


@pytest.mark.parametrize(
    ("text", "sql", "values"),
    [
        # F2, F3: negation keeps what lacks the key
        ("k == 'x'", HAS, ("k", "sx")),
        ("k != 'x'", f"(NOT {HAS})", ("k", "sx")),
        (
            "NOT k < 5",
            "(NOT coalesce(len(list_filter(codes[?], lambda code: code >= ? AND code < ?)) > 0, false))",
            ("k", "n", element_text(5)),
        ),
        (
            "k >= 'x'",
            "coalesce(len(list_filter(codes[?], lambda code: code >= ? AND code < ?)) > 0, false)",
            ("k", "sx", "t"),
        ),
        (
            "k IN [1, 'x']",
            "coalesce(list_has_any(codes[?], ?::VARCHAR[]), false)",
            ("k", ["nnvo", "sx"]),
        ),
        # F1
        ("k IS NULL", "(NOT map_contains(codes, ?))", ("k",)),
        (
            "a == true AND (b == 1 OR c == '')",
            f"({HAS} AND ({HAS} OR {HAS}))",
            ("a", "b1", "b", "nnvo", "c", "s"),
        ),
        # F10: a key and a value are data
        ("`k\\\" OR 1` == '\\' OR 1 = 1'", HAS, ('k" OR 1', "s' OR 1 = 1")),
    ],
)
def test_every_comparison_is_exact(text: str, sql: str, values: tuple[object, ...]) -> None:
    converted = DuckdbFilterConverter().convert(parse_filter(text))
    assert converted.query.sql == sql
    assert converted.query.values == values
    assert converted.exact


def test_codes_tell_kinds_apart_and_leave_out_what_is_absent() -> None:
    codes = codes_of({"t": True, "n": [1, 1.0], "s": "1", "d": datetime(2026, 1, 31, tzinfo=UTC), "e": []})
    assert codes == {"t": ["b1"], "n": ["nnvo", "nnvo"], "s": ["s1"], "d": ["d3hgj8m4h5"]}
