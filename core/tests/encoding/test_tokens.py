"""Tokens, interval tokens, extremes and ids: identity, order and supersets."""

import hashlib
import operator
from base64 import b32hexencode
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from entrepot.encoding import (
    ID_NAMESPACE,
    digest,
    engine_id,
    equality_token,
    extremes,
    interval_tokens,
    key_token,
    metadata_tokens,
    presence_token,
    range_tokens,
)
from entrepot.filters import FilterOp
from entrepot.filters.values import Kind, Scalar

if TYPE_CHECKING:
    from entrepot.metadata import Metadata

OPERATORS = {
    FilterOp.LT: operator.lt,
    FilterOp.LTE: operator.le,
    FilterOp.GT: operator.gt,
    FilterOp.GTE: operator.ge,
}
KINDS: dict[type, Kind] = {bool: "bool", int: "number", float: "number", str: "str", datetime: "datetime"}
ALPHABET = set("0123456789abcdefghijklmnopqrstuv")

characters = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
texts = st.text(st.sampled_from(" 'a,:bB\u00e9e\u0301\uffff\U0001f600"), max_size=12) | st.text(
    characters, max_size=20
)
keys = st.text(characters, min_size=1, max_size=20)
edges = st.sampled_from([0, 1, -1, 2**53, 2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63), 1020])
integers = st.integers(-(2**63), 2**63 - 1) | edges
numbers = integers | st.floats(allow_nan=False, allow_infinity=False) | edges.map(float) | st.just(-0.0)
instants = st.datetimes(timezones=st.just(UTC))
scalars = st.booleans() | numbers | instants | texts


def _equal(a: object, b: object) -> bool:
    """F4, written down a second time: equal within one kind."""
    return KINDS[type(a)] == KINDS[type(b)] and a == b


@given(scalars, scalars)
def test_equality_tokens_are_equal_exactly_for_equal_values(a: Scalar, b: Scalar) -> None:
    # F4
    assert (equality_token("k", a) == equality_token("k", b)) == _equal(a, b)


@given(integers)
def test_int_and_float_of_one_value_share_a_token(number: int) -> None:
    # F4
    assert (equality_token("k", number) == equality_token("k", float(number))) == (number == float(number))


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        (1, 1.0, True),
        (0.0, -0.0, True),
        (0, -0.0, True),
        (2**53, 2.0**53, True),
        (2**53, 2**53 + 1, False),
        (2**63 - 1, 2.0**63, False),
        (True, 1, False),
        (False, 0.0, False),
        ("1", 1, False),
        ("True", True, False),
        ("é", "e\u0301", False),
        ("a", "A", False),
        ("a", "a ", False),
        ("2026-01-31T12:00:00Z", datetime(2026, 1, 31, 12, tzinfo=UTC), False),
    ],
)
def test_kinds_never_meet_and_nothing_is_folded(a: Scalar, b: Scalar, same: bool) -> None:
    # F4, D4
    assert (equality_token("k", a) == equality_token("k", b)) is same


@given(keys, keys, scalars)
def test_tokens_of_different_keys_and_purposes_differ(a: str, b: str, value: Scalar) -> None:
    assert (presence_token(a) == presence_token(b)) == (a == b)
    assert (key_token(a) == key_token(b)) == (a == b)
    assert (equality_token(a, value) == equality_token(b, value)) == (a == b)
    assert len({presence_token(a), key_token(a), equality_token(a, value)}) == 3


@given(st.lists(texts, max_size=4), st.lists(texts, max_size=4))
def test_parts_never_run_into_each_other(a: list[str], b: list[str]) -> None:
    assert (digest(*a) == digest(*b)) == (a == b)


@given(keys, scalars)
def test_a_token_has_a_fixed_width_and_one_alphabet(key: str, value: Scalar) -> None:
    # F10: no engine trims, folds, splits or cuts it
    for token in (presence_token(key), key_token(key), equality_token(key, value)):
        assert len(token) == 24
        assert set(token) <= ALPHABET


def _hash(data: bytes) -> str:
    return b32hexencode(hashlib.blake2b(data, digest_size=15, person=b"entrepot").digest()).decode().lower()


def test_bytes_of_tokens_are_fixed() -> None:
    assert presence_token("year") == _hash(b"\0\0\0\x03has\0\0\0\x04year")
    assert key_token("é") == _hash(b"\0\0\0\x03key\0\0\0\x02\xc3\xa9")
    assert equality_token("ok", value=True) == _hash(b"\0\0\0\x02is\0\0\0\x02ok\0\0\0\x01b\0\0\0\x011")
    assert equality_token("c", "BG") == _hash(b"\0\0\0\x02is\0\0\0\x01c\0\0\0\x01s\0\0\0\x02BG")
    number = b"\0\0\0\x0a" + (0xBFF0_0000_0000_0000 << 11).to_bytes(10, "big")
    assert equality_token("n", 1.0) == _hash(b"\0\0\0\x02is\0\0\0\x01n\0\0\0\x01n" + number)
    first = b"\0\0\0\x08" + bytes(8)
    assert equality_token("d", datetime(1, 1, 1, tzinfo=UTC)) == _hash(
        b"\0\0\0\x02is\0\0\0\x01d\0\0\0\x01d" + first
    )


def test_a_document_carries_each_token_once_and_none_for_empty_lists() -> None:
    # F1, F2
    metadata: Metadata = {"a": [1, 1.0, 2], "b": "x", "empty": list[str]()}
    assert metadata_tokens(metadata) == [
        presence_token("a"),
        equality_token("a", 1),
        equality_token("a", 2),
        presence_token("b"),
        equality_token("b", "x"),
    ]


pairs = st.tuples(numbers, numbers) | st.tuples(instants, instants) | st.tuples(texts, texts)


@given(pairs, st.integers(1, 16))
def test_interval_tokens_answer_ranges(pair: tuple[Any, Any], string_bytes: int) -> None:
    # F4, F9
    stored, operand = pair
    carried = set(interval_tokens("k", stored, string_bytes=string_bytes))
    told_apart = not isinstance(operand, str) or len(operand.encode()) < string_bytes
    for op, compare in OPERATORS.items():
        truth = compare(stored, operand)
        wide, exact = range_tokens("k", op, operand, string_bytes=string_bytes)
        narrow, _ = range_tokens("k", op, operand, certain=True, string_bytes=string_bytes)
        widened, narrowed = not carried.isdisjoint(wide), not carried.isdisjoint(narrow)
        assert widened or not truth
        assert truth or not narrowed
        assert exact == told_apart
        if exact:
            assert wide == narrow
            assert widened == truth
        assert len(wide) <= 15 * len(carried)
        assert len(wide) == len(set(wide))


@given(numbers, numbers)
def test_neighbouring_numbers_are_told_apart_by_intervals(a: float, b: float) -> None:
    assert (interval_tokens("k", a) == interval_tokens("k", b)) == (a == b)


def test_intervals_of_other_keys_and_kinds_never_answer() -> None:
    # F4
    carried = {*interval_tokens("k", 5), *interval_tokens("k", "5")}
    assert carried.isdisjoint(range_tokens("other", FilterOp.GTE, -(2**63)).code)
    assert carried.isdisjoint(range_tokens("k", FilterOp.GTE, datetime(1, 1, 1, tzinfo=UTC)).code)
    assert set(interval_tokens("k", 5)).isdisjoint(range_tokens("k", FilterOp.GTE, "").code)


def test_bytes_of_interval_tokens_are_fixed() -> None:
    # the code of "a" is 0x61 in one byte: digits 6 and 1, each level in 2 bytes, prefixes without leading zeros
    head = b"\0\0\0\x02in\0\0\0\x01k\0\0\0\x01s"
    six, sixty_one = head + b"\0\0\0\x02\0\x01\0\0\0\x01\x06", head + b"\0\0\0\x02\0\x02\0\0\0\x01\x61"
    assert interval_tokens("k", "a", string_bytes=1) == [_hash(six), _hash(sixty_one)]
    zero = head + b"\0\0\0\x02\0\x01\0\0\0\0"
    assert interval_tokens("k", "", string_bytes=1)[0] == _hash(zero)
    assert range_tokens("k", FilterOp.LT, "p", string_bytes=2).code == [
        _hash(head + b"\0\0\0\x02\0\x01\0\0\0" + (b"\x01" + bytes([digit]) if digit else b"\0"))
        for digit in range(7)
    ]


def test_sizes_of_intervals_are_bounded() -> None:
    assert len(interval_tokens("k", 7)) == 19
    assert len(interval_tokens("k", datetime(2026, 1, 1, tzinfo=UTC))) == 15
    assert len(interval_tokens("k", "x", string_bytes=16)) == len(interval_tokens("k", "x")) == 32
    assert range_tokens("k", FilterOp.LT, "x" * 15).exact
    assert not range_tokens("k", FilterOp.LT, "x" * 16).exact
    assert interval_tokens("k", value=True) == []
    assert (
        max(len(range_tokens("k", op, n).code) for op in OPERATORS for n in (-(2**63), 1 / 3, 2**63 - 1))
        <= 285
    )
    with pytest.raises(TypeError):
        range_tokens("k", FilterOp.LT, operand=True)


lists = st.lists(numbers, max_size=5) | st.lists(instants, max_size=5) | st.lists(texts, max_size=5)


@given(lists, pairs)
def test_extremes_answer_one_sided_comparisons_on_lists(values: list[Any], pair: tuple[Any, Any]) -> None:
    # F2, F4
    operand = pair[1]
    least_greatest = extremes({"k": values}).get(("k", KINDS[type(operand)]))
    for op, compare in OPERATORS.items():
        truth = any(compare(value, operand) for value in values if KINDS[type(value)] == KINDS[type(operand)])
        side = 0 if op in (FilterOp.LT, FilterOp.LTE) else 1
        assert (least_greatest is not None and compare(least_greatest[side], operand)) == truth


def test_extremes_leave_out_what_has_no_range() -> None:
    # F1, F5
    metadata: Metadata = {"a": 3, "b": [2.5, 1, 9], "c": "x", "d": [True, False], "e": list[int]()}
    assert extremes(metadata) == {
        ("a", "number"): (3, 3),
        ("b", "number"): (1, 9),
        ("c", "str"): ("x", "x"),
    }


@given(texts, texts)
def test_ids_map_to_uuids_of_version_5(a: str, b: str) -> None:
    # D1
    assert (engine_id(a) == engine_id(b)) == (a == b)
    assert engine_id(a).version == 5


def test_the_namespace_of_ids_never_changes() -> None:
    # D1: stored points are found by it; SHA-1 over namespace and UTF-8, as RFC 9562 says
    assert UUID("6f1c52d4-0d0e-5a55-9b4e-3c1f6e9a7b21") == ID_NAMESPACE
    expected = bytearray(hashlib.sha1(ID_NAMESPACE.bytes + "статия 1".encode()).digest()[:16])
    expected[6] = expected[6] & 0x0F | 0x50
    expected[8] = expected[8] & 0x3F | 0x80
    assert engine_id("статия 1").bytes == bytes(expected)
    given_uuid = "6f1c52d4-0d0e-5a55-9b4e-3c1f6e9a7b21"
    assert str(engine_id(given_uuid)) != given_uuid
