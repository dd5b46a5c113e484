"""What reads documents by id, by page, and counts them. Scripts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from entrepot.errors import RequestError
from entrepot.filters import FALSE, TRUE
from entrepot.records import Page, Query, StoredRecord
from entrepot.scripted import work
from entrepot_mongodb.catalog import still_there
from entrepot_mongodb.commands import Call, Find
from entrepot_mongodb.fields import ID, record_of, wanted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from entrepot_mongodb.catalog import Place
    from entrepot_mongodb.commands import Filter, Script

PIECE: Final = 500
"""Documents that one request reads by id."""
AT_ONCE: Final = 100
"""Documents that are taken apart in the event loop."""
_MOST_IDS: Final = 10_000
"""Ids of one request's filter: of 512 characters they are 20 MB at most, and a server takes 48 MB, 16 MiB a document."""
_MOST_BYTES: Final = 8 * 1024 * 1024
_AFTER: Final = "after "
"""What the token of a page begins with; the id of its last document follows."""


def finds_nothing(query: Query) -> bool:
    """Whether no document can satisfy a query."""
    return query.filter is FALSE or query.ids == ()


def pushed(query: Query) -> Filter:
    """Return what the engine takes of a query's filter, its ids aside."""
    return {} if query.filter is TRUE else cast("Filter", query.pushed.query)


def both(left: Filter, right: Filter) -> Filter:
    """Return what satisfies two filters."""
    if left.keys().isdisjoint(right):
        return {**left, **right}
    return {"$and": [left, right]}


def pieces(ids: Iterable[str], most: int = _MOST_IDS) -> Iterator[list[str]]:
    """Yield different ids in pieces that fit a request, in their order."""
    piece: list[str] = []
    size = 0
    for name in dict.fromkeys(ids):
        own = 4 * len(name) + 16
        if piece and (len(piece) >= most or size + own > _MOST_BYTES):
            yield piece
            piece, size = [], 0
        piece.append(name)
        size += own
    if piece:
        yield piece


def clauses(query: Query) -> list[Filter]:
    """Return what a query's documents satisfy: one of these, and of two no document satisfies both."""
    if query.ids is None:
        return [pushed(query)]
    return [both({ID: {"$in": piece}}, pushed(query)) for piece in pieces(query.ids)]


def count(place: Place, query: Query) -> Script[int]:
    """Return how many documents match."""
    if finds_nothing(query):
        return 0
    number = 0
    for clause in clauses(query):
        number += yield Call(place.name, "count_documents", (clause,))
    if not number:
        yield from still_there(place)
    return number


def fetch(place: Place, ids: Sequence[str], include: Sequence[str]) -> Script[list[StoredRecord]]:
    """Return the documents with these ids that are there."""
    found = yield from stored(place, ids, wanted(include))
    if not found:
        yield from still_there(place)
    return (yield from records_of(place, found, include))


def stored(
    place: Place, ids: Sequence[str], fields: dict[str, int], within: Filter | None = None
) -> Script[list[Any]]:
    """Return documents by id as the engine has them.

    Args:
        place: The collection.
        ids: Their ids.
        fields: What to return of each.
        within: What else they satisfy.
    """
    found: list[Any] = []
    for piece in pieces(ids, PIECE):
        found += yield Find(place.name, both({ID: {"$in": piece}}, within or {}), fields, batch=PIECE)
    return found


def records_of(place: Place, found: Sequence[Any], include: Sequence[str]) -> Script[list[StoredRecord]]:
    """Return documents of what the engine gave; many are made beside the event loop (E3)."""
    return (yield from work(_records, place, found, include, at_once=len(found) <= AT_ONCE))


def _records(place: Place, found: Sequence[Any], include: Sequence[str]) -> list[StoredRecord]:
    return [record_of(one, include, place.info.dimension) for one in found]


def scan(place: Place, query: Query, token: str | None, size: int) -> Script[Page[StoredRecord]]:
    """Return a page by ids, which a document keeps when it is replaced: so it comes once (D7).

    Raises:
        RequestError: The token is none.
    """
    given = cast("object", token)
    if given is not None and not (isinstance(given, str) and given.startswith(_AFTER) and given != _AFTER):
        msg = "the token is none of this store's"
        raise RequestError(msg, hint="pass the token of a scan or of one of its pages")
    if finds_nothing(query):
        return Page([], None)
    last = None if token is None else token.removeprefix(_AFTER)
    if query.ids is not None:
        return (yield from _scan_ids(place, query, last, size))
    clause = pushed(query)
    if last is not None:
        clause = both({ID: {"$gt": last}}, clause)
    found = yield Find(place.name, clause, wanted(query.include), [(ID, 1)], limit=size)
    if not found:
        yield from still_there(place)
    after = _AFTER + found[-1][ID] if len(found) == size else None
    return Page((yield from records_of(place, found, query.include)), after)


def _scan_ids(place: Place, query: Query, last: str | None, size: int) -> Script[Page[StoredRecord]]:
    """Return a page of the documents among some ids, in the order of these."""
    names = sorted(name for name in dict.fromkeys(query.ids or ()) if last is None or name > last)
    asked = names[:size]
    found = yield from stored(place, asked, wanted(query.include), pushed(query))
    after = _AFTER + asked[-1] if len(names) > size else None
    return Page((yield from records_of(place, found, query.include)), after)
