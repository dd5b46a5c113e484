"""A small model of what the engine does with conditions, beside the plugin."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from entrepot.metadata import encode_metadata
from entrepot_cassandra.fields import indexed, indexed_columns

if TYPE_CHECKING:
    from collections.abc import Mapping

    from entrepot_cassandra.filters import Ways


def row_of(metadata: Mapping[str, Any], keys: Mapping[str, int], slots: int) -> dict[str, Any]:
    """Return the columns that a document's metadata become."""
    values = indexed(dict(metadata), encode_metadata(dict(metadata)), keys, slots)
    return dict(zip(indexed_columns(slots), values, strict=True))


def holds(ways: Ways, row: Mapping[str, Any]) -> bool:
    """Whether a row satisfies one of the conjunctions."""
    return any(
        all(token in row["t"] for token in way.tokens)
        and all(
            (low is None or row[column] >= low) and (high is None or row[column] <= high)
            for column, (low, high) in way.bounds
        )
        for way in ways
    )
