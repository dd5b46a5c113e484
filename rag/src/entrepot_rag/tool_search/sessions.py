"""Which sessions an index holds, and with what: each is built once, whoever asks."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

from entrepot.steps import Call
from entrepot_rag.tool_search.index import fingerprint

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from entrepot_rag.advice import Advice
    from entrepot_rag.chat import ToolDefinition
    from entrepot_rag.tool_search.eviction import Eviction
    from entrepot_rag.tool_search.index import ToolIndex


class _Session:
    def __init__(self, mark: str) -> None:
        self.mark = mark
        self.settled = threading.Event()
        self.is_built = False


class Sessions:
    """The sessions of one index. Thread-safe, and safe for tasks of several event loops.

    Args:
        index: What holds the tools.
        eviction: What says when a session goes.
    """

    def __init__(self, index: ToolIndex, eviction: Eviction) -> None:
        self.index = index
        self._eviction = eviction
        self._lock = threading.Lock()
        self._sessions: dict[str, _Session] = {}

    def ready(self, session: str, tools: Sequence[ToolDefinition]) -> Advice[None]:
        """Have the index hold these tools for the session; of many who want that at once, one builds."""
        mark = fingerprint(tools)
        while True:
            with self._lock:
                gone = [
                    one for one in self._eviction.used(session) if self._sessions.pop(one, None) is not None
                ]
                known = self._sessions.get(session)
                building = known is None or (known.is_built and known.mark != mark)
                if building:
                    known = self._sessions[session] = _Session(mark)
            for other in gone:
                yield from self.index.remove(other)
            if known is None:  # pragma: no cover - for type checkers
                return
            if building:
                yield from self._build(session, known, tools)
                return
            if known.is_built and known.mark == mark:
                return
            yield Call(known.settled.wait, _waiting(known.settled), (), {})

    def _build(self, session: str, known: _Session, tools: Sequence[ToolDefinition]) -> Advice[None]:
        try:
            yield from self.index.build(session, tools)
            known.is_built = True
        finally:
            with self._lock:
                if not known.is_built and self._sessions.get(session) is known:
                    del self._sessions[session]
            known.settled.set()

    def ended(self, session: str) -> Advice[None]:
        """Note that a turn has ended."""
        with self._lock:
            goes = self._eviction.ended(session) and self._sessions.pop(session, None) is not None
        if goes:
            yield from self.index.remove(session)

    @property
    def names(self) -> list[str]:
        """The sessions that are held."""
        with self._lock:
            return [name for name, one in self._sessions.items() if one.is_built]


def _waiting(settled: threading.Event) -> Callable[[], Awaitable[None]]:
    async def wait() -> None:
        await asyncio.to_thread(settled.wait)

    return wait
