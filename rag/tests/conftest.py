"""The four ways to ask, which must all do the same; a server to ask."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, cast

import pytest
from rag.tests.chat_server import Server

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from entrepot_rag import ChatPrompt, ChatResponse


def called(prompt: ChatPrompt) -> ChatResponse:
    """Ask by `call`."""
    return prompt.call()


def acalled(prompt: ChatPrompt) -> ChatResponse:
    """Ask by `acall`."""
    return asyncio.run(prompt.acall())


def streamed(prompt: ChatPrompt) -> ChatResponse:
    """Ask by `stream`; the pieces must make the answer."""
    stream = prompt.stream()
    texts = list(stream.texts())
    response = stream.response
    assert "".join(texts).endswith(response.text)
    return response


def astreamed(prompt: ChatPrompt) -> ChatResponse:
    """Ask by `astream`."""

    async def asked() -> ChatResponse:
        stream = prompt.astream()
        texts = [text async for text in stream.atexts()]
        assert "".join(texts).endswith(stream.response.text)
        return stream.response

    return asyncio.run(asked())


@pytest.fixture(params=[called, acalled, streamed, astreamed], ids=lambda way: way.__name__)
def ask(request: pytest.FixtureRequest) -> Callable[[ChatPrompt], ChatResponse]:
    """Return one way to ask."""
    return cast("Callable[[ChatPrompt], ChatResponse]", request.param)


@pytest.fixture
def server() -> Generator[Server]:
    """Run a server."""
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()
