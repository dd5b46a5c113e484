"""What a `mapping` says of a table that other software made: which column holds what (D5). Pure functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, cast

from entrepot.errors import ConfigurationError
from entrepot.metadata import name_fault
from entrepot.urls import check_names

if TYPE_CHECKING:
    from collections.abc import Mapping

Fixed: TypeAlias = str | int | bool
"""What a column can be held to by ``only``."""

_NAMES: Final = ("id", "text", "vector", "metadata", "columns", "only")
_HINT: Final = (
    "such as mapping={'id': 'id', 'text': 'content', 'vector': 'embedding', 'metadata': 'metadata'}"
)
_MAX_COLUMN_BYTES: Final = 63


class TableMapping(NamedTuple):
    """Which columns of a table or view hold documents.

    Attributes:
        id: The column of ids; they must be unique among the rows that are read.
        text: The column of texts, or None if there is none.
        vector: The column of vectors, of pgvector's type ``vector`` or ``halfvec``.
        metadata: A column of type ``json`` or ``jsonb`` whose object is metadata, or None.
        columns: Metadata keys that have a column of their own, with the column of each; they stand before
            keys of the same name in `metadata`.
        only: Columns and the value that each must have: rows with others are no documents.
    """

    id: str
    text: str | None
    vector: str
    metadata: str | None
    columns: dict[str, str]
    only: dict[str, Fixed]

    @property
    def names(self) -> list[str]:
        """All columns that are named."""
        named = [self.id, self.text, self.vector, self.metadata, *self.columns.values(), *self.only]
        return list(dict.fromkeys(name for name in named if name is not None))


def table_mapping(given: Mapping[str, Any]) -> TableMapping:
    """Return what a mapping says, checked.

    Args:
        given: ``id`` ("id" unless given), ``text``, ``vector`` ("embedding" unless given), ``metadata``,
            ``columns`` (a dict of metadata keys and columns, or a list of columns that are their own keys)
            and ``only`` (a dict of columns and values).

    Raises:
        ConfigurationError: It says something else, or the same twice.
    """
    asked: Any = given
    if not isinstance(asked, dict):
        msg = f"mapping must be a dict, not {type(asked).__name__}"
        raise ConfigurationError(msg, hint=_HINT)
    check_names([str(name) for name in given], _NAMES, "mapping")
    columns: Any = given.get("columns") or {}
    if isinstance(columns, list | tuple):
        columns = {name: name for name in cast("list[Any]", columns)}
    only: Any = given.get("only") or {}
    for name, value in {"columns": columns, "only": only}.items():
        if not isinstance(value, dict):
            msg = f"mapping: {name} must be a dict, not {type(value).__name__}"
            raise ConfigurationError(msg, hint=_HINT)
    for key in cast("dict[Any, Any]", columns):
        _check("a metadata key", key, None)
    for column, value in cast("dict[Any, Any]", only).items():
        if type(value) not in (str, int, bool):
            msg = f"mapping: only must hold {column!r} to a str, int or bool, not {type(value).__name__}"
            raise ConfigurationError(msg, hint=_HINT)
    mapping = TableMapping(
        id=given.get("id", "id"),
        text=given.get("text"),
        vector=given.get("vector", "embedding"),
        metadata=given.get("metadata"),
        columns=columns,
        only=only,
    )
    for column in (mapping.id, mapping.vector, *mapping.names):
        _check("a column", column, _MAX_COLUMN_BYTES)
    return mapping


def check_table(table: str) -> None:
    """Refuse a name that no table can have.

    Raises:
        ConfigurationError: It is longer than PostgreSQL takes.
    """
    _check("the table", table, _MAX_COLUMN_BYTES)


def _check(what: str, name: object, most: int | None) -> None:
    fault = f"must be a str, not {type(name).__name__}" if not isinstance(name, str) else name_fault(name)
    if fault is None and most is not None and len(cast("str", name).encode()) > most:
        fault = f"has more than {most} bytes, which no name in PostgreSQL has"
    if fault is not None:
        msg = f"mapping: the name of {what} {fault}"
        raise ConfigurationError(msg, hint=_HINT)
