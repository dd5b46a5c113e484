"""The converter: its clauses, written by hand for every leaf; and what is sent. F1 to F6, F9, F10."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from core.tests.filters.strategies import any_scalars, expressions, leaves, well_formed_text
from hypothesis import given, settings

from entrepot import Document, F, parse_filter
from entrepot.encoding import equality_token, presence_token
from entrepot.filters import Expression, evaluate
from entrepot_conformance.fuzz import make_documents
from entrepot_redis import RedisFilterConverter
from entrepot_redis.fields import Columns, beyond
from entrepot_redis.filters import GROUP, MOST_CLAUSES, columns_of, rendered, union_of

if TYPE_CHECKING:
    from plugins.redis.tests.servers import Make

NUMBERED = Columns(
    {
        b"nl0k": 1, b"nh0k": 2, b"nl1k": 3, b"nh1k": 4,
        b"dl0k": 5, b"dh0k": 6, b"dl1k": 7, b"dh1k": 8,
        b"sl0k": 10, b"sl1k": 11, b"sl2k": 12, b"sl3k": 13,
        b"sh0k": 20, b"sh1k": 21, b"sh2k": 22, b"sh3k": 23,
    },
    full=False,
)  # fmt: skip
HAS = presence_token("k")


def is_(value: Any) -> str:
    return equality_token("k", value)


def sent(text: str, columns: Columns = NUMBERED) -> tuple[str | None, bool]:
    """Return a filter as it is sent, and whether it is exact."""
    converted = RedisFilterConverter(columns).convert(parse_filter(text))
    query = rendered(converted.query, columns)
    return query.text, converted.exact and query.exact


AB = 0x616200000000  # "ab" in six bytes
SIX = int.from_bytes(b"abcdef", "big")
BIG = "9007199254740992.0"
AT_LEAST_1E300 = (
    "(@f1:[1e+300 inf]|@f2:[1e+300 inf]) (@f1:[1e+300 inf]|@f2:[(1e+300 inf]|@f4:[0 inf])"
    " (@f1:[(1e+300 inf]|@f3:[0 inf]|@f2:[1e+300 inf])"
    " (@f1:[(1e+300 inf]|@f3:[0 inf]|@f2:[(1e+300 inf]|@f4:[0 inf])"
)
INSTANT = 1769860800000000  # 2026-01-31T12:00:00Z in microseconds


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("k is null", f"-(@t:{{{HAS}}})"),
        ("k is not null", f"@t:{{{HAS}}}"),
        ("k == true", f"@t:{{{is_(True)}}}"),
        ("k != true", f"-(@t:{{{is_(True)}}})"),
        ("k == 'a'", f"@t:{{{is_('a')}}}"),
        ("k != 'a'", f"-(@t:{{{is_('a')}}})"),
        ("k == 5", f"(@t:{{{is_(5)}}}|@f1:[5 5]|@f2:[5 5])"),
        ("k == 5.0", f"(@t:{{{is_(5)}}}|@f1:[5 5]|@f2:[5 5])"),
        ("k != -0.5", f"-(@t:{{{is_(-0.5)}}}|@f1:[-0.5 -0.5]|@f2:[-0.5 -0.5])"),
        ("k == 9007199254740993", f"@t:{{{is_(2**53 + 1)}}}"),
        ("k in ['a', true]", f"@t:{{{is_('a')}|{is_(True)}}}"),
        ("k in ['a', 5]", f"(@t:{{{is_('a')}|{is_(5)}}}|@f1:[5 5]|@f2:[5 5])"),
        ("k not in ['a', 5]", f"-(@t:{{{is_('a')}|{is_(5)}}}|@f1:[5 5]|@f2:[5 5])"),
        ("k < 5", "@f1:[-inf (5]"),
        ("k <= 5", "@f1:[-inf 5]"),
        ("k > 5", "(@f1:[(5 inf]|@f2:[(5 inf])"),
        ("k >= 1e300", AT_LEAST_1E300),
        ("not k < 5", "-(@f1:[-inf (5])"),
        ("not k >= 5", "-(@f1:[5 inf]|@f2:[5 inf])"),
        ("k < 9007199254740993", f"@f1:[-inf {BIG}] (@f1:[-inf ({BIG}]|@f3:[-inf (1])"),
        ("not k < 9007199254740993", f"(-(@f1:[-inf {BIG}])|-(@f1:[-inf ({BIG}]|@f3:[-inf (1]))"),
        ("k < datetime '2026-01-31T12:00:00Z'", f"@f5:[-inf ({INSTANT}]"),
        ("k > datetime '2026-01-31T12:00:00Z'", f"(@f5:[({INSTANT} inf]|@f6:[({INSTANT} inf])"),
        ("k < 'ab'", f"@f10:[-inf ({AB}]"),
        ("k <= 'ab'", f"@f10:[-inf {AB}]"),
        ("k <= 'abcdef'", f"@f10:[-inf {SIX}] (@f10:[-inf ({SIX}]|@f11:[-inf 0])"),
        ("k > 'ab'", f"(@f10:[({AB} inf]|@f20:[({AB} inf])"),
        ("not k > 'ab'", f"-(@f10:[({AB} inf]|@f20:[({AB} inf])"),
        ("k == 'a' and k is not null", f"@t:{{{is_('a')}}} @t:{{{HAS}}}"),
        ("k == 'a' or k is null", f"(@t:{{{is_('a')}}}|-(@t:{{{HAS}}}))"),
        ("k != 'a' and k != 'b'", f"-(@t:{{{is_('a')}|{is_('b')}}})"),
        ("k > 3 and k < 5", "(@f1:[(3 inf]|@f2:[(3 inf]) @f1:[-inf (5]"),
        ("k == 'a' or (k == 'b' and k is null)",
         f"@t:{{{is_('a')}|{is_('b')}}} (@t:{{{is_('a')}}}|-(@t:{{{HAS}}}))"),
        ("k in []", None),
        ("k not in []", ""),
        ("other < 5", None),
        ("not other < 5", ""),
        ("other == 5", f"@t:{{{equality_token('other', 5)}}}"),
        ("other < 5 or k == 'a'", f"@t:{{{is_('a')}}}"),
    ],
)  # fmt: skip
def test_leaves_as_they_are_sent(text: str, expected: str | None) -> None:
    # F2 to F5, F9
    assert sent(text) == (expected, True)


def test_long_strings_are_supersets() -> None:
    # F9: not strict, as others may begin with the same 24 bytes; below a negation strict
    code = int.from_bytes(b"x" * 6, "big")
    inner = [f"@f10:[-inf ({code}]", f"@f11:[-inf ({code}]", f"@f12:[-inf ({code}]"]
    loose = f"@f10:[-inf {code}] ({inner[0]}|@f11:[-inf {code}]) ({inner[0]}|{inner[1]}|@f12:[-inf {code}])"
    text, exact = sent(f"k < '{'x' * 24}'")
    assert text == f"{loose} ({inner[0]}|{inner[1]}|{inner[2]}|@f13:[-inf {code}])"
    assert not exact
    assert sent(f"k < '{'x' * 23}'")[1]
    negated, exact = sent(f"not k <= '{'x' * 24}'")
    assert negated is not None
    assert negated.endswith(f"-({inner[0]}|{inner[1]}|{inner[2]}|@f13:[-inf ({code}]))")
    assert not exact


def test_without_room_for_columns_ranges_are_supersets() -> None:
    # F9: a token finds documents whose value is in no column; equality stays exact
    full = Columns({b"nl0k": 1}, full=True)
    token = beyond("number", "k")
    assert sent("k < 5", full) == ("@f1:[-inf (5]", True)
    assert sent("k > 5", full) == (f"(@t:{{{token}}}|@f1:[(5 inf])", False)
    assert sent("not k > 5", full) == ("-(@f1:[(5 inf])", False)
    assert sent("other < 5", full) == (f"@t:{{{beyond('number', 'other')}}}", False)
    assert sent("not other < 5", full) == ("", False)
    assert sent("k == 5", full) == (f"(@t:{{{is_(5)}}}|@f1:[5 5])", True)
    assert sent("other != 5", full) == (f"-(@t:{{{equality_token('other', 5)}}})", True)


def test_unions_stand_in_groups() -> None:
    members = [f"m{n}" for n in range(GROUP * GROUP + 1)]
    text = union_of(members)
    assert text.count("m") == len(members)
    depth = [
        text[: found.start()].count("(") - text[: found.start()].count(")")
        for found in re.finditer("m", text)
    ]
    assert set(depth) == {3}
    assert union_of(members[:GROUP]) == f"({'|'.join(members[:GROUP])})"
    for group in re.findall(r"\(([^()]*)\)", text):
        assert group.count("|") < GROUP


SENT = re.compile(
    r"(?:[()| -]|@t:\{[0-9a-v]{24}(?:\|[0-9a-v]{24})*\}|@f[0-9]+:\[\(?[-+.0-9einf]+ \(?[-+.0-9einf]+\])*"
)


@given(
    expressions(leaves(well_formed_text(min_size=1).map(lambda name: name + "'\"}|@f1:[0 0]"), any_scalars()))
)
@settings(max_examples=100, deadline=None)
def test_nothing_of_a_filter_gets_into_the_query_but_tokens_and_numbers(expression: Expression) -> None:
    # F10
    converted = RedisFilterConverter().convert(expression)
    columns = Columns(
        {name: number for number, name in enumerate(columns_of(converted.query), 1)}, full=False
    )
    text = rendered(converted.query, columns).text
    assert text is None or SENT.fullmatch(text)
    assert len(converted.query.clauses) <= MOST_CLAUSES or " or " not in str(expression).lower()


def holds(text: str | None, metadata: Any) -> bool:
    """Evaluate a query as the engine means it, over tokens and columns of a document. Written for this test."""
    from entrepot_redis.fields import fields_of, names_in, pairs_of

    if text is None:
        return False
    fields = fields_of(metadata)
    numbers = dict(ALL.numbers)
    assert not names_in(fields, numbers)
    pairs = pairs_of(fields, numbers)
    stored = dict(zip(pairs[::2], pairs[1::2], strict=True))
    tokens = set(stored.get("t", "").split(","))

    def tagged(found: re.Match[str]) -> str:
        return str(bool(tokens & set(found[1].split("|"))))

    def compared(found: re.Match[str]) -> str:
        value, low, high = stored.get(f"f{found[1]}"), found[2], found[3]
        if value is None:
            return "False"
        number = float(value)
        above = number > float(low[1:]) if low.startswith("(") else number >= float(low)
        below = number < float(high[1:]) if high.startswith("(") else number <= float(high)
        return str(above and below)

    text = re.sub(r"@t:\{([^}]*)\}", tagged, text)
    text = re.sub(r"@f(\d+):\[(\S+) (\S+)\]", compared, text)
    text = text.replace("-(", " not (").replace("|", " or ")
    return bool(eval(re.sub(r"(?<=[)ea]) (?=[(TFn])(?!or)", " and ", text).replace("  ", " ") or "True"))


ALL = Columns({}, full=False)


def test_clauses_mean_what_the_filter_means() -> None:
    # F2, F9: on the shared random documents, without a server; exact ones agree, others never miss one
    import random

    from entrepot_conformance.pools import KEYS, VALUES
    from entrepot_redis.fields import fields_of

    documents = make_documents(3)
    for metadata in documents.values():
        each: Any = metadata
        for group in fields_of(each).groups:
            for name, _ in group.columns:
                ALL.numbers.setdefault(name, len(ALL.numbers) + 1)
    rng = random.Random(5)
    converter = RedisFilterConverter(ALL)
    exact = 0
    for _ in range(60):
        key, value = rng.choice(KEYS), rng.choice(VALUES)
        leaf = (
            F[key] == value
            if isinstance(value, bool)
            else rng.choice(
                [F[key] == value, F[key] < value, F[key] <= value, F[key] > value, F[key] >= value]
            )
        )
        expression = rng.choice([leaf, ~leaf])
        converted = converter.convert(expression)
        text = rendered(converted.query, ALL).text
        for metadata in documents.values():
            expected = evaluate(expression, metadata)
            if converted.exact:
                assert holds(text, metadata) is expected, (text, metadata, expression)
                exact += 1
            else:
                assert holds(text, metadata) or not expected
    assert exact > 5_000


def test_a_product_of_many_clauses_is_cut_to_a_superset(make: Make) -> None:
    # F9: and completed
    store = make()
    store.add(
        [
            Document(None, id=str(n), metadata={"a": n % 5, "b": n % 7, "c": n % 11}, vector=[1.0, n])
            for n in range(300)
        ]
    )

    def conjunction(n: int) -> Expression:
        return (F.a == n % 5) & (F.b == n % 7) & (F.c != n % 11)

    expression = conjunction(0)
    for n in range(1, 9):
        expression |= conjunction(n)
    converted = RedisFilterConverter().convert(expression)
    assert not converted.exact
    assert len(converted.query.clauses) <= MOST_CLAUSES
    expected = {str(n) for n in range(300) if evaluate(expression, {"a": n % 5, "b": n % 7, "c": n % 11})}
    assert {found.id for found in store.scan(expression)} == expected
    assert store.count(expression) == len(expected)


def test_filters_restrict_searches_by_words_and_leave_their_ranking_alone(make: Make) -> None:
    # S9, F9
    from hypothesis import HealthCheck
    from hypothesis import strategies as st

    from entrepot_conformance.pools import KEYS, VALUES

    store = make()
    documents = make_documents(11)
    store.add(
        [
            Document("all " * (1 + n % 3) + "some" * (n % 2), id=name, metadata=metadata, vector=[1.0, 1.0])
            for n, (name, metadata) in enumerate(documents.items())
        ]
    )
    ranks = {hit.id: hit.rank_score for hit in store.similarity_search("all", mode="fulltext", top_k=1000)}
    assert len(ranks) == len(documents)

    @given(expressions(leaves(st.sampled_from(KEYS), st.sampled_from(VALUES))))
    @settings(
        max_examples=150,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
    )
    def check(expression: Expression) -> None:
        hits = store.similarity_search("all", mode="fulltext", top_k=1000, filter=expression)
        expected = {name for name, metadata in documents.items() if evaluate(expression, metadata)}
        assert {hit.id for hit in hits} == expected
        assert {hit.id: hit.rank_score for hit in hits} == {name: ranks[name] for name in expected}

    check()


def test_the_largest_filters_are_answered(make: Make) -> None:
    # F6
    store = make()
    store.add([Document(None, id=str(n), metadata={"n": n}, vector=[1.0, n]) for n in range(20)])
    wide, apart = F.n < -1, F.n != -1
    for number in range(2, 5_000):
        wide = wide | (F.n < -number)
        apart = apart & (F.n != -number)
    many = F.n.in_(list(range(5, 9_900)))
    deep = F.n == 1
    for level in range(2, 101):
        deep = ~deep if level % 2 else (deep | (F.n == level))
    assert store.count(wide) == 0
    assert store.count(apart) == 20
    assert store.count(many) == 15
    assert store.count(~many) == 5
    assert store.where(wide | (F.n == 3)).where(many | (F.n == 3)).count(wide | (F.n == 3)) == 1
    expected = {str(n) for n in range(20) if evaluate(deep, {"n": n})}
    assert {document.id for document in store.scan(deep)} == expected
