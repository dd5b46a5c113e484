"""Values that are bound in PostgreSQL's binary form, and that of arrays. Pure functions.

The form of an array is that of PostgreSQL's `array_send`: number of dimensions, whether there are NULLs, type of the
elements, then for each dimension its length and first index, then each element behind its length.
"""

from __future__ import annotations

import struct
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from psycopg.adapt import Dumper
from psycopg.pq import Format

if TYPE_CHECKING:
    from collections.abc import Sequence

    from psycopg.abc import AdaptContext

_HEAD: Final = struct.Struct(">iiIii")
_LENGTH: Final = struct.Struct(">i")
_SMALLINT_VALUE: Final = struct.Struct(">ih")
_INSTANT_VALUE: Final = struct.Struct(">iq")
_BYTEA: Final = 17
_SMALLINT: Final = 21
_TIMESTAMPTZ: Final = 1184
_EPOCH: Final = datetime(2000, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


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


def array_head(oid: int, count: int) -> bytes:
    """Return what stands before the elements of an array.

    Args:
        oid: The number of the elements' type.
        count: How many there are, at least one.
    """
    return _HEAD.pack(1, 0, oid, count, 1)


def pack_bytes(values: Sequence[bytes]) -> Packed:
    """Return values as ``bytea[]``."""
    parts = [array_head(_BYTEA, len(values))]
    for value in values:
        parts += (_LENGTH.pack(len(value)), value)
    return Packed(b"".join(parts))


def pack_smallints(values: Sequence[int]) -> Packed:
    """Return values as ``smallint[]``."""
    parts = [array_head(_SMALLINT, len(values))]
    parts += [_SMALLINT_VALUE.pack(2, value) for value in values]
    return Packed(b"".join(parts))


def pack_instants(values: Sequence[datetime]) -> Packed:
    """Return aware datetimes as ``timestamptz[]``: microseconds since 2000."""
    parts = [array_head(_TIMESTAMPTZ, len(values))]
    parts += [_INSTANT_VALUE.pack(8, (value - _EPOCH) // _MICROSECOND) for value in values]
    return Packed(b"".join(parts))
