"""What finds tools: by patterns, by words, by meaning."""

from __future__ import annotations

import hashlib
import re
import threading
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, cast

import msgspec
import numpy as np

from entrepot.documents import Document
from entrepot.errors import CollectionNotFoundError, ConfigurationError
from entrepot.filters import F
from entrepot.search import SearchMode, SearchRequest
from entrepot.steps import call
from entrepot.stores.simple.fulltext import FullTextIndex, words_of
from entrepot_rag.tool_search.words import STOP, likes_of, spoken, stems_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from entrepot import VectorStore
    from entrepot_rag.advice import Advice
    from entrepot_rag.chat import ToolDefinition

_LIKE_WEIGHT: Final = 0.5
SESSION: Final = "tool_session"
"""The metadata key of a `VectorToolIndex` that holds the session."""
TOOL: Final = "tool_name"
"""The metadata key of a `VectorToolIndex` that holds the tool's name."""


class Found(NamedTuple):
    """A tool that was found.

    Attributes:
        name: The tool's.
        score: Higher is better; only to be compared within one search.
    """

    name: str
    score: float


class ToolIndex(Protocol):
    """Finds tools of a session. Each method is a generator, as those of advisors are."""

    def build(self, session: str, tools: Sequence[ToolDefinition]) -> Advice[None]:
        """Hold these tools for the session, instead of others that it had."""
        ...

    def search(self, session: str, query: str, limit: int) -> Advice[list[Found]]:
        """Return the tools that fit best, best first."""
        ...

    def remove(self, session: str) -> Advice[None]:
        """Forget the session."""
        ...


def fingerprint(tools: Sequence[ToolDefinition]) -> str:
    """Return a digest of names, descriptions and schemas, whatever their order."""
    told = sorted(
        (one.name, one.description, msgspec.json.encode(one.parameters, order="sorted")) for one in tools
    )
    return hashlib.sha256(msgspec.json.encode(told)).hexdigest()


def told_of(tool: ToolDefinition) -> str:
    """Return what a tool is looked up by: its name, its description, and its parameters' names and descriptions."""
    properties: dict[str, Any] = tool.parameters.get("properties", {})
    parameters = [f"{spoken(name)} {_about(schema)}" for name, schema in properties.items()]
    return " ".join([spoken(tool.name), tool.description, *parameters])


def _about(schema: Any) -> str:
    return str(cast("dict[str, Any]", schema).get("description", "")) if isinstance(schema, dict) else ""


class RegexToolIndex:
    """Finds tools whose name or description holds a word of the query.

    A word in the name counts two, one in the description one; stop words do not count. A query without other words
    finds all, in their order.
    """

    def __init__(self) -> None:
        self._tools: dict[str, tuple[ToolDefinition, ...]] = {}

    def build(self, session: str, tools: Sequence[ToolDefinition]) -> Advice[None]:
        """Hold these tools."""
        yield from ()
        self._tools[session] = tuple(tools)

    def search(self, session: str, query: str, limit: int) -> Advice[list[Found]]:
        """Return the tools that fit best."""
        yield from ()
        tools = self._tools.get(session, ())
        words = list(
            dict.fromkeys(word for word in words_of(spoken(query)) if word not in STOP and len(word) > 1)
        )
        if not words:
            return [Found(one.name, 0.0) for one in tools[:limit]]
        pattern = re.compile("|".join(map(re.escape, words)), re.IGNORECASE)
        found = [
            Found(one.name, float(2 * _hits(pattern, spoken(one.name)) + _hits(pattern, one.description)))
            for one in tools
        ]
        return sorted((one for one in found if one.score > 0), key=lambda one: -one.score)[:limit]

    def remove(self, session: str) -> Advice[None]:
        """Forget the session."""
        yield from ()
        self._tools.pop(session, None)


def _hits(pattern: re.Pattern[str], text: str) -> int:
    return len({found.lower() for found in pattern.findall(text)})


class FullTextToolIndex:
    """Finds tools by the words of their names, descriptions and parameters, ranked by BM25; in memory.

    Words are compared by their stems, as a light stemmer for English makes them: a plural is its singular, ``booking`` is
    ``book``. A word in the name counts three times. Words that mean about the same in the names of interfaces, such as
    ``create`` and ``add``, count as well, but less.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sessions: dict[str, tuple[list[str], FullTextIndex]] = {}

    def build(self, session: str, tools: Sequence[ToolDefinition]) -> Advice[None]:
        """Hold these tools."""
        yield from ()
        index = FullTextIndex()
        texts = [" ".join(stems_of(f"{spoken(one.name)} {spoken(one.name)} {told_of(one)}")) for one in tools]
        index.extend(texts, len(texts))
        with self._lock:
            self._sessions[session] = ([one.name for one in tools], index)

    def search(self, session: str, query: str, limit: int) -> Advice[list[Found]]:
        """Return the tools that fit best."""
        yield from ()
        with self._lock:
            held = self._sessions.get(session)
        if held is None:
            return []
        names, index = held
        stems = stems_of(spoken(query))
        scores = np.zeros(len(names))
        for words, weight in ((stems, 1.0), (likes_of(stems), _LIKE_WEIGHT)):
            rows, values = index.rank(" ".join(words), len(names), None)
            scores[rows] += weight * values
        best = np.argsort(-scores, kind="stable")[:limit]
        return [Found(names[place], float(scores[place])) for place in best if scores[place] > 0]

    def remove(self, session: str) -> Advice[None]:
        """Forget the session."""
        yield from ()
        with self._lock:
            self._sessions.pop(session, None)


class VectorToolIndex:
    """Finds tools by what they are about, in any vector store with an embedding model.

    Each tool is a document of its session, with the keys `SESSION` and `TOOL`. What a process that was killed has left
    of a session goes when the session is built anew.

    Args:
        store: Where tools are held; sessions share it with one another, and with nothing else.
        threshold: The least score of a tool that is found.
        mode: By meaning, or with words beside (``hybrid``), where the store can.
    """

    def __init__(
        self,
        store: VectorStore,
        *,
        threshold: float | None = None,
        mode: SearchMode | str = SearchMode.SEMANTIC,
    ) -> None:
        if threshold is not None and not 0 <= threshold <= 1:
            msg = f"threshold must be a number from 0 to 1, not {threshold!r}"
            raise ConfigurationError(msg)
        self.store = store
        self.threshold = threshold
        self.mode = SearchMode(mode)

    def build(self, session: str, tools: Sequence[ToolDefinition]) -> Advice[None]:
        """Hold these tools."""
        documents = [
            Document(
                told_of(one),
                id=hashlib.sha256(msgspec.json.encode([session, one.name])).hexdigest(),
                metadata={SESSION: session, TOOL: one.name},
            )
            for one in tools
        ]
        yield from self.remove(session)
        if documents:
            yield from call(self.store.add, self.store.aadd, documents)

    def search(self, session: str, query: str, limit: int) -> Advice[list[Found]]:
        """Return the tools that fit best."""
        request = SearchRequest(
            query, top_k=limit, threshold=self.threshold, filter=F[SESSION] == session, mode=self.mode
        )
        store = self.store
        try:
            hits = yield from call(store.similarity_search, store.asimilarity_search, request)
        except CollectionNotFoundError:
            return []
        return [Found(str(hit.metadata[TOOL]), hit.rank_score or hit.score or 0.0) for hit in hits]

    def remove(self, session: str) -> Advice[None]:
        """Forget the session."""
        try:
            yield from call(self.store.delete, self.store.adelete, filter=F[SESSION] == session)
        except CollectionNotFoundError:
            return
