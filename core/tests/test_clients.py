"""`entrepot.clients`: one client for sync use, one for each event loop."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from entrepot.clients import Clients
from entrepot.errors import ClosedError, ConfigurationError


class Client:
    def __init__(self) -> None:
        self.closed = 0

    def close(self) -> None:
        self.closed += 1


class AsyncClient:
    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.closed = 0
        self.ended = asyncio.Event()

    async def close(self) -> None:
        assert asyncio.get_running_loop() is self.loop
        await asyncio.sleep(0)
        self.closed += 1
        self.ended.set()


def clients(**given: Any) -> Clients[Client, AsyncClient]:
    return Clients(
        where="a server",
        make=Client,
        amake=AsyncClient,
        close=Client.close,
        aclose=AsyncClient.close,
        **given,
    )


def test_the_sync_client_is_made_once_and_when_needed() -> None:
    made: list[Client] = []

    def make() -> Client:
        made.append(Client())
        return made[-1]

    held = Clients[Client, AsyncClient](where="a server", make=make, close=Client.close)
    assert made == []
    found: list[Client] = []
    threads = [threading.Thread(target=lambda: found.append(held.sync())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == made * 8
    assert held.native is made[0]
    assert (held.has_sync, held.has_async) == (True, False)
    held.close()
    held.close()
    assert made[0].closed == 1  # E5


def test_each_event_loop_has_a_client_that_ends_with_it() -> None:  # E3, E5
    held = clients()

    async def main() -> AsyncClient:
        first = await held.here()
        assert await held.here() is first
        assert first.closed == 0
        return first

    one, other = asyncio.run(main()), asyncio.run(main())
    assert one is not other
    assert (one.closed, other.closed) == (1, 1)
    held.close()
    assert (one.closed, other.closed) == (1, 1)


def test_aclose_waits_for_the_client_of_its_loop() -> None:  # E5
    held = clients()
    sync = held.sync()

    async def main() -> None:
        client = await held.here()
        await held.aclose()
        assert client.closed == 1
        await held.aclose()
        assert client.closed == 1
        with pytest.raises(ClosedError, match="a server"):
            await held.here()

    asyncio.run(main())
    assert sync.closed == 1
    assert held.is_closed


def test_close_reaches_the_clients_of_loops_that_run() -> None:  # E5
    held = clients()
    begun, ended = threading.Event(), threading.Event()
    found: list[AsyncClient] = []

    async def main() -> None:
        found.append(await held.here())
        begun.set()
        await asyncio.to_thread(ended.wait, 10)
        await found[0].ended.wait()

    thread = threading.Thread(target=asyncio.run, args=(main(),))
    thread.start()
    assert begun.wait(10)
    held.close()
    ended.set()
    thread.join(10)
    assert not thread.is_alive()
    assert found[0].closed == 1


def test_nothing_is_made_after_close() -> None:  # E5
    held = clients()
    held.close()
    with pytest.raises(ClosedError):
        held.sync()
    with pytest.raises(ClosedError):
        asyncio.run(held.here())


def test_a_client_of_the_user_is_used_and_not_closed() -> None:  # E5
    client = Client()
    held = clients(given=client)
    assert (held.has_sync, held.has_async) == (True, False)
    assert held.sync() is held.native is client
    held.close()
    assert client.closed == 0


def test_an_async_client_of_the_user_serves_async_operations_alone() -> None:  # E5
    async def main() -> None:
        client = AsyncClient()
        held = clients(agiven=client)
        assert (held.has_sync, held.has_async) == (False, True)
        assert await held.here() is held.native is client
        with pytest.raises(ConfigurationError, match="AsyncClient"):
            held.sync()
        await held.aclose()
        assert client.closed == 0

    asyncio.run(main())
