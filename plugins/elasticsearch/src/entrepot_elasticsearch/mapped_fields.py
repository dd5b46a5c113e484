"""From documents that other software wrote to records: what lies in their sources is the truth. Pure functions.

A string, a boolean, a number and a list of these are metadata; the objects in an object are flattened, with dots between
the keys. What is no value of metadata, such as null, a number beyond 64 bits or an object in a list, is left out. A
string in a field of type ``date`` is an instant if it is one of ISO 8601, in UTC unless it says otherwise.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

import numpy as np

from entrepot.capabilities import Metric
from entrepot.metadata import is_list
from entrepot.records import StoredRecord

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from entrepot.records import CollectionInfo
    from entrepot_elasticsearch.mapping import IndexMapping

DATES: Final = frozenset({"date", "date_nanos"})
_INT64: Final = 1 << 63


class Field(NamedTuple):
    """A field that a filter can ask.

    Attributes:
        path: Where it is in the index; that of a keyword below a text field.
        source: Where it is in documents.
        type: Its type in the engine.
        searched: Whether it has an index.
        exists: Whether the engine can tell that it has a value.
    """

    path: str
    source: str
    type: str
    searched: bool
    exists: bool


class MappedPlace(NamedTuple):
    """An index of other software.

    Attributes:
        name: Its name, or that of an alias.
        info: What is known of it.
        mapping: Which field holds what.
        fields: The fields that filters can ask, by metadata key.
        dates: The paths of fields whose strings are instants.
        indexed: Whether vectors have an index.
        shows_vectors: Whether sources show vectors only if they are told to.
    """

    name: str
    info: CollectionInfo
    mapping: IndexMapping
    fields: dict[str, Field]
    dates: frozenset[str]
    indexed: bool
    shows_vectors: bool

    @property
    def ann(self) -> bool:
        """Whether its searches may be approximate."""
        return self.indexed


def at_path(source: Mapping[str, Any], path: str) -> Any:
    """Return what lies at a path, whether its dots are in keys or between objects; None if nothing does."""
    if path in source:
        return source[path]
    for at, sign in enumerate(path):
        if sign == ".":
            inner = source.get(path[:at])
            if isinstance(inner, dict):
                found = at_path(cast("dict[str, Any]", inner), path[at + 1 :])
                if found is not None:
                    return found
    return None


def metadata_of(source: Mapping[str, Any], place: MappedPlace) -> dict[str, Any]:
    """Return the metadata of a document."""
    metadata: dict[str, Any] = {}
    root = place.mapping.metadata
    if root is not None:
        held = at_path(source, root)
        if isinstance(held, dict):
            for key, value in _leaves(cast("dict[str, Any]", held), ""):
                _put(metadata, key, value, is_date=f"{root}.{key}" in place.dates)
    for key, path in place.mapping.fields.items():
        metadata.pop(key, None)
        _put(metadata, key, at_path(source, path), is_date=path in place.dates)
    return metadata


def _leaves(held: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    for key, value in held.items():
        if isinstance(value, dict):
            yield from _leaves(cast("dict[str, Any]", value), f"{prefix}{key}.")
        else:
            yield prefix + key, value


def _put(metadata: dict[str, Any], key: str, value: Any, *, is_date: bool) -> None:
    if is_list(value):
        found = [_scalar(one, is_date=is_date) for one in value]
        kept = [one for one in found if one is not None]
        if key and (kept or not value):
            metadata[key] = kept
        return
    scalar = _scalar(value, is_date=is_date)
    if key and scalar is not None:
        metadata[key] = scalar


def _scalar(value: object, *, is_date: bool) -> object:
    if isinstance(value, str):
        return (instant_of(value) or value) if is_date else value
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value if -_INT64 <= value < _INT64 else None
    return value if isinstance(value, float) and math.isfinite(value) else None


def instant_of(text: str) -> datetime | None:
    """Return the instant of a text, UTC unless it has an offset; None if it is none of ISO 8601."""
    try:
        found = datetime.fromisoformat(text)
        return (found.replace(tzinfo=UTC) if found.tzinfo is None else found).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def vector_of(source: Mapping[str, Any], place: MappedPlace) -> NDArray[np.float32] | None:
    """Return a vector as the contract has it, with norm 1 under cosine and dot (D9); None if it cannot be compared."""
    held = at_path(source, place.mapping.vector)
    try:
        stored = np.asarray(held, dtype=np.float64)
    except (ValueError, TypeError):
        return None
    if stored.shape != (place.info.dimension,) or not np.isfinite(stored).all():
        return None
    if place.info.metric is not Metric.EUCLIDEAN:
        norm = float(np.linalg.norm(stored))
        if norm == 0.0:
            return None
        stored /= norm
    return stored.astype(np.float32)


def record_of(found: Mapping[str, Any], place: MappedPlace, include: Sequence[str]) -> StoredRecord:
    """Return a document as the engine gave it."""
    source = cast("dict[str, Any]", found["_source"])
    text = None if place.mapping.text is None else at_path(source, place.mapping.text)
    return StoredRecord(
        str(found["_id"]),
        text if isinstance(text, str) and "text" in include else None,
        cast("Any", metadata_of(source, place)) if "metadata" in include else None,
        vector_of(source, place) if "vector" in include else None,
    )


def wanted(place: MappedPlace, include: Sequence[str], *, vector: bool = False) -> dict[str, Any]:
    """Return what to ask of documents' sources."""
    paths: list[str] = []
    if "text" in include and place.mapping.text is not None:
        paths.append(place.mapping.text)
    if "metadata" in include:
        paths += place.mapping.paths
    if vector or "vector" in include:
        paths.append(place.mapping.vector)
    # An empty list would mean everything.
    asked: dict[str, Any] = {"includes": paths or [place.mapping.vector + ".none"]}
    if place.shows_vectors:
        asked["exclude_vectors"] = False
    return asked
