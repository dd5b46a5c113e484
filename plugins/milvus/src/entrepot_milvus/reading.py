"""What reads documents: by id, by page, counted. Scripts."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from entrepot.errors import RequestError
from entrepot.filters import FALSE, TRUE
from entrepot.records import Page, Query, StoredRecord
from entrepot.scripted import work
from entrepot_milvus.expressions import EVERYTHING, NOTHING, one_of, quoted, rendered
from entrepot_milvus.faults import TooLargeError
from entrepot_milvus.fields import ID, records_of, wanted
from entrepot_milvus.names import point_id
from entrepot_milvus.rows import MOST_ROWS, count_where, rows_where

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from entrepot.scripted import Script
    from entrepot_milvus.catalog import Place, Plan
    from entrepot_milvus.expressions import Condition

    Row = Mapping[str, Any]

AT_ONCE: Final = 50
"""Rows that are read on the event loop: a few milliseconds."""
PIECE: Final = 1000
"""Documents that one request names by id."""
_DIGITS: Final = 12
_END: Final = 16**_DIGITS
"""The places of a scan: the first twelve digits of primary keys, which are spread evenly."""
_KEY_DIGITS: Final = 32
_TOKEN: Final = re.compile(rf"[0-9a-f]{{{_KEY_DIGITS}}}\.[0-9a-f]{{1,{_DIGITS + 1}}}")
_CUT: Final = 4
"""By how much a range is cut that holds too many rows."""
_KEYS_AT_ONCE: Final = 10_000


def conditions(query: Query) -> list[str]:
    """Return what a query's documents must satisfy, as expressions to be joined with AND."""
    parts: list[str] = []
    if query.ids is not None:
        parts.append(one_of(ID, map(point_id, dict.fromkeys(query.ids))))
    if query.filter is not TRUE:
        pushed = cast("Condition", query.pushed.query)
        if pushed != EVERYTHING:
            parts.append(rendered(pushed))
    return parts


def finds_nothing(query: Query) -> bool:
    """Whether no document can satisfy a query."""
    return query.filter is FALSE or query.ids == ()


# --- by id ------------------------------------------------------------------------------------------------


def retrieve(  # noqa: PLR0913 - as above
    place: Place,
    plan: Plan,
    ids: Sequence[str],
    fields: Sequence[str],
    parts: Sequence[str] = (),
    *,
    strong: bool = False,
) -> Script[list[Row]]:
    """Return the rows of documents that are there and satisfy some expressions."""
    rows: list[Row] = []
    pending = [ids[at : at + PIECE] for at in range(0, len(ids), PIECE)]
    while pending:
        part = pending.pop()
        keys = one_of(ID, map(point_id, part))
        try:
            found = yield from rows_where(place, plan, [keys, *parts], fields, len(part), strong=strong)
        except TooLargeError:
            if len(part) == 1:
                raise
            pending += [part[: len(part) // 2], part[len(part) // 2 :]]
        else:
            rows += found
    return rows


def fetch(place: Place, ids: Sequence[str], include: Sequence[str], plan: Plan) -> Script[list[StoredRecord]]:
    """Return the documents with these ids that are there."""
    rows = yield from retrieve(place, plan, ids, wanted(include))
    return (yield from work(records_of, rows, include, at_once=len(rows) <= AT_ONCE))


# --- by page ----------------------------------------------------------------------------------------------


class Window(NamedTuple):
    """All rows of a range of primary keys, the place where it ends, and how many places were asked for."""

    rows: list[Row]
    stop: int
    width: int


def window(  # noqa: PLR0913, PLR0917 - as above
    place: Place,
    plan: Plan,
    parts: Sequence[str],
    fields: Sequence[str],
    after: str,
    width: int,
    most: int,
    *,
    strong: bool = False,
) -> Script[Window]:
    """Return the rows whose keys follow one, up to some places on; fewer places if there are too many rows.

    The engine's own order is not relied on: Milvus Lite has none.
    """
    start = _place_of(after)
    while True:
        stop = min(start + width, _END)
        within = [f"{ID} > {quoted(after)}"] if after else []
        if stop < _END:
            within.append(f"{ID} < {quoted(f'{stop:0{_DIGITS}x}')}")
        try:
            rows = yield from rows_where(place, plan, [*within, *parts], fields, most, strong=strong)
        except TooLargeError:
            if width <= 1:
                raise
        else:
            if len(rows) < most:
                return Window(rows, stop, width)
        width = max(1, (stop - start) // _CUT)


def _place_of(key: str) -> int:
    return int(key[:_DIGITS].ljust(_DIGITS, "0"), 16)


def scan(place: Place, query: Query, token: str | None, size: int, plan: Plan) -> Script[Page[StoredRecord]]:
    """Return a page by primary keys, which a document keeps when it is replaced: so it comes once (D7).

    A range of keys is asked for that probably holds a few more documents than the page, as they are spread evenly;
    what is beyond the page is asked for again.
    """
    after, width = _position_of(token)
    if finds_nothing(query):
        return Page([], None)
    parts, fields = conditions(query), wanted(query.include, ID)
    rows: list[Row] = []
    stop = 0
    if width == _END:
        whole = yield from _whole(place, plan, parts, fields, size)
        if whole is None:
            number = yield from count(place, query, plan)
            width = max(1, min(_END - 1, _END * _expected(size) // max(number, 1)))
        else:
            rows, stop = whole, _END
    while stop < _END and len(rows) < size:
        found, stop, width = yield from window(place, plan, parts, fields, after, width, _most(size))
        rows += found
        after = _last_before(stop)
    rows = sorted(rows, key=_key_of)
    more = len(rows) > size or stop < _END
    rows = rows[:size]
    records = yield from work(records_of, rows, query.include, at_once=len(rows) <= AT_ONCE)
    return Page(records, f"{rows[-1][ID]}.{width:x}" if more else None)


def _whole(
    place: Place, plan: Plan, parts: Sequence[str], fields: Sequence[str], size: int
) -> Script[list[Row] | None]:
    """Return all rows, or None if they are more than a page."""
    try:
        rows = yield from rows_where(place, plan, parts, fields, min(size + 1, MOST_ROWS))
    except TooLargeError:
        return None
    return rows if len(rows) <= size and len(rows) < MOST_ROWS else None


def _key_of(row: Row) -> str:
    return cast("str", row[ID])


def _expected(size: int) -> int:
    """Return how many rows a range should hold so that it nearly always holds a page: four deviations more."""
    return size + 4 * math.isqrt(size) + 4


def _most(size: int) -> int:
    return min(2 * _expected(size), MOST_ROWS)


def _position_of(token: str | None) -> tuple[str, int]:
    """Return the key that a page follows, and how wide the ranges are."""
    if token is None:
        return "", _END
    if not isinstance(cast("object", token), str) or not _TOKEN.fullmatch(token):
        msg = "the token is none of this store's"
        raise RequestError(msg, hint="pass the token of a scan or of one of its pages")
    after, _, width = token.partition(".")
    return after, max(1, min(int(width, 16), _END - 1))


def keys_of(place: Place, query: Query, plan: Plan) -> Script[list[str]]:
    """Return the primary keys of all documents that match; always strong."""
    parts, keys = conditions(query), list[str]()
    after, width, stop = "", _END, 0
    while stop < _END:
        rows, stop, width = yield from window(
            place, plan, parts, [ID], after, width, _KEYS_AT_ONCE, strong=True
        )
        keys += [row[ID] for row in rows]
        after = _last_before(stop)
    return keys


def _last_before(stop: int) -> str:
    """Return the greatest key below a place."""
    return f"{stop - 1:0{_DIGITS}x}" + "f" * (_KEY_DIGITS - _DIGITS)


# --- counted ----------------------------------------------------------------------------------------------


def count(place: Place, query: Query, plan: Plan) -> Script[int]:
    """Return how many documents match."""
    if finds_nothing(query):
        return 0
    return (yield from count_where(place, plan, conditions(query)))


def await_all(place: Place, plan: Plan) -> Script[None]:
    """Wait until reads of every consistency see what was written up to now (S7)."""
    yield from rows_where(place, plan, [rendered(NOTHING)], [ID], 1, strong=True)
