"""What differs is made small, so that it can become a case."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, cast

from entrepot.filters import Expression, FilterOp, evaluate, format_filter, parse_filter
from entrepot_conformance.minimise import minimise

if TYPE_CHECKING:
    from collections.abc import Mapping

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
DOCUMENTS: Mapping[str, Mapping[str, object]] = {
    "a": {"x": 5, "when": NOON},
    "b": {"x": [1, 10], "y": "b"},
    "c": {"y": "c"},
}


def merged(expression: Expression) -> set[str]:
    """As an engine that takes ``x > 3 AND x < 7`` for one range, which a list of 1 and 10 is not in (F2)."""

    def holds(node: Expression, metadata: Mapping[str, object]) -> bool:
        if node.op is FilterOp.AND and "x > 3" in format_filter(node) and "x < 7" in format_filter(node):
            return evaluate(node, metadata) and not isinstance(metadata.get("x"), list)
        if node.op is FilterOp.NOT:
            return not holds(cast("Expression", node.left), metadata)
        if node.op in (FilterOp.AND, FilterOp.OR):
            sides = [holds(cast("Expression", side), metadata) for side in (node.left, node.right)]
            return all(sides) if node.op is FilterOp.AND else any(sides)
        return evaluate(node, metadata)

    return {name for name, metadata in DOCUMENTS.items() if holds(expression, metadata)}


def test_the_filter_is_made_small() -> None:
    # F2
    large = parse_filter("NOT (y == 'c' OR NOT (x > 3 AND x < 7 AND x IN [1, 2, 3, 10])) OR y == 'nobody'")
    assert merged(large) == set()  # and should be b
    found = minimise(merged, large, DOCUMENTS)
    assert found is not None
    assert format_filter(found.filter) == "x > 3 AND x < 7"
    assert set(found.missing) == {"b"}
    assert found.wrong == {}
    assert json.loads(found.case()) == {
        "documents": {"b": {"x": [1, 10], "y": "b"}},
        "cases": [{"filter": "x > 3 AND x < 7", "matches": ["b"]}],
    }


def test_lists_lose_elements_and_foreign_ids_are_wrong() -> None:
    # F5
    def match(expression: Expression) -> set[str]:
        right = {name for name, metadata in DOCUMENTS.items() if evaluate(expression, metadata)}
        return right | {"a", "ghost"} if "7" in format_filter(expression) else right

    found = minimise(match, parse_filter("x IN [6, 7, 8] AND NOT y == 'b'"), DOCUMENTS)
    assert found is not None
    assert format_filter(found.filter) == "x IN [7]"
    assert found.missing == {}
    assert set(found.wrong) == {"a", "ghost"}
    assert json.loads(found.case())["documents"]["ghost"] == {}
    assert json.loads(found.case())["cases"][0]["matches"] == []


def test_what_does_not_differ_is_nothing() -> None:
    assert minimise(lambda _: {"a", "b"}, parse_filter("x > 4"), DOCUMENTS) is None
