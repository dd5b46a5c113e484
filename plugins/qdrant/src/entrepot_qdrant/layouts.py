"""What reading must know of a collection: where the parts of documents lie in its points."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from qdrant_client import models

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from entrepot.records import StoredRecord

Condition: TypeAlias = (
    models.FieldCondition
    | models.NestedCondition
    | models.IsEmptyCondition
    | models.IsNullCondition
    | models.HasIdCondition
    | models.Filter
)


class Layout(Protocol):
    """Where documents lie in points."""

    @property
    def dense(self) -> str | None:
        """The name of the vectors; None for those without a name."""
        ...

    @property
    def documents(self) -> Condition | None:
        """Which points are documents; None for all."""
        ...

    def among(self, ids: Sequence[str]) -> Condition:
        """Return the condition of documents with one of these ids."""
        ...

    def wanted(self, include: Sequence[str], *more: str) -> list[str] | bool:
        """Return which fields of payloads are asked for; True for all."""
        ...

    def record(self, point: Any, include: Sequence[str]) -> StoredRecord:
        """Return the document of a point as the client gave it."""
        ...

    def vector(self, point: Any) -> NDArray[np.float32] | None:
        """Return the vector of a point, float32 of shape (d,)."""
        ...


def vectors_wanted(layout: Layout, *, given: bool) -> list[str] | bool:
    """Return what a request says of vectors, if they are to be given or not."""
    return given if layout.dense is None or not given else [layout.dense]
