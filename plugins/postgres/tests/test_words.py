"""Words of texts and queries: S9."""

from __future__ import annotations

import re

from core.tests.filters.strategies import well_formed_text
from hypothesis import given

from entrepot_postgres.words import tsquery, tsvector, words_of


def test_words_are_runs_of_letters_and_digits() -> None:
    # S9
    assert words_of("Wing-tip_x, b2b@host.org: ÄÖ 1e5") == [
        "wing",
        "tip",
        "x",
        "b2b",
        "host",
        "org",
        "äö",
        "1e5",
    ]
    assert words_of(" -*&|!():'") == []


def test_places_are_counted() -> None:
    assert tsvector("b a B") == "'b':1,3 'a':2"
    assert tsvector(None) == ""


def test_places_stay_within_what_postgresql_keeps() -> None:
    assert tsvector("a " * 1000).count(",") == 254
    written = tsvector(" ".join(f"w{n}" for n in range(20_000)))
    assert written.count("'w") == 20_000
    assert max(int(place) for place in re.findall(r":(\d+)", written)) == 16_383


def test_a_word_that_is_too_long_is_found_by_its_digest() -> None:
    # S9
    long = "x" * 3000
    (word,) = words_of(long)
    assert len(word) == 40
    assert words_of(f"{long} y") == [word, "y"]
    assert words_of(f"{long}z") != [word]
    (wide,) = words_of("é" * 1024)
    assert len(wide) == 40
    assert words_of("é" * 1023) == ["é" * 1023]


def test_a_query_is_any_of_its_words() -> None:
    # S9
    assert tsquery("a & !b | (a)") == "'a' | 'b'"
    assert tsquery("!*:") is None


@given(well_formed_text())
def test_nothing_of_a_text_is_syntax(text: str) -> None:
    # S9, F10
    assert re.fullmatch(r"('[^\W_]+':\d+(,\d+)*( |$))*", tsvector(text))
    assert re.fullmatch(r"('[^\W_]+'( \| |$))*", tsquery(text) or "")
