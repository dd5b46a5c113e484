"""What can go wrong above the stores.

The tree::

EntrepotError
├── RagError
│   ├── ChatModelError            the model failed, or answered what cannot be read
│   │   └── ModelRefusedError     it refused the request; the same one will be refused again
│   ├── StructuredOutputError     the answer is not of the type asked for, repairs included
│   ├── ToolError                 a tool cannot be made of a function, or may not go on
│   │   └── ToolLimitError        more calls in a turn than are allowed
│   └── TemplateError             a template lacks a placeholder, or has one too many (also a ValueError)
└── ...                           everything else is the core's
"""

from __future__ import annotations

from entrepot.errors import EntrepotError


class RagError(EntrepotError):
    """The root of what this package adds to the core's errors."""


class ChatModelError(RagError):
    """A chat model failed, or its answer cannot be read; the cause is the transport's exception, if there is one."""


class ModelRefusedError(ChatModelError):
    """The model's server refused the request, and will refuse the same one again."""


class StructuredOutputError(RagError):
    """The model's answer is not of the type that was asked for, after all repairs.

    Attributes:
        text: The last answer.
        attempts: How many answers there were.
    """

    def __init__(self, message: str, *, text: str, attempts: int, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.text = text
        self.attempts = attempts


class ToolError(RagError):
    """A function cannot be a tool, or a tool failed where failures are to be raised."""


class ToolLimitError(ToolError):
    """A turn asked for more calls than are allowed.

    Attributes:
        tool: The tool with too many calls; None if there were too many in all.
        limit: How many are allowed.
    """

    def __init__(self, message: str, *, tool: str | None, limit: int, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.tool = tool
        self.limit = limit


class TemplateError(RagError, ValueError):
    """A template lacks a placeholder that is needed, or has one that nothing fills."""
