"""Choosing the best of many approximate values without moving them all about.

Values are folded: of `FOLDS` that lie a fixed distance apart only the largest is kept. The k
largest of these maxima are values themselves, so the k-th of them is a bound that at least k values
reach, and a value that reaches it lies in a group whose maximum does. That reads all values once;
a partition would move them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

FOLDS: Final = 64
_LOWEST: Final = float(np.finfo(np.float32).min)


def folded(values: NDArray[np.floating]) -> NDArray[np.floating]:
    """Return the maxima of the groups of values (n,) or (n, q), shape (n // FOLDS,) or (n // FOLDS, q)."""
    groups = len(values) // FOLDS
    maxima: NDArray[np.floating] = (
        values[: groups * FOLDS].reshape(FOLDS, groups, *values.shape[1:]).max(axis=0)
    )
    return maxima


def candidates(
    values: NDArray[np.floating], k: int, margin: float, maxima: NDArray[np.floating] | None = None
) -> NDArray[np.intp]:
    """Return the places, ascending, of all values (n,) within `margin` of the k-th largest, or better.

    Places of minus infinity are never among them. `maxima` is `folded(values)`, if it is known.
    """
    size = values.size
    groups = size // FOLDS
    if k >= size:
        return np.flatnonzero(values > -np.inf)
    if groups <= 2 * k:
        cut = float(np.partition(values, size - k)[size - k])
        return np.flatnonzero(values >= max(cut - margin, _LOWEST))
    if maxima is None:
        maxima = folded(values)
    cut = max(float(np.partition(maxima, groups - k)[groups - k]) - margin, _LOWEST)
    hot = np.flatnonzero(maxima >= cut)
    inside = (np.arange(0, groups * FOLDS, groups)[:, None] + hot).ravel()
    places = np.concatenate([inside, np.arange(groups * FOLDS, size)])
    return np.sort(places[values[places] >= cut])
