"""Payloads, names and words: D1, D4, F2, F4, S9. Pure functions."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, cast
from uuid import UUID, uuid5

import pytest
from hypothesis import given
from hypothesis import strategies as st

from entrepot.encoding import equality_token, key_token, presence_token
from entrepot.metadata import encode_metadata
from entrepot_qdrant.fields import NATURAL, indexed, natural, payload_of, wide, wishes
from entrepot_qdrant.names import collection_name, key_name, point_id
from entrepot_qdrant.words import asked, place_of, weighted, words_in

AB = 0x616200000000


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (5, {"n": {"k": 5}}),
        (5.0, {"n": {"k": 5}}),
        ([7, 5, 6.0, 5], {"n": {"k": [5, 7]}}),  # F2: the ends stand for all
        (2.5, {"w": {"k": [{"a": 0xC00400000000, "b": 0}]}}),
        ([2.5, 1], {"n": {"k": 1}, "w": {"k": [{"a": 0xC00400000000, "b": 0}]}}),
        (datetime(2026, 1, 31, 12, tzinfo=UTC), {"d": {"k": "2026-01-31T12:00:00.000000Z"}}),
        ("ab", {"o": {"k": [{"a": AB}]}}),
        (["ab", "aa", "ab"], {"o": {"k": [{"a": 0x616100000000}, {"a": AB}]}}),
        ("abcdef", {"o": {"k": [{"a": int.from_bytes(b"abcdef", "big"), "b": 0}]}}),
        (True, {}),
        ([], {}),
    ],
)
def test_fields_for_ranges(value: Any, expected: dict[str, Any]) -> None:
    payload = indexed({"k": value})
    tokens = payload.pop("t", [])
    assert payload == expected
    values: list[Any] = value if isinstance(value, list) else [value]  # pyright: ignore[reportUnknownVariableType]
    wanted: set[str] = (
        {presence_token("k"), *(equality_token("k", each) for each in values)} if values else set()
    )
    assert set(tokens) == wanted
    assert len(tokens) == len(wanted)


numbers = st.one_of(
    st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False, allow_infinity=False), st.integers(-9, 9)
)


@given(numbers, numbers)
def test_numbers_compare_as_their_pieces_do(one: float, other: float) -> None:
    # F4: int and float by exact value; no piece has more than 48 bits, which a double holds
    assert (wide(one) < wide(other)) == (one < other)
    assert (wide(one) == wide(other)) == (one == other)
    assert all(0 <= piece < 2**48 for piece in wide(one))
    if natural(one) is not None:
        assert natural(one) == one
        assert abs(one) < NATURAL


def test_a_payload_has_no_number_that_a_reader_of_json_could_change() -> None:
    # D4
    metadata: Any = {"a": 0.1, "b": 2**63 - 1, "c": [1e-300, 5]}
    payload = payload_of("id", "text", encode_metadata(metadata), metadata, "v")

    def leaves(value: Any) -> list[Any]:
        if isinstance(value, dict):
            return [leaf for each in cast("dict[str, Any]", value).values() for leaf in leaves(each)]
        return [leaf for each in value for leaf in leaves(each)] if isinstance(value, list) else [value]  # pyright: ignore[reportUnknownVariableType]

    assert not [
        leaf
        for leaf in leaves(payload)
        if isinstance(leaf, float) or (isinstance(leaf, int) and leaf >= 2**48)
    ]


def test_ranges_of_numbers_wish_both_indexes() -> None:
    found = {
        tuple(wish) for wish in wishes(indexed({"k": 5, "s": "x", "d": datetime(2026, 1, 1, tzinfo=UTC)}))
    }
    assert found == {
        ("n.k", "integer"),
        ("w.k[].a", "integer"),
        ("o.s[].a", "integer"),
        ("d.d", "datetime"),
    }


def test_names() -> None:
    # D1, D3, F10: what a path cannot name is a digest; ids are in one fixed namespace
    assert point_id("a") == str(uuid5(UUID("6f1c52d4-0d0e-5a55-9b4e-3c1f6e9a7b21"), "a"))
    assert key_name("year_2") == "year_2"
    for key in ("a.b", 'a"b', "a[]", "-a", "é", "x" * 65):
        assert key_name(key) == "-" + key_token(key)
    assert collection_name("articles-1.0") == "articles-1.0"
    taken = {
        collection_name(name) for name in ("a/b", "a:b", "..", "-a", "", "é", "A" * 101, "a" * 101, "a\\b")
    }
    assert len(taken) == 9
    assert all(name.startswith("-") and len(name) == 25 for name in taken)


def test_words() -> None:
    # S9: runs of letters and digits, lower-cased
    assert words_in("The snake_case, “Sofia”-2!") == ["the", "snake", "case", "sofia", "2"]
    assert weighted("...", 10.0) is None
    sparse = weighted("b a b", 3.0)
    assert sparse is not None
    weights = dict(zip(sparse.places, sparse.weights, strict=True))
    # BM25 with k1 = 1.2 and b = 0.75, where the text is of average length: tf * 2.2 / (tf + 1.2)
    assert weights == pytest.approx({place_of("a"): 2.2 / 2.2, place_of("b"): 2 * 2.2 / 3.2})
    assert sparse.places == sorted(sparse.places)
    assert asked(frozenset({"a"})).weights == [1.0]
