"""The filter cases of the conformance suite against the evaluator and the SQLite translator."""

from __future__ import annotations

import json
import re
from contextlib import closing
from datetime import datetime
from typing import Any, Final, cast

import pytest
from core.tests.filters.databases import load
from core.tests.filters.derive_cases import CASES, all_files, listed

from entrepot.errors import FilterError, FilterLimitError, FilterSyntaxError, FilterValueError
from entrepot.filters import evaluate, format_filter, normalise, parse_filter
from entrepot.filters.sqlite import SqliteFilterConverter
from entrepot.filters.text import parse

FILES: Final = sorted(CASES.glob("*.json"))
ERRORS: Final = {"syntax": FilterSyntaxError, "value": FilterValueError, "limit": FilterLimitError}
_CONVERTER: Final = SqliteFilterConverter()


def decoded(value: Any) -> Any:
    if isinstance(value, dict):
        [(name, text)] = cast("dict[str, str]", value).items()
        assert name == "datetime"
        return datetime.fromisoformat(text)
    return list(map(decoded, value)) if isinstance(value, list) else value  # pyright: ignore[reportUnknownArgumentType]


def documents_of(content: dict[str, Any]) -> dict[str, dict[str, object]]:
    return {
        id_: {key: decoded(value) for key, value in metadata.items()}
        for id_, metadata in content["documents"].items()
    }


CONTENTS: Final = [pytest.param(json.loads(path.read_text("ascii")), id=path.stem) for path in FILES]


def test_the_groups_are_there() -> None:
    groups = "datetimes equality keys lists logic membership negation null numbers ranges text-errors values"
    assert [path.stem for path in FILES] == groups.split()
    assert sum(len(json.loads(path.read_text("ascii"))["cases"]) for path in FILES) > 1_000


@pytest.mark.parametrize("content", CONTENTS)
def test_every_case_holds_for_the_evaluator(content: dict[str, Any]) -> None:
    # F1 to F8
    documents = documents_of(content)
    for case in content["cases"]:
        if "error" in case:
            with pytest.raises(ERRORS[case["error"]]) as caught:
                parse_filter(case["filter"])
            if isinstance(caught.value, FilterSyntaxError):
                assert (caught.value.line, caught.value.column) == (case["line"], case["column"]), case
                assert isinstance(caught.value, FilterValueError) is (case["error"] == "value"), case
            continue
        expression = parse_filter(case["filter"])
        assert parse(format_filter(expression)) == expression
        normal = normalise(expression)
        found = [id_ for id_, metadata in documents.items() if evaluate(expression, metadata)]
        assert sorted(found) == case["matches"], case
        assert found == [id_ for id_, metadata in documents.items() if evaluate(normal, metadata)], case


@pytest.mark.parametrize("content", CONTENTS)
def test_every_case_holds_in_sqlite(content: dict[str, Any]) -> None:
    # F1 to F5, F9
    with closing(load(documents_of(content))) as connection:
        for case in content["cases"]:
            if "matches" in case:
                sql, bound = _CONVERTER.convert(parse_filter(case["filter"])).query.statement()
                assert sorted(id_ for (id_,) in connection.execute(sql, bound)) == case["matches"], case


@pytest.mark.parametrize("content", CONTENTS)
def test_files_are_as_their_schema_says(content: dict[str, Any]) -> None:
    assert set(content) == {"about", "documents", "cases"}
    assert content["about"]
    for metadata in content["documents"].values():
        for key, value in metadata.items():
            assert 1 <= len(key) <= 512
            _check_value(value)
    filters = [case["filter"] for case in content["cases"]]
    assert len(filters) == len(set(filters))
    for case in content["cases"]:
        assert re.fullmatch(r"[DF](10|[1-9])( [DF](10|[1-9]))*", case["rule"])
        if "matches" in case:
            assert set(case) == {"rule", "filter", "matches"}
            assert case["matches"] == sorted(set(case["matches"]))
            assert set(case["matches"]) <= set(content["documents"])
        else:
            place: set[str] = set() if case["error"] == "limit" else {"line", "column"}
            assert set(case) == {"rule", "filter", "error"} | place
            assert case["error"] in ERRORS


def _check_value(value: Any) -> None:
    elements = listed(value)
    kinds: set[type] = {float if type(element) is int else type(element) for element in elements}
    assert len(kinds) <= 1
    assert kinds <= {str, bool, float, dict}
    for element in elements:
        if isinstance(element, dict):
            assert set(cast("dict[str, str]", element)) == {"datetime"}


def test_the_schema_is_json() -> None:
    schema = json.loads((CASES.parent / "filters.schema.json").read_text("ascii"))
    assert schema["required"] == ["about", "documents", "cases"]


def test_the_files_are_those_that_the_derivation_gives() -> None:
    # The derivation computes the ids without the library, and asserts those that were written by hand.
    assert {path.name: path.read_text("ascii") for path in FILES} == all_files()


def test_every_operator_meets_every_kind_and_shape() -> None:
    # What the suite promises: operator x kind of operand x absent, scalar, list, empty list, mixed numbers.
    content = json.loads((CASES / "equality.json").read_text("ascii"))
    kinds: set[type] = {
        type(value) for metadata in content["documents"].values() for value in metadata.values()
    }
    assert kinds == {str, int, float, bool, dict, list}
    texts = " ".join(
        case["filter"] for path in FILES for case in json.loads(path.read_text("ascii"))["cases"]
    )
    for operand in ("'a'", "1", "1.5", "datetime '2026-01-31T12:00:00Z'"):
        for sign in ("==", "!=", "<", "<=", ">", ">="):
            assert f"x {sign} {operand}" in texts
    for sign in ("IN", "NOT IN"):
        for operand in (
            "[]",
            "['a']",
            "[1]",
            "[1.0]",
            "[true]",
            "[datetime '2026-01-31T12:00:00Z']",
            "[1, '1']",
        ):
            assert f"x {sign} {operand}" in texts


def test_no_error_escapes_the_tree() -> None:
    # E1: whatever is wrong with a text, the caller catches FilterError
    for path in FILES:
        for case in json.loads(path.read_text("ascii"))["cases"]:
            if "error" in case:
                with pytest.raises(FilterError):
                    parse(case["filter"])
