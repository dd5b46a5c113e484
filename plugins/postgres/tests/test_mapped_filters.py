"""Filters over columns of other software, against the evaluator: F1 to F5, F9, F10."""

from __future__ import annotations

import json
import random
import re
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import pytest
from core.tests.filters.strategies import any_scalars, expressions, leaves, well_formed_text
from hypothesis import given
from plugins.postgres.tests import layouts
from plugins.postgres.tests.servers import target
from psycopg import sql

from entrepot import F, SearchRequest
from entrepot.filters import Expression, evaluate
from entrepot_conformance import fuzz
from entrepot_conformance.pools import KEYS, POOLS
from entrepot_postgres import MappedPostgresVectorStore
from entrepot_postgres.columns import Column, quoted
from entrepot_postgres.mapped_filters import MappedFilterConverter

if TYPE_CHECKING:
    from collections.abc import Iterator

    import psycopg

COUNT = 200
"""Filters of a quick run; the slow ones ask fifty times as many."""
WORD = re.compile(
    r"""%s|doc\."c"|[A-Za-z_0-9]+|'[a-z]+'|"C"|'-?Infinity'|'\{\}'|->|#>>|@>|[<>]=?|=|[(){}\[\],. :-]"""
)


def opened(server: str, schema: str, table: str, mapping: dict[str, Any]) -> MappedPostgresVectorStore:
    given: dict[str, Any] = {**target(server), "schema": schema, "collection": table}
    return MappedPostgresVectorStore(mapping=mapping, **given).connect()


# --- json -------------------------------------------------------------------------------------------------


def as_json(value: Any) -> Any:
    """Return a value as JSON knows it: a datetime is a string there."""
    if isinstance(value, list):
        return list(map(as_json, cast("Any", value)))
    return value.isoformat() if isinstance(value, datetime) else value


@pytest.fixture(params=["json", "jsonb"])
def json_table(
    request: pytest.FixtureRequest, server: str, admin: psycopg.Connection[Any], schema: str
) -> Iterator[tuple[MappedPostgresVectorStore, dict[str, dict[str, Any]]]]:
    kind = request.param
    layouts.run(
        admin, schema, f"CREATE TABLE {{s}}.t (id text PRIMARY KEY, metadata {kind}, embedding vector(2))"
    )
    documents = {
        name: {key: as_json(value) for key, value in metadata.items()}
        for name, metadata in fuzz.make_documents(11).items()
    }
    insert = sql.SQL("INSERT INTO {} VALUES (%s, %s, '[1,2]')").format(sql.Identifier(schema, "t"))
    for name, metadata in documents.items():
        admin.execute(insert, (name, json.dumps(metadata)))
    with opened(server, schema, "t", {"metadata": "metadata"}) as store:
        yield store, documents


def ids(store: MappedPostgresVectorStore, expression: Expression) -> set[str]:
    return {document.id for document in store.scan(expression, include=[])}


def test_json_against_the_evaluator(json_table: Any) -> None:
    # F1 to F5, D4
    store, documents = json_table
    read = {document.id: document.metadata for document in store.scan()}
    assert read == documents
    assert {name: _types(metadata) for name, metadata in read.items()} == {
        name: _types(metadata) for name, metadata in documents.items()
    }
    fuzz.run(partial(ids, store), documents, count=COUNT)


@pytest.mark.slow
def test_json_against_the_evaluator_at_length(json_table: Any) -> None:
    # F1 to F5
    store, documents = json_table
    fuzz.run(partial(ids, store), documents, count=50 * COUNT, seed=5)


def _types(metadata: dict[str, Any]) -> dict[str, str]:
    return {key: repr(value).replace("-0.0", "0.0") for key, value in metadata.items()}


TINY = "0." + "0" * 400 + "1"
ODD_JSON: dict[str, tuple[str, dict[str, Any]]] = {
    "short": ('{"k": 1e3}', {"k": 1000}),
    "fraction": ('{"k": 1000.0}', {"k": 1000.0}),
    "long": ('{"k": 0.1000000000000000055511151231257827}', {"k": 0.1}),
    "near": ('{"k": 0.30000000000000004}', {"k": 0.1 + 0.2}),
    "whole": ('{"k": 9007199254740993}', {"k": 2**53 + 1}),
    "float": ('{"k": 9007199254740993.0}', {"k": 2.0**53}),
    "large": ('{"k": 1152921504606847232.0}', {"k": 2.0**60 + 256}),
    "larger": ('{"k": 9223372036854775808}', {"k": 2.0**63}),
    "last": ('{"k": 9223372036854775807}', {"k": 2**63 - 1}),
    "huge": ('{"k": 1e400}', {}),
    "huge list": ('{"k": [1e400, 7]}', {"k": [7]}),
    "tiny": (f'{{"k": {TINY}}}', {"k": 0.0}),
    "smallest": ('{"k": 5e-324}', {"k": 5e-324}),
    "null": ('{"k": null}', {}),
    "nulls": ('{"k": [null, null]}', {"k": []}),
    "mixed": ('{"k": [1, "a", true, null]}', {"k": [1, "a", True]}),
    "object": ('{"k": {"b": 1, "a": [1, 2.50]}}', {"k": '{"a": [1, 2.50], "b": 1}'}),
    "empty object": ('{"k": {}}', {"k": "{}"}),
    "nested": ('{"k": [[1], [2, 3]]}', {"k": ["[1]", "[2, 3]"]}),
    "text": ('{"k": "{}"}', {"k": "{}"}),
    "escapes": ('{"k": "\\u0001\\t\\"\\\\é"}', {"k": '\x01\t"\\é'}),
    "twice": ('{"k": 1, "k": 2}', {"k": 2}),
    "list": ('[{"k": 1}]', {}),
    "scalar": ("5", {}),
    "string": ('"k"', {}),
    "sql null": ("", {}),
    "date": ('{"k": "2026-01-31T12:00:00Z"}', {"k": "2026-01-31T12:00:00Z"}),
}
OPERANDS: list[Any] = [
    0, 1, 2, 7, 1000, 0.1, 0.1 + 0.2, 0.30000000000000004, 2**53, 2**53 + 1, 2.0**53, 2.0**60 + 256, 2**60 + 250,
    2**60 + 256, 2**60 + 260, 2.0**63, 2**63 - 1, 1.7e308, 5e-324, -1, True, False, "a", "{}", "[1]", "[2, 3]",
    '{"a": [1, 2.50], "b": 1}', '\x01\t"\\é', "2026-01-31T12:00:00Z", datetime(2026, 1, 31, 12, tzinfo=UTC),
]  # fmt: skip


@pytest.mark.parametrize("kind", ["json", "jsonb"])
def test_odd_json(server: str, admin: psycopg.Connection[Any], schema: str, kind: str) -> None:
    # F1 to F4: what is read and what filters see are the same; numbers as Python's json module has them
    layouts.run(admin, schema, f"CREATE TABLE {{s}}.t (id text PRIMARY KEY, m {kind}, embedding vector(2))")
    insert = sql.SQL("INSERT INTO {} VALUES (%s, %s, '[1,2]')").format(sql.Identifier(schema, "t"))
    for name, (text, _) in ODD_JSON.items():
        admin.execute(insert, (name, text or None))
    expected = {name: metadata for name, (_, metadata) in ODD_JSON.items()}
    with opened(server, schema, "t", {"metadata": "m"}) as store:
        read = {document.id: document.metadata for document in store.scan()}
        assert read == expected
        assert {name: _types(value) for name, value in read.items()} == {
            name: _types(value) for name, value in expected.items()
        }
        asked: list[Expression] = [F.k.is_null(), F.k.is_not_null(), F.k.in_([]), F.k.in_(OPERANDS)]
        for operand in OPERANDS:
            asked += [F.k == operand, F.k != operand]
            if not isinstance(operand, bool):
                asked += [F.k < operand, F.k <= operand, F.k > operand, F.k >= operand, ~(F.k < operand)]
        for expression in asked:
            matching = {name for name, value in expected.items() if evaluate(expression, value)}
            assert ids(store, expression) == matching, expression


# --- typed columns ----------------------------------------------------------------------------------------

_NUMBERS: Any = POOLS["number"]
NUMBERS = [float(value) for value in _NUMBERS]
WHOLE = [value for value in POOLS["number"] if type(value) is int]
TYPED: dict[str, list[Any]] = {
    "text": list(POOLS["str"]),
    "varchar": list(POOLS["str"]),
    "boolean": [True, False],
    "bigint": WHOLE,
    "double precision": NUMBERS,
    "numeric": [*WHOLE, 1.5, 0.5, 1e20, -1.7e308],
    "timestamptz": list(POOLS["datetime"]),
    "smallint": [0, 1, -1],
}
"""Types of columns, and values that they take."""


def typed_documents(seed: int, kinds: dict[str, str]) -> dict[str, dict[str, Any]]:
    rng = random.Random(seed)
    documents: dict[str, dict[str, Any]] = {}
    for number in range(200):
        metadata: dict[str, Any] = {}
        for key, kind in kinds.items():
            pool, chance = TYPED[kind.removesuffix("[]")], rng.random()
            if kind.endswith("[]") and chance < 0.8:
                metadata[key] = rng.choices(pool, k=rng.randint(0, 3))
            elif chance < 0.7:
                metadata[key] = rng.choice(pool)
        documents[f"d{number:03}"] = metadata
    return documents


def typed_table(
    server: str, admin: psycopg.Connection[Any], schema: str, kinds: dict[str, str], documents: Any
) -> MappedPostgresVectorStore:
    columns = {key: f"c{number}" for number, key in enumerate(kinds)}
    declared = ", ".join(f"{columns[key]} {kind}" for key, kind in kinds.items())
    layouts.run(admin, schema, f"CREATE TABLE {{s}}.t (id text PRIMARY KEY, embedding vector(2), {declared})")
    places = ", ".join(f"%s::{kind}" for kind in kinds.values())
    checked: Any = f"INSERT INTO {{}} VALUES (%s, '[1,2]', {places})"
    insert = sql.SQL(checked).format(sql.Identifier(schema, "t"))
    for name, metadata in documents.items():
        admin.execute(insert, (name, *(_bound(kinds[key], metadata.get(key)) for key in kinds)))
    return opened(server, schema, "t", {"columns": columns})


def _bound(kind: str, value: Any) -> Any:
    if kind.startswith("numeric") and value is not None:
        return (
            [str(Decimal(item)) for item in cast("Any", value)]
            if isinstance(value, list)
            else str(Decimal(value))
        )
    return value


@pytest.mark.parametrize("array", [False, True])
def test_typed_columns_against_the_evaluator(
    server: str, admin: psycopg.Connection[Any], schema: str, *, array: bool
) -> None:
    # F1 to F5, D4
    kinds = {key: kind + "[]" * (array and kind != "boolean") for key, kind in zip(KEYS, TYPED, strict=True)}
    documents = typed_documents(17, kinds)
    with typed_table(server, admin, schema, kinds, documents) as store:
        read = {document.id: document.metadata for document in store.scan()}
        assert read == documents
        fuzz.run(partial(ids, store), documents, count=COUNT)


def test_values_that_metadata_lacks_are_absent(
    server: str, admin: psycopg.Connection[Any], schema: str
) -> None:
    # F1, D3: NULL, NaN, infinities, times beyond the calendar; times without a zone are strings
    layouts.run(
        admin,
        schema,
        "CREATE TYPE {s}.mood AS ENUM ('sad', 'happy')",
        "CREATE DOMAIN {s}.cents AS bigint CHECK (value >= 0)",
        """
        CREATE TABLE {s}.t (
            id text PRIMARY KEY, embedding halfvec(2), f float8, r real, n numeric, z timestamptz, t timestamp,
            d date, m {s}.mood, c {s}.cents, p char(4), fs float8[], u uuid
        )
        """,
    )
    known = "6ba7b810-9dad-11d1-80b4-00c04fd430c8"
    insert = sql.SQL(
        "INSERT INTO {} VALUES (%s, '[1,2]', %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)"
    ).format(sql.Identifier(schema, "t"))
    rows: dict[str, tuple[Any, ...]] = {
        "none": (None,) * 11,
        "nan": ("NaN", "NaN", "NaN", None, None, None, None, None, None, "{NaN,NULL}", None),
        "high": ("inf", "inf", "inf", "infinity", "infinity", "infinity", None, None, None, "{inf}", None),
        "low": ("-inf", "-inf", "-inf", "-infinity", "0044-03-15 BC", "0044-03-15 BC", None, None, None, "{}", None),
        "far": (None, None, "1e500", "20000-01-01Z", "20000-01-01", "20000-01-01", None, None, None, None, None),
        "some": (1.5, 0.1, "2.50", "2026-01-31 12:00+02", "2026-01-31 12:00", "2026-01-31", "sad", 5, "a", "{1,NaN}", known),
    }  # fmt: skip
    for name, values in rows.items():
        admin.execute(insert, (name, *values))
    expected: dict[str, dict[str, Any]] = {name: {} for name in rows}
    expected["nan"] = {"fs": []}
    expected["high"] = {"fs": []}
    expected["low"] = {"fs": []}
    expected["some"] = {
        "f": 1.5, "r": 0.10000000149011612, "n": 2.5, "z": datetime(2026, 1, 31, 10, tzinfo=UTC),
        "t": "2026-01-31T12:00:00.000000", "d": "2026-01-31", "m": "sad", "c": 5, "p": "a", "fs": [1.0], "u": known,
    }  # fmt: skip
    keys = ["f", "r", "n", "z", "t", "d", "m", "c", "p", "fs", "u"]
    with opened(server, schema, "t", {"columns": keys}) as store:
        assert {document.id: document.metadata for document in store.scan()} == expected
        hits = store.similarity_search(SearchRequest(vector=[2.0, 4.0], top_k=9))
        assert [hit.id for hit in hits] == sorted(rows)
        assert hits[0].score == pytest.approx(1.0, abs=1e-4)
        operands: list[Any] = [
            1,
            1.5,
            0.1,
            0.10000000149011612,
            -1.7e308,
            1.7e308,
            2.5,
            5,
            5.0,
            "sad",
            "happy",
            "a",
            "a   ",
            "",
        ]
        operands += [
            "2026-01-31",
            "2026-01-31T12:00:00.000000",
            known,
            known.upper(),
            datetime(2026, 1, 31, 10, tzinfo=UTC),
        ]
        operands += [datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC)]
        for key in keys:
            asked: list[Expression] = [F[key].is_null(), F[key].is_not_null(), F[key].in_(operands)]
            for operand in operands:
                asked += [F[key] == operand, F[key] != operand, F[key] < operand, F[key] <= operand]
                asked += [F[key] > operand, F[key] >= operand, ~(F[key] > operand)]
            for expression in asked:
                matching = {name for name, value in expected.items() if evaluate(expression, value)}
                assert ids(store, expression) == matching, expression


def test_a_type_that_folds_case_does_not_here(
    server: str, admin: psycopg.Connection[Any], schema: str
) -> None:
    # F4, D1: citext holds "a" and "A" for the same
    layouts.run(
        admin,
        schema,
        "CREATE EXTENSION IF NOT EXISTS citext SCHEMA {s}",
        "CREATE TABLE {s}.t (id {s}.citext, k {s}.citext, embedding vector(2))",
    )
    table = sql.Identifier(schema, "t")
    for name in ("a", "A", "b"):
        admin.execute(sql.SQL("INSERT INTO {} VALUES (%s, %s, '[1,2]')").format(table), (name, name))
    with opened(server, schema, "t", {"columns": ["k"]}) as store:
        assert ids(store, F.k == "a") == {"a"}
        assert ids(store, F.k.in_(["A", "b"])) == {"A", "b"}
        assert ids(store, F.k != "a") == {"A", "b"}
        assert ids(store, F.k > "a") == {"b"}
        assert [document.id for document in store.get(["A", "B"])] == ["A"]
        assert sorted(document.id for document in store.scan(batch_size=1)) == ["A", "a", "b"]


def test_strings_in_jsonb_are_found_by_its_index(admin: psycopg.Connection[Any], schema: str) -> None:
    # F9
    layout = layouts.langchain(admin, schema, layouts.rows_of(20))
    clause = MappedFilterConverter({}, quoted("cmetadata")).convert(F.source == "file1.md").query
    admin.execute("SET enable_seqscan = off")
    checked: Any = f"EXPLAIN SELECT 1 FROM {{}} AS doc WHERE {clause.sql}"
    plan = admin.execute(
        sql.SQL(checked).format(sql.Identifier(schema, layout.table)), clause.bound
    ).fetchall()
    admin.execute("RESET enable_seqscan")
    assert "ix_cmetadata_gin" in str(plan)


@given(expressions(leaves(well_formed_text(min_size=1).map(lambda name: name + "'\"%s;--"), any_scalars())))
def test_nothing_of_a_filter_gets_into_the_sql(expression: Expression) -> None:
    # F10, F9
    converted = MappedFilterConverter({}, quoted("c")).convert(expression)
    assert converted.exact
    assert WORD.sub("", converted.query.sql) == ""
    assert converted.query.sql.count("%s") == len(converted.query.bound)


def test_columns_are_quoted() -> None:
    # F10
    column = Column(quoted('a"; DROP TABLE x; --%s'), "text", array=False)
    clause = MappedFilterConverter({"k": column}, None).convert(F.k == "v").query
    name = 'doc."a""; DROP TABLE x; --%%s"'
    assert clause.sql == f'({name} = ANY(%s::text[]) AND {name} COLLATE "C" = ANY(%s::text[]))'
