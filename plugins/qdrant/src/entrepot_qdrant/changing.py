"""What changes documents. Scripts.

Each write gives each document a version of its own, `v` in the payload. What depends on a stored document names the
version that was read, in a filter that the engine holds against the point when it changes it; whether it did is
seen by the version afterwards.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple
from uuid import uuid4

from qdrant_client import models

from entrepot.drafts import check_sizes
from entrepot.errors import DuplicateIdError
from entrepot.filters import TRUE
from entrepot.guards import changed, changed_inside, refuse_outside
from entrepot.metadata import encode_metadata
from entrepot.records import StoredRecord, unchanged
from entrepot_qdrant.catalog import ensure_indexes
from entrepot_qdrant.commands import change
from entrepot_qdrant.fields import (
    DENSE,
    ID,
    META,
    TEXT,
    VERSION,
    WORDS,
    metadata_of,
    payload_of,
    wishes,
)
from entrepot_qdrant.names import TOKENS, point_id
from entrepot_qdrant.reading import condition, finds_nothing, retrieve
from entrepot_qdrant.words import weighted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from entrepot.capabilities import Limits
    from entrepot.filters import Normal
    from entrepot.records import IfExists, Query, Record
    from entrepot_qdrant.catalog import Place, Plan
    from entrepot_qdrant.commands import Script
    from entrepot_qdrant.fields import IndexWish

_PIECE: Final = 1000
"""Documents that one request deletes."""
_UPDATED: Final = 100
"""Documents that one request updates."""
_MOST_BYTES: Final = 8 * 1024 * 1024
"""About how many bytes one request has; a server takes 32 MiB."""


class Batch(NamedTuple):
    """Documents ready to be written.

    Attributes:
        ids: Their ids.
        points: Their points, in parts that fit a request.
        wishes: The payload indexes that serve them.
    """

    ids: list[str]
    points: list[list[models.PointStruct]]
    wishes: list[IndexWish]


def batch_of(records: Sequence[Record], plan: Plan) -> Batch:
    """Encode documents."""
    batch = Batch([record.id for record in records], [[]], [])
    nonce = uuid4().hex
    wished: dict[IndexWish, None] = {}
    size = 0
    for number, record in enumerate(records):
        payload = payload_of(
            record.id, record.text, record.metadata_json, record.metadata, _version(nonce, number)
        )
        vectors: dict[str, Any] = {DENSE: record.vector.tolist()}
        sparse = None if record.text is None else weighted(record.text, plan.average_words)
        if sparse is not None:
            vectors[WORDS] = models.SparseVector(indices=sparse.places, values=sparse.weights)
        size += _bytes_of(payload, len(record.vector) + (0 if sparse is None else 2 * len(sparse.places)))
        if size > _MOST_BYTES and batch.points[-1]:
            batch.points.append([])
            size = 0
        batch.points[-1].append(models.PointStruct(id=point_id(record.id), vector=vectors, payload=payload))
        wished.update(dict.fromkeys(wishes(payload)))
    batch.wishes.extend(wished)
    return batch


def _version(nonce: str, number: int) -> str:
    return f"{nonce}-{number}"


def _bytes_of(payload: Mapping[str, Any], numbers: int) -> int:
    """Return about how many bytes of JSON a point has, rather too many."""
    tokens = len(payload.get(TOKENS, ()))
    return 4 * (len(payload.get(TEXT, "")) + len(payload[META])) + 180 * tokens + 16 * numbers


def write(place: Place, batch: Batch, if_exists: IfExists, plan: Plan, inside: Normal = TRUE) -> Script[None]:
    """Write whole documents (D2).

    Raises:
        DuplicateIdError: Under ``if_exists="error"`` an id exists.
        OutsideViewError: A stored document lies outside the filter.
    """
    if inside is not TRUE:
        stored = yield from _versions(place, batch.ids, plan)
        refuse_outside((record for record, _ in stored.values()), inside)
    if if_exists == "error":
        there = yield from retrieve(place, batch.ids, [ID], plan)
        _refuse_twice(batch, [point.payload[ID] for point in there])
    yield from ensure_indexes(place, batch.wishes, plan)
    # Local mode takes no `update_mode=None`, nor needs it.
    mode = {} if if_exists == "replace" else {"update_mode": models.UpdateMode.INSERT_ONLY}
    for part in batch.points:
        yield change("upsert", collection_name=place.name, points=part, **mode, **plan.acknowledged)
    if if_exists == "error" and plan.served:
        yield from _take_back(place, batch, plan)


def _take_back(place: Place, batch: Batch, plan: Plan) -> Script[None]:
    """Delete what was inserted if another writer inserted one of the ids at the same time.

    Raises:
        DuplicateIdError: One did.
    """
    ours = {
        point.payload[ID]: point.payload[VERSION] for part in batch.points for point in part if point.payload
    }
    now = yield from retrieve(place, batch.ids, [ID, VERSION], plan)
    lost = [point.payload[ID] for point in now if point.payload[VERSION] != ours[point.payload[ID]]]
    if lost:
        yield from _delete_versions(place, ours, plan)
        _refuse_twice(batch, lost)


def _refuse_twice(batch: Batch, there: Sequence[str]) -> None:
    if there:
        found = set(there)
        names = [name for name in batch.ids if name in found]
        msg = f"{len(names)} ids exist already, the first is {names[0]!r}"
        raise DuplicateIdError(msg, ids=names, hint="nothing was written; use if_exists='replace' or 'skip'")


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
    there: set[str] = set()
    pending = list(dict.fromkeys(ids))
    if inside is not TRUE:
        stored = yield from _versions(place, pending, plan)
        pending = list(changed_inside([record for record, _ in stored.values()], changes, unset, inside))
    while pending:
        part, rest = pending[:_UPDATED], pending[_UPDATED:]
        stored = yield from _versions(place, part, plan, TEXT)
        again = yield from _rewrite(place, stored, changes, unset, limits, plan)
        there |= set(stored) - again
        pending = [name for name in part if name in again] + rest
    return [name for name in ids if name in there]


def _rewrite(  # noqa: PLR0913, PLR0917 - as above
    place: Place,
    stored: Mapping[str, tuple[StoredRecord, str]],
    changes: Mapping[str, Any],
    unset: Sequence[str],
    limits: Limits,
    plan: Plan,
) -> Script[set[str]]:
    """Change documents that are still as they were read; return the ids of the others."""
    nonce = uuid4().hex
    wished: dict[IndexWish, None] = {}
    operations: list[models.OverwritePayloadOperation] = []
    versions: dict[str, str] = {}
    for number, (name, (record, seen)) in enumerate(stored.items()):
        metadata = changed(record.metadata or {}, changes, unset)
        encoded = encode_metadata(metadata)
        check_sizes(name, None, metadata, encoded, limits)
        versions[name] = _version(nonce, number)
        payload = payload_of(name, record.text, encoded, metadata, versions[name])
        wished.update(dict.fromkeys(wishes(payload)))
        # In local mode nothing comes between, and every filter would read every document.
        target: dict[str, Any] = (
            {"filter": _unchanged({name: seen})} if plan.served else {"points": [point_id(name)]}
        )
        operations.append(
            models.OverwritePayloadOperation(overwrite_payload=models.SetPayload(payload=payload, **target))
        )
    if not operations:
        return set()
    yield from ensure_indexes(place, list(wished), plan)
    yield change(
        "batch_update_points", collection_name=place.name, update_operations=operations, **plan.acknowledged
    )
    if not plan.served:
        return set()
    now = yield from retrieve(place, list(stored), [ID, VERSION], plan)
    return {point.payload[ID] for point in now if point.payload[VERSION] != versions[point.payload[ID]]}


def delete_ids(place: Place, ids: Sequence[str], plan: Plan, inside: Normal = TRUE) -> Script[None]:
    """Delete documents by id.

    Raises:
        OutsideViewError: One of them lies outside the filter; nothing was deleted.
    """
    if inside is not TRUE:
        stored = yield from _versions(place, ids, plan)
        refuse_outside((record for record, _ in stored.values()), inside)
    for at in range(0, len(ids), _PIECE):
        part: list[Any] = [point_id(name) for name in ids[at : at + _PIECE]]
        yield change(
            "delete",
            collection_name=place.name,
            points_selector=models.PointIdsList(points=part),
            **plan.acknowledged,
        )


def delete_matching(place: Place, query: Query, plan: Plan) -> Script[None]:
    """Delete what matches when the engine comes to it (D7)."""
    if finds_nothing(query):
        return
    # Every point has an id, so this holds for all; a filter without a condition is never sent.
    everything = models.Filter(must_not=[models.IsEmptyCondition(is_empty=models.PayloadField(key=ID))])
    yield change(
        "delete",
        collection_name=place.name,
        points_selector=models.FilterSelector(filter=condition(query, place.layout) or everything),
        **plan.acknowledged,
    )


def delete_unchanged(place: Place, records: Sequence[StoredRecord], plan: Plan) -> Script[None]:
    """Delete documents whose metadata is still what was read (D7)."""
    for at in range(0, len(records), _PIECE):
        part = records[at : at + _PIECE]
        stored = yield from _versions(place, [record.id for record in part], plan)
        same = unchanged(part, [record for record, _ in stored.values()])
        yield from _delete_versions(place, {name: stored[name][1] for name in same}, plan)


# --- what they share --------------------------------------------------------------------------------------


def _versions(
    place: Place, ids: Sequence[str], plan: Plan, *more: str
) -> Script[dict[str, tuple[StoredRecord, str]]]:
    """Return the documents that are there, with their metadata and versions."""
    points = yield from retrieve(place, ids, [ID, META, VERSION, *more], plan)
    return {
        point.payload[ID]: (
            StoredRecord(point.payload[ID], point.payload.get(TEXT), metadata_of(point.payload)),
            point.payload[VERSION],
        )
        for point in points
    }


def _unchanged(versions: Mapping[str, str]) -> models.Filter:
    """Return the filter of documents that are still of these versions; each version is one document's."""
    ids: list[Any] = [point_id(name) for name in versions]
    return models.Filter(
        must=[
            models.HasIdCondition(has_id=ids),
            models.FieldCondition(key=VERSION, match=models.MatchAny(any=list(versions.values()))),
        ]
    )


def _delete_versions(place: Place, versions: Mapping[str, str], plan: Plan) -> Script[None]:
    if versions:
        yield change(
            "delete",
            collection_name=place.name,
            points_selector=models.FilterSelector(filter=_unchanged(versions)),
            **plan.acknowledged,
        )
