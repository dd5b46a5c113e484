"""Names in the engine: no two meet, and Milvus takes each. D5, F10."""

from __future__ import annotations

import re

from core.tests.filters.strategies import well_formed_text
from hypothesis import given

from entrepot_milvus.names import collection_name, key_name, partition_name, point_id

NAMES = well_formed_text(min_size=1, max_size=80)


def test_plain_names_stand_as_they_are() -> None:
    assert collection_name("articles_2") == "articles_2"
    assert collection_name("articles-2").startswith("_")
    assert collection_name("_articles").startswith("_")
    assert collection_name("_articles") != "_articles"
    assert key_name("year") == "year"
    assert key_name("a.b").startswith("-")


@given(NAMES, NAMES)
def test_names_never_meet(one: str, two: str) -> None:
    # D5
    assert (collection_name(one) == collection_name(two)) is (one == two)
    assert (partition_name(one, "ab") == partition_name(two, "ab")) is (one == two)
    assert (key_name(one) == key_name(two)) is (one == two)
    assert (point_id(one) == point_id(two)) is (one == two)


@given(NAMES)
def test_milvus_takes_every_name(name: str) -> None:
    assert re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,254}", collection_name(name))
    assert re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,254}", partition_name(name, "0" * 32))
    assert re.fullmatch(r"[0-9a-f]{32}", point_id(name))
    assert re.fullmatch(r"-?[A-Za-z0-9_]{1,24}", key_name(name))


def test_long_names_differ() -> None:
    names = ["x" * size for size in (99, 100, 101, 102, 511, 512)]
    assert len({collection_name(name) for name in names}) == len(names)


def test_generations_have_partitions_of_their_own() -> None:
    # D5
    assert partition_name(None, "a") != partition_name(None, "b")
    assert partition_name(None, "a") != partition_name("documents", "a")
