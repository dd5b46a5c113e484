# pyright: reportPrivateUsage=false
"""How commands are sent, on a session that is none: E3. No server."""

from __future__ import annotations

import asyncio
import threading
import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from entrepot_cassandra.commands import Batch, Rows, Together, change
from entrepot_cassandra.sessions import Address, Server

if TYPE_CHECKING:
    from collections.abc import Callable

    from entrepot_cassandra.commands import Script

SENDING = 0.002
"""Seconds that sending a statement takes here."""


class Future:
    """An answer that is there as soon as it is asked for."""

    def add_callbacks(self, callback: Callable[[Any], object], _errback: object) -> None:
        callback([(True,)])


class Session:
    """Notes the threads that statements come from; each takes a moment to be made into bytes."""

    def __init__(self) -> None:
        self.threads: list[int] = []

    def execute_async(self, *_: object, **__: object) -> Future:
        self.threads.append(threading.get_ident())
        end = time.perf_counter() + SENDING
        while time.perf_counter() < end:
            pass
        return Future()


class Found(SimpleNamespace):
    """Stands for the driver's ResultSet."""

    def __init__(self, _future: object, rows: Any) -> None:
        super().__init__(current_rows=rows, paging_state=None)


def said(_command: object) -> str:
    """Stands for what is asked of the session or made for it."""
    return "prepared"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Server:
    address = Address("nowhere", 9042, None, None, False, None, None, None, True)
    made = Server(address, keyspace="k", local=False, replication=None, concurrency=200, timeout=30.0)
    made._session = Session()
    monkeypatch.setattr(made, "_is_prepared", said)
    monkeypatch.setattr(made, "_statement", said)
    monkeypatch.setattr("entrepot_cassandra.sessions.ResultSet", Found)
    return made


ASKS = [change("UPDATE", n) for n in range(200)]


async def turns(server: Server, script: Script[Any]) -> tuple[Any, int]:
    """Return what a script made, and how often another task had its turn meanwhile."""
    count = 0
    over = False

    async def other() -> None:
        nonlocal count
        while not over:
            count += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(other())
    answer = await server.arun(script)
    over = True
    await task
    return answer, count


def test_others_have_their_turn_while_many_statements_are_sent(server: Server) -> None:
    # E3: however many may be under way at a time
    def script() -> Script[Any]:
        return (yield Together(ASKS))

    answers, count = asyncio.run(turns(server, script()))
    assert answers == [Rows([(True,)])] * 200
    assert count >= 200 / 4


def test_a_long_batch_is_sent_beside_the_event_loop(server: Server) -> None:
    # E3: the driver makes bytes of all its statements at once
    def script() -> Script[Any]:
        return (yield Batch(ASKS))

    answer, _ = asyncio.run(turns(server, script()))
    assert answer == Rows([(True,)])
    session: Any = server._session
    assert session.threads
    assert threading.get_ident() not in session.threads
