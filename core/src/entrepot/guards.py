"""What a guarded write checks: that it touches and makes only documents inside a filter (T2).

Pure functions, used by the core where it reads before it writes, and by plugins that check and
write in one step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from entrepot.errors import OutsideViewError
from entrepot.filters import And, FilterOp, Leaf, evaluate

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from entrepot.filters import Normal
    from entrepot.metadata import Metadata
    from entrepot.records import StoredRecord


def refuse_outside(stored: Iterable[StoredRecord], inside: Normal) -> None:
    """Refuse a write if one of the stored documents that it would replace or delete lies outside.

    Raises:
        OutsideViewError: Names the id and nothing of the document.
    """
    for record in stored:
        if not evaluate(inside, record.metadata or {}):
            msg = f"the id {record.id!r} belongs to a document outside of the view"
            raise OutsideViewError(msg, hint="choose another id")


def records_inside(stored: Iterable[StoredRecord], inside: Normal) -> list[StoredRecord]:
    """Return the stored documents that satisfy the filter."""
    return [record for record in stored if evaluate(inside, record.metadata or {})]


def equalities(inside: Normal) -> list[Leaf]:
    """Return the top-level conjunctive equality terms of a filter: what a view stamps (T2)."""
    parts = inside.parts if isinstance(inside, And) else (inside,)
    return [part for part in parts if isinstance(part, Leaf) and part.op is FilterOp.EQ and not part.negated]


def fits(metadata: Mapping[str, Any], inside: Normal) -> bool:
    """Whether a document may be stored through a view: the filter holds, its equalities by exact scalars.

    A list that holds the value would satisfy other views too, so it is not that value (T2).
    """
    return evaluate(inside, metadata) and not any(
        isinstance(metadata.get(leaf.key), list) for leaf in equalities(inside)
    )


def changed(metadata: Mapping[str, Any], changes: Mapping[str, Any], unset: Sequence[str]) -> Metadata:
    """Return metadata with some keys set and some removed (D10)."""
    result: Metadata = {**metadata, **changes}
    for key in unset:
        result.pop(key, None)
    return result


def changed_inside(
    stored: Iterable[StoredRecord], changes: Mapping[str, Any], unset: Sequence[str], inside: Normal
) -> set[str]:
    """Return the ids of stored documents inside the filter; an update would change them and no others.

    Raises:
        OutsideViewError: The update would move one of them outside.
    """
    names: set[str] = set()
    for record in stored:
        metadata = record.metadata or {}
        if not evaluate(inside, metadata):
            continue
        if not fits(changed(metadata, changes, unset), inside):
            msg = f"the update would move document {record.id!r} out of the view"
            raise OutsideViewError(msg, hint="leave the keys of the view's filter as they are")
        names.add(record.id)
    return names
