# pyright: reportPrivateUsage=false, reportUnknownArgumentType=false, reportUnknownLambdaType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
"""Faults put into the encoder and the converter: the conformance suite's filter cases find each one."""

from __future__ import annotations

import json
from datetime import datetime
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import pytest
from plugins.pinecone.tests.dsl import holds

from entrepot import parse_filter
from entrepot.encoding import Ordered
from entrepot.filters import evaluate, exact
from entrepot_pinecone import PineconeFilterConverter, filters, names, tokens

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Break = Callable[[pytest.MonkeyPatch], None]
    Case = tuple[dict[str, dict[str, Any]], str, set[str]]


def value_of(given: Any) -> Any:
    if isinstance(given, list):
        return [value_of(one) for one in given]
    if isinstance(given, dict):
        return datetime.fromisoformat(given["datetime"])
    return given


def cases() -> Iterator[Case]:
    """Yield the documents of each file, a filter, and the documents that match."""
    found = files("entrepot_conformance").joinpath("cases/filters").iterdir()
    for file in sorted(found, key=lambda one: one.name):
        held = json.loads(file.read_text("utf-8"))
        documents = {
            name: {key: value_of(value) for key, value in metadata.items()}
            for name, metadata in held.get("documents", {}).items()
        }
        for case in held["cases"]:
            if "matches" in case and isinstance(case.get("filter"), str):
                yield documents, case["filter"], set(case["matches"])


def own_cases() -> Iterator[Case]:
    """Yield long keys, long strings and far instants, which few engines encode otherwise."""
    documents: dict[str, dict[str, Any]] = {
        "long key": {"k" * 200: 1},
        "other key": {"k" * 201: 1},
        "long": {"s": "a" * 30},
        "longer": {"s": "a" * 31},
        "ends": {"s": ["b", "z"], "n": [1, 9]},
        "spaces": {"s": " b "},
        "past": {"d": datetime.fromisoformat("0001-01-01T00:00:00.000001+00:00")},
    }
    asked = [
        f"{'k' * 200} == 1",
        f"{'k' * 201} is null",
        f"s == '{'a' * 30}'",
        f"s > '{'a' * 30}'",
        "s == 'b'",
    ]
    asked += ["s < 'c' and s > 'y'", "n < 2 and n > 8", "not s < 'c'", "not n > 8"]
    asked += ["d < datetime '0001-01-01T00:00:00.000002Z'", f"not s >= '{'a' * 31}'"]
    for text in asked:
        tree = parse_filter(text)
        yield documents, text, {name for name, held in documents.items() if evaluate(tree, held)}


CASES = [*cases(), *own_cases()]


def wrong() -> int:
    """Return how many cases are answered wrongly, whichever way `$nin` is read."""
    converter = PineconeFilterConverter()
    count = 0
    indexed: dict[int, dict[str, dict[str, Any]]] = {}
    for documents, text, expected in CASES:
        try:
            converted = converter.convert(parse_filter(text))
            if id(documents) not in indexed:
                indexed[id(documents)] = {name: tokens.fields_of(held) for name, held in documents.items()}
            for strict in (True, False):
                found = {
                    name
                    for name, held in indexed[id(documents)].items()
                    if holds(converted.query, held, strict=strict)
                }
                count += not (found == expected if converted.exact else found >= expected)
        except (AssertionError, UnicodeError):
            return len(CASES)
    return count


def patched(where: object, name: str, made: Callable[[Any], Any]) -> Break:
    def put(monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(where, name, made(getattr(where, name)))

    return put


def signs(table: str, old: str, new: str) -> Break:
    return patched(
        filters, table, lambda real: {op: new if sign == old else sign for op, sign in real.items()}
    )


def both(name: str, made: Callable[[Any], Any]) -> Break:
    """Put a fault into what the encoder and the converter share."""

    def put(monkeypatch: pytest.MonkeyPatch) -> None:
        broken = made(getattr(tokens, name))
        monkeypatch.setattr(tokens, name, broken)
        if hasattr(filters, name):
            monkeypatch.setattr(filters, name, broken)

    return put


def joined(name: str, sign: str) -> Break:
    return patched(PineconeFilterConverter, name, lambda _real: lambda _self, parts: {sign: list(parts)})


def answer(name: str, clause: dict[str, Any]) -> Break:
    return patched(PineconeFilterConverter, name, lambda _real: lambda _self: clause)


def without_absent(clause: Any) -> Any:
    return clause["$or"][1] if "$or" in clause else clause


MUTANTS: dict[str, Break] = {
    "< is <=": signs("_RANGES", "$lt", "$lte"),
    "<= is <": signs("_RANGES", "$lte", "$lt"),
    "> is >=": signs("_RANGES", "$gt", "$gte"),
    ">= is >": signs("_RANGES", "$gte", "$gt"),
    "not < is >": signs("_OPPOSITE", "$gte", "$gt"),
    "not > is <": signs("_OPPOSITE", "$lte", "$lt"),
    "not <= is >=": signs("_OPPOSITE", "$gt", "$gte"),
    "not >= is <=": signs("_OPPOSITE", "$lt", "$lte"),
    "bounds are always exact": both(
        "bound", lambda real: lambda value: Ordered(real(value).code, exact=True)
    ),
    "the least is the greatest": both("least_field", lambda _real: tokens.greatest_field),
    "kinds share bounds": patched(
        tokens, "_LETTERS", lambda _real: dict.fromkeys(("datetime", "number", "str"), "n")
    ),
    "negations are forgotten": patched(
        PineconeFilterConverter,
        "leaf",
        lambda real: lambda self, leaf: real(self, leaf.complement() if leaf.negated else leaf),
    ),
    "absent keys are forgotten": patched(
        PineconeFilterConverter,
        "leaf",
        lambda real: (
            lambda self, leaf: real(self, leaf)._replace(clause=without_absent(real(self, leaf).clause))
        ),
    ),
    "supersets are called exact": patched(
        PineconeFilterConverter, "leaf", lambda real: lambda self, leaf: exact(real(self, leaf).clause)
    ),
    "AND is OR": joined("and_", "$or"),
    "OR is AND": joined("or_", "$and"),
    "true finds nothing": answer("true", {"_v": {"$eq": ""}}),
    "false finds all": answer("false", {}),
    "keys are folded": both("equality_field", lambda real: lambda key: real(key.lower())),
    "keys are cut": both("equality_field", lambda real: lambda key: real(key[:100])),
    "values are folded": both("token", lambda real: lambda value: real(value).lower()),
    "values are trimmed": both(
        "token", lambda real: lambda value: real(value.strip() if type(value) is str else value)
    ),
    "values are cut": both("token", lambda real: lambda value: real(value)[:12]),
    "kinds are not told apart": both("token", lambda real: lambda value: "n" + real(value)[1:]),
    "lists keep their first element": patched(tokens, "elements", lambda real: lambda value: real(value)[:1]),
    "empty lists are there": patched(tokens, "elements", lambda real: lambda value: real(value) or [""]),
    "numbers are doubles": patched(
        tokens, "element_text", lambda real: lambda value: real(float(value) if type(value) is int else value)
    ),
}


def test_the_converter_answers_every_case() -> None:
    assert len(CASES) > 200
    assert wrong() == 0
    assert names.field_part("k") == "k"


@pytest.mark.parametrize("name", sorted(MUTANTS))
def test_a_fault_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    MUTANTS[name](monkeypatch)
    assert wrong() > 0
