"""A reading of the queries that the converter writes, in a few lines of Python: what an index would find."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from entrepot_elasticsearch.tokens import tokens_of

if TYPE_CHECKING:
    from collections.abc import Mapping


def fields_of(metadata: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the fields of a document that filters ask for."""
    indexed = tokens_of(metadata)
    return {"tokens": indexed.tokens, "long": indexed.long}


def holds(query: Mapping[str, Any], fields: Mapping[str, list[str]]) -> bool:
    """Whether a document satisfies a query; terms compare by code point, as UTF-8 does."""
    ((kind, body),) = query.items()
    if kind == "match_all":
        return True
    if kind == "match_none":
        return False
    if kind == "terms":
        ((field, wanted),) = body.items()
        return not set(wanted).isdisjoint(fields[field])
    if kind == "range":
        ((field, bounds),) = body.items()
        return any(_within(term, bounds) for term in fields[field])
    assert kind == "bool", kind
    assert body.keys() <= {"filter", "must_not", "should", "minimum_should_match"}
    assert ("should" in body) is (body.get("minimum_should_match") == 1)
    return (
        all(holds(part, fields) for part in body.get("filter", ()))
        and not any(holds(part, fields) for part in body.get("must_not", ()))
        and ("should" not in body or any(holds(part, fields) for part in body["should"]))
    )


def _within(term: str, bounds: Mapping[str, str]) -> bool:
    assert len(bounds) == 2, "a range has two bounds, as its key and kind have"
    return all(
        {"gt": term > at, "gte": term >= at, "lt": term < at, "lte": term <= at}[name]
        for name, at in bounds.items()
    )


def levels(query: Mapping[str, Any]) -> int:
    """Return how many `bool` stand within one another."""
    body = query.get("bool", {})
    inner = [part for name in ("filter", "must_not", "should") for part in body.get(name, ())]
    return (1 if body else 0) + max((levels(part) for part in inner), default=0)


def clauses(query: Mapping[str, Any]) -> int:
    """Return how many clauses are no `bool`."""
    body = query.get("bool")
    if body is None:
        return 1
    return sum(clauses(part) for name in ("filter", "must_not", "should") for part in body.get(name, ()))
