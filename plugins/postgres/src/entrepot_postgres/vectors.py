"""pgvector's binary form: two 16-bit integers, the dimension and 0, then float32, all big-endian."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

import numpy as np

from entrepot_postgres.binary import Packed, array_head

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

_HEAD: Final = struct.Struct(">HH")


def pack(vector: NDArray[np.float32]) -> Packed:
    """Return a vector of shape (d,) as pgvector's binary form."""
    return Packed(_HEAD.pack(vector.size, 0) + vector.astype(">f4").tobytes())


def pack_all(vectors: Sequence[NDArray[np.float32]], oid: int) -> Packed:
    """Return vectors of one dimension as the binary form of an array, ``vector[]``.

    Args:
        vectors: At least one, each of shape (d,).
        oid: The number that the database gave to the type ``vector``.
    """
    size = vectors[0].size
    rows = np.empty(
        len(vectors), dtype=[("bytes", ">i4"), ("size", ">u2"), ("zero", ">u2"), ("v", ">f4", (size,))]
    )
    rows["bytes"] = _HEAD.size + 4 * size
    rows["size"] = size
    rows["zero"] = 0
    rows["v"] = vectors
    return Packed(array_head(oid, len(vectors)) + rows.tobytes())


def unpack(data: bytes) -> NDArray[np.float32]:
    """Return the vector of its binary form, float32 of shape (d,), writable."""
    return np.frombuffer(data, dtype=">f4", offset=_HEAD.size).astype(np.float32)
