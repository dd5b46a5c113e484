"""What filters ask of a document: a list of tokens of each key, and bounds as numbers. Pure functions.

| field | holds |
|---|---|
| ``e_F`` | a token of each element of the key: equality, IN, presence; left out if there is none |
| ``nl_F``, ``nh_F`` | the least and the greatest number, as the nearest double |
| ``dl_F``, ``dh_F`` | the least and the greatest instant, in microseconds since 1970, as the nearest double |
| ``sl_F``, ``sh_F`` | the least and the greatest string: the first 6 bytes of UTF-8 as a number of 48 bits |

F stands for the key (`entrepot_pinecone.names.field_part`). "Some element is below v" is "the least is below v" (F2), so
the engine, which keeps no lists of numbers, needs none. The kind is part of a field's name, so that kinds never meet (F4).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from entrepot.encoding import (
    Ordered,
    digest,
    element_text,
    extremes,
    microseconds,
    nearest_double,
    string_code,
)
from entrepot.filters.values import kind_of
from entrepot.metadata import elements
from entrepot_pinecone.names import field_part

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from entrepot.filters.values import Kind, Scalar
    from entrepot.metadata import Metadata, MetadataValue

_LETTERS: Final[dict[Kind, str]] = {"datetime": "d", "number": "n", "str": "s"}
_PLAIN: Final = 24
"""Characters of ASCII that stand in a token as they are."""
_HEX: Final = 11
"""Bytes of UTF-8 that stand in a token as hexadecimal digits."""
_BYTES: Final = 6
"""Bytes of a string's bound: a double holds 48 bits exactly."""
_EXACT: Final = 2**53


def equality_field(key: str) -> str:
    """Return the field with the tokens of a key."""
    return "e_" + field_part(key)


def least_field(key: str, kind: Kind) -> str:
    """Return the field with the least element of a key, of a kind that has an order."""
    return f"{_LETTERS[kind]}l_{field_part(key)}"


def greatest_field(key: str, kind: Kind) -> str:
    """Return the field with the greatest element of a key, of a kind that has an order."""
    return f"{_LETTERS[kind]}h_{field_part(key)}"


def token(value: Scalar) -> str:
    """Return the token of an element: equal for values that `==` calls equal, and for no others (F4).

    Whether the engine trims, folds or normalises strings does not matter to any but short ones of printable ASCII, which
    stand as they are.
    """
    if type(value) is not str:
        return element_text(value)
    if value.isascii() and value.isprintable() and value.strip() == value and 0 < len(value) <= _PLAIN:
        return "s" + value
    data = value.encode()
    return "x" + data.hex() if len(data) <= _HEX else "h" + digest("string", data)


def bound(value: Scalar) -> Ordered[float]:
    """Return what a value is compared by: a double, and whether no other value has the same."""
    kind = kind_of(value)
    if kind == "str":
        code, exact = string_code(cast("str", value), _BYTES)
        return Ordered(float(code), exact)
    if kind == "datetime":
        at = microseconds(cast("datetime", value))
        return Ordered(float(at), abs(at) < _EXACT)
    return nearest_double(cast("float", value))


def fields_of(metadata: Metadata) -> dict[str, Any]:
    """Return what is indexed of metadata: strings, lists of strings and doubles."""
    found: dict[str, Any] = {}
    for key, value in cast("Mapping[str, MetadataValue]", metadata).items():
        tokens = list(dict.fromkeys(map(token, elements(value))))
        if tokens:
            found[equality_field(key)] = tokens
    for (key, kind), (least, greatest) in extremes(metadata).items():
        found[least_field(key, kind)] = bound(least).code
        found[greatest_field(key, kind)] = bound(greatest).code
    return found
