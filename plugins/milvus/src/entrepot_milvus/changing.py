"""What changes documents. Scripts.

A row is replaced as a whole. The engine compares nothing when it writes: what depends on what is stored is read before.
In Milvus Lite nothing comes between, as a script runs alone there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from entrepot.drafts import check_sizes
from entrepot.errors import DuplicateIdError
from entrepot.filters import TRUE
from entrepot.guards import changed, changed_inside, refuse_outside
from entrepot.metadata import encode_metadata
from entrepot.records import StoredRecord
from entrepot.scripted import encode, work
from entrepot_milvus.commands import change
from entrepot_milvus.fields import (
    METADATA,
    MORE_METADATA,
    NAME,
    TEXT,
    VECTOR,
    WITH_TEXT,
    Content,
    metadata_of,
    row_of,
    size_of,
    vector_of,
)
from entrepot_milvus.names import point_id
from entrepot_milvus.reading import PIECE, await_all, finds_nothing, keys_of, retrieve

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from entrepot.capabilities import Limits
    from entrepot.filters import Normal
    from entrepot.records import IfExists, Query, Record
    from entrepot.scripted import Script
    from entrepot_milvus.catalog import Place, Plan

    Rows = list[dict[str, Any]]

_MOST_BYTES: Final = 24 * 1024 * 1024
"""About how many bytes one request has; a server takes 64 MiB."""
_UPDATED: Final = 200
"""Documents that one request updates."""
_KNOWN: Final = (NAME, METADATA, MORE_METADATA)


def write(
    place: Place, records: Sequence[Record], if_exists: IfExists, plan: Plan, inside: Normal = TRUE
) -> Script[object]:
    """Write whole documents (D2); return whether they must be waited for.

    Raises:
        DuplicateIdError: Under ``if_exists="error"`` an id exists; nothing was written.
        OutsideViewError: A stored document lies outside the filter; nothing was written.
    """
    if inside is not TRUE:
        refuse_outside((yield from _stored(place, plan, [record.id for record in records])), inside)
    if if_exists != "replace":
        rows = yield from retrieve(place, plan, [record.id for record in records], [NAME], strong=True)
        there = {row[NAME] for row in rows}
        if there and if_exists == "error":
            names = [record.id for record in records if record.id in there]
            msg = f"{len(names)} ids exist already, the first is {names[0]!r}"
            raise DuplicateIdError(
                msg, ids=names, hint="nothing was written; use if_exists='replace' or 'skip'"
            )
        records = [record for record in records if record.id not in there]
    parts = yield from encode(_rows_of, records, place)
    for part in parts:
        yield change("upsert", data=part, **place.writes)
    return plan.consistency != "strong"


def _rows_of(records: Sequence[Record], place: Place) -> list[Rows]:
    """Return the rows of documents, in parts that fit a request."""
    return _in_parts(
        [
            row_of(
                Content(record.id, record.text, record.metadata, record.metadata_json, record.vector),
                words=place.words,
            )
            for record in records
        ],
        place,
    )


def _in_parts(rows: Rows, place: Place) -> list[Rows]:
    parts: list[Rows] = []
    size = _MOST_BYTES
    for row in rows:
        own = size_of(row, place.info.dimension)
        size += own
        if size > _MOST_BYTES:
            parts.append([])
            size = own
        parts[-1].append(row)
    return parts


def update(  # noqa: PLR0913, PLR0917 - what an update is
    place: Place,
    ids: Sequence[str],
    changes: Mapping[str, Any],
    unset: Sequence[str],
    limits: Limits,
    plan: Plan,
    inside: Normal = TRUE,
) -> Script[list[str]]:
    """Change metadata of documents; return the ids there were.

    Raises:
        OutsideViewError: A document would leave the filter; nothing was changed. Those outside are left alone.
        SizeLimitError: A document would exceed a limit (D8).
    """
    pending = list(dict.fromkeys(ids))
    if inside is not TRUE:
        stored = yield from _stored(place, plan, pending)
        pending = list(changed_inside(stored, changes, unset, inside))
    there: set[str] = set()
    for at in range(0, len(pending), _UPDATED):
        rows = yield from retrieve(
            place, plan, pending[at : at + _UPDATED], [*_KNOWN, TEXT, WITH_TEXT, VECTOR], strong=True
        )
        there |= {row[NAME] for row in rows}
        parts = yield from work(_changed, rows, changes, unset, limits, place)
        for part in parts:
            yield change("upsert", data=part, **place.writes)
    if there and plan.consistency != "strong":
        yield from await_all(place, plan)
    return [name for name in ids if name in there]


def _changed(
    rows: Sequence[Mapping[str, Any]],
    changes: Mapping[str, Any],
    unset: Sequence[str],
    limits: Limits,
    place: Place,
) -> list[Rows]:
    """Return rows with other metadata, in parts that fit a request."""
    made: Rows = []
    for row in rows:
        metadata = changed(metadata_of(row), changes, unset)
        encoded = encode_metadata(metadata)
        check_sizes(row[NAME], None, metadata, encoded, limits)
        text = row[TEXT] if row[WITH_TEXT] else None
        content = Content(row[NAME], text, metadata, encoded, vector_of(row[VECTOR]))
        made.append(row_of(content, words=place.words))
    return _in_parts(made, place)


def delete_ids(place: Place, ids: Sequence[str], plan: Plan, inside: Normal = TRUE) -> Script[None]:
    """Delete documents by id.

    Raises:
        OutsideViewError: One of them lies outside the filter; nothing was deleted.
    """
    if inside is not TRUE:
        refuse_outside((yield from _stored(place, plan, ids)), inside)
    yield from _delete(place, [point_id(name) for name in ids], plan)


def delete_matching(place: Place, query: Query, plan: Plan) -> Script[None]:
    """Delete what matches now (D7).

    A server that is asked to delete by an expression looks for what matches with a consistency of its own, which
    may overlook the newest documents; so they are looked for here.
    """
    if not finds_nothing(query):
        keys = yield from keys_of(place, query, plan)
        yield from _delete(place, keys, plan)


def _delete(place: Place, keys: Sequence[str], plan: Plan) -> Script[None]:
    for at in range(0, len(keys), PIECE):
        yield change("delete", ids=list(keys[at : at + PIECE]), **place.writes)
    if keys and plan.consistency != "strong":
        yield from await_all(place, plan)


def _stored(place: Place, plan: Plan, ids: Sequence[str]) -> Script[list[StoredRecord]]:
    """Return the metadata of documents that are there."""
    rows = yield from retrieve(place, plan, ids, _KNOWN, strong=True)
    return [StoredRecord(row[NAME], metadata=metadata_of(row)) for row in rows]
