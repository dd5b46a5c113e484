"""What changes documents. Scripts.

Every call is one transaction, so a call that is refused has changed nothing. What depends on stored documents locks them
first, by setting a property on each, and looks at them then. Nodes are locked in the order of their ids, and the
collection's node last, so that writers do not wait for each other in a circle.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from entrepot.drafts import check_sizes
from entrepot.errors import DuplicateIdError
from entrepot.filters import TRUE
from entrepot.guards import changed, changed_inside, refuse_outside
from entrepot.metadata import encode_metadata
from entrepot.records import unchanged
from entrepot.scripted import encode, work
from entrepot_neo4j.catalog import sealed, whole
from entrepot_neo4j.commands import Statement, change, read
from entrepot_neo4j.fields import SEPARATOR, record_of, row_again, rows_of, stored_id
from entrepot_neo4j.reading import AT_ONCE, PIECE, finds_nothing, matching

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from entrepot.capabilities import Limits
    from entrepot.filters import Normal
    from entrepot.records import IfExists, Query, Record, StoredRecord
    from entrepot_neo4j.catalog import Place
    from entrepot_neo4j.commands import Script
    from entrepot_neo4j.fields import Row

_NUMBERS: Final = 8000
"""Numbers that one statement sends, to a server that takes vectors as lists of them."""
_CHARACTERS: Final = 250_000
_ROWS: Final = 40
"""About how many characters, and how many documents, one statement sends: the driver packs them in the event loop (E3)."""
_META: Final = ("metadata",)


# --- writing ----------------------------------------------------------------------------------------------


def write(
    place: Place, records: Sequence[Record], if_exists: IfExists, inside: Normal = TRUE
) -> Script[None]:
    """Write whole documents, all or none (D2).

    Raises:
        DuplicateIdError: Under ``if_exists="error"`` an id exists; nothing was written.
        OutsideViewError: A stored document lies outside the filter; nothing was written.
    """
    rows = yield from encode(_rows_of, records, place)
    names = [record.id for record in records]

    def unit() -> Script[None]:
        wanted = rows
        guarded = if_exists == "error" or inside is not TRUE
        if guarded or if_exists == "skip":
            there = yield from _claim(place, [row.id for row in rows])
            yield from work(_refuse, names, there, if_exists, inside, at_once=len(there) <= AT_ONCE)
            if if_exists == "skip":
                kept = {stored_id(record.id) for record in there}
                yield from _release(place, sorted(kept))
                wanted = [row for row in rows if row.id not in kept]
        yield from _store(place, wanted)

    yield from sealed(place, unit)


def _rows_of(records: Sequence[Record], place: Place) -> list[Row]:
    return rows_of(records, modern=place.modern)


def _store(place: Place, rows: Sequence[Row]) -> Script[None]:
    """Write documents, whether their nodes are there or not."""
    text = (
        f"UNWIND $rows AS r MERGE (n:{place.names.generation} {{id: r[0]}})"
        f" SET n:{place.names.label}, n.v = r[1], n.j = r[2], n.t = split(r[3], $separator), n.w = r[4]"
        " REMOVE n.lock, n.fresh"
        " WITH n, r CALL db.create.setNodeVectorProperty(n, 'embedding', r[5]) RETURN count(*)"
    )
    for piece in _pieces(rows, place):
        yield change(text, rows=piece, separator=SEPARATOR)


def _pieces(rows: Sequence[Row], place: Place) -> Iterator[list[list[Any]]]:
    """Yield rows in pieces that are sent in a moment, as the driver takes them."""
    numbers = 0 if place.modern else place.info.dimension
    piece: list[list[Any]] = []
    size = sent = 0
    for row in rows:
        own = row.size + 4 * place.info.dimension
        if len(piece) == _ROWS or (piece and (size + own > _CHARACTERS or sent + numbers > _NUMBERS)):
            yield piece
            piece, size, sent = [], 0, 0
        piece.append(list(row))
        size += own
        sent += numbers
    if piece:
        yield piece


def _claim(place: Place, ids: Sequence[str]) -> Script[list[StoredRecord]]:
    """Lock the nodes of ids, making those that are not there; return the documents that are."""
    yield change(
        f"UNWIND $ids AS id MERGE (n:{place.names.generation} {{id: id}})"
        " ON CREATE SET n.fresh = true ON MATCH SET n.lock = true",
        ids=ids,
    )
    rows = yield read(
        f"UNWIND $ids AS id MATCH (n:{place.names.generation} {{id: id}}) WHERE n.fresh IS NULL RETURN n.j",
        ids=ids,
    )
    return (yield from work(_read, rows, at_once=len(rows) <= AT_ONCE))


def _lock(place: Place, ids: Sequence[str]) -> Script[list[str]]:
    """Lock the nodes of ids that are there; return what they keep."""
    yield change(
        f"UNWIND $ids AS id MATCH (n:{place.names.generation} {{id: id}}) SET n.lock = true", ids=ids
    )
    rows = yield read(f"UNWIND $ids AS id MATCH (n:{place.names.generation} {{id: id}}) RETURN n.j", ids=ids)
    return [row[0] for row in rows]


def _release(place: Place, ids: Sequence[str]) -> Script[None]:
    """Take the mark of a lock from nodes; they stay locked to the end of the transaction."""
    if ids:
        yield change(
            f"UNWIND $ids AS id MATCH (n:{place.names.generation} {{id: id}}) REMOVE n.lock", ids=ids
        )


def _read(rows: Sequence[Sequence[Any]]) -> list[StoredRecord]:
    return [record_of(row[0], _META) for row in rows]


def _refuse(names: Sequence[str], there: Sequence[StoredRecord], if_exists: IfExists, inside: Normal) -> None:
    if inside is not TRUE:
        refuse_outside(there, inside)
    if if_exists == "error" and there:
        found = {record.id for record in there}
        twice = [name for name in names if name in found]
        msg = f"{len(twice)} ids exist already, the first is {twice[0]!r}"
        raise DuplicateIdError(msg, ids=twice, hint="nothing was written; use if_exists='replace' or 'skip'")


# --- updating ---------------------------------------------------------------------------------------------


def update(  # noqa: PLR0913, PLR0917 - what an update is
    place: Place,
    ids: Sequence[str],
    changes: Mapping[str, Any],
    unset: Sequence[str],
    limits: Limits,
    inside: Normal = TRUE,
) -> Script[list[str]]:
    """Change metadata of documents, all or none; return the ids there were.

    Raises:
        OutsideViewError: A document would leave the filter. Those outside are left alone.
        SizeLimitError: A document would exceed a limit (D8).
    """
    names = sorted({stored_id(name) for name in ids})

    def unit() -> Script[set[str]]:
        updated: set[str] = set()
        for at in range(0, len(names), PIECE):
            part = names[at : at + PIECE]
            kept = yield from _lock(place, part)
            rows, found = yield from work(
                _updated, kept, changes, unset, limits, inside, at_once=len(kept) <= AT_ONCE
            )
            text = (
                f"UNWIND $rows AS r MATCH (n:{place.names.generation} {{id: r[0]}})"
                " SET n.v = r[1], n.j = r[2], n.t = split(r[3], $separator)"
            )
            for piece in _pieces(rows, place):
                yield change(text, rows=piece, separator=SEPARATOR)
            yield from _release(place, part)
            updated |= found
        return updated

    found = yield from sealed(place, unit)
    return [name for name in ids if name in found]


def _updated(
    kept: Sequence[str],
    changes: Mapping[str, Any],
    unset: Sequence[str],
    limits: Limits,
    inside: Normal,
) -> tuple[list[Row], set[str]]:
    stored = {text: record_of(text, _META) for text in kept}
    if inside is not TRUE:
        wanted = changed_inside(stored.values(), changes, unset, inside)
        stored = {text: record for text, record in stored.items() if record.id in wanted}
    rows: list[Row] = []
    for text, record in stored.items():
        metadata = changed(record.metadata or {}, changes, unset)
        encoded = encode_metadata(metadata)
        check_sizes(record.id, None, metadata, encoded, limits)
        rows.append(row_again(text, metadata, encoded))
    return rows, {record.id for record in stored.values()}


# --- deleting ---------------------------------------------------------------------------------------------


def delete_ids(place: Place, ids: Sequence[str], inside: Normal = TRUE) -> Script[None]:
    """Delete documents by id, all or none.

    Raises:
        OutsideViewError: One of them lies outside the filter; nothing was deleted.
    """
    names = sorted({stored_id(name) for name in ids})

    def unit() -> Script[None]:
        for at in range(0, len(names), PIECE):
            part = names[at : at + PIECE]
            if inside is not TRUE:
                kept = yield from _lock(place, part)
                yield from work(_refuse_outside, kept, inside, at_once=len(kept) <= AT_ONCE)
            yield from _remove(place, part)

    yield from sealed(place, unit)


def _refuse_outside(kept: Sequence[str], inside: Normal) -> None:
    refuse_outside([record_of(text, _META) for text in kept], inside)


def _remove(place: Place, ids: Sequence[str]) -> Script[None]:
    yield change(f"UNWIND $ids AS id MATCH (n:{place.names.generation} {{id: id}}) DETACH DELETE n", ids=ids)


def delete_matching(place: Place, query: Query) -> Script[None]:
    """Delete what matched at the start and has not changed since (D7), some documents a transaction."""
    if finds_nothing(query):
        return
    where = matching(query)
    text = f"MATCH (n:{place.names.generation}){where.text} RETURN n.id, n.v"
    found = yield from whole(place, Statement(text, where.parameters))
    found.sort()
    for at in range(0, len(found), PIECE):
        yield from sealed(place, _still(place, found[at : at + PIECE]))


def _still(place: Place, part: Sequence[Sequence[Any]]) -> Callable[[], Script[None]]:
    """Return the script that deletes documents whose marks are still these."""
    marks: dict[str, str] = {row[0]: row[1] for row in part}

    def unit() -> Script[None]:
        ids = list(marks)
        yield change(
            f"UNWIND $ids AS id MATCH (n:{place.names.generation} {{id: id}}) SET n.lock = true", ids=ids
        )
        rows = yield read(
            f"UNWIND $ids AS id MATCH (n:{place.names.generation} {{id: id}}) RETURN n.id, n.v", ids=ids
        )
        same = [name for name, mark in rows if marks[name] == mark]
        yield from _remove(place, same)
        yield from _release(place, sorted(set(ids) - set(same)))

    return unit


def delete_unchanged(place: Place, records: Sequence[StoredRecord]) -> Script[None]:
    """Delete documents whose metadata are still what was read (D7)."""
    for at in range(0, len(records), PIECE):
        yield from sealed(place, _same(place, records[at : at + PIECE]))


def _same(place: Place, records: Sequence[StoredRecord]) -> Callable[[], Script[None]]:
    ids = sorted(stored_id(record.id) for record in records)

    def unit() -> Script[None]:
        kept = yield from _lock(place, ids)
        same = yield from work(_unchanged, records, kept, at_once=len(kept) <= AT_ONCE)
        yield from _remove(place, same)
        yield from _release(place, sorted(set(ids) - set(same)))

    return unit


def _unchanged(records: Sequence[StoredRecord], kept: Sequence[str]) -> list[str]:
    return [stored_id(name) for name in unchanged(records, [record_of(text, _META) for text in kept])]
