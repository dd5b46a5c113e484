"""Order, identity and supersets of the codes of strings, and of all kinds together."""

import operator
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from entrepot.encoding import (
    ChunkTest,
    all_of_any,
    any_of_all,
    certain,
    element_text,
    possible,
    scalar_band,
    scalar_code,
    string_bound,
    string_chunks,
    string_code,
    string_text,
    utf16_ordered,
)
from entrepot.filters import FilterOp
from entrepot.filters.values import Kind, Scalar

OPERATORS = {
    FilterOp.LT: operator.lt,
    FilterOp.LTE: operator.le,
    FilterOp.GT: operator.gt,
    FilterOp.GTE: operator.ge,
    FilterOp.EQ: operator.eq,
}
RANGES = (FilterOp.LT, FilterOp.LTE, FilterOp.GT, FilterOp.GTE)

# Where byte order, UTF-16 order and prefixes could go wrong: quotes, spaces, combining marks, the ends of
# the ranges of UTF-8, both sides of the surrogates, the last code point.
ODD = " \t\n\x01'\"`\\,;|*aAbz~\x7f\x80\u00e9e\u0301\u07ff\u0800\u20ac\ud7fe\ud7ff\ue000\uffff\U00010000\U0001f600\U0010ffff"
characters = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
texts = st.text(st.sampled_from(ODD), max_size=24) | st.text(characters, max_size=24)
sizes = st.integers(1, 12)


@st.composite
def pairs(draw: st.DrawFn) -> tuple[str, str]:
    """Draw two strings that often share a beginning: what order turns on."""
    common = draw(texts)
    return common + draw(texts), common + draw(texts)


@given(pairs(), sizes)
@example(("", ""), 1)
@example(("a", "a\x01"), 1)
def test_string_codes_keep_the_order_of_code_points(pair: tuple[str, str], size: int) -> None:
    # F4
    stored, operand = pair
    code, exact = string_code(operand, size)
    for op in RANGES:
        truth = OPERATORS[op](stored, operand)
        widened = OPERATORS[possible(op, exact=exact)](string_code(stored, size).code, code)
        narrowed = OPERATORS[certain(op, exact=exact)](string_code(stored, size).code, code)
        assert widened or not truth
        assert truth or not narrowed
        if exact:
            assert widened == narrowed == truth
    assert exact == (len(operand.encode()) < size)


@given(pairs(), sizes)
@example(("abcdef", "abcde"), 5)
@example(("abcde", "abcdef"), 5)
@example(("abcdeg", "abcdef"), 5)
def test_string_texts_keep_order_and_identity(pair: tuple[str, str], size: int) -> None:
    # F4; identity at any length
    a, b = pair
    code_a, code_b = string_text(a, size), string_text(b, size)
    assert (code_a.code == code_b.code) == (a == b)
    if code_a.exact or code_b.exact or a.encode()[:size] != b.encode()[:size]:
        assert (code_a.code < code_b.code) == (a < b)
    assert code_a.exact == (len(a.encode()) <= size)


@given(pairs(), sizes)
def test_string_bounds_give_supersets_and_subsets(pair: tuple[str, str], size: int) -> None:
    # F9
    stored, operand = pair
    code = string_text(stored, size).code
    for op in RANGES:
        truth = OPERATORS[op](stored, operand)
        wide_op, wide = string_bound(op, operand, size=size)
        narrow_op, narrow = string_bound(op, operand, certain=True, size=size)
        widened, narrowed = OPERATORS[wide_op](code, wide), OPERATORS[narrow_op](code, narrow)
        assert widened or not truth
        assert truth or not narrowed
        if string_text(operand, size).exact:
            assert widened == narrowed == truth
        elif stored.encode()[:size] != operand.encode()[:size]:
            assert widened == narrowed == truth  # unknown is only what shares the first bytes


@given(st.text(characters, max_size=2000))
def test_a_string_text_has_a_bounded_width_and_one_alphabet(text: str) -> None:
    # F10
    code = string_text(text).code
    assert len(code) <= 88
    assert set(code) <= set("0123456789abcdefghijklmnopqrstuv")


def test_bytes_of_string_texts_are_those_of_rfc_4648() -> None:
    assert string_text("foobar") == ("cpnmuoj1e8", True)  # RFC 4648, section 10, in lower case
    assert string_text("") == ("", True)
    long = string_text("foobar" + "x" * 100, 6)
    assert long.code[:10] == "cpnmuoj1e8"
    assert len(long.code) == 34
    assert not long.exact
    assert string_text("x" * 40).exact
    assert not string_text("x" * 41).exact


def test_bytes_of_scalar_codes_are_fixed() -> None:
    # bands of 2^128, in the order bool, number, datetime, string
    assert scalar_code(value=False) == (0, True)
    assert scalar_code(value=True) == (1, True)
    assert scalar_code(0) == (2**128 + 2**74, True)
    assert scalar_code(datetime(1, 1, 1, tzinfo=UTC)) == (2 * 2**128, True)
    assert scalar_code("a") == (3 * 2**128 + 0x61 * 2**120, True)
    assert scalar_code("a" * 15).exact
    assert not scalar_code("a" * 16).exact
    assert scalar_band("str", 1) == range(3 * 2**75, 4 * 2**75)


@given(pairs(), st.integers(1, 4), st.integers(1, 6))
@example(("abcdef", "abcdef"), 2, 6)
@example(("abcdef", "abcdefg"), 2, 6)
def test_chunks_compare_as_strings(pair: tuple[str, str], count: int, size: int) -> None:
    # F4
    stored, operand = pair
    left, (right, exact) = string_chunks(stored, count, size).code, string_chunks(operand, count, size)
    assert all(0 <= chunk < 256**size for chunk in left)
    assert 1 <= len(left) <= count
    for op in RANGES:
        truth = OPERATORS[op](stored, operand)
        widened = OPERATORS[possible(op, exact=exact)](left, right)
        narrowed = OPERATORS[certain(op, exact=exact)](left, right)
        assert widened or not truth
        assert truth or not narrowed
        if exact:
            assert widened == narrowed == truth


@given(pairs(), st.integers(1, 4), st.integers(1, 6))
def test_both_forms_of_the_comparison_hold_where_missing_chunks_are_false(
    pair: tuple[str, str], count: int, size: int
) -> None:
    # F4: an engine that has no value for a chunk finds nothing in its column
    stored, operand = pair
    left, (right, exact) = string_chunks(stored, count, size).code, string_chunks(operand, count, size)

    def holds(test: ChunkTest) -> bool:
        return test.position < len(left) and OPERATORS[test.op](left[test.position], test.value)

    for op in RANGES:
        for form in (possible(op, exact=exact), certain(op, exact=exact)):
            padded = left + (0,) * (len(right) - len(left))
            truth = OPERATORS[form](padded[: len(right)], right)
            assert all(any(map(holds, union)) for union in all_of_any(form, right)) == truth
            assert any(all(map(holds, part)) for part in any_of_all(form, right)) == truth


def test_chunks_end_with_one_that_is_not_full() -> None:
    assert string_chunks("", 4) == ((0,), True)
    assert string_chunks("a", 4) == ((0x610000000000,), True)
    assert string_chunks("abcdef", 4) == ((0x616263646566, 0), True)
    assert string_chunks("abcdef", 1) == ((0x616263646566,), False)
    assert string_chunks("abcdefg", 2) == ((0x616263646566, 0x670000000000), True)


def test_both_forms_are_written_as_expected() -> None:
    lt, lte, eq = FilterOp.LT, FilterOp.LTE, FilterOp.EQ
    assert all_of_any(lte, (7, 8)) == [[(0, lte, 7)], [(0, lt, 7), (1, lte, 8)]]
    assert any_of_all(lte, (7, 8)) == [[(0, lt, 7)], [(0, eq, 7), (1, lte, 8)]]


def _utf16(text: str) -> bytes:
    return text.encode("utf-16-be")


@given(pairs())
@example(("\ud7ff\x01", "\ud7ff"))
@example(("\uffff", "\U00010000"))
@example(("\ud7ff", "\ue000"))
def test_the_repair_makes_utf16_order_the_order_of_code_points(pair: tuple[str, str]) -> None:
    # F4, on engines that compare UTF-16 units
    a, b = pair
    assert (_utf16(utf16_ordered(a)) < _utf16(utf16_ordered(b))) == (a < b)
    assert (utf16_ordered(a) < utf16_ordered(b)) == (a < b)
    assert (utf16_ordered(a) == utf16_ordered(b)) == (a == b)


def test_the_repair_leaves_ordinary_text_alone() -> None:
    assert utf16_ordered("Ärger, 文, 😀") == "Ärger, 文, 😀"
    assert utf16_ordered("\ud7ff") == "\ud7ff\x01"
    assert utf16_ordered("\ue000\uffff") == "\ud7ff\x02\ud7ff\u2001"


NUMBERS = st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
INSTANTS = st.datetimes(timezones=st.just(UTC))
scalars = st.booleans() | NUMBERS | INSTANTS | texts
of_one_kind = (
    st.tuples(NUMBERS, NUMBERS)
    | st.tuples(INSTANTS, INSTANTS)
    | pairs()
    | st.tuples(st.booleans(), st.booleans())
)


@given(of_one_kind)
def test_codes_of_one_kind_keep_its_order(pair: tuple[Any, Any]) -> None:
    # F4
    a, b = pair
    assert (element_text(a) < element_text(b)) == (a < b)
    assert (element_text(a) == element_text(b)) == (a == b)
    code_a, code_b = scalar_code(a, 400), scalar_code(b, 400)
    assert code_a.exact
    assert (code_a.code < code_b.code) == (a < b)
    if a < b:
        assert scalar_code(a).code <= scalar_code(b).code


def _kind(value: Scalar) -> str:
    return "number" if type(value) in (int, float) else type(value).__name__


@given(scalars, scalars)
def test_codes_of_different_kinds_never_meet(a: Scalar, b: Scalar) -> None:
    # F4: True is never 1, "1" is never 1
    if _kind(a) != _kind(b):
        assert element_text(a) != element_text(b)
        assert element_text(a)[0] != element_text(b)[0]
        assert scalar_code(a).code != scalar_code(b).code


def test_bands_are_disjoint_and_hold_their_kind() -> None:
    values: dict[Kind, Scalar] = {
        "bool": True,
        "number": 1.7e308,
        "datetime": datetime.max.replace(tzinfo=UTC),
        "str": "\U0010ffff" * 9,
    }
    bands = {kind: scalar_band(kind) for kind in values}
    for kind, value in values.items():
        code = scalar_code(value).code
        assert [other for other, band in bands.items() if band.start <= code < band.stop] == [kind]
        assert 0 <= code < 2**136


@pytest.mark.parametrize(
    ("value", "text"),
    [(True, "b1"), (False, "b0"), (1, "nnvo"), (1.0, "nnvo"), ("x y", "sx y"), ("", "s"), (2020, "no2fp")],
)
def test_element_texts_are_fixed(value: Scalar, text: str) -> None:
    assert element_text(value) == text
