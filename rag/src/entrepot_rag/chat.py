"""What goes to a chat model and what comes back: values, without behaviour.

A `Prompt` holds messages, options and the tools that the model may call. A `ChatResponse` holds one or more
generations; a stream is a sequence of `Chunk`, which `entrepot_rag.merging` puts together.
"""

from __future__ import annotations

from typing import Any

import msgspec

from entrepot.messages import AssistantMessage, Message, ToolCall


class ToolDefinition(msgspec.Struct, frozen=True, kw_only=True):
    """A tool as the model is told of it.

    Attributes:
        name: What the model calls.
        description: When and how to use it.
        parameters: A JSON schema of the arguments, of type ``object``.
    """

    name: str
    description: str = ""
    parameters: dict[str, Any] = {}


class ChatOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How a model shall answer; None leaves it to the model.

    Attributes:
        model: The model's name at its server.
        temperature: From 0, the likeliest words, upwards.
        top_p: Only words of so much likelihood together, from 0 to 1.
        max_tokens: The longest answer.
        stop: Texts that end the answer.
        seed: For answers that repeat, where the server can.
        tool_choice: ``"auto"``, ``"none"``, ``"required"``, or the name of a tool.
        response_format: What the server shall hold the answer to, as it wants it told.
        extra: Further entries of the request, as they are; they win over all others.
    """

    model: str | None = None
    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None
    stop: tuple[str, ...] | None = None
    seed: int | None = None
    tool_choice: str | None = None
    response_format: dict[str, Any] | None = None
    extra: dict[str, Any] = {}

    def merged(self, other: ChatOptions) -> ChatOptions:
        """Return these options with those of `other` that are set."""
        given = {
            name: value
            for name in self.__struct_fields__
            if name != "extra" and (value := getattr(other, name)) is not None
        }
        return msgspec.structs.replace(self, **given, extra={**self.extra, **other.extra})


class Prompt(msgspec.Struct, frozen=True, kw_only=True):
    """One request to a model.

    Attributes:
        messages: What was said, oldest first.
        options: How to answer.
        tools: What the model may call.
    """

    messages: tuple[Message, ...]
    options: ChatOptions = ChatOptions()
    tools: tuple[ToolDefinition, ...] = ()


class Usage(msgspec.Struct, frozen=True):
    """Tokens of a request and its answer; 0 where the server told none."""

    input_tokens: int = 0
    output_tokens: int = 0

    @property
    def total_tokens(self) -> int:
        """Both together."""
        return self.input_tokens + self.output_tokens

    def __add__(self, other: Usage) -> Usage:
        """Add up requests."""
        return Usage(self.input_tokens + other.input_tokens, self.output_tokens + other.output_tokens)


class Generation(msgspec.Struct, frozen=True, kw_only=True):
    """One of a model's answers.

    Attributes:
        message: What it says.
        finish_reason: Why it ended, in the server's word; such as ``stop``, ``length``, ``tool_calls``.
    """

    message: AssistantMessage
    finish_reason: str | None = None


class ChatResponse(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a request.

    Attributes:
        generations: The answers, at least one.
        usage: Tokens of all requests that were made for it.
        model: The model that answered, as its server names it.
        id: The server's id of the answer.
        exchange: Messages between the question and the answer: calls of tools and what these answered, in order.
        context: What advisors tell, such as the documents that were found.
    """

    generations: tuple[Generation, ...]
    usage: Usage = Usage()
    model: str | None = None
    id: str | None = None
    exchange: tuple[Message, ...] = ()
    context: dict[str, Any] = {}

    @property
    def message(self) -> AssistantMessage:
        """The first answer."""
        return self.generations[0].message

    @property
    def text(self) -> str:
        """The first answer's text."""
        return self.message.text

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The calls that the first answer asks for."""
        return self.message.tool_calls

    @property
    def finish_reason(self) -> str | None:
        """Why the first answer ended."""
        return self.generations[0].finish_reason


class ToolCallFragment(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of a tool call in a stream.

    Attributes:
        index: Which call of the answer; None where the server does not count.
        id: The call's id, with its first piece or with all.
        name: The tool's name, or a piece of it.
        arguments: A piece of the arguments' text.
    """

    index: int | None = None
    id: str | None = None
    name: str | None = None
    arguments: str = ""


class Chunk(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of an answer, as it comes.

    Attributes:
        text: What is added to the text.
        fragments: What is added to tool calls.
        finish_reason: Why the answer ended, in its last piece.
        usage: Tokens of the request, once they are known.
        model: The model that answers.
        id: The server's id of the answer.
        generation: Which of several answers.
    """

    text: str = ""
    fragments: tuple[ToolCallFragment, ...] = ()
    finish_reason: str | None = None
    usage: Usage | None = None
    model: str | None = None
    id: str | None = None
    generation: int = 0
