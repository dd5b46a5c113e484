"""A reading of the predicates that the plugin writes, in a few lines of Python: what the engine would find."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from entrepot_neo4j.filters import predicate
from entrepot_neo4j.tokens import tokens_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from entrepot_neo4j.filters import Clause


def fields_of(metadata: Mapping[str, Any]) -> list[str]:
    """Return the list of tokens of a document."""
    return tokens_of(metadata)


def holds(clause: Clause, tokens: Sequence[str]) -> bool:
    """Whether a document satisfies a clause: by the parameter of the predicate, and as its text reads it."""
    if isinstance(clause, bool):
        return clause
    deep, parameter = predicate(clause)
    negated, root, steps, trues = cast("tuple[bool, list[Any], list[Any], list[bool]]", parameter)
    assert deep is bool(steps)
    levels: list[bool] = list(trues)
    for step in steps:
        level: int = step[0]
        below = levels[level + 1] and _whole(step, tokens)
        levels = [*levels[:level], levels[level] and not below, True, *levels[level + 2 :]]
        assert len(levels) == len(trues)
    return negated is not ((levels[0] if deep else True) and _whole(root, tokens))


def _whole(bundle: Sequence[Any], tokens: Sequence[str]) -> bool:
    return _own(bundle, tokens) and not any(_own(one, tokens) for one in bundle[6])


def _own(bundle: Sequence[Any], tokens: Sequence[str]) -> bool:
    _, each, sets, spans, none, never, *_ = bundle
    return (
        all(one in tokens for one in each)
        and all(any(token in some for token in tokens) for some in sets)
        and all(any(_within(token, span) for token in tokens) for span in spans)
        and not any(token in none for token in tokens)
        and not any(_within(token, span) for token in tokens for span in never)
    )


def _within(token: str, span: Sequence[str]) -> bool:
    """Compare as the engine does in a predicate: by UTF-16 unit."""
    low, high = span
    return units(low) <= units(token) < units(high)


def units(text: str) -> bytes:
    """Return what sorts as the UTF-16 units of a text."""
    return text.encode("utf-16-be")
