"""Order, identity and bytes of the codes of numbers: what a comparison in an engine relies on."""

import math
import operator
import struct
from collections.abc import Callable
from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from entrepot.encoding import (
    NUMBER_BITS,
    certain,
    compact,
    nearest_double,
    number_code,
    number_text,
    possible,
    split_double,
)
from entrepot.filters import FilterOp

OPERATORS = {
    FilterOp.LT: operator.lt,
    FilterOp.LTE: operator.le,
    FilterOp.GT: operator.gt,
    FilterOp.GTE: operator.ge,
}

EDGES = sorted(
    {
        sign * 2**power + shift
        for sign in (1, -1)
        for power in (0, 1, 10, 24, 47, 48, 51, 52, 53, 54, 55, 60, 61, 62, 63)
        for shift in (-1025, -1024, -1023, -513, -512, -511, -2, -1, 0, 1, 2, 511, 512, 513, 1023, 1024, 1025)
        if -(2**63) <= sign * 2**power + shift < 2**63
    }
)
FLOATS = [
    *(float(edge) for edge in EDGES),
    *(math.nextafter(float(edge), math.inf) for edge in EDGES),
    *(math.nextafter(float(edge), -math.inf) for edge in EDGES),
    2.0**63,
    0.1,
    -0.1,
    5e-324,
    -5e-324,
    2.2250738585072014e-308,  # the smallest normal double
    2.225073858507201e-308,  # the largest subnormal one
    1e308,
    -1e308,
    1.7976931348623157e308,
    -1.7976931348623157e308,
    0.0,
    -0.0,
]

integers = st.integers(-(2**63), 2**63 - 1) | st.sampled_from(EDGES)
floats = st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from(FLOATS) | integers.map(float)
numbers = integers | floats


@st.composite
def near_pairs(draw: st.DrawFn) -> tuple[float, float]:
    """Draw a number and one a few units beside it, as int or as float: where codes could go wrong."""
    number = draw(numbers)
    if type(number) is int:
        beside = min(max(number + draw(st.integers(-2048, 2048)), -(2**63)), 2**63 - 1)
        return number, draw(st.sampled_from([beside, float(beside)]))
    return number, draw(st.sampled_from([math.nextafter(number, 0.0), number, -number]))


pairs = st.tuples(numbers, numbers) | near_pairs()


@given(pairs)
def test_codes_of_numbers_compare_as_python_compares_int_with_float(pair: tuple[float, float]) -> None:
    # F4
    a, b = pair
    for compare in (operator.lt, operator.le, operator.eq, operator.ne, operator.ge, operator.gt):
        assert compare(number_code(a), number_code(b)) == compare(a, b)
        assert compare(number_text(a), number_text(b)) == compare(a, b)
        assert compare(number_text(a).encode(), number_text(b).encode()) == compare(a, b)
        assert compare(compact(number_text(a)), compact(number_text(b))) == compare(a, b)


def test_all_edges_are_in_one_exact_order() -> None:
    # F4: 2^53 and 2^63, int beside float, subnormals, both zeros
    values: list[float] = [*EDGES, *FLOATS]
    exact = sorted(values, key=Fraction)
    assert sorted(values, key=number_code) == exact
    codes = [number_text(value) for value in exact]
    assert codes == sorted(codes)
    assert len(set(codes)) == len({Fraction(value) for value in values})


@given(numbers)
def test_a_number_has_a_fixed_width_and_one_alphabet(number: float) -> None:
    # F10: nothing to trim, fold, split or escape
    assert 0 <= number_code(number) < 2**NUMBER_BITS
    text = number_text(number)
    assert len(text) == 15
    assert set(text) <= set("0123456789abcdefghijklmnopqrstuv")


@given(integers)
def test_equal_numbers_of_both_types_have_one_code(number: int) -> None:
    # F4: 1 and 1.0
    same = float(number) == number
    assert (number_code(float(number)) == number_code(number)) is same
    assert (number_text(float(number)) == number_text(number)) is same


def test_bytes_of_the_code_are_fixed() -> None:
    # written down by hand: 0x8000.. is 0.0, 0xBFF0.. is 1.0 in sortable IEEE 754; 5 bits a character
    assert number_text(0) == "g" + 14 * "0"
    assert number_text(-0.0) == "g" + 14 * "0"
    assert number_text(1) == "nvo" + 12 * "0"
    assert number_text(1.0) == "nvo" + 12 * "0"
    assert number_code(1) == 0xBFF0_0000_0000_0000 << 11
    assert number_code(-1) == 0x400F_FFFF_FFFF_FFFF << 11
    assert number_code(2**53 + 1) == (0xC340_0000_0000_0000 << 11) + 1
    assert number_code(2**63 - 1) == (0xC3DF_FFFF_FFFF_FFFF << 11) + 1023
    assert number_code(-(2**63)) == 0x3C1F_FFFF_FFFF_FFFF << 11
    assert number_code(-(2**63) + 1) == (0x3C1F_FFFF_FFFF_FFFF << 11) + 1
    assert compact(number_text(1)) == "nvo"
    assert compact("000") == "0"
    assert NUMBER_BITS == 75


@given(floats)
def test_the_upper_bits_of_a_float_are_its_ieee_bits(number: float) -> None:
    bits = int.from_bytes(struct.pack(">d", number + 0.0), "big")
    turned = 2**64 - 1 - bits if number < 0 else bits + 2**63
    assert number_code(number) == turned * 2048


@given(numbers)
def test_splitting_a_double_loses_nothing(number: float) -> None:
    double, rest = split_double(number)
    assert Fraction(double) + rest == Fraction(number)
    assert type(double) is float
    assert -512 <= rest <= 512
    assert float(rest) == rest
    assert math.copysign(1.0, double) == 1.0 or double != 0.0  # -0.0 has become 0.0


def test_the_zeros_are_one() -> None:
    # F4; an engine may compare by bits
    assert math.copysign(1.0, split_double(-0.0)[0]) == 1.0
    assert math.copysign(1.0, nearest_double(-0.0).code) == 1.0


@given(pairs)
def test_pairs_of_double_and_rest_compare_as_the_numbers(pair: tuple[float, float]) -> None:
    # F4
    a, b = pair
    assert (split_double(a) < split_double(b)) == (a < b)
    assert (split_double(a) == split_double(b)) == (a == b)


@given(pairs)
@example((2**53, 2**53 + 1))
@example((2.0**63, 2**63 - 1))
@example((-(2**63), -(2**63) + 1))
def test_nearest_doubles_give_supersets_and_subsets(pair: tuple[float, float]) -> None:
    # F9: plain leaves may find more, negated ones may find more
    stored, operand = pair
    code, exact = nearest_double(operand)
    for op, compare in OPERATORS.items():
        truth = compare(stored, operand)
        widened = OPERATORS[possible(op, exact=exact)](nearest_double(stored).code, code)
        narrowed = OPERATORS[certain(op, exact=exact)](nearest_double(stored).code, code)
        assert widened or not truth
        assert truth or not narrowed
        if exact:
            assert widened == narrowed == truth


@pytest.mark.parametrize(
    ("number", "exact"),
    [
        (2**53 - 1, True),
        (2**53, False),
        (2.0**53, False),
        (2**63 - 1, False),
        (2.0**63, False),
        (1e19, True),
        (0, True),
    ],
)
def test_a_double_is_exact_where_no_integer_shares_it(number: float, exact: bool) -> None:
    assert nearest_double(number).exact is exact


def test_exact_codes_keep_their_operator() -> None:
    for op in OPERATORS:
        assert possible(op, exact=True) is op
        assert certain(op, exact=True) is op


@pytest.mark.parametrize("encode", [number_code, number_text, nearest_double, split_double])
@pytest.mark.parametrize("number", [math.inf, -math.inf, math.nan, 2**63, -(2**63) - 1])
def test_what_is_no_number_of_the_contract_is_refused(
    encode: Callable[[float], object], number: float
) -> None:
    # D3
    with pytest.raises(ValueError, match="order code"):
        encode(number)


@pytest.mark.parametrize("encode", [number_code, number_text, nearest_double, split_double])
@pytest.mark.parametrize("value", [True, "1", None])
def test_only_numbers_have_codes_of_numbers(encode: Callable[[object], object], value: object) -> None:
    # F4: True is never 1
    with pytest.raises(TypeError):
        encode(value)
