"""Names of tables: F10, D5."""

from __future__ import annotations

import pytest
from core.tests.filters.strategies import well_formed_text
from hypothesis import given

from entrepot_postgres.names import REGISTRY, Name, names_of, relation_of, stem_of


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


def test_tables_of_memories_are_apart() -> None:
    # F10, M6: from one another, also from a name that looks like another's digest, and from collections
    digested = stem_of("Chat Of Ours").removeprefix("entrepot_")
    names = [
        "chat",
        "Chat",
        "CHAT",
        "chat ",
        digested,
        "x" * 37,
        "x" * 38,
        "a" * 300,
        "ä",
        "%",
        "",
        "chat_messages",
    ]
    stems = [stem_of(name) for name in [*names, "Chat Of Ours"]]
    assert len(set(stems)) == len(stems)
    assert stem_of("chat") == "entrepot_chat"
    for stem in stems:
        tables = [f"{stem}_conversations", f"{stem}_messages"]
        assert all(len(table.encode()) <= 63 for table in tables)
        assert all(relation_of(table) != table for table in tables)


def test_percent_signs_are_no_placeholders() -> None:
    # F10: a name stands in statements with its percent signs doubled, and in values as it is
    name = Name("a%b", 'c"%s')
    assert name.as_string(None) == '"a%%b"."c""%%s"'
    assert name.text == '"a%b"."c""%s"'
