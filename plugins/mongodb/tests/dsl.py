# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownLambdaType=false
# pyright: reportUnknownMemberType=false
"""A reading of the queries that the converters write, in a few lines of Python: what a server would find.

It reads bounds as a server does: without `$elemMatch` each bound of a range may be met by another element of the array.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from entrepot_mongodb.tokens import tokens_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_SIGNS = {
    "$gt": lambda left, right: left > right,
    "$gte": lambda left, right: left >= right,
    "$lt": lambda left, right: left < right,
    "$lte": lambda left, right: left <= right,
}


def fields_of(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a document that filters ask for."""
    return {"_id": "an id", "t": tokens_of(metadata)}


def holds(query: Mapping[str, Any], document: Mapping[str, Any]) -> bool:
    """Whether a document satisfies a query; strings compare by code point, as UTF-8 does."""
    return all(_part(name, asked, document) for name, asked in query.items())


def _part(name: str, asked: Any, document: Mapping[str, Any]) -> bool:
    if name == "$and":
        return all(holds(part, document) for part in asked)
    if name == "$or":
        return any(holds(part, document) for part in asked)
    assert not name.startswith("$"), name
    stored = document[name]
    return _field(asked, stored if isinstance(stored, list) else [stored])


def _field(asked: Mapping[str, Any], elements: Sequence[str]) -> bool:
    answers: list[bool] = []
    for operator, operand in asked.items():
        if operator == "$in":
            assert all(isinstance(one, str) for one in operand)
            answers.append(not set(operand).isdisjoint(elements))
        elif operator == "$nin":
            answers.append(set(operand).isdisjoint(elements))
        elif operator == "$eq":
            answers.append(operand in elements)
        elif operator == "$not":
            answers.append(not _field(operand, elements))
        elif operator == "$elemMatch":
            assert len(operand) == 2, "a range has two bounds, as its key and kind have"
            answers.append(
                any(all(_SIGNS[sign](one, at) for sign, at in operand.items()) for one in elements)
            )
        else:
            answers.append(any(_SIGNS[operator](one, operand) for one in elements))
    return all(answers)


def levels(query: Any) -> int:
    """Return how many objects and arrays stand within one another."""
    if isinstance(query, dict):
        return 1 + max((levels(part) for part in query.values()), default=0)
    if isinstance(query, list):
        return 1 + max((levels(part) for part in query), default=0)
    return 0
