"""What metadata may be, and what is refused: D3."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any, Final

import pytest

from entrepot import Document, F
from entrepot.errors import MetadataError

if TYPE_CHECKING:
    from entrepot import VectorStore
    from entrepot_conformance.endpoints import Stores

TAKEN: Final[dict[str, Any]] = {
    "least int": -(2**63),
    "largest int": 2**63 - 1,
    "largest float": 1.7976931348623157e308,
    "smallest float": 5e-324,
    "year 1": datetime(1, 1, 1, tzinfo=UTC),
    "year 9999": datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
    "a": "",
    "a.b": "flat",
    "a.b.c": ["flat", "too"],
    " ": True,
    "$where": False,
    "null": "null",
    "AND": [1, 1.0, 2**53 + 1],
    "quotes '\"`\\": "'",
    "ключ 😀": "e\u0301",
    "k" * 512: 1,
    "😀" * 512: 2,
    "_id": "mine",
    "id": "mine",
    "text": "mine",
    "vector": "mine",
    "metadata": "mine",
    "score": 0.5,
}
"""Metadata of one document, in which every value is allowed and every key is an ordinary one."""

REFUSED: Final[dict[str, Any]] = {
    "nested": {"a": 1},
    "nan": float("nan"),
    "infinite": float("inf"),
    "too large": 2**63,
    "too small": -(2**63) - 1,
    "naive": datetime(2026, 1, 31),  # noqa: DTZ001 - that is what is wrong
    "year 0 in UTC": datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=1))),
    "bytes": b"bytes",
    "tuple": (1, 2),
    "set": {1},
    "complex": 1j,
    "object": object(),
    "mixed list": [1, "1"],
    "bools and ints": [True, 1],
    "list of lists": [[1]],
    "list of mappings": [{"a": 1}],
    "None in a list": ["a", None],
    "NaN in a list": [1.0, float("nan")],
    "naive in a list": [datetime(2026, 1, 31)],  # noqa: DTZ001 - as above
    "NUL": "a\0b",
    "lone surrogate": "\ud800",
    "NUL in a list": ["a", "\0"],
}
"""What no document may hold, by the key that the error has to name."""


def test_every_allowed_value_and_key_is_taken(stores: Stores) -> None:
    # D3, D4: names that engines keep for themselves are ordinary keys
    store = stores()
    store.add([Document("text", id="1", metadata=dict(TAKEN), vector=[1.0])])
    (read,) = stores().get(["1"])
    assert {key: repr(value) for key, value in read.metadata.items()} == {
        key: repr(value) for key, value in TAKEN.items()
    }
    assert (read.id, read.text) == ("1", "text")
    for key in TAKEN:
        assert store.count(F[key].is_not_null()) == 1, key
    assert store.count(F["a"] == "flat") == 0
    assert store.count(F["b"].is_not_null()) == 0


def test_none_is_dropped_and_an_empty_list_is_kept(store: VectorStore) -> None:
    # D3, D4, F1
    store.add([Document("a", id="1", metadata={"none": None, "empty": [], "n": 1})])
    assert store.get(["1"])[0].metadata == {"empty": [], "n": 1}
    assert store.count("none is null and empty is null") == 1
    assert store.count("none == 'None' or none == 'null' or none == ''") == 0


@pytest.mark.parametrize("key", REFUSED)
def test_what_no_document_may_hold_is_refused_by_name(store: VectorStore, key: str) -> None:
    # D3, D6: the error names key and document, and nothing was sent
    with pytest.raises(MetadataError, match="'bad'") as caught:
        store.add([Document("a", id="good"), Document("a", id="bad", metadata={key: REFUSED[key]})])
    assert caught.value.key == key
    assert not store.collection_exists()


@pytest.mark.parametrize("key", ["", "x" * 513, "a\0", "\ud800", 5, None], ids=repr)
def test_what_is_no_key_is_refused(store: VectorStore, key: Any) -> None:
    # D3
    with pytest.raises(MetadataError):
        store.add([Document("a", id="1", metadata={key: 1})])
    assert not store.collection_exists()


def test_an_update_is_checked_as_an_add(store: VectorStore) -> None:
    # D3, D10
    store.add([Document("a", id="1", metadata={"kept": 1})])
    for key, value in REFUSED.items():
        with pytest.raises(MetadataError):
            store.update(["1"], set={"new": 1, key: value})
    assert store.get(["1"])[0].metadata == {"kept": 1}


def test_an_update_leaves_alone_what_it_does_not_name(store: VectorStore) -> None:
    # D10
    before = {"int": 1, "float": 1.0, "list": ["a", "b"], "gone": True, "a.b": "x"}
    store.add([Document("a", id="1", metadata=dict(before)), Document("b", id="2", metadata=dict(before))])
    store.update(["1"], set={"new": 2, "int": 5}, unset=["gone"])
    one, two = store.get(["1", "2"])
    expected = {"float": 1.0, "list": ["a", "b"], "a.b": "x", "new": 2, "int": 5}
    assert {key: repr(value) for key, value in one.metadata.items()} == {
        key: repr(value) for key, value in expected.items()
    }
    assert two.metadata == before
    assert store.count(F["a.b"] == "x") == 2
    assert store.count("gone is null") == 1
