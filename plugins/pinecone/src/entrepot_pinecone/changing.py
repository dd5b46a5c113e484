"""What changes documents. Scripts.

The engine has no conditional writes: what depends on a stored document reads it first (``checked``). What was written may be
read later: so a write is waited for, by its place in the index's log where the server tells it, else until the mark that every
record carries is read (S7).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

import msgspec

from entrepot.drafts import check_sizes
from entrepot.errors import (
    CollectionNotFoundError,
    DuplicateIdError,
    NotYetVisibleError,
    OperationTimeoutError,
)
from entrepot.filters import TRUE
from entrepot.guards import changed
from entrepot.metadata import encode_metadata
from entrepot.records import unchanged
from entrepot.scripted import encode, work
from entrepot_pinecone.catalog import named, still_there
from entrepot_pinecone.commands import Answer, Pause, ask, change
from entrepot_pinecone.fields import (
    TEXT,
    document_metadata,
    metadata_of,
    name_of,
    new_version,
    vector,
    vectors,
    version_of,
)
from entrepot_pinecone.names import record_id
from entrepot_pinecone.reading import (
    AT_ONCE,
    PIECE,
    among,
    finds_nothing,
    listed,
    matching,
    records_of,
    stored,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from entrepot.capabilities import Limits
    from entrepot.records import IfExists, Query, Record, StoredRecord
    from entrepot_pinecone.catalog import Place
    from entrepot_pinecone.commands import Script
    from entrepot_pinecone.reading import Found

_MOST_BYTES: Final = 1_800_000
"""Bytes of records in a request, which has 2 MB at most."""
_MOST_RECORDS: Final = 1000
_PAUSES: Final = (0.0, 0.02, 0.05, 0.1, 0.2, 0.4)
"""Seconds before something is looked for again; the last from then on."""
_LATE: Final = 8
"""How often a record is looked for that queries must see by now."""


class Written(NamedTuple):
    """A write that reads and searches may not see yet.

    Attributes:
        id: The engine's id of the last record.
        before: The mark that it had before; None if it was not there.
        deleted: Whether it was deleted.
        place: Its place in the index's log, if the server told it.
    """

    id: str
    before: str | None
    deleted: bool = False
    place: int | None = None


# --- writing ----------------------------------------------------------------------------------------------


def write(place: Place, records: Sequence[Record], if_exists: IfExists) -> Script[Written | None]:
    """Write whole documents (D2); return what searches have to see.

    Raises:
        DuplicateIdError: Under ``if_exists="error"`` an id exists; nothing was written.
    """
    version = new_version()
    encoded = yield from encode(vectors, records, version)
    pending = {record_id(record.id): one for record, one in zip(records, encoded, strict=True)}
    yield from still_there(place)
    there = yield from stored(place, [next(reversed(pending))] if if_exists == "replace" else pending)
    if if_exists != "replace":
        if there and if_exists == "error":
            found = {name_of(one) for one in there}
            names = [record.id for record in records if record.id in found]
            msg = f"{len(names)} ids exist already, the first is {names[0]!r}"
            raise DuplicateIdError(
                msg, ids=names, hint="nothing was written; use if_exists='replace' or 'skip'"
            )
        for one in there:
            pending.pop(str(one["id"]), None)
        there = []
    return (yield from _upsert(place, pending, there))


def _upsert(place: Place, pending: Mapping[str, bytes], there: Sequence[Found]) -> Script[Written | None]:
    """Write records in requests that the engine takes; `there` has the last one as it was read before."""
    marks = {str(one["id"]): version_of(one) for one in there}
    told: Written | None = None
    part: list[bytes] = []
    names = list(pending)
    size = 0
    for number, name in enumerate(names):
        one = pending[name]
        part.append(one)
        size += len(one) + 1
        following = len(pending[names[number + 1]]) if number + 1 < len(names) else _MOST_BYTES
        if size + following > _MOST_BYTES or len(part) >= _MOST_RECORDS:
            answer = yield change(place.host, "POST", "/vectors/upsert", _body(place, part))
            told = Written(name, marks.get(name), place=cast("Answer", answer).committed)
            part, size = [], 0
    return told


def _body(place: Place, part: Sequence[bytes]) -> bytes:
    tail = b"]}"
    if place.namespace:
        tail = b'],"namespace":' + msgspec.json.encode(place.namespace) + b"}"
    return b'{"vectors":[' + b",".join(part) + tail


# --- waiting ----------------------------------------------------------------------------------------------


def visible(place: Place, written: Written) -> Script[None]:
    """Wait until searches see a write, and reading by id does.

    Where the server tells positions of its log, a query must have come to the write's, which settles the matter for
    searches; reading by id may then lag a little, or show what another writer did since.

    Raises:
        NotYetVisibleError: They do not within the timeout.
    """
    tries = 0
    reached: bool | None = False
    try:
        while True:
            if reached is False:
                reached = yield from _reached(place, written)
            if reached is not False and (yield from _shown(place, written)):
                return
            if reached and tries >= _LATE:
                return
            yield Pause(_PAUSES[min(tries, len(_PAUSES) - 1)])
            tries += 1
    except OperationTimeoutError as error:
        if not tries:
            raise
        msg = f"collection {place.info.name!r} was written, and the index does not show it yet"
        raise NotYetVisibleError(msg) from error


def _reached(place: Place, written: Written) -> Script[bool | None]:
    """Return whether queries have come to a write in the log; None if the server does not tell."""
    if written.place is None:
        return None
    body: dict[str, Any] = {
        "vector": [1.0] + [0.0] * (place.info.dimension - 1),
        "topK": 1,
        "includeMetadata": False,
        "includeValues": False,
    }
    answer = cast("Answer", (yield ask(place.host, "/query", named(place.namespace, body))))
    return None if answer.indexed is None else answer.indexed >= written.place


def _shown(place: Place, written: Written) -> Script[bool]:
    """Return whether the last record of a write is read as it was left, or as a later write left it."""
    found = yield from stored(place, [written.id])
    if not found:
        return written.deleted
    return version_of(found[0]) != written.before


# --- updating ---------------------------------------------------------------------------------------------


def update(
    place: Place,
    ids: Sequence[str],
    changes: Mapping[str, Any],
    unset: Sequence[str],
    limits: Limits,
) -> Script[list[str]]:
    """Change metadata of documents; return the ids there were.

    The engine's own update merges fields and removes none: so whole records are written anew, with their vectors.

    Raises:
        SizeLimitError: A document would exceed a limit (D8); nothing was changed.
    """
    yield from still_there(place)
    there = yield from stored(place, map(record_id, ids))
    version = new_version()
    wanted = yield from work(_updated, there, changes, unset, limits, version, at_once=len(there) <= AT_ONCE)
    written = yield from _upsert(place, wanted, there)
    if written is not None:
        yield from visible(place, written)
    known = {name_of(one) for one in there}
    return [name for name in ids if name in known]


def _updated(
    there: Sequence[Found],
    changes: Mapping[str, Any],
    unset: Sequence[str],
    limits: Limits,
    version: str,
) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for one in there:
        name = name_of(one)
        text = cast("str | None", metadata_of(one).get(TEXT))
        metadata = changed(document_metadata(one), changes, unset)
        encoded = encode_metadata(metadata)
        check_sizes(name, text, metadata, encoded, limits)
        found[str(one["id"])] = vector(name, text, metadata, encoded.decode(), one["values"], version)
    return found


# --- deleting ---------------------------------------------------------------------------------------------


def delete_ids(place: Place, ids: Sequence[str]) -> Script[None]:
    """Delete documents by id."""
    yield from still_there(place)
    yield from _delete(place, [record_id(name) for name in dict.fromkeys(ids)])


def _delete(place: Place, names: Sequence[str]) -> Script[None]:
    """Delete records by the engine's ids, and wait until the last that was there is gone."""
    for at in range(0, len(names), _MOST_RECORDS):
        part = names[at : at + _MOST_RECORDS]
        there = yield from stored(place, part[-1:])
        try:
            answer = yield change(
                place.host, "POST", "/vectors/delete", named(place.namespace, {"ids": list(part)})
            )
        except CollectionNotFoundError:  # a namespace without records is none
            yield from still_there(place)
            return
        committed = cast("Answer", answer).committed
        if there or committed is not None:
            before = version_of(there[0]) if there else None
            yield from visible(place, Written(part[-1], before, deleted=True, place=committed))


def delete_matching(place: Place, query: Query) -> Script[None]:
    """Delete what matched at the start and has not changed since (D7).

    Raises:
        OperationTimeoutError: The exchange had not the time for all of it; what was deleted stays so.
    """
    if finds_nothing(query):
        return
    yield from still_there(place)
    try:
        if query.ids is None and query.filter is TRUE:
            yield from _delete_all(place)
        else:
            yield from _delete_seen(place, (yield from _seen(place, query)))
    except OperationTimeoutError as error:
        error.hint = (
            "deleting again goes on with the rest; for more at a time open the store with a longer timeout"
        )
        raise


def _delete_all(place: Place) -> Script[None]:
    try:
        yield change(place.host, "POST", "/vectors/delete", named(place.namespace, {"deleteAll": True}))
    except CollectionNotFoundError:  # a namespace without records is none
        yield from still_there(place)
        return
    tries = 0
    while (yield from listed(place, 1, None))[0]:
        yield Pause(_PAUSES[min(tries, len(_PAUSES) - 1)])
        tries += 1


def _seen(place: Place, query: Query) -> Script[dict[str, str]]:
    """Return the marks of all records that match, by the engine's id: all are found before any is deleted."""
    if query.ids is not None:
        found = yield from among(place, query, query.ids)
        return {str(one["id"]): version_of(one) for one in found}
    seen: dict[str, str] = {}
    last: str | None = None
    while True:
        names, last = yield from listed(place, PIECE, last)
        for one in (yield from matching(query, (yield from stored(place, names)))):
            seen[str(one["id"])] = version_of(one)
        if last is None:
            return seen


def _delete_seen(place: Place, seen: Mapping[str, str]) -> Script[None]:
    """Delete records that still have the mark with which they were seen."""
    names = list(seen)
    for at in range(0, len(names), _MOST_RECORDS):
        found = yield from stored(place, names[at : at + _MOST_RECORDS])
        same = [str(one["id"]) for one in found if version_of(one) == seen[str(one["id"])]]
        if same:
            yield from _delete(place, same)


def delete_unchanged(place: Place, records: Sequence[StoredRecord]) -> Script[None]:
    """Delete documents whose metadata are still what was read (D7)."""
    yield from still_there(place)
    for at in range(0, len(records), _MOST_RECORDS):
        part = records[at : at + _MOST_RECORDS]
        found = yield from stored(place, [record_id(record.id) for record in part])
        now = yield from records_of(place, found, ("metadata",))
        same = yield from work(unchanged, part, now, at_once=len(part) <= AT_ONCE)
        if same:
            yield from _delete(place, [record_id(name) for name in same])
