"""The plain side of MongoDB: PyMongo by hand, on the collections that the store and the memory made."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np
from pymongo import MongoClient, ReplaceOne
from pymongo.read_concern import ReadConcern
from pymongo.write_concern import WriteConcern

from entrepot.urls import parse_url
from entrepot_mongodb.config import MongoDBConfig
from entrepot_mongodb.conformance import SERVER
from entrepot_mongodb.log import batch_of, key
from entrepot_mongodb.reading import pushed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from entrepot import Document
    from entrepot.memory.repository import Entry
    from entrepot.records import Query

__all__ = ["OPTIONS", "SERVER", "Plain"]

OPTIONS: Final = "?index=flat"
_CHUNK: Final = 500
_BATCH: Final = 1024
_NATURAL: Final = "bench-natural"


class Plain:
    """One client of PyMongo."""

    def __init__(self, url: str) -> None:
        given = MongoDBConfig.from_url(parse_url(url))
        self._client: Any = MongoClient(
            given["host"], given.get("port"), username=given.get("user"), password=given.get("password")
        )
        self._database: Any = self._client.get_database(
            "entrepot", write_concern=WriteConcern("majority"), read_concern=ReadConcern("majority")
        )

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def rows(self, store: Any) -> list[dict[str, Any]]:
        """Return all documents of the collection."""
        return list(self._database[store._place.name].find())

    def load(self, store: Any, rows: list[dict[str, Any]]) -> None:
        """Put documents in the place of those that are there, as the store does."""
        collection = self._database[store._place.name]
        for start in range(0, len(rows), _CHUNK):
            part = rows[start : start + _CHUNK]
            collection.bulk_write(
                [ReplaceOne({"_id": row["_id"]}, row, upsert=True) for row in part], ordered=False
            )

    def stored_bytes(self, store: Any) -> int:
        """Return the bytes of the documents, as BSON."""
        return self._size(store._place.name)

    def _size(self, name: str) -> int:
        return int(self._database.command("collStats", name)["size"])

    def natural_bytes(self, documents: Sequence[Document], columns: Callable[[int], dict[str, Any]]) -> int:
        """Return the bytes of the documents that one would make by hand, with vectors as lists of numbers."""
        collection = self._database[_NATURAL]
        collection.drop()
        for start in range(0, len(documents), _CHUNK):
            collection.insert_many(
                [
                    {
                        "_id": document.id,
                        "text": document.text,
                        **columns(number),
                        "embedding": np.asarray(document.vector, dtype=np.float32).tolist(),
                    }
                    for number, document in enumerate(documents[start : start + _CHUNK], start)
                ]
            )
        size = self._size(_NATURAL)
        collection.drop()
        return size

    def search(self, store: Any, query: Query) -> Callable[[], list[dict[str, Any]]]:
        """Return what asks for a search again: vectors of all that match, the best by numpy, and their documents."""
        collection = self._database[store._place.name]
        vector = cast("Any", query.vector).astype(np.float64)
        clause = pushed(query)

        def ask() -> list[dict[str, Any]]:
            names: list[str] = []
            vectors: list[bytes] = []
            for one in collection.find(clause, {"d.e": 1}, batch_size=_BATCH):
                names.append(one["_id"])
                vectors.append(one["d"]["e"])
            matrix = np.frombuffer(b"".join(one[-4 * len(vector) :] for one in vectors), dtype="<f4")
            value = (1.0 + (matrix.reshape(len(names), -1) * vector).sum(axis=1)) / 2.0
            best = sorted(range(len(names)), key=lambda row: (-value[row], names[row]))[: query.k]
            found = collection.find({"_id": {"$in": [names[row] for row in best]}}, {"d.j": 1, "d.x": 1})
            there = {one["_id"]: one["d"] for one in found}
            return [
                {
                    "id": names[row],
                    "text": there[names[row]]["x"],
                    "metadata": json.loads(there[names[row]]["j"]),
                    "score": float(value[row]),
                }
                for row in best
            ]

        return ask

    def appends(self, memory: Any, name: str, entry: Callable[[], Entry]) -> Callable[[], None]:
        """Return what sends the commands of an append, each time for another message."""
        log = self._database[memory._names.log]

        def append() -> None:
            batch = batch_of([entry()])
            span = {"$gte": f"{name}\0", "$lt": f"{name}\1"}
            (newest,) = log.find({"_id": span}, {"s": 1, "b": 1, "p": 1}).sort("_id", -1).limit(1)
            known = {"c": name, "s": {"$gte": newest["b"], "$lte": newest["s"]}, "i": {"$in": batch.ids}}
            assert not list(log.find(known, {"i": 1}))
            number = newest["s"] + 1
            log.insert_one(
                {
                    "_id": key(name, number),
                    "c": name,
                    "s": number,
                    "b": newest["b"],
                    "n": number,
                    "i": batch.ids,
                    "r": batch.roles,
                    "m": batch.texts,
                    "p": {**newest["p"], batch.roles: [number, 0]},
                    "o": "by hand",
                }
            )

        return append
