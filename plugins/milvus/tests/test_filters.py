"""The converter: its expressions, written by hand for every leaf, and what they mean. F1 to F6, F9, F10."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest
from core.tests.filters.strategies import any_scalars, expressions, leaves, well_formed_text
from hypothesis import given, settings
from plugins.milvus.tests.language import holds

from entrepot import Document, F, parse_filter
from entrepot.encoding import equality_token, presence_token
from entrepot.filters import Expression, evaluate
from entrepot.metadata import clean_metadata, encode_metadata
from entrepot_conformance.fuzz import make_documents, make_filter
from entrepot_milvus.expressions import quoted, rendered
from entrepot_milvus.fields import Content, row_of
from entrepot_milvus.filters import MOST_CLAUSES, MilvusFilterConverter

if TYPE_CHECKING:
    from plugins.milvus.tests.servers import MakeLite

HAS = presence_token("k")


def is_(value: Any) -> str:
    return equality_token("k", value)


def sent(text: str) -> tuple[str, bool]:
    """Return a filter as it is sent, and whether it is exact."""
    converted = MilvusFilterConverter().convert(parse_filter(text))
    return rendered(converted.query), converted.exact


def row(metadata: dict[str, Any]) -> dict[str, Any]:
    clean = clean_metadata(metadata)
    return row_of(Content("name", None, clean, encode_metadata(clean), [1.0]), words=False)


# 5: the bits of the double 5.0, turned so that they sort, in base32hex without trailing zeros
FIVE = "o0a"
NOON = "e5b0bg6s0fs"
AB = "c5h0"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("k is null", f'(not array_contains(tokens, "{HAS}"))'),
        ("k is not null", f'array_contains(tokens, "{HAS}")'),
        ("k == true", f'array_contains(tokens, "{is_(True)}")'),
        ("k != 'a'", f'(not array_contains(tokens, "{is_("a")}"))'),
        ("k == 5.0", f'array_contains(tokens, "{is_(5)}")'),
        ("k in ['a', 5, true]", f'array_contains_any(tokens, ["{is_("a")}", "{is_(5)}", "{is_(True)}"])'),
        ("k in [5, 5.0]", f'array_contains(tokens, "{is_(5)}")'),
        ("k not in ['a', 5]", f'(not array_contains_any(tokens, ["{is_("a")}", "{is_(5)}"]))'),
        ("k < 5", f'ranges["nk"] < "{FIVE}"'),
        ("k <= 5", f'ranges["nk"] <= "{FIVE}"'),
        ("k > 5", f'ranges["Nk"] > "{FIVE}"'),
        ("k >= 5", f'ranges["Nk"] >= "{FIVE}"'),
        ("not k < 5", f'(not (exists ranges["nk"]) or ranges["nk"] >= "{FIVE}")'),
        ("not k <= 5", f'(not (exists ranges["nk"]) or ranges["nk"] > "{FIVE}")'),
        ("not k > 5", f'(not (exists ranges["Nk"]) or ranges["Nk"] <= "{FIVE}")'),
        ("not k >= 5", f'(not (exists ranges["Nk"]) or ranges["Nk"] < "{FIVE}")'),
        ("k < 'ab'", f'ranges["sk"] < "{AB}"'),
        ("k >= 'ab'", f'ranges["Sk"] >= "{AB}"'),
        ("k > 3 and k < 5", f'(ranges["Nk"] > "o04" and ranges["nk"] < "{FIVE}")'),
        ("k == 'a' or k == 'b' or k is not null", f'array_contains_any(tokens, ["{is_("a")}", "{is_("b")}", "{HAS}"])'),
        ("k != 'a' and k is null", f'(not array_contains_any(tokens, ["{is_("a")}", "{HAS}"]))'),
        ("k == 'a' and k == 'b'", f'(array_contains(tokens, "{is_("a")}") and array_contains(tokens, "{is_("b")}"))'),
        ("k != 'a' or k < 5", f'((not array_contains(tokens, "{is_("a")}")) or ranges["nk"] < "{FIVE}")'),
        ("k in []", 'id == ""'),
        ("k not in []", 'id != ""'),
    ],
)  # fmt: skip
def test_leaves_as_they_are_sent(text: str, expected: str) -> None:
    # F2 to F5, F9
    assert sent(text) == (expected, True)


def test_instants_are_sent_as_ordered_text() -> None:
    # F4
    earlier = sent("k < datetime '2026-01-31T12:00:00Z'")[0]
    assert earlier == sent("k < datetime '2026-01-31T14:00:00+02:00'")[0]
    assert earlier.startswith('ranges["dk"] < "')


def test_long_strings_are_supersets() -> None:
    # F9: what shares the first 40 bytes may lie on either side; below a negation it must not be missed either
    long = "x" * 41
    code = "f1s7gu3of1s7gu3of1s7gu3of1s7gu3of1s7gu3of1s7gu3of1s7gu3of1s7gu3o"
    assert sent(f"k < '{long}'") == (f'ranges["sk"] < "{code}w"', False)
    assert sent(f"k >= '{long}'") == (f'ranges["Sk"] > "{code}"', False)
    assert sent(f"not k <= '{long}'") == (f'(not (exists ranges["sk"]) or ranges["sk"] > "{code}")', False)
    assert sent(f"k < '{'x' * 40}'")[1]


def test_many_clauses_are_balanced() -> None:
    # F6: a server's time grows with the depth of its tree
    text, exact = sent(" or ".join(f"k < {n}" for n in range(64)))
    assert exact
    assert text.count("ranges") == 64
    assert max(text[:at].count("(") - text[:at].count(")") for at in range(len(text))) == 6


def test_what_is_too_large_or_too_deep_is_a_superset() -> None:
    # F6, F9
    wide = F.k < 0
    for number in range(1, MOST_CLAUSES + 1):
        wide = wide & (F.k < number)
    converted = MilvusFilterConverter().convert(wide)
    assert not converted.exact
    assert rendered(converted.query).count("ranges") < MOST_CLAUSES
    many = F.k == 0
    for number in range(1, 4000):
        many = many | (F.k == number)
    assert MilvusFilterConverter().convert(many).exact  # one union
    deep = F.k == 1
    for level in range(2, 100):
        deep = (deep | (F.k < level)) if level % 2 else (deep & (F.k > level))
    assert not MilvusFilterConverter().convert(deep).exact


@given(well_formed_text(min_size=1, max_size=40), any_scalars())
@settings(max_examples=300, deadline=None)
def test_nothing_of_the_users_stands_in_an_expression(key: str, value: Any) -> None:
    # F10: whatever key and value are, the expression is of the language that the tests read
    if isinstance(value, bool):
        filters = [F[key] == value, F[key] != value]
    else:
        filters = [F[key] == value, F[key] < value, ~(F[key] >= value)]
    for expression in filters:
        text = rendered(MilvusFilterConverter().convert(expression).query)
        assert not set(text) - set(
            'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-[]()", <>=!'
        )
        holds(text, row({}), absent=None)


@pytest.mark.parametrize("wrong", ['"', "\\", "a b", "é", "\n", "a'", "]"])
def test_only_codes_are_quoted(wrong: str) -> None:
    # F10
    with pytest.raises(ValueError, match="codes"):
        quoted(wrong)


def test_expressions_mean_what_the_filters_mean() -> None:
    # F1 to F5, F9: without an engine, as a server reads them and as Milvus Lite does; exact ones agree, others never
    # miss a document
    documents: dict[str, Any] = make_documents(7, 120)
    rows = [(metadata, row(metadata)) for metadata in documents.values()]
    rng = random.Random(7)
    wrong: list[str] = []
    for _ in range(300):
        expression = make_filter(rng)
        converted = MilvusFilterConverter().convert(expression)
        text = rendered(converted.query)
        for metadata, stored in rows:
            expected = evaluate(expression, metadata)
            found = {holds(text, stored, absent) for absent in (None, False)}
            if found != {expected} if converted.exact else expected and False in found:
                wrong.append(text)
    assert wrong == []


@given(expressions(leaves()))
@settings(max_examples=100, deadline=None)
def test_any_filter_is_read_by_the_language(expression: Expression) -> None:
    # F6, F10
    text = rendered(MilvusFilterConverter().convert(expression).query)
    assert holds(text, row({}), None) is holds(text, row({}), absent=False)


def test_the_largest_filters_are_answered(make_lite: MakeLite) -> None:
    # F6
    store = make_lite()
    store.add([Document(None, id=str(n), metadata={"n": n}, vector=[1.0, n]) for n in range(20)])
    apart = F.n != -1
    wide = F.n < -1
    for number in range(2, 5_000):
        wide = wide | (F.n < -number)
        apart = apart & (F.n != -number)
    many = F.n.in_(list(range(5, 9_900)))
    assert store.count(wide) == 0
    assert store.count(apart) == 20
    assert store.count(many) == 15
    assert store.count(~many) == 5
