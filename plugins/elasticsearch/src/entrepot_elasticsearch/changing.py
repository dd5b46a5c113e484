"""What changes documents. Scripts.

Every document of a bulk request answers for itself, and every answer is read. What depends on a stored document names
the sequence number that was read with it, which the engine compares when it writes: so each document is checked and
written in one step, and one that is refused is never seen. What is to be refused is found out before anything is sent;
only another writer in between can have a part of a call refused whose other documents are written, and then the
error's outcome is "unknown".

Searches see a write after the index was refreshed, so a bulk request ends with a refresh (S7). ``refresh=wait_for``
would wait for the index's own interval, which there is none of: it could show a part of a request. And graphs of
vectors are made when an index is refreshed: many small ones sooner than a large one.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from entrepot.drafts import check_sizes
from entrepot.errors import DuplicateIdError, EntrepotError, OperationTimeoutError
from entrepot.filters import TRUE
from entrepot.guards import changed, changed_inside, refuse_outside
from entrepot.metadata import decode_metadata, encode_metadata
from entrepot.records import StoredRecord, unchanged
from entrepot.scripted import encode, work
from entrepot_elasticsearch.commands import Call, change_lines, joined, read
from entrepot_elasticsearch.faults import answered
from entrepot_elasticsearch.fields import ID, META, indexed_again, sources
from entrepot_elasticsearch.names import document_key
from entrepot_elasticsearch.reading import (
    AT_ONCE,
    KEEP,
    PIECE,
    at_a_point,
    checked,
    clause,
    finds_nothing,
    stored,
)

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Mapping, Sequence

    from entrepot.capabilities import Limits
    from entrepot.filters import Normal
    from entrepot.records import IfExists, Query, Record
    from entrepot_elasticsearch.catalog import Place
    from entrepot_elasticsearch.commands import Script

_MOST_BYTES: Final = 8 * 1024 * 1024
"""About how many bytes one request has; a server takes 100 MB unless it is told otherwise."""
_UPDATED: Final = 500
"""Documents that one request updates."""
_DELETED: Final = 5000
"""Documents that are found and deleted at a time."""
_CONFLICT: Final = 409
_REFUSED: Final = frozenset({400, 401, 403, 404, 413, 429})
"""Statuses of a document that the server did not begin to write."""
_MISSING: Final = 404
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


def _batch_of(records: Sequence[Record]) -> Script[Batch]:
    found = yield from encode(sources, records)
    return Batch([record.id for record in records], found)


# --- bulk requests ----------------------------------------------------------------------------------------


def _send(
    place: Place, changes: Sequence[Change], *, began: bool = False
) -> Script[tuple[list[str], list[str]]]:
    """Make changes; return the names of those that were made, and of those that met another state than they may.

    Args:
        place: The collection.
        changes: What to do.
        began: Whether the same call made others before.

    Raises:
        BackendError: One failed otherwise. The outcome is unknown if others were made.
        CollectionNotFoundError: The collection is gone.
    """
    made: list[str] = []
    refused: list[str] = []
    parts = yield from work(_parts, changes, at_once=len(changes) <= AT_ONCE)
    for part, body in parts:
        answer = yield change_lines(f"/{place.generation}/_bulk?require_alias=true&refresh=true", body)
        if not answer["errors"]:
            made += [one.name for one in part]
            continue
        failures: list[Mapping[str, Any]] = []
        for one, item in zip(part, answer["items"], strict=True):
            told = item[one.action]
            if "error" not in told:
                made.append(one.name)
            elif told["status"] == _CONFLICT or _is_missing_document(told):
                refused.append(one.name)
            else:
                failures.append(told)
        if failures:
            raise _failed(place, failures, began=began or bool(made))
    return made, refused


def _failed(place: Place, failures: Sequence[Mapping[str, Any]], *, began: bool) -> EntrepotError:
    """Return the error for documents that were not written; one that no second try mends goes first."""
    errors = [
        answered(told["status"], told, "the server", place.info.name, "not_done" if told["status"] in _REFUSED else "unknown")
        for told in failures
    ]  # fmt: skip
    error = next((one for one in errors if not one.retryable), errors[0])
    if began or any(one.outcome == "unknown" for one in errors):
        error.outcome = "unknown"
    return error


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
    answer = yield Call("POST", f"/{place.generation}/_refresh")  # changes no document
    checked(answer)


# --- writing ----------------------------------------------------------------------------------------------


def write(
    place: Place, records: Sequence[Record], if_exists: IfExists, inside: Normal = TRUE
) -> Script[None]:
    """Write whole documents (D2).

    Raises:
        DuplicateIdError: Under ``if_exists="error"`` an id exists; none of these was written. Nothing was,
            unless the outcome is unknown, as another writer came in between.
        OutsideViewError: A stored document lies outside the filter; as above.
    """
    batch = yield from _batch_of(records)
    if inside is not TRUE:
        yield from _write_inside(place, batch, if_exists, inside)
        return
    if if_exists == "error":
        there = yield from stored(place, batch.ids, [ID])
        _refuse_twice(batch, [one["_source"][ID] for one in there])
    action = "index" if if_exists == "replace" else "create"
    made, refused = yield from _send(
        place, [Change(name, action, source) for name, source in zip(batch.ids, batch.sources, strict=True)]
    )
    if if_exists == "error":
        with _midway(began=bool(made)):
            _refuse_twice(batch, refused)


def _write_inside(place: Place, batch: Batch, if_exists: IfExists, inside: Normal) -> Script[None]:
    """As `write`; each document is written over what was seen to lie inside, or where none was."""
    pending = dict(zip(batch.ids, batch.sources, strict=True))
    began = False
    while pending:
        there = {one["_source"][ID]: one for one in (yield from stored(place, list(pending), _INSIDE))}
        with _midway(began=began):
            yield from _refuse_outside(there, inside)
            if if_exists == "error":
                _refuse_twice(batch, list(there))
        if if_exists == "skip":
            pending = {name: source for name, source in pending.items() if name not in there}
        made, refused = yield from _send(
            place,
            [
                Change(name, "index" if name in there else "create", source, there.get(name))
                for name, source in pending.items()
            ],
            began=began,
        )
        began = began or bool(made)
        pending = {name: pending[name] for name in refused}


def _refuse_outside(there: Mapping[str, Any], inside: Normal) -> Script[None]:
    def refuse() -> None:
        refuse_outside(_records(there.values()), inside)

    yield from work(refuse, at_once=len(there) <= AT_ONCE)


@contextmanager
def _midway(*, began: bool) -> Generator[None]:
    """Let what is refused say that other documents of the same call were changed before, if some were (E4)."""
    try:
        yield
    except EntrepotError as error:
        if began:
            error.outcome = "unknown"
            error.hint = "another writer came in between, and other documents of the call were changed before; read them"
        raise


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
    inside: Normal = TRUE,
) -> Script[list[str]]:
    """Change metadata of documents; return the ids there were.

    Raises:
        OutsideViewError: A document would leave the filter. Nothing was changed, unless the outcome is unknown,
            as another writer came in between. Those outside are left alone.
        SizeLimitError: A document would exceed a limit (D8); as above.
    """
    pending = list(dict.fromkeys(ids))
    updated: set[str] = set()
    while pending:
        there = {one["_source"][ID]: one for one in (yield from stored(place, pending, _INSIDE))}
        few = len(there) <= AT_ONCE
        with _midway(began=bool(updated)):
            if inside is not TRUE:
                stood = yield from work(_records, list(there.values()), at_once=few)
                kept = changed_inside(stood, changes, unset, inside)
                there = {name: one for name, one in there.items() if name in kept}
            wanted = yield from work(_all_updated, there, changes, unset, limits, at_once=few)
        pending = list[str]()
        for at in range(0, len(wanted), _UPDATED):
            made, refused = yield from _send(place, wanted[at : at + _UPDATED], began=bool(updated))
            updated.update(made)
            pending += refused
    return [name for name in ids if name in updated]


def _all_updated(
    there: Mapping[str, Any], changes: Mapping[str, Any], unset: Sequence[str], limits: Limits
) -> list[Change]:
    return [_updated(name, one, changes, unset, limits) for name, one in there.items()]


def _updated(
    name: str, there: Mapping[str, Any], changes: Mapping[str, Any], unset: Sequence[str], limits: Limits
) -> Change:
    """Return the change of one document: a part of it, so that its text and vector stay where they are."""
    metadata = changed(decode_metadata(there["_source"][META].encode()), changes, unset)
    encoded = encode_metadata(metadata)
    check_sizes(name, None, metadata, encoded, limits)
    return Change(name, "update", msgspec.json.encode({"doc": indexed_again(metadata, encoded)}), there)


# --- deleting ---------------------------------------------------------------------------------------------


def delete_ids(place: Place, ids: Sequence[str], inside: Normal = TRUE) -> Script[None]:
    """Delete documents by id.

    Raises:
        OutsideViewError: One of them lies outside the filter. Nothing was deleted, unless the outcome is unknown,
            as another writer came in between.
    """
    if inside is TRUE:
        yield from _send(place, [Change(name, "delete") for name in ids])
        return
    pending = list(ids)
    began = False
    while pending:
        there = {one["_source"][ID]: one for one in (yield from stored(place, pending, _INSIDE))}
        with _midway(began=began):
            yield from _refuse_outside(there, inside)
        made, pending = yield from _send(
            place, [Change(name, "delete", None, one) for name, one in there.items()], began=began
        )
        began = began or bool(made)


def delete_matching(place: Place, query: Query) -> Script[None]:
    """Delete what matched at the start and has not changed since (D7).

    Raises:
        OperationTimeoutError: The exchange had not the time for all of it; what was deleted stays so.
    """
    if finds_nothing(query):
        return
    yield from refresh(place)
    try:
        yield from at_a_point(place, lambda point: _delete_point(place, query, point))
    except OperationTimeoutError as error:
        error.hint = (
            "deleting again goes on with the rest; for more at a time open the store with a longer timeout"
        )
        raise


def _delete_point(place: Place, query: Query, point: str) -> Script[None]:
    body: dict[str, Any] = {
        "pit": {"id": point, "keep_alive": KEEP},
        "query": clause(query) or {"match_all": {}},
        "size": _DELETED,
        "sort": [{"_shard_doc": "asc"}],
        "_source": False,
        "seq_no_primary_term": True,
        "track_total_hits": False,
    }
    while True:
        answer = yield read("/_search?allow_partial_search_results=false", body)
        found = checked(answer)["hits"]["hits"]
        gone = [Change(one["_id"], "delete", None, one) for one in found]
        yield from _send(place, gone)
        if len(found) < _DELETED:
            return
        body["search_after"] = found[-1]["sort"]


def delete_unchanged(place: Place, records: Sequence[StoredRecord]) -> Script[None]:
    """Delete documents whose metadata are still what was read (D7)."""
    for at in range(0, len(records), PIECE):
        part = records[at : at + PIECE]
        found = yield from stored(place, [record.id for record in part], _INSIDE)
        gone = yield from work(_unchanged, part, found, at_once=len(found) <= AT_ONCE)
        yield from _send(place, gone)


def _unchanged(records: Sequence[StoredRecord], found: Sequence[Mapping[str, Any]]) -> list[Change]:
    there = {one["_source"][ID]: one for one in found}
    return [Change(name, "delete", None, there[name]) for name in unchanged(records, _records(found))]
