"""Types that JSON is checked against: those of msgspec, and pydantic's models where they are used."""

from __future__ import annotations

from typing import Any, TypeVar, cast

import msgspec

T = TypeVar("T")


def _is_pydantic(kind: object) -> bool:
    return isinstance(kind, type) and hasattr(kind, "model_json_schema") and hasattr(kind, "model_validate")


def schema_of(kind: Any) -> dict[str, Any]:
    """Return the JSON schema of a type, whole: references stand under ``$defs`` of it.

    Raises:
        TypeError: JSON has no such type.
    """
    if _is_pydantic(kind):
        return cast("dict[str, Any]", kind.model_json_schema())
    (schema,), definitions = msgspec.json.schema_components(
        [kind], schema_hook=_schema_hook, ref_template="#/$defs/{name}"
    )
    reference = schema.get("$ref", "")
    if len(schema) == 1 and reference:
        name = reference.removeprefix("#/$defs/")
        # The type itself is told in place, unless it holds itself.
        if f'"{reference}"'.encode() not in msgspec.json.encode(definitions):
            schema = definitions.pop(name)
    return {**schema, "$defs": definitions} if definitions else schema


def _schema_hook(kind: type) -> dict[str, Any]:
    if _is_pydantic(kind):
        return cast("dict[str, Any]", cast("Any", kind).model_json_schema())
    raise NotImplementedError


def _dec_hook(kind: type, value: Any) -> Any:
    if _is_pydantic(kind):
        return cast("Any", kind).model_validate(value)
    raise NotImplementedError


def decoded(text: str | bytes, kind: type[T]) -> T:
    """Return what a JSON text says, as a type.

    Raises:
        ValueError: It is no JSON, or of another type; the text says what, and where.
    """
    if _is_pydantic(kind):
        return cast("T", cast("Any", kind).model_validate_json(text))
    try:
        return msgspec.json.decode(text, type=kind, dec_hook=_dec_hook)
    except UnicodeDecodeError:
        raise
    except msgspec.DecodeError as error:
        # DecodeError is a ValueError, but that of a struct names the struct by its class; the text is enough.
        raise ValueError(str(error)) from error
