"""Vectors on their way in: shape, finiteness, and the unit length that scores rely on (D9)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from entrepot.capabilities import Metric
from entrepot.errors import VectorError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import ArrayLike, NDArray

    Matrix: TypeAlias = NDArray[np.float32]
    Name: TypeAlias = Callable[[int], str]
    """What to call the vector of a row in an error."""

NORM_TOLERANCE: Final = 1e-3
"""How far from 1 the norm of a vector may lie under the dot metric (D9)."""
_ROWS_AT_ONCE: Final = 512
"""Rows that are widened to float64 at once: they stay in the processor's cache."""


def as_vector(given: ArrayLike, dimension: int | None, name: str) -> Matrix:
    """Return one vector as finite float32 of shape (d,), not yet normalised.

    Raises:
        VectorError: Not numbers, another shape, another length than `dimension`, or not finite.
    """
    try:
        array: NDArray[Any] = np.asarray(given)
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


def as_query(metric: Metric, given: ArrayLike, dimension: int) -> Matrix:
    """Return a query vector (d,) as stored vectors are: checked, and normalised under cosine and dot (D9).

    Raises:
        VectorError: As `check_vectors`.
    """
    vector = as_vector(given, dimension, "the query vector")
    wide = vector.astype(np.float64)
    length = math.sqrt(float(np.dot(wide, wide)))
    if length == 0.0:
        raise _zero("the query vector")
    if metric is Metric.EUCLIDEAN:
        return vector
    if metric is Metric.DOT and abs(length - 1.0) > NORM_TOLERANCE:
        raise _not_unit("the query vector", length)
    return (wide / length).astype(np.float32)


def _zero(name: str) -> VectorError:
    msg = f"{name} is zero, which has no direction"
    return VectorError(msg, hint="empty texts embed to zero vectors; give the document a text")


def _not_unit(name: str, length: float) -> VectorError:
    msg = f"{name} has norm {length:.6g}; the dot metric takes unit vectors"
    return VectorError(msg, hint="normalise the vectors, or use the cosine metric")


def check_vectors(
    metric: Metric, given: Sequence[ArrayLike] | Matrix, dimension: int, name: Name
) -> NDArray[np.float64]:
    """Check vectors and return their lengths, float64 of shape (n,).

    Raises:
        VectorError: As `as_vector`; a zero vector, under any metric; under dot, a norm not within
            1e-3 of 1. The message names the vector.
    """
    norms = np.empty(len(given))
    for start in range(0, len(given), _ROWS_AT_ONCE):
        part = _stacked(given[start : start + _ROWS_AT_ONCE], dimension, name, start)
        wide = part.astype(np.float64)
        lengths = np.sqrt(np.einsum("ij,ij->i", wide, wide))
        norms[start : start + len(part)] = lengths
        if not np.isfinite(lengths).all():
            row = start + int(np.flatnonzero(~np.isfinite(lengths))[0])
            msg = f"{name(row)} has a component that is not finite in float32"
            raise VectorError(msg)
        if not lengths.all():
            raise _zero(name(start + int(np.flatnonzero(lengths == 0.0)[0])))
    if metric is Metric.DOT:
        off = np.flatnonzero(np.abs(norms - 1.0) > NORM_TOLERANCE)
        if off.size:
            raise _not_unit(name(int(off[0])), float(norms[off[0]]))
    return norms


def stored_vectors(
    metric: Metric, given: Sequence[ArrayLike] | Matrix, norms: NDArray[np.float64], dimension: int
) -> Matrix:
    """Return checked vectors as they are stored, float32 (n, d): of unit length under cosine and dot (D9).

    Lengths are computed in float64, and the quotient is rounded once to float32.
    """
    stored = np.empty((len(given), dimension), dtype=np.float32)
    for start in range(0, len(given), _ROWS_AT_ONCE):
        part = _stacked(given[start : start + _ROWS_AT_ONCE], dimension, str, start)
        if metric is Metric.EUCLIDEAN:
            stored[start : start + len(part)] = part
        else:
            stored[start : start + len(part)] = part / norms[start : start + len(part), None]
    return stored


def normalised(metric: Metric, matrix: Matrix, name: Name) -> Matrix:
    """Check vectors (n, d) and return them as they are stored; see `check_vectors` and `stored_vectors`."""
    norms = check_vectors(metric, matrix, matrix.shape[1], name)
    return stored_vectors(metric, matrix, norms, matrix.shape[1])


def _stacked(part: Sequence[ArrayLike] | Matrix, dimension: int, name: Name, start: int) -> Matrix:
    """Return some vectors as one float32 matrix (n, d), each checked for its shape and type."""
    if isinstance(part, np.ndarray):
        return part
    if all(type(vector) is np.ndarray for vector in part):
        # The common case at the speed of one copy: float32 arrays of the right length.
        arrays: list[NDArray[Any]] = list(map(np.asarray, part))
        if {array.ndim for array in arrays} == {1} and {len(array) for array in arrays} == {dimension}:
            flat = np.concatenate(arrays)
            if flat.dtype == np.float32:
                return flat.reshape(-1, dimension)
    return np.stack(
        [as_vector(vector, dimension, name(start + row)) for row, vector in enumerate(part)],
    )
