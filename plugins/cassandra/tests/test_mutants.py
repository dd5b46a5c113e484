# pyright: reportPrivateUsage=false, reportUnknownArgumentType=false, reportUnknownLambdaType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
"""Faults put into the encoder and the converter: the conformance suite's filter cases find each one."""

from __future__ import annotations

import json
from datetime import datetime
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import pytest
from plugins.cassandra.tests.dsl import holds, row_of

from entrepot import parse_filter
from entrepot.encoding import Ordered
from entrepot.filters import FilterOp, exact
from entrepot_cassandra import CassandraFilterConverter, fields, filters
from entrepot_cassandra.filters import Interval, Way

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


CASES = [(documents, parse_filter(text), expected) for documents, text, expected in cases()]


def is_wrong() -> bool:
    """Whether a case is answered wrongly: with a slot for every key, or with none."""
    known: dict[tuple[int, int], dict[str, dict[str, Any]]] = {}
    for documents, asked, expected in CASES:
        names = sorted({key for held in documents.values() for key in held})
        for keys in ({key: slot for slot, key in enumerate(names)}, {}):
            converted = CassandraFilterConverter(keys).convert(asked)
            place = (id(documents), len(keys))
            if place not in known:
                known[place] = {name: row_of(held, keys, len(names)) for name, held in documents.items()}
            found = {name for name, row in known[place].items() if holds(converted.query, row)}
            if not (found == expected if converted.exact else found >= expected):
                return True
    return False


def patched(where: object, name: str, made: Callable[[Any], Any]) -> Break:
    def put(monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(where, name, made(getattr(where, name)))

    return put


def both(*breaks: Break) -> Break:
    def put(monkeypatch: pytest.MonkeyPatch) -> None:
        for one in breaks:
            one(monkeypatch)

    return put


def leafless(change: Callable[[Any, Any], Any]) -> Break:
    def made(real: Any) -> Any:
        return lambda self, leaf: change(real(self, leaf), leaf)

    return patched(CassandraFilterConverter, "leaf", made)


def bounds(change: Callable[[Interval], Interval]) -> Callable[[Any, Any], Any]:
    def changed(answer: Any, leaf: Any) -> Any:
        if leaf.op not in {FilterOp.LT, FilterOp.LTE, FilterOp.GT, FilterOp.GTE} or answer.clause is None:
            return answer
        ways = tuple(
            Way(way.tokens, tuple((column, change(interval)) for column, interval in way.bounds))
            for way in answer.clause
        )
        return answer._replace(clause=ways)

    return changed


def codes(change: Callable[[Any, Any], Any]) -> Break:
    """Change the codes of documents and operands alike."""

    def made(real: Any) -> Any:
        return lambda value: change(real, value)

    return both(patched(fields, "scalar_code", made), patched(filters, "scalar_code", made))


def first_part(_: object, parts: Any) -> Any:
    return parts[0]


MUTANTS: dict[str, Break] = {
    "the operand is taken": leafless(bounds(lambda one: Interval(None if one.low is None else one.low - 1, None if one.high is None else one.high + 1))),
    "the operand is left out": leafless(bounds(lambda one: Interval(None if one.low is None else one.low + 1, None if one.high is None else one.high - 1))),
    "lower bounds are lost": leafless(bounds(lambda one: Interval(None, one.high))),
    "upper bounds are lost": leafless(bounds(lambda one: Interval(one.low, None))),
    "least is greatest": patched(filters, "least", lambda _: lambda slot: f"hi{slot}"),
    "greatest is least": patched(filters, "greatest", lambda _: lambda slot: f"lo{slot}"),
    "true is one": codes(lambda real, value: real(int(value) if value is True else value)),
    "integers are floats": codes(lambda real, value: real(float(value) if type(value) is int else value)),
    "strings are folded": codes(lambda real, value: real(value.lower() if isinstance(value, str) else value)),
    "instants lose their microseconds": codes(lambda real, value: real(value.replace(microsecond=0) if isinstance(value, datetime) else value)),
    "codes of strings are said to be exact": codes(lambda real, value: Ordered(real(value).code, exact=True)),
    "only the first element is indexed": patched(fields, "elements", lambda real: lambda value: real(value)[:1]),
    "tokens of strings are folded": both(patched(filters, "equality_token", lambda real: lambda key, value: real(key, value.lower() if isinstance(value, str) else value))),
    "tokens of true are those of one": both(patched(filters, "equality_token", lambda real: lambda key, value: real(key, int(value) if value is True else value))),
    "presence has no key": patched(filters, "presence_token", lambda real: lambda _: real("k")),
    "tokens are not written": patched(fields, "metadata_tokens", lambda real: lambda metadata: real(metadata)[1:]),
    "a negation is said to be exact": leafless(lambda answer, leaf: exact(()) if leaf.negated and answer.clause is None else answer),
    "a negation is lost": leafless(lambda answer, leaf: exact((Way(("x",)),)) if leaf.negated and leaf.op is FilterOp.EQ else answer),
    "nothing is everything": patched(filters, "nothing", lambda _: lambda: exact((Way(),))),
    "a superset is exact": patched(filters, "superset", lambda _: exact),
    "a negated range has one side": leafless(lambda answer, leaf: answer._replace(clause=answer.clause[:1]) if leaf.negated and answer.clause else answer),
    "absent is zero": patched(filters, "ABSENT", lambda _: 0),
    "IN takes the first alone": leafless(lambda answer, leaf: answer._replace(clause=answer.clause[:1]) if leaf.op is FilterOp.IN and answer.clause else answer),
    "or is the first part": patched(CassandraFilterConverter, "or_", lambda _: first_part),
    "and is the first part": patched(CassandraFilterConverter, "and_", lambda _: first_part),
    "an empty interval holds": patched(filters, "_folded", lambda _: lambda column, low, high: (Way((), ((column, Interval(min(low, high), max(low, high))),)),)),
}  # fmt: skip


def test_without_a_fault_every_case_is_right() -> None:
    # F1 to F5
    assert len(CASES) > 250
    assert not is_wrong()


@pytest.mark.parametrize("name", MUTANTS)
def test_a_fault_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    MUTANTS[name](monkeypatch)
    assert is_wrong()
