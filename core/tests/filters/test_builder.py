"""F and FilterExpressionBuilder: what they build, and every trap of Python's operators."""

from __future__ import annotations

import copy
import inspect
import pickle
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from entrepot.errors import ArgumentTypeError, EntrepotError, FilterValueError
from entrepot.filters import Expression, F, FilterExpressionBuilder, FilterOp, Key, Value

if TYPE_CHECKING:
    from collections.abc import Callable

b = FilterExpressionBuilder()

# Type checkers find most misuse by themselves; these names hide it from them.
f: Any = F
b_: Any = b


def made(op: FilterOp, value: object, key: str = "x") -> Expression:
    return Expression(op, Key(key), Value(value))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


X = made(FilterOp.EQ, 1)
Y = made(FilterOp.EQ, 2, "y")


@pytest.mark.parametrize(
    ("built", "expected"),
    [
        (F.x == 1, X),
        (F.x != "a", made(FilterOp.NE, "a")),
        (F.x < 1.5, made(FilterOp.LT, 1.5)),
        (F.x <= 1, made(FilterOp.LTE, 1)),
        (F.x > datetime(2026, 1, 31, tzinfo=UTC), made(FilterOp.GT, datetime(2026, 1, 31, tzinfo=UTC))),
        (F.x >= "", made(FilterOp.GTE, "")),
        (F.x.in_([1, "a", True]), made(FilterOp.IN, [1, "a", True])),
        (F.x.in_((1, 2)), made(FilterOp.IN, [1, 2])),
        (F.x.in_([]), made(FilterOp.IN, [])),
        (F.x.nin([1]), made(FilterOp.NIN, [1])),
        (F.x.is_null(), Expression(FilterOp.ISNULL, Key("x"))),
        (F.x.is_not_null(), Expression(FilterOp.ISNOTNULL, Key("x"))),
        (F["any key's $name"] == 1, made(FilterOp.EQ, 1, "any key's $name")),
        (F["_id"] == 1, made(FilterOp.EQ, 1, "_id")),
        (F["a.b"] == 1, made(FilterOp.EQ, 1, "a.b")),
        (F.in_ == 1, made(FilterOp.EQ, 1, "in_")),
        (F.name == 1, made(FilterOp.EQ, 1, "name")),
        (1 == F.x, X),  # noqa: SIM300
        (5 > F.x, made(FilterOp.LT, 5)),  # noqa: SIM300
        (~(F.x == 1), Expression(FilterOp.NOT, X)),
        ((F.x == 1) & (F.y == 2), Expression(FilterOp.AND, X, Y)),
        ((F.x == 1) | (F.y == 2), Expression(FilterOp.OR, X, Y)),
        (b.eq("x", 1), X),
        (b.ne("x", 1), made(FilterOp.NE, 1)),
        (b.gt("x", 1), made(FilterOp.GT, 1)),
        (b.gte("x", 1), made(FilterOp.GTE, 1)),
        (b.lt("x", 1), made(FilterOp.LT, 1)),
        (b.lte("x", 1), made(FilterOp.LTE, 1)),
        (b.in_("x", [1, "a"]), made(FilterOp.IN, [1, "a"])),
        (b.nin("x", (1, "a")), made(FilterOp.NIN, [1, "a"])),
        (b.is_null("x"), Expression(FilterOp.ISNULL, Key("x"))),
        (b.is_not_null("x"), Expression(FilterOp.ISNOTNULL, Key("x"))),
        (b.and_(X, Y), X & Y),
        (b.or_(X, Y), X | Y),
        (b.and_(X, Y, X), (X & Y) & X),
        (b.or_(X, Y, X, Y), ((X | Y) | X) | Y),
        (b.not_(X), ~X),
    ],
)
def test_both_forms_build_the_same_trees(built: Expression, expected: Expression) -> None:
    assert built == expected


def test_a_group_leaves_no_trace() -> None:
    # F8
    assert b.group(X) is X
    assert b.and_(b.group(b.or_(X, Y)), X) == (X | Y) & X


@pytest.mark.parametrize(
    ("misuse", "advice"),
    [
        (lambda: f.a == 1 & f.b == 2, "parentheses"),
        (lambda: f.a == 1 | f.b == 2, "parentheses"),
        (lambda: f.a & f.b, "parentheses"),
        (lambda: f.a | True, "parentheses"),
        (lambda: (f.a == 1) & f.b, "parentheses"),
        (lambda: f.a & (f.b == 1), "parentheses"),
        (lambda: f.a == 1 & (f.b == 2), "parentheses"),
        (lambda: f.a == (f.b == 1), "parentheses"),
        (lambda: f.a > (f.b > 1), "parentheses"),
        (lambda: 1 < f.a < 5, "parentheses"),
        (lambda: 1 == f.a == 1, "parentheses"),
        (lambda: f.a == 1 and f.b == 2, "parentheses"),
        (lambda: f.a == 1 or f.b == 2, "parentheses"),
        (lambda: not f.a == 1, "parentheses"),  # noqa: SIM201
        (lambda: f.a in [1, 2], "parentheses"),
        (lambda: 1 in f.a, "F['a'] == value"),
        (lambda: "a" in f["x y"], "F['x y'].in_"),
        (lambda: bool(f.a), "F['a'] == True"),
        (lambda: not f.a, "F['a'] == True"),
        (lambda: ~f.a, "~(F['a'] == True)"),
        (lambda: list(f.a), "cannot be iterated"),
        (lambda: [*f["x"]], "cannot be iterated"),
        (lambda: f["x"]["y"], "one flat key"),
        (lambda: f["x"][0], "one flat key"),
        (lambda: list(f), "cannot be iterated"),
        (lambda: "x" in f, "F.key.is_not_null()"),
        (lambda: f[1], "str"),
        (lambda: f[:2], "str"),
        (lambda: {f.a: 1}, "unhashable"),
        (lambda: {f.a}, "unhashable"),
        (lambda: b_.and_(X, "y == 2"), "parse_filter"),
        (lambda: b_.not_(f.x), "Field"),
        (lambda: b_.group(None), "NoneType"),
        (lambda: b_.and_(X), "second"),
        (lambda: b_.eq(f.x, 1), "str"),
    ],
)
def test_misuse_is_a_type_error_that_says_what_to_write(misuse: Callable[[], object], advice: str) -> None:
    with pytest.raises(TypeError) as caught:
        misuse()
    assert advice in str(caught.value)
    if advice not in ("unhashable", "second"):
        assert isinstance(caught.value, ArgumentTypeError)
        assert isinstance(caught.value, EntrepotError)


@pytest.mark.parametrize(
    ("misuse", "advice"),
    [
        (lambda: f.a == None, "is_null()"),  # noqa: E711
        (lambda: f.a != None, "is_not_null()"),  # noqa: E711
        (lambda: f.a == f.b, "another key"),
        (lambda: f.a < f.b, "another key"),
        (lambda: f.a == [1, 2], "in_([...])"),
        (lambda: f.a.in_("abc"), "['abc']"),
        (lambda: f.a.in_(1), "[1]"),
        (lambda: f.a.in_({1, 2}), "list(value)"),
        (lambda: f.a.in_(range(2)), "list(value)"),
        (lambda: f.a > True, "== or !="),
        (lambda: f.a == np.float64(1), "value.item()"),
        (lambda: f.a < np.int64(1), "value.item()"),
        (lambda: np.float64(1) == f.a, "value.item()"),
        (lambda: np.float64(1) < f.a, "value.item()"),
        (lambda: f[""] == 1, "non-empty"),
        (lambda: b_.eq("", 1), "non-empty"),
        (lambda: b_.eq("a", None), "IS NULL"),
        (lambda: b_.in_("a", "abc"), "['abc']"),
        (lambda: b_.gt("a", True), "== or !="),
        (lambda: b_.eq("a", [1]), "IN"),
    ],
)
def test_operands_that_are_not_allowed_say_what_to_use(misuse: Callable[[], object], advice: str) -> None:
    # F5
    with pytest.raises(FilterValueError) as caught:
        misuse()
    assert advice in str(caught.value)


def test_python_tools_find_no_attributes_that_are_not_there() -> None:
    for thing in (F, F.x):
        for name in ("__wrapped__", "__len__", "__array_interface__", "__html__", "__next__"):
            assert not hasattr(thing, name)
    for name in ("_repr_html_", "_ipython_display_", "_private"):
        with pytest.raises(AttributeError, match=r'F\["'):
            getattr(F, name)
    with pytest.raises(AttributeError, match=r"F\['a.b'\]"):
        F.a.b  # noqa: B018
    assert inspect.unwrap(F) is F  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    assert not callable(F)


def test_fields_can_be_copied_pickled_and_printed() -> None:
    assert copy.copy(F) is copy.deepcopy(F) is F
    assert pickle.loads(pickle.dumps(F)) is F
    field = F["größe"]
    assert copy.copy(field) is copy.deepcopy(field) is field
    assert (pickle.loads(pickle.dumps(field)) == 1) == (field == 1)
    assert repr(field) == "F['größe']"
    assert repr(F) == "F"
    assert dir(F)
