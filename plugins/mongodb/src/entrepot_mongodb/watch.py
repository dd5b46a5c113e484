"""The driver's watch on its servers, and when it is at rest.

An `AsyncMongoClient` has tasks that ask each server how it is, over connections of their own. PyMongo 4.20.1 forgets the
socket of a connection that is cancelled while it is made: whoever closes such a client, or ends the event loop under it, gets
a ResourceWarning. So both wait for a moment until no server is being asked.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from pymongo.monitoring import ServerHeartbeatListener

if TYPE_CHECKING:
    from pymongo.monitoring import (
        ServerHeartbeatFailedEvent,
        ServerHeartbeatStartedEvent,
        ServerHeartbeatSucceededEvent,
    )

_MOMENT: Final = 0.25
"""Seconds after which a server that does not answer is not waited for."""


class Watch(ServerHeartbeatListener):
    """Knows which servers a client's tasks ask at the moment; of one event loop, in which the driver tells it."""

    def __init__(self) -> None:
        self._asked: set[object] = set()
        self._changed = asyncio.Event()

    def started(self, event: ServerHeartbeatStartedEvent) -> None:
        """Note that a server is asked; one that is to answer when something changes is asked over a connection it has."""
        if not event.awaited:
            self._asked.add(event.connection_id)

    def succeeded(self, event: ServerHeartbeatSucceededEvent) -> None:
        """Note that it answered."""
        self._answered(event.connection_id)

    def failed(self, event: ServerHeartbeatFailedEvent) -> None:
        """Note that it did not."""
        self._answered(event.connection_id)

    def _answered(self, server: object) -> None:
        self._asked.discard(server)
        self._changed.set()

    async def at_rest(self) -> None:
        """Return when no server is being asked, or after a moment."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_MOMENT):
                while self._asked:
                    self._changed.clear()
                    await self._changed.wait()
