"""What reads documents by id, by page, and counts them. Scripts.

A query of the engine gives the nearest of what matches, and no list of all that matches. So whatever must be complete lists
the ids of the namespace, 100 at a time, reads their records, and holds the filter against them here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import quote

from entrepot.completion import is_partial
from entrepot.errors import CompletionLimitError, RequestError
from entrepot.filters import FALSE, TRUE, evaluate
from entrepot.records import Page, Query, StoredRecord
from entrepot.scripted import work
from entrepot_pinecone.catalog import still_there, within
from entrepot_pinecone.commands import read
from entrepot_pinecone.fields import document_metadata, name_of, record_of
from entrepot_pinecone.names import record_id

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from entrepot_pinecone.catalog import Place
    from entrepot_pinecone.commands import Script

Found = dict[str, Any]

PIECE: Final = 100
"""Ids that one request lists or reads: the engine lists no more."""
_URL: Final = 6000
"""Characters of ids in the URL of a request."""
_ROWS: Final = 1000
"""Documents that one page reads, whether or not they match, so that an exchange ends in time."""
AT_ONCE: Final = 50
"""Records that are taken apart in the event loop."""
_NEXT: Final = "next "
"""What the token of a page begins with; what the engine calls the next one follows."""
_AFTER: Final = "after "
"""The same among given ids; the last one of the page follows."""


def finds_nothing(query: Query) -> bool:
    """Whether no document can satisfy a query."""
    return query.filter is FALSE or query.ids == ()


def pieces(ids: Iterable[str]) -> Iterator[list[str]]:
    """Yield different ids of the engine in pieces that fit a URL, in their order."""
    piece: list[str] = []
    size = 0
    for name in dict.fromkeys(ids):
        own = len(quote(name, safe="")) + 5
        if piece and (len(piece) >= PIECE or size + own > _URL):
            yield piece
            piece, size = [], 0
        piece.append(name)
        size += own
    if piece:
        yield piece


def stored(place: Place, ids: Iterable[str]) -> Script[list[Found]]:
    """Return records by the engine's ids, without those that are not there."""
    found: list[Found] = []
    for piece in pieces(ids):
        parameters = within(place.namespace, *(("ids", name) for name in piece))
        answer = yield read(place.host, "/vectors/fetch", parameters)
        there = cast("dict[str, Found]", answer.body.get("vectors") or {})
        found += [there[name] for name in piece if name in there]
    return found


def listed(place: Place, size: int, token: str | None) -> Script[tuple[list[str], str | None]]:
    """Return some of the engine's ids, and the engine's token of the next ones."""
    more = () if token is None else (("paginationToken", token),)
    parameters = within(place.namespace, ("limit", str(min(size, PIECE))), *more)
    answer = yield read(place.host, "/vectors/list", parameters)
    names = [str(one["id"]) for one in answer.body.get("vectors") or ()]
    following = cast("dict[str, Any]", answer.body.get("pagination") or {}).get("next")
    return names, cast("str | None", following) or None


def fetch(place: Place, ids: Sequence[str], include: Sequence[str]) -> Script[list[StoredRecord]]:
    """Return the documents with these ids that are there."""
    found = yield from stored(place, map(record_id, ids))
    if not found:
        yield from still_there(place)
    return (yield from records_of(place, found, include))


def records_of(place: Place, found: Sequence[Found], include: Sequence[str]) -> Script[list[StoredRecord]]:
    """Return documents of what the engine gave; many are made beside the event loop (E3)."""
    return (yield from work(_records, place, found, include, at_once=len(found) <= AT_ONCE))


def _records(place: Place, found: Sequence[Found], include: Sequence[str]) -> list[StoredRecord]:
    return [record_of(one, include, place.info.dimension) for one in found]


def matching(query: Query, found: Sequence[Found]) -> Script[list[Found]]:
    """Return the records that satisfy a query's filter."""
    if query.filter is TRUE:
        return list(found)
    return (yield from work(_matching, query, found, at_once=len(found) <= AT_ONCE))


def _matching(query: Query, found: Sequence[Found]) -> list[Found]:
    return [one for one in found if evaluate(query.filter, document_metadata(one))]


def scan(place: Place, query: Query, token: str | None, size: int) -> Script[Page[StoredRecord]]:
    """Return a page by the engine's own listing, in which a document keeps its place when it is replaced (D7).

    Raises:
        RequestError: The token is none.
    """
    given = cast("object", token)
    start = _AFTER if query.ids is not None else _NEXT
    if given is not None and not (isinstance(given, str) and given.startswith(start) and given != start):
        msg = "the token is none of this store's"
        raise RequestError(msg, hint="pass the token of a scan or of one of its pages")
    if finds_nothing(query):
        return Page([], None)
    last = None if token is None else token.removeprefix(start)
    if query.ids is not None:
        return (yield from _scan_ids(place, query, last, size))
    found: list[Found] = []
    rows = 0
    while True:
        names, last = yield from listed(place, size - len(found), last)
        there = yield from stored(place, names)
        rows += len(there)
        # Of a superset the core counts what was read, and holds the filter against it.
        found += there if is_partial(query) else (yield from matching(query, there))
        if last is None or len(found) >= size or rows >= _ROWS:
            break
    if not rows:
        yield from still_there(place)
    following = None if last is None else _NEXT + last
    return Page((yield from records_of(place, found, query.include)), following)


def _scan_ids(place: Place, query: Query, last: str | None, size: int) -> Script[Page[StoredRecord]]:
    """Return a page of the documents among some ids, in the order of these."""
    names = sorted(name for name in dict.fromkeys(query.ids or ()) if last is None or name > last)
    asked = names[:size]
    found = yield from among(place, query, asked)
    following = _AFTER + asked[-1] if len(names) > size else None
    return Page((yield from records_of(place, found, query.include)), following)


def among(place: Place, query: Query, ids: Sequence[str]) -> Script[list[Found]]:
    """Return the records of some documents that satisfy a query's filter."""
    found = yield from stored(place, map(record_id, ids))
    if not found:
        yield from still_there(place)
    return (yield from matching(query, found))


def count(place: Place, query: Query, most_rows: int) -> Script[int]:
    """Return how many documents match.

    Raises:
        CompletionLimitError: With a filter, more documents than `most_rows` would have to be read.
    """
    if finds_nothing(query):
        return 0
    if query.ids is not None:
        return len((yield from among(place, query, query.ids)))
    number = rows = 0
    last: str | None = None
    while True:
        names, last = yield from listed(place, PIECE, last)
        rows += len(names)
        if query.filter is TRUE:
            number += len(names)
        else:
            number += len((yield from matching(query, (yield from stored(place, names)))))
        if last is None:
            break
        if query.filter is not TRUE and rows > most_rows:
            raise too_many("counting what matches a filter", rows)
    if not rows:
        yield from still_there(place)
    return number


def too_many(what: str, rows: int) -> CompletionLimitError:
    """Return the error for an operation that would read more than it may."""
    msg = f"{what} read {rows} documents of the namespace, and would have to read more"
    return CompletionLimitError(
        msg,
        clause="",
        rows=rows,
        hint="Pinecone enumerates no matches; raise max_completion_rows to read all",
    )


def names_of(found: Sequence[Found]) -> list[str]:
    """Return the ids of the documents."""
    return [name_of(one) for one in found]
