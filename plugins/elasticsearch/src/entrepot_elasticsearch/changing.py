"""What changes documents. Scripts.

Every document of a bulk request answers for itself, and every answer is read. What depends on a stored document names
the sequence number that was read with it, which the engine compares when it writes.

Searches see a write after the index was refreshed, so a bulk request ends with a refresh (S7). ``refresh=wait_for``
would wait for the index's own interval, which there is none of: it could show a part of a request. And graphs of
vectors are made when an index is refreshed: many small ones sooner than a large one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from entrepot.drafts import check_sizes
from entrepot.errors import BackendError, DuplicateIdError, EntrepotError
from entrepot.guards import changed, changed_inside, refuse_outside
from entrepot.metadata import decode_metadata, encode_metadata
from entrepot.records import StoredRecord, unchanged
from entrepot.scripted import work
from entrepot_elasticsearch.commands import change, change_lines, joined, read
from entrepot_elasticsearch.faults import answered
from entrepot_elasticsearch.fields import ID, META, TEXT, indexed_again, sources
from entrepot_elasticsearch.names import document_key
from entrepot_elasticsearch.reading import AT_ONCE, checked, clause, finds_nothing, stored

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from entrepot.capabilities import Limits
    from entrepot.filters import Normal
    from entrepot.records import IfExists, Query, Record
    from entrepot_elasticsearch.catalog import Place
    from entrepot_elasticsearch.commands import Script

_MOST_BYTES: Final = 8 * 1024 * 1024
"""About how many bytes one request has; a server takes 100 MB unless it is told otherwise."""
_QUICK: Final = 20_000
"""Characters of documents that are encoded in the event loop: a few milliseconds."""
_UPDATED: Final = 500
"""Documents that one request updates."""
_DELETED: Final = 5000
"""Documents that are found and deleted at a time."""
_CONFLICT: Final = 409
_MISSING: Final = 404
_KEEP: Final = "1m"
_INSIDE: Final = (ID, META)


class Batch(NamedTuple):
    """Documents ready to be written.

    Attributes:
        ids: Their ids.
        sources: Each as JSON.
    """

    ids: list[str]
    sources: list[bytes]


class Change(NamedTuple):
    """What happens to one document.

    Attributes:
        name: Its id; where one is read without it, the engine's.
        action: ``index``, ``create``, ``update`` or ``delete``.
        body: What is written, as JSON.
        seen: The document as it was read, which must not have changed since; None where that does not matter.
    """

    name: str
    action: str
    body: bytes | None = None
    seen: Mapping[str, Any] | None = None

    def lines(self) -> list[bytes]:
        """Return the lines of a bulk request."""
        head: dict[str, Any] = {"_id": document_key(self.name) if self.seen is None else self.seen["_id"]}
        if self.seen is not None:
            head["if_seq_no"] = self.seen["_seq_no"]
            head["if_primary_term"] = self.seen["_primary_term"]
        first = msgspec.json.encode({self.action: head})
        return [first] if self.body is None else [first, self.body]


class Done(NamedTuple):
    """A change that was made, and what the engine says of it."""

    change: Change
    answer: Mapping[str, Any]


def _batch_of(records: Sequence[Record]) -> Script[Batch]:
    """Encode documents, beside the event loop if that takes more than a moment (E3)."""
    size = sum(
        len(record.text or "") + len(record.metadata_json) + 4 * len(record.vector) for record in records
    )
    found = yield from work(sources, records, at_once=size <= _QUICK)
    return Batch([record.id for record in records], found)


# --- bulk requests ----------------------------------------------------------------------------------------


def _send(
    place: Place, changes: Sequence[Change], *, show: bool = True
) -> Script[tuple[list[Done], list[Change]]]:
    """Make changes; return those that were made, and those that met another state than they may.

    Args:
        place: The collection.
        changes: What to do.
        show: Whether searches see it afterwards (S7).

    Raises:
        BackendError: One failed otherwise; some of the others may have been made.
        CollectionNotFoundError: The collection is gone.
    """
    made: list[Done] = []
    refused: list[Change] = []
    parameters = "require_alias=true" + ("&refresh=true" if show else "")
    parts = yield from work(_parts, changes, at_once=len(changes) <= AT_ONCE)
    for part, body in parts:
        answer = yield change_lines(f"/{place.generation}/_bulk?{parameters}", body)
        if not answer["errors"]:
            made += [
                Done(one, next(iter(item.values()))) for one, item in zip(part, answer["items"], strict=True)
            ]
            continue
        failure: EntrepotError | None = None
        for one, item in zip(part, answer["items"], strict=True):
            told = item[one.action]
            if "error" not in told:
                made.append(Done(one, told))
            elif told["status"] == _CONFLICT or _is_missing_document(told):
                refused.append(one)
            elif failure is None:
                failure = answered(told["status"], told, "the server", place.info.name, "unknown")
        if failure is not None:
            raise failure
    return made, refused


def _is_missing_document(told: Mapping[str, Any]) -> bool:
    return bool(told["status"] == _MISSING and told["error"].get("type") == "document_missing_exception")


def _parts(changes: Sequence[Change]) -> list[tuple[list[Change], bytes]]:
    """Return changes in parts that fit a request, each with its body."""
    found: list[tuple[list[Change], bytes]] = []
    part: list[Change] = []
    lines: list[bytes] = []
    size = 0
    for one in changes:
        own = one.lines()
        added = sum(map(len, own))
        if part and size + added > _MOST_BYTES:
            found.append((part, joined(lines)))
            part, lines, size = [], [], 0
        part.append(one)
        lines += own
        size += added
    if part:
        found.append((part, joined(lines)))
    return found


def refresh(place: Place) -> Script[None]:
    """Show searches all that was written before."""
    answer = yield change("POST", f"/{place.generation}/_refresh")
    checked(answer)


# --- writing ----------------------------------------------------------------------------------------------


def write(
    place: Place, records: Sequence[Record], if_exists: IfExists, inside: Normal | None = None
) -> Script[None]:
    """Write whole documents (D2).

    Raises:
        DuplicateIdError: Under ``if_exists="error"`` an id exists; nothing was written.
        OutsideViewError: A stored document lies outside the filter; nothing was written.
    """
    batch = yield from _batch_of(records)
    if inside is not None:
        yield from _write_inside(place, batch, if_exists, inside)
        return
    if if_exists == "error":
        there = yield from stored(place, batch.ids, [ID])
        _refuse_twice(batch, [one["_source"][ID] for one in there])
    action = "index" if if_exists == "replace" else "create"
    made, refused = yield from _send(
        place, [Change(name, action, source) for name, source in zip(batch.ids, batch.sources, strict=True)]
    )
    if refused and if_exists == "error":
        yield from _undo(place, made, {})
        _refuse_twice(batch, [one.name for one in refused])


def _write_inside(place: Place, batch: Batch, if_exists: IfExists, inside: Normal) -> Script[None]:
    """As `write`; each document is written over what was seen to lie inside, or where none was."""
    pending = dict(zip(batch.ids, batch.sources, strict=True))
    done: list[Done] = []
    before: dict[str, Any] = {}
    while pending:
        there = {one["_source"][ID]: one for one in (yield from stored(place, list(pending), None))}
        try:
            refuse_outside(_records(there.values()), inside)
            if if_exists == "error":
                _refuse_twice(batch, list(there))
        except EntrepotError:
            yield from _undo(place, done, before)
            raise
        if if_exists == "skip":
            pending = {name: source for name, source in pending.items() if name not in there}
        before |= there
        made, refused = yield from _send(
            place,
            [
                Change(name, "index" if name in there else "create", source, there.get(name))
                for name, source in pending.items()
            ],
        )
        done += made
        pending = {one.name: pending[one.name] for one in refused}


def _undo(place: Place, done: Sequence[Done], before: Mapping[str, Any]) -> Script[None]:
    """Take changes back, unless someone changed the documents since."""
    changes: list[Change] = []
    for one in done:
        name, old = one.change.name, before.get(one.change.name)
        if one.change.action == "delete":
            if old is not None:
                changes.append(Change(name, "create", msgspec.json.encode(old["_source"])))
        elif old is None:
            changes.append(Change(name, "delete", None, one.answer))
        else:
            changes.append(Change(name, "index", msgspec.json.encode(old["_source"]), one.answer))
    if changes:
        yield from _send(place, changes)


def _refuse_twice(batch: Batch, there: Sequence[str]) -> None:
    if there:
        found = set(there)
        names = [name for name in batch.ids if name in found]
        msg = f"{len(names)} ids exist already, the first is {names[0]!r}"
        raise DuplicateIdError(msg, ids=names, hint="nothing was written; use if_exists='replace' or 'skip'")


def _records(found: Iterable[Mapping[str, Any]]) -> list[StoredRecord]:
    """Return documents with their metadata."""
    return [
        StoredRecord(one["_source"][ID], None, decode_metadata(one["_source"][META].encode()))
        for one in found
    ]


# --- updating ---------------------------------------------------------------------------------------------


def update(  # noqa: PLR0913, PLR0917 - what an update is
    place: Place,
    ids: Sequence[str],
    changes: Mapping[str, Any],
    unset: Sequence[str],
    limits: Limits,
    inside: Normal | None = None,
) -> Script[list[str]]:
    """Change metadata of documents; return the ids there were.

    Raises:
        OutsideViewError: A document would leave the filter; nothing was changed. Those outside are left alone.
        SizeLimitError: A document would exceed a limit (D8); nothing was changed.
    """
    pending = list(dict.fromkeys(ids))
    updated: set[str] = set()
    done: list[Done] = []
    before: dict[str, Any] = {}
    fields = None if inside is not None else [ID, META, TEXT]
    while pending:
        there = {one["_source"][ID]: one for one in (yield from stored(place, pending, fields))}
        try:
            few = len(there) <= AT_ONCE
            if inside is not None:
                stood = yield from work(_records, list(there.values()), at_once=few)
                kept = changed_inside(stood, changes, unset, inside)
                there = {name: one for name, one in there.items() if name in kept}
            wanted = yield from work(_all_updated, there, changes, unset, limits, at_once=few)
        except EntrepotError:
            yield from _undo(place, done if inside is not None else [], before)
            raise
        before |= there
        pending = list[str]()
        for at in range(0, len(wanted), _UPDATED):
            made, refused = yield from _send(place, wanted[at : at + _UPDATED])
            done += made
            updated |= {one.change.name for one in made}
            pending += [one.name for one in refused]
    return [name for name in ids if name in updated]


def _all_updated(
    there: Mapping[str, Any], changes: Mapping[str, Any], unset: Sequence[str], limits: Limits
) -> list[Change]:
    return [_updated(name, one, changes, unset, limits) for name, one in there.items()]


def _updated(
    name: str, there: Mapping[str, Any], changes: Mapping[str, Any], unset: Sequence[str], limits: Limits
) -> Change:
    """Return the change of one document: a part of it, so that its text and vector stay where they are."""
    source = there["_source"]
    metadata = changed(decode_metadata(source[META].encode()), changes, unset)
    encoded = encode_metadata(metadata)
    check_sizes(name, source.get(TEXT), metadata, encoded, limits)
    return Change(name, "update", msgspec.json.encode({"doc": indexed_again(metadata, encoded)}), there)


# --- deleting ---------------------------------------------------------------------------------------------


def delete_ids(place: Place, ids: Sequence[str], inside: Normal | None = None) -> Script[None]:
    """Delete documents by id.

    Raises:
        OutsideViewError: One of them lies outside the filter; nothing was deleted.
    """
    if inside is None:
        yield from _send(place, [Change(name, "delete") for name in ids])
        return
    pending = list(ids)
    done: list[Done] = []
    before: dict[str, Any] = {}
    while pending:
        there = {one["_source"][ID]: one for one in (yield from stored(place, pending, None))}
        try:
            refuse_outside(_records(there.values()), inside)
        except EntrepotError:
            yield from _undo(place, done, before)
            raise
        before |= there
        made, refused = yield from _send(
            place, [Change(name, "delete", None, one) for name, one in there.items()]
        )
        done += made
        pending = [one.name for one in refused]


def delete_matching(place: Place, query: Query) -> Script[None]:
    """Delete what matched at the start and has not changed since (D7)."""
    if finds_nothing(query):
        return
    yield from refresh(place)
    opened = yield _opening(place)
    point = opened["id"]
    try:
        yield from _delete_point(place, query, point)
    except EntrepotError:
        yield from _close_point(point)
        raise
    yield from _close_point(point)
    yield from refresh(place)


def _opening(place: Place) -> Any:
    """Return the request for a point in time: what is read there is what was there when it was opened."""
    return read(f"/{place.generation}/_pit?keep_alive={_KEEP}", {})


def _delete_point(place: Place, query: Query, point: str) -> Script[None]:
    body: dict[str, Any] = {
        "query": clause(query) or {"match_all": {}},
        "size": _DELETED,
        "sort": [{"_shard_doc": "asc"}],
        "_source": False,
        "seq_no_primary_term": True,
        "track_total_hits": False,
    }
    while True:
        body["pit"] = {"id": point, "keep_alive": _KEEP}
        answer = yield read("/_search?allow_partial_search_results=false", body)
        found = checked(answer)["hits"]["hits"]
        gone = [Change(one["_id"], "delete", None, one) for one in found]
        yield from _send(place, gone, show=False)
        if len(found) < _DELETED:
            return
        point = answer.get("pit_id", point)
        body["search_after"] = found[-1]["sort"]


def _close_point(point: str) -> Script[None]:
    try:
        yield change("DELETE", "/_pit", {"id": point})
    except BackendError:  # it ends by itself
        return


def delete_unchanged(place: Place, records: Sequence[StoredRecord]) -> Script[None]:
    """Delete documents whose metadata are still what was read (D7)."""
    names = [record.id for record in records]
    there = {one["_source"][ID]: one for one in (yield from stored(place, names, _INSIDE))}
    same = unchanged(records, _records(there.values()))
    if same:
        yield from _send(place, [Change(name, "delete", None, there[name]) for name in same])
