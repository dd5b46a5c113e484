"""What reads documents: by id, pages, counts, and what searches share. Scripts.

A document is a HASH with the fields m (metadata, one JSON text), x (text, if there is one, spaced), v (vector, float32,
little-endian), n (number of the write that made it), q (place in scans: the number of the write that made the
first document of this id), and index fields (`entrepot_redis.fields`, `entrepot_redis.words`).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

import numpy as np

from entrepot.errors import RequestError
from entrepot.filters import TRUE, evaluate
from entrepot.metadata import decode_metadata
from entrepot.records import Page, Query, StoredRecord
from entrepot_redis.catalog import asked_columns, check_generation, learned
from entrepot_redis.commands import Ask
from entrepot_redis.filters import columns_of, rendered
from entrepot_redis.replies import found, total
from entrepot_redis.words import unspaced

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from entrepot.filters import Converted
    from entrepot_redis.catalog import Place
    from entrepot_redis.commands import Command, Script
    from entrepot_redis.filters import Clauses
    from entrepot_redis.names import StoreNames
    from entrepot_redis.replies import Row

ALWAYS: Final = ("TIMEOUT", "0", "DIALECT", "2")
"""Behind every query: take the time it needs, as a late answer would be one in part; and what is meant."""
_WINDOW: Final = 1000
"""Places that a page of a scan looks at, at least, in one query."""
_MOST_WINDOW: Final = 100_000
_SHORT: Final = 2000
"""Characters of conditions that are remembered."""
_TOKEN: Final = re.compile(r"[0-9]{1,15}")
_LETTERS: Final = {"text": "x", "metadata": "m", "vector": "v"}


class Condition(NamedTuple):
    """What a query is restricted to.

    Attributes:
        text: In the engine's language; empty for every document, None for no document.
        sieve: Whether what comes back must be held against the filter here: the collection ran out of room
            for columns after the store had translated the filter.
    """

    text: str | None
    sieve: bool


def condition(names: StoreNames, place: Place, query: Query) -> Script[Condition]:
    """Return the condition of a query's filter, with the columns as they are now."""
    made, unknown = _made(place, query, unscored=False)
    if unknown:
        [numbers, generation] = yield Ask(asked_columns(names, unknown))
        yield from learned(names, place, unknown, numbers, generation)
        made, _ = _made(place, query, unscored=False)
    return made


def answered(
    names: StoreNames,
    place: Place,
    query: Query,
    command_of: Callable[[Condition], Command],
    *,
    unscored: bool = False,
) -> Script[tuple[Condition, Any]]:
    """Return the condition of a query and the reply to a command with it, None if no document can match.

    Columns without a known number are asked for in the same exchange, before the command. If they have one by
    now, the command goes once more; if not, no write that returned before has a value in them.
    """
    while True:
        made, unknown = _made(place, query, unscored=unscored)
        commands = [] if made.text is None else [command_of(made)]
        if not unknown:
            replies = (yield Ask(commands)) if commands else []
            return made, replies[0] if replies else None
        [numbers, generation, *replies] = yield Ask([*asked_columns(names, unknown), *commands])
        news = yield from learned(names, place, unknown, numbers, generation)
        if not news:
            return made, replies[0] if replies else None


def _made(place: Place, query: Query, *, unscored: bool) -> tuple[Condition, list[bytes]]:
    """Return a condition with the columns that are known, and the names of those that are not."""
    if query.filter is TRUE:
        return Condition("", sieve=False), []
    columns = place.columns
    of = (query.filter, "unscored" if unscored else "scored")
    if (known := columns.remembered.get(of)) is not None:
        return cast("Condition", known), []
    converted: Converted[Clauses] = query.pushed
    unknown = [name for name in columns_of(converted.query) if name not in columns.numbers]
    text, exact = rendered(converted.query, columns, unscored=unscored)
    made = Condition(text, sieve=converted.exact and not exact)
    if not unknown and len(text or "") <= _SHORT:
        columns.remember(of, made)  # numbers stay, so it will not change
    return made, [] if columns.full else unknown


# --- records ----------------------------------------------------------------------------------------------


def _fields(include: Sequence[str], *more: str) -> list[str]:
    return list(dict.fromkeys([*(_LETTERS[part] for part in include), *more]))


def returned(fields: Sequence[str]) -> list[str]:
    """Return the part of a query that says which fields come with each document."""
    return ["RETURN", str(len(fields)), *fields] if fields else ["NOCONTENT"]


def record_of(name: str, fields: Mapping[bytes, bytes], include: Sequence[str]) -> StoredRecord:
    """Return a document of the fields of its HASH."""
    text = fields.get(b"x") if "text" in include else None
    metadata = fields.get(b"m") if "metadata" in include else None
    vector = fields.get(b"v") if "vector" in include else None
    return StoredRecord(
        name,
        None if text is None else unspaced(text.decode()),
        None if metadata is None else decode_metadata(metadata),
        None if vector is None else vector_of(vector),
    )


def vector_of(data: bytes) -> NDArray[np.float32]:
    """Return a stored vector, float32 of shape (d,), writable."""
    return np.frombuffer(data, dtype="<f4").astype(np.float32)


def packed(vector: NDArray[np.float32]) -> bytes:
    """Return a vector as it is stored and compared."""
    return vector.astype("<f4").tobytes()


class Reader(NamedTuple):
    """What turns rows of an answer into records."""

    skip: int
    query: Query
    sieve: bool

    def name(self, row: Row) -> str:
        """Return the id of a row's document."""
        return row.key[self.skip :].decode()

    def record(self, row: Row) -> StoredRecord:
        """Return a row's document, with what the query includes."""
        return record_of(self.name(row), row.fields, self.query.include)

    def passes(self, row: Row) -> bool:
        """Whether a row satisfies the filter, where the engine was not asked for all of it."""
        return not self.sieve or holds(self.query, row.fields)

    @property
    def fields(self) -> list[str]:
        """What must come with each row."""
        return _fields(self.query.include, *(("m",) if self.sieve else ()))


def holds(query: Query, fields: Mapping[bytes, bytes]) -> bool:
    """Whether a document satisfies the query's whole filter."""
    return evaluate(query.filter, decode_metadata(fields[b"m"]))


def reader_of(names: StoreNames, place: Place, query: Query, *, sieve: bool) -> Reader:
    """Return what reads the rows of a query's answers."""
    return Reader(len(names.prefix(place.generation)), query, sieve)


# --- by id, by page, counted ------------------------------------------------------------------------------


def fetch(
    names: StoreNames, place: Place, ids: Sequence[str], include: Sequence[str]
) -> Script[list[StoredRecord]]:
    """Return the documents with these ids that are there.

    Raises:
        CollectionNotFoundError, CollectionMismatchError: The collection was dropped, or made anew.
    """
    fields = _fields(include, "n")
    prefix = names.prefix(place.generation)
    commands: list[Command] = [("HGET", names.record, "generation")]
    commands += [("HMGET", prefix + name.encode(), *fields) for name in ids]
    [generation, *rows] = yield Ask(commands)
    check_generation(place, generation)
    letters = [field.encode() for field in fields]
    at_number = fields.index("n")
    return [
        record_of(
            name, {key: value for key, value in zip(letters, row, strict=True) if value is not None}, include
        )
        for name, row in zip(ids, rows, strict=True)
        if row[at_number] is not None
    ]


class Window(NamedTuple):
    """Rows of one query of a scan, by place, and the place up to which all have been seen."""

    rows: list[Row]
    seen: int


def last_place(names: StoreNames, place: Place) -> Script[int]:
    """Return the number of the last write, after which no document that is there now has its place."""
    [(generation, number)] = yield Ask([("HMGET", names.record, "generation", "written")])
    check_generation(place, generation)
    return int(number)


def window(  # noqa: PLR0913, PLR0917 - what a window is
    names: StoreNames, place: Place, where: str, after: int, until: int, most: int, fields: Sequence[str]
) -> Script[Window]:
    """Return at most `most` documents whose place is above `after` and at most `until`, by place."""
    command: Command = (
        "FT.SEARCH", names.index_of(place.generation), f"@q:[({after} {until}] {where}".strip(), "SORTBY", "q", "ASC",
        *returned([*fields, "q"]), "LIMIT", "0", most, *ALWAYS,
    )  # fmt: skip
    [reply] = yield Ask([command])
    rows = found(reply).rows
    return Window(rows, int(rows[-1].fields[b"q"]) if len(rows) == most else until)


def scan(
    names: StoreNames, place: Place, query: Query, token: str | None, size: int
) -> Script[Page[StoredRecord]]:
    """Return a page by place, which an id keeps when its document is replaced: so it comes once (D7)."""
    at = _place_of(token)
    where, sieve = yield from condition(names, place, query)
    end = yield from last_place(names, place)
    if where is None:
        return Page([], None)
    reader = reader_of(names, place, query, sieve=sieve)
    records: list[StoredRecord] = []
    width = max(_WINDOW, 2 * size)
    while at < end and len(records) < size:
        until = min(at + width, end)
        rows, at = yield from window(names, place, where, at, until, size - len(records), reader.fields)
        records += [reader.record(row) for row in rows if reader.passes(row)]
        width = min(2 * width, _MOST_WINDOW)
    return Page(records, str(at) if at < end else None)


def _place_of(token: str | None) -> int:
    if token is None:
        return 0
    if not isinstance(cast("object", token), str) or not _TOKEN.fullmatch(token):
        msg = "the token is none of this store's"
        raise RequestError(msg, hint="pass the token of a scan or of one of its pages")
    return int(token)


def count(names: StoreNames, place: Place, query: Query) -> Script[int]:
    """Return how many documents match."""
    index = names.index_of(place.generation)
    made, reply = yield from answered(
        names,
        place,
        query,
        lambda made: ("FT.SEARCH", index, made.text or "*", "LIMIT", "0", "0", *ALWAYS),
    )
    if made.sieve and reply is not None:
        return (yield from _count_here(names, place, query))
    return 0 if reply is None else total(reply)


def _count_here(names: StoreNames, place: Place, query: Query) -> Script[int]:
    number = 0
    token: str | None = None
    while True:
        page = yield from scan(names, place, query, token, _WINDOW)
        number += len(page.items)
        token = page.token
        if token is None:
            return number
