"""The plain side of Redis: redis-py by hand, on the keys and the index that the store made."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np

from entrepot_redis import searching
from entrepot_redis.conformance import SERVER, connect
from entrepot_redis.replies import found

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from entrepot import Document
    from entrepot.memory.repository import Entry
    from entrepot.records import Query

__all__ = ["OPTIONS", "SERVER", "Plain"]

OPTIONS: Final = ""
_CHUNK: Final = 1_000


class Plain:
    """One client of redis-py."""

    def __init__(self, url: str) -> None:
        self._client: Any = connect(url)

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def _prefix(self, store: Any) -> bytes:
        return cast("bytes", store._names.prefix(store._place.generation))

    def rows(self, store: Any) -> dict[bytes, dict[bytes, bytes]]:
        """Return all hashes of the collection by their keys."""
        keys = list(self._client.scan_iter(match=self._prefix(store) + b"*", count=_CHUNK))
        pipeline = self._client.pipeline(transaction=False)
        for key in keys:
            pipeline.hgetall(key)
        return dict(zip(keys, pipeline.execute(), strict=True))

    def load(self, _store: Any, rows: dict[bytes, dict[bytes, bytes]]) -> None:
        """Put hashes back, all deleted first, by pipelines of HSET: the fastest way that there is."""
        keys = list(rows)
        for start in range(0, len(keys), _CHUNK):
            pipeline = self._client.pipeline(transaction=False)
            for key in keys[start : start + _CHUNK]:
                pipeline.delete(key)
                pipeline.hset(key, mapping=rows[key])
            pipeline.execute()

    def stored_bytes(self, store: Any) -> int:
        """Return the bytes of the store's keys, and of its index as FT.INFO tells them."""
        keys = list(self._client.scan_iter(match=self._prefix(store) + b"*", count=_CHUNK))
        return int(self._keys(keys) + self._index(store._names.index_of(store._place.generation)))

    def _keys(self, keys: Sequence[bytes]) -> float:
        some = keys[:500]
        return sum(float(self._client.memory_usage(key)) for key in some) / len(some) * len(keys)

    def _index(self, name: str) -> float:
        described: Any = self._client.execute_command("FT.INFO", name)
        if not isinstance(described, dict):  # RESP2
            described = dict(zip(described[::2], described[1::2], strict=False))
        megabytes = 0.0
        for key, value in cast("dict[Any, Any]", described).items():
            label = key.decode() if isinstance(key, bytes) else str(key)
            if label.endswith("_sz_mb"):
                megabytes += float(value)
        return megabytes * 1024 * 1024

    def natural_bytes(self, documents: Sequence[Document], columns: Callable[[int], dict[str, Any]]) -> int:
        """Return the bytes of the hashes and the index that one would make by hand for these documents."""
        execute = self._client.execute_command
        execute(
            *(
                "FT.CREATE",
                "bench-natural",
                "ON",
                "HASH",
                "PREFIX",
                1,
                "bench-natural:",
                "STOPWORDS",
                0,
                "SCHEMA",
            ),
            *("text", "TEXT", "NOSTEM", "country", "TAG", "year", "NUMERIC", "price", "NUMERIC"),
            *(
                "tags",
                "TAG",
                "SEPARATOR",
                ",",
                "share",
                "NUMERIC",
                "v",
                "VECTOR",
                "FLAT",
                6,
                "TYPE",
                "FLOAT32",
            ),
            *("DIM", len(cast("Any", documents[0].vector)), "DISTANCE_METRIC", "COSINE"),
        )
        keys: list[bytes] = []
        for start in range(0, len(documents), _CHUNK):
            pipeline = self._client.pipeline(transaction=False)
            for number, document in enumerate(documents[start : start + _CHUNK], start):
                values = columns(number)
                values["tags"] = ",".join(values["tags"])
                keys.append(f"bench-natural:{document.id}".encode())
                vector = np.asarray(document.vector, dtype=np.float32).tobytes()
                pipeline.hset(keys[-1], mapping={"text": document.text, **values, "v": vector})
            pipeline.execute()
        size = self._keys(keys) + self._index("bench-natural")
        execute("FT.DROPINDEX", "bench-natural", "DD")
        return int(size)

    def search(self, store: Any, query: Query) -> Callable[[], list[dict[str, Any]]]:
        """Return what sends the commands of a search again, and makes dictionaries of the rows."""
        script = searching.search(store._names, store._place, query, 100)
        sent: list[Any] = []
        connection = self._client.connection_pool.get_connection()

        def replies(commands: Sequence[Any]) -> list[Any]:
            answers: list[Any] = []
            for command in commands:
                connection.send_command(*command)
                answers.append(connection.read_response(disable_decoding=True))
            return answers

        try:
            step = next(script)
            while True:
                sent.append(step.commands)
                step = script.send(replies(step.commands))
        except StopIteration:
            pass
        before = len(self._prefix(store))
        k = query.k

        def ask() -> list[dict[str, Any]]:
            last: list[Any] = []
            for commands in sent:
                last = replies(commands)
            rows = sorted(found(last[-1]).rows, key=lambda row: (float(row.fields[b"d"]), row.key))[:k]
            return [
                {
                    "id": row.key[before:].decode(),
                    "text": row.fields[b"x"].decode(),
                    "metadata": json.loads(row.fields[b"m"]),
                    "score": 1 - float(row.fields[b"d"]) / 2,
                }
                for row in rows
            ]

        return ask

    def appends(self, memory: Any, name: str, entry: Callable[[], Entry]) -> Callable[[], None]:
        """Return what sends the command of an append, each time for another message."""

        def append() -> None:
            asked = next(memory._append_script(name, [entry()]))
            self._client.execute_command(*asked.commands[0])

        return append
