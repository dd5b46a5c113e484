"""The HTTP model against a server on this machine that answers, refuses, hangs, breaks off and errs."""

import asyncio
import base64
import gc
import importlib.util
import json
import logging
import re
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx
import numpy as np
import pytest

from entrepot.embedding import aembed_texts, embed_texts
from entrepot.embeddings import openai_wire
from entrepot.embeddings.openai import OpenAIEmbeddingModel, TokenUsage
from entrepot.errors import (
    ArgumentTypeError,
    AuthenticationError,
    ClosedError,
    ConfigurationError,
    DriverNotFoundError,
    EmbeddingError,
    OperationTimeoutError,
    SizeLimitError,
    UnembeddableTextError,
    UnreachableError,
)

KEY = "sk-very-secret"

Reply = Callable[["Handler", dict[str, Any]], None]


def vector(text: str) -> list[float]:
    """Return what the server says is the embedding of a text."""
    return [float(len(text)), -0.5, float(len(text.encode()))]


def answer(body: dict[str, Any]) -> dict[str, Any]:
    """Write the answer that the interface promises, items in reverse order."""
    items: list[dict[str, Any]] = []
    for index, text in enumerate(body["input"]):
        numbers = vector(text)[: body.get("dimensions", 3)]
        packed = base64.b64encode(struct.pack(f"<{len(numbers)}f", *numbers)).decode()
        embedding = packed if body["encoding_format"] == "base64" else numbers
        items.append({"object": "embedding", "index": index, "embedding": embedding})
    tokens = sum(len(text) for text in body["input"])
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return {"object": "list", "model": body["model"], "data": items[::-1], "usage": usage}


class Handler(BaseHTTPRequestHandler):
    server: "Server"  # type: ignore[mutable-override] # pyright: ignore[reportIncompatibleVariableOverride]
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # else each answer waits 40 ms for an acknowledgement

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with self.server.lock:
            self.server.requests.append((self.path, dict(self.headers), body))
            reply = self.server.script.pop(0) if self.server.script else json_reply(200, answer(body))
        reply(self, body)

    def send(self, status: int, content: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(content)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as inherited
        """Say nothing."""


class Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.lock = threading.Lock()
        self.script: list[Reply] = []
        self.requests: list[tuple[str, dict[str, str], dict[str, Any]]] = []
        self.over = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def handle_error(self, request: object, client_address: object) -> None:
        """Clients that hang up are part of the tests."""


def json_reply(status: int, body: object, headers: dict[str, str] | None = None) -> Reply:
    return lambda handler, _: handler.send(status, json.dumps(body).encode(), headers)


def hang(handler: Handler, _: dict[str, Any]) -> None:
    handler.server.over.wait(30)


def drip(handler: Handler, _: dict[str, Any]) -> None:
    """Send one byte after another, never all of them."""
    handler.send_response(200)
    handler.send_header("Content-Length", "100000")
    handler.end_headers()
    while not handler.server.over.wait(0.02):
        handler.wfile.write(b" ")
        handler.wfile.flush()


def cut(handler: Handler, _: dict[str, Any]) -> None:
    """Promise more than is sent, and hang up."""
    handler.send(200, b"{", {"Content-Length": "1000"})
    handler.close_connection = True


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield server
    server.over.set()
    server.shutdown()
    thread.join(10)
    server.server_close()


def bare_context(*_: object, **__: object) -> ssl.SSLContext:
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(openai_wire, "_FIRST_WAIT", 0.001)
    # Reading the certificates takes longer than the rest of a test, and no test uses them.
    monkeypatch.setattr(ssl, "create_default_context", bare_context)


Ask = Callable[..., "np.ndarray[Any, np.dtype[np.float32]]"]


@pytest.fixture(params=["sync", "async"])
def ask(request: pytest.FixtureRequest, server: Server) -> Ask:
    """Make a model, embed with it in one of the two forms (E3), and close it."""

    def make(options: dict[str, Any]) -> OpenAIEmbeddingModel:
        defaults: dict[str, Any] = {"base_url": server.url, "api_key": KEY}
        return OpenAIEmbeddingModel("m", **(defaults | options))

    def sync(texts: list[str], **options: Any) -> Any:
        with make(options) as model:
            return model.embed(texts)

    def native(texts: list[str], **options: Any) -> Any:
        async def embed() -> Any:
            async with make(options) as model:
                return await model.aembed(texts)

        return asyncio.run(embed())

    return sync if request.param == "sync" else native


# --- what is sent and read ---------------------------------------------------------------------------------


@pytest.mark.parametrize("encoding_format", ["base64", "float"])
def test_vectors_come_in_the_order_of_the_texts(ask: Ask, server: Server, encoding_format: str) -> None:
    texts = ["one", "three", "ж 文"]
    vectors = ask(texts, encoding_format=encoding_format)
    assert vectors.tolist() == [vector(text) for text in texts]
    assert vectors.dtype == np.float32
    ((path, headers, body),) = server.requests
    assert path == "/v1/embeddings"
    assert headers["Authorization"] == f"Bearer {KEY}"
    assert headers["Content-Type"] == "application/json"
    assert body == {"model": "m", "input": texts, "encoding_format": encoding_format}


def test_a_server_that_ignores_the_encoding_is_understood(ask: Ask, server: Server) -> None:
    server.script = [json_reply(200, answer({"model": "m", "input": ["abc"], "encoding_format": "float"}))]
    assert ask(["abc"]).tolist() == [vector("abc")]


def test_fewer_dimensions_are_asked_for(ask: Ask, server: Server) -> None:
    assert ask(["abc"], dimensions=2).tolist() == [vector("abc")[:2]]
    assert server.requests[0][2]["dimensions"] == 2


def test_more_texts_than_a_request_takes_make_several(
    ask: Ask, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("entrepot.embeddings.openai.MAX_INPUTS", 3)
    texts = ["x" * n for n in range(1, 8)]
    assert ask(texts).tolist() == [vector(text) for text in texts]
    assert [len(body["input"]) for _, _, body in server.requests] == [3, 3, 1]


def test_further_headers_go_along_and_no_key_is_sent_that_is_not_there(ask: Ask, server: Server) -> None:
    ask(["a"], api_key=None, headers={"X-Gateway": "g"})
    assert server.requests[0][1]["X-Gateway"] == "g"
    assert "Authorization" not in server.requests[0][1]


def test_key_and_address_come_from_the_environment(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", f" {KEY}\n")
    monkeypatch.setenv("OPENAI_BASE_URL", server.url + "/")
    with OpenAIEmbeddingModel() as model:
        model.embed(["a"])
    assert server.requests[0][0] == "/v1/embeddings"
    assert server.requests[0][1]["Authorization"] == f"Bearer {KEY}"
    assert server.requests[0][2]["model"] == "text-embedding-3-small"


def test_tokens_are_summed_over_requests(server: Server) -> None:
    with OpenAIEmbeddingModel("m", base_url=server.url) as model:
        assert model.usage == TokenUsage(0, 0, 0)
        model.embed(["abc"])
        model.embed(["de", "f"])
        assert model.usage == TokenUsage(prompt_tokens=6, total_tokens=6, requests=2)


def test_an_answer_without_usage_is_fine(ask: Ask, server: Server) -> None:
    server.script = [json_reply(200, {"data": [{"index": 0, "embedding": [1, 2, 3]}]})]
    assert ask(["a"]).tolist() == [[1.0, 2.0, 3.0]]


# --- refused before anything is sent -----------------------------------------------------------------------


def test_an_empty_text_is_refused_before_anything_is_sent(ask: Ask, server: Server) -> None:
    with pytest.raises(UnembeddableTextError, match="text 1: OpenAI's interface takes no empty text"):
        ask(["a", ""])
    assert server.requests == []


def test_a_bare_string_and_a_surrogate_are_refused(ask: Ask, server: Server) -> None:
    with pytest.raises(ArgumentTypeError):
        ask("abc")
    with pytest.raises(EmbeddingError, match="surrogate"):
        ask(["\ud800"])
    assert server.requests == []


def test_too_long_a_text_is_refused_by_its_label(server: Server) -> None:
    with (
        OpenAIEmbeddingModel("m", base_url=server.url) as model,
        pytest.raises(SizeLimitError, match="document 'b'"),
    ):
        embed_texts(model, ["a", "word " * 8000], labels=["document 'a'", "document 'b'"])
    assert server.requests == []


@pytest.mark.parametrize(
    "options",
    [
        {"base_url": "localhost:8000"},
        {"base_url": "ftp://localhost/v1"},
        {"base_url": "http:///v1"},
        {"base_url": "http://user:hunter2@localhost/v1"},
        {"base_url": "http://localhost/v1?key=hunter2"},
        {"base_url": "http://localhost:99999/v1"},
        {"base_url": "http://[::1/v1"},
        {"base_url": "http://localhost/v1", "api_key": "hunter2\nX-Other: 1"},
        {"base_url": "http://localhost/v1", "api_key": "hunter2é"},
        {"base_url": "http://localhost/v1", "dimensions": 0},
        {"base_url": "http://localhost/v1", "timeout": 0},
        {"base_url": "http://localhost/v1", "timeout": float("inf")},
        {"base_url": "http://localhost/v1", "max_retries": -1},
        {"base_url": "http://localhost/v1", "max_retries": "2"},
        {"base_url": "http://localhost/v1", "dimensions": "3"},
        {"base_url": "http://localhost/v1", "timeout": "5"},
        {"base_url": "http://localhost/v1", "model": 5},
        {"base_url": "http://localhost/v1", "encoding_format": "int8"},
        {"base_url": "http://localhost/v1", "model": ""},
    ],
)
def test_wrong_options_are_refused_without_repeating_secrets(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError) as caught:
        OpenAIEmbeddingModel(**options)
    assert "hunter2" not in str(caught.value)


def test_the_server_of_openai_needs_a_key() -> None:
    # E2
    with pytest.raises(ConfigurationError, match="need a key") as caught:
        OpenAIEmbeddingModel()
    assert "OPENAI_API_KEY" in caught.value.hint


@pytest.mark.parametrize("missing", ["httpx", "tenacity"])
def test_a_missing_extra_says_what_to_install(monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    # E2
    find = importlib.util.find_spec

    def without(name: str) -> Any:
        return None if name == missing else find(name)

    monkeypatch.setattr(importlib.util, "find_spec", without)
    with pytest.raises(DriverNotFoundError, match=f"needs {missing}") as caught:
        OpenAIEmbeddingModel(api_key=KEY)
    assert caught.value.hint == 'pip install "entrepot[openai]"'


# --- tried again -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503, 504, 529])
def test_statuses_that_may_pass_are_tried_again(ask: Ask, server: Server, status: int) -> None:
    # E4
    server.script = [json_reply(status, {"error": {"message": "busy"}}), json_reply(status, "busy")]
    assert ask(["abc"]).tolist() == [vector("abc")]
    assert len(server.requests) == 3


def test_a_broken_connection_is_tried_again(ask: Ask, server: Server) -> None:
    # E4
    server.script = [cut, cut]
    assert ask(["abc"]).tolist() == [vector("abc")]
    assert len(server.requests) == 3


def test_a_connection_that_always_breaks_is_unreachable(ask: Ask, server: Server) -> None:
    # E2
    server.script = [cut] * 10
    with pytest.raises(UnreachableError, match="broke") as caught:
        ask(["abc"], max_retries=1)
    assert isinstance(caught.value.__cause__, httpx.TransportError)
    assert len(server.requests) == 2


def test_a_refused_connection_is_unreachable(ask: Ask) -> None:
    # E2
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(UnreachableError, match=f"no connection to .*:{port}/v1") as caught:
        ask(["abc"], base_url=f"http://127.0.0.1:{port}/v1")
    assert isinstance(caught.value.__cause__, httpx.ConnectError)
    assert caught.value.retryable


def test_tries_end_with_what_the_server_said(ask: Ask, server: Server) -> None:
    # E4
    server.script = [json_reply(503, {"error": {"message": "overloaded", "code": "busy"}})] * 10
    with pytest.raises(EmbeddingError, match="HTTP 503 for model 'm': busy overloaded") as caught:
        ask(["abc"], max_retries=2)
    assert caught.value.retryable
    assert len(server.requests) == 3


def test_what_the_server_asks_to_wait_is_waited(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    # E4
    waited: list[float] = []
    monkeypatch.setattr("tenacity.nap.time.sleep", waited.append)
    later = format_datetime(datetime.now(UTC) + timedelta(seconds=5), usegmt=True)
    past = format_datetime(datetime.now(UTC) - timedelta(seconds=60), usegmt=True)
    server.script = [
        json_reply(429, {}, {"Retry-After": "2"}),
        json_reply(429, {}, {"retry-after-ms": "1500", "Retry-After": "9"}),
        json_reply(503, {}, {"Retry-After": later}),
        json_reply(503, {}, {"Retry-After": past}),
        json_reply(429, {}, {"Retry-After": "soon"}),
        json_reply(429, {}, {"Retry-After": "nan"}),
        json_reply(429, {}, {"Retry-After": "-3"}),
    ]
    with OpenAIEmbeddingModel("m", base_url=server.url, timeout=60, max_retries=7) as model:
        assert model.embed(["abc"]).tolist() == [vector("abc")]
    lowest = [2.0, 1.5, 3.5, 0.0, 0.0, 0.0, 0.0]
    highest = [2.5, 1.875, 6.25, 0.0, 0.1, 0.1, 0.0]  # a quarter more as jitter; own waits are short here
    assert len(waited) == 7
    for low, wait, high in zip(lowest, waited, highest, strict=True):
        assert low <= wait <= high


def test_own_waits_grow_with_jitter(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    # E4
    waited: list[float] = []
    monkeypatch.setattr("tenacity.nap.time.sleep", waited.append)
    monkeypatch.setattr(openai_wire, "_FIRST_WAIT", 0.5)
    server.script = [json_reply(500, {})] * 9
    with OpenAIEmbeddingModel("m", base_url=server.url, timeout=1000, max_retries=9) as model:
        model.embed(["abc"])
    bounds = [0.5, 1, 2, 4, 8, 8, 8, 8, 8]
    assert len(waited) == 9
    assert all(0 <= wait <= bound for wait, bound in zip(waited, bounds, strict=True))
    assert len(set(waited)) > 1


def test_a_wait_beyond_the_timeout_is_not_begun(ask: Ask, server: Server) -> None:
    # E4
    server.script = [json_reply(429, {"error": "slow down"}, {"Retry-After": "3600"})]
    with pytest.raises(EmbeddingError, match=r"HTTP 429 .*slow down") as caught:
        ask(["abc"])
    assert "it asks to wait 3600 s" in caught.value.hint
    assert len(server.requests) == 1


@pytest.mark.parametrize("reply", [hang, drip])
def test_a_server_that_never_ends_is_left_at_the_timeout(ask: Ask, server: Server, reply: Reply) -> None:
    # E2, E4
    server.script = [reply] * 10
    with pytest.raises(OperationTimeoutError, match=r"within 0\.3 s") as caught:
        ask(["abc"], timeout=0.3)
    assert isinstance(caught.value, TimeoutError)
    assert len(server.requests) == 1


# --- refused by the server ---------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [401, 403])
def test_a_refused_key_is_not_tried_again_and_never_shown(ask: Ask, server: Server, status: int) -> None:
    # E2
    server.script = [json_reply(status, {"error": {"message": f"Incorrect API key provided: {KEY}"}})]
    with pytest.raises(AuthenticationError, match=f"HTTP {status}") as caught:
        ask(["abc"])
    assert KEY not in str(caught.value)
    assert "OPENAI_API_KEY" in caught.value.hint
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("status", "body", "says"),
    [
        (
            400,
            {"error": {"message": f"bad input for {KEY}", "type": "x"}},
            r"HTTP 400 .*: bad input for \*\*\*$",
        ),
        (400, {"error": {"message": "m" * 1000, "code": None}}, "m{300}$"),
        (404, {"detail": "Not Found"}, "HTTP 404 .*: Not Found"),
        (413, {"message": "too large"}, "HTTP 413 .*: too large"),
        (422, {"error": {"code": 7}}, "HTTP 422 .*: 7"),
        (302, {}, "HTTP 302 for model 'm'"),
        (418, "teapot", "HTTP 418 for model 'm'"),
        (429, {"error": {"code": "insufficient_quota", "message": "You exceeded"}}, "insufficient_quota"),
    ],
)
def test_other_refusals_are_final_and_quoted(
    ask: Ask, server: Server, status: int, body: object, says: str
) -> None:
    server.script = [json_reply(status, body)]
    with pytest.raises(EmbeddingError) as caught:
        ask(["abc"])
    assert re.search(says, caught.value.message)
    assert KEY not in str(caught.value)
    assert not caught.value.retryable
    assert ("check the model's name and base_url" in caught.value.hint) == (status in (302, 404))
    assert len(server.requests) == 1


# --- wrong answers -----------------------------------------------------------------------------------------


def items(*embeddings: object, indexes: list[object] | None = None) -> dict[str, object]:
    numbered = zip(indexes or list(range(len(embeddings))), embeddings, strict=True)
    return {"data": [{"index": index, "embedding": embedding} for index, embedding in numbered]}


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (items([1.0]), "1 embeddings for 2 texts"),
        (items([1.0], [1.0], [1.0]), "3 embeddings for 2 texts"),
        (items([1.0], [1.0], indexes=[0, 0]), "not with the indexes"),
        (items([1.0], [1.0], indexes=[1, 2]), "not with the indexes"),
        (items([1.0], [1.0], indexes=["0", "1"]), "something else than embeddings"),
        (items([1.0, 2.0], [1.0]), "rows of different lengths"),
        (items([], []), "shape"),
        (items([1.0], ["x"]), "something else than embeddings"),
        (items([1.0], None), "something else than embeddings"),
        (items([1e39], [1.0]), r"1e\+39 in row 0"),
        (items("AACAPw==", "AACAPwAA"), "no base64 of float32"),
        (items("AACAPw==", "*"), "no base64 of float32"),
        (items("AACAPw==", "AADAfw=="), "nan in row 1"),
        ({"data": None}, "something else than embeddings"),
        ({}, "something else than embeddings"),
        ([], "something else than embeddings"),
        ("<html>", "something else than embeddings"),
    ],
)
def test_wrong_answers_are_refused(ask: Ask, server: Server, body: object, says: str) -> None:
    # D9
    server.script = [json_reply(200, body)]
    with pytest.raises(EmbeddingError, match=says):
        ask(["a", "b"])
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "content", [b"", b"<html>hello</html>", b"\xff\xfe", b'{"data": [{"index": 0, "embedding": [NaN]}]}']
)
def test_what_is_no_json_is_refused(ask: Ask, server: Server, content: bytes) -> None:
    server.script = [lambda handler, _: handler.send(200, content)]
    with pytest.raises(EmbeddingError, match="something else than embeddings"):
        ask(["a"])


def test_another_length_than_asked_for_is_refused(ask: Ask, server: Server) -> None:
    server.script = [json_reply(200, items([1.0, 2.0, 3.0]))]
    with pytest.raises(EmbeddingError, match="length 3, its dimensions are 2"):
        ask(["a"], dimensions=2)


# --- dimensions, names, secrets ----------------------------------------------------------------------------


def test_the_length_is_known_or_asked_for_once(server: Server) -> None:
    assert OpenAIEmbeddingModel(api_key=KEY).dimensions == 1536
    assert OpenAIEmbeddingModel("text-embedding-3-large", api_key=KEY).dimensions == 3072
    assert OpenAIEmbeddingModel("text-embedding-3-large", api_key=KEY, dimensions=256).dimensions == 256
    with OpenAIEmbeddingModel("text-embedding-3-large", base_url=server.url) as model:
        assert (model.dimensions, model.dimensions) == (3, 3)
        assert model.embed([]).shape == (0, 3)
    assert len(server.requests) == 1


async def test_the_length_is_asked_for_in_async_use_too(server: Server) -> None:
    async with OpenAIEmbeddingModel("m", base_url=server.url) as model:
        assert (await model.aembed([])).shape == (0, 3)


def test_the_name_says_what_defines_the_space() -> None:
    # D5
    assert OpenAIEmbeddingModel(api_key=KEY).name == "openai/text-embedding-3-small"
    assert OpenAIEmbeddingModel(api_key=KEY, dimensions=256).name == "openai/text-embedding-3-small:256"


def test_the_key_shows_nowhere(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    # O1
    caplog.set_level(logging.DEBUG)
    with OpenAIEmbeddingModel("m", base_url=server.url, api_key=KEY, headers={"X": "other-secret"}) as model:
        model.embed(["abc"])
        server.script = [json_reply(400, {"error": KEY})]
        with pytest.raises(EmbeddingError) as caught:
            model.embed(["abc"])
        shown = repr(model) + str(model) + str(caught.value) + repr(caught.value)
    assert KEY not in shown
    assert "other-secret" not in shown
    assert KEY not in caplog.text


# --- life cycle --------------------------------------------------------------------------------------------


def test_one_connection_serves_many_requests(server: Server) -> None:
    ports: set[int] = set()

    def note(handler: Handler, body: dict[str, Any]) -> None:
        ports.add(handler.client_address[1])
        json_reply(200, answer(body))(handler, body)

    server.script = [note, note, note]
    with OpenAIEmbeddingModel("m", base_url=server.url) as model:
        for _ in range(3):
            model.embed(["a"])
    assert len(ports) == 1


def test_close_is_idempotent_and_final(server: Server) -> None:
    # E5
    model = OpenAIEmbeddingModel("m", base_url=server.url)
    model.embed(["a"])
    model.close()
    model.close()
    with pytest.raises(ClosedError):
        model.embed(["a"])
    assert len(server.requests) == 1


async def test_aclose_is_idempotent_and_final(server: Server) -> None:
    # E5
    model = OpenAIEmbeddingModel("m", base_url=server.url)
    await model.aembed(["a"])
    await model.aclose()
    await model.aclose()
    with pytest.raises(ClosedError):
        await model.aembed(["a"])
    with pytest.raises(ClosedError):
        model.embed(["a"])


def test_each_event_loop_has_its_own_client(server: Server) -> None:
    # E5
    model = OpenAIEmbeddingModel("m", base_url=server.url)

    async def use(*, close: bool) -> Any:
        vectors = await aembed_texts(model, ["a"])
        client = model._async_client()  # pyright: ignore[reportPrivateUsage]
        if close:
            await model.aclose()
        else:
            await client.aclose()
        return vectors.tolist(), id(client), client

    first, second = asyncio.run(use(close=False)), asyncio.run(use(close=True))
    assert first[0] == second[0] == [vector("a")]
    assert first[1] != second[1]
    gc.collect()
    assert len(model._async_clients) == 0  # pyright: ignore[reportPrivateUsage]


async def test_given_clients_are_used_and_not_closed(server: Server) -> None:
    # E5
    with httpx.Client(headers={"X-Mine": "1"}) as client:
        async with httpx.AsyncClient(headers={"X-Mine": "2"}) as aclient:
            model = OpenAIEmbeddingModel("m", base_url=server.url, client=client, async_client=aclient)
            model.embed(["a"])
            await model.aembed(["a"])
            await model.aclose()
            assert not client.is_closed
            assert not aclient.is_closed
    assert [headers["X-Mine"] for _, headers, _ in server.requests] == ["1", "2"]


async def test_a_given_client_that_was_closed_is_told(server: Server) -> None:
    # E5
    client, aclient = httpx.Client(), httpx.AsyncClient()
    client.close()  # noqa: ASYNC212 - it has nothing to wait for
    await aclient.aclose()
    model = OpenAIEmbeddingModel("m", base_url=server.url, client=client, async_client=aclient)
    with pytest.raises(ClosedError, match="client given"):
        model.embed(["a"])
    with pytest.raises(ClosedError, match="client given"):
        await model.aembed(["a"])


def test_connections_of_the_parent_are_not_used_after_a_fork(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    # E5
    with OpenAIEmbeddingModel("m", base_url=server.url) as model:
        model.embed(["a"])
        before = model._sync_client()  # pyright: ignore[reportPrivateUsage]
        monkeypatch.setattr("os.getpid", lambda: -1)
        assert model._sync_client() is not before  # pyright: ignore[reportPrivateUsage]
    before.close()


def test_threads_share_a_model(server: Server) -> None:
    # E5
    results: list[Any] = []
    with OpenAIEmbeddingModel("m", base_url=server.url) as model:

        def work(number: int) -> None:
            results.append((number, model.embed(["x" * number]).tolist()))

        threads = [threading.Thread(target=work, args=(number,)) for number in range(1, 9)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        assert model.usage.requests == 8
    assert sorted(results) == [(number, [vector("x" * number)]) for number in range(1, 9)]


async def test_the_loop_runs_on_while_the_server_hangs(server: Server) -> None:
    # E3
    loop, arrived = asyncio.get_running_loop(), asyncio.Event()

    def tell_and_hang(handler: Handler, body: dict[str, Any]) -> None:
        loop.call_soon_threadsafe(arrived.set)
        hang(handler, body)

    server.script = [tell_and_hang]
    async with OpenAIEmbeddingModel("m", base_url=server.url, timeout=5) as model:
        task = asyncio.create_task(model.aembed(["a"]))
        await arrived.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        # E4: a cancelled call leaves a usable model
        assert (await model.aembed(["a"])).tolist() == [vector("a")]
