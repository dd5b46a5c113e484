"""What filters are asked of: the index fields of a document's metadata. Pure functions.

One TAG field holds tokens (`entrepot.encoding`): one for each key that is present, and one for each element
of strings and booleans. Numbers, instants and strings have *columns* beside it, NUMERIC fields that hold the
least element of a key and, in lists, the greatest, for ranges (F2). A column is named by

- the letter of the kind (`KIND_LETTERS`), as a comparison holds within one kind (F4),
- ``l`` for the least element or ``h`` for the greatest,
- a digit, as a value that a double cannot hold is spread over several: a number beyond 2^53 is its nearest
  double (0) and the remainder (1), instants likewise in microseconds since 1970, a string its first bytes,
  six in each column from 0 to 3, and then one column of 0 where a column ends with the string,
- the key.

An index has room for a limited number of columns. A document with a value whose column has no number carries
a token that says so, and tokens for all elements of that key: equality stays exact, and a range finds the
document by the first token, as one that perhaps matches.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from entrepot.encoding import (
    KIND_LETTERS,
    digest,
    equality_token,
    microseconds,
    presence_token,
    split_double,
    string_chunks,
)
from entrepot.filters.values import kind_of
from entrepot.metadata import is_list

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from entrepot.filters.values import Kind
    from entrepot.metadata import Metadata, Scalar

EXACT_BELOW: Final = 2.0**53
"""Doubles of a smaller magnitude stand for one integer each."""
CHUNKS: Final = 4
"""Columns of a string, of six bytes each."""
LEAST: Final = "l"
GREATEST: Final = "h"
_SHORT: Final = 64
"""Characters of strings that are remembered with their tokens and columns."""
_REMEMBERED: Final = 512
FULL: Final = b"full"
"""The entry beside the columns' names that says that there is no more room; no column has this name."""

Part = tuple[int, float]
"""A column's digit and what it holds."""


@lru_cache(maxsize=8192)
def column(kind: Kind, side: str, part: int, key: str) -> bytes:
    """Return the name of a column."""
    return f"{KIND_LETTERS[kind]}{side}{part}{key}".encode()


@lru_cache(maxsize=4096)
def present(key: str) -> str:
    """Return the token of a key that has an element."""
    return presence_token(key)


@lru_cache(maxsize=4096)
def beyond(kind: Kind, key: str) -> str:
    """Return the token of a document with values of a key and kind that are in no column."""
    return digest("beyond", key, KIND_LETTERS[kind])


def parts_of(kind: Kind, value: Scalar) -> list[Part]:
    """Return what the columns of a value hold."""
    if kind == "str":
        return list(enumerate(string_chunks(cast("str", value), CHUNKS).code))
    number = microseconds(cast("datetime", value)) if kind == "datetime" else cast("float", value)
    double, remainder = split_double(number)
    return [(0, double)] if abs(double) < EXACT_BELOW else [(0, double), (1, float(remainder))]


def in_columns(kind: Kind, value: Scalar) -> bool:
    """Whether equality of a value can be asked of a column: one double stands for it and for nothing else."""
    return kind in {"number", "datetime"} and len(parts_of(kind, value)) == 1


def written(number: float) -> str:
    """Return a number as the server reads it, with all its digits."""
    return str(int(number)) if abs(number) < EXACT_BELOW and number == int(number) else repr(float(number))


class Group(NamedTuple):
    """What one key adds to a document for ranges.

    Attributes:
        columns: Names of columns and what they hold.
        key: The key.
        kind: The kind of its elements.
        ends: Its least and greatest element, if equality is asked of their columns.
    """

    columns: Sequence[tuple[bytes, str]]
    key: str
    kind: Kind
    ends: tuple[Scalar, ...] = ()

    def otherwise(self) -> list[str]:
        """Return the tokens to add if one of the columns has no number."""
        return [beyond(self.kind, self.key), *(_equal(self.key, end) for end in self.ends)]


class Fields(NamedTuple):
    """The index fields of a document: tokens, and columns key by key."""

    tokens: list[str]
    groups: list[Group]


_repeated = lru_cache(maxsize=16_384, typed=True)(equality_token)


def _equal(key: str, value: Scalar) -> str:
    """Return `equality_token`; short strings repeat from document to document, so theirs are remembered."""
    return (
        _repeated(key, value) if type(value) is str and len(value) <= _SHORT else equality_token(key, value)
    )


def fields_of(metadata: Metadata) -> Fields:
    """Return the index fields of clean metadata."""
    tokens: list[str] = []
    groups: list[Group] = []
    for key, value in metadata.items():
        if is_list(value):
            if value:
                _add_list(key, value, tokens, groups)
            continue
        scalar = cast("Scalar", value)
        tokens.append(present(key))
        kind = kind_of(scalar)
        if kind in {"str", "bool"}:
            tokens.append(_equal(key, scalar))
            if kind == "str":
                groups.append(Group(_columns(kind, LEAST, key, scalar), key, kind))
            continue
        columns = _columns(kind, LEAST, key, scalar)
        if len(columns) > 1:
            tokens.append(_equal(key, scalar))
        groups.append(Group(columns, key, kind, (scalar,)))
    return Fields(tokens, groups)


def _add_list(key: str, values: list[Any], tokens: list[str], groups: list[Group]) -> None:
    tokens.append(present(key))
    kind = kind_of(values[0])
    if kind in {"bool", "str"}:
        tokens += {_equal(key, element): None for element in values}
    if kind == "bool":
        return
    least, greatest = min(values), max(values)
    columns = list(_columns(kind, LEAST, key, least))
    if least != greatest:
        columns += _columns(kind, GREATEST, key, greatest)
    if kind == "str":
        groups.append(Group(columns, key, kind))
        return
    tokens += {
        _equal(key, element): None
        for element in values
        if element not in {least, greatest} or not in_columns(kind, element)
    }
    groups.append(Group(columns, key, kind, (least, greatest)))


def _columns(kind: Kind, side: str, key: str, value: Scalar) -> Sequence[tuple[bytes, str]]:
    if type(value) is str and len(value) <= _SHORT:
        return _string_columns(side, key, value)
    return [(column(kind, side, part, key), written(held)) for part, held in parts_of(kind, value)]


@lru_cache(maxsize=16_384)
def _string_columns(side: str, key: str, text: str) -> tuple[tuple[bytes, str], ...]:
    return tuple((column("str", side, part, key), str(held)) for part, held in parts_of("str", text))


def pairs_of(fields: Fields, numbers: Mapping[bytes, int]) -> list[str]:
    """Return the fields and values of a document's HASH, in turn.

    Args:
        fields: The document's fields.
        numbers: The columns that have a number; others count as having no room.
    """
    tokens = dict.fromkeys(fields.tokens)
    pairs: list[str] = []
    for group in fields.groups:
        lacking = False
        for name, value in group.columns:
            number = numbers.get(name)
            if number is None:
                lacking = True
            else:
                pairs += (f"f{number}", value)
        if lacking:
            tokens.update(dict.fromkeys(group.otherwise()))
    if tokens:
        pairs += ("t", ",".join(tokens))
    return pairs


def names_in(fields: Fields, numbers: Mapping[bytes, int]) -> list[bytes]:
    """Return the columns of a document that have no number yet."""
    return [name for group in fields.groups for name, _ in group.columns if name not in numbers]


class Columns:
    """The columns of a collection, as far as they are known here.

    A number that is known stays: columns are never taken away. That a column has no number is only known
    at the moment it is asked; that there is no more room stays, too.

    Attributes:
        numbers: The known ones.
        full: Whether there is no more room; all are known then.
        remembered: What was made of filters before, by what it was made of.
    """

    def __init__(self, numbers: Mapping[bytes, int], *, full: bool) -> None:
        self.numbers = dict(numbers)
        self.full = full
        self.remembered: dict[object, Any] = {}

    def learn(self, names: Sequence[bytes], numbers: Sequence[Any]) -> None:
        """Take in what the server says of some columns."""
        for name, number in zip(names, numbers, strict=True):
            if number is not None:
                self.numbers[name] = int(number)

    def learn_all(self, columns: Mapping[bytes, bytes]) -> None:
        """Take in all columns that the server has."""
        self.numbers.update((name, int(number)) for name, number in columns.items() if name != FULL)
        self.full = self.full or FULL in columns

    def remember(self, of: object, made: Any) -> None:
        """Keep what will be asked for again: programs use few filters, so the few are kept."""
        if len(self.remembered) >= _REMEMBERED:
            self.remembered.clear()
        self.remembered[of] = made
