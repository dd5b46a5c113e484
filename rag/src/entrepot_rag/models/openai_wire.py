"""The chat interface of OpenAI without a connection: what goes out, what comes back."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast

import msgspec

from entrepot.embeddings.openai_wire import TransientError, retry_after
from entrepot.errors import AuthenticationError
from entrepot.messages import AssistantMessage, SystemMessage, ToolCall, ToolResponseMessage, UserMessage
from entrepot_rag.chat import ChatResponse, Chunk, Generation, ToolCallFragment, Usage
from entrepot_rag.errors import ChatModelError, ModelRefusedError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from entrepot.media import Media
    from entrepot.messages import Message
    from entrepot_rag.chat import Prompt

_OK: Final = 200
_REFUSED: Final = frozenset({401, 403})
_TRANSIENT: Final = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
_LONGEST_REASON: Final = 300
_DONE: Final = b"[DONE]"
_AUDIO: Final = {"audio/wav": "wav", "audio/x-wav": "wav", "audio/mpeg": "mp3", "audio/mp3": "mp3"}


class _Usage(msgspec.Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None

    def told(self) -> Usage:
        return Usage(self.prompt_tokens or 0, self.completion_tokens or 0)


class _Function(msgspec.Struct):
    name: str | None = None
    # Ollama's older versions send an object.
    arguments: str | dict[str, Any] | None = None

    def text(self) -> str:
        if isinstance(self.arguments, dict):
            return msgspec.json.encode(self.arguments).decode()
        return self.arguments or ""


class _Call(msgspec.Struct):
    function: _Function = msgspec.field(default_factory=_Function)
    index: int | None = None
    id: str | None = None


class _Said(msgspec.Struct):
    content: str | None = None
    refusal: str | None = None
    tool_calls: list[_Call] | None = None


class _Choice(msgspec.Struct):
    message: _Said | None = None
    delta: _Said | None = None
    index: int = 0
    finish_reason: str | None = None


class _Answer(msgspec.Struct):
    choices: list[_Choice] = []
    usage: _Usage | None = None
    model: str | None = None
    id: str | None = None
    error: Any = None


_decode = msgspec.json.Decoder(_Answer).decode


@dataclass(frozen=True)
class Endpoint:
    """What an answer is judged by: where it came from, and the secret that no message may repeat."""

    url: str
    model: str
    key: str | None = None

    @property
    def place(self) -> str:
        """How messages name it."""
        return f"the chat server at {self.url}"

    def body(self, prompt: Prompt, *, stream: bool) -> bytes:
        """Return the JSON of one request.

        Raises:
            ChatModelError: A text holds a lone surrogate.
        """
        options = prompt.options
        body: dict[str, Any] = {
            "model": options.model or self.model,
            "messages": [entry for message in prompt.messages for entry in _entries(message)],
        }
        named = {
            "temperature": options.temperature,
            "top_p": options.top_p,
            "max_tokens": options.max_tokens,
            "stop": options.stop,
            "seed": options.seed,
            "response_format": options.response_format,
        }
        body.update({name: value for name, value in named.items() if value is not None})
        if prompt.tools:
            body["tools"] = [
                {
                    "type": "function",
                    "function": {
                        "name": one.name,
                        "description": one.description,
                        "parameters": one.parameters,
                    },
                }
                for one in prompt.tools
            ]
        choice = options.tool_choice
        if choice is not None:
            plain = choice in {"auto", "none", "required"}
            body["tool_choice"] = choice if plain else {"type": "function", "function": {"name": choice}}
        if stream:
            body |= {"stream": True, "stream_options": {"include_usage": True}}
        body.update(options.extra)
        try:
            return msgspec.json.encode(body)
        except UnicodeEncodeError as error:
            msg = "a message holds a lone surrogate, which JSON in UTF-8 cannot carry"
            raise ChatModelError(msg) from error

    def response(self, content: bytes) -> ChatResponse:
        """Return what an answer says.

        Raises:
            ChatModelError: It is no answer of this interface, or an error in the place of one.
        """
        answer = self._read(content)
        if not answer.choices:
            msg = f"{self.place} answered without an answer"
            raise ChatModelError(
                msg, hint="check that base_url ends where /chat/completions begins, usually with /v1"
            )
        generations = [
            _generation(choice) for choice in sorted(answer.choices, key=lambda choice: choice.index)
        ]
        if any(not call.name for one in generations for call in one.message.tool_calls):
            msg = f"{self.place} answered a tool call without a name"
            raise ChatModelError(msg)
        return ChatResponse(
            generations=tuple(generations),
            usage=answer.usage.told() if answer.usage is not None else Usage(),
            model=answer.model,
            id=answer.id,
        )

    def chunks(self, data: bytes) -> list[Chunk] | None:
        """Return the pieces that an event of a stream holds; None if it says that the stream is at its end.

        Raises:
            ChatModelError: It is no event of this interface, or an error in the place of one.
        """
        if data.strip() == _DONE:
            return None
        answer = self._read(data)
        usage = answer.usage.told() if answer.usage is not None else None
        told: dict[str, Any] = {"model": answer.model, "id": answer.id}
        chunks = [_chunk(choice, told) for choice in answer.choices]
        if usage is not None:
            chunks.append(Chunk(usage=usage, **told))
        return chunks

    def _read(self, content: bytes) -> _Answer:
        try:
            answer = _decode(content)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            msg = f"{self.place} answered something else than a chat's answer"
            raise ChatModelError(
                msg, hint="check that base_url ends where /chat/completions begins, usually with /v1"
            ) from error
        if answer.error is not None:
            msg = f"{self.place} failed{self._reason(content)}"
            raise ChatModelError(msg, retryable=True)
        return answer

    def check(self, status: int, headers: Mapping[str, str], content: bytes) -> None:
        """Raise what a status means that is no success.

        Raises:
            TransientError: It may pass.
            AuthenticationError: 401 or 403.
            ModelRefusedError: Any other.
        """
        if status == _OK:
            return
        if status in _REFUSED:
            msg = (
                f"{self.place} refused the key (HTTP {status})"  # without its words, which may quote the key
            )
            raise AuthenticationError(
                msg, hint="check OPENAI_API_KEY or api_key=, and that the key may use this model"
            )
        reason = self._reason(content)
        msg = f"{self.place} answered HTTP {status} for model {self.model!r}{reason}"
        if status in _TRANSIENT and "insufficient_quota" not in reason:
            wait = retry_after(headers)
            hint = f"it asks to wait {wait:g} s" if wait else "it may answer later"
            raise TransientError(
                ChatModelError(
                    msg, hint=f"{hint}; timeout= and max_retries= bound the tries", retryable=True
                ),
                wait,
            )
        raise ModelRefusedError(msg)

    def _reason(self, content: bytes) -> str:
        """Return what the server says, shortened and without the key."""
        try:
            said: Any = msgspec.json.decode(content)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return ""
        if isinstance(said, dict):
            fields = cast("dict[str, Any]", said)
            said = fields.get("error") or fields.get("message") or fields.get("detail")
        if isinstance(said, dict):
            inner = cast("dict[str, Any]", said)
            said = " ".join(str(inner[name]) for name in ("code", "message") if inner.get(name))
        text = str(said or "")
        if self.key:
            text = text.replace(self.key, "***")
        return f": {text[:_LONGEST_REASON]}" if text else ""


def _entries(message: Message) -> list[dict[str, Any]]:
    """Return a message as the interface has it; each answer of a tool is a message of its own."""
    match message:
        case SystemMessage():
            return [{"role": "system", "content": message.text}]
        case UserMessage():
            if not message.media:
                return [{"role": "user", "content": message.text}]
            parts: list[dict[str, Any]] = [{"type": "text", "text": message.text}] if message.text else []
            return [{"role": "user", "content": [*parts, *map(_part, message.media)]}]
        case ToolResponseMessage():
            return [
                {"role": "tool", "tool_call_id": one.id, "content": one.text} for one in message.responses
            ]
        case AssistantMessage():
            entry: dict[str, Any] = {"role": "assistant", "content": message.text or None}
            if message.tool_calls:
                entry["tool_calls"] = [
                    {
                        "id": one.id,
                        "type": "function",
                        "function": {"name": one.name, "arguments": one.arguments},
                    }
                    for one in message.tool_calls
                ]
            elif not message.text:
                entry["content"] = ""
            return [entry]


def _part(medium: Media) -> dict[str, Any]:
    """Return a medium as a part of a message.

    Raises:
        ChatModelError: The interface takes none of that type.
    """
    kind = medium.mime_type.partition(";")[0].strip().lower()
    encoded = b64encode(medium.data).decode() if medium.data is not None else None
    if kind.startswith("image/"):
        return {"type": "image_url", "image_url": {"url": medium.url or f"data:{kind};base64,{encoded}"}}
    if kind in _AUDIO and encoded is not None:
        return {"type": "input_audio", "input_audio": {"data": encoded, "format": _AUDIO[kind]}}
    if kind == "application/pdf" and encoded is not None:
        name = medium.name or "document.pdf"
        return {"type": "file", "file": {"filename": name, "file_data": f"data:{kind};base64,{encoded}"}}
    msg = f"the chat interface takes no {kind}{' by its address' if medium.url is not None else ''}"
    raise ChatModelError(msg, hint="images by address or content, WAV, MP3 and PDF by content")


def _generation(choice: _Choice) -> Generation:
    said = choice.message or _Said()
    calls = tuple(
        ToolCall(call.id or f"call_{place}", call.function.name or "", call.function.text() or "{}")
        for place, call in enumerate(said.tool_calls or [])
    )
    message = AssistantMessage(said.content or said.refusal or "", tool_calls=calls)
    return Generation(message=message, finish_reason=choice.finish_reason)


def _chunk(choice: _Choice, told: dict[str, Any]) -> Chunk:
    said = choice.delta or choice.message or _Said()
    fragments = tuple(
        ToolCallFragment(
            index=call.index, id=call.id or None, name=call.function.name, arguments=call.function.text()
        )
        for call in said.tool_calls or []
    )
    return Chunk(
        text=said.content or said.refusal or "",
        fragments=fragments,
        finish_reason=choice.finish_reason,
        generation=choice.index,
        **told,
    )
