"""The messages of a conversation and their one JSON codec (M2).

A message is a value: id and creation time are given when it is made and never change. Its JSON
text is versioned (``"v": 1``) and reads back exactly what was written; arguments of tool calls
are kept as the text that the model sent, byte for byte. Metadata is any JSON; an instant in it is
written ``{"$datetime": "..."}``, and an object whose keys start with ``$`` is written inside
``{"$object": ...}`` so that the two cannot be confused.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeAlias, TypeGuard, cast

import msgspec
from msgspec.structs import force_setattr

from entrepot.documents import new_id
from entrepot.errors import CorruptDataError, MessageError
from entrepot.media import Media
from entrepot.metadata import INT64_MAX, INT64_MIN, ill_formed, in_utc, name_fault

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

MAX_METADATA_DEPTH: Final = 100
"""Deepest nesting of a message's metadata."""


class Role(StrEnum):
    """Who speaks."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


class ToolCall(msgspec.Struct, frozen=True):
    """A call that the model asks for.

    Attributes:
        id: The model's id of the call; the response names it.
        name: The tool.
        arguments: The arguments as the model wrote them, usually JSON; never parsed or reformatted.
    """

    id: str
    name: str
    arguments: str = "{}"


class ToolResponse(msgspec.Struct, frozen=True):
    """What a tool answered.

    Attributes:
        id: The id of the call that is answered.
        name: The tool.
        text: The answer.
    """

    id: str
    name: str
    text: str


def _now() -> datetime:
    return datetime.now(UTC)


class _Text(msgspec.Struct, frozen=True, tag_field="role", omit_defaults=True):
    text: str = ""


class _Message(_Text, frozen=True, kw_only=True, omit_defaults=True):
    id: str = msgspec.field(default_factory=new_id)
    created: datetime = msgspec.field(default_factory=_now)
    metadata: dict[str, Any] = {}

    role: ClassVar[Role]

    def __post_init__(self) -> None:
        if type(self.created) is datetime and self.created.tzinfo is UTC:
            return
        if not isinstance(cast("object", self.created), datetime):
            msg = f"message {self.id!r}: created must be a datetime, not {type(self.created).__name__}"
            raise MessageError(msg, hint="use datetime.now(timezone.utc)")
        try:
            force_setattr(self, "created", in_utc(self.created))
        except ValueError as error:
            msg = f"message {self.id!r} was created at {error}"
            raise MessageError(msg, hint="use datetime.now(timezone.utc)") from None

    __hash__ = None  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]  # metadata is a dict


def _settle(message: _Message, field: str, kind: type) -> None:
    """Make a field a tuple of the right things, so that what is read equals what was made."""
    given: object = getattr(message, field)
    if not isinstance(given, tuple | list):
        msg = (
            f"message {message.id!r}: {field} must be a tuple of {kind.__name__}, not {type(given).__name__}"
        )
        raise MessageError(msg)
    items: tuple[object, ...] = tuple(cast("Sequence[object]", given))
    for item in items:
        if not isinstance(item, kind):
            msg = f"message {message.id!r}: {field} holds a {type(item).__name__}, not a {kind.__name__}"
            raise MessageError(msg)
    if items is not given:
        force_setattr(message, field, items)


class SystemMessage(_Message, frozen=True, tag="system"):
    """Instructions to the model. Only the newest of a conversation counts (W2)."""

    role: ClassVar[Role] = Role.SYSTEM


class UserMessage(_Message, frozen=True, kw_only=True, tag="user"):
    """What the user says, with media if there are any."""

    role: ClassVar[Role] = Role.USER
    media: tuple[Media, ...] = ()

    def __post_init__(self) -> None:
        """Check the time and the media.

        Raises:
            MessageError: `created` or `media` is of another type.
        """
        super().__post_init__()
        if self.media != ():
            _settle(self, "media", Media)


class AssistantMessage(_Message, frozen=True, kw_only=True, tag="assistant"):
    """What the model says: text, tool calls, media, or several of them."""

    role: ClassVar[Role] = Role.ASSISTANT
    tool_calls: tuple[ToolCall, ...] = ()
    media: tuple[Media, ...] = ()

    def __post_init__(self) -> None:
        """Check the time, the calls and the media.

        Raises:
            MessageError: One of them is of another type.
        """
        super().__post_init__()
        if self.tool_calls != ():
            _settle(self, "tool_calls", ToolCall)
        if self.media != ():
            _settle(self, "media", Media)


class ToolResponseMessage(_Message, frozen=True, kw_only=True, tag="tool"):
    """What the tools answered to the assistant's calls."""

    role: ClassVar[Role] = Role.TOOL
    responses: tuple[ToolResponse, ...] = ()

    def __post_init__(self) -> None:
        """Check the time and the responses.

        Raises:
            MessageError: One of them is of another type.
        """
        super().__post_init__()
        if self.responses != ():
            _settle(self, "responses", ToolResponse)


Message: TypeAlias = SystemMessage | UserMessage | AssistantMessage | ToolResponseMessage
"""One message of a conversation."""

VERSION: Final = 1
_PREFIX: Final = b'{"v":1,'
_encode = msgspec.json.Encoder().encode
_decode = cast("Callable[[bytes], Message]", msgspec.json.Decoder(Message).decode)


def check_message(message: object) -> Message:
    """Return `message` if it can be stored whole (M2).

    Raises:
        MessageError: It is no message, or something in it would not come back as it is.
    """
    if not isinstance(message, _Message):
        msg = f"a conversation takes messages, not {type(message).__name__}"
        raise MessageError(
            msg, hint="use SystemMessage, UserMessage, AssistantMessage or ToolResponseMessage"
        )
    fault = name_fault(message.id)
    if fault is not None:
        msg = f"the message id {message.id!r} {fault}"
        raise MessageError(msg)
    fault = json_fault(message.metadata)
    if fault is not None:
        msg = f"the metadata of message {message.id!r} {fault}"
        raise MessageError(msg, hint="metadata is any JSON, and aware datetimes")
    for where, text in _strings(cast("Message", message)):
        fault = f"must be a str, not {type(text).__name__}" if type(text) is not str else ill_formed(text)
        if fault is not None:
            msg = f"message {message.id!r}: {where} {fault}"
            raise MessageError(msg)
    return cast("Message", message)


def _strings(message: Message) -> list[tuple[str, object]]:
    strings: list[tuple[str, object]] = [("the text", message.text)]
    if isinstance(message, AssistantMessage):
        for call in message.tool_calls:
            strings += [("a tool call's id", call.id), ("a tool call's name", call.name)]
            strings.append(("a tool call's arguments", call.arguments))
    if isinstance(message, ToolResponseMessage):
        for response in message.responses:
            strings += [("a response's id", response.id), ("a response's name", response.name)]
            strings.append(("a response's text", response.text))
    if isinstance(message, UserMessage | AssistantMessage):
        for media in message.media:
            strings += [("a medium's type", media.mime_type), ("a medium's URL", media.url or "")]
            strings.append(("a medium's name", media.name or ""))
    return strings


def encode_message(message: Message) -> bytes:
    """Return the JSON text of a message, UTF-8, on one line.

    Raises:
        MessageError: Something in it would not come back as it is.
    """
    check_message(message)
    if message.metadata and _needs_tags(message.metadata):
        tagged = cast("dict[str, Any]", _tag(message.metadata, top=True))
        message = msgspec.structs.replace(message, metadata=tagged)
    return _PREFIX + _encode(message)[1:]


def decode_message(text: bytes) -> Message:
    """Return the message of a JSON text made by `encode_message`.

    Raises:
        CorruptDataError: It is no such text, or a newer version wrote it.
    """
    try:
        message = _decode(text)
    except msgspec.DecodeError as error:
        msg = f"a stored message cannot be read: {error}"
        raise CorruptDataError(msg) from error
    if not text.startswith(_PREFIX):
        version = msgspec.json.decode(text).get("v")
        if version != VERSION:
            msg = f"a stored message has version {version!r}; this library reads version {VERSION}"
            raise CorruptDataError(msg, hint="upgrade entrepot")
    # One byte is found much faster than a word, and most texts have no $ at all.
    if b"$" in text and message.metadata and (b'"$datetime"' in text or b'"$object"' in text):
        force_setattr(message, "metadata", _untag(message.metadata, top=True))
    return message


def is_dict(value: object) -> TypeGuard[dict[object, object]]:
    """Whether a value is a JSON object, as type checkers understand it."""
    return type(value) is dict


def is_list(value: object) -> TypeGuard[list[object]]:
    """Whether a value is a JSON array, as type checkers understand it."""
    return type(value) is list


def json_fault(metadata: object) -> str | None:
    """Say what JSON would change in silence: NaN, tuples, keys that are no str, huge integers; or None."""
    if not isinstance(metadata, dict):
        return f"must be a dict, not {type(metadata).__name__}"
    stack: list[tuple[object, int]] = [(cast("object", metadata), 0)]
    while stack:
        value, depth = stack.pop()
        if depth > MAX_METADATA_DEPTH:
            return f"nests deeper than {MAX_METADATA_DEPTH}"
        if is_dict(value):
            stack += [(item, depth + 1) for item in value.values()]
            for key in value:
                if type(key) is not str:
                    return f"has the key {key!r}, which is no str"
                stack.append((key, depth))
        elif is_list(value):
            stack += [(item, depth + 1) for item in value]
        else:
            fault = _scalar_fault(value)
            if fault is not None:
                return fault
    return None


def _scalar_fault(value: object) -> str | None:
    if value is None or type(value) is bool:
        return None
    if type(value) is str:
        return ill_formed(value)
    if type(value) is int:
        return None if INT64_MIN <= value <= INT64_MAX else "holds an integer beyond 64 bits"
    if type(value) is float:
        return None if math.isfinite(value) else f"holds the float {value}"
    if type(value) is datetime:
        try:
            in_utc(value)
        except ValueError as error:
            return f"holds {error}"
        return None
    return f"holds a {type(value).__name__}"


def _needs_tags(value: object) -> bool:
    if is_dict(value):
        return any(str(key).startswith("$") or _needs_tags(item) for key, item in value.items())
    return any(map(_needs_tags, value)) if is_list(value) else isinstance(value, datetime)


def _tag(value: object, *, top: bool = False) -> object:
    if isinstance(value, datetime):
        return {"$datetime": in_utc(value)}
    if is_list(value):
        return [_tag(item) for item in value]
    if is_dict(value):
        entries = {str(key): _tag(item) for key, item in value.items()}
        escaped = not top and any(key.startswith("$") for key in entries)
        return {"$object": entries} if escaped else entries
    return value


def _untag(value: object, *, top: bool = False) -> object:
    if is_list(value):
        return [_untag(item) for item in value]
    if is_dict(value):
        entries = cast("dict[str, Any]", value)
        if not top and len(entries) == 1:
            if "$datetime" in entries:
                return datetime.fromisoformat(entries["$datetime"])
            if "$object" in entries:
                entries = entries["$object"]
        return {key: _untag(item) for key, item in entries.items()}
    return value


def check_batch(messages: Sequence[Message]) -> list[Message]:
    """Check a batch of messages whole: each can be stored, and no id stands twice in it (M2, M3).

    Raises:
        MessageError: The first fault found; nothing was sent.
    """
    if isinstance(messages, _Message | str) or not hasattr(messages, "__iter__"):
        msg = f"messages must be a list of messages, not {type(messages).__name__}"
        raise MessageError(msg)
    batch = [check_message(message) for message in messages]
    seen: Mapping[str, Message] = {message.id: message for message in batch}
    if len(seen) != len(batch):
        ids = [message.id for message in batch]
        twice = next(name for name in ids if ids.count(name) > 1)
        msg = f"the message id {twice!r} stands twice in the batch"
        raise MessageError(msg)
    return batch
