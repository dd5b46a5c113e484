# pyright: reportPrivateUsage=false, reportUnknownArgumentType=false, reportUnknownLambdaType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
"""Faults put into the encoder and the converter: the conformance suite's filter cases find each one."""

from __future__ import annotations

import json
from datetime import datetime
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import pytest
from plugins.elasticsearch.tests.dsl import fields_of, holds

from entrepot import parse_filter
from entrepot.filters import FilterOp, evaluate, exact, superset
from entrepot_elasticsearch import ElasticsearchFilterConverter, filters, tokens

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from entrepot_elasticsearch.tokens import Band

    Break = Callable[[pytest.MonkeyPatch], None]


def value_of(given: Any) -> Any:
    if isinstance(given, list):
        return [value_of(one) for one in given]
    if isinstance(given, dict):
        return datetime.fromisoformat(given["datetime"])
    return given


def cases() -> Iterator[tuple[dict[str, dict[str, Any]], str, set[str]]]:
    """Yield the documents of each file, a filter, and the documents that match."""
    for file in sorted(
        files("entrepot_conformance").joinpath("cases/filters").iterdir(), key=lambda one: one.name
    ):
        held = json.loads(file.read_text("utf-8"))
        documents = {
            name: {key: value_of(value) for key, value in metadata.items()}
            for name, metadata in held.get("documents", {}).items()
        }
        for case in held["cases"]:
            if "matches" in case and isinstance(case.get("filter"), str):
                yield documents, case["filter"], set(case["matches"])


def long_cases() -> Iterator[tuple[dict[str, dict[str, Any]], str, set[str]]]:
    """Yield long strings and long keys, which few engines encode otherwise."""
    documents: dict[str, dict[str, Any]] = {
        "a": {"x": "a" * 600},
        "b": {"x": "a" * 600 + "b"},
        "short": {"x": "a"},
        "both": {"x": ["a", "b" * 700]},
        "edge": {"x": "a" * 512},
        "long key": {"k" * 200: 1},
        "other key": {"k" * 201: 1},
        "z": {"x": "zz"},
    }
    asked = [f"{'k' * 200} == 1", f"{'k' * 201} is null"]
    for sign in ("==", "!=", "<", "<=", ">", ">="):
        asked += [f"x {sign} '{text}'" for text in ("a" * 600, "a" * 600 + "b", "b", "a" * 513)]
    for text in asked:
        tree = parse_filter(text)
        yield documents, text, {name for name, held in documents.items() if evaluate(tree, held)}


CASES = [*cases(), *long_cases()]


def wrong() -> int:
    """Return how many cases are answered wrongly."""
    converter = ElasticsearchFilterConverter()
    count = 0
    indexed: dict[int, dict[str, dict[str, list[str]]]] = {}
    for documents, text, expected in CASES:
        converted = converter.convert(parse_filter(text))
        if id(documents) not in indexed:
            indexed[id(documents)] = {name: fields_of(held) for name, held in documents.items()}
        try:
            found = {name for name, held in indexed[id(documents)].items() if holds(converted.query, held)}
        except AssertionError:
            return len(CASES)
        count += not (found == expected if converted.exact else found >= expected)
    return count


def patched(where: object, name: str, made: Callable[[Any], Any]) -> Break:
    def put(monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(where, name, made(getattr(where, name)))

    return put


def bounded(change: Callable[[dict[str, str], FilterOp, Band], dict[str, str]]) -> Break:
    def made(real: Any) -> Any:
        def mutant(field: str, op: FilterOp, at: str, within: Band) -> Any:
            query = real(field, op, at, within)
            return {"range": {field: change(dict(query["range"][field]), op, within)}}

        return mutant

    return patched(filters, "_bounded", made)


def renamed(old: str, new: str) -> Any:
    return lambda bounds, *_: {new if name == old else name: at for name, at in bounds.items()}


def leafless(change: Callable[[Any, Any], Any]) -> Break:
    def made(real: Any) -> Any:
        return lambda self, leaf: change(real(self, leaf), leaf)

    return patched(ElasticsearchFilterConverter, "leaf", made)


def first_only(real: Any) -> Any:
    return lambda value: real(value)[:1]


def flipped(answer: Any, leaf: Any) -> Any:
    """Answer a negated leaf as if it were plain."""
    if leaf.negated and leaf.op is not FilterOp.ISNULL and "bool" in answer.clause:
        inner = answer.clause["bool"].get("must_not")
        return answer if inner is None else answer._replace(clause=inner[0])
    return answer


def present_too(answer: Any, leaf: Any) -> Any:
    """Answer a negated leaf as SQL does: not for absent keys."""
    if leaf.negated and leaf.op is not FilterOp.ISNULL:
        there = {"terms": {"tokens": [tokens.prefix(leaf.key)]}}
        return answer._replace(clause={"bool": {"filter": [there, answer.clause]}})
    return answer


MUTANTS: dict[str, Break] = {
    "lt takes the operand": bounded(renamed("lt", "lte")),
    "lte leaves the operand out": bounded(renamed("lte", "lt")),
    "gt takes the operand": bounded(renamed("gt", "gte")),
    "the lower bound is the key's": bounded(lambda bounds, op, within: {**bounds, "gte": within.low[:-1]} if op in {FilterOp.LT, FilterOp.LTE} else bounds),
    "the upper bound is the key's": bounded(lambda bounds, op, within: {**bounds, "lt": within.low[:-1] + "\x7f"} if op in {FilterOp.GT, FilterOp.GTE} else bounds),
    "one bound is lost": bounded(lambda bounds, *_: dict(list(bounds.items())[:1])),
    "both bounds are lost": bounded(lambda *_: {}),
    "a number has the letter of strings": patched(tokens, "element_text", lambda real: lambda value: "s" + real(value)[1:]),
    "true is one": patched(tokens, "element_text", lambda real: lambda value: real(int(value) if value is True else value)),
    "integers are floats": patched(tokens, "element_text", lambda real: lambda value: real(float(value) if type(value) is int else value)),
    "only the first element is indexed": patched(tokens, "elements", first_only),
    "strings are folded": patched(tokens, "element_text", lambda real: lambda value: real(value.lower() if isinstance(value, str) else value)),
    "strings are trimmed": patched(tokens, "element_text", lambda real: lambda value: real(value.strip() if isinstance(value, str) else value)),
    "all keys are one": patched(tokens, "prefix", lambda _: lambda _key: "k\0"),
    "keys are folded": patched(tokens, "prefix", lambda real: lambda key: real(key.lower())),
    "long strings are not kept whole": patched(tokens, "whole", lambda _: lambda key, _text: tokens.prefix(key)),
    "long strings are cut": patched(tokens, "digest", lambda _: lambda *parts: parts[-1][:512]),
    "ranges of strings overlook long ones": patched(filters, "_range", lambda real: lambda *given: real(*given)[:1]),
    "long operands are cut too short": patched(filters, "bound", lambda real: lambda key, value: real(key, value)[:400]),
    "a negation is lost": leafless(flipped),
    "a negation asks for the key": leafless(present_too),
    "must_not is lost in a conjunction": patched(ElasticsearchFilterConverter, "and_", lambda real: lambda self, parts: {"bool": {"filter": real(self, parts)["bool"].get("filter", [])}}),
    "or is and": patched(ElasticsearchFilterConverter, "or_", lambda _: ElasticsearchFilterConverter.and_),
    "IN takes the first alone": patched(filters, "_terms", lambda real: lambda words: real(list(words)[:1])),
    "IS NULL is IS NOT NULL": leafless(lambda answer, leaf: answer if leaf.op is not FilterOp.ISNULL else answer._replace(clause={"terms": {"tokens": [tokens.prefix(leaf.key)]}})),
    "no superset where one is said to be": leafless(lambda answer, leaf: superset({"match_none": {}}) if leaf.op is FilterOp.GT else answer),
    "what is beyond is not declared": patched(filters, "nothing", lambda _: lambda: exact({"match_all": {}})),
}  # fmt: skip


def test_without_a_fault_every_case_is_right() -> None:
    # F1 to F5
    assert len(CASES) > 300
    assert wrong() == 0


@pytest.mark.parametrize("name", [name for name in MUTANTS if name != "what is beyond is not declared"])
def test_a_fault_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    MUTANTS[name](monkeypatch)
    assert wrong() > 0


def test_a_superset_that_is_not_declared_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    # F9
    deep = "k == 1"
    for level in range(40):
        deep = f"({deep} or k == {level}) and j == {level}"
    assert not ElasticsearchFilterConverter().convert(parse_filter(deep)).exact
    MUTANTS["what is beyond is not declared"](monkeypatch)
    converted = ElasticsearchFilterConverter().convert(parse_filter(deep))
    assert converted.exact
    metadata = {"j": list(range(40))}
    assert holds(converted.query, fields_of(metadata)) is not evaluate(parse_filter(deep), metadata)
