"""Connections as this library makes them, and those of one event loop (E3, E4, E5)."""

from __future__ import annotations

import asyncio
import math
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar, cast

import psycopg
from psycopg.pq import TransactionStatus

from entrepot_postgres import faults
from entrepot_postgres.binary import register

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

    from psycopg.abc import PQGen

T = TypeVar("T")


class Settings(dict[str, str]):
    """What a connection is known to be set to."""


class Connection(psycopg.Connection[Any]):
    """A connection that stops waiting for a server that is silent, and remembers its settings."""

    give_up: float = math.inf
    known: Settings

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.known = Settings()
        register(self)

    def wait(self, gen: PQGen[T], *args: Any, **kwargs: Any) -> T:
        """Wait for the server, at most until `give_up` on the monotonic clock."""
        return super().wait(_bounded(gen, self), *args, **kwargs)


def _bounded(gen: PQGen[T], connection: Connection) -> PQGen[T]:
    try:
        wanted = next(gen)
        while True:
            ready = yield wanted
            if not ready and time.monotonic() > connection.give_up:
                connection.pgconn.finish()
                msg = "no answer by the deadline"
                raise faults.DeadlineError(msg)
            wanted = gen.send(ready)
    except StopIteration as end:
        return cast("T", end.value)


class AsyncConnection(psycopg.AsyncConnection[Any]):
    """An async connection that remembers its settings."""

    known: Settings

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.known = Settings()
        register(self)


class Loop:
    """The connections of one event loop.

    A pool of psycopg_pool needs closing before its loop ends, or the loop may wait for its workers for ever;
    `asyncio.run` gives no occasion for that. These need no tasks of their own.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, target: Mapping[str, Any], size: int) -> None:
        self.loop = loop
        self._target = target
        self._turns = asyncio.Semaphore(size)
        self._idle: list[AsyncConnection] = []
        self._taken: set[AsyncConnection] = set()

    @asynccontextmanager
    async def connection(self, left: float, where: str) -> AsyncGenerator[AsyncConnection]:
        """Lend a connection, making one if none is free."""
        try:
            async with asyncio.timeout(left):
                await self._turns.acquire()
        except TimeoutError as error:
            raise faults.no_connection(error, where, None) from error
        try:
            connection = self._idle.pop() if self._idle else await self.connect(left, where)
            self._taken.add(connection)
            try:
                yield connection
            finally:
                self._taken.discard(connection)
                if connection.info.transaction_status is TransactionStatus.IDLE:
                    self._idle.append(connection)
                else:  # broken, or cancelled at a moment that leaves its state unknown
                    connection.pgconn.finish()
        finally:
            self._turns.release()

    async def connect(self, left: float, where: str) -> AsyncConnection:
        """Make a connection."""
        try:
            async with asyncio.timeout(left):
                return await AsyncConnection.connect(**self._target, connect_timeout=whole(left))
        except Exception as error:
            raise faults.connecting(error, where) from error

    def forget_idle(self) -> None:
        """Drop connections that nobody uses: one was broken, so they are likely to be."""
        for connection in self._idle:
            connection.pgconn.finish()
        self._idle.clear()

    def finish(self) -> None:
        """Drop all connections, also where the loop has ended and nobody can await their close."""
        self.forget_idle()
        for connection in self._taken:
            connection.pgconn.finish()
        self._taken.clear()

    async def close(self) -> None:
        """Close the connections that nobody uses, with a goodbye."""
        while self._idle:
            await self._idle.pop().close()


def whole(seconds: float) -> int:
    """Return seconds as libpq takes them: whole, and at least 2, which is its own least."""
    return max(2, math.ceil(seconds))
