"""From filters to predicates of Cypher (F1 to F6, F9, F10).

A filter goes to the engine as data. The text of a query is one of three, whatever the filter: without one, for up to
two levels of AND and OR, and for more. So no value and no key is ever part of a text, no filter is planned anew, and
nesting costs the planner nothing, which takes minutes for forty levels that are written out.

Every document has a list of tokens, which is never null, so no predicate is ever UNKNOWN (F3). Each node of the tree
becomes a conjunction of what must be in that list and what must not: an OR is the negation of a conjunction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, cast

from entrepot.filters import (
    AbstractFilterExpressionConverter,
    FilterOp,
    Leaf,
    Translation,
    exact,
)
from entrepot_neo4j.tokens import Span, prefix, span, token

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from entrepot.filters import Scalar

_RANGES: Final = frozenset({FilterOp.LT, FilterOp.LTE, FilterOp.GT, FilterOp.GTE})


class Having(NamedTuple):
    """Whether a document has one of some tokens, or one within a span; or, negated, has none.

    Attributes:
        tokens: The tokens; empty where there is a span.
        spans: At most one span.
        negated: Whether none may be there.
    """

    tokens: tuple[str, ...] = ()
    spans: tuple[Span, ...] = ()
    negated: bool = False


class Junction(NamedTuple):
    """An AND or an OR of clauses, none of which is of the same kind."""

    conjunction: bool
    parts: tuple[Clause, ...]


Clause: TypeAlias = "Having | Junction | bool"
"""What a filter becomes; a bool is a constant."""

Bundle: TypeAlias = list[Any]
"""A conjunction as the engine takes it: a level, then `_Conjunction`, then bundles that must not hold."""


class Predicate(NamedTuple):
    """A filter as the engine takes it.

    Attributes:
        deep: Whether it has more than two levels.
        parameter: What is bound to the parameter `f` of the text.
    """

    deep: bool
    parameter: list[Any]

    @property
    def text(self) -> str:
        """The predicate over the list `t` of tokens and the parameter as `f`."""
        return _DEEP if self.deep else _FLAT


class Neo4jFilterConverter(AbstractFilterExpressionConverter[Clause]):
    """Translate filters into what `predicate` makes a parameter of. Exact for every leaf, at any depth."""

    def leaf(self, leaf: Leaf) -> Translation[Clause]:
        """Ask whether some element of the key satisfies the comparison, or none (F2, F3)."""
        if leaf.op is FilterOp.ISNULL:
            return exact(Having((prefix(leaf.key),), negated=not leaf.negated))
        if leaf.op in _RANGES:
            within = span(leaf.op, leaf.key, cast("Scalar", leaf.value))
            return exact(Having((), (within,), leaf.negated))
        values = cast("tuple[Scalar, ...]", leaf.value if leaf.op is FilterOp.IN else (leaf.value,))
        return exact(Having(tuple(token(leaf.key, value) for value in values), negated=leaf.negated))

    def and_(self, parts: Sequence[Clause]) -> Clause:
        """Join clauses with AND."""
        return Junction(True, _flat(parts, conjunction=True))  # noqa: FBT003 - an AND

    def or_(self, parts: Sequence[Clause]) -> Clause:
        """Join clauses with OR."""
        return Junction(False, _flat(parts, conjunction=False))  # noqa: FBT003 - an OR

    def true(self) -> Clause:
        """Return the clause that every document satisfies."""
        return True

    def false(self) -> Clause:
        """Return the clause that no document satisfies."""
        return False


def _flat(parts: Iterable[Clause], *, conjunction: bool) -> tuple[Clause, ...]:
    found: list[Clause] = []
    for part in parts:
        if isinstance(part, Junction) and part.conjunction is conjunction:
            found += part.parts
        else:
            found.append(part)
    return tuple(found)


# --- the parameter ----------------------------------------------------------------------------------------


def predicate(clause: Clause) -> Predicate:
    """Return a clause that is no constant as the engine takes it.

    The parameter is: whether the root is to be negated; the root; the nodes below it that have nodes below them, from
    the deepest up, each a bundle with its level; and a list of as many trues as there are levels.
    """
    root = clause if isinstance(clause, Junction) else Junction(True, (clause,))  # noqa: FBT003 - an AND
    steps: list[Bundle] = []
    bundle = _bundle(root, 0, steps)
    levels = max((step[0] for step in steps), default=-1) + 3
    return Predicate(bool(steps), [not root.conjunction, bundle, steps, [True] * levels])


def _bundle(node: Junction, level: int, steps: list[Bundle]) -> Bundle:
    """Return a node as a conjunction, which an OR is the negation of.

    Nodes below that are no more than tests become bundles within it; others become steps of a level of their own.
    """
    tests = [part for part in node.parts if isinstance(part, Having)]
    below = [part for part in node.parts if isinstance(part, Junction)]
    within: list[Bundle] = []
    for part in below:
        if any(isinstance(one, Junction) for one in part.parts):
            step = _bundle(part, level + 1, steps)
            step[0] = level
            steps.append(step)
        else:
            within.append(_bundle(part, 0, steps))
    required = [test for test in tests if test.negated is not node.conjunction]
    forbidden = [test for test in tests if test.negated is node.conjunction]
    return [
        level,
        [test.tokens[0] for test in required if len(test.tokens) == 1],
        [list(test.tokens) for test in required if len(test.tokens) > 1],
        [list(one) for test in required for one in test.spans],
        list(dict.fromkeys(one for test in forbidden for one in test.tokens)),
        [list(one) for one in _united(one for test in forbidden for one in test.spans)],
        within,
    ]


def _united(spans: Iterable[Span]) -> list[Span]:
    """Return spans that no two of overlap, and which the same tokens lie in."""
    found: list[Span] = []
    for one in sorted(spans):
        if found and one.low <= found[-1].high:
            found[-1] = Span(found[-1].low, max(found[-1].high, one.high))
        else:
            found.append(one)
    return found


# --- the text ---------------------------------------------------------------------------------------------


def _holds(bundle: str) -> str:
    """Return the text that says whether a bundle's own tests hold: bound as a variable."""
    return (
        f"all(e IN {bundle}[1] WHERE e IN t)"
        f" AND all(s IN {bundle}[2] WHERE any(x IN t WHERE x IN s))"
        f" AND all(r IN {bundle}[3] WHERE any(x IN t WHERE x >= r[0] AND x < r[1]))"
        f" AND none(x IN t WHERE x IN {bundle}[4])"
        f" AND none(r IN {bundle}[5] WHERE any(x IN t WHERE x >= r[0] AND x < r[1]))"
    )


def _whole(bundle: str) -> str:
    return f"{_holds(bundle)} AND none(g IN {bundle}[6] WHERE {_holds('g')})"


_FLAT: Final = f"f[0] <> ({_whole('f[1]')})"
# What is folded is, for each level, whether none of its nodes was found to hold, of those that belong to the node above
# which comes next. A node's own bundle is looked at only if that is so.
_DEEP: Final = (
    "f[0] <> (reduce(a = f[3], m IN f[2] | a[0..m[0]]"
    f" + [a[m[0]] AND NOT (a[m[0] + 1] AND {_whole('m')}), true] + a[m[0] + 2..])[0]"
    f" AND {_whole('f[1]')})"
)
