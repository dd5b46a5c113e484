"""pgvector's binary form."""

from __future__ import annotations

import struct

import numpy as np

from entrepot_postgres.vectors import pack, pack_all, unpack


def test_one_vector() -> None:
    packed = pack(np.array([1.0, -2.5], dtype=np.float32))
    assert packed == struct.pack(">HHff", 2, 0, 1.0, -2.5)
    assert unpack(packed).tolist() == [1.0, -2.5]
    assert unpack(packed).dtype == np.float32
    unpack(packed)[:] = 0  # the caller's own


def test_many_vectors() -> None:
    vectors = [np.array([1.0, 2.0], dtype=np.float32), np.array([3.0, 4.0], dtype=np.float32)]
    elements = b"".join(struct.pack(">i", 12) + pack(vector) for vector in vectors)
    assert pack_all(vectors, 70_000) == struct.pack(">iiIii", 1, 0, 70_000, 2, 1) + elements
