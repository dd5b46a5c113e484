"""Reading collections that other software made, by `mapping=`: D5, D7, D9, F1 to F5, F9, F10, S1 to S5, S8, T1."""

from __future__ import annotations

import asyncio
import math
import random
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from plugins.milvus.tests.servers import target
from pymilvus import DataType, MilvusClient  # type: ignore[import-untyped]

import entrepot as ep
from entrepot import Document, F, SearchRequest
from entrepot.errors import (
    CollectionMismatchError,
    CollectionNotFoundError,
    ConfigurationError,
    RequestError,
    UnknownOptionError,
    UnsupportedError,
    UnsupportedSearchModeError,
)
from entrepot.filters import Expression, FilterOp, Key, Value, evaluate
from entrepot_conformance.hostile import HOSTILE
from entrepot_milvus import MappedMilvusLiteVectorStore, MappedMilvusVectorStore
from entrepot_milvus.expressions import literal, rendered
from entrepot_milvus.mapped_filters import MappedFilterConverter
from entrepot_milvus.mapped_layout import layout_of
from entrepot_milvus.mapping import collection_mapping

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

Mapped = MappedMilvusLiteVectorStore | MappedMilvusVectorStore
CLIENT: Any = MilvusClient
SIZE = 3
QUERY = [1.0, 0.5, -0.25]
MAPPING: dict[str, Any] = {
    "text": "body",
    "metadata": "meta",
    "fields": {
        "name": "s",
        "year": "i",
        "small": "i8",
        "price": "d",
        "weight": "f",
        "open": "b",
        "tags": "a",
    },
}
SCALARS = {
    "s": DataType.VARCHAR,
    "i": DataType.INT64,
    "i8": DataType.INT8,
    "d": DataType.DOUBLE,
    "f": DataType.FLOAT,
    "b": DataType.BOOL,
}


def vector(n: int) -> list[float]:
    """Return a vector of any norm; every seventh is the same."""
    m = 3 if n % 7 == 0 else n
    return [math.sin(m) * 3, math.cos(m * 2), 0.5 + m % 5]


def fields_of(kind: DataType, *, dynamic: bool = True, more: dict[str, Any] | None = None) -> Any:
    schema = CLIENT.create_schema(auto_id=False, enable_dynamic_field=dynamic)
    schema.add_field(
        "pk", kind, is_primary=True, **({"max_length": 2048} if kind is DataType.VARCHAR else {})
    )
    schema.add_field("vec", DataType.FLOAT_VECTOR, dim=SIZE)
    schema.add_field("body", DataType.VARCHAR, max_length=1000)
    for name, scalar in SCALARS.items():
        schema.add_field(name, scalar, **({"max_length": 2048} if scalar is DataType.VARCHAR else {}))
    schema.add_field("a", DataType.ARRAY, element_type=DataType.INT64, max_capacity=10)
    schema.add_field("meta", DataType.JSON)
    for name, options in (more or {}).items():
        schema.add_field(name, **options)
    return schema


def make_collection(client: Any, name: str, schema: Any, index: str = "FLAT", metric: str = "COSINE") -> None:
    client.create_collection(name, schema=schema, consistency_level="Strong")
    indexes = CLIENT.prepare_index_params()
    params = {"IVF_FLAT": {"nlist": 16}, "HNSW": {"M": 8, "efConstruction": 64}}
    options: dict[str, Any] = {"params": params[index]} if index in params else {}
    indexes.add_index("vec", index_name="theirs", index_type=index, metric_type=metric, **options)
    client.create_index(name, indexes, sync=False)
    client.load_collection(name)


STRINGS = ["", "a", "B", "b ", "é", "e\u0301", "𠀀", '"', "\\", '" or pk != "', "a\nb", "2020", "true", "{x}"]
INTEGERS = [0, 1, 5, -5, 2**53, 2**53 + 1, 2**63 - 1, -(2**63) + 1, -(2**63)]
SMALL = [0, 5, -5, 127, -128]
DOUBLES = [0.0, -0.0, 5.0, 0.1, 0.1 + 0.2, 5e-324, 1.7976931348623157e308, math.inf, -math.inf, math.nan]
FLOATS = [0.0, 5.0, 0.10000000149011612, 3.4028234663852886e38, math.inf, math.nan, -1.5]
JSON: list[Any] = [
    "a", "é", '"', 5, 5.0, 0.1, True, False, ["a", 5], [], None, [None, True], {"x": 1}, [[1]], 2**53 + 1, -5, "{", "5",
]  # fmt: skip


def row(n: int, rng: random.Random) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a row, and what its metadata is, by D3, F1 and the words of the documentation."""
    meta = {key: rng.choice(JSON) for key in ("j", "k-1", "odd key") if rng.random() < 0.8}
    scalars: dict[str, Any] = {
        "s": rng.choice(STRINGS), "i": rng.choice(INTEGERS), "i8": rng.choice(SMALL), "d": rng.choice(DOUBLES),
        "f": rng.choice(FLOATS), "b": rng.random() < 0.5, "a": rng.choices([1, 5, -5], k=rng.randrange(3)),
    }  # fmt: skip
    held = {"pk": n, "vec": vector(n), "body": f"text {n}", **scalars, "meta": meta}
    metadata: dict[str, Any] = {key: scalars[name] for key, name in MAPPING["fields"].items()}
    metadata |= {key: flat for key, value in meta.items() if (flat := in_metadata(value)) is not None}
    return held, {key: value for key, value in metadata.items() if not is_odd(value)}


def is_odd(value: Any) -> bool:
    return isinstance(value, float) and not math.isfinite(value)


def in_metadata(value: Any) -> Any:
    if value == {"x": 1}:
        return '{"x": 1}'
    if value == [[1]]:
        return ["[1]"]
    return [True] if value == [None, True] else value


OPERANDS: dict[str, list[Any]] = {
    "str": [*STRINGS, "[1]", '{"x": 1}'],
    "int": [*INTEGERS, 127, -128, 128, -129],
    "float": [
        5.0,
        5.5,
        0.1,
        0.10000000149011612,
        0.1 + 0.2,
        -0.0,
        1e300,
        -1e300,
        3.5e38,
        5e-324,
        -(2.0**63),
        2.0**63,
    ],
    "bool": [True, False],
}
KEYS = ["name", "year", "small", "price", "weight", "open", "tags", "j", "k-1", "odd key", "missing"]
OWN = {"name": "str", "year": "int", "small": "int", "price": "float", "weight": "float", "open": "bool"}


def make_filter(rng: random.Random, size: int) -> Expression:
    """Make a filter of some comparisons."""
    if size > 1:
        left = rng.randrange(1, size)
        one, other = make_filter(rng, left), make_filter(rng, size - left)
        made = one & other if rng.random() < 0.5 else one | other
        return ~made if rng.random() < 0.3 else made
    key = rng.choice(KEYS)
    kind = OWN.get(key, "str") if rng.random() < 0.5 else rng.choice(list(OPERANDS))
    op = rng.choice([each for each in FilterOp if each not in {FilterOp.AND, FilterOp.OR, FilterOp.NOT}])
    if op in {FilterOp.ISNULL, FilterOp.ISNOTNULL}:
        return Expression(op, Key(key))
    if op in {FilterOp.IN, FilterOp.NIN}:
        pool = [*OPERANDS[kind], *OPERANDS[rng.choice(list(OPERANDS))]]
        return Expression(op, Key(key), Value(rng.choices(pool, k=rng.randrange(4))))
    if kind == "bool" and op not in {FilterOp.EQ, FilterOp.NE}:
        kind = "int"
    made = Expression(op, Key(key), Value(rng.choice(OPERANDS[kind])))
    return ~made if rng.random() < 0.3 else made


# --- where ------------------------------------------------------------------------------------------------


@pytest.fixture
def lite(tmp_path: Path) -> Iterator[tuple[Any, Callable[..., Mapped], str]]:
    client = MilvusClient(str(tmp_path / "theirs.db"))
    opened: list[Mapped] = []

    def store(**options: Any) -> Mapped:
        given: dict[str, Any] = {"client": client, "collection": "theirs", **options}
        opened.append(MappedMilvusLiteVectorStore(**given))
        return opened[-1].connect()

    yield client, store, "theirs"
    for each in opened:
        each.close()
    client.close()


@pytest.fixture
def served(server: str, admin: Any, name: str) -> Iterator[tuple[Any, Callable[..., Mapped], str]]:
    opened: list[Mapped] = []

    def store(**options: Any) -> Mapped:
        given: dict[str, Any] = {**target(server), "collection": name, **options}
        opened.append(MappedMilvusVectorStore(**given))
        return opened[-1].connect()

    yield admin, store, name
    for each in opened:
        each.close()


def filled(
    place: Any, number: int, kind: DataType = DataType.INT64, **options: Any
) -> dict[str, dict[str, Any]]:
    """Make a collection as another program does; return metadata by id."""
    client, _, name = place
    make_collection(client, name, fields_of(kind, dynamic=False), **options)
    rng = random.Random(20261130)
    rows: list[dict[str, Any]] = []
    documents: dict[str, dict[str, Any]] = {}
    for n in range(number):
        held, metadata = row(n, rng)
        rows.append({**held, "pk": f"doc {n}" if kind is DataType.VARCHAR else n})
        documents[str(rows[-1]["pk"])] = metadata
    client.upsert(name, rows)
    return documents


def test_everything_that_reads_in_lite(lite: Any) -> None:
    # D5, D7, D9, F9, S1 to S5, S8, T1
    check_reading(lite, DataType.VARCHAR)


def test_everything_that_reads_on_a_server(served: Any) -> None:
    # D5, D7, D9, F9, S1 to S5, S8, T1
    check_reading(served, DataType.INT64)


def check_reading(place: Any, kind: DataType) -> None:
    _, make, _ = place
    assert not make(mapping=MAPPING).collection_exists()
    documents = filled(place, 40, kind)
    store, names = make(mapping=MAPPING), list(documents)
    assert store.collection_exists()
    assert (store.count(), store.stats().dimension, store.stats().metric) == (40, SIZE, "cosine")

    got = store.get([names[7], "unknown", names[4], "07"], include=["text", "metadata", "vector"])
    assert [(each.id, each.text, each.metadata) for each in got] == [
        (names[7], "text 7", documents[names[7]]),
        (names[4], "text 4", documents[names[4]]),
    ]
    unit = np.array(vector(7)) / np.linalg.norm(vector(7))
    assert np.allclose(np.asarray(got[0].vector), unit, atol=1e-6)

    asked = np.array(QUERY)
    held = np.array([vector(n) for n in range(40)])
    cosines = held @ asked / np.linalg.norm(held, axis=1) / np.linalg.norm(asked)
    scores = dict(zip(names, ((1 + cosines) / 2).tolist(), strict=True))
    for given in (None, F.year >= 0, (F.name != "a") & (F.j == "a"), F.open == True, F.year == 99):  # noqa: E712
        match = [each for each in names if given is None or evaluate(given, documents[each])]
        assert store.count(given) == len(match)
        found = list(store.scan(given, batch_size=7))
        assert {each.id: each.metadata for each in found} == {each: documents[each] for each in match}
        assert len(found) == len(match)
        order = sorted(match, key=lambda each: (-round(scores[each], 6), each))[:10]
        for exact in (False, True):
            hits = store.similarity_search(SearchRequest(vector=QUERY, top_k=10, filter=given, exact=exact))
            assert [hit.id for hit in hits] == order
            assert [hit.score for hit in hits] == pytest.approx([scores[each] for each in order], abs=1e-4)
    assert names[0] not in [
        hit.id for hit in store.similarity_search(SearchRequest(near_id=names[0], top_k=5))
    ]
    some = store.similarity_search(SearchRequest(vector=QUERY, ids=[names[2], names[9], "none"]))
    assert {hit.id for hit in some} == {names[2], names[9]}
    assert store.similarity_search(SearchRequest(vector=QUERY, ids=["none"])) == []
    view = store.where(F.open == True)  # noqa: E712
    inside = [each for each in names if documents[each]["open"]]
    assert (view.count(), view.get([each for each in names if each not in inside])) == (len(inside), [])
    page = next(store.scan(batch_size=11).pages())
    rest = [each.id for each in store.scan(batch_size=11, token=page.token)]
    assert sorted([*(each.id for each in page.items), *rest]) == sorted(names)
    check_async(store, names)


def check_async(store: Mapped, names: list[str]) -> None:
    # E3
    query = SearchRequest(vector=QUERY, filter=F.year < 6, top_k=100)

    async def main() -> Any:
        return [
            await store.acount(F.year < 6),
            await store.asimilarity_search(query),
            await store.aget(names),
            [document async for document in store.ascan(batch_size=6)],
        ]

    expected = [store.count(F.year < 6), store.similarity_search(query), store.get(names), list(store.scan())]
    assert asyncio.run(main()) == expected


# --- filters ----------------------------------------------------------------------------------------------


def check_filters(store: Mapped, documents: dict[str, dict[str, Any]], number: int) -> None:
    rng = random.Random(7)
    exact = 0
    for _ in range(number):
        given = make_filter(rng, rng.choice((1, 1, 1, 2, 3, 5)))
        wanted = {name for name, metadata in documents.items() if evaluate(given, metadata)}
        assert {each.id for each in store.scan(given, batch_size=1000, include=[])} == wanted, str(given)
        exact += store.explain(given).exact
    assert exact > number // 4


def test_random_filters_in_lite(lite: Any) -> None:
    # F1 to F5, F9
    documents = filled(lite, 60)
    check_filters(lite[1](mapping=MAPPING), documents, 300)


@pytest.mark.parametrize(
    "indexed",
    [False, pytest.param(True, marks=pytest.mark.slow)],
    ids=["as it came", "flushed, with scalar indexes"],
)
def test_random_filters_on_a_server(served: Any, indexed: bool) -> None:
    # F1 to F5, F9
    client, make, name = served
    documents = filled(served, 150)
    if indexed:
        client.release_collection(name)
        client.flush(name)
        indexes = CLIENT.prepare_index_params()
        for field in ("s", "i", "d", "f"):
            indexes.add_index(
                field, index_name=f"of_{field}", index_type="Trie" if field == "s" else "STL_SORT"
            )
        client.create_index(name, indexes)
        client.load_collection(name)
    assert make(mapping=MAPPING).count() == len(documents)  # waits for what was written; the rest need not
    check_filters(make(mapping=MAPPING, consistency="eventually"), documents, 300)


def test_scalar_fields_are_exact_and_json_is_not(lite: Any) -> None:
    # F9: "year" has the least integer among its values, which no expression names
    filled(lite, 1)
    store = lite[1](mapping=MAPPING)
    assert not store.explain("name == 'a'").exact  # what the collection has is not known yet
    assert store.count() == 1
    for text in (
        "name == 'a'", "name != '\"'", "name > 'é'", "not name <= 'b'", "name in ['a', 5]", "name is null",
        "year == 5", "year >= 5.5", "not year < 1e300", "year in [5, 6]", "small > 200", "price < 0.1",
        "not price >= 0.1", "price is not null", "weight == 0.1", "open == true", "open in [true, false]", "name == 5",
        "year == 'a'", "missing is null and name == 'a' or year == 7" , "name > datetime '2020-01-01T00:00:00Z'",
    ):  # fmt: skip
        assert store.explain(text).exact is ("missing" not in text), text
    for text in (
        "tags == 5",
        "j == 'a'",
        "j != 'a'",
        "j > 5",
        "`odd key` == 1",
        "year == -9223372036854775808",
    ):
        assert not store.explain(text).exact, text


def converter(**more: Any) -> MappedFilterConverter:
    fields: list[dict[str, Any]] = [
        {"name": "pk", "type": DataType.VARCHAR, "is_primary": True, "params": {}},
        {"name": "vec", "type": DataType.FLOAT_VECTOR, "params": {"dim": 2}},
        {"name": "s", "type": DataType.VARCHAR, "params": {}, **more},
        {"name": "f", "type": DataType.FLOAT, "params": {}},
    ]
    found: dict[str, Any] = {"fields": fields, "enable_dynamic_field": True}
    layout = layout_of(found, {"metric_type": "L2", "index_type": "FLAT"}, "c", collection_mapping({}))
    return MappedFilterConverter(layout, served=True)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (F.s == 'a"b\\c\n', r's == "a\"b\\c\n"'),
        (~(F.s > "é"), 's <= "é"'),
        (F.s.in_(["a", 5, "b"]), '(s in ["a", "b"])'),
        (~F.s.in_(["a", "b"]), '(s not in ["a", "b"])'),
        (F.s.is_null(), '(pk >= "" and pk < "")'),
        (
            F.f > 0.1,
            "(f >= 0.10000000149011612 and (f >= -3.4028234663852886e+38 and f <= 3.4028234663852886e+38))",
        ),
        (F.dyn == "x", '($meta["dyn"] == "x" or json_contains($meta["dyn"], "x"))'),
        (F.dyn != "x", '(pk >= "" or pk < "")'),
        (F["a]b"] == "x", '(pk >= "" or pk < "")'),
        (F.dyn == "{", '(pk >= "" or pk < "")'),
        (F.dyn == 2**53, '(pk >= "" or pk < "")'),
    ],
    ids=str,
)
def test_filters_as_they_are_sent(given: Expression, expected: str) -> None:
    # F2 to F5, F9, F10
    assert rendered(converter().convert(given).query) == expected


def test_null_is_left_to_the_core() -> None:
    # F1, F3, F9: versions differ about null below a negation
    asked = converter(nullable=True)
    assert rendered(asked.convert(F.s == "a").query) == 's == "a"'
    for given in (F.s == "a", F.s != "a", ~(F.s < "a"), F.s.is_null(), F.s.is_not_null()):
        assert not asked.convert(given).exact
    assert rendered(asked.convert(F.s != "a").query) == '(pk >= "" or pk < "")'


def test_filters_beyond_what_the_engine_takes() -> None:
    # F6, F9
    many = F.s == "0"
    for n in range(1, 500):
        many &= F.s != f"{n}"
    converted = converter().convert(many)
    assert not converted.exact
    assert rendered(converted.query).count("!=") < 401


def test_deep_and_wide_filters_on_a_server(served: Any) -> None:
    # F6, F9
    documents = filled(served, 30)
    store = served[1](mapping=MAPPING)
    deep = F.price > 0.5
    for n in range(45):
        deep = (
            (deep | (F.price == n + 0.5)) & ~(F.j.in_(["x"] * 5 + [f"{n}"]))
            if n % 2
            else deep | (F.year == n)
        )
    wide = F.j.in_([*"abcdefgh", 1, 2])
    for n in range(300):
        wide |= F.j.in_([f"{n}", n, "a"]) | ~(F.weight < n)
    listed = F.name.in_([f"{n}" for n in range(5000)] + ["a"]) | F.j.in_([f"{n}" for n in range(500)] + ["a"])
    for given in (deep, wide, listed):
        wanted = sum(evaluate(given, metadata) for metadata in documents.values())
        assert store.count(given) == wanted


# --- ids and texts ----------------------------------------------------------------------------------------


def check_words(place: Any) -> None:
    client, make, name = place
    words = [word for word in dict.fromkeys([*STRINGS, *HOSTILE]) if 0 < len(word.encode()) <= 500]
    make_collection(client, name, fields_of(DataType.VARCHAR))
    common: dict[str, Any] = {
        "vec": [1.0, 0.0, 0.0],
        "i": 1,
        "i8": 1,
        "d": 1.0,
        "f": 1.0,
        "b": True,
        "a": [],
        "meta": {},
    }
    client.upsert(name, [{"pk": word, "body": word, "s": word, "dyn": word, **common} for word in words])
    store = make(mapping={"text": "body"})
    assert [(each.id, each.text) for each in store.get(words)] == [(word, word) for word in words]
    assert sorted(each.id for each in store.scan(batch_size=9)) == sorted(words)
    some = words[::7]
    assert {each.id for each in store.scan(F.s.in_(some), include=[])} == set(some)
    assert {each.id for each in store.scan(~F.s.in_(some), include=[])} == set(words) - set(some)
    for word in [*STRINGS[1:], *some[::4]]:
        assert [each.id for each in store.scan(F.s == word, include=[])] == [word]
        assert store.count(F.s <= word) == sum(other <= word for other in words)
    for word in STRINGS[1::5]:
        assert store.count(F.dyn == word) == 1
        assert store.count(F.dyn != word) == len(words) - 1


def test_ids_and_values_are_data_in_lite(lite: Any) -> None:
    # D1, D4, F10
    check_words(lite)


def test_ids_and_values_are_data_on_a_server(served: Any) -> None:
    # D1, D4, F10
    check_words(served)


def test_literals() -> None:
    # F10: nothing ends a text but its own quote
    assert literal('"') == r'"\""'
    assert literal("\\") == r'"\\"'
    assert literal("a\tb\r\n{c}'%") == '"a\\tb\\r\\n{c}\'%"'
    assert (literal(True), literal(5), literal(-0.5), literal(1e300)) == ("true", "5", "-0.5", "1e+300")


def test_another_field_as_id(lite: Any) -> None:
    # D1: unique, or refused
    client, make, name = lite
    filled(lite, 0)
    rng = random.Random(1)
    client.upsert(name, [{**row(n, rng)[0], "i": 100 + n, "s": "same"} for n in range(5)])
    store = make(mapping={"id": "i"})
    assert sorted(each.id for each in store.scan(batch_size=2)) == ["100", "101", "102", "103", "104"]
    assert [each.id for each in store.get(["103", "3"])] == ["103"]
    wrong = make(mapping={"id": "s"})
    with pytest.raises(CollectionMismatchError, match="unique"):
        list(wrong.scan())
    with pytest.raises(CollectionMismatchError, match="unique"):
        wrong.similarity_search(SearchRequest(vector=QUERY, top_k=5))
    client.upsert(name, [{**row(9, rng)[0], "s": ""}])
    with pytest.raises(CollectionMismatchError, match="empty"):
        list(make(mapping={"id": "s"}).scan(F.body == "text 9"))


# --- layouts and indexes ----------------------------------------------------------------------------------


def check_layouts(place: Any) -> None:
    """Collections as LangChain and LlamaIndex describe theirs, made by the driver."""
    client, make, name = place
    schema = CLIENT.create_schema(auto_id=False, enable_dynamic_field=True)
    schema.add_field("id", DataType.VARCHAR, is_primary=True, max_length=100)
    schema.add_field("vec", DataType.FLOAT_VECTOR, dim=2)
    schema.add_field("text", DataType.VARCHAR, max_length=1000)
    schema.add_field("source", DataType.VARCHAR, max_length=1000)
    make_collection(client, name, schema, "HNSW", "L2")
    rows = [
        {"id": f"n{n}", "vec": [1.0, n], "text": f"t{n}", "source": "a", "year": 2000 + n, "doc_id": "d"}
        for n in range(9)
    ]
    client.upsert(name, rows)
    store = make(mapping={"text": "text"})
    (found,) = store.scan("year == 2003 and source == 'a'")
    assert (found.id, found.text, found.metadata) == (
        "n3",
        "t3",
        {"year": 2003, "doc_id": "d", "source": "a"},
    )
    assert store.count("year > 2003") == 5
    hits = store.similarity_search(SearchRequest(vector=[1.0, 2.1], top_k=2, filter="year != 2002"))
    assert [(hit.id, hit.score) for hit in hits] == [
        ("n3", pytest.approx(1 / 1.81, abs=1e-4)),
        ("n1", pytest.approx(1 / 2.21, abs=1e-4)),
    ]
    renamed = make(mapping={"id": "id", "fields": {"origin": "source"}})
    assert next(iter(renamed.scan(F.year == 2003))).metadata == {
        "year": 2003, "doc_id": "d", "origin": "a", "text": "t3",
    }  # fmt: skip


def test_the_dynamic_field_in_lite(lite: Any) -> None:
    # D5
    check_layouts(lite)


def test_the_dynamic_field_on_a_server(served: Any) -> None:
    # D5
    check_layouts(served)


@pytest.mark.parametrize(("index", "metric"), [("IVF_FLAT", "L2"), ("HNSW", "IP"), ("AUTOINDEX", "COSINE")])
def test_indexes_on_a_server(served: Any, index: str, metric: str) -> None:
    # S2, S4: approximate, and exact on demand
    client, make, name = served
    make_collection(client, name, fields_of(DataType.INT64, dynamic=False), index, metric)
    rng = random.Random(3)
    rows = [row(n, rng)[0] for n in range(300)]
    for each in rows:
        each["vec"] = (np.array(each["vec"]) / np.linalg.norm(each["vec"])).tolist()
    client.upsert(name, rows)
    store = make(mapping=MAPPING)
    assert store.count() == 300
    assert store.capabilities.ann
    assert store.stats().metric == {"L2": "euclidean", "IP": "dot", "COSINE": "cosine"}[metric]
    held = np.array([each["vec"] for each in rows])
    query = np.array(QUERY) / np.linalg.norm(QUERY)
    best = 1 / (1 + ((held - query) ** 2).sum(1)) if metric == "L2" else (1 + held @ query) / 2
    for exact in (False, True):
        hits = store.similarity_search(
            SearchRequest(vector=query.tolist(), top_k=250, exact=exact, filter=F.price <= 9e9)
        )
        good = [
            score
            for score, each in zip(best.tolist(), rows, strict=True)
            if each["d"] <= 9e9 and each["d"] > -9e9
        ]
        assert len(hits) == len(good)
        assert [hit.score for hit in hits] == pytest.approx(sorted(good, reverse=True), abs=1e-4)


def test_the_least_and_the_greatest_key(lite: Any) -> None:
    # D7
    filled(lite, 0)
    rng = random.Random(2)
    ends = (-(2**63), -(2**63) + 1, 0, 2**63 - 1)
    lite[0].upsert("theirs", [{**row(0, rng)[0], "pk": key} for key in ends])
    store = lite[1](mapping=MAPPING)
    assert [each.id for each in store.scan(batch_size=2)] == [str(key) for key in ends]
    assert [each.id for each in store.get([str(key) for key in ends[1:]])] == [str(key) for key in ends[1:]]


def test_dot_asks_for_norm_1(lite: Any) -> None:
    # D9
    filled(lite, 5, metric="IP")
    with pytest.raises(CollectionMismatchError, match="norm"):
        lite[1](mapping=MAPPING).similarity_search(SearchRequest(vector=[0.6, 0.8, 0.0], top_k=5))


def test_partitions_and_aliases(served: Any) -> None:
    # D5
    client, make, name = served
    filled(served, 4)
    client.create_partition(name, "some")
    client.upsert(name, [{**row(70, random.Random(1))[0]}], partition_name="some")
    client.create_alias(name, f"{name}_alias")
    try:
        store = make(mapping=MAPPING, collection=f"{name}_alias")
        assert store.count() == 5
        part = make(mapping=MAPPING, partition="some", consistency="eventually")
        assert [each.id for each in part.scan()] == ["70"]
        assert part.get(["1", "70"])[0].id == "70"
        client.release_collection(name)
        assert make(mapping=MAPPING).count() == 5
    finally:
        client.drop_alias(f"{name}_alias")


# --- what is refused --------------------------------------------------------------------------------------


def test_nothing_is_ever_written(lite: Any) -> None:
    # D5, S9: refused before any I/O
    filled(lite, 3)
    store = lite[1](mapping=MAPPING)
    for writer in (store, store.where(F.year == 0)):
        for call in (
            lambda writer=writer: writer.add([Document("x", vector=QUERY)]),
            lambda writer=writer: writer.update(["0"], set={"year": 1}),
            lambda writer=writer: writer.delete(["0"]),
            lambda writer=writer: writer.delete(filter=F.year == 0),
            writer.delete_all,
            writer.create_collection,
            writer.drop_collection,
        ):
            with pytest.raises(UnsupportedError):
                call()
    assert (store.count(), store.list_collections()) == (3, [])
    for mode in ("fulltext", "hybrid"):
        with pytest.raises(UnsupportedSearchModeError):
            store.similarity_search("text", mode=mode)
    with pytest.raises(RequestError, match="token"):
        list(store.scan(token="x"))


@pytest.mark.parametrize(
    ("mapping", "kind", "told"),
    [
        ("id", ConfigurationError, "dict"),
        ({"ident": "id"}, UnknownOptionError, "id"),
        ({"id": ""}, ConfigurationError, "empty"),
        ({"text": 5}, ConfigurationError, "str"),
        ({"fields": "source"}, ConfigurationError, "fields"),
        ({"fields": {"": "source"}}, ConfigurationError, "metadata key"),
        ({"fields": {"k": 'i == 1 or "'}}, CollectionMismatchError, "no field"),
        ({"fields": {"k": "vec"}}, CollectionMismatchError, "no field 'vec'"),
        ({"metadata": "s"}, CollectionMismatchError, "of the type json"),
        ({"id": "d"}, CollectionMismatchError, "str or int64"),
        ({"text": "i"}, CollectionMismatchError, "of the type str"),
        ({"vector": "nowhere"}, CollectionMismatchError, "no float vectors 'nowhere'"),
    ],
    ids=repr,
)
def test_mappings_that_cannot_be(lite: Any, mapping: Any, kind: type[Exception], told: str) -> None:
    # E1, D5
    filled(lite, 0)

    def tried() -> None:
        lite[1](mapping=mapping).count()

    with pytest.raises(kind, match=told) as caught:
        tried()
    assert "hint" in str(caught.value)


def test_collections_that_cannot_be_read(lite: Any) -> None:
    # D5: without a mapping a collection of others is refused
    client, make, name = lite
    for missing in ("none", "not a name"):
        with pytest.raises(CollectionNotFoundError):
            make(mapping={}, collection=missing).count()
    filled(lite, 2)
    url = f"milvus-lite://?collection={name}"
    with ep.open_vector_store(url, mapping=MAPPING, client=client) as store:
        assert store.count() == 2
    with (
        pytest.raises(CollectionMismatchError, match="not made by this library"),
        ep.open_vector_store(url, client=client) as store,
    ):
        store.count()
    with pytest.raises(CollectionMismatchError, match="dimension"):
        make(mapping=MAPPING, dimension=5).count()
    with pytest.raises(CollectionMismatchError, match="metric"):
        make(mapping=MAPPING, metric="dot").count()
    client.create_collection("bare", schema=fields_of(DataType.INT64))
    with pytest.raises(CollectionMismatchError, match="no index"):
        make(mapping=MAPPING, collection="bare").count()
