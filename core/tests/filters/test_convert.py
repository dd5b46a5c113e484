"""The base of translators: it walks, combines supersets, and reports every clause that is not exact."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import pytest
from core.tests.filters.strategies import expressions, metadata
from hypothesis import given
from hypothesis import strategies as st

from entrepot.errors import ArgumentTypeError, FilterLimitError
from entrepot.filters import (
    FALSE,
    TRUE,
    AbstractFilterExpressionConverter,
    And,
    Converted,
    F,
    FilterOp,
    Leaf,
    Or,
    Pushdown,
    Translation,
    evaluate,
    exact,
    format_filter,
    normalise,
    nothing,
    parse_filter,
    superset,
)
from entrepot.filters.printing import PrintingFilterConverter

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from entrepot.filters import Expression, Normal


class Brackets(AbstractFilterExpressionConverter[str]):
    """Writes what it was asked to join; keys that start with s are supersets, with n there is nothing."""

    def leaf(self, leaf: Leaf) -> Translation[str]:
        name = f"-{leaf.key}" if leaf.negated else leaf.key
        if leaf.key.startswith("n"):
            return nothing()
        return superset(f"~{name}") if leaf.key.startswith("s") else exact(name)

    def and_(self, parts: Sequence[str]) -> str:
        return f"({' & '.join(parts)})"

    def or_(self, parts: Sequence[str]) -> str:
        return f"({' | '.join(parts)})"

    def true(self) -> str:
        return "everything"

    def false(self) -> str:
        return "none"


def converted(text: str) -> Converted[str]:
    return Brackets().convert(parse_filter(text))


@pytest.mark.parametrize(
    ("text", "query", "is_exact", "inexact"),
    [
        ("a == 1", "a", True, []),
        ("a != 1", "-a", True, []),
        ("s == 1", "~s", False, ["s"]),
        ("n == 1", "everything", False, ["n"]),
        ("a == 1 AND b == 1 AND c == 1", "(a & b & c)", True, []),
        ("a == 1 AND (b == 1 OR c == 1)", "(a & (b | c))", True, []),
        ("NOT (a == 1 AND b == 1)", "(-a | -b)", True, []),
        ("a == 1 AND s == 1", "(a & ~s)", False, ["s"]),
        ("a == 1 OR s == 1", "(a | ~s)", False, ["s"]),
        ("NOT (a == 1 AND s == 1)", "(-a | ~-s)", False, ["s"]),
        # in an AND there is less to narrow by
        ("a == 1 AND n == 1", "a", False, ["n"]),
        ("n == 1 AND n2 == 1", "everything", False, ["n", "n2"]),
        # in an OR there is nothing to narrow by
        ("a == 1 OR n == 1", "everything", False, ["n"]),
        ("a == 1 AND (b == 1 OR n == 1)", "a", False, ["n"]),
        ("(a == 1 AND n == 1) OR b == 1", "(a | b)", False, ["n"]),
        ("(a == 1 AND n == 1) OR (s == 1 AND n2 == 1)", "(a | ~s)", False, ["n", "s", "n2"]),
        ("(n == 1 OR a == 1) AND (n2 == 1 OR b == 1)", "everything", False, ["n", "n2"]),
        ("a IN []", "none", True, []),
        ("a NOT IN []", "everything", True, []),
        ("n IN []", "none", True, []),
    ],
)
def test_translations_combine(text: str, query: str, is_exact: bool, inexact: list[str]) -> None:
    # F9
    result = converted(text)
    assert result.query == query
    assert result.exact is is_exact
    assert [leaf.key for leaf in result.report.inexact] == inexact
    assert result.normal == normalise(parse_filter(text))


def test_a_normal_form_is_translated_as_it_is() -> None:
    assert Brackets().convert(normalise(F.a != 1)).query == "-a"
    assert Brackets().convert(TRUE).query == "everything"
    result = Brackets().convert(FALSE)
    assert (result.query, result.exact, result.normal) == ("none", True, FALSE)


def test_the_report_tells_what_became_of_every_clause() -> None:
    # F9: explain
    result = converted("a == 'x' AND (s == 1 OR c == 2) AND n IS NULL")
    assert str(result.report).splitlines() == [
        "superset  AND",
        "exact       a == 'x'",
        "superset    OR",
        "superset      s == 1",
        "exact         c == 2",
        "nothing     n IS NULL",
    ]
    rows = result.report.rows
    assert [row.level for row in rows] == [0, 1, 1, 2, 2, 1]
    assert [row.clause for row in rows] == [None, "a", None, "~s", "c", None]
    assert rows[3].node == Leaf(FilterOp.EQ, "s", 1)
    assert rows[5].pushdown is Pushdown.NOTHING
    assert result.report.text(values=False).splitlines()[1] == "exact       a == ?"
    assert "'x'" not in repr(result.report)
    assert str(Brackets().convert(TRUE).report) == "exact     TRUE"


@given(expressions())
def test_the_report_has_a_row_for_every_node(expression: Expression) -> None:
    result = Brackets().convert(expression)
    expected = _nodes(result.normal, 0)
    assert [(row.level, row.text()) for row in result.report.rows] == expected
    assert result.exact is (not result.report.inexact)


def _nodes(normal: Normal, level: int) -> list[tuple[int, str]]:
    if isinstance(normal, And | Or):
        below = [node for part in normal.parts for node in _nodes(part, level + 1)]
        return [(level, "AND" if isinstance(normal, And) else "OR"), *below]
    return [(level, format_filter(normal))]


def test_an_answer_that_is_no_translation_is_an_error() -> None:
    class Wrong(Brackets):
        def leaf(self, leaf: Leaf) -> Translation[str]:
            return leaf.key  # type: ignore[return-value]  # pyright: ignore[reportReturnType]

    with pytest.raises(ArgumentTypeError, match=r"Wrong\.leaf answered str"):
        Wrong().convert(F.a == 1)


def test_the_limits_hold() -> None:
    # F6
    chain = F.a == 0
    for value in range(1, 10_000):
        chain = chain | (F.a == value)
    with pytest.raises(FilterLimitError):
        Brackets().convert(chain)
    assert isinstance(chain.left, type(chain))
    assert Brackets().convert(chain.left).query.count("a") == 9_999


Predicate: TypeAlias = "Callable[[Mapping[str, object]], bool]"


class Predicates(AbstractFilterExpressionConverter["Predicate"]):
    """Translates into Python functions; how much of a leaf it takes is drawn from a list of answers."""

    def __init__(self, answers: list[Pushdown]) -> None:
        self.answers = answers
        self.asked = 0

    def leaf(self, leaf: Leaf) -> Translation[Predicate]:
        answer = self.answers[self.asked % len(self.answers)]
        self.asked += 1
        if answer is Pushdown.NOTHING:
            return nothing()
        if answer is Pushdown.EXACT:
            return exact(lambda document: evaluate(leaf, document))
        wider = leaf.key < "b"  # sometimes true where the leaf is not
        return superset(lambda document: evaluate(leaf, document) or wider)

    def and_(self, parts: Sequence[Predicate]) -> Predicate:
        return lambda document: all(part(document) for part in parts)

    def or_(self, parts: Sequence[Predicate]) -> Predicate:
        return lambda document: any(part(document) for part in parts)

    def true(self) -> Predicate:
        return lambda document: len(document) >= 0

    def false(self) -> Predicate:
        return lambda document: len(document) < 0


@given(
    expressions(),
    st.lists(metadata(), min_size=1, max_size=4),
    st.lists(st.sampled_from(Pushdown), min_size=1),
)
def test_whatever_a_translator_answers_the_whole_is_a_superset(
    expression: Expression, documents: list[dict[str, object]], answers: list[Pushdown]
) -> None:
    # F9: never a dropped clause
    result = Predicates(answers).convert(expression)
    for document in documents:
        expected = evaluate(expression, document)
        if result.exact:
            assert result.query(document) is expected
        else:
            assert result.query(document) >= expected


def test_the_printing_translator_prints_a_tree() -> None:
    text = (
        "country == 'BG' AND (year >= 2020 OR NOT tags NOT IN ['a', 'b']) AND NOT (n < 5) AND active != false"
    )
    assert PrintingFilterConverter().convert(parse_filter(text)).query.splitlines() == [
        "AND",
        "  country == 'BG'",
        "  OR",
        "    year >= 2020",
        "    tags IN ['a', 'b']",
        "  NOT n < 5  (also where it is absent)",
        "  active != false  (also where it is absent)",
    ]
    assert PrintingFilterConverter(values=False).convert(F.a == "secret").query == "a == ?"
    assert PrintingFilterConverter().convert(F.a.is_not_null()).query == "a IS NOT NULL"
    assert PrintingFilterConverter().convert(F.a.in_([])).query == "FALSE  (no document)"
    assert PrintingFilterConverter().convert(F.a.nin([])).query == "TRUE  (every document)"
