"""Metadata: what a document may carry, how it is checked, and its one JSON text (D3, D4).

Every backend keeps the JSON text of this module whole and reads it back byte for byte, so types
survive wherever text survives: ``1`` and ``1.0`` differ in JSON, ``-0.0`` keeps its sign, and an
instant is the one object that can occur, ``{"datetime": "2026-01-31T12:00:00.123456Z"}``.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime
from math import isfinite
from types import NoneType
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeGuard, cast

import msgspec

from entrepot.errors import MetadataError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Scalar: TypeAlias = str | bool | int | float | datetime
"""What a metadata list may hold and what a filter compares."""
MetadataValue: TypeAlias = (
    Scalar | list[str] | list[bool] | list[int] | list[float] | list[int | float] | list[datetime]
)
"""What a metadata key may hold (D3)."""
Metadata: TypeAlias = dict[str, MetadataValue]

MAX_NAME_LENGTH: Final = 512
"""Most characters (code points) of an id, a key or a conversation id (D1, D3, M6)."""
INT64_MIN: Final = -(2**63)
INT64_MAX: Final = 2**63 - 1

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(dict[str, Any]).decode


def ill_formed(text: str) -> str | None:
    """Say why `text` is not well-formed (D4), or None: no NUL and no lone surrogate may stand in it."""
    if "\0" in text:
        return "holds a NUL character"
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            return f"holds a lone surrogate (U+{ord(text[error.start]):04X})"
    return None


def name_fault(name: object) -> str | None:
    """Say why `name` cannot be an id or a key (D1, D3), or None if it can."""
    if type(name) is not str:
        return f"must be a str, not {type(name).__name__}"
    if not name:
        return "must not be empty"
    if len(name) > MAX_NAME_LENGTH:
        return f"has {len(name)} characters, more than {MAX_NAME_LENGTH}"
    return ill_formed(name)


def in_utc(instant: datetime) -> datetime:
    """Return the same instant in UTC.

    Raises:
        ValueError: It has no timezone, or lies outside the years 1 to 9999 in UTC.
    """
    if instant.utcoffset() is None:
        msg = "a datetime without timezone"
        raise ValueError(msg)
    if instant.tzinfo is UTC:
        return instant
    try:
        return instant.astimezone(UTC)
    except OverflowError:
        msg = "a datetime outside the years 1 to 9999 in UTC"
        raise ValueError(msg) from None


def clean_metadata(metadata: Mapping[str, Any]) -> Metadata:
    """Check metadata against D3 and return it as it will be stored.

    The result is a new dict with new lists: ``None`` values are dropped, datetimes are in UTC.

    Raises:
        MetadataError: A key or a value is not allowed; the message names the key.
    """
    if not isinstance(metadata, dict):
        msg = f"metadata must be a dict, not {type(metadata).__name__}"
        raise MetadataError(msg)
    clean: dict[str, Any] = {}
    for key, value in metadata.items():
        if key not in _good_keys:
            _check_key(key)
        kind: type[object] = type(value)  # pyright: ignore[reportUnknownVariableType]
        # The common cases stand here, written out: this loop is most of what `add` costs.
        if kind is str:
            if value.isascii() and "\0" not in value:
                clean[key] = value
            else:
                clean[key] = _clean_scalar(key, value)
        elif (
            kind is bool
            or (kind is int and INT64_MIN <= value <= INT64_MAX)
            or (kind is float and isfinite(value))
        ):
            clean[key] = value
        elif kind is list:
            clean[key] = _clean_list(key, value)
        elif value is not None:
            clean[key] = _clean_scalar(key, value)
    return clean


_good_keys: set[str] = set()
"""Keys that have passed the check; a program uses few, so the set is small and is emptied if it is not."""
_MOST_GOOD_KEYS: Final = 10_000


def _check_key(key: object) -> None:
    fault = name_fault(key)
    if fault is not None:
        msg = f"metadata key {_shown(key)} {fault}"
        raise MetadataError(msg, key=key)
    if len(_good_keys) >= _MOST_GOOD_KEYS:
        _good_keys.clear()
    _good_keys.add(cast("str", key))


def _clean_scalar(key: str, value: Any) -> Scalar:
    kind: type[object] = type(value)  # pyright: ignore[reportUnknownVariableType]
    hint: str | None
    if kind is float:
        if isfinite(value):
            return value  # type: ignore[no-any-return]
        fault, hint = f"the float {value}, which is not finite", "leave the key out, or pass None"
    elif kind is int:
        if INT64_MIN <= value <= INT64_MAX:
            return value  # type: ignore[no-any-return]
        fault, hint = "an integer beyond 64 bits", "store it as a str"
    elif kind is bool:
        return value  # type: ignore[no-any-return]
    elif kind is str:
        reason = ill_formed(value)
        if reason is None:
            return value  # type: ignore[no-any-return]
        fault, hint = f"a string that {reason}", "remove it before storing"
    elif kind is datetime:
        try:
            return in_utc(value)
        except ValueError as error:
            fault, hint = str(error), "give it a timezone, as in datetime(..., tzinfo=timezone.utc)"
    else:
        fault, hint = f"a {kind.__name__}", _advice(value)
    msg = f"metadata key {key!r} holds {fault}"
    raise MetadataError(msg, key=key, hint=hint)


def _advice(value: object) -> str | None:
    """Return the hint for a value of a type that is not allowed, or None for the general one."""
    for base in (bool, int, float, str, datetime):
        if isinstance(value, base):
            return f"only exact types are read back unchanged; pass {base.__name__}(value)"
    if isinstance(value, tuple | set | frozenset):
        return "pass a list"
    if hasattr(value, "tolist"):
        return "numpy values are converted by .item() or .tolist()"
    return None


def _clean_list(key: str, values: list[Any]) -> list[Any]:
    kinds: set[type[object]] = set(map(type, values))
    if len(kinds) > 1 and not kinds <= _NUMBERS:
        names = sorted("None" if kind is NoneType else kind.__name__ for kind in kinds)
        msg = f"metadata key {key!r} holds a list of mixed kinds ({', '.join(names)})"
        raise MetadataError(msg, key=key, hint="a list holds one kind; int and float may mix")
    if kinds & _NOT_INSIDE:
        msg = f"metadata key {key!r} holds a list with {'None' if NoneType in kinds else 'a list'} inside"
        raise MetadataError(msg, key=key)
    if kinds <= _STRINGS:
        together = "".join(values)
        if together.isascii() and "\0" not in together:
            return values.copy()
    return [_clean_scalar(key, value) for value in values]


_NUMBERS: Final = frozenset({int, float})
_NOT_INSIDE: Final = frozenset({NoneType, list})
_STRINGS: Final[frozenset[type[object]]] = frozenset({str})


def _shown(key: object) -> str:
    text = repr(key)
    return text if len(text) <= 80 else text[:77] + "..."  # noqa: PLR2004 - a line of a message


def encode_metadata(metadata: Metadata) -> bytes:
    """Return the JSON text of clean metadata, UTF-8, keys in their own order."""
    for value in metadata.values():
        kind = type(value)
        if kind is datetime or (kind is list and is_list(value) and value and type(value[0]) is datetime):
            return _encode({key: _tagged(value) for key, value in metadata.items()})
    return _encode(metadata)


def encode_key(key: str) -> bytes:
    """Return a key as it stands in the JSON texts of `encode_metadata`, with its quotes and colon."""
    return _encode(key) + b":"


_BRACE: Final = ord("{")


def decode_metadata(text: bytes) -> Metadata:
    """Return the metadata of a JSON text made by `encode_metadata`, with the same types (D4)."""
    metadata = _decode(text)
    if text.find(_BRACE, 1) < 0:  # no object inside, so no instant
        return metadata
    for key, value in metadata.items():
        if _is_tagged(value):
            metadata[key] = _instant(value)
        elif is_list(value) and value and _is_tagged(value[0]):
            metadata[key] = list(map(_instant, value))
    return metadata


def is_list(value: object) -> TypeGuard[list[Any]]:
    """Whether a value is a list, as type checkers understand it."""
    return type(value) is list


def _is_tagged(value: object) -> TypeGuard[dict[str, str]]:
    return type(value) is dict


def _tagged(value: object) -> object:
    if type(value) is datetime:
        return {"datetime": value}
    if is_list(value) and value and type(value[0]) is datetime:
        return [{"datetime": element} for element in value]
    return value


def _instant(tagged: dict[str, str]) -> datetime:
    return datetime.fromisoformat(tagged["datetime"])


def metadata_size(metadata: Metadata) -> int:
    """Return the size of metadata in bytes (D8): UTF-8 of keys and strings, JSON of other scalars."""
    return sum(len(key.encode()) + sum(map(_scalar_size, elements(value))) for key, value in metadata.items())


def _scalar_size(value: Scalar) -> int:
    return len(value.encode()) if type(value) is str else len(_encode(value))


def elements(value: MetadataValue) -> list[Scalar]:
    """Return the elements of a metadata value: a scalar counts as a list of one (F2)."""
    return value if is_list(value) else [cast("Scalar", value)]


def same_metadata(left: Mapping[str, object], right: Mapping[str, object]) -> bool:
    """Whether two metadata are equal with their types (D4): ``1``, ``1.0`` and ``True`` differ."""
    return left.keys() == right.keys() and all(_same(value, right[key]) for key, value in left.items())


def _same(left: object, right: object) -> bool:
    if type(left) is not type(right):
        return False
    if is_list(left) and is_list(right):
        return len(left) == len(right) and all(map(_same, left, right))
    if isinstance(left, float) and isinstance(right, float):
        return left == right and math.copysign(1.0, left) == math.copysign(1.0, right)
    return left == right


def flatten_metadata(metadata: Mapping[str, object], *, separator: str = ".") -> dict[str, object]:
    """Flatten nested mappings into dotted keys, so that `add` can take the result (D3).

    ``{"author": {"name": "Ada"}}`` becomes ``{"author.name": "Ada"}``. Empty mappings vanish;
    lists of mappings are left for `add` to refuse, because no flat form says the same.

    Raises:
        MetadataError: Two paths make the same key, or a key is not a str.
    """
    flat: dict[str, object] = {}
    for key, value in _paths(metadata, "", separator):
        if key in flat:
            msg = f"two paths make the metadata key {_shown(key)}"
            raise MetadataError(msg, key=key, hint="rename one, or choose another separator")
        flat[key] = value
    return flat


def _paths(metadata: Mapping[str, object], prefix: str, separator: str) -> Iterator[tuple[str, object]]:
    stack = [(prefix, iter(metadata.items()))]
    while stack:
        base, items = stack[-1]
        for key, value in items:
            if type(key) is not str:
                msg = f"metadata key {_shown(key)} must be a str, not {type(key).__name__}"
                raise MetadataError(msg, key=key)
            path = f"{base}{key}"
            if isinstance(value, dict):
                nested = cast("dict[str, object]", value)
                stack.append((f"{path}{separator}", iter(nested.items())))
                break
            yield path, value
        else:
            stack.pop()
