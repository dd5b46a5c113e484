# pyright: reportUnknownMemberType=false
"""Filters against the evaluator, by a model of the engine: F1 to F6, F9, F10."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from plugins.cassandra.tests.dsl import holds, row_of

from entrepot import F, parse_filter
from entrepot.filters import evaluate
from entrepot_cassandra import CassandraFilterConverter
from entrepot_cassandra.filters import MOST_TOKENS, MOST_WAYS, Way

if TYPE_CHECKING:
    from entrepot import Expression

KEYS = ["a", "b", "c.d", "é"]
SLOTS = {"a": 0, "c.d": 2}
DAY = datetime(2020, 2, 29, tzinfo=UTC)

scalars = st.one_of(
    st.booleans(),
    st.integers(-3, 3),
    st.sampled_from([-(2**63), 2**63 - 1, 2**53, 2**53 + 1, 2**62 + 1]),
    st.sampled_from([0.5, -0.5, 1.0, -0.0, 2.0**53, 2.0**63, 1e300, -1e300, 5e-324]),
    st.sampled_from(
        ["", "a", "ab", "B", "a" * 14, "a" * 15, "a" * 16, "a" * 17, "é", "\U0001f600", "\uffff"]
    ),
    st.sampled_from([DAY, DAY + timedelta(microseconds=1), DAY.astimezone(timezone(timedelta(hours=5)))]),
)


def lists_of(kind: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Any]]:
    return st.lists(kind, max_size=3)


values = st.one_of(
    scalars,
    lists_of(st.integers(-3, 3)),
    lists_of(st.sampled_from(["a", "b", "a" * 16, "zz"])),
    lists_of(st.booleans()),
)
documents = st.dictionaries(st.sampled_from(KEYS), values, max_size=4)
ordered = scalars.filter(lambda value: type(value) is not bool)


def leaves(key: str) -> st.SearchStrategy[Expression]:
    place = F[key]
    return st.one_of(
        scalars.map(lambda value: place == value),
        scalars.map(lambda value: place != value),
        ordered.map(lambda value: place < value),
        ordered.map(lambda value: place <= value),
        ordered.map(lambda value: place > value),
        ordered.map(lambda value: place >= value),
        st.lists(scalars, max_size=12).map(place.in_),
        st.lists(scalars, max_size=3).map(place.nin),
        st.just(place.is_null()),
        st.just(place.is_not_null()),
    )


filters = st.recursive(
    st.sampled_from(KEYS).flatmap(leaves),
    lambda inner: st.one_of(
        inner.map(lambda part: ~part),
        st.tuples(inner, inner).map(lambda pair: pair[0] & pair[1]),
        st.tuples(inner, inner).map(lambda pair: pair[0] | pair[1]),
    ),
    max_leaves=8,
)


@settings(max_examples=150, deadline=None)
@given(asked=filters, held=st.lists(documents, min_size=1, max_size=8))
@example(asked=~(F["a"] < 1), held=[{}, {"a": "x"}, {"a": True}, {"a": [0, 5]}, {"a": 1}])
def test_nothing_that_matches_is_lost_and_what_is_exact_is_exact(
    asked: Expression, held: list[dict[str, Any]]
) -> None:
    # F1, F2, F3, F4, F9
    for slots in ({}, SLOTS):
        converted = CassandraFilterConverter(slots).convert(asked)
        assert len(converted.query) <= MOST_WAYS
        for metadata in held:
            found, wanted = holds(converted.query, row_of(metadata, slots, 3)), evaluate(asked, metadata)
            assert found or not wanted
            assert found is wanted or not converted.exact


@pytest.mark.parametrize(
    ("text", "exact"),
    [
        ("a == 1", True),
        ("b == 1", True),
        ("a in [1, 'x', true]", True),
        ("a != 1", False),
        ("a not in [1]", False),
        ("a is null", True),
        ("b is null", False),
        ("b is not null", True),
        ("a < 5", True),
        ("not (a < 5)", True),
        ("b < 5", False),
        ("a < 'sixteen bytes...'", False),
        ("a < 'fifteen bytes..'", True),
        ("a < 'short'", True),
        ("a < 5 and a > 3", True),
        ("a < 5 or b == 1", True),
        ("a == 1 and b != 2", False),
        ("a in [1, 2, 3, 4, 5, 6, 7, 8]", True),
        ("a in [1, 2, 3, 4, 5, 6, 7, 8, 9]", False),
        ("(a == 1 or a == 2) and (b == 1 or b == 2) and (c == 1 or c == 2)", True),
        ("(a in [1,2,3]) and (b in [1,2,3])", False),
    ],
)
def test_what_is_exact(text: str, exact: bool) -> None:
    # F9
    assert CassandraFilterConverter(SLOTS).convert(parse_filter(text)).exact is exact


def test_bounds_of_a_column_fold_into_one_interval() -> None:
    # The server refuses two lower bounds of one column, and "=" beside "<".
    query = CassandraFilterConverter(SLOTS).convert(parse_filter("a < 5 and a < 3 and a <= 4")).query
    assert [len(way.bounds) for way in query] == [1]
    assert re.fullmatch(r"lo0 >= \? AND lo0 <= \?", query[0].cql)
    assert CassandraFilterConverter(SLOTS).convert(parse_filter("a < 5 and a < 'x'")).query == ()
    assert CassandraFilterConverter(SLOTS).convert(parse_filter("a < 5 and a is null")).query == ()


def test_many_leaves_stay_within_what_a_statement_takes() -> None:
    # F6, F9
    many = parse_filter(" and ".join(f"k{number} == {number}" for number in range(2000)))
    converted = CassandraFilterConverter().convert(many)
    assert not converted.exact
    assert max(len(way.tokens) for way in converted.query) == MOST_TOKENS
    wide = parse_filter(" or ".join(f"k{number} == {number}" for number in range(2000)))
    assert CassandraFilterConverter().convert(wide).query == (Way(),)


def test_nothing_of_keys_and_values_stands_in_a_statement() -> None:
    # F10
    evil = "x'; DROP TABLE t; --"
    asked = (F[evil] == evil) & (F[evil] > evil) & (F['"quoted"'] <= "?")
    query = CassandraFilterConverter({evil: 0, '"quoted"': 1}).convert(asked).query
    for way in query:
        assert re.fullmatch(r"[a-zA-Z0-9 ?<>=]*", way.cql)
        assert way.cql.count("?") == len(way.values)
        for value in way.values:
            assert isinstance(value, int) or re.fullmatch(r"[0-9a-v]{24}", str(value))
