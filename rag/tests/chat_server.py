"""A server with the chat interface that does what a script says: streams, cuts, limits, failures."""

from __future__ import annotations

from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, cast

import msgspec


def sse(*events: object, end: str = "\n\n", done: bool = True) -> bytes:
    """Return a stream as servers send it."""
    texts = [msgspec.json.encode(event).decode() for event in events] + (["[DONE]"] if done else [])
    return "".join(f"data: {text}{end}" for text in texts).encode()


def delta(**said: object) -> dict[str, object]:
    """Return an event with a piece of an answer."""
    return {"id": "a", "model": "m-1", "choices": [{"index": 0, "delta": said, "finish_reason": None}]}


def call(
    index: int | None, call_id: str | None = None, name: str | None = None, arguments: str = ""
) -> object:
    """Return a piece of a tool call as servers send it."""
    entry: dict[str, object] = {} if index is None else {"index": index}
    if call_id is not None:
        entry["id"] = call_id
    return {**entry, "type": "function", "function": {"name": name, "arguments": arguments}}


STOP: dict[str, object] = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
END: dict[str, object] = {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}
USAGE: dict[str, object] = {
    "choices": [],
    "usage": {"prompt_tokens": 7, "completion_tokens": 5, "total_tokens": 12},
}


KEY = "sk-secret-1"
ANSWER = msgspec.json.encode(
    {
        "id": "a-1",
        "model": "m-1",
        "choices": [
            {"index": 0, "message": {"role": "assistant", "content": "Hello."}, "finish_reason": "stop"}
        ],
        "usage": {"prompt_tokens": 3, "completion_tokens": 2},
    }
)
STREAM = sse(
    delta(role="assistant", content=""),
    delta(content="Hel"),
    delta(content="lo."),
    STOP,
    {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2}, "model": "m-1", "id": "a-1"},
)


class Server(ThreadingHTTPServer):
    """Answers with what a list holds: (status, body) or a function of the handler; then as a good server does."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.script: list[Any] = []
        self.bodies: list[dict[str, Any]] = []
        self.keys: list[str | None] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"


class Handler(BaseHTTPRequestHandler):
    """One request."""

    protocol_version = "HTTP/1.1"

    @property
    def owner(self) -> Server:
        """The server, as what it is."""
        return cast("Server", self.server)

    def do_POST(self) -> None:
        body = msgspec.json.decode(self.rfile.read(int(self.headers["content-length"])))
        self.owner.bodies.append(body)
        self.owner.keys.append(self.headers["authorization"])
        step = (
            self.owner.script.pop(0) if self.owner.script else (200, STREAM if body.get("stream") else ANSWER)
        )
        if callable(step):
            step(self)
            return
        status, content, *headers = step
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base's name
        """Say nothing."""

    def cut(self, content: bytes) -> None:
        """Promise more than is sent, and hang up."""
        self.send_response(200)
        self.send_header("content-length", str(len(content) + 1000))
        self.end_headers()
        self.wfile.write(content)
        self.close_connection = True

    def ended(self, content: bytes) -> None:
        """Send all, without saying how much it is."""
        self.send_response(200)
        self.send_header("connection", "close")
        self.end_headers()
        self.wfile.write(content)
        self.close_connection = True
