# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownLambdaType=false
# pyright: reportUnknownMemberType=false
"""Documents as the engine stores them: D3, D4, D9."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import bson
import numpy as np
import pytest
from bson.binary import VECTOR_SUBTYPE, Binary, BinaryVectorDtype
from hypothesis import given
from hypothesis import strategies as st

from entrepot.errors import CorruptDataError
from entrepot.metadata import encode_metadata
from entrepot.records import Record
from entrepot_mongodb.fields import (
    binary,
    documents,
    indexed_again,
    new_version,
    record_of,
    vectors_of,
    wanted,
)
from entrepot_mongodb.plugin import CAPABILITIES
from entrepot_mongodb.tokens import ALWAYS, prefix, token, tokens_of

VECTOR = np.array([0.6, -0.8, 1e-30], dtype=np.float32)


@given(st.text(max_size=40), st.text(min_size=1, max_size=20), st.booleans())
def test_a_document_comes_back(text: str, key: str, as_vector: bool) -> None:
    # D4
    metadata: Any = {key: [1, 2.5], "b": True}
    encoded = json.dumps(metadata).encode()
    (stored,) = documents([Record("an id", text, metadata, encoded, VECTOR)], "v1", as_vector=as_vector)
    read = bson.decode(stored.raw)
    assert read["v"] == "v1"
    assert read["t"][0] == ALWAYS
    found = record_of(read, ("text", "metadata", "vector"), 3)
    assert (found.id, found.text, found.metadata) == ("an id", text, metadata)
    assert found.vector is not None
    assert np.array_equal(found.vector, VECTOR)
    assert found.vector.flags.writeable
    assert record_of(read, (), 3)[1:] == (None, None, None)


def test_no_text_and_an_empty_text_differ() -> None:
    # D4
    none, empty = documents(
        [Record("1", None, {}, b"{}", VECTOR), Record("2", "", {}, b"{}", VECTOR)], "v", as_vector=True
    )
    assert record_of(bson.decode(none.raw), ("text",), 3).text is None
    assert record_of(bson.decode(empty.raw), ("text",), 3).text == ""


def test_instants_and_integers_of_64_bits_are_no_values_of_bson() -> None:
    # D4: its dates keep milliseconds
    instant = datetime(2026, 1, 31, 12, 0, 0, 123457, tzinfo=UTC)
    metadata: Any = {"at": instant, "n": 2**63 - 1, "m": -(2**63)}
    encoded = encode_metadata(metadata)
    (stored,) = documents([Record("1", None, metadata, encoded, VECTOR)], "v", as_vector=True)
    read = bson.decode(stored.raw)
    assert {type(part) for part in (*read["t"], read["d"]["j"])} == {str}
    assert record_of(read, ("metadata",), 3).metadata == metadata


@pytest.mark.parametrize(
    "stored",
    [
        binary(VECTOR, as_vector=True),
        binary(VECTOR, as_vector=False),
        Binary(VECTOR.tobytes(), 0),
        Binary.from_vector(VECTOR.tolist(), BinaryVectorDtype.FLOAT32),
        VECTOR.astype(np.float64).tolist(),
    ],
    ids=["vector", "plain", "subtype 0", "of the driver", "numbers"],
)
def test_every_form_of_a_vector_is_read(stored: Any) -> None:
    # D9
    again = bson.decode(bson.encode({"_id": "1", "d": {"e": stored}}))
    assert np.array_equal(vectors_of([again], 3)[0], VECTOR)


def test_a_binary_vector_is_that_of_the_driver() -> None:
    made = binary(VECTOR, as_vector=True)
    assert isinstance(made, Binary)
    assert made.subtype == VECTOR_SUBTYPE
    assert made == Binary.from_vector(VECTOR.tolist(), BinaryVectorDtype.FLOAT32)


@pytest.mark.parametrize(
    "stored",
    [
        None,
        "text",
        b"",
        VECTOR.tobytes()[:-1],
        [0.1, 0.2],
        Binary(b"\x03\x00" + VECTOR.tobytes(), VECTOR_SUBTYPE),
    ],
)
def test_a_vector_that_other_software_spoilt_is_told(stored: Any) -> None:
    with pytest.raises(CorruptDataError, match="'1'"):
        vectors_of([{"_id": "1", "d": {"e": stored}}], 3)
    with pytest.raises(CorruptDataError):
        vectors_of([{"_id": "1"}], 3)


def test_what_an_update_changes_leaves_text_and_vector() -> None:
    # D10
    assert indexed_again({"k": 1}, b'{"k":1}', "v2") == {
        "v": "v2",
        "t": [ALWAYS, "k\0", token("k", 1)],
        "d.j": '{"k":1}',
    }


def test_what_is_asked_for() -> None:
    assert wanted(("vector", "text"), "v") == {"d.e": 1, "d.x": 1, "v": 1}
    assert wanted(()) == {"_id": 1}


def test_no_key_gives_the_token_that_every_document_has() -> None:
    for key in ("a", "k" * 512, "\x01"):
        assert prefix(key) != ALWAYS
    assert tokens_of({}) == [ALWAYS]
    assert tokens_of({"k": []}) == [ALWAYS]
    assert len(new_version()) == 22


def test_the_largest_document_fits() -> None:
    # D8: 16 MiB
    limits = CAPABILITIES.limits
    assert limits.list_elements is not None
    assert limits.keys is not None
    assert limits.metadata_bytes is not None
    assert limits.text_bytes is not None
    key = "😀" * 32  # 128 bytes, which stands as it is
    metadata: Any = {key: [f"\x01{n}" for n in range(limits.list_elements - limits.keys)]}
    metadata |= {f"{n:0512}": [n] for n in range(limits.keys - 1)}
    size = limits.metadata_bytes
    encoded = b'"' + b"\\u0001" * size + b'"'  # a control character is six bytes of JSON
    record = Record(
        "x" * 512, "😀" * (limits.text_bytes // 4), metadata, encoded, np.ones(32_768, np.float32)
    )
    (stored,) = documents([record], "v", as_vector=True)
    assert len(stored.raw) < 8 * 1024 * 1024
