"""The jsonb that filters are asked of: D3, D4, F4."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction

import pytest
from core.tests.filters.strategies import any_scalars, well_formed_text
from hypothesis import given
from hypothesis import strategies as st

from entrepot_postgres.terms import json_scalar, json_string, json_terms


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ('a"b\\c\n\u2028é', '"a\\"b\\\\c\\n\u2028é"'),
        (True, "true"),
        (False, "false"),
        (1, "1"),
        (-(2**63), "-9223372036854775808"),
        (1.0, "1.0"),
        (-0.0, "-0.0"),
        (0.1, "0.1"),
        (float(2**53), "9007199254740992.0"),
        (-float(2**63), "-9223372036854775808.0"),
        (9.223372036854775e18, "9223372036854774784.0"),
        (1e300, "1e+300"),
        (datetime(1, 1, 1, tzinfo=UTC), '{"datetime":"0001-01-01T00:00:00.000000Z"}'),
        (
            datetime(2026, 1, 31, 14, 0, 0, 5, tzinfo=timezone(timedelta(hours=2))),
            '{"datetime":"2026-01-31T12:00:00.000005Z"}',
        ),
    ],
    ids=repr,
)
def test_scalars(value: str | bool | float | datetime, expected: str) -> None:
    # F4
    assert json_scalar(value) == expected


@given(st.floats(allow_nan=False, allow_infinity=False), st.integers(-(2**63), 2**63 - 1))
def test_a_float_meets_every_integer_as_python_compares_them(number: float, integer: int) -> None:
    # F4: decimal comparison, as jsonb does it
    written = Decimal(json_scalar(number))
    assert (written < integer) == (Fraction(number) < integer)
    assert (written == integer) == (Fraction(number) == integer)


@given(st.floats(allow_nan=False, allow_infinity=False), st.floats(allow_nan=False, allow_infinity=False))
def test_floats_keep_their_order(left: float, right: float) -> None:
    # F4
    assert (Decimal(json_scalar(left)) < Decimal(json_scalar(right))) == (left < right)


@given(well_formed_text())
def test_a_string_is_one_json_string(text: str) -> None:
    # F10
    written = json_string(text)
    assert json.loads(written) == text
    assert not any(character < " " for character in written)


@given(st.dictionaries(well_formed_text(min_size=1), any_scalars(), max_size=5))
def test_keys_and_their_number_stay(metadata: dict[str, str | bool | int | float | datetime]) -> None:
    # D3
    assert json.loads(json_terms(metadata)).keys() == metadata.keys()  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def test_empty_lists_are_left_out() -> None:
    # F1
    assert json_terms({"a": [], "b": ["x", ""], "c": 1}) == '{"b":["x",""],"c":1}'
    assert json_terms({}) == "{}"
