# ruff: noqa: S608 - names come from `names.quoted`, columns from this package; every value is bound
"""What changes documents. Scripts.

Every write is conditional, so that Paxos orders all writes of a document: two plain writes of one microsecond would leave
the text of one and the metadata of the other. A write that stands alone asks for a version that no document has
(``IF ver != a new UUID``), which always holds; one that depends on what is stored names the version that was read. Plain
and conditional writes of one row must never be mixed.

Each write has a version of its own, which makes it safe to repeat: where an answer was lost, the second try either writes,
or meets the version of the first. So a broken connection does not end a batch. What is to be refused is found out before
anything is sent; only another writer in between can have a part of a call refused whose other documents are written, and
then the error's outcome is "unknown".
"""

from __future__ import annotations

import random
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from uuid import UUID, uuid4

from entrepot.drafts import check_sizes
from entrepot.errors import DuplicateIdError, EntrepotError, OperationTimeoutError
from entrepot.filters import TRUE
from entrepot.guards import changed, changed_inside, refuse_outside
from entrepot.metadata import decode_metadata, encode_metadata
from entrepot.records import StoredRecord, unchanged
from entrepot.scripted import encode, work
from entrepot_cassandra.catalog import claim
from entrepot_cassandra.commands import Ask, Pause, Together, change
from entrepot_cassandra.fields import Row, indexed, indexed_columns, new_keys, rows_of
from entrepot_cassandra.reading import AT_ONCE, MANY, merged, position, stored, ways_of, within

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Mapping, Sequence

    from entrepot.capabilities import Limits
    from entrepot.filters import Normal
    from entrepot.records import IfExists, Query, Record
    from entrepot_cassandra.catalog import Place
    from entrepot_cassandra.commands import Script

_PIECE: Final = 500
"""Documents that are updated or deleted at a time."""
_FIRST_WAIT: Final = 0.02
_LONGEST_WAIT: Final = 0.5
_SEEN: Final = ("m", "ver")


class Change(NamedTuple):
    """What happens to one document.

    Attributes:
        name: Its id.
        ask: The statement.
        ver: The version that it writes; None where it deletes.
    """

    name: str
    ask: Ask
    ver: UUID | None = None


def _upsert(place: Place, row: Row) -> Change:
    """Write a document whatever is stored."""
    return Change(row.id, change(f"{_set(place)} IF ver != ?", *row.values, row.id, uuid4()), row.ver)


def _insert(place: Place, row: Row) -> Change:
    """Write a document where there is none."""
    return Change(row.id, change(f"{_set(place)} IF ver = null", *row.values, row.id), row.ver)


def _over(place: Place, row: Row, seen: UUID) -> Change:
    """Write a document over what was read."""
    return Change(row.id, change(f"{_set(place)} IF ver = ?", *row.values, row.id, seen), row.ver)


def _delete(place: Place, name: str, seen: UUID | None = None) -> Change:
    """Delete a document; as it was read, or whatever it is."""
    cql = f"DELETE FROM {place.path} WHERE id = ?"
    if seen is None:
        return Change(name, change(f"{cql} IF EXISTS", name))
    return Change(name, change(f"{cql} IF ver = ?", name, seen))


def _set(place: Place, columns: Sequence[str] = ("ver", "text", "v")) -> str:
    sets = ", ".join(f"{column} = ?" for column in (*columns, *indexed_columns(place.slots)))
    return f"UPDATE {place.path} SET {sets} WHERE id = ?"


def _send(
    place: Place, changes: Sequence[Change], *, began: bool = False
) -> Script[tuple[set[str], list[str]]]:
    """Make changes; return the names of those that were made, and of those that met another state than they may.

    Args:
        place: The collection.
        changes: What to do.
        began: Whether the same call made others before.

    Raises:
        BackendError: One failed. The outcome is unknown if others were made, or may have been.
        CollectionNotFoundError: The collection is gone.
    """
    made: set[str] = set()
    refused: list[str] = []
    doubtful = False
    pending = list(changes)
    wait = _FIRST_WAIT
    while pending:
        answers = yield Together([one.ask for one in pending])
        again: list[Change] = []
        failures: list[EntrepotError] = []
        for one, answer in zip(pending, answers, strict=True):
            if isinstance(answer, EntrepotError):
                failures.append(answer)
                again.append(one)
            elif answer.applied or _is_done(one, answer.rows[0]):
                made.add(one.name)
            else:
                refused.append(one.name)
        doubtful = doubtful or any(one.outcome == "unknown" for one in failures)
        final = next((one for one in failures if not _may_mend(one)), None)
        if final is not None:
            raise _failed(place, final, unknown=began or doubtful or bool(made))
        pending = again
        if pending:
            try:
                yield Pause(wait * random.uniform(0.5, 1.0))  # noqa: S311 - no secret
            except EntrepotError:
                told = _failed(place, failures[0], unknown=began or doubtful or bool(made))
                raise told from told.__cause__
            wait = min(2 * wait, _LONGEST_WAIT)
    return made, refused


def _is_done(one: Change, row: Sequence[Any]) -> bool:
    """Whether a change that was refused was made before, by a try whose answer was lost; or has nothing to do."""
    seen = row[1] if len(row) > 1 else None
    return seen is None if one.ver is None else seen == one.ver


def _may_mend(error: EntrepotError) -> bool:
    """Whether a further try may succeed, within the time that is left."""
    return error.retryable and not isinstance(error, OperationTimeoutError)


def _failed(place: Place, error: EntrepotError, *, unknown: bool) -> EntrepotError:
    """Return the error of a call of which one change failed."""
    told = within(place, error)
    if unknown:
        told.outcome = "unknown"
    return told


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
    fresh = yield from encode(_new_keys, records, place.keys)
    if inside is TRUE and if_exists == "error":
        there = yield from stored(place, [record.id for record in records], ())
        _refuse_twice(records, [row[0] for row in there])
    yield from claim(place, fresh)
    rows = yield from encode(rows_of, records, dict(place.keys), place.slots, place.info.metric)
    if inside is not TRUE:
        yield from _write_inside(place, records, rows, if_exists, inside)
        return
    make = _upsert if if_exists == "replace" else _insert
    made, refused = yield from _send(place, [make(place, row) for row in rows])
    if if_exists == "error":
        with _midway(began=bool(made)):
            _refuse_twice(records, refused)


def _new_keys(records: Sequence[Record], keys: Mapping[str, int]) -> list[str]:
    return new_keys([record.metadata for record in records], keys)


def _write_inside(
    place: Place, records: Sequence[Record], rows: Sequence[Row], if_exists: IfExists, inside: Normal
) -> Script[None]:
    """As `write`; each document is written over what was seen to lie inside, or where none was."""
    pending = {row.id: row for row in rows}
    began = False
    while pending:
        there = {row[0]: row for row in (yield from stored(place, list(pending), _SEEN))}
        with _midway(began=began):
            yield from _refuse_outside(there, inside)
            if if_exists == "error":
                _refuse_twice(records, list(there))
        if if_exists == "skip":
            pending = {name: row for name, row in pending.items() if name not in there}
        made, refused = yield from _send(
            place,
            [
                _over(place, row, there[name][2]) if name in there else _insert(place, row)
                for name, row in pending.items()
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


def _refuse_twice(records: Sequence[Record], there: Sequence[str]) -> None:
    if there:
        found = set(there)
        names = [record.id for record in records if record.id in found]
        msg = f"{len(names)} ids exist already, the first is {names[0]!r}"
        raise DuplicateIdError(msg, ids=names, hint="nothing was written; use if_exists='replace' or 'skip'")


def _records(found: Iterable[Sequence[Any]]) -> list[StoredRecord]:
    """Return documents with their metadata."""
    return [StoredRecord(row[0], None, decode_metadata(row[1].encode())) for row in found]


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
    yield from claim(place, new_keys([dict(changes)], place.keys))
    pending = list(dict.fromkeys(ids))
    updated: set[str] = set()
    while pending:
        there = {row[0]: row for row in (yield from stored(place, pending, _SEEN))}
        few = len(there) <= AT_ONCE
        with _midway(began=bool(updated)):
            if inside is not TRUE:
                kept = yield from work(_inside, there.values(), changes, unset, inside, at_once=few)
                there = {name: row for name, row in there.items() if name in kept}
            wanted = yield from work(_all_updated, place, there, changes, unset, limits, at_once=few)
        pending = list[str]()
        for at in range(0, len(wanted), _PIECE):
            made, refused = yield from _send(place, wanted[at : at + _PIECE], began=bool(updated))
            updated |= made
            pending += refused
    return [name for name in ids if name in updated]


def _inside(
    found: Iterable[Sequence[Any]], changes: Mapping[str, Any], unset: Sequence[str], inside: Normal
) -> set[str]:
    """Return the names of those inside a filter; none may leave it."""
    return changed_inside(_records(found), changes, unset, inside)


def _all_updated(
    place: Place,
    there: Mapping[str, Any],
    changes: Mapping[str, Any],
    unset: Sequence[str],
    limits: Limits,
) -> list[Change]:
    found: list[Change] = []
    cql = f"{_set(place, ('ver',))} IF ver = ?"
    keys = dict(place.keys)
    for name, row in there.items():
        metadata = changed(decode_metadata(row[1].encode()), changes, unset)
        encoded = encode_metadata(metadata)
        check_sizes(name, None, metadata, encoded, limits)
        ver = uuid4()
        values = indexed(metadata, encoded, keys, place.slots)
        found.append(Change(name, change(cql, ver, *values, name, row[2]), ver))
    return found


# --- deleting ---------------------------------------------------------------------------------------------


def delete_ids(place: Place, ids: Sequence[str], inside: Normal = TRUE) -> Script[None]:
    """Delete documents by id.

    Raises:
        OutsideViewError: One of them lies outside the filter. Nothing was deleted, unless the outcome is unknown,
            as another writer came in between.
    """
    names = list(dict.fromkeys(ids))
    if inside is TRUE:
        began = False
        for at in range(0, len(names), _PIECE):
            made, _ = yield from _send(
                place, [_delete(place, name) for name in names[at : at + _PIECE]], began=began
            )
            began = began or bool(made)
        return
    began = False
    while names:
        there = {row[0]: row for row in (yield from stored(place, names, _SEEN))}
        with _midway(began=began):
            yield from _refuse_outside(there, inside)
        made, names = yield from _send(
            place, [_delete(place, name, row[2]) for name, row in there.items()], began=began
        )
        began = began or bool(made)


def delete_matching(place: Place, query: Query) -> Script[None]:
    """Delete what matched at the start and has not changed since (D7).

    Raises:
        OperationTimeoutError: The exchange had not the time for all of it; what was deleted stays so.
    """
    seen: list[tuple[str, UUID]] = []
    ways = ways_of(query)
    more = bool(ways)
    after = None
    while more:
        found, more = yield from merged(place, ways, ("ver",), after, MANY)
        seen += [(row[1], row[2]) for row in found]
        more = more and bool(found)
        after = position(found[-1]) if found else None
    try:
        yield from _delete_seen(place, seen)
    except OperationTimeoutError as error:
        error.hint = (
            "deleting again goes on with the rest; for more at a time open the store with a longer timeout"
        )
        raise


def delete_unchanged(place: Place, records: Sequence[StoredRecord]) -> Script[None]:
    """Delete documents whose metadata are still what was read (D7)."""
    seen: list[tuple[str, UUID]] = []
    for at in range(0, len(records), MANY):
        part = records[at : at + MANY]
        found = yield from stored(place, [record.id for record in part], _SEEN)
        seen += yield from work(_unchanged, part, found, at_once=len(found) <= AT_ONCE)
    yield from _delete_seen(place, seen)


def _unchanged(records: Sequence[StoredRecord], found: Sequence[Sequence[Any]]) -> list[tuple[str, UUID]]:
    there = {row[0]: row for row in found}
    return [(name, there[name][2]) for name in unchanged(records, _records(found))]


def _delete_seen(place: Place, seen: Sequence[tuple[str, UUID]]) -> Script[None]:
    began = False
    for at in range(0, len(seen), _PIECE):
        part = seen[at : at + _PIECE]
        made, _ = yield from _send(place, [_delete(place, name, ver) for name, ver in part], began=began)
        began = began or bool(made)
