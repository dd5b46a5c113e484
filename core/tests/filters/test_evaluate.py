"""The evaluator against the contract, rule by rule. It is the law that everything else is tested against."""

from __future__ import annotations

import operator
import zoneinfo
from datetime import UTC, datetime, timedelta, timezone
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import pytest
from core.tests.filters.strategies import expressions, metadata, scalars
from hypothesis import given
from hypothesis import strategies as st

from entrepot.errors import MetadataError
from entrepot.filters import FALSE, TRUE, F, elements_of, evaluate, normalise, parse_filter

if TYPE_CHECKING:
    from collections.abc import Callable

    from entrepot.filters import Expression, Scalar

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


@pytest.mark.parametrize("document", [{}, {"x": None}, {"x": []}, {"y": 1}])
def test_missing_null_and_empty_are_one_thing(document: dict[str, object]) -> None:
    # F1, F2, F3
    holds = [F.x.is_null(), F.x != 1, F.x.nin([1, "a"]), F.x.nin([]), ~(F.x < 1), ~(F.x >= 1), ~F.x.in_([1])]
    fails = [F.x.is_not_null(), F.x == 1, F.x < 1, F.x <= 1, F.x > 1, F.x >= 1, F.x.in_([1]), F.x.in_([])]
    assert all(evaluate(expression, document) for expression in holds)
    assert not any(evaluate(expression, document) for expression in fails)


@pytest.mark.parametrize("value", [0, False, "", 0.0, [0], [False], [""], NOON])
def test_a_falsy_value_is_there(value: object) -> None:
    # F1
    assert evaluate(F.x.is_not_null(), {"x": value})
    assert not evaluate(F.x.is_null(), {"x": value})


@pytest.mark.parametrize(
    ("expression", "value", "expected"),
    [
        (F.x == 2, [1, 2, 3], True),
        (F.x == 4, [1, 2, 3], False),
        (F.x != 2, [1, 2, 3], False),
        (F.x != 4, [1, 2, 3], True),
        (F.x < 2, [1, 9], True),
        (F.x > 8, [1, 9], True),
        ((F.x > 3) & (F.x < 5), [1, 10], True),  # each comparison stands alone
        ((F.x > 3) & (F.x < 5), 4, True),
        ((F.x > 3) & (F.x < 5), [1, 2], False),
        ((F.x == 1) & (F.x == 2), [1, 2], True),
        (F.x.in_([3, 4]), [1, 4], True),
        (F.x.in_([5, 6]), [1, 4], False),
        (F.x.nin([3, 4]), [1, 4], False),
        (F.x.nin([5, 6]), [1, 4], True),
        (~(F.x < 5), [1, 9], False),  # F3: not the same as x >= 5
        (F.x >= 5, [1, 9], True),
        (F.x == "b", ["a", "b"], True),
        (F.x == "ab", ["a", "b"], False),
    ],
)
def test_some_element_satisfies_a_comparison(expression: Expression, value: object, expected: bool) -> None:
    # F2, F3
    assert evaluate(expression, {"x": value}) is expected


@given(scalars(), scalars(), st.sampled_from(["==", "<", "<=", ">", ">="]))
def test_a_scalar_is_a_list_of_one(value: Scalar, operand: Scalar, sign: str) -> None:
    # F2
    if sign == "==" or type(operand) is not bool:
        expression = SIGNS[sign](F.x, operand)
        assert evaluate(expression, {"x": value}) == evaluate(expression, {"x": [value]})


SIGNS: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@given(scalars(), scalars())
def test_kinds_never_mix_and_each_compares_in_its_own_way(left: Scalar, right: Scalar) -> None:
    # F4, written out another way: numbers as fractions, strings as code points, instants as microseconds
    left_kind, left_order = _order(left)
    right_kind, right_order = _order(right)
    for sign, compare in SIGNS.items():
        if sign != "==" and type(right) is bool:
            continue
        expected = left_kind == right_kind and compare(left_order, right_order)
        assert evaluate(compare(F.x, right), {"x": left}) is bool(expected), (left, sign, right)


def _order(value: Scalar) -> tuple[str, Any]:
    if isinstance(value, bool):
        return "bool", value
    if isinstance(value, int | float):
        return "number", Fraction(value)
    if isinstance(value, str):
        return "str", [ord(char) for char in value]
    return "datetime", (value - datetime(1970, 1, 1, tzinfo=UTC)) / timedelta(microseconds=1)


@pytest.mark.parametrize(
    ("stored", "operand", "equal"),
    [
        (True, 1, False),
        (1, True, False),
        (False, 0, False),
        ("1", 1, False),
        (1, "1", False),
        (1, 1.0, True),
        (1.0, 1, True),
        (0.0, -0.0, True),
        (2**53, float(2**53), True),
        (2**53 + 1, float(2**53), False),  # exact, although both are the same double
        (2**63 - 1, float(2**63), False),
        ("2026-01-31T12:00:00Z", NOON, False),  # a string that looks like a date stays a string
        (NOON, "2026-01-31T12:00:00Z", False),
        (NOON, NOON.astimezone(timezone(timedelta(hours=9))), True),
        (NOON, NOON + timedelta(microseconds=1), False),
        ("é", "e\u0301", False),  # no normalisation
        ("a", "A", False),
        ("a", "a ", False),
        ("true", True, False),
        ("", False, False),
    ],
)
def test_equality_is_typed_and_exact(stored: object, operand: Scalar, equal: bool) -> None:
    # F4
    assert evaluate(F.x == operand, {"x": stored}) is equal
    assert evaluate(F.x != operand, {"x": stored}) is not equal
    assert evaluate(F.x.in_([operand]), {"x": stored}) is equal
    assert evaluate(F.x.nin([operand, operand]), {"x": stored}) is not equal


def test_strings_are_ordered_by_code_point() -> None:
    # F4: not by UTF-16 unit, where the emoji comes before U+FFFF; not by language, where a comes before B
    assert evaluate(F.x > "\uffff", {"x": "\U0001f600"})
    assert evaluate(F.x < "a", {"x": "B"})
    assert evaluate(F.x > "", {"x": " "})
    assert evaluate(F.x > "a", {"x": "a "})


def test_lists_of_numbers_may_mix_int_and_float() -> None:
    # D3, F4
    assert evaluate(F.x == 2, {"x": [1, 2.0]})
    assert evaluate(F.x.in_([True, "2", 1.0]), {"x": [1, 3.5]})


def test_in_of_nothing_holds_nowhere() -> None:
    # F5
    documents: list[dict[str, object]] = [{}, {"x": 1}, {"x": []}, {"x": [1]}]
    for document in documents:
        assert not evaluate(F.x.in_([]), document)
        assert evaluate(F.x.nin([]), document)


@given(expressions(), metadata())
def test_not_is_the_complement(expression: Expression, document: dict[str, object]) -> None:
    # F3: two-valued
    assert evaluate(~expression, document) is not evaluate(expression, document)


@given(expressions(), expressions(), metadata())
def test_and_and_or_are_what_they_are_in_python(
    left: Expression, right: Expression, document: dict[str, object]
) -> None:
    both = evaluate(left, document), evaluate(right, document)
    assert evaluate(left & right, document) is all(both)
    assert evaluate(left | right, document) is any(both)


@pytest.mark.parametrize("key", ["a.b", "and", "it's", "$gt", " ", "größe", "\n"])
def test_a_key_is_one_flat_name(key: str) -> None:
    # D3
    assert evaluate(F[key] == 1, {key: 1})
    assert not evaluate(F[key] == 1, {"a": {"b": 1}, key.upper() + "_": 1})


@pytest.mark.parametrize("value", [{"b": 1}, b"a", [[1]], [None], {1}, 1j, datetime(2026, 1, 31)])  # noqa: DTZ001
def test_what_no_document_can_hold_is_an_error_that_names_the_key(value: object) -> None:
    # D3: rather than false in silence
    for expression in (F.bad == 1, F.bad != 1, F.bad.is_null(), F.bad.in_([1])):
        with pytest.raises(MetadataError, match="'bad'") as caught:
            evaluate(expression, {"bad": value})
        assert caught.value.key == "bad"


def test_other_zones_compare_by_instant_also_at_clock_changes() -> None:
    # F4: 02:30 happens twice; Python's own == between zones is always false there
    berlin = zoneinfo.ZoneInfo("Europe/Berlin")
    twice = datetime(2026, 10, 25, 2, 30, tzinfo=berlin)
    assert evaluate(F.x == datetime(2026, 10, 25, 0, 30, tzinfo=UTC), {"x": twice})
    assert evaluate(F.x == twice.replace(fold=1), {"x": datetime(2026, 10, 25, 1, 30, tzinfo=UTC)})


def test_long_and_deep_filters_are_evaluated() -> None:
    # F6: up to the limits without recursion errors
    chain = F.x == 0
    for value in range(1, 9_000):
        chain = chain | (F.x == value)
    assert evaluate(chain, {"x": 8_999})
    assert not evaluate(chain, {"x": 9_000})
    deep = F.x == 1
    for level in range(98):
        deep = (F.x >= 0) & deep if level % 2 else deep | (F.x < 0)
    assert deep.depth == 99
    assert evaluate(deep, {"x": 1})
    assert not evaluate(deep, {"x": 2})
    assert evaluate(normalise(deep), {"x": 1})


def test_normal_forms_are_evaluated_too() -> None:
    assert evaluate(TRUE, {})
    assert not evaluate(FALSE, {})
    assert evaluate(normalise(parse_filter("NOT (a == 1 OR b < 2)")), {"b": 3})
    assert not evaluate(normalise(parse_filter("a IS NOT NULL AND b != 1")), {"b": 3})


def test_elements_are_what_a_filter_sees() -> None:
    # F1, F2
    assert elements_of({}, "x") == elements_of({"x": None}, "x") == elements_of({"x": []}, "x") == []
    assert elements_of({"x": 1}, "x") == elements_of({"x": [1]}, "x") == elements_of({"x": (1,)}, "x") == [1]
