"""Filters: the shared cases, and random filters against the evaluator: F1 to F10."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, cast

import pytest

from entrepot import Document, F, SearchRequest
from entrepot.errors import FilterError, FilterLimitError, FilterSyntaxError, FilterValueError
from entrepot.filters import FALSE, evaluate, format_filter, normalise, parse_filter
from entrepot_conformance import case_files, load_cases
from entrepot_conformance.fuzz import (
    DEFAULT_COUNT,
    SLOW_COUNT,
    count_from_environment,
    make_documents,
    run,
)
from entrepot_conformance.tests.store.data import check_hits, expected_scores

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from entrepot import VectorStore
    from entrepot.filters import Expression
    from entrepot_conformance.endpoints import Stores

CASES: Final = [
    pytest.param(rule, name, id=f"{rule}-{name}")
    for name in case_files()
    if name.startswith("filters/")
    for rule in sorted({rule for case in load_cases(name)["cases"] for rule in case["rule"].split()})
]
"""Every rule of every file of cases."""
ERRORS: Final[dict[str, type[FilterError]]] = {
    "syntax": FilterSyntaxError,
    "value": FilterValueError,
    "limit": FilterLimitError,
}
"""The classes that the cases name."""


def decoded(value: Any) -> Any:
    """Return a value of a case file with its instants, ``{"datetime": "..."}``, as datetimes."""
    if isinstance(value, dict):
        [text] = cast("dict[str, str]", value).values()
        return datetime.fromisoformat(text)
    return list(map(decoded, value)) if isinstance(value, list) else value  # pyright: ignore[reportUnknownArgumentType]


def filled(store: VectorStore, metadata: Mapping[str, Mapping[str, Any]]) -> VectorStore:
    """Store one document for each metadata."""
    store.add(
        [
            Document(None, id=name, metadata=dict(value), vector=[1.0, float(place)])
            for place, (name, value) in enumerate(metadata.items())
        ]
    )
    return store


def matches(store: VectorStore, given: Any) -> set[str]:
    """Return the ids that a filter lets through."""
    return {found.id for found in store.scan(given, include=[])}


def matcher(store: VectorStore) -> Callable[[Expression], set[str]]:
    """Return `matches` of one store."""
    return lambda expression: matches(store, expression)


@pytest.mark.parametrize(("rule", "name"), CASES)
def test_every_case_is_answered_as_the_contract_says(stores: Stores, rule: str, name: str) -> None:
    # D3, D4, F1 to F8, F10: each run looks at the cases of one rule
    content = load_cases(name)
    documents = {
        id_: {key: decoded(value) for key, value in metadata.items()}
        for id_, metadata in content["documents"].items()
    }
    store = filled(stores(), documents or {"only": {}})
    wrong: list[object] = []
    for case in content["cases"]:
        if rule not in case["rule"].split():
            continue
        if "error" in case:
            with pytest.raises(ERRORS[case["error"]]) as caught:
                store.count(case["filter"])
            place = (getattr(caught.value, "line", None), getattr(caught.value, "column", None))
            if "line" in case and place != (case["line"], case["column"]):
                wrong.append((case["filter"], place))
        elif matches(store, case["filter"]) != set(case["matches"]):
            wrong.append(case["filter"])
    assert wrong == []


def test_random_filters_are_answered_as_the_evaluator_does(stores: Stores) -> None:
    # F1 to F5, F9
    documents = make_documents(5)
    coverage = run(matcher(filled(stores(), documents)), documents, count=250, seed=5)
    assert len(coverage.distinct) == 250


@pytest.mark.slow
def test_ten_thousand_random_filters_are_answered_as_the_evaluator_does(
    stores: Stores, capsys: pytest.CaptureFixture[str]
) -> None:
    # F1 to F5, F9: each cell of the table at least 50 times true and 50 times false; in proportion, where the
    # engine is slow and is asked fewer
    documents = make_documents(11)
    store = filled(stores(), documents)
    at_once = 1 if stores.spec.server is None else 4
    count = count_from_environment(SLOW_COUNT if stores.spec.slow else DEFAULT_COUNT)
    coverage = run(matcher(store), documents, count=count, at_once=at_once)
    assert len(coverage.distinct) == count
    with capsys.disabled():
        print(f"\n{stores.spec.name}:\n{coverage.table()}")  # noqa: T201 - the table is what the run is for
    assert coverage.missing() == []


def test_searches_and_counts_use_the_same_filter(stores: Stores) -> None:
    # F9, S4: ids, order and scores of what the evaluator lets through
    import random

    from entrepot_conformance.fuzz import make_filter

    documents = make_documents(23, 200)
    store = filled(stores(metric="euclidean"), documents)
    vectors = [[1.0, float(place)] for place in range(len(documents))]
    generator = random.Random(29)
    for number in range(60):
        expression = make_filter(generator)
        query = [1.0, generator.uniform(0, 200)]
        scores = dict(zip(documents, expected_scores("euclidean", vectors, query).tolist(), strict=True))
        matching = {
            name: scores[name] for name, metadata in documents.items() if evaluate(expression, metadata)
        }
        k = (1, 7, 50, 300)[number % 4]
        request = SearchRequest(vector=query, top_k=k, filter=expression, exact=True)
        check_hits(store.similarity_search(request), matching, k)
        assert store.count(expression) == len(matching)


def test_the_largest_filters_are_answered(stores: Stores) -> None:
    # F6
    store = filled(stores(), {str(n): {"n": n} for n in range(30)})
    deep = F.n == 1
    for level in range(2, 101):
        deep = ~deep if level % 2 else (deep | (F.n == level))
    wide = F.n == 0
    for number in range(1, 3_000):
        wide = wide | (F.n == number % 10)
    many = F.n.in_(list(range(5, 9_900)))
    assert store.count(wide) == 10
    assert store.count(many) == store.count(format_filter(many)) == 25
    assert matches(store, deep) == {str(n) for n in range(30) if evaluate(deep, {"n": n})}


ODD: Final = [
    "' OR 1=1 --",
    '"; DROP TABLE documents; --',
    "$where",
    "{$gt: 0}",
    "a}) RETURN n //",
    "\\",
    "%s",
    "${x}",
    "`",
    "a\tb",
    "-1*",
    "(|",
    "@k:{*}",
    "\u2028",
    "é",
    "e\u0301",
    "null",
    "true",
    "*",
    "?",
    ",",
    "|",
    " ",
    "]",
    "[",
    "a:b",
    "a.b",
    "#",
    "x" * 300,
]


@pytest.mark.parametrize("odd", ODD)
def test_odd_keys_and_values_are_data(stores: Stores, odd: str) -> None:
    # D1, D3, F10: as a key, as a value, as an element and as an id; near misses stay away
    store = filled(
        stores(),
        {
            odd: {"k": odd},
            "key": {odd: 1},
            "list": {"k": [odd, "other"]},
            "near": {"k": odd + "x", odd + "x": 1},
            "none": {},
        },
    )
    assert matches(store, F.k == odd) == {odd, "list"}
    assert matches(store, F.k != odd) == {"key", "near", "none"}
    assert matches(store, F.k.in_([odd])) == {odd, "list"}
    assert matches(store, F[odd] == 1) == {"key"}
    assert matches(store, F[odd].is_not_null()) == {"key"}
    assert matches(store, F[odd] >= "") == set()
    assert matches(store, (F.k >= odd) & (F.k <= odd)) >= {odd}
    assert store.count() == 5
    store.delete([odd])
    assert store.count() == 4


ALIKE: Final = [
    "a",
    "A",
    "a ",
    " a",
    "a\t",
    "á",
    "a\u0301",
    "a\u200b",
    "\uff41",  # the a of full width
    "ss",
    "ß",
    "i",
    "\u0131",  # the i without a dot
    "fi",
    "ﬁ",
    "1",
    "1.0",
    "01",
    "1e0",
    "true",
    "2026-01-31",
    "2026-01-31T00:00:00Z",
    "x" * 300,
    "x" * 299 + "y",
    "x" * 301,
    "x" * 300 + " ",
    "é" * 200,
    "é" * 199 + "e",
    "",
    " ",
]
"""Strings that an index could take for the same: trimmed, folded, normalised, cut or read as something else."""


def test_strings_that_an_index_could_take_for_the_same_are_told_apart(stores: Stores) -> None:
    # F4, F9, F10: as values, as elements and as keys; and ordered by code point to the last character
    store = filled(
        stores(),
        {f"{n}": {"k": text, "list": ["other", text], text or "empty": n} for n, text in enumerate(ALIKE)},
    )
    names = {text: str(n) for n, text in enumerate(ALIKE)}
    for text, name in names.items():
        assert matches(store, F.k == text) == {name}, text
        assert matches(store, F.list.in_([text, "unknown"])) == {name}, text
        assert matches(store, F.k != text) == {*names.values()} - {name}, text
        if text:
            assert matches(store, F[text].is_not_null()) == {name}, text
        assert matches(store, F.k < text) == {names[other] for other in ALIKE if other < text}, text
        assert matches(store, F.k >= text) == {names[other] for other in ALIKE if other >= text}, text
        assert matches(store, ~(F.k > text)) == {names[other] for other in ALIKE if not other > text}, text


def test_keys_and_values_do_not_run_into_each_other(stores: Stores) -> None:
    # F10, D3: whatever stands between them in an index
    parts = [
        "",
        "a",
        "b",
        "s",
        "n",
        ":",
        "=",
        ".",
        "|",
        "/",
        "\x1f",
        "\x01",
        '"',
        "1",
        "sb",
        "bs",
        "ab",
        "a=b",
        "s:b",
    ]
    pairs = [(f"a{one}", f"{two}b") for one in parts for two in parts]
    store = filled(stores(), {f"{n:03}": {key: value} for n, (key, value) in enumerate(pairs)})
    for key, value in [pairs[n] for n in range(0, len(pairs), 7)]:
        expected = {f"{n:03}" for n, pair in enumerate(pairs) if pair == (key, value)}
        assert matches(store, F[key] == value) == expected, (key, value)
        assert matches(store, F[key].is_not_null()) == {
            f"{n:03}" for n, (other, _) in enumerate(pairs) if other == key
        }


MEANINGS: Final = [
    "a == 1 or b == 1 and c == 1",
    "(a == 1 or b == 1) and c == 1",
    "not a == 1 and b == 1",
    "not (a == 1 and b == 1)",
    "not (a == 1 or not (b == 1 and c == 1))",
    "a == 1 or (b == 1 or c == 1) and not (a == 1)",
    "not (a < 1) and not (b >= 1) or c is null",
    "a in [1, 0] and (b not in [1] or c != 1)",
]


def test_what_explain_prints_means_the_same(stores: Stores) -> None:
    # F8: the brackets that are needed are written, and no others change anything
    everything = {
        f"{a}{b}{c}": {key: value for key, value in (("a", a), ("b", b), ("c", c)) if value is not None}
        for a in (0, 1, None)
        for b in (0, 1, None)
        for c in (0, 1, None)
    }
    store = filled(stores(), everything)
    for text in MEANINGS:
        expected = {name for name, metadata in everything.items() if evaluate(parse_filter(text), metadata)}
        printed = store.explain(text).filter
        assert matches(store, text) == expected, text
        assert matches(store, printed) == expected, printed
        assert matches(store, f"(({text}))") == expected, text
        assert store.explain(printed).filter == printed


def test_filters_beyond_the_limits_are_refused(stores: Stores) -> None:
    # F6: trees and texts alike, and by every operation
    store = filled(stores(), {"1": {"n": 1}})
    deep: Expression = F.n == 1
    for level in range(2, 102):
        deep = ~deep if level % 2 else (deep | (F.n == level))
    many = F.n.in_(list(range(10_001)))
    text = " or ".join(f"n == {number}" for number in range(10_000))
    operations: list[Callable[[Any], object]] = [
        store.count,
        lambda given: store.delete(filter=given),
        lambda given: list(store.scan(given)),
        lambda given: store.similarity_search(SearchRequest(vector=[1.0, 0.0], filter=given)),
    ]
    for given in (deep, many, text, lambda: many):
        for operation in operations:
            with pytest.raises(FilterLimitError):
                operation(given)
    assert store.count() == 1


def test_a_filter_that_is_false_asks_nobody(stores: Stores) -> None:
    # F5
    store = filled(stores(), {"1": {"k": "x"}})
    nobody = F.k.in_([])
    assert normalise(nobody) is FALSE
    assert matches(store, nobody) == set()
    assert store.similarity_search(SearchRequest(vector=[1.0, 0.0], filter=nobody)) == []
