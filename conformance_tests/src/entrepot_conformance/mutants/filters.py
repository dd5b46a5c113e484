# ruff: noqa: D102, SLF001 - mutants do what their bases do, but for one thing within
# pyright: reportPrivateUsage=false, reportUnknownArgumentType=false, reportUnknownLambdaType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
"""Filters misunderstood: an engine that compares element by element, and the faults that engines have.

`Comparing` answers every leaf exactly; `Partial` answers some with a superset or not at all, so that the
core completes; `Clauses` is asked for bounded conjunctive and disjunctive forms. The other mutants change
the core's normal forms and the columns of the embedded store.
"""

from __future__ import annotations

import fnmatch
import importlib
import operator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final, cast
from unittest.mock import patch

from entrepot import SimpleVectorStore, completion
from entrepot.filters import (
    FALSE,
    TRUE,
    AbstractFilterExpressionConverter,
    And,
    Converted,
    FilterOp,
    Leaf,
    Pushdown,
    Translation,
    all_of,
    evaluate,
    exact,
    forms,
    kind_of,
    nothing,
    superset,
)
from entrepot.stores.simple import columns
from entrepot_conformance.mutants.engine import ConvertingStore, PredicateConverter
from entrepot_conformance.mutants.model import breaks, breaks_core

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from entrepot.filters import Expression, Normal
    from entrepot.metadata import Metadata
    from entrepot_conformance.mutants.engine import Predicate

normalising: Final = importlib.import_module("entrepot.filters.normalise")  # the function hides the module

_COMPARE: Final[dict[FilterOp, Callable[[Any, Any], bool]]] = {
    FilterOp.EQ: operator.eq,
    FilterOp.LT: operator.lt,
    FilterOp.LTE: operator.le,
    FilterOp.GT: operator.gt,
    FilterOp.GTE: operator.ge,
}
_TURNED: Final = {
    FilterOp.LT: FilterOp.GTE,
    FilterOp.LTE: FilterOp.GT,
    FilterOp.GT: FilterOp.LTE,
    FilterOp.GTE: FilterOp.LT,
}


class ComparingConverter(PredicateConverter):
    """Compares the elements of a key, one by one: F1 to F5 as they are written."""

    def leaf(self, leaf: Leaf) -> Translation[Predicate]:
        """Ask whether some element satisfies the comparison, or none."""
        return exact(partial(self.holds, leaf))

    def holds(self, leaf: Leaf, metadata: Mapping[str, Any]) -> bool:
        """Whether a document satisfies a leaf."""
        elements = self.elements(metadata.get(leaf.key))
        if leaf.op is FilterOp.ISNULL:
            return (not elements) is not leaf.negated
        return self.some(leaf, elements) is not leaf.negated

    def elements(self, value: Any) -> list[Any]:
        """Return the elements of a value (F1, F2)."""
        if value is None:
            return []
        found: list[Any] = value if isinstance(value, list) else [value]
        return found

    def some(self, leaf: Leaf, elements: Sequence[Any]) -> bool:
        """Whether some element satisfies the plain comparison (F2)."""
        if leaf.op is FilterOp.IN:
            values = cast("tuple[Any, ...]", leaf.value)
            return any(self.compare(FilterOp.EQ, element, value) for element in elements for value in values)
        return any(self.compare(leaf.op, element, leaf.value) for element in elements)

    def compare(self, op: FilterOp, element: Any, operand: Any) -> bool:
        """Compare within one kind (F4)."""
        return kind_of(element) == kind_of(operand) and _COMPARE[op](element, operand)


class Comparing(ConvertingStore):
    """Keeps metadata as it is, and compares."""

    converts: ClassVar[type[AbstractFilterExpressionConverter[Any]]] = ComparingConverter

    def index(self, metadata: Metadata) -> Any:
        """Keep the metadata."""
        return metadata

    def converter(self) -> Any:
        """Return the class's converter."""
        return self.converts()


def _comparing(rule: str, store: type[Comparing] = Comparing) -> Callable[[type[Any]], type[Any]]:
    """Make a converter a mutant: of a store that uses it."""

    def register(converts: type[Any]) -> type[Any]:
        made = type(
            converts.__name__,
            (store,),
            {"converts": converts, "__doc__": converts.__doc__, "__module__": __name__},
        )
        breaks(rule, "store")(made)
        return converts

    return register


@_comparing("F1")
class PresentEmptyLists(ComparingConverter):
    """Takes an empty list for present."""

    def holds(self, leaf: Leaf, metadata: Mapping[str, Any]) -> bool:
        if leaf.op is FilterOp.ISNULL:
            return (leaf.key not in metadata) is not leaf.negated
        return super().holds(leaf, metadata)


@_comparing("F1")
class EmptyStringsAbsent(ComparingConverter):
    """Takes an empty string for absent."""

    def holds(self, leaf: Leaf, metadata: Mapping[str, Any]) -> bool:
        if leaf.op is FilterOp.ISNULL and metadata.get(leaf.key) == "":
            return not leaf.negated
        return super().holds(leaf, metadata)


@_comparing("F2")
class FirstElements(ComparingConverter):
    """Looks at the first element of a list."""

    def elements(self, value: Any) -> list[Any]:
        return super().elements(value)[:1]


@_comparing("F2")
class AllElements(ComparingConverter):
    """Asks whether all elements satisfy a range."""

    def some(self, leaf: Leaf, elements: Sequence[Any]) -> bool:
        if leaf.op in _TURNED:
            return bool(elements) and all(self.compare(leaf.op, each, leaf.value) for each in elements)
        return super().some(leaf, elements)


class Joined(Comparing):
    """Binds the ranges of one key in an AND to one element, as elemMatch does."""

    def converter(self) -> Any:
        """Return a converter that sees the whole filter."""
        return _JoiningConverter()


class _JoiningConverter(ComparingConverter):
    def convert(self, filter: Expression | Normal) -> Converted[Predicate]:  # noqa: A002
        converted = super().convert(filter)
        return converted._replace(query=partial(self._matches, converted.normal))

    def _matches(self, normal: Normal, metadata: Mapping[str, Any]) -> bool:
        if normal is TRUE or normal is FALSE:
            return normal is TRUE
        if isinstance(normal, Leaf):
            return self.holds(normal, metadata)
        if not isinstance(normal, And):
            return any(self._matches(part, metadata) for part in normal.parts)
        ranges: dict[str, list[Leaf]] = {}
        for part in normal.parts:
            if isinstance(part, Leaf) and part.op in _TURNED and not part.negated:
                ranges.setdefault(part.key, []).append(part)
        together = all(
            any(
                all(self.compare(leaf.op, element, leaf.value) for leaf in leaves)
                for element in self.elements(metadata.get(key))
            )
            for key, leaves in ranges.items()
        )
        return together and all(self._matches(part, metadata) for part in normal.parts)


breaks("F2", "store")(Joined)


@_comparing("F3")
class AbsentDropped(ComparingConverter):
    """Drops documents that lack the key from what a negated comparison finds."""

    def holds(self, leaf: Leaf, metadata: Mapping[str, Any]) -> bool:
        if leaf.negated and leaf.op is not FilterOp.ISNULL and not self.elements(metadata.get(leaf.key)):
            return False
        return super().holds(leaf, metadata)


@_comparing("F3")
class TurnedRanges(ComparingConverter):
    """Turns a negated range round: not below five is five and more."""

    def holds(self, leaf: Leaf, metadata: Mapping[str, Any]) -> bool:
        if leaf.negated and leaf.op in _TURNED:
            elements = self.elements(metadata.get(leaf.key))
            return any(self.compare(_TURNED[leaf.op], element, leaf.value) for element in elements)
        return super().holds(leaf, metadata)


@_comparing("F3")
class SomeOther(ComparingConverter):
    """Finds lists by an element that differs, where none may be equal."""

    def holds(self, leaf: Leaf, metadata: Mapping[str, Any]) -> bool:
        elements = self.elements(metadata.get(leaf.key))
        if leaf.negated and leaf.op is FilterOp.EQ and elements:
            return any(not self.compare(FilterOp.EQ, element, leaf.value) for element in elements)
        return super().holds(leaf, metadata)


@_comparing("F4")
class BooleansAsNumbers(ComparingConverter):
    """Compares True and 1 as Python does."""

    def compare(self, op: FilterOp, element: Any, operand: Any) -> bool:
        if {kind_of(element), kind_of(operand)} == {"bool", "number"}:
            return _COMPARE[op](element, operand)
        return super().compare(op, element, operand)


@_comparing("F4")
class NumbersAsTexts(ComparingConverter):
    """Compares a number with a string by how it is written."""

    def compare(self, op: FilterOp, element: Any, operand: Any) -> bool:
        if {kind_of(element), kind_of(operand)} == {"str", "number"}:
            return _COMPARE[op](str(element), str(operand))
        return super().compare(op, element, operand)


@_comparing("F4")
class NumbersAsDoubles(ComparingConverter):
    """Compares numbers as doubles."""

    def compare(self, op: FilterOp, element: Any, operand: Any) -> bool:
        if kind_of(element) == kind_of(operand) == "number":
            return _COMPARE[op](float(element), float(operand))
        return super().compare(op, element, operand)


@_comparing("F4")
class FoldedCase(ComparingConverter):
    """Compares strings without regard to case."""

    def compare(self, op: FilterOp, element: Any, operand: Any) -> bool:
        if kind_of(element) == kind_of(operand) == "str":
            return _COMPARE[op](element.casefold(), operand.casefold())
        return super().compare(op, element, operand)


@_comparing("F4")
class CodeUnits(ComparingConverter):
    """Orders strings by their UTF-16 units."""

    def compare(self, op: FilterOp, element: Any, operand: Any) -> bool:
        if kind_of(element) == kind_of(operand) == "str":
            return _COMPARE[op](element.encode("utf-16-be"), operand.encode("utf-16-be"))
        return super().compare(op, element, operand)


@_comparing("F4")
class Milliseconds(ComparingConverter):
    """Keeps instants to the millisecond."""

    def compare(self, op: FilterOp, element: Any, operand: Any) -> bool:
        if kind_of(element) == kind_of(operand) == "datetime":
            return _COMPARE[op](_cut(element), _cut(operand))
        return super().compare(op, element, operand)


def _cut(instant: datetime) -> datetime:
    utc = instant.astimezone(UTC)
    return utc.replace(microsecond=utc.microsecond // 1000 * 1000)


@_comparing("F4")
class TextsAsInstants(ComparingConverter):
    """Takes a string that looks like an instant for one."""

    def compare(self, op: FilterOp, element: Any, operand: Any) -> bool:
        if {kind_of(element), kind_of(operand)} == {"str", "datetime"}:
            try:
                element, operand = _instant(element), _instant(operand)
            except ValueError:
                return False
            return _COMPARE[op](element, operand)
        return super().compare(op, element, operand)


def _instant(value: str | datetime) -> datetime:
    instant = datetime.fromisoformat(value) if isinstance(value, str) else value
    return instant if instant.tzinfo else instant.replace(tzinfo=UTC)


@_comparing("F5")
class OneKindOfIn(ComparingConverter):
    """Takes of a list after IN the values of the first one's kind."""

    def some(self, leaf: Leaf, elements: Sequence[Any]) -> bool:
        if leaf.op is FilterOp.IN:
            values = cast("tuple[Any, ...]", leaf.value)
            values = tuple(value for value in values if kind_of(value) == kind_of(values[0]))
            return any(self.compare(FilterOp.EQ, element, value) for element in elements for value in values)
        return super().some(leaf, elements)


@_comparing("F9")
class AndOrSwapped(ComparingConverter):
    """Joins with OR what stands in an AND, and the other way round."""

    def and_(self, parts: Sequence[Predicate]) -> Predicate:
        return super().or_(parts)

    def or_(self, parts: Sequence[Predicate]) -> Predicate:
        return super().and_(parts)


@_comparing("F9")
class LostClauses(ComparingConverter):
    """Joins the first two parts of a chain, and forgets the others."""

    def and_(self, parts: Sequence[Predicate]) -> Predicate:
        return super().and_(parts[:2])


@_comparing("F10")
class Patterns(ComparingConverter):
    """Takes a string for a pattern."""

    def compare(self, op: FilterOp, element: Any, operand: Any) -> bool:
        if op is FilterOp.EQ and kind_of(element) == kind_of(operand) == "str":
            return fnmatch.fnmatchcase(element, operand)
        return super().compare(op, element, operand)


@_comparing("F10")
class CutValues(ComparingConverter):
    """Compares the first 255 characters of strings, as far as its index goes."""

    def compare(self, op: FilterOp, element: Any, operand: Any) -> bool:
        if kind_of(element) == kind_of(operand) == "str":
            return super().compare(op, element[:255], operand[:255])
        return super().compare(op, element, operand)


@_comparing("D3")
class DottedPaths(ComparingConverter):
    """Reads a dotted key as a path, and looks at its first part."""

    def holds(self, leaf: Leaf, metadata: Mapping[str, Any]) -> bool:
        first = leaf.key.partition(".")[0].strip()
        return super().holds(Leaf(leaf.op, first or leaf.key, leaf.value, leaf.negated), metadata)


# --- engines that take a filter in part --------------------------------------------------------------------


class PartialConverter(ComparingConverter):
    """Is exact for some keys, gives a superset for others, and nothing for the rest."""

    def leaf(self, leaf: Leaf) -> Translation[Predicate]:
        """Answer by the key: nothing for ``b`` and ``k``, whether it is there for ``a.b`` and ``$gt``, else exactly."""
        if leaf.key in {"b", "k"}:
            return nothing()
        if leaf.key in {"a.b", "$gt"} and not leaf.negated and leaf.op is not FilterOp.ISNULL:
            return superset(lambda metadata: bool(self.elements(metadata.get(leaf.key))))
        return super().leaf(leaf)


class Partial(Comparing):
    """Takes filters in part; the core completes them."""

    converts: ClassVar[type[AbstractFilterExpressionConverter[Any]]] = PartialConverter


@_comparing("F9", Partial)
class SupersetsForExact(PartialConverter):
    """Says of a superset that it is exact."""

    def leaf(self, leaf: Leaf) -> Translation[Predicate]:
        translation = super().leaf(leaf)
        if translation.pushdown is Pushdown.SUPERSET and translation.clause is not None:
            return exact(translation.clause)
        return translation


@_comparing("F9", Partial)
class NegatedSupersets(PartialConverter):
    """Negates a superset, which is then a subset."""

    def leaf(self, leaf: Leaf) -> Translation[Predicate]:
        if leaf.negated and leaf.key in {"a.b", "$gt"} and leaf.op is not FilterOp.ISNULL:
            return superset(lambda metadata: not self.elements(metadata.get(leaf.key)))
        return super().leaf(leaf)


@breaks_core("F9", Partial)
def or_without_its_gaps() -> AbstractContextManager[object]:
    """Drops from an OR the parts that the engine does not take."""

    def combine(self: Any, conjunction: bool, parts: Sequence[Translation[Any]]) -> Translation[Any]:  # noqa: FBT001
        is_exact = all(part.pushdown is Pushdown.EXACT for part in parts)
        clauses = [part.clause for part in parts if part.pushdown is not Pushdown.NOTHING]
        if not clauses:
            return nothing()
        join = self.and_ if conjunction else self.or_
        clause = join(clauses) if len(clauses) > 1 else clauses[0]
        return exact(clause) if is_exact else superset(clause)

    return patch.object(AbstractFilterExpressionConverter, "_combine", combine)


@breaks_core("F9", Partial)
def exact_if_any() -> AbstractContextManager[object]:
    """Says that a chain is exact if one of its parts is."""
    combine = AbstractFilterExpressionConverter._combine

    def lax(self: Any, conjunction: bool, parts: Sequence[Translation[Any]]) -> Translation[Any]:  # noqa: FBT001
        combined = combine(self, conjunction, parts)
        some = any(part.pushdown is Pushdown.EXACT for part in parts)
        return exact(combined.clause) if some and combined.clause is not None else combined

    return patch.object(AbstractFilterExpressionConverter, "_combine", lax)


@breaks_core("F9", Partial)
def nothing_completed() -> AbstractContextManager[object]:
    """Takes what the engine gave for the answer."""
    return _everywhere("is_partial", lambda _: False)


@breaks_core("F9", Partial)
def completed_once() -> AbstractContextManager[object]:
    """Asks for no more hits where too few held."""

    def once(query: Any, metric: Any, limit: int, search: Any, *_: Any) -> Any:  # noqa: ARG001
        include = tuple(dict.fromkeys((*query.include, "metadata")))
        from msgspec.structs import replace  # noqa: PLC0415 - used here alone

        hits = yield from search(replace(query, include=include))
        good = [hit for hit in hits if completion.holds(query, hit.record)]
        return completion.Completed([completion._trimmed(hit, query) for hit in good], len(hits))

    return _everywhere("complete", once)


def _everywhere(name: str, value: Any) -> AbstractContextManager[object]:
    """Change a function of the completion wherever the core imported it."""
    from entrepot import searching, writing  # noqa: PLC0415 - what is changed

    @contextmanager
    def changed() -> Generator[None]:
        with ExitStack() as stack:
            for module in (completion, searching, writing):
                if hasattr(module, name):
                    stack.enter_context(patch.object(module, name, value))
            yield

    return changed()


# --- bounded clause forms ----------------------------------------------------------------------------------


class _ClausesConverter(ComparingConverter):
    """Asks for an AND of few ORs and an OR of few ANDs; both hold wherever the filter holds."""

    def convert(self, filter: Expression | Normal) -> Converted[Predicate]:  # noqa: A002
        converted = super().convert(filter)
        all_of_any = forms.conjunctive(converted.normal, clauses=6, literals=3)
        any_of_all = forms.disjunctive(converted.normal, conjunctions=4)

        def holds(metadata: Mapping[str, Any]) -> bool:
            return all(
                any(evaluate(leaf, metadata) for leaf in clause) for clause in all_of_any.clauses
            ) and any(
                all(evaluate(leaf, metadata) for leaf in conjunction)
                for conjunction in any_of_all.conjunctions
            )

        return converted._replace(query=holds, exact=all_of_any.exact or any_of_all.exact)


class Clauses(Comparing):
    """Takes clause forms that are bounded tightly."""

    converts: ClassVar[type[AbstractFilterExpressionConverter[Any]]] = _ClausesConverter


@breaks_core("F9", Clauses)
def cut_clauses_for_exact() -> AbstractContextManager[object]:
    """Drops clauses beyond the bounds, and says that the form is exact."""
    within = forms._within

    def silent(*arguments: Any) -> tuple[Any, bool]:
        return within(*arguments)[0], False

    return patch.object(forms, "_within", silent)


@breaks_core("F9", Clauses)
def alternatives_dropped() -> AbstractContextManager[object]:
    """Drops alternatives beyond the bound."""

    def cut(conjunctions: list[Any], number: int) -> tuple[list[Any], bool]:
        return conjunctions[:number], len(conjunctions) > number

    return patch.object(forms, "_merged", cut)


@breaks_core("F9", Clauses)
def wrong_side_absorbed() -> AbstractContextManager[object]:
    """Of two rows of which one implies the other, it drops the wrong one."""

    def absorbed(rows: Any) -> list[Any]:
        distinct = list(dict.fromkeys(rows))
        sets = [frozenset(row) for row in distinct]
        return [
            row
            for row, leaves in zip(distinct, sets, strict=True)
            if not any(other > leaves for other in sets)
        ]

    return patch.object(forms, "_absorbed", absorbed)


@breaks_core("F2", Clauses)
def one_leaf_a_key() -> AbstractContextManager[object]:
    """Merges the comparisons of one key when it multiplies out."""

    def union(left: Any, right: Any) -> Any:
        return tuple({leaf.key: leaf for leaf in (*left, *right)}.values())

    return patch.object(forms, "_union", union)


# --- normal forms, on the columns of the embedded store ----------------------------------------------------


@breaks_core("F5", SimpleVectorStore)
def in_nothing_is_all() -> AbstractContextManager[object]:
    """Takes IN of an empty list for no condition at all."""
    normalise = normalising._normalise

    def open_(expression: Expression, *, negated: bool) -> Normal:
        right = getattr(expression.right, "value", None)
        if expression.op in {FilterOp.IN, FilterOp.NIN} and right == ():
            return FALSE if negated else TRUE
        normal: Normal = normalise(expression, negated=negated)
        return normal

    return patch.object(normalising, "_normalise", open_)


@breaks_core("F3", SimpleVectorStore)
def ranges_turned_in_normal_forms() -> AbstractContextManager[object]:
    """Turns a negated range round when it brings a filter into normal form."""
    new_leaf = normalising.new_leaf

    def turned(op: FilterOp, key: str, value: Any, *, negated: bool) -> Leaf:
        if negated and op in _TURNED:
            op, negated = _TURNED[op], False
        leaf: Leaf = new_leaf(op, key, value, negated=negated)
        return leaf

    return patch.object(normalising, "new_leaf", turned)


@breaks_core("F3", SimpleVectorStore)
def chains_kept_under_not() -> AbstractContextManager[object]:
    """Negates the parts of an AND, and leaves it an AND."""

    def kept(*normals: Normal) -> Normal:
        return all_of(*normals)

    return patch.object(normalising, "any_of", kept)


@breaks_core("F5", SimpleVectorStore)
def values_merged_in_lists() -> AbstractContextManager[object]:
    """Takes equal values of different types in a list for one."""
    return patch.object(normalising, "_distinct", lambda values: tuple(dict.fromkeys(values)))


@breaks_core("F4", SimpleVectorStore)
def bounds_off_by_one() -> AbstractContextManager[object]:
    """Includes the bound where it is excluded."""

    def bound(self: Any, op: FilterOp, operand: Any) -> int:
        from bisect import bisect_left, bisect_right  # noqa: PLC0415 - used here alone

        find = bisect_right if op in {FilterOp.LT, FilterOp.LTE} else bisect_left
        return find(self.values, operand)

    return patch.object(columns._Sorted, "bound", bound)


@breaks_core("F4", SimpleVectorStore)
def one_kind_of_column() -> AbstractContextManager[object]:
    """Keeps booleans and numbers of a key in one column."""

    def merged(value: Any) -> str:
        kind = kind_of(value)
        return "number" if kind == "bool" else kind

    return patch.object(columns, "kind_of", merged)
