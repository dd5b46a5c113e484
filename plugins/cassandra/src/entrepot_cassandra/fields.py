"""From documents to rows, and back. Pure functions.

A row has `id`, `text`, `m` (the whole metadata as one JSON text: the truth), `ver` (a UUID of its own for each write),
`v` (the vector), and for filters `t` (tokens of keys and of elements) and two columns for each slot
(`entrepot_cassandra.filters`). Every row fills the columns of every slot, also of those that no key has yet: a key that
gets a slot later was in none of the older rows, and they say so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple
from uuid import UUID, uuid4

import numpy as np

from entrepot.encoding import metadata_tokens, scalar_code
from entrepot.errors import VectorError
from entrepot.filters.values import kind_of
from entrepot.metadata import decode_metadata, elements
from entrepot.records import StoredRecord
from entrepot_cassandra.filters import ABSENT, greatest, least

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from entrepot.capabilities import Metric
    from entrepot.metadata import Metadata
    from entrepot.records import Record

_LARGEST: Final = float(np.finfo(np.float32).max)
_COLUMNS: Final = {"text": "text", "metadata": "m", "vector": "v"}


class Row(NamedTuple):
    """A document as it is written.

    Attributes:
        id: Its id.
        ver: What tells this write from all others.
        values: The values of the columns that the statement sets, in its order.
    """

    id: str
    ver: UUID
    values: tuple[Any, ...]


def indexed_columns(slots: int) -> list[str]:
    """Return the columns that hold metadata, in the order of `indexed`."""
    return ["m", "t", *(name(slot) for slot in range(slots) for name in (least, greatest))]


def indexed(metadata: Metadata, encoded: bytes, keys: Mapping[str, int], slots: int) -> list[Any]:
    """Return the values of `indexed_columns`.

    Args:
        metadata: Clean metadata.
        encoded: The same as JSON.
        keys: The keys that have a slot.
        slots: How many slots there are.
    """
    codes = [ABSENT] * (2 * slots)
    for key, value in metadata.items():
        slot = keys.get(key)
        if slot is not None and (values := elements(value)):
            found = [scalar_code(one).code for one in values]
            codes[2 * slot], codes[2 * slot + 1] = min(found), max(found)
    return [encoded.decode(), set(metadata_tokens(metadata)), *codes]


def rows_of(records: Sequence[Record], keys: Mapping[str, int], slots: int, metric: Metric) -> list[Row]:
    """Return documents as rows: `ver`, `text`, `v`, then `indexed_columns`.

    Raises:
        VectorError: A vector that the engine does not take: its log of writes could not be read again.
    """
    found: list[Row] = []
    for record in records:
        vector = record.vector
        square = float(np.square(vector, dtype=np.float64).sum())
        if not 0.0 < square <= _LARGEST:
            msg = f"the vector of document {record.id!r} is zero, not finite, or longer than 1.8e19"
            raise VectorError(msg, hint=f"scale all vectors by one factor; the metric is {metric}")
        ver = uuid4()
        more = indexed(record.metadata, record.metadata_json, keys, slots)
        found.append(Row(record.id, ver, (ver, record.text, vector.tolist(), *more)))
    return found


def new_keys(metadata: Sequence[Metadata], keys: Mapping[str, int]) -> list[str]:
    """Return keys with elements that have no slot; those of numbers and instants, which ranges ask for, first."""
    found: dict[str, bool] = {}
    for one in metadata:
        for key, value in one.items():
            if key not in keys and key not in found and (values := elements(value)):
                found[key] = kind_of(values[0]) in {"number", "datetime"}
    return sorted(found, key=lambda key: not found[key])


def columns(include: Sequence[str]) -> list[str]:
    """Return the columns to read for parts of a document, behind its id."""
    return [column for part, column in _COLUMNS.items() if part in include]


def record_of(row: Sequence[Any], include: Sequence[str]) -> StoredRecord:
    """Return a document of a row: its id, then `columns`."""
    parts = dict(zip((part for part in _COLUMNS if part in include), row[1:], strict=False))
    metadata, vector = parts.get("metadata"), parts.get("vector")
    return StoredRecord(
        row[0],
        parts.get("text"),
        None if "metadata" not in include else decode_metadata((metadata or "{}").encode()),
        None if vector is None else np.array(vector, dtype=np.float32),
    )
