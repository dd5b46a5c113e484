"""The plain side of Elasticsearch: elasticsearch-py by hand, on the index that the store made."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, cast

import msgspec
import numpy as np
from elasticsearch import Elasticsearch, helpers

from entrepot.filters import TRUE
from entrepot.urls import parse_url
from entrepot_elasticsearch import searching
from entrepot_elasticsearch.conformance import SERVER

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from entrepot import Document
    from entrepot.records import Query

__all__ = ["OPTIONS", "SERVER", "Plain"]

OPTIONS: Final = ""
_CHUNK: Final = 1_000
_NATURAL: Final = "bench-natural"


class Plain:
    """One client of elasticsearch-py."""

    def __init__(self, url: str) -> None:
        parts = parse_url(url)
        self._client: Any = Elasticsearch(f"http://{parts.host}:{parts.port}", request_timeout=300)

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def rows(self, store: Any) -> list[tuple[bytes, bytes]]:
        """Return all documents of the collection, as the lines of a bulk request."""
        found = helpers.scan(self._client, index=store._place.generation, size=_CHUNK)
        encode = msgspec.json.encode
        return [(encode({"index": {"_id": row["_id"]}}), encode(row["_source"])) for row in found]

    def load(self, store: Any, rows: list[tuple[bytes, bytes]]) -> None:
        """Put documents back in place of those that are there, refreshed with each request, which is the fastest."""
        for start in range(0, len(rows), _CHUNK):
            lines = [line for pair in rows[start : start + _CHUNK] for line in pair]
            self._client.bulk(index=store._place.generation, operations=lines, refresh=True)

    def stored_bytes(self, store: Any) -> int:
        """Return the bytes of the index, merged into one segment."""
        return self._size(store._place.name)

    def _size(self, index: str) -> int:
        self._client.indices.forcemerge(index=index, max_num_segments=1)
        self._client.indices.flush(index=index)
        self._client.indices.refresh(index=index)
        told = self._client.indices.stats(index=index, metric="store")
        return int(told["_all"]["primaries"]["store"]["size_in_bytes"])

    def natural_bytes(self, documents: Sequence[Document], columns: Callable[[int], dict[str, Any]]) -> int:
        """Return the bytes of the index that one would make by hand for these documents."""
        dims = len(cast("Any", documents[0].vector))
        types = {
            "text": "text",
            "country": "keyword",
            "year": "long",
            "price": "double",
            "tags": "keyword",
            "share": "long",
        }
        properties: dict[str, Any] = {name: {"type": kind} for name, kind in types.items()}
        properties["v"] = {
            "type": "dense_vector", "dims": dims, "similarity": "cosine", "index_options": {"type": "hnsw"},
        }  # fmt: skip
        self._client.options(ignore_status=404).indices.delete(index=_NATURAL)
        self._client.indices.create(
            index=_NATURAL,
            mappings={"properties": properties},
            settings={"number_of_shards": 1, "number_of_replicas": 0},
        )
        helpers.bulk(
            self._client,
            (
                {
                    "_index": _NATURAL,
                    "_id": document.id,
                    "text": document.text,
                    **columns(number),
                    "v": np.asarray(document.vector, dtype=np.float32).tolist(),
                }
                for number, document in enumerate(documents)
            ),
            chunk_size=_CHUNK,
        )
        size = self._size(_NATURAL)
        self._client.indices.delete(index=_NATURAL)
        return size

    def search(self, store: Any, query: Query) -> Callable[[], list[dict[str, Any]]]:
        """Return what asks for a search again, and makes dictionaries of the hits."""
        body = searching._graph_body(query, store._plan)  # pyright: ignore[reportPrivateUsage]
        knn = body["knn"]
        if query.filter is TRUE:
            knn.pop("filter", None)

        def ask() -> list[dict[str, Any]]:
            answer = self._client.search(
                index=store._place.generation,
                knn=knn,
                size=query.k,
                source=["id", "text", "meta"],
                track_total_hits=False,
                allow_partial_search_results=False,
            )
            return [
                {
                    "id": hit["_source"]["id"],
                    "text": hit["_source"]["text"],
                    "metadata": json.loads(hit["_source"]["meta"]),
                    "score": hit["_score"],
                }
                for hit in answer["hits"]["hits"]
            ]

        return ask
