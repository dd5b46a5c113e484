"""What reads documents by id, by page, and counts them. Scripts."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

import msgspec

from entrepot.errors import BackendError, CollectionNotFoundError, EntrepotError, RequestError
from entrepot.filters import FALSE, TRUE
from entrepot.records import Page, Query, StoredRecord
from entrepot.scripted import work
from entrepot_elasticsearch.commands import Call, read
from entrepot_elasticsearch.faults import answered, error_types
from entrepot_elasticsearch.fields import ID, record_of, wanted
from entrepot_elasticsearch.names import document_key

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from entrepot_elasticsearch.catalog import Place
    from entrepot_elasticsearch.commands import Script

T = TypeVar("T")

PIECE: Final = 1000
"""Documents that one request reads by id."""
AT_ONCE: Final = 100
"""Documents that are taken apart in the event loop."""
_MOST_TERMS: Final = 50_000
KEEP: Final = "1m"
"""How long a point in time is kept after each request to it."""
_AFTER: Final = "after "
"""What the token of a page begins with; the id of its last document follows."""


def clause(query: Query) -> dict[str, Any] | None:
    """Return what a query's documents must satisfy; None for every document."""
    given: list[dict[str, Any]] = []
    if query.ids is not None:
        names = list(dict.fromkeys(query.ids))
        parts = [names[at : at + _MOST_TERMS] for at in range(0, len(names), _MOST_TERMS)]
        listed = [{"terms": {ID: part}} for part in parts]
        given.append(listed[0] if len(listed) == 1 else {"bool": {"should": listed}})
    if query.filter is not TRUE:
        given.append(cast("dict[str, Any]", query.pushed.query))
    if not given:
        return None
    return given[0] if len(given) == 1 else {"bool": {"filter": given}}


def finds_nothing(query: Query) -> bool:
    """Whether no document can satisfy a query."""
    return query.filter is FALSE or query.ids == ()


def checked(answer: Any) -> Any:
    """Return an answer that is whole.

    Raises:
        BackendError: The server answered in part.
    """
    if answer.get("timed_out") or answer.get("_shards", {}).get("failed"):
        msg = "the server answered in part only"
        raise BackendError(msg, hint="are all shards of the index started?", retryable=True)
    return answer


def failed(place: Place, part: Any) -> EntrepotError:
    """Return the error for a part of an answer that says one."""
    status = part.get("status")
    if "index_not_found_exception" in error_types(part):
        return CollectionNotFoundError(f"there is no collection {place.info.name!r}")
    return answered(status if type(status) is int else 500, part, "the server", place.info.name, "not_done")


def count(place: Place, query: Query) -> Script[int]:
    """Return how many documents match."""
    if finds_nothing(query):
        return 0
    given = clause(query)
    answer = yield read(f"/{place.generation}/_count", None if given is None else {"query": given})
    return int(checked(answer)["count"])


def at_a_point(place: Place, asked: Callable[[str], Script[T]]) -> Script[T]:
    """Carry out a script at a point in time: what it reads is what could be found when it began.

    Args:
        place: The collection.
        asked: Returns the script, given the point's id.
    """
    opened = yield read(f"/{place.generation}/_pit?keep_alive={KEEP}", {})
    point = str(opened["id"])
    try:
        found = yield from asked(point)
    except EntrepotError:
        yield from _close(point)
        raise
    yield from _close(point)
    return found


def _close(point: str) -> Script[None]:
    with suppress(EntrepotError):  # it ends by itself
        yield Call("DELETE", "/_pit", msgspec.json.encode({"id": point}))


def fetch(place: Place, ids: Sequence[str], include: Sequence[str]) -> Script[list[StoredRecord]]:
    """Return the documents with these ids that are there."""
    found = yield from stored(place, ids, wanted(include))
    return (yield from records_of(found, include))


def records_of(found: Sequence[Any], include: Sequence[str]) -> Script[list[StoredRecord]]:
    """Return documents of what the engine gave; many are made beside the event loop (E3)."""
    return (yield from work(_records, found, include, at_once=len(found) <= AT_ONCE))


def _records(found: Sequence[Any], include: Sequence[str]) -> list[StoredRecord]:
    return [record_of(one["_source"], include) for one in found]


def stored(place: Place, ids: Sequence[str], fields: Sequence[str] | None) -> Script[list[Any]]:
    """Return documents by id as the engine has them now, with sequence numbers; what was just written is seen.

    Args:
        place: The collection.
        ids: Their ids.
        fields: What to return of each; None for all of it.
    """
    shown = "" if fields is None else f"?_source_includes={','.join(fields)}"
    found: list[Any] = []
    for at in range(0, len(ids), PIECE):
        keys = [document_key(name) for name in ids[at : at + PIECE]]
        answer = yield read(f"/{place.generation}/_mget{shown}", {"ids": keys})
        for one in answer["docs"]:
            if "error" in one:
                raise failed(place, one)
            if one.get("found"):
                found.append(one)
    return found


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
    body: dict[str, Any] = {
        "query": clause(query) or {"match_all": {}},
        "size": size,
        "sort": [{ID: "asc"}],
        "_source": wanted(query.include),
        "track_total_hits": False,
    }
    if token is not None:
        body["search_after"] = [token.removeprefix(_AFTER)]
    answer = yield read(f"/{place.generation}/_search?allow_partial_search_results=false", body)
    found = checked(answer)["hits"]["hits"]
    after = _AFTER + found[-1]["_source"][ID] if len(found) == size else None
    return Page((yield from records_of(found, query.include)), after)
