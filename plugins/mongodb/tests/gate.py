# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownLambdaType=false
# pyright: reportUnknownMemberType=false
"""A gate before a server of MongoDB's protocol: it asks for logins, and answers what a search beside the server would.

It stands in for what the double of the tests lacks, and is no MongoDB: `$vectorSearch`, `$listSearchIndexes` and
`createSearchIndexes` are answered as MongoDB's documentation describes them, on a copy of the documents that may be old, as
that of the process beside a real database may. Whatever else comes is handed on to the server as it is.

    python gate.py --port 27118 --to 127.0.0.1:27117 [--login user:password] [--search]
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import hmac
import os
import socket
import struct
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Self

import bson
import numpy as np
from bson.binary import Binary
from pymongo import MongoClient

from entrepot_mongodb.fields import VECTOR_SUBTYPE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_HEADER: Final = struct.Struct("<iiii")
_MESSAGE: Final = 2013
_ITERATIONS: Final = 4096
_OPEN: Final = frozenset({"hello", "ismaster", "isMaster", "saslStart", "saslContinue", "ping"})
_SALT: Final = b"0123456789abcdef"
_HASHES: Final = {"SCRAM-SHA-1": "sha1", "SCRAM-SHA-256": "sha256"}


class _RefusedError(Exception):
    def __init__(self, code: int, name: str, message: str) -> None:
        super().__init__(message)
        self.answer = {"ok": 0.0, "errmsg": message, "code": code, "codeName": name}


class Gate:
    """Listens on a port of loopback, before a server.

    Args:
        host: Of the server.
        port: Of the server.
        login: User and password, if connections have to log in.
        search: Whether there is a search beside the server.
        listen: The port; 0 for any.

    Attributes:
        searches: The stages of all searches that were asked, in order.
        stale: How many further searches see the documents as they were at the last one that was not stale.
        building: How often the index still says that it is not ready.
        loses: Which ids the graph does not find, unless the search is exact.
    """

    def __init__(
        self,
        host: str,
        port: int,
        *,
        login: tuple[str, str] | None = None,
        search: bool = False,
        listen: int = 0,
    ) -> None:
        self._server = (host, port)
        self._login = login
        self._search = search
        self._listener = socket.create_server(("127.0.0.1", listen))
        self.port: int = self._listener.getsockname()[1]
        self._beside: MongoClient[dict[str, Any]] = MongoClient(host, port)
        self._indexes: dict[str, dict[str, Any]] = {}
        self._copies: dict[str, list[dict[str, Any]]] = {}
        self._lock = threading.Lock()
        self.searches: list[dict[str, Any]] = []
        self.stale = 0
        self.building = 0
        self.loses: Callable[[str], bool] = lambda _: False
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()
        self._beside.close()

    # --- the wire -----------------------------------------------------------------------------------------

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        session = _Session(self._login)
        with client, suppress(OSError, EOFError), socket.create_connection(self._server) as server:
            for end in (client, server):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            while True:
                message = _read(client)
                answer = self._answer(session, message)
                if answer is None:
                    server.sendall(message)
                    answer = _read(server)
                client.sendall(answer)

    def _answer(self, session: _Session, message: bytes) -> bytes | None:
        """Return the gate's own answer, or None for what is the server's to answer."""
        _, request, _, code = _HEADER.unpack_from(message)
        if code != _MESSAGE:
            return None
        command = _body(message)
        try:
            told = self._told(session, command)
        except _RefusedError as refused:
            told = refused.answer
        if told is None:
            return None
        body = struct.pack("<I", 0) + b"\0" + bson.encode(told)
        return _HEADER.pack(16 + len(body), 0, request, _MESSAGE) + body

    def _told(self, session: _Session, command: dict[str, Any]) -> dict[str, Any] | None:
        name = next(iter(command))
        if name == "saslStart":
            return session.start(command)
        if name == "saslContinue":
            return session.proceed(command)
        if not session.known and name not in _OPEN:
            raise _RefusedError(13, "Unauthorized", f"command {name} requires authentication")
        if not self._search:
            return None
        place = f"{command['$db']}.{command.get(name)}"
        if name == "createSearchIndexes":
            return self._create(place, command)
        stage = (command.get("pipeline") or [{}])[0] if name == "aggregate" else {}
        if "$listSearchIndexes" in stage:
            return _cursor(place, self._list(place))
        if "$vectorSearch" in stage:
            return _cursor(place, self._nearest(place, stage["$vectorSearch"], command["pipeline"][1:]))
        return None

    # --- the search ---------------------------------------------------------------------------------------

    def _create(self, place: str, command: dict[str, Any]) -> dict[str, Any]:
        (index,) = command["indexes"]
        assert index["type"] == "vectorSearch"
        vectors = [field for field in index["definition"]["fields"] if field["type"] == "vector"]
        assert len(vectors) == 1
        assert vectors[0]["numDimensions"] <= 8192
        assert vectors[0]["similarity"] in {"cosine", "dotProduct", "euclidean"}
        with self._lock:
            self._indexes[place] = index
        return {"ok": 1.0, "indexesCreated": [{"id": "1", "name": index["name"]}]}

    def _list(self, place: str) -> list[dict[str, Any]]:
        with self._lock:
            index = self._indexes.get(place)
            if index is None:
                return []
            is_ready = self.building == 0
            self.building = max(0, self.building - 1)
        state = {"status": "READY" if is_ready else "BUILDING", "queryable": is_ready}
        return [{"id": "1", "name": index["name"], "type": "vectorSearch", **state}]

    def _documents(self, place: str) -> list[dict[str, Any]]:
        """Return the documents that the search knows."""
        with self._lock:
            if self.stale > 0 and place in self._copies:
                self.stale -= 1
                return self._copies[place]
        database, _, collection = place.partition(".")
        found = list(self._beside[database][collection].find())
        with self._lock:
            self._copies[place] = found
        return found

    def _nearest(self, place: str, asked: dict[str, Any], rest: list[dict[str, Any]]) -> list[dict[str, Any]]:
        with self._lock:
            index = self._indexes.get(place)
            self.searches.append(asked)
        if index is None or index["name"] != asked["index"]:
            return []  # as MongoDB: no error
        fields = index["definition"]["fields"]
        (vector,) = [field for field in fields if field["type"] == "vector"]
        query = np.array(asked["queryVector"], dtype=np.float64)
        known = {field["path"] for field in fields if field["type"] == "filter"}
        _check(asked["path"] == vector["path"], "the path is not indexed as a vector")
        _check(len(query) == vector["numDimensions"], "the vector has another length")
        _check(0 < asked["limit"] <= 10_000, "limit is out of bounds")
        if asked.get("exact"):
            _check("numCandidates" not in asked, "an exact search has no candidates")
        else:
            _check(asked["limit"] <= asked["numCandidates"] <= 10_000, "numCandidates is out of bounds")
        scored: list[tuple[float, str]] = []
        for document in self._documents(place):
            if not _holds(asked.get("filter", {}), document, known):
                continue
            if not asked.get("exact") and self.loses(document["_id"]):
                continue
            stored = _vector(document["d"]["e"])
            far = float(((stored - query) ** 2).sum())
            near = float(stored @ query)
            scored.append((far if vector["similarity"] == "euclidean" else -near, document["_id"]))
        scored.sort()
        assert rest == [{"$project": {"_id": 1}}]
        return [{"_id": name} for _, name in scored[: asked["limit"]]]


def _check(held: bool, message: str) -> None:
    if not held:
        raise _RefusedError(8, "UnknownError", message)


def _holds(asked: dict[str, Any], document: dict[str, Any], known: set[str]) -> bool:
    """Whether a document satisfies a filter, of the operators that the documentation lists."""
    for name, what in asked.items():
        if name in {"$and", "$or"}:
            _check(bool(what), f"{name} needs a clause")
            found = [_holds(part, document, known) for part in what]
            if not (all(found) if name == "$and" else any(found)):
                return False
            continue
        _check(name in known, f"the path {name!r} needs to be indexed as filter")
        stored = document.get(name)
        elements = stored if isinstance(stored, list) else [stored]
        for operator, operand in what.items():
            _check(operator in {"$eq", "$in", "$nin"}, f"unknown operator {operator}")
            wanted = operand if isinstance(operand, list) else [operand]
            if any(one in wanted for one in elements) is (operator == "$nin"):
                return False
    return True


def _vector(stored: Any) -> Any:
    if isinstance(stored, Binary) and stored.subtype == VECTOR_SUBTYPE:
        stored = stored[2:]
    return np.frombuffer(stored, dtype="<f4").astype(np.float64)


class _Session:
    """A connection's login, by SCRAM (RFC 5802, RFC 7677)."""

    def __init__(self, login: tuple[str, str] | None) -> None:
        self._login = login
        self.known = login is None
        self._first = b""
        self._second = b""
        self._hash = "sha1"

    def start(self, command: dict[str, Any]) -> dict[str, Any]:
        self._hash = _HASHES[command["mechanism"]]
        self._first = bytes(command["payload"]).removeprefix(b"n,,")
        nonce = dict(_parts(self._first))[b"r"] + base64.b64encode(os.urandom(12))
        self._second = b"r=%s,s=%s,i=%d" % (nonce, base64.b64encode(_SALT), _ITERATIONS)
        return {"ok": 1.0, "conversationId": 1, "done": False, "payload": self._second}

    def proceed(self, command: dict[str, Any]) -> dict[str, Any]:
        assert self._login is not None
        user, password = self._login
        third = bytes(command["payload"])
        without, _, proof = third.rpartition(b",p=")
        secret = password.encode()
        if self._hash == "sha1":
            secret = hashlib.md5(f"{user}:mongo:{password}".encode()).hexdigest().encode()
        salted = hashlib.pbkdf2_hmac(self._hash, secret, _SALT, _ITERATIONS)
        stored = hashlib.new(self._hash, self._mac(salted, b"Client Key")).digest()
        said = b",".join((self._first, self._second, without))
        signature = self._mac(stored, said)
        sent = bytes(left ^ right for left, right in zip(base64.b64decode(proof), signature, strict=True))
        right_user = dict(_parts(self._first))[b"n"] == user.encode()
        if not right_user or hashlib.new(self._hash, sent).digest() != stored:
            raise _RefusedError(18, "AuthenticationFailed", "Authentication failed.")
        self.known = True
        verifier = base64.b64encode(self._mac(self._mac(salted, b"Server Key"), said))
        return {"ok": 1.0, "conversationId": 1, "done": True, "payload": b"v=" + verifier}

    def _mac(self, key: bytes, text: bytes) -> bytes:
        return hmac.new(key, text, self._hash).digest()


def _parts(payload: bytes) -> Iterable[tuple[bytes, bytes]]:
    for part in payload.split(b","):
        name, _, value = part.partition(b"=")
        yield name, value


def _read(source: socket.socket) -> bytes:
    head = _exactly(source, 4)
    (size,) = struct.unpack("<i", head)
    return head + _exactly(source, size - 4)


def _exactly(source: socket.socket, size: int) -> bytes:
    parts: list[bytes] = []
    while size:
        part = source.recv(min(size, 1 << 20))
        if not part:
            raise EOFError
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def _body(message: bytes) -> dict[str, Any]:
    """Return the document of a message that holds the command."""
    at = 20
    while at < len(message):
        kind = message[at]
        (size,) = struct.unpack_from("<i", message, at + 1)
        if kind == 0:
            return bson.decode(message[at + 1 : at + 1 + size])
        at += 1 + size
    return {"": None}


def _cursor(place: str, found: list[dict[str, Any]]) -> dict[str, Any]:
    return {"ok": 1.0, "cursor": {"id": 0, "ns": place, "firstBatch": found}}


def main() -> None:
    """Run a gate until it is killed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--to", default="127.0.0.1:27017")
    parser.add_argument("--login")
    parser.add_argument("--search", action="store_true")
    given = parser.parse_args()
    host, _, port = given.to.partition(":")
    user, _, password = (given.login or "").partition(":")
    login = (user, password) if given.login else None
    with Gate(host, int(port), login=login, search=given.search, listen=given.port) as gate:
        print(f"listens on 127.0.0.1:{gate.port}", flush=True)  # noqa: T201 - whoever started it waits for it
        while True:
            time.sleep(60)


if __name__ == "__main__":
    main()
