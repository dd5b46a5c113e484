"""`ShelfChatMemoryRepository`: conversations, append-only (M1 to M9)."""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from entrepot import ChatMemoryRepository
from entrepot.capabilities import Capabilities
from entrepot.memory import Entry
from entrepot.messages import Role, decode_message
from entrepot.records import Page

from entrepot_shelf.config import password_of
from entrepot_shelf.engine import Log, Server
from entrepot_shelf.faults import translated
from entrepot_shelf.plugin import MEMORY_CAPABILITIES


class ShelfChatMemoryRepository(ChatMemoryRepository):
    """Conversations in Shelf.

    Args:
        host: The server.
        port: Its port.
        password: Of the server; SHELF_PASSWORD if not given.
        name: Which of the server's memories.
        options: What every memory takes: ttl and timeout.
    """

    backend = "shelf"
    capabilities: Capabilities = MEMORY_CAPABILITIES

    def __init__(
        self,
        *,
        host: str = "localhost",
        port: int = 7000,
        password: str | None = None,
        name: str = "conversations",
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self._where = f"{host}:{port}"
        self._address = (host, port, password_of(password))
        self._name = name
        self._server: Server | None = None

    def _open(self) -> None:
        with translated(self._where, self._name):
            self._server = Server.at(*self._address)

    def _close(self) -> None:
        self._server = None

    @contextmanager
    def _logs(self) -> Iterator[dict[str, Log]]:
        """Hold the conversations. REPLACE: by a transaction of your engine, or one script or command."""
        with translated(self._where, self._name):
            if self._server is None:
                self._server = Server.at(*self._address)
            with self._server.lock:
                logs = self._server.logs.setdefault(self._name, {})
                for expired in [name for name, log in logs.items() if log.expires <= time.time()]:
                    del logs[expired]
                yield logs

    def _add(self, log: Log, entries: Sequence[Entry]) -> None:
        """Append what is not there yet (M3), and put expiry off (M8)."""
        for entry in entries:
            log.entries.setdefault(entry.id, entry.json)
        if self.ttl is not None:
            log.expires = time.time() + self.ttl

    def _append(self, conversation_id: str, entries: Sequence[Entry]) -> None:
        with self._logs() as logs:
            self._add(logs.setdefault(conversation_id, Log()), entries)

    def _tail(self, conversation_id: str, last: int | None) -> list[bytes]:
        with self._logs() as logs:
            texts = list(logs.get(conversation_id, Log()).entries.values())
        return texts if last is None else texts[-last:]

    def _replace(self, conversation_id: str, entries: Sequence[Entry]) -> None:
        with self._logs() as logs:
            logs.pop(conversation_id, None)
            self._add(logs.setdefault(conversation_id, Log()), entries)

    def _truncate(self, conversation_id: str, after: str) -> bool:
        with self._logs() as logs:
            log = logs.get(conversation_id)
            if log is None or after not in log.entries:
                return False
            names = list(log.entries)
            for name in names[names.index(after) + 1 :]:
                del log.entries[name]
            self._add(log, [])
            return True

    def _delete(self, conversation_id: str) -> None:
        with self._logs() as logs:
            logs.pop(conversation_id, None)

    def _ids(self, limit: int, cursor: str | None) -> Page[str]:
        with self._logs() as logs:
            names = sorted(logs)
        start = 0 if cursor is None else bisect_right(names, cursor)
        found = names[start : start + limit]
        return Page(found, found[-1] if start + limit < len(names) else None)

    def _latest(self, conversation_id: str, role: Role) -> bytes | None:
        # REPLACE: by an index over roles; a conversation may be long.
        texts = reversed(self._tail(conversation_id, None))
        return next((text for text in texts if decode_message(text).role is role), None)
