"""Names of tables: F10, D5."""

from __future__ import annotations

import pytest
from core.tests.filters.strategies import well_formed_text
from hypothesis import given

from entrepot_postgres.names import REGISTRY, names_of, relation_of


@pytest.mark.parametrize("name", ["articles", "a", "_x1", "a" * 63, "select", "user"])
def test_plain_names_stay(name: str) -> None:
    assert relation_of(name) == name


@pytest.mark.parametrize(
    "name",
    [
        "Articles",
        "a-b",
        "a b",
        'a"b',
        "a;drop",
        "1a",
        "a" * 64,
        "größe",
        REGISTRY,
        "entrepot_x",
        "pg_class",
        "'",
        "x\n",
    ],
)
def test_others_get_a_digest(name: str) -> None:
    assert relation_of(name).startswith("entrepot_")
    assert relation_of(name) not in (name, REGISTRY)


@given(well_formed_text(min_size=1, max_size=200))
def test_every_name_fits(name: str) -> None:
    relation = relation_of(name)
    assert len(relation.encode()) <= 63
    assert relation_of(relation) == relation or relation != name
    names = names_of("public", name)
    for identifier in (names.table, names.key, names.by_terms, names.by_words, names.by_vector):
        text = identifier.as_string(None)
        assert text.startswith('"')
        assert text.endswith('"')


def test_quotes_are_doubled() -> None:
    # F10
    assert names_of('s"; DROP TABLE x; --', "t").table.as_string(None) == '"s""; DROP TABLE x; --"."t"'
