"""Normal form: canonical leaves, flat chains, no constants, the same meaning."""

from __future__ import annotations

import copy
import pickle
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, cast

import pytest
from core.tests.filters.strategies import expressions, metadata
from hypothesis import given
from hypothesis import strategies as st

from entrepot.errors import ArgumentTypeError, FilterLimitError, FilterValueError
from entrepot.filters import (
    FALSE,
    LEAF_OPS,
    TRUE,
    And,
    Constant,
    F,
    FilterOp,
    Leaf,
    Or,
    all_of,
    any_of,
    evaluate,
    normalise,
    parse_filter,
)

if TYPE_CHECKING:
    from entrepot.filters import Expression, Normal, Scalar

EQ, IN, LT, GTE, ISNULL = FilterOp.EQ, FilterOp.IN, FilterOp.LT, FilterOp.GTE, FilterOp.ISNULL
A, B, C = Leaf(EQ, "a", 1), Leaf(EQ, "b", 2), Leaf(LT, "c", 3)
NOT_A, NOT_B, NOT_C = (leaf.complement() for leaf in (A, B, C))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a == 1", A),
        ("a != 1", NOT_A),
        ("NOT a == 1", NOT_A),
        ("NOT a != 1", A),
        ("NOT NOT a == 1", A),
        ("c < 3", C),
        ("NOT c < 3", NOT_C),  # F3: not c >= 3
        ("c >= 3", Leaf(GTE, "c", 3)),
        ("a IN [1, 2]", Leaf(IN, "a", (1, 2))),
        ("a NOT IN [1, 2]", Leaf(IN, "a", (1, 2), negated=True)),
        ("NOT a NOT IN [1, 2]", Leaf(IN, "a", (1, 2))),
        ("a IS NULL", Leaf(ISNULL, "a")),
        ("a IS NOT NULL", Leaf(ISNULL, "a", negated=True)),
        ("NOT a IS NOT NULL", Leaf(ISNULL, "a")),
        # F5: IN [] is false for every document, NOT IN [] true
        ("a IN []", FALSE),
        ("a NOT IN []", TRUE),
        ("NOT a IN []", TRUE),
        ("a == 1 AND b IN []", FALSE),
        ("a == 1 OR b IN []", A),
        ("a == 1 AND b NOT IN []", A),
        ("a == 1 OR b NOT IN []", TRUE),
        ("(a IN [] OR b IN []) AND a == 1", FALSE),
        # one value, repeated values
        ("a IN [1]", A),
        ("a NOT IN [1]", NOT_A),
        ("a IN [1, 1]", A),
        ("a IN [1, 2, 1]", Leaf(IN, "a", (1, 2))),
        ("a IN [1, true, 1.0, '1']", Leaf(IN, "a", (1, True, 1.0, "1"))),
        # flat chains, without duplicates, in order
        ("(a == 1 AND b == 2) AND c < 3", And(A, B, C)),
        ("a == 1 AND (b == 2 AND c < 3)", And(A, B, C)),
        ("c < 3 AND a == 1", And(C, A)),
        ("a == 1 OR (b == 2 OR a == 1)", Or(A, B)),
        ("a == 1 AND a == 1", A),
        ("a == 1 AND a == 1.0", And(A, Leaf(EQ, "a", 1.0))),
        ("a == 1 AND (b == 2 OR c < 3)", And(A, Or(B, C))),
        # de Morgan
        ("NOT (a == 1 AND b == 2)", Or(NOT_A, NOT_B)),
        ("NOT (a == 1 OR b == 2)", And(NOT_A, NOT_B)),
        ("NOT (a == 1 AND NOT (b == 2 AND c < 3))", Or(NOT_A, And(B, C))),
        ("NOT (a == 1 OR NOT (b != 2 OR c < 3))", And(NOT_A, Or(NOT_B, C))),
        ("a != 1 OR NOT (b == 2 AND c < 3)", Or(NOT_A, NOT_B, NOT_C)),
        # F3: two-valued logic
        ("a == 1 AND a != 1", FALSE),
        ("a == 1 OR NOT a == 1", TRUE),
        ("b == 2 AND (a == 1 OR a != 1)", B),
        ("c < 3 OR NOT c < 3", TRUE),
        ("c < 3 OR c >= 3", Or(C, Leaf(GTE, "c", 3))),  # not complements: absent keys satisfy neither
        ("a IS NULL AND a IS NOT NULL", FALSE),
    ],
)
def test_filters_have_one_normal_form(text: str, expected: Normal) -> None:
    assert normalise(parse_filter(text)) == expected


@given(expressions(), metadata())
def test_normal_form_keeps_the_meaning(expression: Expression, document: dict[str, object]) -> None:
    # F1 to F5
    assert evaluate(normalise(expression), document) is evaluate(expression, document)
    assert evaluate(normalise(~expression), document) is not evaluate(expression, document)


@given(expressions())
def test_normal_form_is_canonical(expression: Expression) -> None:
    normal = normalise(expression)
    assert normalise(normal) is normal
    _check(normal, top=True)


def _check(normal: Normal, *, top: bool = False) -> None:
    if isinstance(normal, Constant):
        assert top
    elif isinstance(normal, Leaf):
        assert normal.op in LEAF_OPS
        assert (normal.value is None) is (normal.op is ISNULL)
        assert isinstance(normal.value, tuple) is (normal.op is IN)
        if isinstance(normal.value, tuple):
            typed = [(type(value), value) for value in normal.value]
            assert len(typed) == len(set(typed)) >= 2
    else:
        assert len(normal.parts) == len(set(normal.parts)) >= 2
        for part in normal.parts:
            assert type(part) is not type(normal)
            _check(part)


@given(st.lists(expressions(max_leaves=4), max_size=4), metadata())
def test_all_of_and_any_of_combine_meanings(several: list[Expression], document: dict[str, object]) -> None:
    # T1: how a view adds its filter
    normals = [normalise(expression) for expression in several]
    truths = [evaluate(expression, document) for expression in several]
    assert evaluate(all_of(*normals), document) is all(truths)
    assert evaluate(any_of(*normals), document) is any(truths)
    for combined in (all_of(*normals), any_of(*normals)):
        _check(combined, top=True)


def test_combining_nothing_gives_the_neutral_element() -> None:
    assert all_of() is TRUE
    assert any_of() is FALSE
    assert all_of(A) is A
    assert any_of(A) is A


def test_combining_flattens_and_folds() -> None:
    assert all_of(And(A, B), C, A) == And(A, B, C)
    assert any_of(Or(A, B), And(A, C)) == Or(A, B, And(A, C))
    assert all_of(A, TRUE) is A
    assert all_of(A, FALSE) is FALSE
    assert any_of(A, FALSE) is A
    assert any_of(A, TRUE) is TRUE
    assert all_of(And(A, B), NOT_B) is FALSE
    assert any_of(Or(A, B), NOT_B) is TRUE


@pytest.mark.parametrize("wrong", [F.a == 1, "a == 1", None, True])
def test_only_normal_forms_combine(wrong: Any) -> None:
    for combine in (all_of, any_of):
        with pytest.raises(ArgumentTypeError, match="normalise"):
            combine(A, wrong)


def test_only_filters_are_normalised() -> None:
    with pytest.raises(ArgumentTypeError):
        normalise(cast("Any", "a == 1"))


def test_equality_and_hash_know_types() -> None:
    # F8
    values: list[Scalar] = [True, 1, 1.0, "1", datetime(1970, 1, 1, tzinfo=UTC)]
    leaves = {Leaf(EQ, "a", value) for value in values}
    assert len(leaves) == 5
    assert Leaf(IN, "a", (1, 2)) != Leaf(IN, "a", (1.0, 2))
    assert And(A, B) != And(B, A)
    assert And(A, B) != Or(A, B)
    assert Or(A, And(B, C)) == Or(A, And(B, C))
    assert Or(A, And(B, C)) != Or(A, And(B, NOT_C))
    assert hash(Or(A, And(B, C))) == hash(Or(A, And(B, C)))
    assert A != "a == 1"
    assert And(A, B) != (A, B)


@pytest.mark.parametrize(
    ("op", "key", "value"),
    [
        (FilterOp.NE, "a", 1),
        (FilterOp.NIN, "a", (1, 2)),
        (FilterOp.ISNOTNULL, "a", None),
        (FilterOp.AND, "a", None),
        (EQ, "", 1),
        (EQ, "a", None),
        (EQ, "a", (1, 2)),
        (LT, "a", True),
        (ISNULL, "a", 1),
        (IN, "a", 1),
        (IN, "a", ()),
        (IN, "a", (1,)),
        (IN, "a", (1, 1)),
        (EQ, "a", float("nan")),
    ],
)
def test_leaves_are_canonical(op: FilterOp, key: str, value: Any) -> None:
    with pytest.raises(FilterValueError):
        Leaf(op, key, value)


def test_chains_are_canonical() -> None:
    wrong: list[Any] = [(), (A,), (A, TRUE), (A, And(A, B)), (A, "b")]
    for parts in wrong:
        with pytest.raises(ArgumentTypeError):
            And(*parts)
    with pytest.raises(ArgumentTypeError):
        Or(A, Or(B, C))


@pytest.mark.parametrize("normal", [A, And(A, B), Or(A, B), TRUE, FALSE])
def test_normal_forms_have_no_truth_value_and_do_not_change(normal: Normal) -> None:
    with pytest.raises(ArgumentTypeError, match="no truth value"):
        bool(normal)
    if not isinstance(normal, Constant):
        for name in ("parts", "op", "negated", "new"):
            with pytest.raises(AttributeError):
                setattr(normal, name, 1)


@given(expressions())
def test_normal_forms_can_be_copied_and_pickled(expression: Expression) -> None:
    normal = normalise(expression)
    assert copy.deepcopy(normal) is copy.copy(normal) is normal
    again = pickle.loads(pickle.dumps(normal))
    assert again == normal
    assert hash(again) == hash(normal)
    if isinstance(normal, Constant):
        assert again is normal


def test_a_repr_can_be_evaluated() -> None:
    normal = And(A, Or(B, NOT_C), Leaf(IN, "x", (1, True)), Leaf(ISNULL, "y"))
    names = {"And": And, "Or": Or, "Leaf": Leaf, "FilterOp": FilterOp}
    assert eval(repr(normal), names) == normal
    assert repr(TRUE) == "TRUE"


def test_the_longest_and_the_deepest_filters_are_normalised() -> None:
    # F6
    chain = F.x == 0
    for value in range(1, 9_999):
        chain = chain & (F.x != value)
    normal = normalise(chain)
    assert isinstance(normal, And)
    assert len(normal.parts) == 9_999
    deep = F.x == 0
    for level in range(1, 99):
        deep = (F.x == level) & deep if level % 2 else deep | (F.x == level)
    normal = normalise((F.y == 1) & deep)
    assert isinstance(normal, And)
    assert normal.depth == 100
    assert pickle.loads(pickle.dumps(normal)) == normal
    assert repr(normal).count("Leaf") == 100
    negated = normalise(~deep)
    assert isinstance(negated, And)
    assert negated.depth == 99


def test_combining_without_end_is_refused() -> None:
    # Views may combine normal forms beyond F6, but not into something that nobody can walk.
    def combine(levels: int) -> Normal:
        normal: Normal = A
        for level in range(levels):
            leaf = Leaf(EQ, "x", level)
            normal = all_of(normal, leaf) if level % 2 else any_of(normal, leaf)
        return normal

    assert not evaluate(combine(199), {})
    with pytest.raises(FilterLimitError, match="200"):
        combine(200)


@pytest.mark.parametrize("normal", [A, NOT_A, C, NOT_C])
def test_a_complement_holds_exactly_elsewhere(normal: Leaf) -> None:
    # F3
    assert normal.complement().complement() == normal
    for document in ({}, {"a": 1, "c": 1}, {"a": [2, 1], "c": [9, 1]}, {"a": "1", "c": "1"}):
        assert evaluate(normal, document) is not evaluate(normal.complement(), document)
