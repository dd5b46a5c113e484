"""Encoder and converter broken, one thing at a time: the shared filter cases notice each (F1 to F9).

What is sent is read by `plugins.qdrant.tests.interpreter`, so it takes seconds. Where a mutant is of what lies beyond,
strings are told apart by one byte, and nesting ends at once.
"""

from __future__ import annotations

from contextlib import ExitStack
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast
from unittest.mock import patch

import pytest
from plugins.qdrant.tests.interpreter import satisfies
from qdrant_client import models

from entrepot import encoding
from entrepot.filters import FilterOp, evaluate, exact, parse_filter
from entrepot_conformance import case_files, load_cases
from entrepot_qdrant import QdrantFilterConverter, fields, filters

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from entrepot.filters import Expression


class Case(NamedTuple):
    """A filter over documents, and the ids that match."""

    expression: Expression
    documents: Mapping[str, Any]
    matches: set[str]
    text: str


def decoded(value: Any) -> Any:
    if isinstance(value, dict):
        [text] = cast("dict[str, str]", value).values()
        return datetime.fromisoformat(text)
    return [decoded(each) for each in value] if isinstance(value, list) else value  # pyright: ignore[reportUnknownVariableType]


@cache
def cases() -> list[Case]:
    """Return the cases of all files that match something, in their order."""
    found: list[Case] = []
    for name in case_files():
        if not name.startswith("filters/"):
            continue
        content = load_cases(name)
        documents = {
            id_: {key: decoded(value) for key, value in metadata.items()}
            for id_, metadata in content["documents"].items()
        }
        found += [
            Case(parse_filter(case["filter"]), documents, set(case["matches"]), case["filter"])
            for case in content["cases"]
            if "matches" in case and isinstance(case["filter"], str)
        ]
    return found


def wrong_cases() -> Iterator[str]:
    """Give the cases that are answered wrongly."""
    payloads: dict[int, dict[str, Any]] = {}
    for case in cases():
        known = payloads.get(id(case.documents))
        if known is None:
            known = payloads[id(case.documents)] = {
                name: {"id": name, **fields.indexed(metadata)} for name, metadata in case.documents.items()
            }
        converted = QdrantFilterConverter().convert(case.expression)
        query = converted.query.model_dump(exclude_none=True, mode="json")
        found = {name for name, payload in known.items() if satisfies(payload, query)}
        if not converted.exact:
            found = {name for name in found if evaluate(case.expression, case.documents[name])}
        if found != case.matches:
            yield case.text


# --- mutants ----------------------------------------------------------------------------------------------

LT, LTE, GT, GTE = FilterOp.LT, FilterOp.LTE, FilterOp.GT, FilterOp.GTE
_bound: Any = vars(filters)["_bound"]
_ranged: Any = vars(fields)["_ranged"]
_gate: Any = vars(filters)["_gate"]


def text_token(key: str, value: Any) -> str:
    """A token that does not say of which kind the value is."""
    return f"{key}:{str(value).lower()}"


def typed_token(key: str, value: Any) -> str:
    """A token that tells int from float."""
    return f"{key}:{value!r}"


def tokens_by(token: Callable[[str, Any], str]) -> Callable[[Any], list[str]]:
    def tokens(metadata: Any) -> list[str]:
        found: list[str] = []
        for key, value in metadata.items():
            held: list[Any] = value if isinstance(value, list) else [value]  # pyright: ignore[reportUnknownVariableType]
            found += [encoding.presence_token(key)] * bool(held) + [token(key, each) for each in held]
        return found

    return tokens


def swapped_bound(op: FilterOp, value: float) -> int:
    return int(_bound({LT: LTE, LTE: LT, GT: GTE, GTE: GT}[op], value))


def unclamped_bound(op: FilterOp, value: float) -> int:
    """Beyond 48 bits the other end is taken."""
    return -int(_bound(op, value)) if abs(value) >= fields.NATURAL else int(_bound(op, value))


def first_chunk(op: FilterOp, path: str, chunks: Any) -> Any:
    """The first piece alone."""
    return _gate(op, path, chunks[:1])


def untied(op: FilterOp, path: str, chunks: Any) -> Any:
    """Ties of the first piece are lost."""
    condition = _gate(op, path, chunks)
    return condition.should[0] if len(chunks) > 1 else condition


def one_end(at: int) -> Callable[..., Any]:
    def ranged(kind: Any, ends: Any) -> Any:
        return _ranged(kind, (ends[at], ends[at]))

    return ranged


def to_seconds(instant: datetime) -> str:
    return encoding.iso_instant(instant.replace(microsecond=0))


def unnegated(condition: Any) -> Any:
    return models.Filter(must=[condition])


def other_key(_key: str) -> str:
    return "none"


def unquoted(key: str) -> str:
    return key


def nearest_double(value: float) -> tuple[int, int]:
    return encoding.number_code(float(value)) >> 27, 0


def first_value(tokens: list[str]) -> Any:
    return models.FieldCondition(key="t", match=models.MatchValue(value=tokens[0]))


def everything() -> Any:
    return exact(models.Filter())


def one_byte(text: str, _count: int) -> Any:
    """Strings are told apart by their first byte."""
    return encoding.string_chunks(text, 1, 1)


CHUNK: Final = (
    patch.object(fields, "string_chunks", one_byte),
    patch.object(filters, "string_chunks", one_byte),
)
FLAT: Final = (patch.object(filters, "MOST_LEVELS", 0),)


def of(module: Any, **changes: Any) -> list[Any]:
    return [patch.object(module, name, value) for name, value in changes.items()]


MUTANTS: Final[dict[str, list[Any]]] = {
    "<= asks for <": of(filters, BOUNDS={LT: "lt", LTE: "lt", GT: "gt", GTE: "gte"}),
    "> asks for >=": of(filters, BOUNDS={LT: "lt", LTE: "lte", GT: "gte", GTE: "gte"}),
    "< asks for >": of(filters, BOUNDS={LT: "gt", LTE: "lte", GT: "gt", GTE: "gte"}),
    "bounds of integers are rounded the other way": of(filters, _bound=swapped_bound),
    "bounds beyond 48 bits are at the wrong end": of(filters, _bound=unclamped_bound),
    "NOT is lost": of(filters, not_=unnegated),
    "absence is asked of another key": of(filters, presence_token=other_key),
    "kinds are not told apart": [
        *of(fields, metadata_tokens=tokens_by(text_token)), *of(filters, equality_token=text_token)
    ],
    "int and float do not meet": [
        *of(fields, metadata_tokens=tokens_by(typed_token)), *of(filters, equality_token=typed_token)
    ],
    "numbers are nearest doubles": [
        *of(fields, wide=nearest_double),
        *of(filters, wide=nearest_double),
    ],
    "wide numbers are asked of another field": of(filters, WIDE="o"),
    "integers are asked of another field": of(filters, NUMBERS="w"),
    "the least element alone": of(fields, _ranged=one_end(0)),
    "the greatest element alone": of(fields, _ranged=one_end(1)),
    "the first piece alone decides": of(filters, _gate=first_chunk),
    "ties of the first piece are lost": of(filters, _gate=untied),
    "instants are cut to seconds": of(fields, iso_instant=to_seconds),
    "long strings are said to be exact": [*CHUNK, *of(filters, superset=exact)],
    "long strings below NOT are asked for too loosely": [*CHUNK, *of(filters, certain=encoding.possible)],
    "long strings are asked for too strictly": [*CHUNK, *of(filters, possible=encoding.certain)],
    "what is nested too deep is said to be exact": [*FLAT, *of(filters, nothing=everything)],
    "IN asks for its first value": of(filters, _tokens=first_value),
    "AND is OR": of(QdrantFilterConverter, and_=QdrantFilterConverter.or_),
    "OR is AND": of(QdrantFilterConverter, or_=QdrantFilterConverter.and_),
    "keys stand in paths as they are": [
        *of(fields, key_name=unquoted), *of(filters, key_name=unquoted)
    ],
}  # fmt: skip


@pytest.mark.parametrize("changes", [[], [*CHUNK], [*FLAT]], ids=["whole", "short", "flat"])
def test_what_is_not_broken_answers_all_cases(changes: list[Any]) -> None:
    # F1 to F9: so what kills a mutant is the mutation
    with ExitStack() as stack:
        for change in changes:
            stack.enter_context(change)
        assert len(cases()) > 900
        assert list(wrong_cases()) == []


@pytest.mark.parametrize("name", MUTANTS)
def test_every_mutant_is_killed(name: str) -> None:
    # F1 to F9
    with ExitStack() as stack:
        for change in MUTANTS[name]:
            stack.enter_context(change)
        assert next(wrong_cases(), None) is not None
