"""entrepot-rag: chat client, advisors, tools and tool search over the stores and memories of entrepot.

Every public name can be imported from here; a module is loaded when one of its names is used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from entrepot_rag.advisors.base import BaseAdvisor, FunctionAdvisor
    from entrepot_rag.advisors.logging import LoggingAdvisor
    from entrepot_rag.advisors.memory import MessageChatMemoryAdvisor
    from entrepot_rag.advisors.question_answer import QuestionAnswerAdvisor
    from entrepot_rag.advisors.safeguard import SafeGuardAdvisor
    from entrepot_rag.advisors.structured import StructuredOutputAdvisor
    from entrepot_rag.advisors.tool_calling import ToolCallingAdvisor
    from entrepot_rag.advisors.vector_memory import VectorStoreChatMemoryAdvisor
    from entrepot_rag.chat import (
        ChatOptions,
        ChatResponse,
        Chunk,
        Generation,
        Prompt,
        ToolCallFragment,
        ToolDefinition,
        Usage,
    )
    from entrepot_rag.client import AsyncChatStream, ChatClient, ChatPrompt, ChatStream
    from entrepot_rag.errors import (
        ChatModelError,
        ModelRefusedError,
        RagError,
        StructuredOutputError,
        TemplateError,
        ToolError,
        ToolLimitError,
    )
    from entrepot_rag.merging import Merger
    from entrepot_rag.models.openai import OpenAIChatModel
    from entrepot_rag.models.protocols import ChatModel, StreamingChatModel
    from entrepot_rag.models.scripted import ScriptedChatModel
    from entrepot_rag.requests import Advisor, Chain, ChatRequest
    from entrepot_rag.templates import Template
    from entrepot_rag.tool_search.advisor import ToolSearchAdvisor
    from entrepot_rag.tool_search.eviction import (
        CompositeEviction,
        EachCallEviction,
        Eviction,
        LruEviction,
        NoEviction,
        TtlEviction,
    )
    from entrepot_rag.tool_search.index import (
        Found,
        FullTextToolIndex,
        RegexToolIndex,
        ToolIndex,
        VectorToolIndex,
    )
    from entrepot_rag.tools.executing import Executor, ToolLimits
    from entrepot_rag.tools.tool import Tool, ToolContext, tool

_HOMES: Final = {
    "advisors.base": ("BaseAdvisor", "FunctionAdvisor"),
    "advisors.logging": ("LoggingAdvisor",),
    "advisors.memory": ("MessageChatMemoryAdvisor",),
    "advisors.question_answer": ("QuestionAnswerAdvisor",),
    "advisors.safeguard": ("SafeGuardAdvisor",),
    "advisors.structured": ("StructuredOutputAdvisor",),
    "advisors.tool_calling": ("ToolCallingAdvisor",),
    "advisors.vector_memory": ("VectorStoreChatMemoryAdvisor",),
    "chat": (
        "ChatOptions", "ChatResponse", "Chunk", "Generation", "Prompt", "ToolCallFragment", "ToolDefinition", "Usage",
    ),
    "client": ("AsyncChatStream", "ChatClient", "ChatPrompt", "ChatStream"),
    "errors": (
        "ChatModelError", "ModelRefusedError", "RagError", "StructuredOutputError", "TemplateError", "ToolError",
        "ToolLimitError",
    ),
    "merging": ("Merger",),
    "models.openai": ("OpenAIChatModel",),
    "models.protocols": ("ChatModel", "StreamingChatModel"),
    "models.scripted": ("ScriptedChatModel",),
    "requests": ("Advisor", "Chain", "ChatRequest"),
    "templates": ("Template",),
    "tool_search.advisor": ("ToolSearchAdvisor",),
    "tool_search.eviction": ("CompositeEviction", "EachCallEviction", "Eviction", "LruEviction", "NoEviction", "TtlEviction"),
    "tool_search.index": ("Found", "FullTextToolIndex", "RegexToolIndex", "ToolIndex", "VectorToolIndex"),
    "tools.executing": ("Executor", "ToolLimits"),
    "tools.tool": ("Tool", "ToolContext", "tool"),
}  # fmt: skip
_PLACES: Final = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "Advisor",
    "AsyncChatStream",
    "BaseAdvisor",
    "Chain",
    "ChatClient",
    "ChatModel",
    "ChatModelError",
    "ChatOptions",
    "ChatPrompt",
    "ChatRequest",
    "ChatResponse",
    "ChatStream",
    "Chunk",
    "CompositeEviction",
    "EachCallEviction",
    "Eviction",
    "Executor",
    "Found",
    "FullTextToolIndex",
    "FunctionAdvisor",
    "Generation",
    "LoggingAdvisor",
    "LruEviction",
    "Merger",
    "MessageChatMemoryAdvisor",
    "ModelRefusedError",
    "NoEviction",
    "OpenAIChatModel",
    "Prompt",
    "QuestionAnswerAdvisor",
    "RagError",
    "RegexToolIndex",
    "SafeGuardAdvisor",
    "ScriptedChatModel",
    "StreamingChatModel",
    "StructuredOutputAdvisor",
    "StructuredOutputError",
    "Template",
    "TemplateError",
    "Tool",
    "ToolCallFragment",
    "ToolCallingAdvisor",
    "ToolContext",
    "ToolDefinition",
    "ToolError",
    "ToolIndex",
    "ToolLimitError",
    "ToolLimits",
    "ToolSearchAdvisor",
    "TtlEviction",
    "Usage",
    "VectorStoreChatMemoryAdvisor",
    "VectorToolIndex",
    "tool",
]


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    return getattr(importlib.import_module(f"{__name__}.{_PLACES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
