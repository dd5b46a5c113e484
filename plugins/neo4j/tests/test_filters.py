"""The converter: its clauses, written by hand for every leaf, and what they find. F1 to F6, F9, F10."""

from __future__ import annotations

import random
import re
from typing import Any

import pytest
from core.tests.filters.strategies import any_scalars, expressions, leaves
from hypothesis import given
from plugins.neo4j.tests.model import fields_of, holds

from entrepot import F, parse_filter
from entrepot.filters import Expression, evaluate
from entrepot_conformance.fuzz import make_documents, make_filter
from entrepot_neo4j import Neo4jFilterConverter
from entrepot_neo4j.filters import Having, Junction, predicate
from entrepot_neo4j.tokens import Span

DOCUMENTS = make_documents(20261130)
FIELDS = {name: fields_of(metadata) for name, metadata in DOCUMENTS.items()}


def sent(asked: str | Expression) -> Any:
    tree = parse_filter(asked) if isinstance(asked, str) else asked
    converted = Neo4jFilterConverter().convert(tree)
    assert converted.exact
    return converted.query


def some(*tokens: str) -> Having:
    return Having(tokens)


def no(*tokens: str) -> Having:
    return Having(tokens, negated=True)


def between(low: str, high: str, *, negated: bool = False) -> Having:
    return Having((), (Span(low, high),), negated)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("k is null", no("k\0")),
        ("k is not null", some("k\0")),
        ("k == true", some("k\0b1")),
        ("k != false", no("k\0b0")),
        ("k == 'a b'", some("k\0sa b")),
        ("k == ''", some("k\0s")),
        ("k == '\uffff'", some("k\0s\ud7ff\u2001")),
        ("k in ['a', true]", some("k\0sa", "k\0b1")),
        ("k not in ['a', true]", no("k\0sa", "k\0b1")),
        ("k in []", False),
        ("k not in []", True),
        ("k < 'b'", between("k\0s", "k\0sb")),
        ("k <= 'b'", between("k\0s", "k\0sb\0")),
        ("k > 'b'", between("k\0sb\0", "k\0t")),
        ("k >= 'b'", between("k\0sb", "k\0t")),
        ("not k < 'b'", between("k\0s", "k\0sb", negated=True)),
        ("k == 'a' and j != 'b'", Junction(True, (some("k\0sa"), no("j\0sb")))),
        ("k == 'a' or j != 'b'", Junction(False, (some("k\0sa"), no("j\0sb")))),
    ],
)
def test_leaves_as_they_are_read(text: str, expected: object) -> None:
    # F2 to F5, F9
    assert sent(text) == expected


def bundle(  # noqa: PLR0913 - the parts of one
    *,
    each: Any = (),
    sets: Any = (),
    spans: Any = (),
    none: Any = (),
    never: Any = (),
    within: Any = (),
    level: int = 0,
) -> list[Any]:
    return [level, list(each), list(sets), list(spans), list(none), list(never), list(within)]


@pytest.mark.parametrize(
    ("text", "parameter"),
    [
        ("k == 'a'", [False, bundle(each=["k\0sa"]), [], [True, True]]),
        ("k != 'a'", [False, bundle(none=["k\0sa"]), [], [True, True]]),
        ("k in ['a', 'b']", [False, bundle(sets=[["k\0sa", "k\0sb"]]), [], [True, True]]),
        (
            "k != 'a' and j is null and k < 'b'",
            [False, bundle(none=["k\0sa", "j\0"], spans=[["k\0s", "k\0sb"]]), [], [True, True]],
        ),
        (
            "k == 'a' or k in ['b', 'a'] or j is null",
            [True, bundle(none=["k\0sa", "k\0sb"], each=["j\0"]), [], [True, True]],
        ),
        (
            "k < 'b' or k > 'a' or k >= 'x' or not k < 'c'",
            [True, bundle(never=[["k\0s", "k\0t"]], spans=[["k\0s", "k\0sc"]]), [], [True, True]],
        ),
        (
            "k == 'a' and (j == 'b' or j == 'c')",
            [False, bundle(each=["k\0sa"], within=[bundle(none=["j\0sb", "j\0sc"])]), [], [True, True]],
        ),
        (
            "k == 'a' and (j == 'b' or (i == 'c' and h == 'd') or (g == 'e' and (f == 'f' or e == 'g')))",
            [
                False,
                bundle(each=["k\0sa"]),
                [
                    bundle(level=1, each=["g\0se"], within=[bundle(none=["f\0sf", "e\0sg"])]),
                    bundle(level=0, none=["j\0sb"], within=[bundle(each=["i\0sc", "h\0sd"])]),
                ],
                [True, True, True, True],
            ],
        ),
    ],
)
def test_filters_as_they_are_sent(text: str, parameter: list[Any]) -> None:
    # F2, F3, F10
    found = predicate(sent(text))
    assert found.parameter == parameter
    assert found.deep is bool(parameter[2])


def test_there_are_two_texts_whatever_the_filter() -> None:
    # F10: and none of them holds a key or a value
    rng = random.Random(20261130)
    texts = {
        predicate(clause).text
        for _ in range(500)
        if not isinstance(clause := Neo4jFilterConverter().convert(make_filter(rng)).query, bool)
    }
    assert len(texts) == 2
    for text in texts:
        assert not re.search(r"['\"`$\\]", text)


def test_ranges_of_numbers_and_instants_lie_within_one_key_and_kind() -> None:
    # F4
    for text, letter in (("5", "n"), ("-0.5", "n"), ("datetime '2026-01-31T12:00:00Z'", "d")):
        low, high = f"k\0{letter}", "k\0" + chr(ord(letter) + 1)
        ((least, below),) = sent(f"k < {text}").spans
        assert least == low
        assert low < below < high
        assert sent(f"k >= {text}").spans == ((below, high),)


def test_comparisons_of_one_key_are_never_merged() -> None:
    # F2: different elements of a list may satisfy them
    both = sent("k > 3 and k < 5")
    assert len(both.parts) == 2
    assert holds(both, fields_of({"k": [1, 10]}))
    assert not holds(sent("not (k <= 3 or k >= 5)"), fields_of({"k": [1, 10]}))


def test_thousands_of_filters_find_what_the_evaluator_says() -> None:
    # F1 to F5, F9
    rng = random.Random(20261130)
    for _ in range(1500):
        tree = make_filter(rng)
        query = sent(tree)
        found = {name for name, fields in FIELDS.items() if holds(query, fields)}
        assert found == {name for name, metadata in DOCUMENTS.items() if evaluate(tree, metadata)}


@given(expressions(), leaves(), any_scalars())
def test_any_filter_on_any_value(tree: Expression, leaf: Expression, value: Any) -> None:
    # F1 to F5
    for asked in (tree, leaf, tree & leaf, tree | ~leaf, ~(tree | leaf) & (leaf | tree)):
        query = sent(asked)
        for metadata in ({}, {"x": value}, {"x": [value]}):
            assert holds(query, fields_of(metadata)) is evaluate(asked, metadata)


def test_strings_are_compared_by_code_point_in_an_engine_that_compares_units() -> None:
    # F4
    texts = [
        "",
        "a",
        "\ud7fe",
        "\ud7ff",
        "\ud7ff\x01",
        "\ud7ff\u2001",
        "\ue000",
        "\uffff",
        "\U00010000",
        "\U0010ffff",
    ]
    texts += [text + end for text in texts for end in ("a", "\uffff", "\U0001f600")]
    for key in ("k", "\uffff", "\U0001f600"):
        fields = {text: fields_of({key: text}) for text in texts}
        for operand in texts:
            for tree in (F[key] < operand, F[key] >= operand, F[key] == operand, ~(F[key] <= operand)):
                query = sent(tree)
                assert [text for text in texts if holds(query, fields[text])] == [
                    text for text in texts if evaluate(tree, {key: text})
                ]


def test_the_deepest_and_the_largest_filter_are_exact() -> None:
    # F6, F9
    tree = F.k != 0
    for level in range(1, 99):
        tree = (tree | (F.k == level)) if level % 2 else (tree & (F.j == level))
    query = sent(tree)
    for metadata in ({}, {"k": 0}, {"k": [0, 3], "j": [2, 4]}, {"j": list(range(0, 100, 2))}, {"k": 97}):
        assert holds(query, fields_of(metadata)) is evaluate(tree, metadata)
    wide = F.k > 0
    for n in range(1, 3000):
        wide |= (F.k == n) & (F.j > n)
    query = sent(wide)
    for metadata in ({"k": 0}, {"k": 2999, "j": 4000}, {"k": -1, "j": 5}):
        assert holds(query, fields_of(metadata)) is evaluate(wide, metadata)
