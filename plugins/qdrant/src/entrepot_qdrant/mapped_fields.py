"""From points that other software wrote to documents, by a mapping. Pure functions.

JSON has neither datetimes nor documents' flat metadata, so: an object and a list in a list are the strings of
their JSON texts, nulls in lists are left out, and numbers beyond 64 bits are floats.
"""

from __future__ import annotations

import json
import math
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

import numpy as np
from qdrant_client import models

from entrepot.errors import CollectionMismatchError
from entrepot.metadata import name_fault
from entrepot.records import StoredRecord
from entrepot_qdrant.names import as_point

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from entrepot.metadata import Metadata, Scalar
    from entrepot_qdrant.layouts import Condition
    from entrepot_qdrant.mapping import CollectionMapping, Path, ValueKind

_PLAIN: Final = re.compile(r"[A-Za-z0-9_-]+")
_INSTANT: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?(Z|[+-]\d\d:\d\d)", re.ASCII)
_WHOLE: Final = re.compile(r"0|-?[1-9][0-9]{0,18}")
_INT64: Final = 2**63
NESTED: Final = ("{", "[")
"""How the JSON texts of objects and lists begin."""


def path_text(path: Path) -> str | None:
    """Return a path as Qdrant writes it, None if it cannot: the one place where names of others are quoted (F10)."""
    if any('"' in part or not part for part in path):
        return None
    return ".".join(part if _PLAIN.fullmatch(part) else f'"{part}"' for part in path)


def instant(text: str) -> datetime | None:
    """Return the instant that a text is by RFC 3339, with an offset and at most six fractional digits."""
    if not _INSTANT.fullmatch(text):
        return None
    try:
        return datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def metadata_of(payload: Mapping[str, Any], mapping: CollectionMapping) -> Metadata:
    """Return the metadata of a payload."""
    held: object = payload if mapping.metadata is None else _at(payload, mapping.metadata)
    found: dict[str, Any] = dict(cast("dict[str, Any]", held)) if isinstance(held, dict) else {}
    if mapping.metadata is None:
        for name in mapping.taken:
            found.pop(name, None)
    found |= {key: _at(payload, path) for key, path in mapping.fields.items()}
    metadata: dict[str, Any] = {}
    for key, value in found.items():
        if name_fault(key) is None:
            read = _value(value, mapping.kinds.get(key))
            if read is not None:
                metadata[key] = read
    return metadata


def _at(payload: Mapping[str, Any], path: Path) -> Any:
    value: Any = payload
    for part in path:
        value = cast("dict[str, Any]", value).get(part) if isinstance(value, dict) else None
    return value


def _value(value: object, kind: ValueKind | None) -> Any:
    if not isinstance(value, list):
        return _scalar(value, kind)
    scalars = (_scalar(item, kind) for item in cast("list[object]", value))
    return [scalar for scalar in scalars if scalar is not None]


def _scalar(value: Any, kind: ValueKind | None) -> Scalar | None:
    if isinstance(value, str):
        read = instant(value) if kind == "datetime" else None
        return value if read is None else read
    if isinstance(value, bool | None):
        return value
    if isinstance(value, int):
        return value if -_INT64 <= value < _INT64 else float(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


class MappedLayout(NamedTuple):
    """Where documents lie in the points of other software.

    Attributes:
        collection: The name of the collection.
        mapping: What holds what.
        dense: The name of the vectors.
        unit: Whether vectors are returned with norm 1.
    """

    collection: str
    mapping: CollectionMapping
    dense: str | None
    unit: bool

    @property
    def documents(self) -> Condition | None:
        """Points with an id, where it stands in the payload."""
        if self.mapping.id is None:
            return None
        field = models.PayloadField(key=cast("str", path_text(self.mapping.id)))
        return models.Filter(must_not=[models.IsEmptyCondition(is_empty=field)])

    def among(self, ids: Sequence[str]) -> Condition:
        """Return the condition of documents with one of these ids; what no id can be is left out."""
        if self.mapping.id is None:
            return models.HasIdCondition(
                has_id=[point for name in ids if (point := as_point(name)) is not None]
            )
        key = cast("str", path_text(self.mapping.id))
        ways: list[Any] = [models.FieldCondition(key=key, match=models.MatchAny(any=list(ids)))]
        numbers = [number for name in ids if (number := _whole(name)) is not None]
        if numbers:
            ways.append(models.FieldCondition(key=key, match=models.MatchAny(any=numbers)))
        return models.Filter(should=ways)

    def wanted(self, include: Sequence[str], *more: str) -> list[str] | bool:
        """Return the fields to ask for: all of them, if the payload is the metadata."""
        paths: list[Path] = [] if self.mapping.id is None else [self.mapping.id]
        if "text" in include and self.mapping.text is not None:
            paths.append(self.mapping.text)
        if "metadata" in include:
            if self.mapping.metadata is None:
                return True
            paths += [self.mapping.metadata, *self.mapping.fields.values()]
        return [*dict.fromkeys([*(path[0] for path in paths), *more])] or False

    def record(self, point: Any, include: Sequence[str]) -> StoredRecord:
        """Return the document of a point.

        Raises:
            CollectionMismatchError: Its id is none (D1).
        """
        payload = cast("dict[str, Any]", point.payload or {})
        text = None
        if self.mapping.text is not None and "text" in include:
            held = _at(payload, self.mapping.text)
            text = held if isinstance(held, str) else None
        return StoredRecord(
            self._id(point, payload),
            text,
            metadata_of(payload, self.mapping) if "metadata" in include else None,
            self.vector(point) if "vector" in include else None,
        )

    def _id(self, point: Any, payload: Mapping[str, Any]) -> str:
        if self.mapping.id is None:
            return str(point.id)
        held = _at(payload, self.mapping.id)
        if isinstance(held, int) and not isinstance(held, bool):
            return str(held)
        fault = f"is {type(held).__name__}, not a str" if not isinstance(held, str) else name_fault(held)
        if fault is not None:
            msg = f"an id of the collection {self.collection!r} {fault}"
            raise CollectionMismatchError(msg, hint="name another field as id, or none for the ids of points")
        return cast("str", held)

    def vector(self, point: Any) -> NDArray[np.float32] | None:
        """Return the vector of a point, with norm 1 under the cosine (D9); None if it has none."""
        held: Any = point.vector
        if self.dense is not None:
            held = cast("dict[str, Any]", held or {}).get(self.dense)
        if not isinstance(held, list):
            return None
        exact = np.asarray(held, dtype=np.float64)
        norm = float(np.linalg.norm(exact)) if self.unit else 0.0
        return (exact / norm if norm else exact).astype(np.float32)


def _whole(name: str) -> int | None:
    number = int(name) if _WHOLE.fullmatch(name) else _INT64
    return number if -_INT64 <= number < _INT64 else None
