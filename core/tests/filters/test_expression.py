"""The tree: what it refuses, how it compares, how deep and large it is."""

from __future__ import annotations

import copy
import enum
import math
import pickle
import threading
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import TYPE_CHECKING, Any, cast
from uuid import UUID

import numpy as np
import pytest
from core.tests.filters.strategies import any_scalars, expressions, leaves, well_formed_text
from hypothesis import given

from entrepot.errors import ArgumentTypeError, EntrepotError, FilterLimitError, FilterValueError
from entrepot.filters import (
    Expression,
    FilterOp,
    Key,
    Value,
    check_limits,
    evaluate,
    format_filter,
    normalise,
)

if TYPE_CHECKING:
    from collections.abc import Callable


def eq(key: str, value: Any) -> Expression:
    return Expression(FilterOp.EQ, Key(key), Value(value))


A, B, C = eq("a", 1), eq("b", 2), eq("c", 3)


def test_there_are_exactly_thirteen_operators() -> None:
    names = "AND OR EQ NE GT GTE LT LTE IN NIN NOT ISNULL ISNOTNULL"
    assert [op.name for op in FilterOp] == names.split()


# --- keys (D3) ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["a", "a.b", " ", "it's", '"', "`", "$gt", "and", "größe", "\n", "\x01", "x" * 512, "😀" * 512]
)
def test_any_string_can_be_a_key(name: str) -> None:
    # D3; lengths count code points (D4)
    assert Key(name).name == name


@pytest.mark.parametrize("name", ["", "x" * 513, "a\0b", "\ud800", "a\udfff"])
def test_keys_that_no_document_can_have_are_refused(name: str) -> None:
    # D3, D4
    with pytest.raises(FilterValueError):
        Key(name)


class _Name(str):
    __slots__ = ()


@pytest.mark.parametrize("name", [None, 1, b"a", _Name("a"), ["a"]])
def test_a_key_is_exactly_a_str(name: Any) -> None:
    with pytest.raises(ArgumentTypeError) as caught:
        Key(name)
    assert isinstance(caught.value, TypeError)


# --- operands (F5) -----------------------------------------------------------------------------------------


class _Colour(enum.StrEnum):
    RED = "red"


class _Level(enum.IntEnum):
    HIGH = 3


class _Stamp(datetime):
    pass


class _PandasStamp(datetime):
    pass


_PandasStamp.__module__ = "pandas._libs.tslibs.timestamps"


class _Listing(list[int]):
    pass


@pytest.mark.parametrize(
    ("value", "instead"),
    [
        (None, "IS NULL"),
        (math.nan, "NaN and infinity are never stored"),
        (math.inf, "NaN and infinity are never stored"),
        (-math.inf, "NaN and infinity are never stored"),
        (2**63, "float"),
        (-(2**63) - 1, "float"),
        (datetime(2026, 1, 31), "tzinfo"),  # noqa: DTZ001 - naive is what is refused
        (date(2026, 1, 31), "datetime"),
        (datetime.min.replace(tzinfo=timezone(timedelta(hours=1))), "years 1 to 9999"),
        (datetime.max.replace(tzinfo=timezone(timedelta(hours=-1))), "years 1 to 9999"),
        (np.float64(1.5), "value.item()"),
        (np.int64(1), "value.item()"),
        (np.bool_(True), "value.item()"),
        (np.str_("a"), "value.item()"),
        (np.array([1, 2]), "value.tolist()"),
        (np.datetime64("2026-01-31"), "time zone"),
        (_Colour.RED, "member.value"),
        (_Level.HIGH, "member.value"),
        (_Name("a"), "str(value)"),
        (_Stamp(2026, 1, 31, tzinfo=UTC), "datetime.datetime"),
        (_PandasStamp(2026, 1, 31, tzinfo=UTC), "to_pydatetime()"),
        (time(12), "datetime.datetime"),
        (_Listing(), "list(value)"),
        ({"a", "b"}, "list(value)"),
        (frozenset({1}), "list(value)"),
        (range(3), "list(value)"),
        (iter([1]), "list(value)"),
        (b"a", "decode"),
        (Decimal("1.5"), "allowed are"),
        (UUID(int=1), "allowed are"),
        ({"a": 1}, "allowed are"),
        (1j, "allowed are"),
        ("a\0", "NUL"),
        ("\ud800", "surrogate"),
        ([[1]], "flat"),
        ([1, (2,)], "flat"),
        ([None], "IS NULL"),
        ([1, math.nan], "never stored"),
        (["\0"], "NUL"),
    ],
)
def test_what_is_no_operand_is_refused_and_the_error_says_what_to_use(value: Any, instead: str) -> None:
    # F5, D3, D4
    with pytest.raises(FilterValueError) as caught:
        Value(value)
    assert instead in str(caught.value)
    assert isinstance(caught.value, ValueError)


class _Unprintable:
    def __repr__(self) -> str:
        raise RuntimeError


def test_an_operand_without_a_repr_is_refused_like_any_other() -> None:
    with pytest.raises(FilterValueError, match="no repr"):
        Value(cast("Any", _Unprintable()))


@pytest.mark.parametrize(
    "value", ["", "x" * 10_000, True, False, 0, 2**63 - 1, -(2**63), -0.0, 1e308, 5e-324]
)
def test_operands_are_kept_as_they_are(value: str | float) -> None:
    kept = Value(value).value
    assert type(kept) is type(value)
    assert repr(kept) == repr(value)


def test_datetimes_are_taken_to_utc() -> None:
    # D4: the same instant, in UTC
    local = datetime(2026, 1, 31, 14, 0, 0, 123456, tzinfo=timezone(timedelta(hours=2)))
    kept = Value(local).value
    assert kept == datetime(2026, 1, 31, 12, 0, 0, 123456, tzinfo=UTC)
    assert isinstance(kept, datetime)
    assert kept.tzinfo is UTC


def test_the_first_and_the_last_instant_are_taken() -> None:
    for instant in (datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)):
        assert Value(instant).value == instant


def test_lists_become_tuples_and_may_mix_kinds() -> None:
    # F5
    given_list: list[str | float] = [1, "1", True, 1.0]
    value = Value(given_list)
    given_list.append(2)
    assert value.value == (1, "1", True, 1.0)
    assert Value((1, "1", True, 1.0)) == value
    assert Value([]).value == ()


@pytest.mark.parametrize("op", [FilterOp.IN, FilterOp.NIN])
@pytest.mark.parametrize("scalar", ["a", 1, True])
def test_a_scalar_after_in_is_refused(op: FilterOp, scalar: str | int) -> None:
    # F5
    with pytest.raises(FilterValueError, match="takes a list") as caught:
        Expression(op, Key("a"), Value(scalar))
    assert f"[{scalar!r}]" in str(caught.value)


@pytest.mark.parametrize(
    "op", [FilterOp.EQ, FilterOp.NE, FilterOp.GT, FilterOp.GTE, FilterOp.LT, FilterOp.LTE]
)
@pytest.mark.parametrize("items", [[], [1], [1, 2]])
def test_a_list_elsewhere_than_after_in_is_refused(op: FilterOp, items: list[int]) -> None:
    # F5
    with pytest.raises(FilterValueError, match="not a list") as caught:
        Expression(op, Key("a"), Value(items))
    assert "IN" in caught.value.hint


@pytest.mark.parametrize("op", [FilterOp.GT, FilterOp.GTE, FilterOp.LT, FilterOp.LTE])
@pytest.mark.parametrize("value", [True, False])
def test_booleans_have_no_order(op: FilterOp, value: bool) -> None:
    # F5
    with pytest.raises(FilterValueError, match="== or !="):
        Expression(op, Key("a"), Value(value))


@pytest.mark.parametrize(
    ("op", "left", "right"),
    [
        (FilterOp.AND, A, None),
        (FilterOp.AND, A, Value(1)),
        (FilterOp.OR, Key("a"), A),
        (FilterOp.NOT, Key("a"), None),
        (FilterOp.NOT, A, B),
        (FilterOp.ISNULL, A, None),
        (FilterOp.ISNULL, Key("a"), Value(1)),
        (FilterOp.EQ, A, B),
        (FilterOp.EQ, Key("a"), None),
        (FilterOp.EQ, Key("a"), 1),
        (FilterOp.EQ, "a", Value(1)),
        ("EQ", Key("a"), Value(1)),
        (FilterOp.IN, Key("a"), [1]),
    ],
)
def test_operands_of_the_wrong_class_are_refused(op: Any, left: Any, right: Any) -> None:
    with pytest.raises(ArgumentTypeError) as caught:
        Expression(op, left, right)
    assert isinstance(caught.value, TypeError)
    assert "FilterOp" in str(caught.value)


# --- equality, hash, immutability (F8) ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (True, 1),
        (1, 1.0),
        (True, 1.0),
        (0, False),
        ("1", 1),
        (2**53, float(2**53)),
        ([1], [1.0]),
        ([1], [True]),
    ],
)
def test_equality_and_hash_know_types(left: object, right: object) -> None:
    # F8
    assert eq_or_in(left) != eq_or_in(right)
    assert hash(eq_or_in(left)) != hash(eq_or_in(right))
    assert len({eq_or_in(left), eq_or_in(right)}) == 2


def eq_or_in(value: Any) -> Expression:
    if isinstance(value, list):
        return Expression(FilterOp.IN, Key("a"), Value(value))  # pyright: ignore[reportUnknownArgumentType]
    return eq("a", value)


@given(expressions(leaves(values=any_scalars())))
def test_a_tree_that_is_built_again_is_equal(expression: Expression) -> None:
    # F8
    again = _rebuilt(expression)
    assert again is not expression
    assert again == expression
    assert hash(again) == hash(expression)
    assert repr(again) == repr(expression)
    assert ~again != expression


def _rebuilt(expression: Expression) -> Expression:
    left, right = expression.left, expression.right
    if isinstance(left, Expression):
        if isinstance(right, Expression):
            return Expression(expression.op, _rebuilt(left), _rebuilt(right))
        return Expression(expression.op, _rebuilt(left))
    if isinstance(right, Value):
        return Expression(expression.op, Key(left.name), Value(right.value))
    return Expression(expression.op, Key(left.name))


def test_structure_counts() -> None:
    # F8: meaning comes from the tree, and trees are equal only if they are alike
    assert (A & B) != (B & A)
    assert (A & B) & C != A & (B & C)
    assert eq("a", 1) != eq("b", 1)
    assert Expression(FilterOp.NE, Key("a"), Value(1)) != eq("a", 1)
    assert eq("a", [1][0]) == eq("a", 1)
    assert A != "a == 1"
    assert Key("a") != "a"
    assert Value(1) != 1


def test_a_repr_can_be_evaluated() -> None:
    tree = (A & ~B) | Expression(
        FilterOp.IN, Key("it's"), Value(["a", True, datetime(2026, 1, 31, tzinfo=UTC)])
    )
    tree = tree | Expression(FilterOp.ISNULL, Key("x"))
    names = {"Expression": Expression, "FilterOp": FilterOp, "Key": Key, "Value": Value}
    import datetime as dt

    assert eval(repr(tree), {**names, "datetime": dt}) == tree


@pytest.mark.parametrize("thing", [Key("a"), Value(1), A])
def test_trees_do_not_change(thing: object) -> None:
    for name in ("name", "value", "op", "left", "hashed", "new"):
        with pytest.raises(AttributeError):
            setattr(thing, name, 1)
        with pytest.raises(AttributeError):
            delattr(thing, name)
    assert not hasattr(thing, "__dict__")


@given(expressions(leaves(values=any_scalars())))
def test_trees_can_be_copied_and_pickled(expression: Expression) -> None:
    assert copy.copy(expression) is expression
    assert copy.deepcopy([expression])[0] is expression
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(expression, protocol)) == expression


def test_keys_and_values_can_be_copied_and_pickled() -> None:
    for thing in (Key("größe"), Value([1, "a", True])):
        assert copy.deepcopy(thing) is copy.copy(thing) is thing
        again = pickle.loads(pickle.dumps(thing))
        assert again == thing
        assert hash(again) == hash(thing)


# --- depth and size (F6) -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expression", "depth", "nodes"),
    [
        (A, 1, 1),  # a lone comparison is depth 1
        (~A, 2, 2),  # each NOT counts
        (~~A, 3, 3),
        (A & B, 2, 3),
        ((A & B) & C, 2, 4),  # a chain of one operator is flattened: three comparisons and one AND
        (A & (B & C), 2, 4),
        ((A & B) & (B & C), 2, 5),
        ((A | B) & C, 3, 5),
        (A & (B | C), 3, 5),
        (~(A & B) & C, 4, 6),
        ((A & B) & ((A | B) & C), 3, 7),
        (Expression(FilterOp.IN, Key("a"), Value([])), 1, 1),
        (Expression(FilterOp.IN, Key("a"), Value([1, 2, 3])), 1, 4),  # elements of IN lists count
        (Expression(FilterOp.ISNULL, Key("a")), 1, 1),
    ],
)
def test_depth_and_nodes_are_counted_on_the_flattened_tree(
    expression: Expression, depth: int, nodes: int
) -> None:
    # F6
    assert (expression.depth, expression.nodes) == (depth, nodes)


@given(expressions())
def test_depth_and_nodes_agree_with_a_plain_count(expression: Expression) -> None:
    # F6, counted the slow way
    assert (expression.depth, expression.nodes) == _count(expression)


def _count(expression: Expression) -> tuple[int, int]:
    if expression.op in (FilterOp.AND, FilterOp.OR):
        parts = [_count(term) for term in _terms(expression, expression.op)]
        return 1 + max(depth for depth, _ in parts), 1 + sum(nodes for _, nodes in parts)
    if isinstance(expression.left, Expression):
        depth, nodes = _count(expression.left)
        return 1 + depth, 1 + nodes
    operand = expression.right.value if isinstance(expression.right, Value) else None
    return 1, 1 + (len(operand) if isinstance(operand, tuple) else 0)


def _terms(expression: Expression, op: FilterOp) -> list[Expression]:
    if expression.op is not op:
        return [expression]
    assert isinstance(expression.left, Expression)
    assert isinstance(expression.right, Expression)
    return _terms(expression.left, op) + _terms(expression.right, op)


def nested(depth: int) -> Expression:
    """A filter of this depth: NOTs around a comparison."""
    tree = A
    for _ in range(depth - 1):
        tree = ~tree
    return tree


def alternating(depth: int) -> Expression:
    tree = A
    for level in range(depth - 1):
        tree = tree & B if level % 2 else C | tree
    return tree


def chain(terms: int) -> Expression:
    tree = eq("a", 0)
    for value in range(1, terms):
        tree = tree | eq("a", value)
    return tree


def in_list(elements: int) -> Expression:
    return Expression(FilterOp.IN, Key("a"), Value(list(range(elements))))


def test_the_limits_are_depth_100_and_10_000_nodes() -> None:
    # F6
    for allowed in (nested(100), alternating(100), chain(9_999), in_list(9_999)):
        check_limits(allowed)
    for refused in (nested(101), alternating(101), chain(10_000), in_list(10_000)):
        with pytest.raises(FilterLimitError, match="at most"):
            check_limits(refused)


@pytest.mark.parametrize("refused", [nested(101), chain(10_000)])
def test_every_use_of_a_filter_checks_the_limits(refused: Expression) -> None:
    # F6
    uses: list[Callable[[Expression], object]] = [normalise, format_filter, lambda tree: evaluate(tree, {})]
    for use in uses:
        with pytest.raises(FilterLimitError):
            use(refused)


@pytest.mark.parametrize("left", [True, False])
def test_ten_thousand_terms_need_no_recursion(left: bool) -> None:
    # F6: building, comparing, hashing, pickling and dropping work on chains to both sides, beyond the limit too
    def build() -> Expression:
        tree = A
        for value in range(20_000):
            term = eq("a", value)
            tree = tree & term if left else term & tree
        return tree

    one, other = build(), build()
    assert one == other
    assert hash(one) == hash(other)
    assert one.depth == 2
    assert pickle.loads(pickle.dumps(one)) == one
    assert repr(one) == "<Expression: AND, depth 2, 20002 nodes>"
    assert one != one & A


def test_deep_trees_need_no_recursion() -> None:
    one, other = nested(20_000), nested(20_000)
    assert one == other
    assert pickle.loads(pickle.dumps(one)) == one


def test_branches_that_are_shared_are_not_walked_again() -> None:
    # 2^200 paths, 200 nodes
    def build() -> Expression:
        tree = eq("a", 1)
        for _ in range(200):
            tree = tree & tree
        return tree

    one, other = build(), build()
    assert one == other
    assert pickle.loads(pickle.dumps(one)) == one
    assert one.nodes == 2**200 + 1


# --- operators on expressions ------------------------------------------------------------------------------


def test_operators_build_trees() -> None:
    assert Expression(FilterOp.AND, A, B) == (A & B)
    assert Expression(FilterOp.OR, A, B) == (A | B)
    assert Expression(FilterOp.NOT, A) == ~A


def test_an_expression_has_no_truth_value() -> None:
    # Python would drop half of the filter in silence
    a: Any = A  # type checkers know already that bool() of an expression never returns
    misuses: list[Callable[[], object]] = [
        lambda: a and B,
        lambda: a or B,
        lambda: not a,
        lambda: 1 if a else 2,
        lambda: bool(a),
    ]
    for misuse in misuses:
        with pytest.raises(ArgumentTypeError, match="no truth value") as caught:
            misuse()
        assert isinstance(caught.value, TypeError)
        assert isinstance(caught.value, EntrepotError)
        assert "& | ~" in caught.value.hint
        assert "parentheses" in caught.value.hint


@pytest.mark.parametrize("other", [True, 1, "a == 1", None, Key("a")])
def test_only_expressions_are_joined(other: Any) -> None:
    misuses: list[Callable[[], object]] = [
        lambda: A & other,
        lambda: other & A,
        lambda: A | other,
        lambda: other | A,
    ]
    for misuse in misuses:
        with pytest.raises(ArgumentTypeError, match="joins two filters"):
            misuse()


def test_trees_are_shared_between_threads() -> None:
    seen: list[bool] = []
    threads = [threading.Thread(target=lambda: seen.append(A & B == B & A)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [False] * 4


@given(well_formed_text(min_size=1))
def test_equal_keys_have_equal_hashes(name: str) -> None:
    assert Key(name) == Key(name)
    assert hash(Key(name)) == hash(Key(name))
