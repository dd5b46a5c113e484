"""The model over HTTP, against a server that streams, cuts, limits and fails."""

from __future__ import annotations

import asyncio
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal, cast

import msgspec
import pytest
from rag.tests.chat_server import ANSWER, KEY, STREAM, Handler, Server, delta, sse
from rag.tests.test_merging import RECORDED, TIME, WEATHER

from entrepot.errors import (
    AuthenticationError,
    ClosedError,
    ConfigurationError,
    OperationTimeoutError,
    UnreachableError,
)
from entrepot.media import Media
from entrepot.messages import (
    AssistantMessage,
    SystemMessage,
    ToolResponse,
    ToolResponseMessage,
    UserMessage,
)
from entrepot_rag import (
    ChatClient,
    ChatModelError,
    ChatOptions,
    ModelRefusedError,
    OpenAIChatModel,
    Prompt,
    ToolDefinition,
    Usage,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from entrepot_rag import ChatPrompt, ChatResponse

    Ask = Callable[[ChatPrompt], ChatResponse]


@contextmanager
def opened(server: Server, **options: Any) -> Generator[OpenAIChatModel]:
    """Open a model on a server."""
    with OpenAIChatModel("m", base_url=server.url, api_key=KEY, **options) as model:
        yield model


def sending(
    how: Literal["cut", "ended"], stream: bytes, answer: bytes | None = None
) -> Callable[[Handler], None]:
    """Return what sends a stream, or an answer to who asks for none."""

    def send(handler: Handler) -> None:
        content = stream if answer is None or handler.owner.bodies[-1].get("stream") else answer
        (handler.cut if how == "cut" else handler.ended)(content)

    return send


def test_an_answer(ask: Ask, server: Server) -> None:
    with opened(server) as model:
        response = ask(ChatClient(model).prompt("Hi"))
    assert (response.text, response.finish_reason, response.usage) == ("Hello.", "stop", Usage(3, 2))
    assert (response.model, response.id) == ("m-1", "a-1")
    (body,) = server.bodies
    assert body["messages"] == [{"role": "user", "content": "Hi"}]
    assert body["model"] == "m"
    assert "tools" not in body
    assert server.keys == [f"Bearer {KEY}"]


def test_options_and_messages_are_those_of_the_interface(server: Server) -> None:
    picture = Media(mime_type="image/png", data=b"\x89PNG")
    linked = Media(mime_type="image/png", url="http://pictures/a.png")
    sound = Media(mime_type="audio/wav", data=b"RIFF")
    paper = Media(mime_type="application/pdf", data=b"%PDF", name="p.pdf")
    prompt = Prompt(
        messages=(
            SystemMessage("s"),
            UserMessage("u", media=(picture, linked, sound, paper)),
            AssistantMessage("", tool_calls=(WEATHER, TIME)),
            ToolResponseMessage(responses=(ToolResponse("c1", "weather", "sun"), ToolResponse("c2", "time", "noon"))),
            AssistantMessage("a"),
        ),
        options=ChatOptions(
            model="other", temperature=0.0, top_p=0.5, max_tokens=9, stop=("x",), seed=1, tool_choice="weather",
            response_format={"type": "json_object"}, extra={"user": "u1"},
        ),
        tools=(ToolDefinition(name="weather", description="d", parameters={"type": "object"}),),
    )  # fmt: skip
    with opened(server) as model:
        model.call(prompt)
    (body,) = server.bodies
    messages = body.pop("messages")
    assert body == {
        "model": "other", "temperature": 0.0, "top_p": 0.5, "max_tokens": 9, "stop": ["x"], "seed": 1, "user": "u1",
        "response_format": {"type": "json_object"},
        "tool_choice": {"type": "function", "function": {"name": "weather"}},
        "tools": [{"type": "function", "function": {"name": "weather", "description": "d", "parameters": {"type": "object"}}}],
    }  # fmt: skip
    assert [one["role"] for one in messages] == ["system", "user", "assistant", "tool", "tool", "assistant"]
    assert messages[1]["content"] == [
        {"type": "text", "text": "u"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw=="}},
        {"type": "image_url", "image_url": {"url": "http://pictures/a.png"}},
        {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}},
        {"type": "file", "file": {"filename": "p.pdf", "file_data": "data:application/pdf;base64,JVBERg=="}},
    ]
    assert messages[2] == {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": WEATHER.arguments}},
            {"id": "c2", "type": "function", "function": {"name": "time", "arguments": TIME.arguments}},
        ],
    }
    assert messages[4] == {"role": "tool", "tool_call_id": "c2", "content": "noon"}


def test_media_that_the_interface_does_not_take_are_refused(server: Server) -> None:
    with opened(server) as model, pytest.raises(ChatModelError, match="video/mp4"):
        ChatClient(model).prompt().user("u", media=[Media(mime_type="video/mp4", data=b"x")]).call()
    assert server.bodies == []


def test_a_call_of_tools(ask: Ask, server: Server) -> None:
    calls = [
        {"id": one.id, "type": "function", "function": {"name": one.name, "arguments": one.arguments}}
        for one in (WEATHER, TIME)
    ]
    answer = {
        "choices": [
            {"index": 0, "message": {"content": None, "tool_calls": calls}, "finish_reason": "tool_calls"}
        ]
    }
    for recorded in RECORDED.values():
        server.script = [sending("ended", recorded, msgspec.json.encode(answer))]
        with opened(server) as model:
            response = ask(ChatClient(model, call_tools=False).prompt("Hi"))
        assert response.tool_calls == (WEATHER, TIME)


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503, 504, 529])
def test_what_may_pass_is_tried_again(status: int, ask: Ask, server: Server) -> None:
    server.script = [(status, b'{"error": {"message": "busy"}}', ("retry-after-ms", "1"))] * 2
    with opened(server) as model:
        assert ask(ChatClient(model).prompt("Hi")).text == "Hello."
    assert len(server.bodies) == 3


def test_tries_are_bounded_and_the_reason_is_told(ask: Ask, server: Server) -> None:
    server.script = [
        (429, f'{{"error": {{"message": "slow down {KEY}"}}}}'.encode(), ("retry-after-ms", "1"))
    ] * 9
    with opened(server, max_retries=2) as model, pytest.raises(ChatModelError, match="429") as caught:
        ask(ChatClient(model).prompt("Hi"))
    assert len(server.bodies) == 3
    assert caught.value.retryable
    assert "slow down ***" in str(caught.value)
    assert KEY not in str(caught.value)


@pytest.mark.parametrize(
    ("status", "content", "kind"),
    [
        (400, b'{"error": {"code": "bad", "message": "no such field"}}', ModelRefusedError),
        (404, b"not found", ModelRefusedError),
        (429, b'{"error": {"code": "insufficient_quota", "message": "pay"}}', ModelRefusedError),
        (401, b'{"error": "sk-secret-1"}', AuthenticationError),
        (403, b"", AuthenticationError),
        (200, b"<html>", ChatModelError),
        (200, b'{"choices": []}', ChatModelError),
        (200, b'{"error": {"message": "overloaded"}}', ChatModelError),
    ],
)
def test_what_does_not_pass_is_not_tried_again(
    status: int, content: bytes, kind: type[Exception], ask: Ask, server: Server
) -> None:
    def answer(handler: Handler) -> None:
        if status == 200 and server.bodies[-1].get("stream"):
            handler.ended(b"data: " + content + b"\n\n")
        else:
            plain(handler, status, content)

    server.script = [answer]
    with opened(server) as model, pytest.raises(kind) as caught:
        ask(ChatClient(model).prompt("Hi"))
    assert len(server.bodies) == 1
    assert KEY not in str(caught.value)


def plain(handler: Handler, status: int, content: bytes) -> None:
    """Answer."""
    handler.send_response(status)
    handler.send_header("content-length", str(len(content)))
    handler.end_headers()
    handler.wfile.write(content)


def places(stream: bytes) -> list[int]:
    """Return places to cut a stream before its answer is whole: within its first events."""
    return list(range(1, stream.index(b'"finish_reason":"stop"'), 7))


@pytest.mark.parametrize("how", ["cut", "ended"])
def test_a_stream_that_breaks_is_an_error_and_never_an_answer(
    how: Literal["cut", "ended"], server: Server
) -> None:
    with opened(server, max_retries=0) as model:
        for place in places(STREAM):
            server.script = [sending(how, STREAM[:place])] * 2
            with pytest.raises((UnreachableError, ChatModelError)) as caught:
                list(ChatClient(model).prompt("Hi").stream())
            assert caught.value.retryable

            async def read() -> None:
                async for _ in ChatClient(model).prompt("Hi").astream():
                    pass

            with pytest.raises((UnreachableError, ChatModelError)):
                asyncio.run(read())


def test_a_server_that_does_not_say_done_is_understood(ask: Ask, server: Server) -> None:
    server.script = [sending("ended", STREAM.replace(b"data: [DONE]\n\n", b""), ANSWER)]
    with opened(server) as model:
        assert ask(ChatClient(model).prompt("Hi")).text == "Hello."


def test_no_answer_in_time(ask: Ask, server: Server) -> None:
    gone = threading.Event()

    def silent(handler: Handler) -> None:
        gone.wait(30)
        handler.close_connection = True

    server.script = [silent]
    try:
        with opened(server, timeout=0.2) as model, pytest.raises(OperationTimeoutError, match=r"0\.2 s"):
            ask(ChatClient(model).prompt("Hi"))
    finally:
        gone.set()


def test_no_server(ask: Ask) -> None:
    with (
        OpenAIChatModel("m", base_url="http://127.0.0.1:9/v1", max_retries=0) as model,
        pytest.raises(UnreachableError),
    ):
        ask(ChatClient(model).prompt("Hi"))


def test_leaving_a_stream_ends_the_request(server: Server) -> None:
    left = threading.Event()

    def drip(handler: Handler) -> None:
        handler.send_response(200)
        handler.end_headers()
        try:
            while True:
                handler.wfile.write(sse(delta(content="x" * 1000), done=False))
                handler.wfile.flush()
        except OSError:
            left.set()

    server.script = [drip, drip]
    with opened(server) as model:
        with ChatClient(model).prompt("Hi").stream() as stream:
            next(stream)
        assert left.wait(30)
        left.clear()

        async def leave() -> None:
            async with ChatClient(model).prompt("Hi").astream() as stream:
                await anext(stream)

        asyncio.run(leave())
        assert left.wait(30)


def test_a_closed_model_says_so(server: Server) -> None:
    with opened(server) as model:
        model.call(Prompt(messages=(UserMessage("x"),)))
    with pytest.raises(ClosedError):
        model.call(Prompt(messages=(UserMessage("x"),)))


@pytest.mark.parametrize(
    "options",
    [
        {"model": ""}, {"base_url": "ftp://x"}, {"base_url": "http://u:p@x"}, {"base_url": "http://x?a=1"},
        {"timeout": 0}, {"timeout": float("nan")}, {"max_retries": -1}, {"api_key": "a\nb"},
    ],
)  # fmt: skip
def test_wrong_options_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        OpenAIChatModel(**cast("dict[str, Any]", {"model": "m", "base_url": "http://x/v1", **options}))


def test_openai_itself_needs_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with pytest.raises(ConfigurationError, match="key"):
        OpenAIChatModel("gpt-5-mini")
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    model = OpenAIChatModel("gpt-5-mini")
    assert model.base_url == "https://api.openai.com/v1"
    assert KEY not in repr(model)
    model.close()
