"""The SQLite translator on a real database, compared with the evaluator."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from core.tests.filters.databases import load
from core.tests.filters.strategies import any_scalars, expressions, leaves, metadata, well_formed_text
from hypothesis import given
from hypothesis import strategies as st

from entrepot.filters import F, evaluate, normalise
from entrepot.filters.sqlite import SqliteFilterConverter, element_rows

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Mapping

    from entrepot.filters import Expression

_CONVERTER = SqliteFilterConverter()


def ask(connection: sqlite3.Connection, expression: Expression) -> set[str]:
    converted = _CONVERTER.convert(expression)
    assert converted.exact
    sql, bound = converted.query.statement()
    return {id_ for (id_,) in connection.execute(sql, bound)}


def check(documents: Mapping[str, Mapping[str, object]], *filters: Expression) -> None:
    with closing(load(documents)) as connection:
        for expression in filters:
            expected = {id_ for id_, document in documents.items() if evaluate(expression, document)}
            assert ask(connection, expression) == expected


def named(documents: list[dict[str, object]]) -> dict[str, dict[str, object]]:
    return {f"d{number}": document for number, document in enumerate(documents)}


@given(st.lists(expressions(), min_size=1, max_size=4), st.lists(metadata(), max_size=6))
def test_sqlite_answers_as_the_evaluator(
    filters: list[Expression], documents: list[dict[str, object]]
) -> None:
    # F1 to F5, F9
    check(named(documents), *filters)


@given(
    st.lists(expressions(leaves(values=any_scalars())), min_size=1, max_size=3),
    st.lists(st.dictionaries(st.sampled_from(["a", "b", "and"]), any_scalars()), max_size=5),
)
def test_sqlite_compares_any_values_as_the_evaluator(
    filters: list[Expression], documents: list[dict[str, object]]
) -> None:
    # F4
    check(named(documents), *filters)


@given(well_formed_text(min_size=1), well_formed_text(), well_formed_text())
def test_keys_and_values_are_bound(key: str, stored: str, asked: str) -> None:
    # F10
    documents = named([{key: stored}, {key: [stored, asked]}, {key + "x": asked}, {}])
    check(
        documents,
        F[key] == asked,
        F[key] != asked,
        F[key] > asked,
        F[key].in_([asked, stored]),
        F[key].is_null(),
    )
    sql, bound = _CONVERTER.convert(F[key] == asked).query.statement()
    assert (
        sql
        == "SELECT id FROM document WHERE doc IN (SELECT doc FROM element WHERE key=? AND kind='s' AND value=?)"
    )
    assert bound == (key, asked)


def test_integers_and_floats_compare_without_rounding() -> None:
    # F4
    edges = [2**53 - 1, 2**53, 2**53 + 1, 2**62 + 1, 2**63 - 1, -(2**63), -(2**53) - 1]
    numbers: list[int | float] = [*edges, *map(float, edges), 0, -0.0, 0.5, -0.5, 1e300, -1e300, 5e-324]
    documents = named([{"x": number} for number in numbers])
    filters = [
        made
        for number in numbers
        for made in (
            F.x == number,
            F.x < number,
            F.x <= number,
            F.x > number,
            F.x >= number,
            F.x.in_([number, "a"]),
        )
    ]
    check(documents, *filters)


def test_the_largest_filters_are_answered() -> None:
    # F6: beyond SQLite's height of expressions and the stack of its parser
    documents = named([{"x": number, "y": [number, number + 1]} for number in range(20)])
    chain = F.x == 5
    for number in range(1_500):
        chain = chain | (F.x == number + 18) | ((F.y > number + 19) & (F.x != 19))
    wide = F.x.in_(list(range(3, 9_000)))
    deep = F.x < 15
    for number in range(98):
        deep = (F.y != number + 12) & deep if number % 2 else (F.x == number + 16) | deep
    assert deep.depth == 99
    bushy = _bushy(64, 2_000)
    assert (chain.nodes, wide.nodes, bushy.depth > 20) == (6_002 + 0, 8_998, True)
    check(documents, chain, wide, deep, bushy)
    check(documents, ~deep, ~bushy)


def _bushy(depth: int, size: int) -> Expression:
    """Alternate AND and OR, each with one large part and one that is again nested."""
    if depth == 0 or size <= 1:
        return F.x != size % 20
    left, right = _bushy(depth - 1, size - size // 10 - 1), _bushy(depth - 1, size // 10)
    return left & right if depth % 2 else left | right


def test_rows_hold_one_element_each() -> None:
    # F1, F2
    instant = datetime(1970, 1, 1, 0, 0, 1, 1, tzinfo=UTC)
    rows = list(element_rows({"a": [1, 1.5], "b": [], "c": None, "d": True, "e": instant, "f": "x"}))
    assert rows == [
        ("a", "n", 1),
        ("a", "n", 1.5),
        ("d", "b", 1),
        ("e", "t", 1_000_001),
        ("f", "s", "x"),
    ]
    assert list(element_rows({"t": datetime(1, 1, 1, tzinfo=UTC)})) == [("t", "t", -62_135_596_800_000_000)]


@pytest.mark.parametrize(("expression", "expected"), [(F.a.in_([]), 0), (F.a.nin([]), 3), (F.a == 1, 1)])
def test_other_columns_can_be_selected(expression: Expression, expected: int) -> None:
    with closing(load(named([{"a": 1}, {"a": 2}, {}]))) as connection:
        sql, bound = _CONVERTER.convert(normalise(expression)).query.statement("count(*)")
        assert connection.execute(sql, bound).fetchone() == (expected,)
