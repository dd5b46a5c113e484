"""One tool that finds others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec

from entrepot.errors import ConfigurationError
from entrepot.messages import ToolResponseMessage
from entrepot_rag import advice
from entrepot_rag.advisors.memory import conversation_of
from entrepot_rag.advisors.tool_calling import ToolCallingAdvisor
from entrepot_rag.chat import ToolDefinition
from entrepot_rag.tool_search.eviction import LruEviction
from entrepot_rag.tool_search.index import FullTextToolIndex
from entrepot_rag.tool_search.sessions import Sessions
from entrepot_rag.tools.tool import Tool
from entrepot_rag.typed import schema_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from entrepot.messages import Message
    from entrepot_rag.advice import Advice
    from entrepot_rag.chat import ChatResponse
    from entrepot_rag.requests import Chain, ChatRequest
    from entrepot_rag.tool_search.eviction import Eviction
    from entrepot_rag.tool_search.index import ToolIndex
    from entrepot_rag.tools.executing import Executor, ToolLimits

NAME: Final = "tool_search"
"""The tool that finds others."""
SYSTEM: Final = (
    f"There are more tools than you see. Before you say that something cannot be done, look for a tool by {NAME}; the tools "
    "that it names can be called from then on."
)
"""What is put behind the system message."""
MOST: Final = 5
"""Tools that a search names, unless the model asks for another number."""
_DESCRIPTION: Final = "Find tools by what they do. Returns their names; they can be called afterwards."


class _Arguments(msgspec.Struct, forbid_unknown_fields=True):
    query: Annotated[str, msgspec.Meta(description="What the tool shall do, in a few words.")]
    max_results: Annotated[int, msgspec.Meta(description="How many tools to name.", ge=1, le=20)] | None = (
        None
    )


class ToolSearchAdvisor(ToolCallingAdvisor):
    """Calls tools as `ToolCallingAdvisor`, but shows the model one that finds others, and those that it has found.

    Found tools are those that searches of this turn have named, and those of earlier turns that the memory shows. The index
    is built when a session begins, and again when a name, a description or a schema changes. A session is a conversation.

    Args:
        index: What finds tools; by words, in memory, otherwise.
        always: Names of tools that are always shown.
        limit: Tools that a search names, if the model does not say.
        accumulate: Whether tools that were found stay for the rest of the turn and beyond; otherwise only those of the
            last round are shown.
        eviction: When a session is forgotten; the thousand last ones are kept otherwise.
        limits: As of `ToolCallingAdvisor`.
        executor: As of `ToolCallingAdvisor`.
        order: As of `BaseAdvisor`.
        name: As of `BaseAdvisor`.
    """

    def __init__(  # noqa: PLR0913 - one argument for each thing that users set
        self,
        index: ToolIndex | None = None,
        *,
        always: Sequence[str] = (),
        limit: int = MOST,
        accumulate: bool = True,
        eviction: Eviction | None = None,
        limits: ToolLimits | None = None,
        executor: Executor | None = None,
        order: int | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(limits=limits, executor=executor, order=order, name=name)
        if type(limit) is not int or limit < 1:
            msg = f"limit must be an int of at least 1, not {limit!r}"
            raise ConfigurationError(msg)
        if isinstance(always, str):
            msg = "always must be a list of names, not one text"
            raise ConfigurationError(msg, hint="give it as [...]")
        self.always = frozenset(always)
        self.limit = limit
        self.accumulate = accumulate
        self.sessions = Sessions(index or FullTextToolIndex(), eviction or LruEviction())

    def advise(self, request: ChatRequest, chain: Chain) -> Advice[ChatResponse]:
        """Ask until there is an answer.

        Raises:
            ConfigurationError: The request names no conversation, or a tool has the name of the one that searches.
        """
        if any(one.name == NAME for one in request.tools):
            msg = f"a tool is called {NAME!r}, as the one that finds tools"
            raise ConfigurationError(msg, hint="give it another name=")
        session = conversation_of(request, self.name)
        try:
            return (yield from super().advise(request.with_system(SYSTEM), chain))
        finally:
            yield from self.sessions.ended(session)

    def shown(self, request: ChatRequest, exchange: list[Message]) -> Advice[ChatRequest]:
        """Return the request with the tools of this round."""
        session = conversation_of(request, self.name)
        definitions = [one.definition for one in request.tools]
        yield from self.sessions.ready(session, definitions)
        found = _found([*request.messages, *exchange] if self.accumulate else exchange[-1:])
        wanted = self.always | found
        tools = [one for one in request.tools if one.name in wanted]
        return msgspec.structs.replace(request, tools=(self._tool(session, definitions), *tools))

    def _tool(self, session: str, definitions: list[ToolDefinition]) -> Tool:
        def searched(query: str, max_results: int | None) -> Advice[str]:
            # Another turn, or an eviction, may have come between.
            yield from self.sessions.ready(session, definitions)
            hits = yield from self.sessions.index.search(session, query, max_results or self.limit)
            return msgspec.json.encode([hit.name for hit in hits]).decode()

        def search(query: str, max_results: int | None) -> str:
            return advice.run(searched(query, max_results))

        async def asearch(query: str, max_results: int | None) -> str:
            return await advice.arun(searched(query, max_results))

        return Tool(
            definition=ToolDefinition(name=NAME, description=_DESCRIPTION, parameters=schema_of(_Arguments)),
            function=search,
            afunction=asearch,
            arguments=_Arguments,
        )


def _found(messages: Sequence[Message]) -> set[str]:
    """Return the names that searches have told."""
    names: set[str] = set()
    for message in messages:
        if not isinstance(message, ToolResponseMessage):
            continue
        for response in message.responses:
            if response.name == NAME:
                names.update(_names(response.text))
    return names


def _names(text: str) -> list[str]:
    try:
        told: Any = msgspec.json.decode(text, type=list[str])
    except ValueError:  # what went wrong is told to the model in words
        return []
    return list(told)
