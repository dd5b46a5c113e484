# pyright: reportPrivateUsage=false, reportUnknownArgumentType=false, reportUnknownLambdaType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
"""Faults put into the encoder and the converter: the conformance suite's filter cases find each one."""

from __future__ import annotations

import json
from datetime import datetime
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import pytest
from plugins.neo4j.tests import model
from plugins.neo4j.tests.model import fields_of, holds

from entrepot import parse_filter
from entrepot.filters import FilterOp, evaluate
from entrepot_neo4j import Neo4jFilterConverter, filters, tokens
from entrepot_neo4j.filters import Having
from entrepot_neo4j.tokens import Span

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
    folder = files("entrepot_conformance").joinpath("cases/filters")
    for file in sorted(folder.iterdir(), key=lambda one: one.name):
        held = json.loads(file.read_text("utf-8"))
        documents = {
            name: {key: value_of(value) for key, value in metadata.items()}
            for name, metadata in held.get("documents", {}).items()
        }
        for case in held["cases"]:
            if "matches" in case and isinstance(case.get("filter"), str):
                yield documents, case["filter"], set(case["matches"])


def own_cases() -> Iterator[tuple[dict[str, dict[str, Any]], str, set[str]]]:
    """Yield strings that UTF-16 orders in its own way, and filters of many levels."""
    documents: dict[str, dict[str, Any]] = {
        "fffd": {"x": "\ufffd", "y": 1},
        "emoji": {"x": "\U0001f600", "y": 2},
        "d7ff": {"x": "\ud7ff", "y": [1, 2, 3]},
        "both": {"x": ["\ue000", "\U0010ffff"], "z": "a"},
        "none": {},
    }
    asked = [
        f"x {sign} '{text}'" for sign in ("<", "<=", ">", ">=") for text in ("\ufffd", "\U0001f600", "\ud7ff")
    ]
    asked += [
        "x > 'a' and (y == 1 or (z == 'a' and (x < '\U0001f600' or y is null)))",
        "x is null or (y > 1 and (x == '\ud7ff' or (y < 3 and not (x < 'b'))))",
        "not (x is null or (y > 1 and (x == '\ud7ff' or (y < 3 and x >= '\ue000')))) or y == 2",
        "y == 1 and y == 2 or (y != 2 and (z == 'a' or (y == 1 and (x != 'a' and (z is null or y > 5)))))",
        "(y == 1 or y == 2) and (x > 'a' or z is null) and (y != 3 or x < 'b')",
        "(y == 1 and x > 'a') or (y == 2 and z is null) or (y is null and z == 'a')",
        "y < 0 or y > 2", "y <= 1 or y >= 3 or y == 2", "not (y < 2 or y > 2)", "y < 2 and y > 2",
    ]  # fmt: skip
    for text in asked:
        tree = parse_filter(text)
        yield documents, text, {name for name, held in documents.items() if evaluate(tree, held)}


CASES = [*cases(), *own_cases()]


def wrong() -> int:
    """Return how many cases are answered wrongly."""
    converter = Neo4jFilterConverter()
    count = 0
    indexed: dict[int, dict[str, list[str]]] = {}
    for documents, text, expected in CASES:
        converted = converter.convert(parse_filter(text))
        if id(documents) not in indexed:
            indexed[id(documents)] = {name: fields_of(held) for name, held in documents.items()}
        try:
            found = {name for name, held in indexed[id(documents)].items() if holds(converted.query, held)}
        except (AssertionError, IndexError, TypeError):
            return len(CASES)
        count += not (found == expected and converted.exact)
    return count


def patched(where: object, name: str, made: Callable[[Any], Any]) -> Break:
    def put(monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(where, name, made(getattr(where, name)))

    return put


def spanning(change: Callable[[Span, FilterOp], Span]) -> Break:
    return patched(filters, "span", lambda real: lambda op, key, value: change(real(op, key, value), op))


def leafless(change: Callable[[Any, Any], Any]) -> Break:
    return patched(
        Neo4jFilterConverter, "leaf", lambda real: lambda self, leaf: change(real(self, leaf), leaf)
    )


def sent(change: Callable[[list[Any]], list[Any]]) -> Break:
    """Change every bundle that is sent."""
    return patched(filters, "_bundle", lambda real: lambda *given: change(real(*given)))


def whole(change: Callable[[list[Any]], list[Any]]) -> Break:
    """Change what is sent of a filter."""

    def made(real: Any) -> Any:
        def mutant(clause: Any) -> Any:
            found = real(clause)
            parameter = change(found.parameter)
            return found._replace(deep=bool(parameter[2]), parameter=parameter)

        return mutant

    return patched(model, "predicate", made)


def emptied(place: int) -> Break:
    return sent(lambda bundle: [*bundle[:place], [], *bundle[place + 1 :]])


MUTANTS: dict[str, Break] = {
    "lt takes the operand": spanning(lambda found, op: Span(found.low, found.high + "\0") if op is FilterOp.LT else found),
    "lte leaves the operand out": spanning(lambda found, op: Span(found.low, found.high[:-1]) if op is FilterOp.LTE else found),
    "gt takes the operand": spanning(lambda found, op: Span(found.low[:-1], found.high) if op is FilterOp.GT else found),
    "gte leaves the operand out": spanning(lambda found, op: Span(found.low + "\0", found.high) if op is FilterOp.GTE else found),
    "the lower bound is the key's": spanning(lambda found, op: Span(found.low[:-1], found.high) if op in {FilterOp.LT, FilterOp.LTE} else found),
    "the upper bound is the key's": spanning(lambda found, op: Span(found.low, found.high[:-1] + "\x7f") if op in {FilterOp.GT, FilterOp.GTE} else found),
    "a number has the letter of strings": patched(tokens, "element_text", lambda real: lambda value: "s" + real(value)[1:]),
    "true is one": patched(tokens, "element_text", lambda real: lambda value: real(int(value) if value is True else value)),
    "integers are floats": patched(tokens, "element_text", lambda real: lambda value: real(float(value) if type(value) is int else value)),
    "only the first element is indexed": patched(tokens, "elements", lambda real: lambda value: real(value)[:1]),
    "strings are folded": patched(tokens, "element_text", lambda real: lambda value: real(value.lower() if isinstance(value, str) else value)),
    "strings are trimmed": patched(tokens, "element_text", lambda real: lambda value: real(value.strip() if isinstance(value, str) else value)),
    "strings keep the order of units": patched(tokens, "utf16_ordered", lambda _: lambda text: text),
    "all keys are one": patched(tokens, "prefix", lambda _: lambda _key: "k\0"),
    "keys are folded": patched(tokens, "prefix", lambda real: lambda key: real(key.lower())),
    "a negation is lost": leafless(lambda answer, leaf: answer._replace(clause=answer.clause._replace(negated=False)) if leaf.op is not FilterOp.ISNULL else answer),
    "a negation asks for the key": leafless(lambda answer, leaf: answer._replace(clause=filters.Junction(True, (Having((tokens.prefix(leaf.key),)), answer.clause))) if leaf.negated and leaf.op is not FilterOp.ISNULL else answer),
    "IS NULL is IS NOT NULL": leafless(lambda answer, leaf: answer._replace(clause=answer.clause._replace(negated=not answer.clause.negated)) if leaf.op is FilterOp.ISNULL else answer),
    "IN takes the first alone": leafless(lambda answer, leaf: answer._replace(clause=answer.clause._replace(tokens=answer.clause.tokens[:1])) if leaf.op is FilterOp.IN else answer),
    "or is and": patched(Neo4jFilterConverter, "or_", lambda _: Neo4jFilterConverter.and_),
    "and is or": patched(Neo4jFilterConverter, "and_", lambda _: Neo4jFilterConverter.or_),
    "equalities are lost": emptied(1),
    "lists are lost": emptied(2),
    "ranges are lost": emptied(3),
    "what may not be there is lost": emptied(4),
    "ranges that may not be met are lost": emptied(5),
    "the second level is lost": emptied(6),
    "all are one level": whole(lambda sent: [*sent[:2], [[0, *step[1:]] for step in sent[2]], sent[3]]),
    "the deepest level is lost": whole(lambda sent: [*sent[:2], sent[2][1:], sent[3]]),
    "only one of several ranges is sent": sent(lambda bundle: [*bundle[:3], bundle[3][:1], *bundle[4:]]),
    "ranges are united that do not meet": patched(filters, "_united", lambda real: lambda spans: [Span(found[0].low, found[-1].high)] if (found := real(spans)) else []),
    "the last of united ranges counts": patched(filters, "_united", lambda real: lambda spans: real(spans)[-1:]),
    "the root is not negated": whole(lambda sent: [False, *sent[1:]]),
}  # fmt: skip


def test_without_a_fault_every_case_is_right() -> None:
    # F1 to F5
    assert len(CASES) > 300
    assert wrong() == 0


@pytest.mark.parametrize("name", MUTANTS)
def test_a_fault_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    MUTANTS[name](monkeypatch)
    assert wrong() > 0
