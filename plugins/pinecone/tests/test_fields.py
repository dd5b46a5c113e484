"""What is stored of a document, and what is read of it. D1, D4, D8."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest

from entrepot.encoding import engine_id
from entrepot.errors import CorruptDataError, SizeLimitError
from entrepot.metadata import encode_metadata
from entrepot.records import Record
from entrepot_pinecone.fields import MOST_BYTES, record_of, vectors
from entrepot_pinecone.names import index_name, record_id
from entrepot_pinecone.plugin import CAPABILITIES

VECTOR = np.array([0.1, -0.0, 3.0], dtype=np.float32)


def stored(metadata: dict[str, Any], text: str | None = "text", name: str = "a") -> dict[str, Any]:
    record = Record(name, text, metadata, encode_metadata(metadata), VECTOR)
    found: dict[str, Any] = json.loads(vectors([record], "mark")[0])
    return found


def test_a_record_as_it_is_sent() -> None:
    # D4
    found = stored({"n": [3, 1.5], "s": "Ab", "b": True, "none": []})
    assert found["id"] == "a"
    assert np.array_equal(np.array(found["values"], dtype=np.float32), VECTOR)
    metadata = found["metadata"]
    assert {name: metadata[name] for name in ("_v", "_t", "e_s", "e_b", "nl_n", "nh_n")} == {
        "_v": "mark",
        "_t": "text",
        "e_s": ["sAb"],
        "e_b": ["b1"],
        "nl_n": 1.5,
        "nh_n": 3.0,
    }
    assert json.loads(metadata["_m"]) == {"n": [3, 1.5], "s": "Ab", "b": True, "none": []}
    assert "e_none" not in metadata
    assert len(metadata["e_n"]) == 2


def test_the_engine_gets_strings_lists_of_strings_numbers_only() -> None:
    # D3: it has no null, no lists of numbers, and no names that begin with $
    moment = datetime(2026, 1, 31, 12, tzinfo=UTC)
    metadata = stored({"$x": 1, "a.b": [1, 2], "d": moment, "é": ["x", "y"], "m": -(2**63)}, text=None)[
        "metadata"
    ]
    assert "_t" not in metadata
    for name, value in metadata.items():
        assert not name.startswith("$")
        assert name.isascii()
        assert type(value) in {str, float} or all(type(one) is str for one in value)


@pytest.mark.parametrize("name", ["a", "a b", "#1", "x" * 512, "A/b?c=d&e%20"])
def test_ids_that_the_engine_takes_stay(name: str) -> None:
    # D1
    assert record_id(name) == name
    assert "_i" not in stored({}, name=name)["metadata"]


@pytest.mark.parametrize("name", ["é", " a", "a ", "a\tb", "\x7f", "x" * 511 + "é", str(engine_id("é"))])
def test_other_ids_are_mapped_and_kept(name: str) -> None:
    # D1
    found = stored({}, name=name)
    assert found["id"] == str(engine_id(name))
    assert record_of(found, (), 3).id == name


def test_what_is_read_is_what_was_written() -> None:
    # D4
    metadata = {
        "i": 1,
        "f": 1.0,
        "z": -0.0,
        "e": [],
        "d": datetime(1, 1, 1, 0, 0, 0, 7, tzinfo=UTC),
        "l": [2**62, 0.5],
    }
    found = record_of(stored(metadata, "é\n\U0001f600"), ("text", "metadata", "vector"), 3)
    assert found.text == "é\n\U0001f600"
    assert repr(found.metadata) == repr(metadata)
    assert found.vector is not None
    assert found.vector.tobytes() == VECTOR.tobytes()


def test_a_record_that_is_too_large_is_refused() -> None:
    # D8: a text of quotes has twice its length
    with pytest.raises(SizeLimitError, match="'a'"):
        stored({}, '"' * (MOST_BYTES // 2))
    assert len(json.dumps(stored({}, "x" * 19_000)["metadata"])) < MOST_BYTES


def test_plain_metadata_of_the_declared_size_fit() -> None:
    # D8: 16 strings that are no tokens as they stand, and the text that is left beside them
    limits = CAPABILITIES.limits
    assert limits.metadata_bytes is not None
    assert limits.record_bytes is not None
    part = limits.metadata_bytes // 16 - 2
    metadata: dict[str, Any] = {f"k{n:x}": chr(97 + n) * part for n in range(16)}
    text = "x" * (limits.record_bytes - len(encode_metadata(metadata)) - 1)
    assert len(json.dumps(stored(metadata, text)["metadata"])) < MOST_BYTES


@pytest.mark.parametrize(
    "found", [{"id": "a"}, {"id": "a", "metadata": None}, {"id": "a", "metadata": {"x": 1}}]
)
def test_what_other_software_wrote_is_told(found: dict[str, Any]) -> None:
    # E1
    with pytest.raises(CorruptDataError, match="'a'"):
        record_of(found, ("metadata",), 3)


def test_a_vector_of_another_length_is_told() -> None:
    # E1
    with pytest.raises(CorruptDataError):
        record_of({**stored({}), "values": [1.0]}, ("vector",), 3)


def test_names_of_indexes() -> None:
    # D5
    assert index_name("my-articles2") == "my-articles2"
    others = ["My-Articles", "-a", "a-", "a_b", "x" * 46, "é", "a.b", index_name("é")]
    made = [index_name(name) for name in others]
    assert len(set(made)) == len(others)
    assert all(len(name) <= 45 and name.startswith("entrepot-") for name in made)
