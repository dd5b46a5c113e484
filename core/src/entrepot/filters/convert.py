"""The base of all translators from filters to an engine's own language.

A translator says, leaf by leaf, what its engine can do: translate exactly, give a superset (every document
that matches and perhaps more), or nothing. The base does the walking and combines the answers. Negation
is at the leaves already, so AND and OR of supersets are supersets again: an AND drops the parts for which
there is nothing, an OR with such a part is nothing as a whole. Nothing is silent: `Converted.report` tells
what became of every clause, and where the whole is not exact the core completes it (F9).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import Enum
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Never, TypeVar, cast, final

from entrepot.errors import ArgumentTypeError
from entrepot.filters.normalise import FALSE, TRUE, And, Leaf, Or, normalise
from entrepot.filters.printer import format_leaf

if TYPE_CHECKING:
    from collections.abc import Sequence

    from entrepot.filters.expression import Expression
    from entrepot.filters.normalise import Normal

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Pushdown(Enum):
    """How much of a clause the engine answers by itself."""

    EXACT = "exact"
    SUPERSET = "superset"
    NOTHING = "nothing"

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"Pushdown.{self.name}"


@final
class Translation(NamedTuple, Generic[T_co]):
    """What a translator answers for a leaf; made by `exact`, `superset` and `nothing`."""

    pushdown: Pushdown
    clause: T_co | None


def exact(clause: T) -> Translation[T]:
    """The clause holds for the same documents as the leaf."""
    return Translation(Pushdown.EXACT, clause)


def superset(clause: T) -> Translation[T]:
    """The clause holds wherever the leaf holds, and perhaps elsewhere."""
    return Translation(Pushdown.SUPERSET, clause)


def nothing() -> Translation[Never]:
    """The engine cannot narrow the documents by this leaf."""
    return Translation(Pushdown.NOTHING, None)


class ReportRow(NamedTuple):
    """One node of the filter in a report.

    Attributes:
        level: Depth in the tree, from 0.
        node: The leaf, ``"AND"``, ``"OR"``, ``"TRUE"`` or ``"FALSE"``.
        pushdown: What the engine does with it.
        clause: What the leaf became in the engine's language; None for chains and where there is nothing.
    """

    level: int
    node: Leaf | str
    pushdown: Pushdown
    clause: object

    def text(self, *, values: bool = True) -> str:
        """Print the node in the filter language; with ``values=False`` operands are question marks."""
        return format_leaf(self.node, values=values) if isinstance(self.node, Leaf) else self.node


@final
class Report:
    """What became of every clause, as a tree. `str()` prints it, one line a clause."""

    __slots__ = ("rows",)

    def __init__(self, rows: Sequence[ReportRow]) -> None:
        self.rows = tuple(rows)

    @property
    def inexact(self) -> tuple[Leaf, ...]:
        """The leaves that the engine does not answer exactly, in order."""
        return tuple(
            row.node for row in self.rows if isinstance(row.node, Leaf) and row.pushdown is not Pushdown.EXACT
        )

    def text(self, *, values: bool = True) -> str:
        """Print the tree: each clause behind what the engine does with it.

        With ``values=False`` operands are question marks, as errors and logs want it.
        """
        return "\n".join(
            f"{row.pushdown.value:<8}  {'  ' * row.level}{row.text(values=values)}" for row in self.rows
        )

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return f"<Report: {len(self.rows)} rows, {len(self.inexact)} leaves not exact>"


class Converted(NamedTuple, Generic[T]):
    """A translated filter.

    Attributes:
        query: The translation; every document that matches the filter satisfies it.
        exact: Whether it holds for no other documents. If not, the core re-evaluates what comes back (F9).
        report: What became of each clause.
        normal: The normal form that was translated.
    """

    query: T
    exact: bool
    report: Report
    normal: Normal


class AbstractFilterExpressionConverter(ABC, Generic[T]):
    """Translate filters into `T`, the filter type of one engine.

    Subclasses fill `leaf`, `and_`, `or_`, `true` and `false`; none of them sees a NOT. `leaf` writes out the
    guard for absent keys: a negated EQ, IN or range holds for them, a plain one does not (F2, F3). Two
    comparisons of one key are never merged, because different elements of a list may satisfy them (F2).

    Instances keep no state of a translation, so threads can share one.
    """

    @abstractmethod
    def leaf(self, leaf: Leaf) -> Translation[T]:
        """Translate one leaf: `exact(clause)`, `superset(clause)` or `nothing()`."""

    @abstractmethod
    def and_(self, parts: Sequence[T]) -> T:
        """Join two or more clauses with AND."""

    @abstractmethod
    def or_(self, parts: Sequence[T]) -> T:
        """Join two or more clauses with OR."""

    @abstractmethod
    def true(self) -> T:
        """Return the clause that holds for every document."""

    @abstractmethod
    def false(self) -> T:
        """Return the clause that holds for no document."""

    def convert(self, filter: Expression | Normal) -> Converted[T]:  # noqa: A002
        """Translate a filter, given as a tree or in normal form.

        Raises:
            FilterLimitError: The tree is deeper or larger than allowed (F6).
        """
        normal = normalise(filter)
        rows: list[ReportRow] = []
        done: dict[int, Translation[T]] = {}  # by row number
        stack: list[tuple[Normal, int, int]] = [(normal, 0, -1)]  # node, level, row if its parts are done
        children: list[list[int]] = []  # row numbers of the parts, by row number
        parents: list[int] = []
        while stack:
            node, level, number = stack.pop()
            if number >= 0:
                parts = [done.pop(child) for child in children[number]]
                combined = self._combine(isinstance(node, And), parts)
                done[number] = combined
                rows[number] = rows[number]._replace(pushdown=combined.pushdown)
                continue
            number = len(rows)
            children.append([])
            if level:
                children[parents[level - 1]].append(number)
            if isinstance(node, And | Or):
                rows.append(
                    ReportRow(level, "AND" if isinstance(node, And) else "OR", Pushdown.NOTHING, None)
                )
                del parents[level:]
                parents.append(number)
                stack.append((node, level, number))
                stack.extend((part, level + 1, -1) for part in reversed(node.parts))
            else:
                done[number] = translation = self._translate(node)
                name = node if isinstance(node, Leaf) else node.name
                clause = translation.clause if isinstance(node, Leaf) else None
                rows.append(ReportRow(level, name, translation.pushdown, clause))
        whole = done[0]
        query = self.true() if whole.pushdown is Pushdown.NOTHING else cast("T", whole.clause)
        return Converted(query, whole.pushdown is Pushdown.EXACT, Report(rows), normal)

    def _translate(self, node: Normal) -> Translation[T]:
        if node is TRUE:
            return exact(self.true())
        if node is FALSE:
            return exact(self.false())
        return self._checked(self.leaf(cast("Leaf", node)))

    def _checked(self, answer: object) -> Translation[Any]:
        if isinstance(answer, Translation):
            return answer  # pyright: ignore[reportUnknownVariableType]
        raise ArgumentTypeError(
            f"{type(self).__name__}.leaf answered {type(answer).__name__}, not a Translation",
            hint="return exact(clause), superset(clause) or nothing()",
        )

    def _combine(self, conjunction: bool, parts: Sequence[Translation[T]]) -> Translation[T]:  # noqa: FBT001
        is_exact = all(part.pushdown is Pushdown.EXACT for part in parts)
        clauses = [cast("T", part.clause) for part in parts if part.pushdown is not Pushdown.NOTHING]
        if not clauses or (not conjunction and len(clauses) < len(parts)):
            return nothing()
        join = self.and_ if conjunction else self.or_
        clause = join(clauses) if len(clauses) > 1 else clauses[0]
        return exact(clause) if is_exact else superset(clause)
