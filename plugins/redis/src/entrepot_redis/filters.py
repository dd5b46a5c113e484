"""From filters to queries of the search engine: an AND of unions (F1 to F6, F9, F10).

The engine answers nested negations, and intersections inside of unions, wrongly and in silence. So a filter
becomes a flat conjunction of clauses; a clause is a union of *literals*, each a token, a test of a column or
the negation of a union of these. Nothing else is ever sent.

Nothing of a key or a value stands in a query but tokens (24 characters of ``0-9a-v``), numbers of columns and
decimal numbers, so there is nothing to quote.

A filter does not know numbers of columns yet; `rendered` puts them in when the query is sent.
"""

from __future__ import annotations

from itertools import product
from math import prod
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias, cast

from entrepot.encoding import all_of_any, certain, equality_token, possible, string_chunks
from entrepot.filters import (
    AbstractFilterExpressionConverter,
    FilterOp,
    Translation,
    exact,
    normalise,
    superset,
)
from entrepot.filters.values import kind_of
from entrepot_redis.fields import (
    CHUNKS,
    GREATEST,
    LEAST,
    Columns,
    beyond,
    column,
    in_columns,
    parts_of,
    present,
    written,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from entrepot.filters import Converted, Expression, Leaf, Normal, Scalar

MOST_CLAUSES: Final = 128
"""Clauses that a union of filters may multiply to; beyond it clauses are left out, which is a superset."""
MOST_LITERALS: Final = 20_000
"""Literals that such a product may have in all."""
MOST_CONJUNCTS: Final = 2000
"""Clauses that a whole filter may have, those that are one negation not counted: they become one."""
_SMALL: Final = 50
"""Nodes of filters that are remembered."""
GROUP: Final = 16
"""Members of a union; the engine answers longer ones wrongly where negations are among them."""


class Test(NamedTuple):
    """One comparison of a column.

    Attributes:
        column: Its name.
        bounds: What it is compared with, as it stands between brackets.
        otherwise: The token of documents that have their value in no column; None where these carry tokens
            that the clause has anyway.
    """

    column: bytes
    bounds: str
    otherwise: str | None = None


Atom: TypeAlias = str | Test
"""A token, or a test of a column."""
Union: TypeAlias = tuple[Atom, ...]


class Clause(NamedTuple):
    """A union of atoms and of negated unions of atoms; without any it holds for no document."""

    atoms: Union = ()
    negations: tuple[Union, ...] = ()

    @property
    def size(self) -> int:
        """How many literals it has."""
        return len(self.atoms) + sum(map(len, self.negations))


class Clauses(NamedTuple):
    """A conjunction of clauses, which may be a superset of what it was made of; none holds for every document."""

    clauses: tuple[Clause, ...]
    exact: bool = True


class RedisFilterConverter(AbstractFilterExpressionConverter[Clauses]):
    """Translate filters into clauses.

    Exact for every leaf but ranges of strings of 24 bytes and more, and ranges of keys that have no column
    because a collection has no room for more. What would multiply to more than 128 clauses is a superset.

    Args:
        columns: The columns of a collection; by default there is room for all.
    """

    def __init__(self, columns: Columns | None = None) -> None:
        self._columns = columns

    def leaf(self, leaf: Leaf) -> Translation[Clauses]:
        """Ask whether some element of the key satisfies the comparison, or none (F2, F3)."""
        clauses, is_exact = _plain(leaf)
        if leaf.negated:
            clauses = _complement(clauses)
        answer = Clauses(clauses)
        return exact(answer) if is_exact and self._has_columns(clauses) else superset(answer)

    def _has_columns(self, clauses: Iterable[Clause]) -> bool:
        """Whether all columns that ranges test are known to have a number, or there is room for more."""
        columns = self._columns
        if columns is None or not columns.full:
            return True
        return all(test.column in columns.numbers for test in _tests(clauses) if test.otherwise is not None)

    def and_(self, parts: Sequence[Clauses]) -> Clauses:
        """Join the clauses of all parts."""
        joined = tuple(dict.fromkeys(clause for part in parts for clause in part.clauses))
        is_exact = all(part.exact for part in parts)
        plain = [clause for clause in joined if clause.atoms or len(clause.negations) != 1]
        if len(plain) > MOST_CONJUNCTS:
            dropped = set(plain[MOST_CONJUNCTS:])
            return Clauses(tuple(clause for clause in joined if clause not in dropped), exact=False)
        return Clauses(joined, is_exact)

    def or_(self, parts: Sequence[Clauses]) -> Clauses:
        """Distribute: every union of one clause from each part; leave out clauses where these are too many."""
        is_exact = all(part.exact for part in parts)
        if not all(part.clauses for part in parts):  # one of them holds for every document
            return Clauses((), is_exact)
        single = _union([part.clauses[0] for part in parts if len(part.clauses) == 1])
        several: list[tuple[Clause, ...]] = [part.clauses for part in parts if len(part.clauses) > 1]
        if not several:
            return Clauses((single,), is_exact)
        while _too_many(several, single):
            largest = max(range(len(several)), key=lambda place: len(several[place]))
            kept = sorted(several[largest], key=lambda clause: clause.size)
            several[largest] = tuple(kept[: max(1, len(kept) // 2)])
            is_exact = False
        return Clauses(tuple(_union([single, *chosen]) for chosen in product(*several)), is_exact)

    def true(self) -> Clauses:
        """Hold for every document."""
        return Clauses(())

    def false(self) -> Clauses:
        """Hold for no document."""
        return Clauses((Clause(),))

    def convert(self, filter: Expression | Normal) -> Converted[Clauses]:  # noqa: A002
        """Translate a filter, given as a tree or in normal form.

        Raises:
            FilterLimitError: The tree is deeper or larger than allowed (F6).
        """
        normal = normalise(filter)
        columns = self._columns
        of = (normal, None if columns is None else columns.full)
        if columns is not None and (known := columns.remembered.get(of)) is not None:
            return cast("Converted[Clauses]", known)
        converted = super().convert(normal)
        converted = converted._replace(exact=converted.exact and converted.query.exact)
        if columns is not None and len(converted.report.rows) <= _SMALL:
            columns.remember(of, converted)
        return converted


def _union(clauses: Sequence[Clause]) -> Clause:
    if len(clauses) == 1:
        return clauses[0]
    return Clause(
        tuple(dict.fromkeys(atom for clause in clauses for atom in clause.atoms)),
        tuple(dict.fromkeys(negation for clause in clauses for negation in clause.negations)),
    )


def _too_many(several: Sequence[Sequence[Clause]], single: Clause) -> bool:
    number = prod(len(clauses) for clauses in several)
    if number == 1:
        return False
    if number > MOST_CLAUSES:
        return True
    longest = sum(max(clause.size for clause in clauses) for clauses in several)
    return number * (single.size + longest) > MOST_LITERALS


def _complement(clauses: Sequence[Clause]) -> tuple[Clause, ...]:
    """Return where a leaf does not hold: one clause, in which each of the leaf's is negated."""
    [first, *others] = clauses
    if not others and not first.atoms:  # the negation of a token
        return (Clause(first.negations[0]),)
    return (Clause((), tuple(clause.atoms for clause in clauses)),)


def _plain(leaf: Leaf) -> tuple[tuple[Clause, ...], bool]:
    """Return the clauses of a leaf without its negation, and whether they hold for no others."""
    key, value, op = leaf.key, leaf.value, leaf.op
    if value is None:
        return (Clause((), ((present(key),),)),), True
    if op is FilterOp.EQ or op is FilterOp.IN:
        values = value if isinstance(value, tuple) else (value,)
        return (Clause(tuple(dict.fromkeys(atom for each in values for atom in _equal(key, each)))),), True
    return _range(key, op, cast("Scalar", value), negated=leaf.negated)


def _equal(key: str, value: Scalar) -> list[Atom]:
    kind = kind_of(value)
    token = equality_token(key, value)
    if not in_columns(kind, value):
        return [token]
    [(part, number)] = parts_of(kind, value)
    bounds = _bounds(FilterOp.EQ, number)
    return [token, *(Test(column(kind, side, part, key), bounds) for side in (LEAST, GREATEST))]


def _range(key: str, op: FilterOp, value: Scalar, *, negated: bool) -> tuple[tuple[Clause, ...], bool]:
    kind = kind_of(value)
    is_exact = True
    if kind == "str":
        is_exact = string_chunks(cast("str", value), CHUNKS).exact
        op = certain(op, exact=is_exact) if negated else possible(op, exact=is_exact)
    tests = all_of_any(op, cast("list[int]", [held for _, held in parts_of(kind, value)]))
    otherwise = beyond(kind, key)

    def side(name: str) -> list[Union]:
        return [
            tuple(
                Test(column(kind, name, test.position, key), _bounds(test.op, test.value), otherwise)
                for test in union
            )
            for union in tests
        ]

    least = side(LEAST)
    if op is FilterOp.LT or op is FilterOp.LTE:
        return tuple(map(Clause, least)), is_exact
    # The greatest element is in a column of its own only where it is not the least one too.
    return tuple(Clause(left + right) for left, right in product(least, side(GREATEST))), is_exact


def _bounds(op: FilterOp, number: float) -> str:
    text = written(number)
    if op is FilterOp.LT:
        return f"-inf ({text}"
    if op is FilterOp.LTE:
        return f"-inf {text}"
    if op is FilterOp.GT:
        return f"({text} inf"
    return f"{text} inf" if op is FilterOp.GTE else f"{text} {text}"


def _tests(clauses: Iterable[Clause]) -> Iterable[Test]:
    for clause in clauses:
        for union in (clause.atoms, *clause.negations):
            for atom in union:
                if isinstance(atom, Test):
                    yield atom


def columns_of(clauses: Clauses) -> tuple[bytes, ...]:
    """Return the columns that clauses test, each once."""
    return tuple(dict.fromkeys(test.column for test in _tests(clauses.clauses)))


# --- as text ----------------------------------------------------------------------------------------------


class Rendered(NamedTuple):
    """A query of the engine.

    Attributes:
        text: The query, empty for every document, None for no document.
        exact: Whether all columns that ranges test were there.
    """

    text: str | None
    exact: bool


class _Ink:
    """What puts numbers of columns into clauses."""

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self.exact = True

    def members(self, union: Union, *, negated: bool = False) -> tuple[list[str], list[str]]:
        """Return the tokens of a union and its tests of columns.

        A column without number is in no document. If that is so for want of room, a token finds the
        documents that would have it; below a negation leaving the test out finds more already.
        """
        tokens: dict[str, None] = {}
        tests: dict[str, None] = {}
        for atom in union:
            if isinstance(atom, str):
                tokens[atom] = None
                continue
            number = self._columns.numbers.get(atom.column)
            if number is not None:
                tests[f"@f{number}:[{atom.bounds}]"] = None
            elif self._columns.full and atom.otherwise is not None:
                self.exact = False
                if not negated:
                    tokens[atom.otherwise] = None
        return list(tokens), list(tests)


def rendered(clauses: Clauses, columns: Columns, *, unscored: bool = False) -> Rendered:
    """Return clauses as a query, in which every column has its number.

    Args:
        clauses: What to ask for.
        columns: The columns of the collection.
        unscored: Keep the clauses out of the ranking of a search by words. The engine takes a weight from
            unions alone, so what is one member is written twice.
    """
    ink = _Ink(columns)
    texts: list[str] = []
    no_tokens: dict[str, None] = {}
    no_tests: dict[str, None] = {}
    for clause in clauses.clauses:
        tokens, tests = ink.members(clause.atoms)
        negations = [ink.members(union, negated=True) for union in clause.negations]
        if any(not inner_tokens and not inner_tests for inner_tokens, inner_tests in negations):
            continue  # the negation of nothing holds for every document
        if not tokens and not tests and len(negations) == 1:
            # Negations at the root become one.
            no_tokens.update(dict.fromkeys(negations[0][0]))
            no_tests.update(dict.fromkeys(negations[0][1]))
            continue
        members = [*_tagged(tokens), *tests, *(f"-({_joined([*_tagged(t), *r])})" for t, r in negations)]
        if not members:
            return Rendered(None, ink.exact)
        if unscored:
            texts.append(f"({_joined(members * 2 if len(members) == 1 else members)})=>{{$weight: 0}}")
        else:
            texts.append(members[0] if len(members) == 1 else f"({_joined(members)})")
    if no_tokens or no_tests:
        texts.append(f"-({_joined([*_tagged(no_tokens), *no_tests])})")
    return Rendered(" ".join(texts), ink.exact)


def _tagged(tokens: Iterable[str]) -> list[str]:
    text = "|".join(tokens)
    return [f"@t:{{{text}}}"] if text else []


def _joined(members: Sequence[str]) -> str:
    """Return a union, in groups of at most 16 within groups."""
    level: list[str] = list(members)
    while len(level) > GROUP:
        level = [f"({'|'.join(level[at : at + GROUP])})" for at in range(0, len(level), GROUP)]
    return "|".join(level)


def union_of(members: Sequence[str]) -> str:
    """Return a union of words in brackets, in groups as unions of clauses are."""
    return f"({_joined(members)})"
