"""The service in a few lines, for what no emulator does: indexes that take time, writes that are seen late, log positions.

Its shapes are those of the API's documentation: hosts without a scheme, states, tags, headers.
"""

from __future__ import annotations

import json
from typing import Any

import httpx
import numpy as np
from plugins.pinecone.tests.dsl import holds


class Index:
    """An index: what was written, and what is seen of it."""

    def __init__(self, told: dict[str, Any], waits: int) -> None:
        self.told = told
        self.waits = waits
        self.going = -1
        self.log: list[tuple[str, str, dict[str, Any] | None]] = []
        self.seen = 0

    def records(self, namespace: str) -> dict[str, dict[str, Any]]:
        found: dict[str, dict[str, Any]] = {}
        for space, name, record in self.log[: self.seen]:
            if space == namespace:
                if record is None:
                    found.pop(name, None)
                else:
                    found[name] = record
        return found


class Service:
    """The service; `lag` is how many requests pass before a write is seen, `tells` whether it tells log positions."""

    def __init__(self, *, waits: int = 0, lag: int = 0, tells: bool = True, page: int = 100) -> None:
        self.indexes: dict[str, Index] = {}
        self.waits = waits
        self.lag = lag
        self.tells = tells
        self.page = page
        self.asked: list[tuple[str, str, Any]] = []
        self.faults: list[int] = []

    @property
    def paths(self) -> list[str]:
        return [f"{method} {path}" for method, path, _ in self.asked]

    def client(self) -> httpx.Client:
        return httpx.Client(transport=httpx.MockTransport(self.answer))

    def async_client(self) -> httpx.AsyncClient:
        return httpx.AsyncClient(transport=httpx.MockTransport(self.answer))

    def answer(self, request: httpx.Request) -> httpx.Response:
        assert request.headers["api-key"] == "secret"
        assert request.headers["x-pinecone-api-version"] == "2025-10"
        assert request.url.scheme == "https"
        body = json.loads(request.content) if request.content else None
        self.asked.append((request.method, request.url.path, body))
        if self.faults:
            return httpx.Response(self.faults.pop(0), json={"error": {"code": "TOLD", "message": "a value"}})
        if request.url.host == "api.pinecone.io":
            return self._control(request, body)
        return self._data(self.indexes.get(request.url.host.partition(".")[0]), request, body)

    def _control(self, request: httpx.Request, body: Any) -> httpx.Response:
        if request.url.path == "/indexes":
            if request.method == "GET":
                return httpx.Response(
                    200, json={"indexes": [self._told(one) for one in self.indexes.values()]}
                )
            if body["name"] in self.indexes:
                return httpx.Response(409, json={"error": {"code": "ALREADY_EXISTS", "message": "x"}})
            assert body["spec"]["serverless"].keys() == {"cloud", "region"}
            self.indexes[body["name"]] = Index(body, self.waits)
            return httpx.Response(201, json=self._told(self.indexes[body["name"]]))
        name = request.url.path.removeprefix("/indexes/")
        index = self.indexes.get(name)
        if index is not None and index.going == 0:
            del self.indexes[name]
            index = None
        if index is None:
            return httpx.Response(404, json={"error": {"code": "NOT_FOUND", "message": name}})
        if request.method == "DELETE":
            index.going = self.waits
            return httpx.Response(202)
        if index.going > 0:
            index.going -= 1
        return httpx.Response(200, json=self._told(index))

    @staticmethod
    def _told(index: Index) -> dict[str, Any]:
        index.waits, ready = max(index.waits - 1, 0), index.waits == 0
        state = "Terminating" if index.going >= 0 else "Ready" if ready else "Initializing"
        name = index.told["name"]
        return {
            "name": name,
            "metric": index.told["metric"],
            "dimension": index.told["dimension"],
            "host": f"{name}.svc.pinecone.io",
            "status": {"ready": ready and index.going < 0, "state": state},
            "tags": index.told["tags"],
        }

    def _data(self, index: Index | None, request: httpx.Request, body: Any) -> httpx.Response:
        if index is None:
            return httpx.Response(404, json={"code": 5, "message": "no index"})
        index.seen = max(index.seen, min(len(index.log), index.seen + 1)) if self.lag else len(index.log)
        parameters = request.url.params
        asked: dict[str, Any] = body or {}
        namespace = asked.get("namespace", "") if body is not None else parameters.get("namespace", "")
        records = index.records(namespace)
        path = request.url.path
        if path == "/vectors/upsert":
            index.log += [(namespace, one["id"], one) for one in asked["vectors"]]
            return self._wrote(index, {"upsertedCount": len(asked["vectors"])})
        if path == "/vectors/delete":
            index.log += [
                (namespace, name, None) for name in (records if asked.get("deleteAll") else asked["ids"])
            ]
            return self._wrote(index, {})
        if path == "/vectors/fetch":
            names = parameters.get_list("ids")
            assert len(str(request.url)) < 8000
            return httpx.Response(200, json={"vectors": {n: records[n] for n in names if n in records}})
        if path == "/vectors/list":
            names = sorted(name for name in records if name > parameters.get("paginationToken", ""))
            size = min(int(parameters["limit"]), self.page)
            told: dict[str, Any] = {"vectors": [{"id": name} for name in names[:size]]}
            if len(names) > size:
                told["pagination"] = {"next": names[size - 1]}
            return httpx.Response(200, json=told)
        if path == "/describe_index_stats":
            return httpx.Response(
                200, json={"dimension": index.told["dimension"], "namespaces": {}, "totalVectorCount": 0}
            )
        assert path == "/query"
        found = [one for one in records.values() if holds(asked.get("filter", {}), one["metadata"])]
        found.sort(key=lambda one: -float(np.dot(one["values"], asked["vector"])))
        matches = [
            {
                "id": one["id"],
                "score": float(np.dot(one["values"], asked["vector"])),
                "metadata": one["metadata"],
            }
            for one in found[: asked["topK"]]
        ]
        headers = {"x-pinecone-max-indexed-lsn": str(index.seen)} if self.tells else {}
        return httpx.Response(200, json={"matches": matches, "namespace": namespace}, headers=headers)

    def _wrote(self, index: Index, told: dict[str, Any]) -> httpx.Response:
        headers = {"x-pinecone-request-lsn": str(len(index.log))} if self.tells else {}
        return httpx.Response(200, json=told, headers=headers)
