"""What filters are asked of: metadata as one jsonb value. Pure functions.

The column `terms` holds each key that is not absent, in natural JSON, so that other tools can read it.
Three things differ from the JSON text that is kept beside it, because jsonb compares them:

- a float between 2^53 and 2^64 stands with all its digits, as an int64 may stand beside it and jsonb
  compares decimal numbers exactly; its shortest form could name another integer;
- an instant is ``{"datetime": "2026-01-31T12:00:00.123456Z"}`` with always six digits, so that the order
  of the texts is the order of the instants; a metadata value is never an object, so the tag is unambiguous;
- an empty list is left out, as it is absent (F1).
"""

from __future__ import annotations

from datetime import datetime
from json.encoder import encode_basestring
from typing import TYPE_CHECKING, Final, cast

from entrepot.encoding import iso_instant
from entrepot.metadata import is_list

if TYPE_CHECKING:
    from entrepot.metadata import Metadata, Scalar

TAG: Final = "datetime"
"""The only member of an object that stands for an instant."""

_EXACT_FROM: Final = 2.0**53
_EXACT_TO: Final = 2.0**64


def json_string(text: str) -> str:
    """Return a string as JSON; the one way that keys and strings get into JSON and into jsonpath.

    Quotes, backslashes and control characters are escaped, all else stands as it is.
    """
    return encode_basestring(text)


def json_scalar(value: Scalar) -> str:
    """Return a scalar as JSON that compares in jsonb as the value does (F4)."""
    if isinstance(value, str):
        return json_string(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        return f'{{"{TAG}":"{iso_instant(value)}"}}'
    if isinstance(value, float) and _EXACT_FROM <= abs(value) < _EXACT_TO:
        return f"{int(value)}.0"
    return repr(value)


def json_terms(metadata: Metadata) -> str:
    """Return clean metadata as the JSON of the column `terms`."""
    entries: list[str] = []
    for key, value in metadata.items():
        if is_list(value):
            if value:
                entries.append(f"{json_string(key)}:[{','.join(map(json_scalar, value))}]")
        else:
            entries.append(f"{json_string(key)}:{json_scalar(cast('Scalar', value))}")
    return f"{{{','.join(entries)}}}"
