"""What a `mapping` says of a collection that other software made: which field holds what (D5). Pure functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias, cast

from entrepot.errors import ConfigurationError
from entrepot.metadata import name_fault
from entrepot.urls import check_names

if TYPE_CHECKING:
    from collections.abc import Mapping

Path: TypeAlias = tuple[str, ...]
"""The names of objects within objects, from the payload down to a value."""
ValueKind: TypeAlias = Literal["int", "datetime"]

_NAMES: Final = ("id", "text", "vector", "metadata", "fields", "kinds")
_KINDS: Final = ("int", "datetime")
_HINT: Final = "such as mapping={'text': 'page_content', 'metadata': 'metadata'}"


class CollectionMapping(NamedTuple):
    """Which fields of payloads hold documents.

    Attributes:
        id: The field of ids, which must be unique; None where the ids of points are those of documents.
        text: The field of texts; None if there is none.
        vector: The name of the vectors; None for those without a name, or the only ones.
        metadata: The field whose object is metadata; None if the payload is, without id and text.
        fields: Metadata keys that have a field of their own; they stand before keys of the same name in
            `metadata`.
        kinds: What the values of metadata keys are, where JSON does not tell: ``"datetime"`` for RFC 3339
            texts that are instants, ``"int"`` for numbers that are integers, none of 2^53 or more.
    """

    id: Path | None
    text: Path | None
    vector: str | None
    metadata: Path | None
    fields: dict[str, Path]
    kinds: dict[str, ValueKind]

    @property
    def taken(self) -> frozenset[str]:
        """The keys of the payload that hold the id and the text."""
        return frozenset(path[0] for path in (self.id, self.text) if path is not None and len(path) == 1)

    def path(self, key: str) -> Path | None:
        """Return where the value of a metadata key stands; None if it has no place."""
        if key in self.fields:
            return self.fields[key]
        if self.metadata is not None:
            return (*self.metadata, key)
        return None if key in self.taken else (key,)


def collection_mapping(given: Mapping[str, Any]) -> CollectionMapping:
    """Return what a mapping says, checked.

    Args:
        given: ``id``, ``text``, ``vector``, ``metadata``, ``fields`` (a dict of metadata keys and fields, or a
            list of fields that are their own keys) and ``kinds`` (a dict of metadata keys and ``"int"`` or
            ``"datetime"``). A field within objects is a list of names, such as ``["metadata", "year"]``.

    Raises:
        ConfigurationError: It says something else.
    """
    asked: Any = given
    if not isinstance(asked, dict):
        msg = f"mapping must be a dict, not {type(asked).__name__}"
        raise ConfigurationError(msg, hint=_HINT)
    check_names([str(name) for name in given], _NAMES, "mapping")
    fields: Any = given.get("fields") or {}
    if isinstance(fields, list | tuple):
        fields = {name: name for name in cast("list[Any]", fields)}
    kinds: Any = given.get("kinds") or {}
    for name, value in {"fields": fields, "kinds": kinds}.items():
        if not isinstance(value, dict):
            msg = f"mapping: {name} must be a dict, not {type(value).__name__}"
            raise ConfigurationError(msg, hint=_HINT)
    for key in (*cast("dict[Any, Any]", fields), *cast("dict[Any, Any]", kinds)):
        _check("a metadata key", key)
    for key, kind in cast("dict[str, Any]", kinds).items():
        if kind not in _KINDS:
            msg = f"mapping: the kind of {key!r} must be one of {', '.join(_KINDS)}, not {kind!r}"
            raise ConfigurationError(msg, hint="strings, booleans and other numbers need no kind")
    vector = given.get("vector")
    if vector is not None and not isinstance(vector, str):
        msg = f"mapping: the name of the vectors must be a str, not {type(vector).__name__}"
        raise ConfigurationError(msg, hint=_HINT)
    return CollectionMapping(
        id=_path(given.get("id")),
        text=_path(given.get("text")),
        vector=vector,
        metadata=_path(given.get("metadata")),
        fields={key: _whole(field) for key, field in cast("dict[str, Any]", fields).items()},
        kinds=kinds,
    )


def _path(field: object) -> Path | None:
    return None if field is None else _whole(field)


def _whole(field: object) -> Path:
    parts = cast("list[object]", field) if isinstance(field, list | tuple) else [field]
    for part in parts or [""]:
        _check("a field", part)
        if '"' in cast("str", part):
            msg = "mapping: the name of a field has a double quote, which no path in Qdrant can have"
            raise ConfigurationError(msg, hint="what cannot be named cannot be asked for: leave it out")
    return tuple(cast("list[str]", parts))


def _check(what: str, name: object) -> None:
    fault = f"must be a str, not {type(name).__name__}" if not isinstance(name, str) else name_fault(name)
    if fault is not None:
        msg = f"mapping: the name of {what} {fault}"
        raise ConfigurationError(msg, hint=_HINT)
