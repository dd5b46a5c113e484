"""A stand-in for a Qdrant server: its REST paths over the client's local mode, on loopback.

It serves to try what the plugin does with a server (requests, errors, timeouts, async clients), and proves nothing of
the server itself. It counts requests, can refuse logins, fail, or hold answers back.
"""

from __future__ import annotations

import json
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import parse_qs, unquote, urlsplit

from qdrant_client import QdrantClient, models
from qdrant_client.http.models import (
    CountRequest,
    CreateCollection,
    CreateFieldIndex,
    Filter,
    PointRequest,
    PointsList,
    QueryRequest,
    ScrollRequest,
    UpdateOperations,
)

if TYPE_CHECKING:
    from collections.abc import Generator


class Emulator:
    """The state of a stand-in.

    Attributes:
        port: Where it listens.
        key: The API key that it wants; None for none.
        version: The version that it claims.
        failing: A status that answers to everything; 0 for none.
        delay: Seconds that answers are held back.
        requests: Method and path of all requests, with their parameters.
    """

    def __init__(self) -> None:
        self.client = QdrantClient(":memory:", force_disable_check_same_thread=True)
        self.lock = threading.Lock()
        self.indexes: dict[str, dict[str, Any]] = {}
        self.port = 0
        self.key: str | None = None
        self.version = "1.18.3"
        self.failing = 0
        self.delay = 0.0
        self.requests: list[tuple[str, str, dict[str, list[str]]]] = []

    def answer(self, method: str, path: str, body: Any) -> Any:
        parts = [unquote(part) for part in path.strip("/").split("/")]
        if parts == [""]:
            return {"title": "stand-in", "version": self.version}
        with self.lock:
            if len(parts) == 1:
                return self.client.get_collections()
            return self._of_collection(method, parts[1], "/".join(parts[2:]), body)

    def _of_collection(self, method: str, name: str, rest: str, body: Any) -> Any:
        if (method, rest) == ("GET", ""):
            info = self.client.get_collection(name)
            info.payload_schema = self.indexes.get(name, {})
            return info
        if (method, rest) == ("PUT", ""):
            asked = CreateCollection.model_validate(body)
            return self.client.create_collection(
                name,
                vectors_config=asked.vectors,
                sparse_vectors_config=asked.sparse_vectors,
                metadata=asked.metadata,
            )
        if (method, rest) == ("DELETE", ""):
            self.indexes.pop(name, None)
            return self.client.delete_collection(name)
        if rest == "index":
            field = CreateFieldIndex.model_validate(body)
            self.client.get_collection(name)
            self.indexes.setdefault(name, {})[field.field_name] = {
                "data_type": field.field_schema,
                "points": 0,
            }
            return _done()
        return self._of_points(method, name, rest.removeprefix("points").strip("/"), body)

    def _of_points(self, method: str, name: str, rest: str, body: Any) -> Any:
        client = self.client
        if rest == "":
            if method == "POST":
                wanted = PointRequest.model_validate(body)
                return client.retrieve(
                    name,
                    wanted.ids,
                    with_payload=wanted.with_payload or False,
                    with_vectors=wanted.with_vector or False,
                )
            points = PointsList.model_validate(body)
            client.upsert(
                name, points.points, update_filter=points.update_filter, update_mode=points.update_mode
            )
            return _done()
        if rest == "delete":
            selector = (
                models.PointIdsList(**body) if "points" in body else Filter.model_validate(body["filter"])
            )
            client.delete(name, selector)
            return _done()
        if rest == "batch":
            operations = UpdateOperations.model_validate(body).operations
            client.batch_update_points(name, operations)
            return [_done() for _ in operations]
        if rest == "scroll":
            scroll = ScrollRequest.model_validate(body)
            found, after = client.scroll(
                name, scroll.filter, scroll.limit or 10, offset=scroll.offset,
                with_payload=scroll.with_payload or False, with_vectors=scroll.with_vector or False,
            )  # fmt: skip
            return {"points": found, "next_page_offset": after}
        if rest == "count":
            return client.count(name, CountRequest.model_validate(body).filter)
        query = QueryRequest.model_validate(body)
        return client.query_points(
            name, query.query, using=query.using, query_filter=query.filter, limit=query.limit or 10,
            with_payload=query.with_payload or False, with_vectors=query.with_vector or False,
        )  # fmt: skip


def _done() -> dict[str, Any]:
    return {"operation_id": 1, "status": "completed"}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    state: Emulator

    def handle_any(self) -> None:
        parts = urlsplit(self.path)
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        self.state.requests.append((self.command, parts.path, parse_qs(parts.query)))
        time.sleep(self.state.delay)
        if self.state.failing:
            self._send(self.state.failing, {"status": {"error": "hunter2 broke"}})
        elif (
            self.state.key is not None and self.headers.get("api-key") != self.state.key and parts.path != "/"
        ):
            self._send(401, {"status": {"error": "Must provide an API key"}})
        else:
            self._answer(parts.path, json.loads(body) if body else None)

    def _answer(self, path: str, body: Any) -> None:
        try:
            result = _plain(self.state.answer(self.command, path, body))
        except ValueError as error:
            missing = str(error).endswith("not found")
            code = 404 if missing else 409 if "already exists" in str(error) else 400
            self._send(
                code,
                {"status": {"error": f"Not found: Collection hunter2 {error}" if missing else str(error)}},
            )
            return
        except RuntimeError:  # the stand-in ended meanwhile
            self.close_connection = True
            return
        self._send(200, result if path == "/" else {"result": result, "status": "ok", "time": 0.0})

    def _send(self, code: int, content: Any) -> None:
        data = json.dumps(content).encode()
        try:
            self.send_response(code)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)
        except OSError:  # the client gave up
            self.close_connection = True

    do_GET = do_PUT = do_POST = do_DELETE = handle_any  # noqa: N815 - names of the base class

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - as above
        """Stay quiet."""


def _plain(value: Any) -> Any:
    """Return what a model holds, as JSON."""
    if isinstance(value, list):
        return [_plain(each) for each in value]  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in cast("dict[str, Any]", value).items()}
    return value.model_dump(mode="json", warnings=False) if hasattr(value, "model_dump") else value


@contextmanager
def emulator(port: int = 0) -> Generator[Emulator]:
    """Start a stand-in; it ends with the block."""
    state = Emulator()
    handler = type("Handler", (_Handler,), {"state": state})
    with ThreadingHTTPServer(("127.0.0.1", port), handler) as server:
        state.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield state
        finally:
            server.shutdown()
            thread.join()
            state.client.close()


if __name__ == "__main__":  # for the conformance suite: a stand-in on a fixed port
    with emulator(port=7633):
        threading.Event().wait()
