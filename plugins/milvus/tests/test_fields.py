"""Rows: what a document becomes, and that it comes back: D4, D8, F2."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

import msgspec
import numpy as np
from core.tests.filters.strategies import well_formed_text
from hypothesis import given, settings
from hypothesis import strategies as st

from entrepot.encoding import equality_token, metadata_tokens, presence_token
from entrepot.metadata import clean_metadata, encode_metadata
from entrepot_milvus.fields import Content, halves, ordered_text, ranges_of, record_of, row_of, tokens_of
from entrepot_milvus.plugin import LIMITS, LONGEST
from entrepot_milvus.words import words_of

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


def row(metadata: dict[str, Any], text: str | None = None) -> dict[str, Any]:
    clean = clean_metadata(metadata)
    return row_of(Content("d", text, clean, encode_metadata(clean), np.ones(2, np.float32)), words=True)


def test_a_document_as_a_row() -> None:
    # F2: the least and the greatest element of each key and kind, and a token for each
    made = row({"n": [3, 1, 2.5], "s": "b", "flag": True, "empty": []}, "Some TEXT")
    assert made["text"] == "Some TEXT"
    assert made["words"] == "some text"
    assert made["with_text"] is True
    assert made["metadata"] == '{"n":[3,1,2.5],"s":"b","flag":true,"empty":[]}'
    assert made["more_metadata"] == ""
    assert set(made["ranges"]) == {"nn", "Nn", "ss", "Ss"}
    assert made["ranges"]["nn"] == ordered_text(1)
    assert made["ranges"]["Nn"] == ordered_text(3)
    assert set(made["tokens"]) == {
        *(presence_token(key) for key in ("n", "s", "flag")),
        *(equality_token("n", value) for value in (3, 1, 2.5)),
        equality_token("s", "b"),
        equality_token("flag", True),
    }


@given(st.one_of(st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False, allow_infinity=False)),
       st.one_of(st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False, allow_infinity=False)))  # fmt: skip
def test_numbers_are_ordered(one: float, two: float) -> None:
    # F4
    assert (ordered_text(one) < ordered_text(two)) is (one < two)
    assert (ordered_text(one) == ordered_text(two)) is (one == two)


@given(st.datetimes(timezones=st.just(UTC)), st.datetimes(timezones=st.just(UTC)))
def test_instants_are_ordered(one: datetime, two: datetime) -> None:
    # F4
    assert (ordered_text(one) < ordered_text(two)) is (one < two)


@given(well_formed_text(max_size=10), well_formed_text(max_size=10))
def test_short_strings_are_ordered(one: str, two: str) -> None:
    # F4: by code point
    assert (ordered_text(one) < ordered_text(two)) is (one < two)


def test_keys_of_any_characters_have_ranges_of_their_own() -> None:
    # D3
    keys = ["k", "K", "k.k", "k ", '"', "é", "-", "x" * 24, "x" * 25, "x" * 512, "nk", ""]
    made = ranges_of({key: 1 for key in keys if key})
    assert len(made) == 2 * (len(keys) - 1)
    assert all(len(name) <= 26 for name in made)


@given(
    st.dictionaries(
        well_formed_text(min_size=1, max_size=5),
        st.one_of(
            well_formed_text(max_size=5),
            st.integers(-(2**63), 2**63 - 1),
            st.floats(allow_nan=False, allow_infinity=False),
            st.booleans(),
            st.lists(st.integers(-5, 5), max_size=3),
        ),
        max_size=5,
    ),
    st.one_of(st.none(), well_formed_text(max_size=20)),
)
@settings(deadline=None)
def test_documents_come_back(metadata: dict[str, Any], text: str | None) -> None:
    # D4
    assert tokens_of(metadata) == metadata_tokens(metadata)
    found = record_of(row(metadata, text), ("text", "metadata", "vector"))
    assert found.id == "d"
    assert found.text == text
    assert found.metadata == metadata
    assert found.metadata is not None
    for key, value in metadata.items():
        assert type(found.metadata[key]) is type(value)
        back: Any = found.metadata[key]
        if isinstance(value, float):
            assert math.copysign(1, value) == math.copysign(1, back)
    assert found.vector is not None
    assert found.vector.dtype == np.float32


def test_long_metadata_is_cut_between_characters() -> None:
    # D8
    for text in ("x" * (LONGEST + 1), "é" * LONGEST, "x" + "😀" * 40_000, "x" * LONGEST, ""):
        first, more = halves(text)
        assert first + more == text
        assert len(first.encode()) <= LONGEST
        assert len(more.encode()) <= LONGEST or len(text.encode()) > 2 * LONGEST - 4
        assert not more or len(first.encode()) > LONGEST - 4


def test_what_the_limits_allow_fits_the_fields() -> None:
    # D8: the longest JSON, the most tokens and the longest ranges that documents within the limits have
    assert LIMITS.metadata_bytes is not None
    assert LIMITS.keys is not None
    assert LIMITS.list_elements is not None
    control = row({"k": "\x01" * (LIMITS.metadata_bytes - 1)})
    assert len(control["metadata"]) <= LONGEST
    assert len(control["more_metadata"]) <= LONGEST
    many = row(
        {f"{n:03}": list(range(n, n + LIMITS.list_elements // LIMITS.keys)) for n in range(LIMITS.keys)}
    )
    assert len(many["tokens"]) <= 4096
    long = row({f"é{n:03}": ["x" * 10 + str(n), "y" * 45] for n in range(LIMITS.keys)})
    assert len(msgspec.json.encode(long["ranges"])) <= 65_536


@given(well_formed_text(max_size=50))
def test_words_take_at_most_half_as_much_again(text: str) -> None:
    # S9, D8
    assert 2 * len(words_of(text).encode()) <= 3 * len(text.encode())


def test_words() -> None:
    # S9
    assert words_of("Two-words, run_fast: X2Y!") == "two words run fast x2y"
    assert words_of("... ?") == ""
