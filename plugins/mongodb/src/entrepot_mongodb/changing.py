"""What changes documents. Scripts.

Every write has a name of its own (`entrepot_mongodb.fields.new_version`), which the documents it makes carry. What depends on
a stored document names the write that was read in it, which the engine compares when it replaces, changes or deletes: so
each document is checked and written in one step, and one that is refused is never seen. What is to be refused is found out
before anything is sent; only another writer in between can have a part of a call refused whose other documents are
written, and then the error's outcome is "unknown".

One step is one document: readers may see a part of a call's documents before the others.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import bson
from bson.raw_bson import RawBSONDocument
from pymongo import DeleteMany, DeleteOne, InsertOne, ReplaceOne, UpdateOne

from entrepot.drafts import check_sizes
from entrepot.errors import DuplicateIdError, EntrepotError, OperationTimeoutError
from entrepot.filters import TRUE
from entrepot.guards import changed, changed_inside, refuse_outside
from entrepot.metadata import decode_metadata, encode_metadata
from entrepot.records import StoredRecord, unchanged
from entrepot.scripted import encode, work
from entrepot_mongodb import indexes
from entrepot_mongodb.catalog import landed, still_there
from entrepot_mongodb.commands import Find, Open, Take, bulk, delete
from entrepot_mongodb.faults import DuplicateKeyError
from entrepot_mongodb.fields import ID, META, VERSION, documents, indexed_again, new_version
from entrepot_mongodb.reading import AT_ONCE, PIECE, clauses, finds_nothing, pieces, stored

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Mapping, Sequence

    from entrepot.capabilities import Limits
    from entrepot.filters import Normal
    from entrepot.records import IfExists, Query, Record
    from entrepot_mongodb.catalog import Place
    from entrepot_mongodb.commands import Script

_NEVER: Final = ""
"""A name that no write has: where a document is to be made, none may be there."""
_INSIDE: Final = {VERSION: 1, META: 1}
_SEEN: Final = {VERSION: 1}
_TOGETHER: Final = 5000
"""Documents that are found, and deleted, at a time."""


class Batch(NamedTuple):
    """Documents ready to be written.

    Attributes:
        documents: Each encoded, by its id.
        version: The name of the write.
    """

    documents: dict[str, RawBSONDocument]
    version: str


class Written(NamedTuple):
    """A write that searches may not see yet."""

    version: str


def _batch_of(place: Place, records: Sequence[Record]) -> Script[Batch]:
    version = new_version()

    def encoded(records: Sequence[Record]) -> list[RawBSONDocument]:
        return documents(records, version, as_vector=place.as_vector)

    found = yield from encode(encoded, records)
    return Batch({record.id: one for record, one in zip(records, found, strict=True)}, version)


# --- writing ----------------------------------------------------------------------------------------------


def write(
    place: Place, records: Sequence[Record], if_exists: IfExists, inside: Normal = TRUE
) -> Script[Written | None]:
    """Write whole documents (D2); return what searches have to see, if they may see it later.

    Raises:
        DuplicateIdError: Under ``if_exists="error"`` an id exists; none of these was written. Nothing was,
            unless the outcome is unknown, as another writer came in between.
        OutsideViewError: A stored document lies outside the filter; as above.
    """
    batch = yield from _batch_of(place, records)
    if inside is not TRUE:
        yield from _write_inside(place, batch, if_exists, inside)
    elif if_exists == "replace":
        yield from _replace(place, batch)
    else:
        if if_exists == "error":
            there = yield from stored(place, list(batch.documents), {ID: 1})
            _refuse_twice(batch, [one[ID] for one in there])
        refused = yield from _try(place, [InsertOne(document) for document in batch.documents.values()])
        if if_exists == "error":
            with _midway(began=len(refused) < len(batch.documents)):
                names = list(batch.documents)
                _refuse_twice(batch, [names[row] for row in refused])
    yield from landed(place)
    return Written(batch.version) if place.ann else None


def _try(place: Place, operations: Sequence[Any]) -> Script[tuple[int, ...]]:
    """Carry out operations; return the places of those that found a document where none may be."""
    if not operations:
        return ()
    try:
        yield bulk(place.name, operations)
    except DuplicateKeyError as error:
        return error.rows
    return ()


def _replace(place: Place, batch: Batch) -> Script[None]:
    pending = list(batch.documents.items())
    while pending:
        # Of two that make one document at once the engine refuses one, which then finds it.
        refused = yield from _try(
            place, [ReplaceOne({ID: name}, document, upsert=True) for name, document in pending]
        )
        pending = [pending[row] for row in refused]


def _write_inside(place: Place, batch: Batch, if_exists: IfExists, inside: Normal) -> Script[None]:
    """As `write`; each document is written over what was seen to lie inside, or where none was."""
    pending = dict(batch.documents)
    began = False
    while pending:
        there = {one[ID]: one for one in (yield from stored(place, list(pending), _INSIDE))}
        # What is there already of this write is no other writer's: an answer was lost, and the driver asked again.
        there = {name: one for name, one in there.items() if one[VERSION] != batch.version}
        with _midway(began=began):
            yield from _refuse_outside(there, inside)
            if if_exists == "error":
                _refuse_twice(batch, list(there))
        if if_exists == "skip":
            pending = {name: document for name, document in pending.items() if name not in there}
        # In one step: the document that was seen is replaced, or one is made where there is none.
        refused = yield from _try(
            place,
            [
                ReplaceOne(
                    {ID: name, VERSION: there[name][VERSION] if name in there else _NEVER},
                    document,
                    upsert=True,
                )
                for name, document in pending.items()
            ],
        )
        began = began or len(refused) < len(pending)
        names = list(pending)
        again = [names[row] for row in refused]
        if again:
            ours = yield from _made_by(place, again, batch.version)
            again = [name for name in again if name not in ours]
        pending = {name: pending[name] for name in again}


def _made_by(place: Place, ids: Sequence[str], version: str) -> Script[set[str]]:
    """Return which documents a write made."""
    found = yield from stored(place, ids, {ID: 1}, {VERSION: version})
    return {one[ID] for one in found}


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
        names = [name for name in batch.documents if name in found]
        msg = f"{len(names)} ids exist already, the first is {names[0]!r}"
        raise DuplicateIdError(msg, ids=names, hint="nothing was written; use if_exists='replace' or 'skip'")


def _records(found: Iterable[Mapping[str, Any]]) -> list[StoredRecord]:
    """Return documents with their metadata."""
    return [StoredRecord(one[ID], None, decode_metadata(one["d"]["j"].encode())) for one in found]


# --- updating ---------------------------------------------------------------------------------------------


def update(  # noqa: PLR0913, PLR0917 - what an update is
    place: Place,
    ids: Sequence[str],
    changes: Mapping[str, Any],
    unset: Sequence[str],
    limits: Limits,
    timeout: float,
    inside: Normal = TRUE,
) -> Script[list[str]]:
    """Change metadata of documents; return the ids there were.

    Raises:
        OutsideViewError: A document would leave the filter. Nothing was changed, unless the outcome is unknown,
            as another writer came in between. Those outside are left alone.
        SizeLimitError: A document would exceed a limit (D8); as above.
    """
    pending = list(dict.fromkeys(ids))
    version = new_version()
    updated: set[str] = set()
    while pending:
        there = {one[ID]: one for one in (yield from stored(place, pending, _INSIDE))}
        few = len(there) <= AT_ONCE
        with _midway(began=bool(updated)):
            if inside is not TRUE:
                stood = yield from work(_records, list(there.values()), at_once=few)
                kept = changed_inside(stood, changes, unset, inside)
                there = {name: one for name, one in there.items() if name in kept}
            wanted = yield from work(_all_updated, there, changes, unset, limits, version, at_once=few)
        names = list(there)
        pending = list[str]()
        for at in range(0, len(names), PIECE):
            part = names[at : at + PIECE]
            told = yield bulk(place.name, wanted[at : at + PIECE])
            made = set(part)
            if told.matched_count < len(part):  # others came between
                made = yield from _made_by(place, part, version)
            updated |= made
            pending += [name for name in part if name not in made]
    if updated:
        yield from landed(place)
    else:
        yield from still_there(place)
    if updated and place.ann:
        yield from indexes.visible(place.name, place.info, version, timeout)
    return [name for name in ids if name in updated]


def _all_updated(
    there: Mapping[str, Any],
    changes: Mapping[str, Any],
    unset: Sequence[str],
    limits: Limits,
    version: str,
) -> list[UpdateOne]:
    return [_updated(name, one, changes, unset, limits, version) for name, one in there.items()]


def _updated(  # noqa: PLR0913, PLR0917 - as above
    name: str,
    there: Mapping[str, Any],
    changes: Mapping[str, Any],
    unset: Sequence[str],
    limits: Limits,
    version: str,
) -> UpdateOne:
    """Return the change of one document: a part of it, so that its text and vector stay where they are."""
    metadata = changed(decode_metadata(there["d"]["j"].encode()), changes, unset)
    encoded = encode_metadata(metadata)
    check_sizes(name, None, metadata, encoded, limits)
    # Encoded here, as this may be beside the event loop (E3).
    fields = RawBSONDocument(bson.encode(indexed_again(metadata, encoded, version)))
    return UpdateOne({ID: name, VERSION: there[VERSION]}, {"$set": fields})


# --- deleting ---------------------------------------------------------------------------------------------


def delete_ids(place: Place, ids: Sequence[str], inside: Normal = TRUE) -> Script[None]:
    """Delete documents by id.

    Raises:
        OutsideViewError: One of them lies outside the filter. Nothing was deleted, unless the outcome is unknown,
            as another writer came in between.
    """
    if inside is TRUE:
        for piece in pieces(ids):
            yield delete(place.name, {ID: {"$in": piece}})
        yield from still_there(place)
        return
    pending = list(ids)
    began = False
    while pending:
        there = {one[ID]: one for one in (yield from stored(place, pending, _INSIDE))}
        with _midway(began=began):
            yield from _refuse_outside(there, inside)
        gone = 0
        if there:
            gone = yield from _delete_seen(place, _by_version(there.values()))
        if gone == len(there):
            break
        began = began or bool(gone)
        pending = list(there)
    yield from still_there(place)


def _by_version(seen: Iterable[Mapping[str, Any]]) -> dict[str, list[str]]:
    """Return the ids of documents by the write that made them what they are."""
    found: dict[str, list[str]] = {}
    for one in seen:
        found.setdefault(one[VERSION], []).append(one[ID])
    return found


def _delete_seen(place: Place, seen: Mapping[str, Sequence[str]]) -> Script[int]:
    """Delete documents that are still as they were seen, by the write that made them; return how many were."""
    gone = 0
    operations: list[Any] = []
    size = 0
    for version, ids in seen.items():
        for piece in pieces(ids, _TOGETHER):
            one = {ID: piece[0]} if len(piece) == 1 else {ID: {"$in": piece}}
            kind = DeleteOne if len(piece) == 1 else DeleteMany
            operations.append(kind({**one, VERSION: version}))
            size += len(piece)
            if size >= _TOGETHER:
                gone += (yield bulk(place.name, operations)).deleted_count
                operations, size = [], 0
    if operations:
        gone += (yield bulk(place.name, operations)).deleted_count
    return gone


def delete_matching(place: Place, query: Query) -> Script[None]:
    """Delete what matched at the start and has not changed since (D7).

    Raises:
        OperationTimeoutError: The exchange had not the time for all of it; what was deleted stays so.
    """
    if finds_nothing(query):
        return
    # All are found before any is deleted: what comes to match meanwhile is none of them.
    found: dict[str, list[str]] = {}
    for clause in clauses(query):
        cursor = yield Open(Find(place.name, clause, _SEEN, batch=_TOGETHER))
        while part := (yield Take(cursor, _TOGETHER)):
            for version, ids in _by_version(part).items():
                found.setdefault(version, []).extend(ids)
    try:
        yield from _delete_seen(place, found)
    except OperationTimeoutError as error:
        error.hint = (
            "deleting again goes on with the rest; for more at a time open the store with a longer timeout"
        )
        raise
    yield from still_there(place)


def delete_unchanged(place: Place, records: Sequence[StoredRecord]) -> Script[None]:
    """Delete documents whose metadata are still what was read (D7)."""
    for at in range(0, len(records), PIECE):
        part = records[at : at + PIECE]
        found = yield from stored(place, [record.id for record in part], _INSIDE)
        gone = yield from work(_unchanged, part, found, at_once=len(found) <= AT_ONCE)
        if gone:
            yield from _delete_seen(place, _by_version(gone))
    yield from still_there(place)


def _unchanged(
    records: Sequence[StoredRecord], found: Sequence[Mapping[str, Any]]
) -> list[Mapping[str, Any]]:
    there = {one[ID]: one for one in found}
    return [there[name] for name in unchanged(records, _records(found))]
