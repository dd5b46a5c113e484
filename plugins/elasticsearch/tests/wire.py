"""A server in a few lines: it notes what it is asked and answers what it is told to, for what no real one does."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

INFO = {"version": {"number": "8.19.21", "lucene_version": "9.12.2", "build_flavor": "default"}}


class Asked(NamedTuple):
    """A request."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def lines(self) -> list[Any]:
        return [json.loads(line) for line in self.body.splitlines()]


class Wire:
    """What was asked, and what is answered: a function from a request to a status and JSON, or to None to break off."""

    def __init__(self, port: int, answer: Callable[[Asked], tuple[int, Any] | None]) -> None:
        self.port = port
        self.answer = answer
        self.asked: list[Asked] = []

    @property
    def options(self) -> dict[str, Any]:
        return {"host": "127.0.0.1", "port": self.port}


@contextmanager
def wire(answer: Callable[[Asked], tuple[int, Any] | None]) -> Generator[Wire]:
    """Have a server."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            headers = {name.lower(): value for name, value in self.headers.items()}
            asked = Asked(self.command, self.path, headers, body)
            running.asked.append(asked)
            told = (200, INFO) if asked.path == "/" and asked.method == "GET" else None
            told = running.answer(asked) or told
            if told is None:
                self.close_connection = True
                return
            status, found = told
            sent = json.dumps(found).encode()
            self.send_response(status)
            self.send_header("content-type", "application/vnd.elasticsearch+json;compatible-with=8")
            self.send_header("x-elastic-product", "Elasticsearch")
            self.send_header("content-length", str(len(sent)))
            self.end_headers()
            self.wfile.write(sent)

        do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = _answer  # noqa: N815 - as the library calls them

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002, ARG002 - as the library calls it
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    running = Wire(server.server_address[1], answer)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield running
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
