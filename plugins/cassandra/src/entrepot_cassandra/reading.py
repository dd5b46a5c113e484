# ruff: noqa: S608 - names come from `names.quoted`, columns from this package; every value is bound
"""What reads documents by id, by page, and counts them. Scripts.

Rows are read in the order of the tokens of their ids, which a document keeps when it is replaced. Where a filter is several
conjunctions, their rows are merged in that order, so a document that satisfies several comes once (D7).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from entrepot.completion import holds, is_partial
from entrepot.errors import EntrepotError, RequestError
from entrepot.filters import FALSE, TRUE
from entrepot.records import Page, StoredRecord
from entrepot.scripted import work
from entrepot_cassandra.catalog import gone
from entrepot_cassandra.commands import Ask, Together
from entrepot_cassandra.faults import MissingError
from entrepot_cassandra.fields import columns, record_of
from entrepot_cassandra.filters import Way

if TYPE_CHECKING:
    from collections.abc import Sequence

    from entrepot.records import Query
    from entrepot_cassandra.catalog import Place
    from entrepot_cassandra.commands import Rows, Script
    from entrepot_cassandra.filters import Ways

PIECE: Final = 50
"""Documents that one statement reads by id."""
AT_ONCE: Final = 100
"""Documents that are taken apart in the event loop."""
_MERGED: Final = 500
"""Rows that are merged in the event loop."""
MANY: Final = 2000
"""Rows of a page where they are short."""
_NUMBERS: Final = 30_000
"""Numbers of vectors in a page: the driver reads a page in one step in which no other thread runs (E3), 0.2 us each."""
_AFTER: Final = "after "
"""What the token of a page begins with; the place of its last document follows."""
_NUMBER: Final = re.compile(r"-?[0-9]{1,19}")

Row = tuple[Any, ...]


def ways_of(query: Query) -> Ways:
    """Return the conjunctions of which a query's documents satisfy one."""
    if query.filter is FALSE or query.ids == ():
        return ()
    if query.filter is TRUE:
        return (Way(),)
    return cast("Ways", query.pushed.query)


def within(place: Place, error: EntrepotError) -> EntrepotError:
    """Return the error that a collection's store raises for one of a statement: a missing table is no collection."""
    if isinstance(error, MissingError):
        told = gone(place)
        told.__cause__ = error.__cause__
        return told
    return error


def checked(place: Place, answers: Sequence[Rows | EntrepotError]) -> list[Rows]:
    """Return answers that all came.

    Raises:
        EntrepotError: The first that did not.
    """
    found: list[Rows] = []
    for one in answers:
        if isinstance(one, EntrepotError):
            raise within(place, one)
        found.append(one)
    return found


def select(place: Place, what: str, way: Way, *more: str) -> str:
    """Return a statement that reads rows.

    Args:
        place: The collection.
        what: The columns.
        way: What they must satisfy.
        more: Further conditions.
    """
    conditions = " AND ".join(part for part in (way.cql, *more) if part)
    where = f" WHERE {conditions}" if conditions else ""
    return f"SELECT {what} FROM {place.path}{where}"


def _page(place: Place, what: Sequence[str], most: int) -> int:
    """Return how many rows are read at a time: fewer if they have vectors, and these are long."""
    return min(most, max(1, _NUMBERS // place.info.dimension)) if "v" in what else most


# --- by id ------------------------------------------------------------------------------------------------


def stored(
    place: Place, ids: Sequence[str], what: Sequence[str], values: tuple[Any, ...] = ()
) -> Script[list[Row]]:
    """Return rows by id, `what` of each behind its id; those that are not there are left out."""
    names = list(dict.fromkeys(ids))
    cql = f"SELECT {', '.join(('id', *what))} FROM {place.path} WHERE id IN ?"
    size = _page(place, what, PIECE)
    asks: list[Ask] = [Ask(cql, (*values, names[at : at + size])) for at in range(0, len(names), size)]
    found: list[Row] = []
    while asks:
        answers = checked(place, (yield Together(asks)))
        found += [row for answer in answers for row in answer.rows]
        asks = [
            ask._replace(state=answer.state)
            for ask, answer in zip(asks, answers, strict=True)
            if answer.state is not None
        ]
    return found


def fetch(place: Place, ids: Sequence[str], include: Sequence[str]) -> Script[list[StoredRecord]]:
    """Return the documents with these ids that are there."""
    found = yield from stored(place, ids, columns(include))
    return (yield from records_of(found, include))


def records_of(found: Sequence[Row], include: Sequence[str]) -> Script[list[StoredRecord]]:
    """Return documents of rows; many are made beside the event loop (E3)."""
    return (yield from work(_records, found, include, at_once=len(found) <= AT_ONCE))


def _records(found: Sequence[Row], include: Sequence[str]) -> list[StoredRecord]:
    return [record_of(row, include) for row in found]


# --- by page ----------------------------------------------------------------------------------------------


class Position(NamedTuple):
    """Where a row stands: the token of its id, and the id's bytes, by which rows of one token are told apart."""

    token: int
    name: bytes


def position(row: Row) -> Position:
    """Return where a row stands that begins with its token and its id."""
    return Position(row[0], row[1].encode())


class _Stream(NamedTuple):
    """Rows of one conjunction, as far as they were read."""

    ask: Ask
    rows: list[Row]
    whole: bool


def merged(  # noqa: PLR0913, PLR0917 - what is read, and from where
    place: Place,
    ways: Ways,
    what: Sequence[str],
    after: Position | None,
    size: int,
    given: tuple[Any, ...] = (),
) -> Script[tuple[list[Row], bool]]:
    """Return the next rows that satisfy one of the conjunctions, each once, in the order of their tokens.

    Args:
        place: The collection.
        ways: The conjunctions.
        what: What to read of each row, behind its token and its id.
        after: Where the row before stands; None begins.
        size: How many rows, at least one.
        given: The values of question marks in `what`.

    Returns:
        The rows, and whether there may be more.
    """
    selected = ", ".join(("token(id)", "id", *what))
    begin, value = ((), ()) if after is None else (("token(id) >= ?",), (after.token,))
    page = _page(place, what, size + 1)
    streams = [
        _Stream(
            Ask(select(place, selected, way, *begin), (*given, *way.values, *value), page=page),
            [],
            whole=False,
        )
        for way in ways
    ]
    while True:
        streams = yield from _longer(place, streams, size, after)
        few = sum(len(one.rows) for one in streams) <= _MERGED
        found = yield from work(_in_order, streams, at_once=few)
        whole = all(one.whole for one in streams)
        if whole or len(found) >= size:
            return found[:size], len(found) > size or not whole


def _in_order(streams: Sequence[_Stream]) -> list[Row]:
    """Return the rows of all streams, each once, as far as nothing can come between them."""
    # Beyond the end of what was read of a stream there may be rows before those of others.
    ends = [position(one.rows[-1]) for one in streams if not one.whole]
    end = min(ends, default=None)
    rows = {row[1]: row for one in streams for row in one.rows if end is None or position(row) <= end}
    return sorted(rows.values(), key=position)


def _longer(
    place: Place, streams: Sequence[_Stream], size: int, after: Position | None
) -> Script[list[_Stream]]:
    """Read on in the streams that have no more rows than are wanted, until each has some or ends."""
    grown = list(streams)
    short: list[int] = [number for number, one in enumerate(grown) if not one.whole and len(one.rows) <= size]
    while short:
        answers = checked(place, (yield Together([grown[number].ask for number in short])))
        few = sum(len(answer.rows) for answer in answers) <= _MERGED
        fresh = yield from work(_behind, answers, after, at_once=few)
        for number, answer, rows in zip(short, answers, fresh, strict=True):
            one = grown[number]
            ask = one.ask._replace(state=answer.state)
            grown[number] = _Stream(ask, one.rows + rows, answer.state is None)
        short = [number for number in short if not grown[number].whole and not grown[number].rows]
    return grown


def _behind(answers: Sequence[Rows], after: Position | None) -> list[list[Row]]:
    """Return the rows of answers that stand behind a place."""
    return [[row for row in answer.rows if after is None or position(row) > after] for answer in answers]


def scan(place: Place, query: Query, token: str | None, size: int) -> Script[Page[StoredRecord]]:
    """Return a page in the order of the ids' tokens (D7).

    Raises:
        RequestError: The token is none.
    """
    after = None if token is None else _position_of(token)
    ways = ways_of(query)
    if not ways:
        return Page([], None)
    if query.ids is not None:
        return (yield from _scan_ids(place, query, after, size))
    found, more = yield from merged(place, ways, columns(query.include), after, size)
    records = yield from records_of([row[1:] for row in found], query.include)
    return Page(records, _token_of(position(found[-1])) if more and found else None)


def _scan_ids(place: Place, query: Query, after: Position | None, size: int) -> Script[Page[StoredRecord]]:
    """As `scan`, among ids, in the order of their bytes."""
    names = sorted(name.encode() for name in dict.fromkeys(query.ids or ()))
    names = [name for name in names if after is None or name > after.name]
    include = tuple(dict.fromkeys((*query.include, "metadata")))
    records = yield from fetch(place, [name.decode() for name in names[:size]], include)
    kept = [one for one in records if is_partial(query) or holds(query, one)]
    if "metadata" not in query.include:
        kept = [one._replace(metadata=None) for one in kept]
    return Page(kept, _token_of(Position(0, names[size - 1])) if len(names) > size else None)


def _token_of(place: Position) -> str:
    return f"{_AFTER}{place.token} {place.name.decode()}"


def _position_of(token: object) -> Position:
    """Return where the page before ended.

    Raises:
        RequestError: The token is none of `scan`.
    """
    begin, number, name = ("", "", "")
    if isinstance(token, str):
        begin, number, name = ([*token.split(" ", 2), "", ""])[:3]
    if f"{begin} " != _AFTER or not _NUMBER.fullmatch(number) or not name:
        msg = "the token is none of this store's"
        raise RequestError(msg, hint="pass the token of a scan or of one of its pages")
    return Position(int(number), name.encode())


def count(place: Place, query: Query) -> Script[int]:
    """Return how many documents match."""
    ways = ways_of(query)
    number = 0
    after: Position | None = None
    more = bool(ways)
    while more:
        found, more = yield from merged(place, ways, (), after, MANY)
        number += len(found)
        more = more and bool(found)
        after = position(found[-1]) if found else None
    return number
