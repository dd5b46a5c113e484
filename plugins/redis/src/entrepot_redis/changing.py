"""What changes documents. Scripts.

Every write is one Lua script, so it is whole or not at all, also to readers. A script names the generation of
the collection that it is meant for and changes nothing in another one. What depends on stored documents names
the number (n) of the write that each was read at, and is done again if another writer came between.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from entrepot.drafts import check_sizes
from entrepot.errors import BackendError, DuplicateIdError
from entrepot.filters import TRUE
from entrepot.guards import changed, changed_inside, refuse_outside
from entrepot.metadata import decode_metadata, encode_metadata
from entrepot.records import StoredRecord, unchanged
from entrepot_redis.catalog import check_generation, number_columns
from entrepot_redis.commands import Ask
from entrepot_redis.fields import fields_of, names_in, pairs_of
from entrepot_redis.reading import condition, holds, last_place, packed, window
from entrepot_redis.words import odd_words, spaced
from entrepot_redis.writes import DELETE, REWRITE, WRITE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from entrepot.capabilities import Limits
    from entrepot.filters import Normal
    from entrepot.records import IfExists, Query, Record
    from entrepot_redis.catalog import Place
    from entrepot_redis.commands import Lua, Script
    from entrepot_redis.fields import Fields
    from entrepot_redis.names import StoreNames

_ANY: Final = "*"
"""In the place of a write's number: whatever is stored."""
_PIECE: Final = 1000
"""Documents that one script deletes, and that one window of a deletion holds."""
_UPDATED: Final = 100
"""Documents that one script updates."""


class Batch(NamedTuple):
    """Documents ready to be written, for the collection that they were encoded for.

    Attributes:
        ids: Their ids.
        pairs: Fields and values of each, in turn.
        unnumbered: Index fields, not yet among these, of the documents that need columns without a number.
        place: The collection.
    """

    ids: list[str]
    pairs: list[list[str | bytes]]
    unnumbered: dict[int, Fields]
    place: Place


def batch_of(records: Sequence[Record], place: Place) -> Batch:
    """Encode documents; takes milliseconds for each 100 KB of text and metadata."""
    batch = Batch([record.id for record in records], [], {}, place)
    for record in records:
        pairs: list[str | bytes] = ["m", record.metadata_json, "v", packed(record.vector)]
        if record.text is not None:
            pairs += ("x", spaced(record.text))
            if odd := odd_words(record.text):
                pairs += ("w", odd)
        _put(batch, pairs, fields_of(record.metadata))
    return batch


def _put(batch: Batch, pairs: list[str | bytes], fields: Fields) -> None:
    """Add a document; its index fields only where all have their place, so that few objects live long."""
    columns = batch.place.columns
    if columns.full or not names_in(fields, columns.numbers):
        pairs += pairs_of(fields, columns.numbers)
    else:
        batch.unnumbered[len(batch.pairs)] = fields
    batch.pairs.append(pairs)


def _completed(names: StoreNames, batch: Batch) -> Script[list[list[str | bytes]]]:
    """Give columns numbers where they have none and there is room; return the fields and values of documents."""
    columns = batch.place.columns
    if not batch.unnumbered:
        return batch.pairs
    unnumbered = batch.unnumbered
    wanted = list(
        dict.fromkeys(name for fields in unnumbered.values() for name in names_in(fields, columns.numbers))
    )
    if wanted and not columns.full:
        yield from number_columns(names, batch.place, wanted)
    pairs = batch.pairs.copy()  # the batch stays as it is, for a second try
    for place, fields in unnumbered.items():
        pairs[place] = [*pairs[place], *pairs_of(fields, columns.numbers)]
    return pairs


def write(names: StoreNames, batch: Batch, if_exists: IfExists, inside: Normal = TRUE) -> Script[None]:
    """Write whole documents, and check what they replace in the same step (D2, T2).

    Raises:
        DuplicateIdError: Under ``if_exists="error"`` an id exists.
        OutsideViewError: A stored document lies outside the filter.
        CollectionMismatchError, CollectionNotFoundError: The collection is no longer the one that was described.
    """
    place, ids = batch.place, batch.ids
    arguments = yield from _completed(names, batch)
    while True:
        expected = [_ANY] * len(ids)
        if inside is not TRUE:
            stored = yield from _versions(names, place, ids)
            refuse_outside((record for record, _ in stored.values()), inside)
            expected = [stored[name][1] if name in stored else "" for name in ids]
        answer = yield from _run(names, place, WRITE, ids, if_exists, _flat(expected, arguments))
        if answer[0] == b"exists":
            there: list[str] = [ids[at] for at in answer[1:]]
            msg = f"{len(there)} ids exist already, the first is {there[0]!r}"
            raise DuplicateIdError(
                msg, ids=there, hint="nothing was written; use if_exists='replace' or 'skip'"
            )
        if answer[0] == b"done":
            return


def update(  # noqa: PLR0913, PLR0917 - what an update is
    names: StoreNames,
    place: Place,
    ids: Sequence[str],
    changes: Mapping[str, Any],
    unset: Sequence[str],
    limits: Limits,
    inside: Normal = TRUE,
) -> Script[list[str]]:
    """Change metadata of documents; return the ids there were.

    Raises:
        OutsideViewError: A document would leave the filter; nothing was changed. Those outside are left alone.
        SizeLimitError: A document would exceed a limit (D8).
    """
    there: set[str] = set()
    guarded = inside is not TRUE
    size = max(1, len(ids)) if guarded else _UPDATED
    pending = list(dict.fromkeys(ids))
    while pending:
        part, rest = pending[:size], pending[size:]
        stored = yield from _versions(names, place, part)
        chosen = list(stored)
        if guarded:
            allowed = changed_inside([record for record, _ in stored.values()], changes, unset, inside)
            chosen = [name for name in chosen if name in allowed]
        batch = _rewritten([stored[name][0] for name in chosen], changes, unset, limits, place)
        arguments = yield from _completed(names, batch)
        expected = [stored[name][1] for name in chosen]
        again: set[str] = set()
        if chosen:
            mode = "all" if guarded else "each"
            answer = yield from _run(names, place, REWRITE, chosen, mode, _flat(expected, arguments))
            if answer[0] == b"changed":
                again = set(chosen) if guarded else {chosen[at] for at in answer[1:]}
        there |= set(chosen) - again
        pending = [name for name in part if name in again] + rest
    return [name for name in ids if name in there]


def _rewritten(
    records: Sequence[StoredRecord],
    changes: Mapping[str, Any],
    unset: Sequence[str],
    limits: Limits,
    place: Place,
) -> Batch:
    batch = Batch([record.id for record in records], [], {}, place)
    for record in records:
        metadata = changed(record.metadata or {}, changes, unset)
        encoded = encode_metadata(metadata)
        check_sizes(record.id, None, metadata, encoded, limits)
        _put(batch, ["m", encoded], fields_of(metadata))
    return batch


def delete_ids(names: StoreNames, place: Place, ids: Sequence[str], inside: Normal = TRUE) -> Script[None]:
    """Delete documents by id.

    Raises:
        OutsideViewError: One of them lies outside the filter; nothing was deleted.
    """
    if inside is TRUE:
        for at in range(0, len(ids), _PIECE):
            part = ids[at : at + _PIECE]
            yield from _run(names, place, DELETE, part, "each", [_ANY] * len(part))
        return
    while True:
        stored = yield from _versions(names, place, ids)
        refuse_outside((record for record, _ in stored.values()), inside)
        expected = [stored[name][1] if name in stored else "" for name in ids]
        answer = yield from _run(names, place, DELETE, ids, "all", expected)
        if answer[0] == b"done":
            return


def delete_matching(names: StoreNames, place: Place, query: Query) -> Script[None]:
    """Delete what matched at the start and has not changed since (D7).

    The number of the last write is the start: what was written later is left alone.
    """
    where, sieve = yield from condition(names, place, query)
    start = yield from last_place(names, place)
    if where is None:
        return
    skip = len(names.prefix(place.generation))
    at = 0
    width = _PIECE
    while at < start:
        until = min(at + width, start)
        fields = ["n", "m"] if sieve else ["n"]
        rows, at = yield from window(names, place, where, at, until, _PIECE, fields)
        doomed = [
            row for row in rows if int(row.fields[b"n"]) <= start and (not sieve or holds(query, row.fields))
        ]
        if doomed:
            ids = [row.key[skip:].decode() for row in doomed]
            numbers = [row.fields[b"n"] for row in doomed]
            yield from _run(names, place, DELETE, ids, "each", numbers)
        width *= 2


def delete_unchanged(names: StoreNames, place: Place, records: Sequence[StoredRecord]) -> Script[None]:
    """Delete documents whose metadata is still what was read (D7)."""
    for at in range(0, len(records), _PIECE):
        part = records[at : at + _PIECE]
        stored = yield from _versions(names, place, [record.id for record in part])
        same = unchanged(part, [record for record, _ in stored.values()])
        if same:
            numbers = [stored[name][1] for name in same]
            yield from _run(names, place, DELETE, same, "each", numbers)


# --- what they share --------------------------------------------------------------------------------------


def _versions(
    names: StoreNames, place: Place, ids: Sequence[str]
) -> Script[dict[str, tuple[StoredRecord, str]]]:
    """Return the documents that are there, with their metadata and the numbers of their writes."""
    prefix = names.prefix(place.generation)
    [generation, *rows] = yield Ask(
        [
            ("HGET", names.record, "generation"),
            *(("HMGET", prefix + name.encode(), "n", "m") for name in ids),
        ]
    )
    check_generation(place, generation)
    return {
        name: (StoredRecord(name, None, decode_metadata(metadata)), number.decode())
        for name, (number, metadata) in zip(ids, rows, strict=True)
        if number is not None
    }


def _flat(expected: Sequence[str], arguments: Sequence[Sequence[str | bytes]]) -> list[str | bytes | int]:
    flat: list[str | bytes | int] = []
    for number, each in zip(expected, arguments, strict=True):
        flat += (number, len(each), *each)
    return flat


def _run(  # noqa: PLR0913, PLR0917 - what a script is told
    names: StoreNames,
    place: Place,
    script: Lua,
    ids: Sequence[str],
    mode: str,
    arguments: Sequence[str | bytes | int],
) -> Script[list[Any]]:
    """Run a script over documents.

    Raises:
        CollectionNotFoundError, CollectionMismatchError: The collection was dropped, or made anew.
        BackendError: The index did not take a document.
    """
    prefix = names.prefix(place.generation)
    keys: list[str | bytes] = [names.record]
    keys += [prefix + name.encode() for name in ids]
    command = script(keys, place.generation, names.index_of(place.generation), mode, *arguments)
    [answer] = yield Ask([command], writes=True)
    if answer[0] == b"stale":
        check_generation(place, answer[1] if len(answer) > 1 else None)
    if answer[0] == b"done" and answer[1] != answer[2]:
        msg = f"the index of collection {place.info.name!r} did not take {answer[1] - answer[2]} documents"
        raise BackendError(
            msg,
            hint="stats() tells how many it lacks; they are stored, and searches do not find them",
            outcome="unknown",
        )
    return list(answer)
