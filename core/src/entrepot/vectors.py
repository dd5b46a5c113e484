"""Vectors on their way in: shape, finiteness, and the unit length that scores rely on (D9)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from entrepot.capabilities import Metric
from entrepot.errors import VectorError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import ArrayLike, NDArray

NORM_TOLERANCE: Final = 1e-3
"""How far from 1 the norm of a vector may lie under the dot metric (D9)."""

_ROWS_AT_ONCE: Final = 512
"""Rows that are widened to float64 at once: they stay in the processor's cache."""


def as_vector(given: ArrayLike, dimension: int | None, name: str) -> NDArray[np.float32]:
    """Return one vector as finite float32 of shape (d,), not yet normalised.

    Raises:
        VectorError: Not numbers, another shape, another length than `dimension`, or not finite.
    """
    try:
        array = np.asarray(given)
    except ValueError as error:
        msg = f"{name} is no flat list of numbers"
        raise VectorError(msg) from error
    if array.dtype.kind not in "fiu" or array.ndim != 1 or array.size == 0:
        msg = f"{name} must be numbers of shape (d,), not {array.dtype} of shape {array.shape}"
        raise VectorError(msg)
    if dimension is not None and array.size != dimension:
        msg = f"{name} has {array.size} components, the collection has {dimension}"
        raise VectorError(msg, hint="the query and all documents of a collection need one embedding model")
    with np.errstate(over="ignore"):
        vector = array.astype(np.float32, copy=False)
    if not np.isfinite(vector).all():
        msg = f"{name} has a component that is not finite in float32"
        raise VectorError(msg)
    return vector


def stack_vectors(
    given: Sequence[ArrayLike], dimension: int | None, name: Callable[[int], str]
) -> NDArray[np.float32]:
    """Return vectors as one float32 matrix of shape (n, d), each checked as by `as_vector`."""
    first = given[0]
    if dimension is None:
        dimension = as_vector(first, None, name(0)).size
    if all(type(vector) is np.ndarray and vector.dtype == np.float32 for vector in given):
        try:
            matrix: NDArray[np.float32] = np.stack([np.asarray(vector) for vector in given])
        except ValueError:
            pass
        else:
            if matrix.shape[1:] == (dimension,) and np.isfinite(matrix).all():
                return matrix
    return np.stack([as_vector(vector, dimension, name(row)) for row, vector in enumerate(given)])


def normalised(
    metric: Metric, matrix: NDArray[np.float32], name: Callable[[int], str]
) -> NDArray[np.float32]:
    """Return vectors (n, d) as they are stored: of unit length under cosine and dot (D9).

    Lengths are computed in float64 and the quotient is rounded once to float32.

    Raises:
        VectorError: A zero vector, under any metric; under dot, a norm not within 1e-3 of 1.
    """
    unit = matrix if metric is Metric.EUCLIDEAN else np.empty_like(matrix)
    for start in range(0, len(matrix), _ROWS_AT_ONCE):
        part = matrix[start : start + _ROWS_AT_ONCE]
        wide = part.astype(np.float64)
        norms = np.sqrt(np.einsum("ij,ij->i", wide, wide))
        if not norms.all():
            msg = f"{name(start + int(np.flatnonzero(norms == 0.0)[0]))} is zero, which has no direction"
            raise VectorError(msg, hint="empty texts embed to zero vectors; give the document a text")
        if metric is Metric.DOT:
            _check_unit(norms, start, name)
        if metric is not Metric.EUCLIDEAN:
            wide /= norms[:, None]
            unit[start : start + _ROWS_AT_ONCE] = wide
    return unit


def _check_unit(norms: NDArray[np.float64], start: int, name: Callable[[int], str]) -> None:
    off = np.flatnonzero(np.abs(norms - 1.0) > NORM_TOLERANCE)
    if off.size:
        row = int(off[0])
        msg = f"{name(start + row)} has norm {norms[row]:.6g}; the dot metric takes unit vectors"
        raise VectorError(msg, hint="normalise the vectors, or use the cosine metric")
