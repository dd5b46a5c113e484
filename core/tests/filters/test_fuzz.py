"""The filter fuzz against the evaluator: the SQLite translator here, other implementations elsewhere."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from core.tests.filters.databases import load

from entrepot.filters import FilterOp, normalise
from entrepot.filters.sqlite import SqliteFilterConverter
from entrepot_conformance import fuzz

if TYPE_CHECKING:
    import sqlite3

    from entrepot.filters import Expression

_CONVERTER = SqliteFilterConverter()


def _through_sqlite(connection: sqlite3.Connection, expression: Expression) -> set[str]:
    converted = _CONVERTER.convert(expression)
    assert converted.exact
    sql, bound = converted.query.statement()
    return {id_ for (id_,) in connection.execute(sql, bound)}


@pytest.mark.slow
def test_ten_thousand_filters_mean_the_same_in_sqlite_as_in_the_evaluator() -> None:
    # F1 to F5, F9: exact
    seed = fuzz.seed_from_environment()
    documents = fuzz.make_documents(seed)
    assert len(documents) >= 200
    with closing(load(documents)) as connection:
        coverage = fuzz.run(
            lambda expression: _through_sqlite(connection, expression),
            documents,
            count=fuzz.count_from_environment(),
            seed=seed,
        )
    print(coverage.table())  # noqa: T201 - shown with -s, and when the test fails
    assert len(coverage.distinct) == coverage.filters == fuzz.count_from_environment()
    if coverage.filters >= fuzz.DEFAULT_COUNT:
        assert coverage.missing() == []


def test_a_few_filters_mean_the_same_in_sqlite_as_in_the_evaluator() -> None:
    # F1 to F5: the same in short, for every run of the tests
    documents = fuzz.make_documents(7, 40)
    with closing(load(documents)) as connection:
        coverage = fuzz.run(
            lambda expression: _through_sqlite(connection, expression), documents, count=150, seed=7
        )
    assert len(coverage.distinct) == 150


def test_the_fuzz_finds_an_implementation_that_is_wrong() -> None:
    # A fuzz that cannot fail proves nothing: this one forgets that != holds for absent keys (F3).
    documents = fuzz.make_documents(7, 40)
    with closing(load(documents)) as connection:

        def wrong(expression: Expression) -> set[str]:
            ids = _through_sqlite(connection, expression)
            if expression.op is FilterOp.NE:
                key = getattr(expression.left, "name", "")
                ids = {id_ for id_ in ids if documents[id_].get(key)}
            return ids

        with pytest.raises(AssertionError, match=r"seed 7, filter(.|\n)*smallest: \S+ != \S+\n"):
            fuzz.run(wrong, documents, count=2000, seed=7)


def test_filters_of_one_seed_are_always_the_same() -> None:
    documents = fuzz.make_documents(3, 5)
    assert documents == fuzz.make_documents(3, 5)
    first = fuzz.run(lambda expression: _by_hand(expression, documents), documents, count=30, seed=3)
    again = fuzz.run(lambda expression: _by_hand(expression, documents), documents, count=30, seed=3)
    assert first.distinct == again.distinct
    assert first.table() == again.table()


def _by_hand(expression: Expression, documents: dict[str, dict[str, object]]) -> set[str]:
    from entrepot.filters import evaluate

    normal = normalise(expression)
    return {id_ for id_, metadata in documents.items() if evaluate(normal, metadata)}
