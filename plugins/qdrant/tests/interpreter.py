"""What conditions of Qdrant mean, in plain Python: a reading of its documentation, of what this plugin sends."""

from __future__ import annotations

import operator
from datetime import datetime
from typing import Any


def values_at(payload: Any, path: str) -> list[Any]:
    found: list[Any] = [payload]
    for part in path.split("."):
        name = part.removesuffix("[]")
        found = [each[name] for each in found if isinstance(each, dict) and name in each]
        if part.endswith("[]"):
            found = [each for held in found if isinstance(held, list) for each in held]  # pyright: ignore[reportUnknownVariableType]
    return [each for held in found for each in (held if isinstance(held, list) else [held])]  # pyright: ignore[reportUnknownVariableType]


def satisfies(payload: Any, query: Any) -> bool:
    """Whether a payload satisfies a condition, as Qdrant's documentation has it."""
    if "nested" in query:
        held = values_at(payload, query["nested"]["key"])
        return any(satisfies(each, query["nested"]["filter"]) for each in held)
    if "is_empty" in query:
        return not values_at(payload, query["is_empty"]["key"])
    if "key" in query:
        held = values_at(payload, query["key"])
        if "match" in query:
            wanted = query["match"].get("any", [query["match"].get("value")])
            return any(each in wanted for each in held)
        return any(in_range(each, query["range"]) for each in held)
    return (
        all(satisfies(payload, part) for part in query.get("must", []))
        and (not query.get("should") or any(satisfies(payload, part) for part in query["should"]))
        and not any(satisfies(payload, part) for part in query.get("must_not", []))
    )


def in_range(value: Any, limits: dict[str, Any]) -> bool:
    """Whether a value lies within bounds: a number within numbers, an instant within instants."""
    if isinstance(value, str) and all(isinstance(limit, str) for limit in limits.values()):
        value, limits = at(value), {name: at(limit) for name, limit in limits.items()}
    elif isinstance(value, bool) or not isinstance(value, int | float):
        return False
    tests = {"lt": operator.lt, "lte": operator.le, "gt": operator.gt, "gte": operator.ge}
    return all(tests[name](value, limit) for name, limit in limits.items())


def at(text: str) -> datetime:
    return datetime.fromisoformat(text)
