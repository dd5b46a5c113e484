# pyright: reportPrivateUsage=false, reportUnknownArgumentType=false, reportUnknownLambdaType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
"""Faults put into the encoder and the converter: the conformance suite's filter cases find each one."""

from __future__ import annotations

import json
from datetime import datetime
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import pytest
from plugins.mongodb.tests.dsl import fields_of, holds

from entrepot import parse_filter
from entrepot.filters import evaluate
from entrepot_mongodb import MongoDBFilterConverter, filters, tokens

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

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


def own_cases() -> Iterator[tuple[dict[str, dict[str, Any]], str, set[str]]]:
    """Yield long keys and two ends of a range, which few engines encode otherwise."""
    documents: dict[str, dict[str, Any]] = {
        "ends": {"x": ["a", "z"], "w": "m"},
        "long key": {"k" * 200: 1},
        "other key": {"k" * 201: 1},
        "two": {"x": 1, "y": 2},
    }
    asked = [f"{'k' * 200} == 1", f"{'k' * 201} is null", "x > 'b' and not x >= 'zz'", "x < 'n' and x > 'm'"]
    asked += ["x > 'm'", "y < 'b'", "not x < 'n'"]
    for text in asked:
        tree = parse_filter(text)
        yield documents, text, {name for name, held in documents.items() if evaluate(tree, held)}


CASES = [*cases(), *own_cases()]


def wrong() -> int:
    """Return how many cases are answered wrongly."""
    converter = MongoDBFilterConverter()
    count = 0
    indexed: dict[int, dict[str, dict[str, Any]]] = {}
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


def bounded(change: Callable[[dict[str, str]], dict[str, str]]) -> Break:
    def made(real: Any) -> Any:
        return lambda op, key, value: {"$elemMatch": change(dict(real(op, key, value)["$elemMatch"]))}

    return patched(filters, "_range", made)


def renamed(old: str, new: str) -> Callable[[dict[str, str]], dict[str, str]]:
    return lambda bounds: {new if name == old else name: at for name, at in bounds.items()}


def without_ends(bounds: dict[str, str]) -> dict[str, str]:
    """Return the range without the end of its key and kind."""
    return {
        name: at if len(at.partition("\0")[2]) > 1 else "\uffff" * (name == "$lt")
        for name, at in bounds.items()
    }


def listed(change: Callable[[dict[str, Any], Any], dict[str, Any]]) -> Break:
    return patched(filters, "_listed", lambda real: lambda leaf: change(real(leaf), leaf))


def swapped(clause: dict[str, Any], _leaf: Any) -> dict[str, Any]:
    ((operator, operand),) = clause["t"].items()
    return {"t": {"$in" if operator == "$nin" else "$nin": operand}}


def joined(name: str, operator: str) -> Break:
    return patched(MongoDBFilterConverter, name, lambda _real: lambda _self, parts: {operator: list(parts)})


MUTANTS: dict[str, Break] = {
    "a range is looked for without $elemMatch": patched(
        filters, "_range", lambda real: lambda op, key, value: real(op, key, value)["$elemMatch"]
    ),
    "< is <=": bounded(renamed("$lt", "$lte")),
    "<= is <": bounded(renamed("$lte", "$lt")),
    "> is >=": bounded(renamed("$gt", "$gte")),
    ">= is >": bounded(renamed("$gte", "$gt")),
    "ranges reach beyond their key and kind": bounded(without_ends),
    "negations are forgotten": listed(lambda clause, _: {"t": {"$in": next(iter(clause["t"].values()))}}),
    "everything is negated": listed(swapped),
    "negated ranges are plain": patched(
        MongoDBFilterConverter,
        "range",
        lambda real: lambda self, leaf: real(self, leaf.complement() if leaf.negated else leaf),
    ),
    "IN takes its first element": listed(
        lambda clause, _: {"t": {name: words[:1] for name, words in clause["t"].items()}}
    ),
    "AND is OR": joined("and_", "$or"),
    "OR is AND": joined("or_", "$and"),
    "true finds nothing": patched(
        MongoDBFilterConverter, "true", lambda _real: lambda _self: {"_id": {"$in": []}}
    ),
    "false finds all": patched(MongoDBFilterConverter, "false", lambda _real: lambda _self: {}),
    "keys are folded": patched(tokens, "prefix", lambda real: lambda key: real(key.lower())),
    "keys are cut": patched(tokens, "prefix", lambda real: lambda key: real(key[:100])),
    "values are folded": patched(tokens, "element_text", lambda real: lambda value: real(value).lower()),
    "values are trimmed": patched(tokens, "element_text", lambda real: lambda value: real(value).rstrip()),
    "kinds are not told apart": patched(
        tokens, "element_text", lambda real: lambda value: "n" + real(value)[1:]
    ),
    "lists keep their first element": patched(tokens, "elements", lambda real: lambda value: real(value)[:1]),
    "empty lists are there": patched(tokens, "elements", lambda real: lambda value: real(value) or [""]),
    "numbers are doubles": patched(
        tokens,
        "element_text",
        lambda real: lambda value: real(float(value) if type(value) is int else value),
    ),
}


def test_the_converter_answers_every_case() -> None:
    assert len(CASES) > 200
    assert wrong() == 0


@pytest.mark.parametrize("name", sorted(MUTANTS))
def test_a_fault_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    MUTANTS[name](monkeypatch)
    if name.startswith("keys"):
        monkeypatch.setattr(filters, "prefix", tokens.prefix)
    assert wrong() > 0
