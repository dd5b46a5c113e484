# ruff: noqa: S311, PLR2004 - random filters need no secrets, and the chances are what they are
"""The filter fuzz: thousands of distinct filters over hundreds of documents, against the evaluator.

`run` takes any function from a filter to the ids that match, so every implementation of filters can be put
to it. What was covered is counted in cells: operator, kind of operand, polarity, shape of the document's
value; in each cell the comparison has to be true often and false often, wherever that is possible at all.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from entrepot.filters import (
    Expression,
    FilterOp,
    Key,
    Normal,
    Value,
    evaluate,
    format_filter,
    kind_of,
    normalise,
)
from entrepot_conformance.minimise import compare, minimise
from entrepot_conformance.pools import KEYS, POOLS

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

OPERATORS: Final = tuple(op for op in FilterOp if op not in (FilterOp.AND, FilterOp.OR, FilterOp.NOT))
RANGES: Final = (FilterOp.LT, FilterOp.LTE, FilterOp.GT, FilterOp.GTE)
SHAPES: Final = ("scalar", "list", "absent")
MINIMUM: Final = 50
"""How often each possible cell has to be true, and how often false."""

DEFAULT_COUNT: Final = 10_000
SLOW_COUNT: Final = 2_000
"""Random filters of a run on a target that says it is slow, unless ENTREPOT_FUZZ_COUNT says how many."""
DEFAULT_DOCUMENTS: Final = 240


class Cell(NamedTuple):
    """One row of the coverage table."""

    op: FilterOp
    kind: str  # of the operand; "mixed" for a list of several kinds, "-" without an operand
    polarity: str  # "plain", or "negated" under an odd number of NOTs
    shape: str  # of the document's value


def seed_from_environment() -> int:
    """Return ENTREPOT_FUZZ_SEED, or a fixed seed."""
    return int(os.environ.get("ENTREPOT_FUZZ_SEED", "20260131"))


_TURNS: Final = 8
"""Filters that each thread gets before the next ones are made."""


def count_from_environment(default: int = DEFAULT_COUNT) -> int:
    """Return ENTREPOT_FUZZ_COUNT, or so many filters."""
    return int(os.environ.get("ENTREPOT_FUZZ_COUNT", str(default)))


def make_documents(seed: int, number: int = DEFAULT_DOCUMENTS) -> dict[str, dict[str, object]]:
    """Make metadata by id: every key of the pool is absent, a scalar, a list or an empty list by chance."""
    rng = random.Random(seed)
    return {
        f"d{position:04}": dict(entry for key in KEYS for entry in _maybe(rng, key))
        for position in range(number)
    }


def _maybe(rng: random.Random, key: str) -> Iterator[tuple[str, object]]:
    pool = POOLS[rng.choice(tuple(POOLS))]
    chance = rng.random()
    if chance < 0.45:
        yield key, rng.choice(pool)
    elif chance < 0.8:
        yield key, rng.choices(pool, k=rng.randint(1, 3))
    elif chance < 0.9:
        yield key, []


def make_filter(rng: random.Random) -> Expression:
    """Make one filter of one to eight comparisons."""
    return _tree(rng, rng.choice((1, 1, 2, 3, 4, 6, 8)))


def _tree(rng: random.Random, size: int) -> Expression:
    if size == 1:
        made = _comparison(rng)
    else:
        left = rng.randint(1, size - 1)
        sides = _tree(rng, left), _tree(rng, size - left)
        made = sides[0] & sides[1] if rng.random() < 0.5 else sides[0] | sides[1]
    return ~made if rng.random() < 0.3 else made


def _comparison(rng: random.Random) -> Expression:
    op = rng.choice(OPERATORS)
    key = Key(rng.choice(KEYS))
    if op in (FilterOp.ISNULL, FilterOp.ISNOTNULL):
        return Expression(op, key)
    kinds = [kind for kind in POOLS if kind != "bool" or op not in RANGES]
    pool = POOLS[rng.choice(kinds)]
    if op not in (FilterOp.IN, FilterOp.NIN):
        return Expression(op, key, Value(rng.choice(pool)))
    values = rng.choices(pool, k=rng.randint(0, 3))
    if rng.random() < 0.3:
        values += rng.choices(POOLS[rng.choice(kinds)], k=2)
    return Expression(op, key, Value(values))


@dataclass
class Coverage:
    """How often each cell was met, true and false."""

    seed: int
    filters: int = 0
    distinct: set[Normal] = field(default_factory=set[Normal])
    documents: int = 0
    true: Counter[Cell] = field(default_factory=Counter[Cell])
    false: Counter[Cell] = field(default_factory=Counter[Cell])

    def missing(self) -> list[str]:
        """Say which cells were not met often enough; cells that cannot be are left out."""
        gaps: list[str] = []
        least = min(MINIMUM, MINIMUM * self.filters // DEFAULT_COUNT)
        for cell in cells():
            for truth, counter in ((True, self.true), (False, self.false)):
                if possible(cell, truth=truth):
                    if counter[cell] < least:
                        gaps.append(f"{_name(cell)} was {truth} only {counter[cell]} times")
                elif counter[cell]:
                    gaps.append(f"{_name(cell)} was {truth} {counter[cell]} times and cannot be")
        return gaps

    def table(self) -> str:
        """Print the table: for each cell how often it was true and false; a dash where it cannot be."""
        counts = (
            f"{self.filters} filters, {len(self.distinct)} distinct normal forms, {self.documents} documents"
        )
        lines = [f"seed {self.seed}: {counts}", f"{'cell':<42} {'true':>10} {'false':>10}"]
        for cell in cells():
            true = f"{self.true[cell]:>10}" if possible(cell, truth=True) else f"{'-':>10}"
            false = f"{self.false[cell]:>10}" if possible(cell, truth=False) else f"{'-':>10}"
            lines.append(f"{_name(cell):<42} {true} {false}")
        return "\n".join(lines)


def cells() -> Iterator[Cell]:
    """Give every cell of the table."""
    for op in OPERATORS:
        if op in (FilterOp.ISNULL, FilterOp.ISNOTNULL):
            kinds = ["-"]
        elif op in (FilterOp.IN, FilterOp.NIN):
            kinds = [*POOLS, "mixed", "empty"]
        else:
            kinds = [kind for kind in POOLS if kind != "bool" or op not in RANGES]
        for kind in kinds:
            for polarity in ("plain", "negated"):
                for shape in SHAPES:
                    yield Cell(op, kind, polarity, shape)


def possible(cell: Cell, *, truth: bool) -> bool:
    """Whether a comparison, with its negation, can have this truth on a value of this shape.

    What cannot be follows from F1, F2, F3 and F5: an absent key satisfies IS NULL and the complements
    (!=, NOT IN) and nothing else; what is there satisfies IS NOT NULL always and IS NULL never; IN [] holds
    nowhere and NOT IN [] everywhere.
    """
    if cell.polarity == "negated":
        truth = not truth
    complement = cell.op in (FilterOp.NE, FilterOp.NIN)
    if cell.op in (FilterOp.ISNULL, FilterOp.ISNOTNULL):
        return truth is ((cell.shape == "absent") is (cell.op is FilterOp.ISNULL))
    if cell.shape == "absent" or cell.kind == "empty":
        return truth is complement
    return True


def run(
    match: Callable[[Expression], Collection[str]],
    documents: Mapping[str, Mapping[str, object]],
    *,
    count: int = DEFAULT_COUNT,
    seed: int | None = None,
    at_once: int = 1,
) -> Coverage:
    """Compare `match` with the evaluator on `count` filters whose normal forms all differ.

    Args:
        match: What is tested: takes a filter, returns the ids of the documents that match.
        documents: Metadata by id, as `match` knows them; `make_documents` makes some.
        count: How many filters.
        seed: Of the filters; ENTREPOT_FUZZ_SEED or a fixed one if it is not given.
        at_once: How many are asked side by side, in threads: for what waits for a server.

    Raises:
        AssertionError: The two differ; tells seed and filter, the smallest filter on which they do, and that
            one as a case.
    """
    seed = seed_from_environment() if seed is None else seed
    rng = random.Random(seed)
    coverage = Coverage(seed, documents=len(documents))
    counts = _Counts(documents)
    with ThreadPoolExecutor(at_once) as pool:
        while coverage.filters < count:
            asked: list[Expression] = []
            while len(asked) < min(at_once * _TURNS, count - coverage.filters):
                expression = make_filter(rng)
                normal = normalise(expression)
                if normal not in coverage.distinct:
                    coverage.distinct.add(normal)
                    asked.append(expression)
            agree = partial(compare, match, documents=documents)
            faults = map(agree, asked) if at_once == 1 else pool.map(agree, asked)
            for expression, fault in zip(asked, faults, strict=True):
                coverage.filters += 1
                if fault is not None:
                    raise AssertionError(_problem(match, expression, documents, coverage))
                for comparison, negated in _comparisons(expression):
                    counts.add(coverage, comparison, negated=negated)
    return coverage


def _problem(
    match: Callable[[Expression], Collection[str]],
    expression: Expression,
    documents: Mapping[str, Mapping[str, object]],
    coverage: Coverage,
) -> str:
    """Say what differs: the filter as it was made, and the smallest one that was found, as a case."""
    lines = [f"seed {coverage.seed}, filter {coverage.filters}: {format_filter(expression)}"]
    found = minimise(match, expression, documents)
    if found is None:
        return "\n".join([*lines, "asked again it is answered rightly"])
    lines += [f"smallest: {format_filter(found.filter)}", f"missing: {sorted(found.missing)}"]
    return "\n".join([*lines, f"wrong: {sorted(found.wrong)}", f"as a case: {found.case()}"])


class _Counts:
    """Counts cells by whole sets of documents: a bit for each document."""

    def __init__(self, documents: Mapping[str, Mapping[str, object]]) -> None:
        self._documents = list(documents.values())
        self._everyone = (1 << len(self._documents)) - 1
        self._shapes = {
            key: {shape: self._bits(partial(_has_shape, key, shape)) for shape in SHAPES} for key in KEYS
        }
        self._matches: dict[Expression, int] = {}

    def _bits(self, holds: Callable[[Mapping[str, object]], bool]) -> int:
        return sum(1 << place for place, metadata in enumerate(self._documents) if holds(metadata))

    def add(self, coverage: Coverage, comparison: Expression, *, negated: bool) -> None:
        matches = self._matches.get(comparison)
        if matches is None:
            matches = self._bits(lambda metadata: evaluate(comparison, metadata))
            self._matches[comparison] = matches
        if negated:
            matches = self._everyone & ~matches
        kind = _operand_kind(comparison)
        for shape, documents in self._shapes[cast("Key", comparison.left).name].items():
            cell = Cell(comparison.op, kind, "negated" if negated else "plain", shape)
            coverage.true[cell] += (matches & documents).bit_count()
            coverage.false[cell] += (documents & ~matches).bit_count()


def _comparisons(expression: Expression) -> Iterator[tuple[Expression, bool]]:
    stack = [(expression, False)]
    while stack:
        node, negated = stack.pop()
        if node.op is FilterOp.NOT:
            stack.append((cast("Expression", node.left), not negated))
        elif node.op in (FilterOp.AND, FilterOp.OR):
            stack += [(cast("Expression", node.left), negated), (cast("Expression", node.right), negated)]
        else:
            yield node, negated


def _operand_kind(comparison: Expression) -> str:
    if comparison.right is None:
        return "-"
    operand = cast("Value", comparison.right).value
    if not isinstance(operand, tuple):
        return kind_of(operand)
    kinds = {kind_of(value) for value in operand}
    return "empty" if not kinds else "mixed" if len(kinds) > 1 else kinds.pop()


def _has_shape(key: str, shape: str, metadata: Mapping[str, object]) -> bool:
    value = metadata.get(key)
    if value is None or value == []:
        return shape == "absent"
    return shape == ("list" if isinstance(value, list) else "scalar")


def _name(cell: Cell) -> str:
    return f"{cell.op.name:<10} {cell.kind:<9} {cell.polarity:<8} {cell.shape}"
