"""The printer: text that parses to an equal tree, with no parentheses too many (F8)."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, cast

import pytest
from core.tests.filters.strategies import any_scalars, expressions, leaves, metadata, well_formed_text
from hypothesis import given

from entrepot.errors import ArgumentTypeError, FilterError, FilterLimitError
from entrepot.filters import (
    FALSE,
    TRUE,
    Expression,
    F,
    FilterOp,
    Leaf,
    evaluate,
    format_filter,
    format_leaf,
    normalise,
    parse_filter,
)
from entrepot.filters.lexer import TOKEN
from entrepot.filters.text import parse

A, B, C = F.a == 1, F.b == 2, F.c == 3


@given(expressions(leaves(well_formed_text(min_size=1), any_scalars()), max_leaves=20))
def test_every_tree_prints_as_text_that_parses_to_an_equal_tree(expression: Expression) -> None:
    # F8
    again = parse(format_filter(expression))
    assert again == expression
    assert repr(again) == repr(expression)  # also the sign of zero, which equality does not know


@given(expressions())
def test_no_parentheses_can_be_taken_away(expression: Expression) -> None:
    # F8: the parentheses that are needed; without any pair the text means another tree, or none
    tokens = [lexeme for lexeme in TOKEN.findall(format_filter(expression)) if lexeme]
    for opening, closing in _pairs(tokens):
        fewer = [lexeme for place, lexeme in enumerate(tokens) if place not in (opening, closing)]
        with suppress(FilterError):
            assert parse(" ".join(fewer)) != expression


def _pairs(tokens: list[str]) -> list[tuple[int, int]]:
    opened: list[int] = []
    pairs: list[tuple[int, int]] = []
    for place, lexeme in enumerate(tokens):
        if lexeme == "(":
            opened.append(place)
        elif lexeme == ")":
            pairs.append((opened.pop(), place))
    return pairs


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        (A, "a == 1"),
        (F.a != 1, "a != 1"),
        (F.a < 1, "a < 1"),
        (F.a <= 1, "a <= 1"),
        (F.a > 1, "a > 1"),
        (F.a >= 1, "a >= 1"),
        (F.a.in_([1, "x"]), "a IN [1, 'x']"),
        (F.a.in_([]), "a IN []"),
        (F.a.nin([1]), "a NOT IN [1]"),
        (F.a.is_null(), "a IS NULL"),
        (F.a.is_not_null(), "a IS NOT NULL"),
        (~A, "NOT a == 1"),
        (~~A, "NOT NOT a == 1"),
        (A & B & C, "a == 1 AND b == 2 AND c == 3"),
        (A & (B & C), "a == 1 AND (b == 2 AND c == 3)"),
        (A | (B | C), "a == 1 OR (b == 2 OR c == 3)"),
        ((A | B) & C, "(a == 1 OR b == 2) AND c == 3"),
        (A | B & C, "a == 1 OR b == 2 AND c == 3"),
        (A & B | C, "a == 1 AND b == 2 OR c == 3"),
        (~(A & B), "NOT (a == 1 AND b == 2)"),
        (~A & B, "NOT a == 1 AND b == 2"),
        (A & ~(B | C), "a == 1 AND NOT (b == 2 OR c == 3)"),
        (F.a == True, "a == true"),  # noqa: E712
        (F.a == False, "a == false"),  # noqa: E712
        (F.a == 1.0, "a == 1.0"),
        (F.a == -0.0, "a == -0.0"),
        (F.a == 1e22, "a == 1e+22"),
        (F.a == 5e-324, "a == 5e-324"),
        (F.a == -(2**63), "a == -9223372036854775808"),
        (F.a == "", "a == ''"),
        (F.a == "it's", 'a == "it\'s"'),
        (F.a == 'say "hi"', "a == 'say \"hi\"'"),
        (F.a == 'it\'s "x"', r"""a == 'it\'s "x"'"""),
        (F.a == "\\\n\t\r\b\f\x01/", r"a == '\\\n\t\r\b\f\u0001/'"),
        (F.a == "é日本😀\x7f", "a == 'é日本😀\x7f'"),
        (F.a == datetime(2026, 1, 31, 12, tzinfo=UTC), "a == datetime '2026-01-31T12:00:00Z'"),
        (F.a == datetime(1, 1, 1, 0, 0, 0, 1, tzinfo=UTC), "a == datetime '0001-01-01T00:00:00.000001Z'"),
        (F["a.b_1"] == 1, "a.b_1 == 1"),
        (F["and"] == 1, "`and` == 1"),
        (F["True"] == 1, "`True` == 1"),
        (F["any key"] == 1, "`any key` == 1"),
        (F["9a"] == 1, "`9a` == 1"),
        (F["größe"] == 1, "`größe` == 1"),
        (F["`"] == 1, r"`\`` == 1"),
        (F["\"'\\\n"] == 1, r"""`"'\\\n` == 1"""),
    ],
)
def test_filters_print_plainly(expression: Expression, text: str) -> None:
    assert format_filter(expression) == text
    assert parse_filter(text) == expression


@given(expressions(), metadata())
def test_a_normal_form_prints_as_text_of_the_same_meaning(
    expression: Expression, document: dict[str, object]
) -> None:
    normal = normalise(expression)
    text = format_filter(normal)
    if normal is TRUE or normal is FALSE:
        assert text == normal.name  # the language has no word for them
    else:
        assert evaluate(parse(text), document) is evaluate(expression, document)
        assert normalise(parse(text)) == normal


def test_negated_leaves_print_with_their_own_operators() -> None:
    # F3: a negated range stays one
    assert format_filter(normalise(~(F.a < 5))) == "NOT a < 5"
    assert format_filter(normalise(~(F.a == 5))) == "a != 5"
    assert format_filter(normalise(~F.a.in_([5, 6]))) == "a NOT IN [5, 6]"
    assert format_filter(normalise(~F.a.is_null())) == "a IS NOT NULL"


def test_clauses_print_without_their_values() -> None:
    # O1: values stay out of errors and logs
    assert format_leaf(Leaf(FilterOp.EQ, "a", "secret"), values=False) == "a == ?"
    assert format_leaf(Leaf(FilterOp.IN, "a", ("secret", 1), negated=True), values=False) == "a NOT IN [?]"
    assert format_leaf(Leaf(FilterOp.LT, "a b", 5, negated=True), values=False) == "NOT `a b` < ?"
    assert format_leaf(Leaf(FilterOp.ISNULL, "a"), values=False) == "a IS NULL"
    assert format_leaf(Leaf(FilterOp.EQ, "a", "x")) == "a == 'x'"


def test_the_longest_and_the_deepest_filters_print() -> None:
    # F6
    chain = F.x == 0
    for value in range(1, 9_999):
        chain = (F.x == value) & chain if value % 2 else chain & (F.x == value)
    assert parse(format_filter(chain)) == chain
    deep = A
    for level in range(99):
        deep = B & deep if level % 2 else deep | C
    assert parse(format_filter(deep)) == deep
    with pytest.raises(FilterLimitError):
        format_filter(~deep)


def test_only_filters_print() -> None:
    with pytest.raises(ArgumentTypeError):
        format_filter(cast("Any", "a == 1"))
