"""The plain side of Neo4j: the driver by hand, on the nodes and indexes that the store made."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, cast

from neo4j import GraphDatabase

from entrepot.filters import TRUE
from entrepot.urls import parse_url
from entrepot_neo4j import searching
from entrepot_neo4j.conformance import SERVER

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from entrepot import Document
    from entrepot.records import Query

__all__ = ["OPTIONS", "SERVER", "Plain"]

OPTIONS: Final = ""
_CHUNK: Final = 500


class Plain:
    """One driver."""

    def __init__(self, url: str) -> None:
        parts = parse_url(url)
        made = cast("Any", GraphDatabase)
        self._driver: Any = made.driver(
            f"neo4j://{parts.host}:{parts.port}",
            auth=(parts.user, parts.password),
            notifications_min_severity="OFF",
            telemetry_disabled=True,
        )

    def close(self) -> None:
        """Close the connections."""
        self._driver.close()

    def _rows(self, text: str, parameters: dict[str, Any]) -> list[list[Any]]:
        def read(transaction: Any) -> list[list[Any]]:
            return cast("list[list[Any]]", transaction.run(text, parameters).values())

        with self._driver.session() as session:
            return cast("list[list[Any]]", session.execute_read(read))

    def rows(self, store: Any) -> list[dict[str, Any]]:
        """Return all documents of the collection, as parameters of a write."""
        place = store._place
        text = (
            f"CYPHER 25 MATCH (n:{place.names.generation})"
            f" RETURN n.id, n.v, n.j, n.t, n.w, vector(n.embedding, {place.info.dimension}, FLOAT32)"
        )
        names = ("id", "v", "j", "t", "w", "e")
        return [dict(zip(names, row, strict=True)) for row in self._rows(text, {})]

    def load(self, store: Any, rows: list[dict[str, Any]]) -> None:
        """Put documents back in place of those that are there, a transaction for each chunk."""
        text = (
            f"UNWIND $rows AS r MERGE (n:{store._place.names.generation} {{id: r.id}})"
            " SET n.v = r.v, n.j = r.j, n.t = r.t, n.w = r.w"
            " WITH n, r CALL db.create.setNodeVectorProperty(n, 'embedding', r.e) RETURN count(*)"
        )

        def write(transaction: Any, part: list[dict[str, Any]]) -> None:
            transaction.run(text, {"rows": part}).consume()

        with self._driver.session() as session:
            for start in range(0, len(rows), _CHUNK):
                session.execute_write(write, rows[start : start + _CHUNK])

    def stored_bytes(self, store: Any) -> int:
        """Return 0: the server tells nobody what a label takes, and its files are to be measured after a stop."""
        del store
        return 0

    def natural_bytes(self, documents: Sequence[Document], columns: Callable[[int], dict[str, Any]]) -> int:
        """Return 0, as above."""
        del documents, columns
        return 0

    def search(self, store: Any, query: Query) -> Callable[[], list[dict[str, Any]]]:
        """Return what asks for a search again, and makes dictionaries of the hits."""
        graph = query.filter is TRUE
        make = searching._graph if graph else None  # pyright: ignore[reportPrivateUsage]
        statement = (
            searching._exactly(store._place, query)  # pyright: ignore[reportPrivateUsage]
            if make is None
            else make(store._place, query, store._plan)
        )

        def ask() -> list[dict[str, Any]]:
            found: list[dict[str, Any]] = []
            for score, kept in self._rows(statement.text, dict(statement.parameters)):
                name, text, metadata = json.loads(kept)
                found.append({"id": name, "text": text, "metadata": metadata, "score": score})
            return found

        return ask
