"""Makes a filter on which two implementations differ as small as it can be, for the cases."""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from entrepot.filters import Expression, FilterOp, Key, Value, evaluate, format_filter

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

_TRIES: Final = 2_000


class Disagreement(NamedTuple):
    """A filter on which an implementation differs from the evaluator.

    Attributes:
        filter: The filter, as small as was found.
        missing: Metadata by id of documents that match, which it did not give.
        wrong: Metadata by id of documents that do not match, which it gave.
    """

    filter: Expression
    missing: dict[str, Mapping[str, object]]
    wrong: dict[str, Mapping[str, object]]

    def case(self) -> str:
        """Return it as JSON of the cases' form, with the smallest document of each sort."""
        documents = {
            name: {key: _plain(value) for key, value in sorted(metadata.items())}
            for sort in (self.missing, self.wrong)
            for name, metadata in sorted(sort.items(), key=lambda entry: (len(entry[1]), entry[0]))[:1]
        }
        case = {
            "filter": format_filter(self.filter),
            "matches": sorted(name for name in self.missing if name in documents),
        }
        return json.dumps({"documents": documents, "cases": [case]}, ensure_ascii=False)


def minimise(
    match: Callable[[Expression], Collection[str]],
    expression: Expression,
    documents: Mapping[str, Mapping[str, object]],
) -> Disagreement | None:
    """Return the smallest filter found on which `match` differs from the evaluator; None if it does not.

    Parts of the filter are left out one at a time for as long as the two still differ, on any document.

    Args:
        match: What is wrong: takes a filter, returns the ids of the documents that match.
        expression: A filter on which it differs.
        documents: Metadata by id, as `match` knows them.
    """
    best = compare(match, expression, documents)
    tries = 0
    while best is not None:
        for smaller in _smaller(best.filter):
            tries += 1
            found = compare(match, smaller, documents)
            if found is not None:
                best = found
                break
        else:
            break
        if tries > _TRIES:
            break
    return best


def compare(
    match: Callable[[Expression], Collection[str]],
    expression: Expression,
    documents: Mapping[str, Mapping[str, object]],
) -> Disagreement | None:
    """Return how `match` differs from the evaluator on a filter; None if it does not."""
    answer = set(match(expression))
    missing: dict[str, Mapping[str, object]] = {}
    wrong: dict[str, Mapping[str, object]] = {}
    for name, metadata in documents.items():
        if evaluate(expression, metadata):
            if name not in answer:
                missing[name] = metadata
        elif name in answer:
            wrong[name] = metadata
    foreign: dict[str, Mapping[str, object]] = {name: {} for name in answer - documents.keys()}
    wrong |= foreign
    return Disagreement(expression, missing, wrong) if missing or wrong else None


def _smaller(expression: Expression) -> Iterator[Expression]:
    """Give filters that are one step smaller, the smallest first."""
    if expression.op is FilterOp.NOT:
        inner = cast("Expression", expression.left)
        yield inner
        yield from (Expression(FilterOp.NOT, part) for part in _smaller(inner))
    elif expression.op in (FilterOp.AND, FilterOp.OR):
        left, right = cast("Expression", expression.left), cast("Expression", expression.right)
        yield left
        yield right
        yield from (Expression(expression.op, part, right) for part in _smaller(left))
        yield from (Expression(expression.op, left, part) for part in _smaller(right))
    elif expression.op in (FilterOp.IN, FilterOp.NIN):
        values = cast("tuple[Any, ...]", cast("Value", expression.right).value)
        for place in range(len(values)):
            yield Expression(
                expression.op, cast("Key", expression.left), Value([*values[:place], *values[place + 1 :]])
            )


def _plain(value: object) -> object:
    if isinstance(value, datetime):
        return {"datetime": value.isoformat().replace("+00:00", "Z")}
    if isinstance(value, list):
        return [_plain(element) for element in cast("list[object]", value)]
    return value
