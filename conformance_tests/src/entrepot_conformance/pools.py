"""Small shared pools of keys and values, so that filters and documents meet often."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from entrepot.filters import Scalar

KEYS: Final = ("a", "b", "a.b", "and", "it's", '"`\\', "$gt", "größe")

STRINGS: Final = (
    "",
    "a",
    "A",
    "b",
    " a",
    "a ",
    "1",
    "true",
    "2020-01-01T00:00:00Z",
    "\u00e9",
    "e\u0301",
    "\uffff",
    "\U0001f600",
    "' OR 1=1 --",
)
NUMBERS: Final = (
    0,
    0.0,
    -0.0,
    1,
    1.0,
    -1,
    1.5,
    2**53,
    2**53 + 1,
    float(2**53),
    2**63 - 1,
    float(2**63),
    -(2**63),
    5e-324,
    -1.7e308,
)
BOOLEANS: Final = (True, False)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
INSTANTS: Final = (
    datetime(1, 1, 1, tzinfo=UTC),
    _EPOCH,
    _EPOCH - timedelta(microseconds=1),
    datetime(2020, 1, 1, tzinfo=UTC),
    datetime(2020, 1, 1, 0, 0, 0, 1, tzinfo=UTC),
    datetime(2020, 1, 1, 3, 0, tzinfo=timezone(timedelta(hours=3))),
    datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
)

POOLS: Final[dict[str, tuple[Scalar, ...]]] = {
    "str": STRINGS,
    "number": NUMBERS,
    "bool": BOOLEANS,
    "datetime": INSTANTS,
}
"""The values by kind."""

VALUES: Final[tuple[Scalar, ...]] = STRINGS + NUMBERS + BOOLEANS + INSTANTS
