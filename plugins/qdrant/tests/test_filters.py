"""The converter: its conditions, written by hand for every leaf. F1 to F6, F9, F10."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import reduce
from typing import Any, cast

import pytest
from core.tests.filters.strategies import expressions
from hypothesis import given, settings
from plugins.qdrant.tests.interpreter import satisfies

from entrepot import F, parse_filter
from entrepot.encoding import equality_token, key_token, presence_token
from entrepot.filters import Expression, Pushdown, evaluate
from entrepot_conformance.fuzz import make_documents
from entrepot_qdrant import QdrantFilterConverter
from entrepot_qdrant.fields import indexed
from entrepot_qdrant.filters import MOST_LEVELS

HAS = presence_token("k")


def is_(value: Any, key: str = "k") -> str:
    return equality_token(key, value)


def token(text: str) -> dict[str, Any]:
    return {"key": "t", "match": {"value": text}}


def tokens(*texts: str) -> dict[str, Any]:
    return {"key": "t", "match": {"any": list(texts)}}


def no(condition: dict[str, Any]) -> dict[str, Any]:
    return {"must_not": [condition]}


def bounds(path: str, **limits: float | str) -> dict[str, Any]:
    return {"key": path, "range": limits}


def gate(path: str, strict: dict[str, float], first: float, within: dict[str, Any]) -> dict[str, Any]:
    """The first piece decides, or it ties and an element's pieces decide."""
    tie = bounds(f"{path}[].a", gte=first, lte=first)
    return {
        "should": [
            bounds(f"{path}[].a", **strict),
            {"must": [tie, {"nested": {"key": path, "filter": within}}]},
        ]
    }


def two(op: str, first: float, second: float) -> dict[str, Any]:
    return {"must": [bounds("a", gte=first, lte=first), bounds("b", **{op: second})]}


def number(op: str, natural: float, first: float, second: float) -> dict[str, Any]:
    wide = gate("w.k", {op[:2]: first}, first, two(op, first, second))
    return {"should": [bounds("n.k", **{op: natural}), wide]}


def sent(text: str | Expression) -> tuple[Any, bool]:
    """Return a filter as it is sent, and whether it is exact."""
    converted = QdrantFilterConverter().convert(parse_filter(text) if isinstance(text, str) else text)
    return converted.query.model_dump(exclude_none=True, mode="json"), converted.exact


# 2.5 is 0x4004_0000_0000_0000 as IEEE 754; with the sign turned 0xC004..., of which 48 bits, and 16 + 11 bits.
A = float(0xC00400000000)
AB = float(0x616200000000)  # "ab" in six bytes
SIX = float(int.from_bytes(b"abcdef", "big"))
INSTANT = "2026-01-31T12:00:00Z"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("k is null", no(token(HAS))),
        ("k is not null", token(HAS)),
        ("k == true", token(is_(True))),
        ("k != true", no(token(is_(True)))),
        ("k == 'a'", token(is_("a"))),
        ("k != 'a'", no(token(is_("a")))),
        ("k == 5", token(is_(5))),
        ("k == 5.0", token(is_(5))),
        (f"k == datetime '{INSTANT}'", token(is_(datetime(2026, 1, 31, 12, tzinfo=UTC)))),
        ("k in ['a', true, 5]", tokens(is_("a"), is_(True), is_(5))),
        ("k not in ['a', 5]", no(tokens(is_("a"), is_(5)))),
        ("k < 2.5", number("lt", 3, A, 0)),
        ("k <= 2.5", number("lte", 2, A, 0)),
        ("k > 2.5", number("gt", 2, A, 0)),
        ("k >= 2.5", number("gte", 3, A, 0)),
        ("not k < 2.5", no(number("lt", 3, A, 0))),
        ("not k >= 2.5", no(number("gte", 3, A, 0))),
        (f"k < datetime '{INSTANT}'", bounds("d.k", lt=INSTANT)),
        (f"k >= datetime '{INSTANT}'", bounds("d.k", gte=INSTANT)),
        (f"not k > datetime '{INSTANT}'", no(bounds("d.k", gt=INSTANT))),
        ("k < 'ab'", bounds("o.k[].a", lt=AB)),
        ("k <= 'ab'", bounds("o.k[].a", lte=AB)),
        ("not k > 'ab'", no(bounds("o.k[].a", gt=AB))),
        ("k >= 'abcdef'", gate("o.k", {"gt": SIX}, SIX, two("gte", SIX, 0))),
        ("k == 'a' and k is not null", {"must": [token(is_("a")), token(HAS)]}),
        ("k == 'a' or k is null", {"should": [token(is_("a")), no(token(HAS))]}),
        ("k in []", {"is_empty": {"key": "id"}}),
        ("k not in []", {}),
        ("\"a b\" >= 'ab'", bounds(f"o.-{key_token('a b')}[].a", gte=AB)),
    ],
)  # fmt: skip
def test_leaves_as_they_are_sent(text: str, expected: Any) -> None:
    # F2 to F5, F9
    assert sent(text) == (expected, True)


def test_numbers_beyond_48_bits_bound_the_natural_ones() -> None:
    # F4: all integers that stand as they are lie below, or above
    for text, limit in (("k < 1e300", {"lt": 2.0**48}), ("k >= -1e300", {"gte": -(2.0**48)})):
        query, exact = sent(text)
        assert exact
        assert query["should"][0] == bounds("n.k", **limit)


def test_two_comparisons_of_one_key_are_not_merged() -> None:
    # F2: different elements may satisfy them
    query, _ = sent("k > 'a' and k < 'b'")
    assert len(query["must"]) == 2


LONG = "x" * 24
X = float(int.from_bytes(b"xxxxxx", "big"))


@pytest.mark.parametrize(("op", "loose", "strict"), [("<", "lte", "lt"), (">", "gte", "gt")])
def test_long_strings_are_supersets(op: str, loose: str, strict: str) -> None:
    # F9: others may begin with the same 24 bytes, so not strict; below a negation strict
    def way(last: str) -> list[dict[str, Any]]:
        same = [bounds(piece, gte=X, lte=X) for piece in "abcd"]
        ends = [bounds("b", **{strict: X}), bounds("c", **{strict: X}), bounds("d", **{last: X})]
        return [{"must": [*same[: n + 1], ends[n]]} for n in range(3)]

    assert sent(f"k {op} '{LONG}'") == (gate("o.k", {strict: X}, X, {"should": way(loose)}), False)
    plain = gate("o.k", {strict: X}, X, {"should": way(strict)})
    assert sent(f"not k {op} '{LONG}'") == (no(plain), False)
    # the operand itself satisfies <= and >=
    assert sent(f"not k {op}= '{LONG}'") == ({"must_not": [plain, token(is_(LONG))]}, False)


def test_values_never_stand_in_paths() -> None:
    # F10: a value is in a typed field, or in no readable form at all
    evil = 'a") OR ("1" == "1'
    for text in (F[evil] == evil, F[evil] < evil, F[evil].in_([evil, "b"]), F[evil].is_null()):
        assert evil not in QdrantFilterConverter().convert(text).query.model_dump_json()


def nested(levels: int) -> Expression:
    """Alternate AND and OR so that no chain can be flattened."""
    return reduce(
        lambda inner, n: (F["k"] == n) & inner if n % 2 else (F["k"] == n) | inner,
        range(1, levels + 1),
        F["k"] == 0,
    )


def test_what_is_nested_too_deep_is_left_out() -> None:
    # F6, F9: a superset, whose report says which clause is not pushed down
    assert sent(nested(MOST_LEVELS))[1]
    converted = QdrantFilterConverter().convert(nested(90))
    assert not converted.exact
    assert all(row.pushdown is Pushdown.NOTHING for row in converted.report.rows[-2:])
    assert len(converted.report.inexact) == 90 - MOST_LEVELS + 1
    depth = 0
    query: Any = cast("Any", converted.query)
    while query is not None:
        parts: list[Any] = [part for part in (query.must or query.should or []) if hasattr(part, "must")]  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
        query = parts[0] if parts else None
        depth += 1
    assert depth <= MOST_LEVELS + 1


# --- against a reading of the conditions in plain Python ---------------------------------------------------

DOCUMENTS: dict[str, Any] = dict(make_documents(7))
PAYLOADS = {name: {"id": name, **indexed(metadata)} for name, metadata in DOCUMENTS.items()}


@settings(max_examples=150, deadline=None)
@given(expressions())
def test_conditions_hold_where_the_filter_does(expression: Expression) -> None:
    # F1 to F5, F9: exact, or for more documents
    query, exact = sent(expression)
    for name, metadata in DOCUMENTS.items():
        wanted = evaluate(expression, metadata)
        got = satisfies(PAYLOADS[name], query)
        assert got == wanted or (got and not exact)
