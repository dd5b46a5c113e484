"""Documents as the engine stores them: D4, D9, S9."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from entrepot.records import Record
from entrepot_elasticsearch.fields import decimals, record_of, slot, sources, wanted
from entrepot_elasticsearch.words import joined_words, words_in

if TYPE_CHECKING:
    from numpy.typing import NDArray


@given(arrays.arrays(np.float32, (3, 4), elements=st.floats(width=32, allow_nan=False, allow_infinity=False)))
def test_numbers_of_vectors_are_the_same_float32(matrix: NDArray[np.float32]) -> None:
    # D9
    text = json.dumps(decimals(matrix))
    again = np.array(json.loads(text), dtype=np.float32)
    assert np.array_equal(again, matrix)
    assert np.array_equal(np.signbit(again), np.signbit(matrix))


def test_numbers_of_vectors_are_short(rng: np.random.Generator) -> None:
    matrix = rng.normal(size=(50, 256)).astype(np.float32)
    written = json.dumps(decimals(matrix))
    assert len(written) < 0.7 * len(json.dumps(matrix.tolist()))
    assert (
        max(len(re.sub(r"^0+", "", re.sub(r"[^0-9]", "", number))) for number in written[2:-2].split(", "))
        <= 17
    )


@given(st.text(max_size=40), st.text(min_size=1, max_size=20))
def test_a_document_comes_back(text: str, key: str) -> None:
    # D4
    metadata: Any = {key: [1, 2.5], "b": True}
    encoded = json.dumps(metadata).encode()
    vector = np.array([0.6, 0.8], dtype=np.float32)
    (source,) = sources([Record("an id", text, metadata, encoded, vector)])
    stored = json.loads(source)
    assert 0 <= stored["slot"] == slot("an id") < 1 << 15
    found = record_of(stored, ("text", "metadata", "vector"))
    assert (found.id, found.text, found.metadata) == ("an id", text, metadata)
    assert found.vector is not None
    assert np.array_equal(found.vector, vector)
    assert record_of(stored, ())[1:] == (None, None, None)
    assert wanted(("vector", "text"), "slot") == ["id", "embedding", "text", "slot"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain words, and no others - here", None),
        ("see example.com", "example com"),
        ("it's", "it s"),
        ("_a b_ __", "a b"),
        ("a__b", "a b"),
        ("1,000.5", "1 000 5"),
        ("key:value;x", "key value x"),
        ("a\u2014b c", "a b"),
        ("Größe", None),
        ("", None),
    ],
)
def test_words_that_the_engine_takes_for_one(text: str, expected: str | None) -> None:
    # S9
    assert joined_words(text) == expected


def test_words_of_queries() -> None:
    # S9: words, never syntax
    assert words_in('Foo AND -bar* "baz_qux"~2 (x:y)') == ["foo", "and", "bar", "baz", "qux", "2", "x", "y"]
    assert words_in("!?*") == []
