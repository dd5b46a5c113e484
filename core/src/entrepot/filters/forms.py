"""Clause forms: a normal form flattened to two levels, for engines that take no deeper nesting.

A conjunctive form is an AND of clauses, each an OR of leaves; a disjunctive form is an OR of conjunctions,
each an AND of leaves. Both can grow exponentially, so both are bounded. What exceeds the bound is dropped
in the one direction that is safe: the form then holds wherever the filter holds and perhaps elsewhere, and
`exact` is False. The caller completes the filter on what comes back (F9).
"""

from __future__ import annotations

from collections import Counter
from itertools import chain
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from entrepot.errors import ConfigurationError
from entrepot.filters.normalise import FALSE, TRUE, And, Leaf, Or, normalise

if TYPE_CHECKING:
    from collections.abc import Iterable

    from entrepot.filters.expression import Expression
    from entrepot.filters.normalise import Normal

Leaves: TypeAlias = tuple[Leaf, ...]

_MAX_COMPARED: Final = 256
"""Rows that are compared with each other to drop what is implied."""


class Conjunctive(NamedTuple):
    """An AND of clauses, each an OR of leaves.

    No clause at all holds for every document; an empty clause holds for none.
    """

    clauses: tuple[Leaves, ...]
    exact: bool


class Disjunctive(NamedTuple):
    """An OR of conjunctions, each an AND of leaves.

    No conjunction at all holds for no document; an empty conjunction holds for every one.
    """

    conjunctions: tuple[Leaves, ...]
    exact: bool


def conjunctive(normal: Expression | Normal, *, clauses: int, literals: int) -> Conjunctive:
    """Bring a filter into an AND of at most `clauses` ORs of at most `literals` leaves each.

    Longer clauses are dropped, then those beyond the number, the longest first. A dropped clause widens the
    result, so it stays a superset.

    Raises:
        ConfigurationError: A bound is not a positive integer.
    """
    _check_bound("clauses", clauses)
    _check_bound("literals", literals)
    made, exact = _conjunctive(normalise(normal), clauses, literals)
    return Conjunctive(tuple(made), exact)


def disjunctive(normal: Expression | Normal, *, conjunctions: int) -> Disjunctive:
    """Bring a filter into an OR of at most `conjunctions` ANDs of leaves.

    An alternative cannot be dropped without losing documents. So where an AND would multiply beyond the
    bound, its part with the most alternatives is left out, and where an OR has too many, alternatives that
    share a leaf are merged into what they share, if need be into nothing, which holds for every document.

    Raises:
        ConfigurationError: The bound is not a positive integer.
    """
    _check_bound("conjunctions", conjunctions)
    made, exact = _disjunctive(normalise(normal), conjunctions)
    return Disjunctive(tuple(made), exact)


def _conjunctive(normal: Normal, clauses: int, literals: int) -> tuple[list[Leaves], bool]:
    # Normal forms are at most MAX_NORMAL_DEPTH deep, so recursion is safe here and below.
    if normal is TRUE or normal is FALSE:
        return [] if normal is TRUE else [()], True
    if isinstance(normal, Leaf):
        return [(normal,)], True
    parts = [_conjunctive(part, clauses, literals) for part in normal.parts]
    exact = all(part_exact for _, part_exact in parts)
    if isinstance(normal, And):
        joined, cut = _within(chain.from_iterable(made for made, _ in parts), clauses, literals)
        return joined, exact and not cut
    joined = [()]
    for made, _ in parts:
        products = (_union(left, right) for left in joined for right in made)
        joined, cut = _within((product for product in products if not _opposed(product)), clauses, literals)
        exact = exact and not cut
        if not joined:
            break
    return joined, exact


def _within(clauses: Iterable[Leaves], number: int, literals: int) -> tuple[list[Leaves], bool]:
    """Keep the shortest clauses within the bounds, in their order; say whether any was lost."""
    distinct = _absorbed(clauses)
    short = [clause for clause in distinct if len(clause) <= literals]
    if len(short) > number:
        short_first = sorted(range(len(short)), key=lambda position: len(short[position]))
        short = [short[position] for position in sorted(short_first[:number])]
    return short, len(short) < len(distinct)


def _disjunctive(normal: Normal, number: int) -> tuple[list[Leaves], bool]:
    if normal is TRUE or normal is FALSE:
        return [()] if normal is TRUE else [], True
    if isinstance(normal, Leaf):
        return [(normal,)], True
    parts = [_disjunctive(part, number) for part in normal.parts]
    exact = all(part_exact for _, part_exact in parts)
    if isinstance(normal, Or):
        joined, merged = _merged(_absorbed(chain.from_iterable(made for made, _ in parts)), number)
        return joined, exact and not merged
    joined = [()]
    for made, _ in sorted(parts, key=lambda part: len(part[0])):
        if len(joined) * len(made) > number:
            exact = False
            continue
        products = [_union(left, right) for left in joined for right in made]
        joined = _absorbed(product for product in products if not _opposed(product))
    return joined, exact


def _merged(conjunctions: list[Leaves], number: int) -> tuple[list[Leaves], bool]:
    """Widen until there are at most `number`; say whether anything was widened."""
    widened = False
    while len(conjunctions) > number:
        widened = True
        [(leaf, times)] = Counter(chain.from_iterable(conjunctions)).most_common(1)
        if times == 1:
            return [()], True
        sharing = [conjunction for conjunction in conjunctions if leaf in conjunction]
        shared = tuple(part for part in sharing[0] if all(part in other for other in sharing))
        rest = [conjunction for conjunction in conjunctions if leaf not in conjunction]
        conjunctions = [shared, *rest]
    return conjunctions, widened


def _union(left: Leaves, right: Leaves) -> Leaves:
    return tuple(dict.fromkeys(left + right))


def _opposed(leaves: Leaves) -> bool:
    """Whether a leaf stands beside its own complement: always true in an OR, never in an AND (F3)."""
    return any(leaf.negated and leaf.complement() in leaves for leaf in leaves)


def _absorbed(rows: Iterable[Leaves]) -> list[Leaves]:
    """Drop repeated rows, and every row that has all leaves of another one: the meaning stays the same.

    The second takes the square of their number, so many rows keep what is implied.
    """
    distinct = list(dict.fromkeys(rows))
    if len(distinct) > _MAX_COMPARED:
        return distinct
    sets = [frozenset(row) for row in distinct]
    return [
        row for row, leaves in zip(distinct, sets, strict=True) if not any(other < leaves for other in sets)
    ]


def _check_bound(name: str, bound: object) -> None:
    if type(bound) is not int or bound < 1:
        raise ConfigurationError(f"{name} is a positive integer, not {bound!r}")
