"""`Clients`: a driver's sync client, and its async client of each event loop, made when first used (E3, E5).

An async client belongs to the event loop in which it connected. A store may be used in several, one after the other
or side by side, and is told of none of them; so each gets a client of its own, which is closed when the loop ends.
"""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Generic, TypeVar, cast

from entrepot.errors import ClosedError, ConfigurationError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

SyncT = TypeVar("SyncT")
AsyncT = TypeVar("AsyncT")


class _Loop(Generic[AsyncT]):
    """The client of one event loop.

    It is closed when the loop ends: the loop then closes its async generators, and one of them is ours.
    """

    def __init__(
        self, loop: asyncio.AbstractEventLoop, client: AsyncT, aclose: Callable[[AsyncT], Awaitable[object]]
    ) -> None:
        self.loop = loop
        self.client = client
        self._aclose = aclose
        self._end: AsyncGenerator[None] | None = None

    async def begin(self) -> None:
        """Have the client closed when the loop ends."""
        if self._end is None:
            self._end = self._closing()
            await anext(self._end)

    async def _closing(self) -> AsyncGenerator[None]:
        try:
            yield
        finally:
            await self._aclose(self.client)

    async def close(self) -> None:
        """Close the client, here; the end of the loop finds nothing to do then."""
        if self._end is None:
            await self._aclose(self.client)
        else:
            await self._end.aclose()

    def close_soon(self) -> None:
        """Have the client closed, from outside of its loop."""
        if not self.loop.is_closed():
            self.loop.call_soon_threadsafe(lambda: self.loop.create_task(self.close()))


class Clients(Generic[SyncT, AsyncT]):
    """The clients of one store, or the one that the user gave.

    Args:
        where: What errors call the server.
        make: Makes the client of sync operations.
        amake: Makes a client of async operations, within its event loop; None if the driver has none.
        close: Closes a client of sync operations.
        aclose: Closes a client of async operations.
        given: A client of the user's for sync operations: it is used, and not closed.
        agiven: The same for async operations. With either, the other kind of operation has no client.
    """

    def __init__(  # noqa: PLR0913 - what makes and ends both kinds
        self,
        *,
        where: str,
        make: Callable[[], SyncT],
        close: Callable[[SyncT], object],
        amake: Callable[[], AsyncT] | None = None,
        aclose: Callable[[AsyncT], Awaitable[object]] | None = None,
        given: SyncT | None = None,
        agiven: AsyncT | None = None,
    ) -> None:
        self.where = where
        self._make = make
        self._amake = amake
        self._close = close
        self._aclose = aclose
        self._given = given
        self._agiven = agiven
        self._lock = threading.Lock()
        self._client: SyncT | None = None
        self._loops: dict[int, _Loop[AsyncT]] = {}
        self._closed = False

    @property
    def is_closed(self) -> bool:
        """Whether `close` was called."""
        return self._closed

    @property
    def has_sync(self) -> bool:
        """Whether sync operations have a client."""
        return self._agiven is None

    @property
    def has_async(self) -> bool:
        """Whether async operations have a client; without, they use the sync one in a thread."""
        return self._agiven is not None or (self._given is None and self._amake is not None)

    @property
    def native(self) -> object:
        """The user's client, or that of sync operations."""
        return self._agiven if self._agiven is not None else self.sync()

    def sync(self) -> SyncT:
        """Return the client of sync operations.

        Raises:
            ConfigurationError: The user gave an async client.
            ClosedError: The store was closed.
        """
        self._check_open()
        if self._given is not None:
            return self._given
        if self._agiven is not None:
            kind = type(self._agiven).__name__
            msg = f"the client is of the type {kind}, which sync operations cannot use"
            raise ConfigurationError(msg, hint="use the async twin, or give the driver's sync client")
        with self._lock:
            self._check_open()
            if self._client is None:
                self._client = self._make()
            return self._client

    async def here(self) -> AsyncT:
        """Return the client of the running event loop.

        Raises:
            ClosedError: The store was closed.
        """
        self._check_open()
        if self._agiven is not None:
            return self._agiven
        loop = asyncio.get_running_loop()
        with self._lock:
            self._check_open()
            known = self._loops.get(id(loop))
            if known is None or known.loop is not loop:
                self._loops = {key: other for key, other in self._loops.items() if not other.loop.is_closed()}
                # `has_async` says whether there is anything to make.
                amake, aclose = cast("Callable[[], AsyncT]", self._amake), self._aclose
                known = _Loop(loop, amake(), cast("Callable[[AsyncT], Awaitable[object]]", aclose))
                self._loops[id(loop)] = known
        await known.begin()
        return known.client

    def _check_open(self) -> None:
        """Refuse to connect anew for a call that was under way when everything was closed (E5)."""
        if self._closed:
            msg = f"the connections to {self.where} are closed"
            raise ClosedError(msg)

    def close(self) -> None:
        """Close the clients that were made; those of event loops that still run follow soon."""
        with self._lock:
            self._closed = True
            client, self._client = self._client, None
            loops, self._loops = self._loops, {}
        for known in loops.values():
            known.close_soon()
        if client is not None:
            self._close(client)

    async def aclose(self) -> None:
        """As `close`, and waits for the client of the running event loop."""
        loop = asyncio.get_running_loop()
        with self._lock:
            self._closed = True
            known = self._loops.pop(id(loop), None)
        if known is not None and known.loop is loop:
            await known.close()
        self.close()
