"""The plain side of Milvus: pymilvus by hand, on the collection that the store made."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np

from entrepot_milvus import searching
from entrepot_milvus.conformance import SERVER, native

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from entrepot import Document
    from entrepot.records import Query

__all__ = ["OPTIONS", "SERVER", "Plain"]

OPTIONS: Final = ""
_CHUNK: Final = 1_000


class Plain:
    """One client of pymilvus."""

    def __init__(self, url: str) -> None:
        self._client = native(url)

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def rows(self, store: Any) -> list[dict[str, Any]]:
        """Return all rows of the collection."""
        found: list[dict[str, Any]] = []
        pages = self._client.query_iterator(
            store._place.name,
            batch_size=_CHUNK,
            output_fields=["*"],
            partition_names=[store._place.partition],
        )
        while page := pages.next():
            found += ({name: row[name] for name in row} for row in page)
        pages.close()
        return found

    def load(self, store: Any, rows: list[dict[str, Any]]) -> None:
        """Put rows back in place of those that are there."""
        for start in range(0, len(rows), _CHUNK):
            self._client.upsert(
                store._place.name, rows[start : start + _CHUNK], partition_name=store._place.partition
            )

    def stored_bytes(self, store: Any) -> int:
        """Return the bytes of the collection's rows, as they are sent; the server tells none."""
        return sum(_size(row) for row in self.rows(store))

    def natural_bytes(self, documents: Sequence[Document], columns: Callable[[int], dict[str, Any]]) -> int:
        """Return the bytes of the rows that one would make by hand for these documents."""
        return sum(
            _size({"id": document.id, "text": document.text, "vector": document.vector, **columns(number)})
            for number, document in enumerate(documents)
        )

    def search(self, store: Any, query: Query) -> Callable[[], list[dict[str, Any]]]:
        """Return what sends the calls of a search again, and makes dictionaries of the rows."""
        calls: list[Any] = []
        script = searching.search(store._place, query, store._plan)
        try:
            step: Any = next(script)
            while True:
                calls.append(step)
                step = script.send(getattr(self._client, step.method)(**step.arguments))
        except StopIteration:
            pass
        k = query.k

        def ask() -> list[dict[str, Any]]:
            answer: Any = None
            for call in calls:
                answer = getattr(self._client, call.method)(**call.arguments)
            hits = sorted(answer[0], key=lambda hit: (-hit["distance"], hit["entity"]["name"]))[:k]
            return [
                {
                    "id": hit["entity"]["name"],
                    "text": hit["entity"]["text"],
                    "metadata": json.loads(hit["entity"]["metadata"]),
                    "score": (1 + hit["distance"]) / 2,
                }
                for hit in hits
            ]

        return ask


def _size(row: dict[str, Any]) -> int:
    size = 0
    for value in row.values():
        if isinstance(value, str):
            size += len(value.encode())
        elif isinstance(value, list) and value and isinstance(value[0], str):
            size += sum(len(text.encode()) for text in cast("list[str]", value))
        elif isinstance(value, dict):
            size += len(json.dumps(value))
        elif isinstance(value, list | np.ndarray):
            size += 4 * len(cast("Sequence[float]", value))
        else:
            size += 8
    return size
