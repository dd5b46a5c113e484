"""Filters over payloads of other software, against the evaluator: F1 to F5, F9, F10."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any, cast

import pytest
import qdrant_edge as edge
from plugins.qdrant.tests.test_edge import of_edge
from qdrant_client import QdrantClient, models

from entrepot.filters import Expression, Leaf, Translation, evaluate, nothing, parse_filter
from entrepot_conformance import fuzz
from entrepot_qdrant import MappedQdrantLocalVectorStore
from entrepot_qdrant.mapped_fields import metadata_of
from entrepot_qdrant.mapped_filters import MappedFilterConverter
from entrepot_qdrant.mapping import collection_mapping

if TYPE_CHECKING:
    from pathlib import Path

    from entrepot_qdrant.layouts import Condition

Payloads = dict[str, dict[str, Any]]
Found = Callable[[models.Filter], set[str]]

KINDS = {"b": "datetime"}
MAPPING: dict[str, Any] = {"id": "name", "metadata": "m d", "kinds": KINDS}
ODD: dict[str, Any] = {
    "null": None,
    "nulls": [None, None],
    "some null": [None, 1, "a"],
    "mixed": [1, "a", True, 2.5],
    "object": {"b": 1, "a": [1, 2.5]},
    "objects": [{"b": 1}, [1]],
    "empty": {},
    "float": 5.0,
    "near": 4.999999999999999,
    "sum": 0.1 + 0.2,
    "big": 2**53 + 1,
    "last": 2**63 - 1,
    "beyond": 2**63,
    "instant": "2020-01-01T00:00:00.000001Z",
    "naive": "2020-01-01T00:00:00",
    "day": "2020-01-01",
    "zone": "2020-01-01T03:00:00+03:00",
    "nanoseconds": "2020-01-01T00:00:00.0000005Z",
}
TEXTS = (
    "k is null", "k is not null", "k == 5", "k != 5.0", "k >= 5", "k < 5", "not k < 5", "k == 2.5", "k != 2.5",
    "k == 0.30000000000000004", "k == 0.3", "not k > 0.3", "k > 9007199254740992", "k == 9007199254740993",
    "k != 9007199254740992", "k != 9223372036854775807", "k not in [9223372036854775807, 5]",
    "k >= 9223372036854775807", "not k >= 9223372036854775807", "k == true",
    "k != true", "k in ['a', 1, 2.5]", "k not in ['a', 1, 2.5]", "k > 'a'", "not k >= 'a'",
    "k == '{\"a\": [1, 2.5], \"b\": 1}'", "k != '[1]'", "k == '2020-01-01T00:00:00.000001Z'",
    "k != '2020-01-01'", "k == datetime '2020-01-01T00:00:00Z'", "k != datetime '2020-01-01T00:00:00Z'",
    "k > datetime '2020-01-01T00:00:00Z'", "not k > datetime '2020-01-01T00:00:00Z'",
    "k < datetime '9999-12-31T23:59:59.999999Z'", "k >= datetime '0001-01-01T00:00:00Z'", "k in []",
)  # fmt: skip


def as_json(value: Any) -> Any:
    """Return a value as JSON knows it: a datetime is a string there."""
    if isinstance(value, list):
        return [as_json(each) for each in value]  # pyright: ignore[reportUnknownVariableType]
    return value.isoformat() if isinstance(value, datetime) else value


class WithoutBooleans(MappedFilterConverter):
    """Leaves booleans to the core: the binding of the engine takes True for 1."""

    def leaf(self, leaf: Leaf) -> Translation[Condition]:
        values = leaf.value if isinstance(leaf.value, tuple) else (leaf.value,)
        return nothing() if any(isinstance(value, bool) for value in values) else super().leaf(leaf)


def payloads_of(documents: dict[str, Any]) -> Payloads:
    return {
        name: {"name": name, "m d": {key: as_json(value) for key, value in metadata.items()}}
        for name, metadata in documents.items()
    }


def local(payloads: Payloads) -> Found:
    client = QdrantClient(":memory:")
    client.create_collection("c", models.VectorParams(size=1, distance=models.Distance.DOT))
    points = [
        models.PointStruct(id=n, vector=[1.0], payload=each) for n, each in enumerate(payloads.values())
    ]
    client.upsert("c", points)

    def found(condition: models.Filter) -> set[str]:
        got, _ = client.scroll("c", condition, limit=len(points))
        return {cast("dict[str, Any]", each.payload)["name"] for each in got}

    return found


def on_edge(payloads: Payloads, folder: Path, indexes: dict[str, str]) -> tuple[Found, Payloads]:
    """Return the engine, and the payloads as it gives them back."""
    shard = edge.EdgeShard.create(
        str(folder), edge.EdgeConfig(vectors=edge.EdgeVectorParams(1, edge.Distance.Dot))
    )
    points = [edge.Point(n, [1.0], each) for n, each in enumerate(payloads.values())]
    shard.update(edge.UpdateOperation.upsert_points(points))
    for path, kind in indexes.items():
        schema = getattr(edge.PayloadSchemaType, kind.capitalize())
        shard.update(edge.UpdateOperation.create_field_index(path, schema))

    def asked(condition: Any) -> dict[str, dict[str, Any]]:
        request = edge.ScrollRequest(
            limit=len(points) + 1, with_payload=True, with_vector=False, filter=condition
        )
        got, _ = shard.scroll(request)
        return {cast("Any", each.payload)["name"]: cast("Any", each.payload) for each in got}

    return (lambda condition: set(asked(of_edge(condition)))), asked(None)


def matcher(
    found: Found,
    payloads: Payloads,
    indexes: dict[str, str] | None,
    converting: type[MappedFilterConverter] = MappedFilterConverter,
) -> Callable[[Expression], set[str]]:
    """Return what a store finds: what comes, looked at by the core if it is not exact."""
    mapping = collection_mapping(MAPPING)
    metadata = {name: metadata_of(payload, mapping) for name, payload in payloads.items()}

    def matches(expression: Expression) -> set[str]:
        converted = converting(mapping, indexes).convert(expression)
        names = found(models.Filter(must=[converted.query]))
        if converted.exact:
            return names
        return {name for name in names if evaluate(expression, metadata[name])}

    return matches


def read(payloads: Payloads) -> dict[str, Any]:
    mapping = collection_mapping(MAPPING)
    return {name: metadata_of(payload, mapping) for name, payload in payloads.items()}


INDEXES: list[dict[str, str]] = [
    {},
    *(
        {f'"m d".{key}': kind for key in ("a", "b", '"a.b"', "and", '"$gt"', "k")}
        for kind in ("integer", "float", "keyword", "datetime", "bool", "uuid", "text")
    ),
]


@pytest.mark.parametrize("engine", ["local", *range(len(INDEXES))])
def test_odd_values(tmp_path: Path, engine: int | str) -> None:
    # F1 to F5: "b" is a key of instants
    payloads = payloads_of({"absent": {}, **{name: {"k": value, "b": value} for name, value in ODD.items()}})
    indexes: dict[str, str] = {} if engine == "local" else INDEXES[cast("int", engine)]
    if engine == "local":
        found = local(payloads)
    else:
        found, payloads = on_edge(payloads, tmp_path / "shard", indexes)
    converting = MappedFilterConverter if engine == "local" else WithoutBooleans
    matches = matcher(found, payloads, indexes, converting)
    documents = read(payloads)
    for text in (*TEXTS, *(text.replace("k ", "b ") for text in TEXTS)):
        expression = parse_filter(text)
        wanted = {name for name, metadata in documents.items() if evaluate(expression, metadata)}
        assert matches(expression) == wanted, text


def test_integers_by_the_word_of_the_mapping(tmp_path: Path) -> None:
    # F4, F9: exact, also where an index holds integers alone
    mapping = collection_mapping({"id": "name", "kinds": {"year": "int"}})
    payloads = {f"{n}": {"name": f"{n}", "year": n} for n in (-(2**53) + 1, -1, 0, 1, 5, 6, 2**53 - 1)}
    for indexes in ({}, {"year": "integer"}, {"year": "float"}):
        found, _ = on_edge(payloads, tmp_path / f"{len(indexes)}{indexes}", indexes)
        converter = MappedFilterConverter(mapping, indexes)
        for op in ("<", "<=", ">", ">=", "==", "!="):
            for value in ("5", "5.5", "-0.5", "1e300", "-1e300", "9007199254740993", "5.0"):
                expression = parse_filter(f"year {op} {value}")
                converted = converter.convert(expression)
                assert converted.exact
                wanted = {name for name, held in payloads.items() if evaluate(expression, held)}
                assert found(models.Filter(must=[converted.query])) == wanted, (op, value, indexes)


def test_without_knowledge_of_the_indexes_nothing_rests_on_one() -> None:
    # F9: it is asked for what any index answers
    mapping = collection_mapping(MAPPING)
    for text in ("k > 5", "k == 5", "k == 'a'", "b > datetime '2020-01-01T00:00:00Z'"):
        converted = MappedFilterConverter(mapping, None).convert(parse_filter(text))
        assert not converted.exact
        assert "range" not in converted.query.model_dump_json(exclude_none=True)
        assert "match" not in converted.query.model_dump_json(exclude_none=True)


def test_keys_that_no_path_can_name(make_mapped: Any) -> None:
    # F10
    store = make_mapped({'a"b': [1, 2]}, {'a"b': 3})
    assert store.count('`a"b` == 2') == 1
    assert store.count('`a"b` != 2') == 1
    assert not store.explain('`a"b` == 2').exact


def test_keys_that_the_mapping_takes_are_absent(make_mapped: Any) -> None:
    # F1, F3
    store = make_mapped({"name": "x"}, {"name": "y"}, mapping={"id": "name"})
    for text, count in (("name is null", 2), ("name == 'x'", 0), ("name != 'x'", 2), ("name is not null", 0)):
        assert store.count(text) == count
        assert store.explain(text).exact


@pytest.fixture
def make_mapped() -> Any:
    def make(*payloads: dict[str, Any], mapping: Any = None) -> MappedQdrantLocalVectorStore:
        client = QdrantClient(":memory:")
        client.create_collection("c", models.VectorParams(size=1, distance=models.Distance.DOT))
        points = [models.PointStruct(id=n, vector=[1.0], payload=each) for n, each in enumerate(payloads)]
        client.upsert("c", points)
        return MappedQdrantLocalVectorStore(mapping=mapping or {}, collection="c", client=client).connect()

    return make


@pytest.mark.parametrize(("count", "size"), [(100, 60), pytest.param(300, 240, marks=pytest.mark.slow)])
def test_random_filters_in_local_mode(count: int, size: int) -> None:
    # F1 to F5, F9
    payloads = payloads_of(fuzz.make_documents(11, size))
    coverage = fuzz.run(matcher(local(payloads), payloads, {}), read(payloads), count=count)
    assert coverage.filters == count


@pytest.mark.slow
@pytest.mark.parametrize("indexes", INDEXES, ids=lambda each: next(iter(each.values()), "none"))
def test_random_filters_on_the_engine(tmp_path: Path, indexes: dict[str, str]) -> None:
    # F1 to F5, F9: whatever the types of the indexes
    payloads = payloads_of(fuzz.make_documents(11))
    found, payloads = on_edge(payloads, tmp_path / "shard", indexes)
    fuzz.run(matcher(found, payloads, indexes, WithoutBooleans), read(payloads), count=300)


def test_bounds_stay_numbers_of_json() -> None:
    # F5: no infinity is sent
    converter = MappedFilterConverter(collection_mapping(MAPPING), {})
    for text in (
        "k > 1.7976931348623157e308",
        "not k <= -1.7976931348623157e308",
        "k == 1.7976931348623157e308",
    ):
        for bound in _bounds(converter.convert(parse_filter(text)).query.model_dump(exclude_none=True)):
            assert math.isfinite(bound)


def _bounds(condition: Any) -> list[float]:
    if isinstance(condition, dict):
        return [bound for each in cast("dict[str, Any]", condition).values() for bound in _bounds(each)]
    if isinstance(condition, list):
        return [bound for each in condition for bound in _bounds(each)]  # pyright: ignore[reportUnknownVariableType]
    return [condition] if isinstance(condition, float) else []
