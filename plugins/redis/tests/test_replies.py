"""Replies of both protocols in one shape."""

from __future__ import annotations

from typing import Any

import pytest

from entrepot_redis.faults import PartialAnswerError
from entrepot_redis.replies import Row, found, mapped, total

RESP2 = [3, b"p:1", [b"m", b"{}", b"d", b"0.5"], b"p:2", [b"m", b"[]", b"d", b"1"]]
RESP3: dict[bytes, Any] = {
    b"attributes": [],
    b"total_results": 3,
    b"format": b"STRING",
    b"results": [
        {b"id": b"p:1", b"extra_attributes": {b"m": b"{}", b"d": b"0.5"}, b"values": []},
        {b"id": b"p:2", b"extra_attributes": {b"m": b"[]", b"d": b"1"}, b"values": []},
    ],
    b"warning": [],
}
ROWS = [Row(b"p:1", 0.0, {b"m": b"{}", b"d": b"0.5"}), Row(b"p:2", 0.0, {b"m": b"[]", b"d": b"1"})]


@pytest.mark.parametrize("reply", [RESP2, RESP3], ids=["2", "3"])
def test_rows(reply: object) -> None:
    assert found(reply) == (3, ROWS)
    assert total(reply) == 3


def test_scores() -> None:
    expected = [Row(b"p:1", 1.5, {b"n": b"1"})]
    assert found([1, b"p:1", b"1.5", [b"n", b"1"]], scores=True).rows == expected
    row = {b"id": b"p:1", b"score": 1.5, b"extra_attributes": {b"n": b"1"}}
    assert found({b"total_results": 1, b"results": [row], b"warning": []}, scores=True).rows == expected


def test_a_warning_is_an_error() -> None:
    # S4: an answer in part is none
    for read in (found, total):
        with pytest.raises(PartialAnswerError):
            read({**RESP3, b"warning": [b"Timeout limit was reached"]})


def test_maps() -> None:
    assert mapped([b"a", b"1", b"b", b"2"]) == mapped({b"a": b"1", b"b": b"2"}) == {b"a": b"1", b"b": b"2"}
    assert mapped([]) == mapped(None) == {}
