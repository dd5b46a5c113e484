"""The parser and the Lark grammar: the same trees, the same refusals (F7)."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Final

import pytest
from core.tests.filters.grammar import RefusedError, parse_by_grammar
from core.tests.filters.strategies import any_scalars, expressions, leaves, well_formed_text
from hypothesis import example, given
from hypothesis import strategies as st

from entrepot.errors import FilterError
from entrepot.filters import format_filter
from entrepot.filters.text import parse
from entrepot_conformance.fuzz import make_filter

if TYPE_CHECKING:
    from entrepot.filters import Expression

LEXEMES: Final = (
    *[
        "a",
        "b.c",
        "_",
        "NOT",
        "not",
        "AND",
        "and",
        "OR",
        "IN",
        "NIN",
        "IS",
        "NULL",
        "TRUE",
        "false",
        "DATETIME",
        "LIKE",
        "BETWEEN",
        "contains",
        "x1",
        "nota",
    ],
    *[
        "==",
        "=",
        "!=",
        "<>",
        "<",
        "<=",
        ">",
        ">=",
        "&&",
        "||",
        "!",
        "(",
        ")",
        "[",
        "]",
        ",",
        "&",
        "|",
        "*",
        "-",
        "+",
        ".",
        ":",
        "$",
        "~",
        "\\",
        "'",
        '"',
        "`",
        "é",
        "\u017f",
        "\u00a0",
    ],
    *[
        "0",
        "-0",
        "5",
        "-5",
        "005",
        "0.5",
        ".5",
        "5.",
        "5e0",
        "5E-3",
        "1e999",
        "9223372036854775808",
        "5L",
        "0x5",
        "1_0",
        "5a",
    ],
    *(
        "'x'",
        '"x"',
        "`x`",
        r"'\''",
        r"'\"'",
        r"`\``",
        r"'\`'",
        r"'\q'",
        r"'\u0041'",
        r"'\ud83d\ude00'",
        r"'\ud83d'",
    ),
    *(
        "''",
        "'\t'",
        "'2026-01-31T12:00:00Z'",
        "'2026-01-31T12:00:00.1234567+01:00'",
        "'0001-01-01T00:00:00+01:00'",
    ),
    "DATETIME '2026-01-31T12:00:00.5+02:00'",
    "datetime'2026-02-30T12:00:00Z'",
    "a == 1",
    "NOT IN [1, 'x']",
    "IS NOT NULL",
    " ",
    "\n",
    "\t",
    "\x0b",
    "",
)


def agree(text: str) -> Expression | None:
    """Parse in both ways and compare; return the tree, or None if both refuse."""
    try:
        expected = parse_by_grammar(text)
    except RefusedError:
        with pytest.raises(FilterError):
            parse(text)
        return None
    expression = parse(text)
    assert expression == expected
    assert repr(expression) == repr(expected)
    return expression


@given(expressions(leaves(well_formed_text(min_size=1), any_scalars())))
def test_printed_filters_parse_alike(expression: Expression) -> None:
    assert agree(format_filter(expression)) == expression


@given(st.lists(st.sampled_from(LEXEMES), max_size=12), st.sampled_from(["", " "]))
@example(["a == 1", "AND", "NOT", "a", "IN", "[", "5", "]"], " ")
def test_strings_of_lexemes_parse_alike(lexemes: list[str], glue: str) -> None:
    agree(glue.join(lexemes))


@given(st.text(max_size=20))
def test_any_text_parses_alike(text: str) -> None:
    agree(text)


@given(well_formed_text(), st.sampled_from("'\"`"))
def test_any_quoted_text_parses_alike(content: str, quote: str) -> None:
    agree(f"{quote}{content}{quote} == 1")
    agree(f"a IN [{quote}{content}{quote}]")


def test_mutated_filters_parse_alike() -> None:
    # Near misses: most texts of this test are one or two edits away from the language.
    rng = random.Random(20260131)
    outcomes = {True: 0, False: 0}
    for _ in range(2_500):
        text = format_filter(make_filter(rng))
        for _ in range(rng.randint(1, 2)):
            text = _mutated(rng, text)
        outcomes[agree(text) is not None] += 1
    assert min(outcomes.values()) > 250, outcomes


@pytest.mark.slow
def test_many_mutated_filters_parse_alike() -> None:
    rng = random.Random(7)
    for _ in range(100_000):
        text = format_filter(make_filter(rng))
        for _ in range(rng.randint(1, 4)):
            text = _mutated(rng, text)
        agree(text)


def _mutated(rng: random.Random, text: str) -> str:
    place = rng.randrange(len(text) + 1)
    end = min(len(text), place + rng.choice((1, 1, 1, 3)))
    choice = rng.randrange(6)
    if choice == 0:
        return text[:place] + text[end:]
    if choice == 1:
        return text[:place] + rng.choice(LEXEMES) + text[place:]
    if choice == 2:
        return text[:place] + rng.choice(LEXEMES) + text[end:]
    if choice == 3:
        return text[:end] + text[place:]
    if choice == 4:
        return text[:place] + text[place:end].swapcase() + text[end:]
    words = text.split(" ")
    words[rng.randrange(len(words))] = rng.choice(LEXEMES)
    return " ".join(words)
