"""pgvector's binary form: two 16-bit integers, the dimension and 0, then float32, all big-endian."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

import numpy as np
from psycopg.adapt import Dumper
from psycopg.pq import Format

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray
    from psycopg.abc import AdaptContext

_HEAD: Final = struct.Struct(">HH")


class Packed(bytes):
    """A value in the binary form of the type that the SQL casts it to."""

    __slots__ = ()


class _PackedDumper(Dumper):
    format = Format.BINARY
    oid = 0  # the cast beside the placeholder says what it is

    def dump(self, obj: Packed) -> bytes:
        return bytes(obj)


def register(context: AdaptContext) -> None:
    """Let a connection or cursor bind `Packed` values."""
    context.adapters.register_dumper(Packed, _PackedDumper)


def pack(vector: NDArray[np.float32]) -> Packed:
    """Return a vector of shape (d,) as pgvector's binary form."""
    return Packed(_HEAD.pack(vector.size, 0) + vector.astype(">f4").tobytes())


def pack_all(vectors: Sequence[NDArray[np.float32]], oid: int) -> Packed:
    """Return vectors of one dimension as the binary form of an array, ``vector[]``.

    The form is that of PostgreSQL's `array_send`: number of dimensions, whether there are NULLs, type of the
    elements, then for each dimension its length and first index, then each element behind its length.

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
    return Packed(struct.pack(">iiIii", 1, 0, oid, len(vectors), 1) + rows.tobytes())


def unpack(data: bytes) -> NDArray[np.float32]:
    """Return the vector of its binary form, float32 of shape (d,), writable."""
    return np.frombuffer(data, dtype=">f4", offset=_HEAD.size).astype(np.float32)
