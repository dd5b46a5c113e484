# pyright: reportPrivateUsage=false
"""The driver's tasks are at rest when a client is closed or its event loop ends: E5."""

from __future__ import annotations

import asyncio
import socket
import time
from typing import TYPE_CHECKING, Any

import pymongo.pool_shared
import pytest
from pymongo import monitoring

import entrepot_mongodb.watch
from entrepot.errors import BackendError, EntrepotError
from entrepot_mongodb.commands import Call
from entrepot_mongodb.servers import server_of
from entrepot_mongodb.watch import Watch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from entrepot_mongodb.commands import Script
    from entrepot_mongodb.sessions import Server

ONE, OTHER = ("one", 1), ("other", 1)


@pytest.fixture
def ends(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """How each connection that the async driver made ended; each takes longer than a call waits for it."""
    monkeypatch.setattr(entrepot_mongodb.watch, "_MOMENT", 10.0)
    made: Any = pymongo.pool_shared
    connect = made._async_create_connection
    found: list[str] = []

    async def slowly(*given: Any) -> Any:
        try:
            await asyncio.sleep(0.7)  # the driver looks at its timeout every 0.5 s
            connected = await connect(*given)
        except BaseException as error:
            found.append(type(error).__name__)
            raise
        found.append("made")
        return connected

    monkeypatch.setattr(made, "_async_create_connection", slowly)
    return found


@pytest.fixture
def server() -> Iterator[Server]:
    """A server that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        made = server_of(host="127.0.0.1", port=listening.getsockname()[1], timeout=0.02)
        yield made
        made.close()


def hello() -> Script[object]:
    return (yield Call(None, "command", ("hello",)))


def test_a_loop_that_ends_with_an_error_cancels_no_connection(server: Server, ends: list[str]) -> None:
    # E5: PyMongo leaves the socket of such a connection open
    with pytest.raises(BackendError):
        asyncio.run(server.arun(hello()))
    assert ends
    assert "CancelledError" not in ends


def test_closing_cancels_no_connection(server: Server, ends: list[str]) -> None:
    # E5
    async def closed() -> None:
        call = asyncio.ensure_future(server.arun(hello()))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        await server.aclose()
        with pytest.raises(EntrepotError):
            await call

    asyncio.run(closed())
    assert ends
    assert "CancelledError" not in ends


async def test_it_is_at_rest_when_no_server_is_asked() -> None:
    # E5: one that is to answer when something changes has its connection
    watch = Watch()
    await watch.at_rest()
    watch.started(monitoring.ServerHeartbeatStartedEvent(ONE, awaited=True))
    await watch.at_rest()
    watch.started(monitoring.ServerHeartbeatStartedEvent(ONE))
    watch.started(monitoring.ServerHeartbeatStartedEvent(OTHER))
    resting = asyncio.ensure_future(watch.at_rest())
    await asyncio.sleep(0)
    watch.failed(monitoring.ServerHeartbeatFailedEvent(0.1, OSError(), OTHER))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert not resting.done()
    watch.failed(monitoring.ServerHeartbeatFailedEvent(0.1, OSError(), ONE))
    await resting


async def test_a_server_that_does_not_answer_is_not_waited_for() -> None:
    # E4
    watch = Watch()
    watch.started(monitoring.ServerHeartbeatStartedEvent(ONE))
    began = time.monotonic()
    await asyncio.wait_for(watch.at_rest(), 5.0)
    assert time.monotonic() - began >= 0.2
