# ruff: noqa: ARG003, D102, SLF001 - mutants do what their bases do, but for one thing within
# pyright: reportPrivateUsage=false, reportUnknownArgumentType=false, reportUnknownLambdaType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
"""Encodings broken: engines that index documents with the codes of `entrepot.encoding` alone.

Each family indexes and asks as a plugin would whose engine knows no more: ordered integers, ordered text,
chunks of doubles, tokens. Strings are told apart by a byte or two only, so that the paths for long strings
are taken by short ones.
"""

from __future__ import annotations

import operator
from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple, cast
from unittest.mock import patch

from entrepot.encoding import elements, integers, intervals, text, tokens
from entrepot.filters import FilterOp, Leaf, Translation, exact, kind_of, superset
from entrepot.metadata import elements as elements_of
from entrepot_conformance.mutants.engine import ConvertingStore, PredicateConverter
from entrepot_conformance.mutants.model import breaks_core

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from contextlib import AbstractContextManager
    from datetime import datetime

    from entrepot.filters import Scalar
    from entrepot.filters.values import Kind
    from entrepot.metadata import Metadata
    from entrepot_conformance.mutants.engine import Predicate

_COMPARE: Final[dict[FilterOp, Callable[[Any, Any], bool]]] = {
    FilterOp.EQ: operator.eq,
    FilterOp.LT: operator.lt,
    FilterOp.LTE: operator.le,
    FilterOp.GT: operator.gt,
    FilterOp.GTE: operator.ge,
}
_LOWER: Final = (FilterOp.LT, FilterOp.LTE)


class Indexed(NamedTuple):
    """What is kept of a document: its tokens, and the codes of the least and greatest element of each key."""

    tokens: frozenset[str]
    least: Mapping[tuple[str, Kind], Any]
    greatest: Mapping[tuple[str, Kind], Any]


class CodedConverter(PredicateConverter):
    """Asks for equality by tokens, and for ranges by the codes of extremes."""

    def __init__(self, store: type[Coded]) -> None:
        self.store = store

    def leaf(self, leaf: Leaf) -> Translation[Predicate]:
        """Translate a leaf; a range is a superset where codes are shared."""
        if leaf.op is FilterOp.ISNULL:
            token = tokens.presence_token(leaf.key)
            return exact(lambda indexed: (token not in indexed.tokens) is not leaf.negated)
        if leaf.op in {FilterOp.EQ, FilterOp.IN}:
            values = leaf.value if isinstance(leaf.value, tuple) else (cast("Scalar", leaf.value),)
            wanted = frozenset(tokens.equality_token(leaf.key, value) for value in values)
            return exact(lambda indexed: indexed.tokens.isdisjoint(wanted) is leaf.negated)
        operand = cast("Scalar", leaf.value)
        side = (leaf.key, kind_of(operand))
        test, is_exact = self.store.test(leaf.key, leaf.op, operand, certain=leaf.negated)
        lower = leaf.op in _LOWER

        def holds(indexed: Indexed) -> bool:
            code = (indexed.least if lower else indexed.greatest).get(side)
            return (code is not None and test(code)) is not leaf.negated

        return exact(holds) if is_exact else superset(holds)


class Coded(ConvertingStore):
    """Indexes tokens, and codes of the least and greatest element of each key."""

    def index(self, metadata: Metadata) -> Indexed:
        """Return tokens and codes."""
        bounds = elements.extremes(metadata)
        return Indexed(
            frozenset(tokens.metadata_tokens(metadata)),
            {side: self.code(side[0], least) for side, (least, _) in bounds.items()},
            {side: self.code(side[0], greatest) for side, (_, greatest) in bounds.items()},
        )

    def converter(self) -> CodedConverter:
        """Return the converter that asks for this class's codes."""
        return CodedConverter(type(self))

    @classmethod
    @abstractmethod
    def code(cls, key: str, value: Scalar) -> Any:
        """Return what is indexed of an extreme element."""

    @classmethod
    @abstractmethod
    def test(
        cls, key: str, op: FilterOp, operand: Scalar, *, certain: bool
    ) -> tuple[Callable[[Any], bool], bool]:
        """Return whether a code satisfies a comparison, and whether exactly the matching ones do."""


class Integers(Coded):
    """Compares ordered integers, of all kinds in one column."""

    size: ClassVar[int] = 1

    @classmethod
    def code(cls, key: str, value: Scalar) -> Any:
        return integers.scalar_code(value, cls.size).code

    @classmethod
    def test(
        cls,
        key: str,
        op: FilterOp,
        operand: Scalar,
        *,
        certain: bool,
    ) -> tuple[Callable[[Any], bool], bool]:
        code, is_exact = integers.scalar_code(operand, cls.size)
        narrowed = (integers.certain if certain else integers.possible)(op, exact=is_exact)
        compare = _COMPARE[narrowed]
        return (lambda stored: compare(stored, code)), is_exact


class OneColumn(Integers):
    """Compares ordered integers within the band of a kind, whatever else the key holds."""

    def index(self, metadata: Metadata) -> Indexed:
        """Keep all codes of a key, of whatever kind, in one column."""
        codes = {
            (key, "str"): [integers.scalar_code(element, self.size).code for element in elements_of(value)]
            for key, value in metadata.items()
        }
        both = cast("Mapping[tuple[str, Kind], Any]", codes)
        return Indexed(frozenset(tokens.metadata_tokens(metadata)), both, both)

    def converter(self) -> CodedConverter:
        return _BandConverter(type(self))


class _BandConverter(CodedConverter):
    def leaf(self, leaf: Leaf) -> Translation[Predicate]:
        if leaf.op in {FilterOp.ISNULL, FilterOp.EQ, FilterOp.IN}:
            return super().leaf(leaf)
        operand = cast("Scalar", leaf.value)
        band = integers.scalar_band(kind_of(operand), 1)
        test, is_exact = self.store.test(leaf.key, leaf.op, operand, certain=leaf.negated)

        def holds(indexed: Indexed) -> bool:
            codes = indexed.least.get((leaf.key, "str"), ())
            return any(code in band and test(code) for code in codes) is not leaf.negated

        return exact(holds) if is_exact else superset(holds)


class Texts(Coded):
    """Compares ordered text: everything as strings of ``0-9a-v``."""

    size: ClassVar[int] = 2

    @classmethod
    def code(cls, key: str, value: Scalar) -> Any:
        kind = kind_of(value)
        if kind == "str":
            return text.string_text(cast("str", value), cls.size).code
        if kind == "datetime":
            return text.compact(text.instant_text(cast("datetime", value)))
        return text.compact(text.number_text(cast("float", value)))

    @classmethod
    def test(
        cls, key: str, op: FilterOp, operand: Scalar, *, certain: bool
    ) -> tuple[Callable[[Any], bool], bool]:
        if kind_of(operand) == "str":
            is_exact = text.string_text(cast("str", operand), cls.size).exact
            narrowed, bound = text.string_bound(op, cast("str", operand), certain=certain, size=cls.size)
        else:
            is_exact, narrowed, bound = True, op, cls.code(key, operand)
        compare = _COMPARE[narrowed]
        return (lambda stored: compare(stored, bound)), is_exact


class Readable(Coded):
    """Compares strings by UTF-16 units, instants as they are read, and numbers as elements."""

    @classmethod
    def code(cls, key: str, value: Scalar) -> Any:
        kind = kind_of(value)
        if kind == "str":
            return text.utf16_ordered(cast("str", value)).encode("utf-16-be", "surrogatepass")
        return text.iso_instant(cast("datetime", value)) if kind == "datetime" else text.element_text(value)

    @classmethod
    def test(
        cls,
        key: str,
        op: FilterOp,
        operand: Scalar,
        *,
        certain: bool,
    ) -> tuple[Callable[[Any], bool], bool]:
        compare, bound = _COMPARE[op], cls.code(key, operand)
        return (lambda stored: compare(stored, bound)), True


class Chunks(Coded):
    """Compares doubles alone: numbers in two, strings in chunks of a byte."""

    most: ClassVar[int] = 2

    @classmethod
    def code(cls, key: str, value: Scalar) -> Any:
        kind = kind_of(value)
        if kind == "str":
            return integers.string_chunks(cast("str", value), cls.most, 1).code
        if kind == "datetime":
            return integers.split_double(integers.microseconds(cast("datetime", value)))
        return integers.split_double(cast("float", value))

    @classmethod
    def test(
        cls, key: str, op: FilterOp, operand: Scalar, *, certain: bool
    ) -> tuple[Callable[[Any], bool], bool]:
        is_exact = True
        if kind_of(operand) == "str":
            is_exact = integers.string_chunks(cast("str", operand), cls.most, 1).exact
        code = cls.code(key, operand)
        narrowed = (integers.certain if certain else integers.possible)(op, exact=is_exact)

        def one(test: integers.ChunkTest, stored: Any) -> bool:
            return test.position < len(stored) and _COMPARE[test.op](stored[test.position], test.value)

        if certain:
            union = integers.any_of_all(narrowed, code)
            return (lambda stored: any(all(one(test, stored) for test in part) for part in union)), is_exact
        meet = integers.all_of_any(narrowed, code)
        return (lambda stored: all(any(one(test, stored) for test in part) for part in meet)), is_exact


class Intervals(Coded):
    """Knows only equality: a range is a union of interval tokens."""

    @classmethod
    def code(cls, key: str, value: Scalar) -> Any:
        return frozenset(intervals.interval_tokens(key, value, string_bytes=2))

    @classmethod
    def test(
        cls, key: str, op: FilterOp, operand: Scalar, *, certain: bool
    ) -> tuple[Callable[[Any], bool], bool]:
        wanted, is_exact = intervals.range_tokens(key, op, operand, certain=certain, string_bytes=2)
        union = frozenset(wanted)
        return (lambda stored: not union.isdisjoint(stored)), is_exact


# --- tokens -------------------------------------------------------------------------------------------------


@breaks_core("F1", Integers)
def presence_of_empty_lists() -> AbstractContextManager[object]:
    """Gives the token of presence also for an empty list."""
    found = tokens.metadata_tokens

    def more(metadata: Metadata) -> list[str]:
        return [*found(metadata), *map(tokens.presence_token, metadata)]

    return patch.object(tokens, "metadata_tokens", more)


@breaks_core("F4", Integers)
def kinds_without_letters() -> AbstractContextManager[object]:
    """Leaves the letter of the kind out of a token."""
    return patch.object(tokens, "KIND_LETTERS", dict.fromkeys(tokens.KIND_LETTERS, ""))


@breaks_core("F10", Integers)
def parts_run_together() -> AbstractContextManager[object]:
    """Joins the parts of a token without their lengths."""
    digest = tokens.digest

    def joined(*parts: str | bytes) -> str:
        return digest(b"".join(part.encode() if isinstance(part, str) else part for part in parts))

    return patch.object(tokens, "digest", joined)


@breaks_core("F4", Integers)
def folded_tokens() -> AbstractContextManager[object]:
    """Folds the case of strings in tokens."""
    equality_token = tokens.equality_token

    def folded(key: str, value: Scalar) -> str:
        return equality_token(key, value.casefold() if isinstance(value, str) else value)

    return patch.object(tokens, "equality_token", folded)


@breaks_core("F10", Integers)
def trimmed_tokens() -> AbstractContextManager[object]:
    """Trims strings in tokens."""
    equality_token = tokens.equality_token

    def trimmed(key: str, value: Scalar) -> str:
        return equality_token(key, value.strip() or value if isinstance(value, str) else value)

    return patch.object(tokens, "equality_token", trimmed)


@breaks_core("F4", Integers)
def typed_numbers() -> AbstractContextManager[object]:
    """Gives 1 and 1.0 tokens of their own."""
    equality_token = tokens.equality_token

    def typed(key: str, value: Scalar) -> str:
        return equality_token(key, f"float {value}" if isinstance(value, float) else value)

    return patch.object(tokens, "equality_token", typed)


@breaks_core("F2", Integers)
def first_element_tokens() -> AbstractContextManager[object]:
    """Gives a list the token of its first element."""
    return patch.object(tokens, "elements", lambda value: elements_of(value)[:1])


# --- ordered integers ----------------------------------------------------------------------------------------


@breaks_core("F4", Integers)
def rests_lost() -> AbstractContextManager[object]:
    """Codes an integer by its double alone."""
    number_code = integers.number_code
    return patch.object(integers, "number_code", lambda value: number_code(float(value)))


@breaks_core("F4", Integers)
def signs_not_turned() -> AbstractContextManager[object]:
    """Leaves the bits of a negative double as they are."""
    (word, double) = integers._WORD, integers._DOUBLE
    return patch.object(integers, "_sortable", lambda value: word.unpack(double.pack(value + 0.0))[0])


@breaks_core("F4", Integers)
def two_zeros() -> AbstractContextManager[object]:
    """Tells the two zeros apart."""
    sortable = integers._sortable
    return patch.object(integers, "_sortable", lambda value: sortable(value) - (str(value) == "-0.0"))


@breaks_core("F4", Integers)
def coarse_instants() -> AbstractContextManager[object]:
    """Codes instants in milliseconds."""
    instant_code = integers.instant_code
    return patch.object(integers, "instant_code", lambda instant: instant_code(instant) // 1000)


@breaks_core("F9", Integers)
def exact_at_full_length() -> AbstractContextManager[object]:
    """Takes the code of a string for exact that just fills it."""
    string_code = integers.string_code

    def full(value: str, size: int) -> integers.Ordered[int]:
        return integers.Ordered(string_code(value, size).code, len(value.encode()) <= size)

    return patch.object(integers, "string_code", full)


@breaks_core("F9", Integers)
def bounds_not_widened() -> AbstractContextManager[object]:
    """Compares codes that are shared as if they were not."""
    return patch.object(integers, "possible", lambda op, *, exact: op)  # noqa: ARG005


@breaks_core("F9", Integers)
def negated_bounds_not_narrowed() -> AbstractContextManager[object]:
    """Negates a superset of what a range finds."""
    return patch.object(integers, "certain", integers.possible)


@breaks_core("F4", OneColumn)
def overlapping_bands() -> AbstractContextManager[object]:
    """Lets the bands of two kinds overlap."""
    return patch.object(integers, "_BANDS", dict.fromkeys(integers._BANDS, 1))


@breaks_core("F2", Integers)
def ends_for_extremes() -> AbstractContextManager[object]:
    """Takes the first and the last element of a list for its least and its greatest."""
    return _extremes(lambda values: (values[0], values[-1]))


@breaks_core("F2", Integers)
def least_for_both() -> AbstractContextManager[object]:
    """Keeps the least element of a list alone."""
    return _extremes(lambda values: (min(values), min(values)))


def _extremes(choose: Callable[[list[Any]], tuple[Any, Any]]) -> AbstractContextManager[object]:
    def chosen(metadata: Metadata) -> dict[tuple[str, Kind], tuple[Any, Any]]:
        return {
            (key, kind_of(values[0])): choose(cast("list[Any]", values))
            for key, values in ((key, list(elements_of(value))) for key, value in metadata.items())
            if values and kind_of(values[0]) != "bool"
        }

    return patch.object(elements, "extremes", chosen)


# --- ordered text ----------------------------------------------------------------------------------------------


@breaks_core("F9", Texts)
def text_bounds_not_widened() -> AbstractContextManager[object]:
    """Compares the text of a long string as if digests were ordered."""

    def plain(op: FilterOp, operand: str, *, certain: bool = False, size: int = 40) -> Any:  # noqa: ARG001
        return op, text.string_text(operand, size).code

    return patch.object(text, "string_bound", plain)


@breaks_core("F9", Texts)
def text_bounds_swapped() -> AbstractContextManager[object]:
    """Gives the superset where the subset is wanted."""
    string_bound = text.string_bound

    def swapped(op: FilterOp, operand: str, *, certain: bool = False, size: int = 40) -> Any:
        return string_bound(op, operand, certain=not certain, size=size)

    return patch.object(text, "string_bound", swapped)


@breaks_core("F4", Texts)
def cut_on_the_left() -> AbstractContextManager[object]:
    """Cuts zeros off the front of a code."""
    return patch.object(text, "compact", lambda code: code.lstrip("0") or "0")


@breaks_core("F4", Texts)
def mixed_alphabet() -> AbstractContextManager[object]:
    """Writes codes in the base32 whose digits stand behind its letters."""
    import base64  # noqa: PLC0415 - used here alone

    def plain(data: bytes) -> str:
        return base64.b32encode(data).rstrip(b"=").decode().lower()

    return patch.object(text, "_base32", plain)


@breaks_core("F4", Readable)
def surrogates_in_between() -> AbstractContextManager[object]:
    """Leaves the order of strings to UTF-16."""
    return patch.object(text, "utf16_ordered", lambda value: value)


@breaks_core("F4", Readable)
def short_instants() -> AbstractContextManager[object]:
    """Leaves out the fraction of a second where there is none."""

    def short(instant: datetime) -> str:
        from datetime import UTC  # noqa: PLC0415 - used here alone

        return instant.astimezone(UTC).replace(tzinfo=None).isoformat() + "Z"

    return patch.object(text, "iso_instant", short)


@breaks_core("F4", Readable)
def decimal_numbers() -> AbstractContextManager[object]:
    """Writes numbers in decimal, and compares them as text."""
    element_text = text.element_text
    return patch.object(
        text,
        "element_text",
        lambda value: f"n{value}" if kind_of(value) == "number" else element_text(value),
    )


# --- chunks ----------------------------------------------------------------------------------------------------


@breaks_core("F4", Chunks)
def remainders_lost() -> AbstractContextManager[object]:
    """Keeps the double of a number without its remainder."""
    split_double = integers.split_double
    return patch.object(integers, "split_double", lambda value: (split_double(value)[0], 0))


@breaks_core("F4", Chunks)
def no_last_chunk() -> AbstractContextManager[object]:
    """Ends a string without the chunk that says so."""
    string_chunks = integers.string_chunks

    def without(value: str, count: int, size: int = 6) -> integers.Ordered[tuple[int, ...]]:
        chunks, is_exact = string_chunks(value, count, size)
        return integers.Ordered(chunks[:-1] if len(chunks) > 1 and not chunks[-1] else chunks, is_exact)

    return patch.object(integers, "string_chunks", without)


@breaks_core("F4", Chunks)
def every_chunk_decides() -> AbstractContextManager[object]:
    """Compares every chunk by itself."""

    def each(op: FilterOp, chunks: Any) -> list[list[integers.ChunkTest]]:
        return [[integers.ChunkTest(place, op, chunk)] for place, chunk in enumerate(chunks)]

    return patch.object(integers, "all_of_any", each)


@breaks_core("F3", Chunks)
def first_chunk_decides() -> AbstractContextManager[object]:
    """Looks at the first chunk alone where a range is negated."""

    def first(op: FilterOp, chunks: Any) -> list[list[integers.ChunkTest]]:
        return [[integers.ChunkTest(0, op, chunks[0])]]

    return patch.object(integers, "any_of_all", first)


# --- intervals --------------------------------------------------------------------------------------------------


@breaks_core("F4", Intervals)
def last_interval_missing() -> AbstractContextManager[object]:
    """Covers a range but for its last value."""
    cover = intervals._cover

    def short(start: int, stop: int, digits: int) -> Iterator[tuple[int, int]]:
        return cover(start, max(stop - 1, start), digits)

    return patch.object(intervals, "_cover", short)


@breaks_core("F4", Intervals)
def levels_alike() -> AbstractContextManager[object]:
    """Gives intervals of different widths one token."""
    token = intervals._token
    return patch.object(intervals, "_token", lambda key, letter, _, prefix: token(key, letter, 1, prefix))


@breaks_core("F4", Intervals)
def wide_intervals_only() -> AbstractContextManager[object]:
    """Covers a range with the tokens of its widest intervals only."""
    cover = intervals._cover

    def wide(start: int, stop: int, digits: int) -> Iterator[tuple[int, int]]:
        return (piece for piece in cover(start, stop, digits) if piece[0] < digits)

    return patch.object(intervals, "_cover", wide)
