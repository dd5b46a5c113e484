"""Filters: parsing text, and deciding many documents, against Python and numpy."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

import numpy as np
from benchmarks.measure import Line, ratio

import entrepot as ep
from entrepot.filters.text import parse

if TYPE_CHECKING:
    from collections.abc import Iterator

ROWS = 10_000
TEXT = "country == 'UK' && (year >= 2020 || tags in ['a','b']) && not active == false"
PYTHON = "country == 'UK' and (year >= 2020 or tags in ['a','b']) and not active == False"
FILTER = "country == 'BG' && year >= 2020 && price < 50"


def lines() -> Iterator[Line]:
    """Measure the text of filters and the columns of the embedded store."""
    many = range(200)
    yield ratio(
        "parse a filter, against ast.parse of the same in Python",
        1.0,
        lambda: [parse(TEXT) for _ in many],
        lambda: [ast.parse(PYTHON, mode="eval") for _ in many],
    )
    yield _columns()


def _columns() -> Line:
    rng = np.random.default_rng(5)
    countries = ["BG", "DE", "FR", "UK"]
    country, year, price = rng.integers(0, 4, ROWS), rng.integers(2000, 2030, ROWS), rng.random(ROWS) * 100
    store = ep.SimpleVectorStore()
    store.add(
        ep.Document(
            None,
            id=str(row),
            metadata={
                "country": countries[int(country[row])],
                "year": int(year[row]),
                "price": float(price[row]),
            },
            vector=[1.0, 1.0],
        )
        for row in range(ROWS)
    )
    codes = country.astype(np.int32)
    years, year_codes = np.unique(year, return_inverse=True)
    prices, price_codes = np.unique(price, return_inverse=True)

    def plain() -> int:
        bulgaria = countries.index("BG")
        recent = int(np.searchsorted(years, 2020))
        cheap = int(np.searchsorted(prices, 50.0))
        return int(np.count_nonzero((codes == bulgaria) & (year_codes >= recent) & (price_codes < cheap)))

    assert store.count(FILTER) == plain()
    return ratio(
        "filter 10,000 rows, against numpy on coded columns",
        3.0,
        lambda: store.count(FILTER),
        plain,
        repetitions=200,
    )
