"""What a `mapping` says of an index that other software made: which field holds what (D5). Pure functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, cast

from entrepot.errors import ConfigurationError
from entrepot.metadata import name_fault
from entrepot.urls import check_names

if TYPE_CHECKING:
    from collections.abc import Mapping

Fixed: TypeAlias = str | int | bool
"""What a field can be held to by ``only``."""

_NAMES: Final = ("text", "vector", "metadata", "fields", "only")
_HINT: Final = "such as mapping={'text': 'text', 'vector': 'vector', 'metadata': 'metadata'}"


class IndexMapping(NamedTuple):
    """Which fields of an index hold documents; a path has dots between the names of objects.

    Attributes:
        text: The field of texts, or None if there is none.
        vector: The field of vectors, a dense_vector of floats.
        metadata: The object whose fields are metadata, or None.
        fields: Metadata keys that have a field elsewhere, with its path; they stand before keys of `metadata`.
        only: Fields and the value that each must have: what has others is no document.
    """

    text: str | None
    vector: str
    metadata: str | None
    fields: dict[str, str]
    only: dict[str, Fixed]

    @property
    def paths(self) -> list[str]:
        """All paths that metadata are read from."""
        named = [self.metadata, *self.fields.values()]
        return [path for path in named if path is not None]


def index_mapping(given: Mapping[str, Any]) -> IndexMapping:
    """Return what a mapping says, checked.

    Args:
        given: ``text``, ``vector`` ("embedding" unless given), ``metadata``, ``fields`` (a dict of metadata keys and
            paths, or a list of paths that are their own keys) and ``only`` (a dict of fields and values).

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
    only: Any = given.get("only") or {}
    for name, value in {"fields": fields, "only": only}.items():
        if not isinstance(value, dict):
            msg = f"mapping: {name} must be a dict, not {type(value).__name__}"
            raise ConfigurationError(msg, hint=_HINT)
    for field, value in cast("dict[Any, Any]", only).items():
        if type(value) not in (str, int, bool):
            msg = f"mapping: only must hold {field!r} to a str, int or bool, not {type(value).__name__}"
            raise ConfigurationError(msg, hint=_HINT)
    mapping = IndexMapping(
        given.get("text"), given.get("vector", "embedding"), given.get("metadata"), fields, only
    )
    for name in (mapping.vector, *mapping.fields, *mapping.fields.values(), *mapping.only):
        _check(name)
    for given_name in (mapping.text, mapping.metadata):
        if given_name is not None:
            _check(given_name)
    return mapping


def _check(name: object) -> None:
    fault = f"must be a str, not {type(name).__name__}" if not isinstance(name, str) else name_fault(name)
    if fault is None and ("*" in cast("str", name) or "," in cast("str", name)):
        fault = "is a pattern"
    if fault is not None:
        msg = f"mapping: the name of a field or key {fault}"
        raise ConfigurationError(msg, hint=_HINT)
