"""Clause forms: bounded, and supersets that say so."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from core.tests.filters.strategies import expressions, metadata
from hypothesis import given
from hypothesis import strategies as st

from entrepot.errors import ConfigurationError
from entrepot.filters import (
    FALSE,
    TRUE,
    FilterOp,
    Leaf,
    conjunctive,
    disjunctive,
    evaluate,
    normalise,
    parse_filter,
)

if TYPE_CHECKING:
    from entrepot.filters import Conjunctive, Disjunctive, Expression

A, B, C, D, E = (Leaf(FilterOp.EQ, key, 1) for key in "abcde")


def holds_conjunctive(form: Conjunctive, document: dict[str, object]) -> bool:
    return all(any(evaluate(leaf, document) for leaf in clause) for clause in form.clauses)


def holds_disjunctive(form: Disjunctive, document: dict[str, object]) -> bool:
    return any(all(evaluate(leaf, document) for leaf in conjunction) for conjunction in form.conjunctions)


@given(expressions(), st.lists(metadata(), min_size=1, max_size=5), st.integers(1, 6), st.integers(1, 4))
def test_a_conjunctive_form_is_within_its_bounds_and_a_superset(
    expression: Expression, documents: list[dict[str, object]], clauses: int, literals: int
) -> None:
    # F9: never a dropped clause in silence
    form = conjunctive(normalise(expression), clauses=clauses, literals=literals)
    assert len(form.clauses) <= clauses
    assert all(len(clause) <= literals for clause in form.clauses)
    for document in documents:
        expected = evaluate(expression, document)
        if form.exact:
            assert holds_conjunctive(form, document) is expected
        else:
            assert holds_conjunctive(form, document) >= expected


@given(expressions(), st.lists(metadata(), min_size=1, max_size=5), st.integers(1, 6))
def test_a_disjunctive_form_is_within_its_bounds_and_a_superset(
    expression: Expression, documents: list[dict[str, object]], conjunctions: int
) -> None:
    # F9
    form = disjunctive(normalise(expression), conjunctions=conjunctions)
    assert len(form.conjunctions) <= conjunctions
    for document in documents:
        expected = evaluate(expression, document)
        if form.exact:
            assert holds_disjunctive(form, document) is expected
        else:
            assert holds_disjunctive(form, document) >= expected


@given(expressions(max_leaves=6), st.lists(metadata(), min_size=1, max_size=5))
def test_forms_with_room_enough_are_exact(expression: Expression, documents: list[dict[str, object]]) -> None:
    normal = normalise(expression)
    left = conjunctive(normal, clauses=1_000, literals=1_000)
    right = disjunctive(normal, conjunctions=1_000)
    assert left.exact
    assert right.exact
    for document in documents:
        expected = evaluate(expression, document)
        assert holds_conjunctive(left, document) is holds_disjunctive(right, document) is expected


@pytest.mark.parametrize(
    ("text", "clauses", "literals", "expected", "exact"),
    [
        ("a == 1", 1, 1, ((A,),), True),
        ("a == 1 AND b == 1", 2, 1, ((A,), (B,)), True),
        ("a == 1 OR b == 1", 1, 2, ((A, B),), True),
        ("a == 1 OR b == 1", 1, 1, (), False),  # the clause is too long
        ("a == 1 AND b == 1", 1, 1, ((A,),), False),  # one clause too many
        ("(a == 1 OR b == 1) AND c == 1", 1, 2, ((C,),), False),  # the longest goes first
        ("(a == 1 AND b == 1) OR c == 1", 2, 2, ((A, C), (B, C)), True),
        ("(a == 1 AND b == 1) OR (c == 1 AND d == 1)", 4, 2, ((A, C), (A, D), (B, C), (B, D)), True),
        ("(a == 1 AND b == 1) OR (c == 1 AND d == 1)", 2, 2, ((A, C), (A, D)), False),
        ("a == 1 AND (b == 1 OR c == 1 OR d == 1)", 9, 2, ((A,),), False),
        ("(a == 1 AND b == 1) OR (a == 1 AND c == 1)", 2, 2, ((A,), (B, C)), True),  # what is implied goes
        ("(a == 1 AND b == 1) OR (a != 1 AND c == 1)", 9, 9, ((A, C), (B, A.complement()), (B, C)), True),
    ],
)
def test_conjunctive_forms(
    text: str, clauses: int, literals: int, expected: tuple[tuple[Leaf, ...], ...], exact: bool
) -> None:
    form = conjunctive(normalise(parse_filter(text)), clauses=clauses, literals=literals)
    assert form == (expected, exact)


@pytest.mark.parametrize(
    ("text", "conjunctions", "expected", "exact"),
    [
        ("a == 1", 1, ((A,),), True),
        ("a == 1 AND b == 1", 1, ((A, B),), True),
        ("a == 1 OR b == 1", 2, ((A,), (B,)), True),
        ("a == 1 OR b == 1", 1, ((),), False),  # nothing is shared: every document
        ("(a == 1 AND b == 1) OR (a == 1 AND c == 1)", 1, ((A,),), False),  # what the two share
        ("a == 1 AND (b == 1 OR c == 1)", 2, ((A, B), (A, C)), True),
        ("a == 1 AND (b == 1 OR c == 1)", 1, ((A,),), False),  # the part with most alternatives goes
        ("(a == 1 OR b == 1) AND (c == 1 OR d == 1 OR e == 1)", 2, ((A,), (B,)), False),
        ("(a == 1 OR b == 1) AND (c == 1 OR d == 1)", 4, ((A, C), (A, D), (B, C), (B, D)), True),
        ("(a == 1 AND b == 1) OR (a == 1 AND c == 1) OR d == 1", 2, ((A,), (D,)), False),
        ("(a == 1 OR b == 1) AND (a == 1 OR c == 1)", 4, ((A,), (B, C)), True),  # what is implied goes
        ("(a == 1 OR b == 1) AND (a != 1 OR c == 1)", 4, ((A, C), (B, A.complement()), (B, C)), True),
    ],
)
def test_disjunctive_forms(
    text: str, conjunctions: int, expected: tuple[tuple[Leaf, ...], ...], exact: bool
) -> None:
    form = disjunctive(normalise(parse_filter(text)), conjunctions=conjunctions)
    assert form == (expected, exact)


def test_constants_have_their_forms() -> None:
    assert conjunctive(TRUE, clauses=1, literals=1) == ((), True)
    assert conjunctive(FALSE, clauses=1, literals=1) == (((),), True)
    assert disjunctive(TRUE, conjunctions=1) == (((),), True)
    assert disjunctive(FALSE, conjunctions=1) == ((), True)


def test_forms_that_would_explode_are_bounded() -> None:
    # 2^30 clauses if written out
    pairs = " OR ".join(f"(a{n} == 1 AND b{n} == 1)" for n in range(30))
    normal = normalise(parse_filter(pairs))
    form = conjunctive(normal, clauses=16, literals=64)
    assert (len(form.clauses), form.exact) == (16, False)
    negated = normalise(parse_filter(f"NOT ({pairs})"))
    widened = disjunctive(negated, conjunctions=16)
    assert (len(widened.conjunctions), widened.exact) == (16, False)


@pytest.mark.parametrize("bound", [0, -1, 1.5, True, None])
def test_bounds_are_positive_integers(bound: object) -> None:
    with pytest.raises(ConfigurationError):
        conjunctive(A, clauses=bound, literals=1)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    with pytest.raises(ConfigurationError):
        conjunctive(A, clauses=1, literals=bound)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    with pytest.raises(ConfigurationError):
        disjunctive(A, conjunctions=bound)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def test_long_forms_are_taken() -> None:
    many = [f"k{number} == 1" for number in range(300)]
    assert len(conjunctive(parse_filter(" AND ".join(many)), clauses=300, literals=1).clauses) == 300
    assert len(disjunctive(parse_filter(" OR ".join(many)), conjunctions=300).conjunctions) == 300
    assert conjunctive(parse_filter(" OR ".join(many)), clauses=1, literals=299) == ((), False)
    assert disjunctive(parse_filter(" OR ".join(many)), conjunctions=299) == (((),), False)
