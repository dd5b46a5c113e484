"""A memory whose server refuses, breaks off, is late, or goes and comes back: E1, E2, E3, E4, M3, M4."""

from __future__ import annotations

import asyncio
import random
import socket
import traceback
from typing import TYPE_CHECKING

import pytest

from entrepot import Message, UserMessage, aopen_chat_memory, open_chat_memory
from entrepot.errors import AuthenticationError, BackendError, OperationTimeoutError, UnreachableError
from entrepot_conformance.servers import running_server
from entrepot_conformance.tests.faults.conftest import (
    CUTS,
    WRONG,
    at,
    in_time,
    late,
    proxied,
    startable,
    with_password,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from entrepot import ChatMemoryRepository
    from entrepot_conformance.endpoints import Memories
    from entrepot_conformance.proxy import Proxy

NAME = "a conversation"


@pytest.fixture
def proxy(memories: Memories) -> Iterator[Proxy]:
    """Return the proxy through which everything goes that `memories` opens."""
    with proxied(memories) as proxy:
        yield proxy


@pytest.fixture
def memory(memories: Memories, proxy: Proxy, timeout: float) -> ChatMemoryRepository:
    """Return a memory with one conversation of three messages, opened through the proxy."""
    assert proxy.port
    memory = memories(timeout=timeout)
    memory.append(NAME, messages("a", "b", "c"))
    return memory


def messages(*texts: str) -> list[Message]:
    """Return user messages."""
    return [UserMessage(text) for text in texts]


def texts(memory: ChatMemoryRepository, *, twin: bool = False) -> list[str | None]:
    """Return what the conversation holds."""

    async def ask() -> list[Message]:
        return await memory.amessages(NAME)

    found = asyncio.run(ask()) if twin else memory.messages(NAME)
    return [message.text for message in found]


def append(memory: ChatMemoryRepository, batch: list[Message], *, twin: bool) -> None:
    """Append, or append by the async twin."""

    async def ask() -> None:
        await memory.aappend(NAME, batch)

    if twin:
        asyncio.run(ask())
    else:
        memory.append(NAME, batch)


def replace(memory: ChatMemoryRepository, batch: list[Message], *, twin: bool) -> None:
    """Replace, or replace by the async twin."""

    async def ask() -> None:
        await memory.areplace(NAME, batch)

    if twin:
        asyncio.run(ask())
    else:
        memory.replace(NAME, batch)


def _open(url: str, timeout: float, *, twin: bool) -> None:
    async def opened() -> None:
        await aopen_chat_memory(url, timeout=timeout)

    if twin:
        asyncio.run(opened())
    else:
        open_chat_memory(url, timeout=timeout)


@pytest.mark.parametrize("twin", [False, True], ids=["sync", "async"])
def test_a_refused_port_is_unreachable(memories: Memories, timeout: float, *, twin: bool) -> None:
    # E2, E3
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and listens not
        memories.address = at(memories.address, "127.0.0.1", taken.getsockname()[1])
        with in_time(timeout), pytest.raises(UnreachableError) as caught:
            _open(memories.url(), timeout, twin=twin)
    assert caught.value.retryable
    assert "127.0.0.1" in str(caught.value)


@pytest.mark.parametrize("twin", [False, True], ids=["sync", "async"])
def test_a_wrong_password_is_refused_and_not_told(memories: Memories, timeout: float, *, twin: bool) -> None:
    # E2, E1, E3
    memories.address = with_password(memories.address, WRONG)
    with in_time(timeout), pytest.raises(AuthenticationError) as caught:
        _open(memories.url(), timeout, twin=twin)
    assert not caught.value.retryable
    assert caught.value.hint
    assert caught.value.__cause__ is not None
    assert WRONG not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("twin", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("after", CUTS)
def test_a_read_that_is_broken_off_once_is_answered(
    memory: ChatMemoryRepository, proxy: Proxy, after: int, timeout: float, *, twin: bool
) -> None:
    # E4, E3, M7
    with proxy.cutting(after, times=1), in_time(timeout):
        assert texts(memory, twin=twin) == ["a", "b", "c"]


@pytest.mark.parametrize("twin", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("after", CUTS)
def test_an_append_that_is_broken_off_once_is_there_once(
    memory: ChatMemoryRepository, proxy: Proxy, after: int, timeout: float, *, twin: bool
) -> None:
    # M3, E4: message ids make the retry safe
    with proxy.cutting(after, times=1), in_time(timeout):
        append(memory, messages("d", "e"), twin=twin)
    assert texts(memory) == ["a", "b", "c", "d", "e"]


@pytest.mark.parametrize("twin", [False, True], ids=["sync", "async"])
def test_an_append_that_is_always_broken_off_is_told_and_can_be_repeated(
    memory: ChatMemoryRepository, proxy: Proxy, timeout: float, *, twin: bool
) -> None:
    # M3, E4
    batch = messages("d", "e")
    with proxy.cutting(0), in_time(timeout), pytest.raises(BackendError) as caught:
        append(memory, batch, twin=twin)
    assert caught.value.retryable
    assert proxy.harmed
    assert texts(memory) in (["a", "b", "c"], ["a", "b", "c", "d", "e"])  # never half
    append(memory, batch, twin=twin)
    assert texts(memory) == ["a", "b", "c", "d", "e"]


@pytest.mark.parametrize("twin", [False, True], ids=["sync", "async"])
def test_an_append_that_never_reached_the_server_changes_nothing(
    memory: ChatMemoryRepository, proxy: Proxy, timeout: float, *, twin: bool
) -> None:
    # M3, E4
    with proxy.losing_requests(), in_time(timeout), pytest.raises(BackendError):
        append(memory, messages("d"), twin=twin)
    assert texts(memory) == ["a", "b", "c"]


@pytest.mark.parametrize("twin", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("after", CUTS)
def test_a_replace_that_is_broken_off_is_the_old_or_the_new(
    memory: ChatMemoryRepository, proxy: Proxy, after: int, timeout: float, *, twin: bool
) -> None:
    # M4, E4
    told: BackendError | None = None
    with proxy.cutting(after, times=1), in_time(timeout):
        try:
            replace(memory, messages("x", "y"), twin=twin)
        except BackendError as error:
            told = error
    found = texts(memory)
    if told is None:
        assert found == ["x", "y"]
    else:
        assert found in (["a", "b", "c"], ["x", "y"])
        if found == ["x", "y"]:
            assert told.outcome == "unknown"


@pytest.mark.slow
def test_connections_that_are_cut_at_random_halve_and_double_nothing(
    memory: ChatMemoryRepository, proxy: Proxy
) -> None:
    # M3, M4, E4: what returned is there, what is told as not done is not, and whatever is repeated is there once
    generator = random.Random(11)
    state = ["a", "b", "c"]
    cut = 0
    for number in range(200):
        twin, replaces = bool(number % 2), number % 5 == 4
        batch = messages(*(f"{number} {part}" for part in range(generator.randint(1, 6))))
        wanted = ([] if replaces else state) + [message.text for message in batch]
        change = replace if replaces else append
        harmed, outcome = proxy.harmed, "done"
        with proxy.cutting(generator.choice(CUTS), times=generator.choice((1, 2, 1_000_000))):
            try:
                change(memory, batch, twin=twin)
            except BackendError as error:
                outcome = str(error.outcome)
        found = texts(memory)
        if outcome == "done":
            assert found == wanted
        elif outcome == "not_done":
            assert found == state
        else:
            assert found in (state, wanted)
        change(memory, batch, twin=not twin)
        assert texts(memory) == wanted
        state = wanted
        cut += proxy.harmed > harmed
        if cut == 50:
            break
    assert cut == 50


@pytest.mark.parametrize("twin", [False, True], ids=["sync", "async"])
def test_an_answer_that_is_late_is_a_timeout(
    memory: ChatMemoryRepository, proxy: Proxy, timeout: float, *, twin: bool
) -> None:
    # E4, E3
    batch = messages("d")
    with (
        proxy.delaying(late(timeout)),
        in_time(timeout),
        pytest.raises((OperationTimeoutError, UnreachableError)) as caught,
    ):
        append(memory, batch, twin=twin)
    assert caught.value.retryable
    proxy.break_all()
    append(memory, batch, twin=twin)
    assert texts(memory, twin=twin) == ["a", "b", "c", "d"]


@pytest.mark.restarts
def test_a_server_that_stops_is_unreachable_and_found_again(
    memories: Memories, request: pytest.FixtureRequest, timeout: float
) -> None:
    # E2, E4, E3: the same object goes on when the server is back
    spec = memories.spec.server
    assert spec is not None
    with running_server(spec, startable(request.config)) as server:
        memories.address = server.url
        memory = memories(timeout=timeout)
        append(memory, messages("a"), twin=False)
        append(memory, messages("b"), twin=True)
        server.stop()
        for twin in (False, True):
            with in_time(timeout), pytest.raises(UnreachableError) as caught:
                texts(memory, twin=twin)
            assert caught.value.retryable
            with in_time(timeout), pytest.raises(UnreachableError):
                append(memory, messages("x"), twin=twin)
        server.start()
        kept = texts(memory)
        assert kept in ([], ["a", "b"])
        for twin in (False, True):
            append(memory, messages(f"back {twin}"), twin=twin)
        assert texts(memory, twin=True) == [*kept, "back False", "back True"]
        memories.close()
