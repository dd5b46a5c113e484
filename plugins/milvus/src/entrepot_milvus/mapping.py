"""What a `mapping` says of a collection that other software made: which field holds what (D5). Pure functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from entrepot.errors import ConfigurationError
from entrepot.metadata import name_fault
from entrepot.urls import check_names

if TYPE_CHECKING:
    from collections.abc import Mapping

_NAMES: Final = ("id", "text", "vector", "metadata", "fields")
_HINT: Final = (
    "such as mapping={'id': 'pk', 'text': 'text', 'metadata': 'meta', 'fields': {'year': 'published'}}"
)


class CollectionMapping(NamedTuple):
    """Which fields hold documents.

    Attributes:
        id: The field of ids, which must be unique; None for the primary key.
        text: The field of texts; None if there is none.
        vector: The field of vectors; None for the only one.
        metadata: The JSON field whose object is metadata; None for the dynamic field and every scalar field that
            is not named otherwise.
        fields: Metadata keys that have a field of their own; they stand before keys of the same name in
            `metadata`.
    """

    id: str | None
    text: str | None
    vector: str | None
    metadata: str | None
    fields: dict[str, str]


def collection_mapping(given: Mapping[str, Any]) -> CollectionMapping:
    """Return what a mapping says, checked.

    Args:
        given: ``id``, ``text``, ``vector``, ``metadata``, and ``fields``: a dict of metadata keys and fields, or a
            list of fields that are their own keys.

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
    if not isinstance(fields, dict):
        msg = f"mapping: fields must be a dict, not {type(fields).__name__}"
        raise ConfigurationError(msg, hint=_HINT)
    for key, field in cast("dict[object, object]", fields).items():
        _check("a metadata key", key)
        _check("a field", field)
    for name in _NAMES[:-1]:
        if given.get(name) is not None:
            _check("a field", given[name])
    names = {name: cast("str | None", given.get(name)) for name in _NAMES[:-1]}
    return CollectionMapping(names["id"], names["text"], names["vector"], names["metadata"], fields)


def _check(what: str, name: object) -> None:
    fault = f"must be a str, not {type(name).__name__}" if not isinstance(name, str) else name_fault(name)
    if fault is not None:
        msg = f"mapping: the name of {what} {fault}"
        raise ConfigurationError(msg, hint=_HINT)
