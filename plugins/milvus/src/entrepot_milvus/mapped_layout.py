"""From rows that other software wrote to documents, by a mapping. Pure functions.

Neither JSON nor the engine has documents' flat metadata, so: an object, and a list within a list, are the strings of
their JSON texts, nulls in lists are left out, numbers beyond 64 bits are floats, and NaN and infinity are absent.
"""

from __future__ import annotations

import json
import math
import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

import numpy as np
from pymilvus import DataType  # type: ignore[import-untyped]

from entrepot.capabilities import Metric
from entrepot.errors import CollectionMismatchError
from entrepot.metadata import name_fault
from entrepot.records import CollectionInfo, StoredRecord
from entrepot_milvus.expressions import literal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from entrepot.metadata import Metadata
    from entrepot_milvus.mapping import CollectionMapping

NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_WHOLE: Final = re.compile(r"0|-?[1-9][0-9]{0,18}")
_METRICS: Final = {"COSINE": Metric.COSINE, "IP": Metric.DOT, "L2": Metric.EUCLIDEAN}
_INT64: Final = 2**63
DYNAMIC: Final = "$meta"
"""The engine's name of the dynamic field."""
TYPES: Final[dict[Any, str]] = {
    DataType.VARCHAR: "str",
    DataType.BOOL: "bool",
    DataType.INT8: "int8",
    DataType.INT16: "int16",
    DataType.INT32: "int32",
    DataType.INT64: "int64",
    DataType.FLOAT: "float",
    DataType.DOUBLE: "double",
    DataType.ARRAY: "array",
    DataType.JSON: "json",
}
"""The fields that can hold metadata."""


class Field(NamedTuple):
    """A field of a collection: its name, the type of its values, and whether it may hold null."""

    name: str
    type: str
    nullable: bool = False


class MappedLayout(NamedTuple):
    """Where documents lie in a collection of other software.

    Attributes:
        info: The collection.
        key: The primary key.
        id: The field of ids.
        text: The field of texts; None if there is none.
        vector: The field of vectors.
        metadata: The JSON field or the dynamic field that holds metadata; None if there is none.
        fields: The fields of metadata keys.
        known: The names of all fields but the dynamic one.
        index_type: The type of the vectors' index.
        lists: How many lists an index of inverted lists has; 0 for others.
    """

    info: CollectionInfo
    key: Field
    id: Field
    text: str | None
    vector: str
    metadata: str | None
    fields: dict[str, Field]
    known: frozenset[str]
    index_type: str
    lists: int

    def either_side(self, word: str) -> str:
        """Return what holds for every row (``or``), or for none (``and``): primary keys are never null."""
        least = literal("" if self.key.type == "str" else 0)
        return f"({self.key.name} >= {least} {word} {self.key.name} < {least})"

    def among(self, ids: Sequence[str]) -> str | None:
        """Return the condition of documents with one of these ids; None if no document can have one."""
        values: list[str | int] = list(ids)
        if self.id.type != "str":
            values = [number for name in ids if (number := whole(name)) is not None]
        return f"{self.id.name} in [{', '.join(map(literal, values))}]" if values else None

    def wanted(self, include: Sequence[str]) -> list[str]:
        """Return the fields to ask for."""
        names = [self.key.name, self.id.name]
        if "text" in include and self.text is not None:
            names.append(self.text)
        if "metadata" in include:
            names += [self.metadata or self.key.name, *(field.name for field in self.fields.values())]
        if "vector" in include:
            names.append(self.vector)
        return list(dict.fromkeys(names))

    def record(self, row: Mapping[str, Any], include: Sequence[str]) -> StoredRecord:
        """Return the document of a row.

        Raises:
            CollectionMismatchError: Its id is none (D1).
        """
        text = row.get(self.text) if self.text is not None and "text" in include else None
        return StoredRecord(
            self.name(row),
            text if isinstance(text, str) else None,
            self._metadata(row) if "metadata" in include else None,
            self.vector_of(row) if "vector" in include else None,
        )

    def name(self, row: Mapping[str, Any]) -> str:
        """Return the id of a row."""
        held = row[self.id.name]
        fault = name_fault(held) if isinstance(held, str) else None
        if fault is not None or held is None:
            msg = f"an id of the collection {self.info.name!r} {fault or 'is null'}"
            raise CollectionMismatchError(msg, hint="name another field as id, or none for the primary key")
        return str(held)

    def vector_of(self, row: Mapping[str, Any]) -> NDArray[np.float32]:
        """Return the vector of a row, with norm 1 under the cosine (D9)."""
        exact = np.asarray(row[self.vector], dtype=np.float64)
        norm = float(np.linalg.norm(exact)) if self.info.metric is Metric.COSINE else 0.0
        return (exact / norm if norm else exact).astype(np.float32)

    def _metadata(self, row: Mapping[str, Any]) -> Metadata:
        found: dict[str, Any] = {}
        if self.metadata == DYNAMIC:
            found = {key: value for key, value in row.items() if key not in self.known}
        elif self.metadata is not None:
            held = row.get(self.metadata)
            held = json.loads(held) if isinstance(held, str | bytes) else held
            found = dict(cast("dict[str, Any]", held)) if isinstance(held, dict) else {}
        found |= {key: row.get(field.name) for key, field in self.fields.items()}
        values = ((key, _value(value)) for key, value in found.items() if name_fault(key) is None)
        return {key: value for key, value in values if value is not None}


def whole(name: str) -> int | None:
    """Return the integer of 64 bits that an id is; None if it is none."""
    number = int(name) if _WHOLE.fullmatch(name) else _INT64
    return number if -_INT64 < number < _INT64 else None


def _value(value: Any) -> Any:
    if isinstance(value, str | bytes | dict) or not hasattr(value, "__iter__"):
        return _scalar(value)
    return [scalar for item in value if (scalar := _scalar(item)) is not None]


def _scalar(value: Any) -> Any:
    if isinstance(value, str | bool | None):
        return value
    if isinstance(value, int):
        return value if -_INT64 <= value < _INT64 else float(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


# --- looking at a collection ------------------------------------------------------------------------------


def vector_field(found: Mapping[str, Any], collection: str, mapping: CollectionMapping) -> tuple[str, int]:
    """Return the field of vectors and their dimension.

    Raises:
        CollectionMismatchError: There is none, or there are several and the mapping names none.
    """
    vectors = {
        field["name"]: int(field["params"]["dim"])
        for field in found["fields"]
        if field["type"] == DataType.FLOAT_VECTOR
    }
    name = mapping.vector or (next(iter(vectors)) if len(vectors) == 1 else None)
    if name is None or name not in vectors:
        what = "not one field of float vectors alone" if name is None else f"no float vectors {name!r}"
        msg = f"the collection {collection!r} has {what}"
        raise CollectionMismatchError(msg, hint=f"it has {', '.join(map(repr, sorted(vectors))) or 'none'}")
    return name, vectors[name]


def layout_of(
    found: Mapping[str, Any], index: Mapping[str, Any], collection: str, mapping: CollectionMapping
) -> MappedLayout:
    """Return a collection as a mapping has it read.

    Args:
        found: The driver's description of the collection.
        index: The driver's description of the vectors' index.
        collection: The collection's name.
        mapping: What the user says.

    Raises:
        CollectionMismatchError: It lacks a field, or has a metric that this library does not know.
    """
    vector, dimension = vector_field(found, collection, mapping)
    metric = _METRICS.get(str(index.get("metric_type")))
    if metric is None:
        msg = f"the vectors of the collection {collection!r} are compared by {index.get('metric_type')}"
        raise CollectionMismatchError(
            msg, hint="COSINE, IP and L2 are known; the native client searches others"
        )
    key = next(field["name"] for field in found["fields"] if field.get("is_primary"))
    known = {
        field["name"]: Field(field["name"], TYPES[field["type"]], bool(field.get("nullable")))
        for field in found["fields"]
        if field["type"] in TYPES and not field.get("is_dynamic") and NAME.fullmatch(field["name"])
    }

    def field(name: str, *types: str) -> Field:
        if name not in known or (types and known[name].type not in types):
            msg = f"the collection {collection!r} has no field {name!r} of the type {' or '.join(types or ('scalar',))}"
            raise CollectionMismatchError(msg, hint=f"such fields are {', '.join(map(repr, sorted(known)))}")
        return known[name]

    fields = {metadata_key: field(name) for metadata_key, name in mapping.fields.items()}
    metadata: str | None = mapping.metadata
    if metadata is not None:
        field(metadata, "json")
    else:
        metadata = DYNAMIC if found.get("enable_dynamic_field") else None
        named = {key, mapping.id, mapping.text, *(each.name for each in fields.values())}
        fields = {name: each for name, each in known.items() if name not in named} | fields
    return MappedLayout(
        info=CollectionInfo(name=collection, dimension=dimension, metric=metric),
        key=field(key, "str", "int64"),
        id=field(mapping.id or key, "str", "int64"),
        text=None if mapping.text is None else field(mapping.text, "str").name,
        vector=vector,
        metadata=metadata,
        fields=fields,
        known=frozenset(each["name"] for each in found["fields"]),
        index_type=str(index.get("index_type")),
        lists=int(cast("str", index.get("nlist") or 0)),
    )
