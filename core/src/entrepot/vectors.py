"""Vectors on their way in: shape, finiteness, and the unit length that scores rely on (D9)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

import numpy as np

from entrepot.capabilities import Metric
from entrepot.errors import VectorError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import ArrayLike, NDArray

    Matrix: TypeAlias = NDArray[np.float32]
    Name: TypeAlias = Callable[[int], str]
    """What to call the vector of a row in an error."""

NORM_TOLERANCE: Final = 1e-3
"""How far from 1 the norm of a vector may lie under the dot metric (D9)."""
_ROWS_AT_ONCE: Final = 64
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
    if isinstance(given, np.ma.MaskedArray):
        msg = f"{name} is a masked array, and a mask cannot be stored"
        raise VectorError(msg, hint="fill it first: vector.filled(0.0)")
    if array.dtype.kind not in "fiu" or array.ndim != 1 or array.size == 0:
        msg = f"{name} must be numbers of shape (d,), not {array.dtype} of shape {array.shape}"
        raise VectorError(msg)
    if dimension is not None and array.size != dimension:
        msg = f"{name} has {array.size} components, the collection has {dimension}"
        raise VectorError(msg, hint="the query and all documents of a collection need one embedding model")
    with np.errstate(over="ignore"):
        vector = array.astype(np.float32, copy=False)
    if not np.isfinite(vector).all():
        raise _not_finite(name)
    return vector


def as_query(metric: Metric, given: ArrayLike, dimension: int) -> Matrix:
    """Return a query vector (d,) as stored vectors are: checked, and normalised under cosine and dot (D9).

    Raises:
        VectorError: As `check_vectors`.
    """
    if type(given) is np.ndarray and given.dtype == np.float32 and given.shape == (dimension,):
        vector: Matrix = given
    else:
        vector = as_vector(given, dimension, "the query vector")
    wide = vector.astype(np.float64)
    length = math.sqrt(float(np.dot(wide, wide)))
    if not math.isfinite(length):
        raise _not_finite("the query vector")
    if length == 0.0:
        raise _zero("the query vector")
    if metric is Metric.EUCLIDEAN:
        return vector
    if metric is Metric.DOT and abs(length - 1.0) > NORM_TOLERANCE:
        raise _not_unit("the query vector", length)
    return (wide / length).astype(np.float32)


def _not_finite(name: str) -> VectorError:
    return VectorError(f"{name} has a component that is not finite in float32")


def _zero(name: str) -> VectorError:
    msg = f"{name} is zero, which has no direction"
    return VectorError(msg, hint="empty texts embed to zero vectors; give the document a text")


def _not_unit(name: str, length: float) -> VectorError:
    msg = f"{name} has norm {length:.6g}; the dot metric takes unit vectors"
    return VectorError(msg, hint="normalise the vectors, or use the cosine metric")


def check_vectors(metric: Metric, given: Sequence[ArrayLike] | Matrix, dimension: int, name: Name) -> None:
    """Check vectors.

    Raises:
        VectorError: As `as_vector`; a zero vector, under any metric; under dot, a norm not within
            1e-3 of 1. The message names the vector.
    """
    for _ in _normalised_parts(metric, given, dimension, name):
        pass


def normalised(metric: Metric, given: Sequence[ArrayLike] | Matrix, dimension: int, name: Name) -> Matrix:
    """Check vectors and return them as they are stored, float32 (n, d): of unit length under cosine and dot.

    Lengths are computed in float64, and the quotient is rounded once to float32 (D9).

    Raises:
        VectorError: As `check_vectors`.
    """
    stored = np.empty((len(given), dimension), dtype=np.float32)
    for start, part in _normalised_parts(metric, given, dimension, name):
        stored[start : start + len(part)] = part
    return stored


def _normalised_parts(
    metric: Metric, given: Sequence[ArrayLike] | Matrix, dimension: int, name: Name
) -> Iterator[tuple[int, NDArray[np.floating]]]:
    buffer = np.empty((min(len(given), _ROWS_AT_ONCE), dimension))
    for start in range(0, len(given), _ROWS_AT_ONCE):
        part = _stacked(given[start : start + _ROWS_AT_ONCE], dimension, name, start)
        wide = buffer[: len(part)]
        wide[:] = part
        lengths = np.sqrt(np.einsum("ij,ij->i", wide, wide))
        if not np.isfinite(lengths).all():
            raise _not_finite(name(start + int(np.flatnonzero(~np.isfinite(lengths))[0])))
        if not lengths.all():
            raise _zero(name(start + int(np.flatnonzero(lengths == 0.0)[0])))
        if metric is Metric.EUCLIDEAN:
            yield start, part
            continue
        if metric is Metric.DOT:
            off = np.flatnonzero(np.abs(lengths - 1.0) > NORM_TOLERANCE)
            if off.size:
                raise _not_unit(name(start + int(off[0])), float(lengths[off[0]]))
        wide /= lengths[:, None]
        yield start, wide


def _stacked(part: Sequence[ArrayLike] | Matrix, dimension: int, name: Name, start: int) -> Matrix:
    """Return some vectors as one float32 matrix (n, d), each checked for its shape and type."""
    if isinstance(part, np.ndarray):
        return part
    try:
        # The common case at the speed of one copy: float32 arrays of the right length.
        flat: NDArray[Any] = np.concatenate(part)
    except ValueError:
        flat = np.empty(0)
    if (
        type(flat) is np.ndarray
        and flat.dtype == np.float32
        and flat.ndim == 1
        and set(map(len, cast("list[Any]", part))) == {dimension}
    ):
        return flat.reshape(-1, dimension)
    return np.stack(
        [as_vector(vector, dimension, name(start + row)) for row, vector in enumerate(part)],
    )
