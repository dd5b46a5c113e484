"""Metadata rules: D3, D4, D8."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta, timezone
from enum import Enum, StrEnum
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from entrepot.errors import MetadataError
from entrepot.metadata import (
    clean_metadata,
    decode_metadata,
    encode_metadata,
    flatten_metadata,
    metadata_size,
    same_metadata,
)

strings = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=40)
keys = st.one_of(
    strings.filter(bool),
    st.sampled_from(["a.b", "$gt", "and", "a b", '"', "'", "datetime", "ключ", "\u2028", "é", "e\u0301"]),
)
integers = st.one_of(
    st.integers(-(2**63), 2**63 - 1),
    st.sampled_from([2**53, 2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63), 0, 1]),
)
floats = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(
        [-0.0, 0.0, 1.0, 1e22, 5e-324, 1.7976931348623157e308, 9007199254740993.0, 1e16, 123456789012345680.0]
    ),
)
instants = st.datetimes(timezones=st.just(UTC), allow_imaginary=False).map(lambda at: at.replace(fold=0))
scalars = st.one_of(strings, st.booleans(), integers, floats, instants)
lists = st.one_of(
    st.lists(strings, max_size=5),
    st.lists(st.booleans(), max_size=5),
    st.lists(st.one_of(integers, floats), max_size=5),
    st.lists(instants, max_size=5),
)
metadatas = st.dictionaries(keys, st.one_of(scalars, lists), max_size=6)


@given(metadatas)
def test_what_is_read_back_equals_what_was_written_with_its_types(metadata: dict[str, Any]) -> None:
    # D4
    read = decode_metadata(encode_metadata(clean_metadata(metadata)))
    assert list(read) == list(metadata)
    for key, value in metadata.items():
        assert type(read[key]) is type(value)
        assert repr(read[key]) == repr(value)  # repr tells 1 from 1.0 and 0.0 from -0.0, in lists too


def test_none_means_absent_and_is_dropped() -> None:
    # D3
    assert clean_metadata({"a": None, "b": 1}) == {"b": 1}


def test_cleaning_copies_so_that_the_caller_keeps_his_own() -> None:
    # D4
    tags = ["a"]
    given_metadata = {"tags": tags}
    clean = clean_metadata(given_metadata)
    tags.append("b")
    assert clean == {"tags": ["a"]}


def test_a_datetime_is_the_same_instant_in_utc() -> None:
    # D4
    local = datetime(2026, 1, 31, 13, 0, 0, 123456, tzinfo=timezone(timedelta(hours=2)))
    (read,) = decode_metadata(encode_metadata(clean_metadata({"at": local}))).values()
    assert read == local
    assert isinstance(read, datetime)
    assert read.utcoffset() == timedelta(0)
    assert read.microsecond == 123456


@pytest.mark.parametrize("year", [1, 9999])
def test_the_years_1_to_9999_are_kept(year: int) -> None:
    # D3
    at = datetime(year, 6, 1, tzinfo=UTC)
    assert decode_metadata(encode_metadata(clean_metadata({"at": at}))) == {"at": at}


class _Colour(StrEnum):
    RED = "red"


class _Plain(Enum):
    ONE = 1


REFUSED: list[Any] = [
    {"nested": 1},
    datetime(2026, 1, 1),  # noqa: DTZ001 - naive on purpose
    math.nan,
    math.inf,
    -math.inf,
    b"bytes",
    (1, 2),
    {1, 2},
    object(),
    [1, "a"],
    [True, 1],
    [None],
    ["a", None],
    [[1]],
    [math.nan],
    [{"a": 1}],
    [datetime(2026, 1, 1)],  # noqa: DTZ001 - naive on purpose
    2**63,
    -(2**63) - 1,
    [2**63],
    "NUL \0",
    "lone \ud800",
    ["\udfff"],
    np.float64(1.0),
    np.int64(1),
    np.bool_(True),
    np.array([1, 2]),
    _Colour.RED,
    _Plain.ONE,
    1 + 2j,
    datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=5))),
    datetime(9999, 12, 31, 23, tzinfo=timezone(timedelta(hours=-5))),
]


@pytest.mark.parametrize("value", REFUSED, ids=lambda value: f"{type(value).__name__}-{str(value)[:20]!r}")
def test_anything_else_is_refused_and_the_key_is_named(value: object) -> None:
    # D3
    with pytest.raises(MetadataError, match="'the key'") as caught:
        clean_metadata({"fine": 1, "the key": value})
    assert caught.value.key == "the key"
    assert isinstance(caught.value, ValueError)  # E1
    assert caught.value.hint


@pytest.mark.parametrize("key", ["", "x" * 513, "a\0b", "\ud800", 1, None, b"a", True])
def test_a_key_that_is_none_is_refused(key: object) -> None:
    # D3
    with pytest.raises(MetadataError):
        clean_metadata({key: 1})  # type: ignore[dict-item]  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("key", ["x" * 512, "\U0001f600" * 512, "a.b", " ", "$", "NOT", "é", "e\u0301"])
def test_any_other_key_is_fine(key: str) -> None:
    # D3: lengths count code points
    assert clean_metadata({key: 1}) == {key: 1}


def test_metadata_must_be_a_dict() -> None:
    # D3
    with pytest.raises(MetadataError, match="must be a dict"):
        clean_metadata([("a", 1)])  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def test_the_object_form_of_an_instant_cannot_be_forged_by_a_string() -> None:
    # D4
    text = '{"datetime":"2026-01-31T12:00:00Z"}'
    assert decode_metadata(encode_metadata({"a": text, "b": [text]})) == {"a": text, "b": [text]}


def test_size_counts_utf8_bytes_of_keys_and_strings() -> None:
    # D8: k=1, é=2, "12"=2; list: "ab"=2 + "c"=1; flag: 4 letters of true
    assert metadata_size({"k": "é", "n": 12, "l": ["ab", "c"], "t": True}) == (1 + 2) + (1 + 2) + (1 + 3) + (
        1 + 4
    )


def test_equality_knows_types() -> None:
    # D4
    assert same_metadata({"a": [1, 2.0]}, {"a": [1, 2.0]})
    for left, right in [(1, 1.0), (1, True), (0.0, -0.0), ([1], [1.0]), ("1", 1)]:
        assert not same_metadata({"a": left}, {"a": right})
    assert not same_metadata({"a": 1}, {})
    assert not same_metadata({"a": [1]}, {"a": [1, 2]})


def test_flatten_makes_dotted_keys() -> None:
    # D3
    nested = {"author": {"name": "Ada", "born": {"year": 1815}}, "title": "Notes", "empty": {}}
    assert flatten_metadata(nested) == {"author.name": "Ada", "author.born.year": 1815, "title": "Notes"}
    assert flatten_metadata({"a": {"b": 1}}, separator="/") == {"a/b": 1}


def test_flatten_refuses_what_would_lose_a_value() -> None:
    # D3
    with pytest.raises(MetadataError, match="two paths"):
        flatten_metadata({"a.b": 1, "a": {"b": 2}})
    with pytest.raises(MetadataError, match="must be a str"):
        flatten_metadata({"a": {1: 2}})


def test_flatten_is_deep_without_recursion() -> None:
    # D3
    nested: dict[str, Any] = {"end": 1}
    for _ in range(5000):
        nested = {"x": nested}
    (key,) = flatten_metadata(nested)
    assert key.count("x") == 5000
