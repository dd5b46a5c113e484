"""Columns of tables that other software made: what their values are as metadata. Pure functions.

A type of PostgreSQL belongs to one kind of value, alone or as an array. What metadata cannot hold is read as
absent, and is absent to filters: NULL, NaN and infinities, and times outside of the years 1 to 9999.

A number of JSON and a ``numeric`` is an int if it is written without a fraction and has 64 bits, else the
nearest float, as Python's json module has it; `NUMBER` is the SQL of that.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias

import msgspec

from entrepot_postgres.names import Name

if TYPE_CHECKING:
    from entrepot.metadata import Metadata, Scalar

Kind: TypeAlias = Literal[
    "bool", "int", "float", "numeric", "text", "uuid", "string", "instant", "local", "date"
]
"""What a value is; ``text`` is compared as it stands, ``string`` is cast to text before."""

KINDS: Final[dict[str, Kind]] = {
    "bool": "bool",
    "int2": "int",
    "int4": "int",
    "int8": "int",
    "float4": "float",
    "float8": "float",
    "numeric": "numeric",
    "text": "text",
    "varchar": "text",
    "bpchar": "string",
    "name": "string",
    "citext": "string",
    "uuid": "uuid",
    "timestamptz": "instant",
    "timestamp": "local",
    "date": "date",
}
"""The kinds of PostgreSQL's types; types that are declared as enums are strings too."""

_BEYOND_FLOAT: Final = 2**1024 - 2**970
"""From here on a number is nearer to infinity than to the largest float."""
_TINY: Final = "2.4703282292062329e-324"
"""Up to here a number is nearer to zero than to the smallest float."""
NUMBER: Final = (
    f"CASE WHEN abs({{0}}) < {_BEYOND_FLOAT} THEN CASE"
    " WHEN scale({0}) = 0 AND {0} BETWEEN -9223372036854775808 AND 9223372036854775807 THEN {0}"
    f" WHEN abs({{0}}) <= {_TINY} THEN 0"
    " WHEN abs({0}::float8) >= 9007199254740992 AND abs({0}::float8) < 9223372036854775808"
    " THEN {0}::float8::int8::numeric"
    " ELSE {0}::float8::text::numeric END END"
)
"""The exact value of a ``numeric`` as it is read; needs ``extra_float_digits`` of at least 1."""
SETTINGS: Final = {"extra_float_digits": "1", "TimeZone": "UTC"}
"""What statements over such columns need; psycopg reads times in the zone, where year 1 or 9999 may not hold them."""

_FINITE: Final = "{0} > '-Infinity'::float8 AND {0} < 'Infinity'::float8"
_YEARS: Final = (
    "{0} >= '0001-01-01 00:00:00+00'::timestamptz AND {0} < '10000-01-01 00:00:00+00'::timestamptz"
)
_LOCAL_YEARS: Final = "{0} >= '0001-01-01' AND {0} < '10000-01-01'"

VALID: Final[dict[Kind, str]] = {
    "bool": "{0} IS NOT NULL",
    "int": "{0} IS NOT NULL",
    "float": _FINITE,
    "numeric": f"abs({{0}}) < {_BEYOND_FLOAT}",
    "text": "{0} IS NOT NULL",
    "uuid": "{0} IS NOT NULL",
    "string": "{0} IS NOT NULL",
    "instant": _YEARS,
    "local": _LOCAL_YEARS,
    "date": _LOCAL_YEARS,
}
"""Whether there is a value, by kind: true, or false or NULL."""
VALUE: Final[dict[Kind, str]] = {
    "bool": "{0}",
    "int": "{0}::int8",
    "float": f"CASE WHEN {_FINITE} THEN {{0}}::float8 END",
    "numeric": "{0}::text",
    "text": "{0}::text",
    "uuid": "{0}::text",
    "string": "{0}::text",
    "instant": f"CASE WHEN {_YEARS} THEN {{0}} END",
    "local": f"CASE WHEN {_LOCAL_YEARS} THEN to_char({{0}}, 'YYYY-MM-DD\"T\"HH24:MI:SS.US') END",
    "date": f"CASE WHEN {_LOCAL_YEARS} THEN to_char({{0}}, 'YYYY-MM-DD') END",
}
"""What is read of a value, by kind."""
_ARRAY: Final = "CASE WHEN {1} IS NOT NULL THEN ARRAY(SELECT {0} FROM unnest({1}) AS e(x)) END"


class Column(NamedTuple):
    """A column that holds values of one kind.

    Attributes:
        sql: The column of the row ``doc``, quoted.
        kind: What its values are.
        array: Whether each row has any number of them.
    """

    sql: str
    kind: Kind
    array: bool

    @property
    def read(self) -> str:
        """The SQL of what is read: a value or an array of values, NULL for none."""
        if not self.array:
            return VALUE[self.kind].format(self.sql)
        return _ARRAY.format(VALUE[self.kind].format("e.x"), self.sql)

    def value(self, read: Any) -> Any:
        """Return what was read as metadata, None for absent."""
        if read is None:
            return None
        if not self.array:
            return _value(self.kind, read)
        values = (None if item is None else _value(self.kind, item) for item in read)
        return [value for value in values if value is not None]


def quoted(column: str) -> str:
    """Return a column of the row ``doc`` as it stands in a statement."""
    return f"doc.{Name(column).as_string(None)}"


def _value(kind: Kind, read: Any) -> Scalar | None:
    if kind == "numeric":
        return number_of(read)
    if kind == "instant":
        instant: datetime = read
        return instant.astimezone(UTC)
    scalar: Scalar = read
    return scalar


def number_of(text: str) -> int | float | None:
    """Return a number by its digits; None for one that no float is near, and for what is none."""
    if "." not in text and text.lstrip("-").isdigit():
        whole = int(text)
        if -(2**63) <= whole < 2**63:
            return whole
    value = float(text)
    if not math.isfinite(value):
        return None
    if 0 < abs(value) < 1e-323 and abs(Decimal(text)) <= Decimal(_TINY):  # noqa: PLR2004 - the smallest floats
        return 0.0
    return value


# --- objects of JSON --------------------------------------------------------------------------------------


def metadata_of_json(text: str) -> Metadata:
    """Return the metadata that PostgreSQL's text of a jsonb value stands for; none if it is no object.

    A value within a value, that is an object, or a list in a list, is the string of its text.
    """
    if not text.startswith("{"):
        return {}
    metadata: dict[str, Any] = {}
    for key, raw in msgspec.json.decode(text, type=dict[str, msgspec.Raw]).items():
        value = bytes(raw).decode()
        if value.startswith("["):
            items = msgspec.json.decode(value, type=list[msgspec.Raw])
            scalars = (_scalar(bytes(item).decode()) for item in items)
            metadata[key] = [scalar for scalar in scalars if scalar is not None]
        else:
            scalar = _scalar(value)
            if scalar is not None:
                metadata[key] = scalar
    return metadata


def _scalar(text: str) -> Scalar | None:
    first = text[0]
    if first == '"':
        return msgspec.json.decode(text, type=str)
    if first in "[{":
        return text
    if first in "tf":
        return first == "t"
    return None if first == "n" else number_of(text)
