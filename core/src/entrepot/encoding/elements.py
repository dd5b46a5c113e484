"""Lists: the least and the greatest element stand for all in one-sided comparisons."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from entrepot.filters.values import kind_of
from entrepot.metadata import elements

if TYPE_CHECKING:
    from collections.abc import Mapping

    from entrepot.filters.values import Kind, Scalar
    from entrepot.metadata import MetadataValue


def extremes(metadata: Mapping[str, MetadataValue]) -> dict[tuple[str, Kind], tuple[Scalar, Scalar]]:
    """Return the least and the greatest element of every key that ranges can ask about.

    "Some element is below v" is "the least is below v", and likewise for ``<=``, ``>``, ``>=`` (F2). Two
    bounds on one key stay two conditions: one on the least, one on the greatest. A scalar is its own least
    and greatest. Keys without an element are left out (F1), and so are booleans, which have no ranges (F5).
    """
    result: dict[tuple[str, Kind], tuple[Scalar, Scalar]] = {}
    for key, value in metadata.items():
        values = elements(value)
        if values and (kind := kind_of(values[0])) != "bool":
            comparable = cast("list[Any]", values)  # of one kind (D3)
            result[key, kind] = (min(comparable), max(comparable))
    return result
