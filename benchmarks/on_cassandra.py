"""The plain side of Cassandra: cassandra-driver by hand, on the table that the store made."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, cast
from uuid import uuid4

import numpy as np

from entrepot.urls import parse_url
from entrepot_cassandra import searching
from entrepot_cassandra.conformance import SERVER
from entrepot_cassandra.fields import indexed_columns
from entrepot_cassandra.reading import select, ways_of
from entrepot_cassandra.sessions import Address

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from entrepot import Document
    from entrepot.records import Query

__all__ = ["OPTIONS", "SERVER", "Plain"]

_KEYSPACE: Final = "entrepot_bench"
OPTIONS: Final = f"?keyspace={_KEYSPACE}&create_keyspace=true"
_AT_ONCE: Final = 4


class Plain:
    """One session of cassandra-driver."""

    def __init__(self, url: str) -> None:
        parts = parse_url(url)
        login = None if parts.user is None or parts.password is None else (parts.user, parts.password)
        address = Address(
            host=parts.host or "localhost", port=parts.port or 9042, login=login, datacenter=None, tls=False,
            ca_file=None, cert_file=None, key_file=None, check_hostname=True,
        )  # fmt: skip
        self._cluster = address.cluster(300.0)
        self._session: Any = self._cluster.connect()

    def close(self) -> None:
        """Close the connection."""
        self._cluster.shutdown()

    def rows(self, store: Any) -> list[tuple[Any, ...]]:
        """Return all documents of the collection, as the values that the store's statement takes."""
        place = store._place
        columns = ", ".join(("id", "ver", "text", "v", *indexed_columns(place.slots)))
        return [
            (*row[1:], row[0], uuid4())
            for row in self._session.execute(f"SELECT {columns} FROM {place.path}")
        ]

    def load(self, store: Any, rows: list[tuple[Any, ...]]) -> None:
        """Put documents back in place of those that are there, by the same conditional statement."""
        place = store._place
        sets = ", ".join(f"{column} = ?" for column in ("ver", "text", "v", *indexed_columns(place.slots)))
        self._all(f"UPDATE {place.path} SET {sets} WHERE id = ? IF ver != ?", rows)

    def _all(self, cql: str, rows: Sequence[tuple[Any, ...]]) -> None:
        """Send a statement for each row, some at a time."""
        prepared = self._session.prepare(cql)
        under_way: list[Any] = []
        for row in rows:
            if len(under_way) >= _AT_ONCE:
                under_way.pop(0).result()
            under_way.append(self._session.execute_async(prepared, row, timeout=300))
        for future in under_way:
            future.result()

    def stored_bytes(self, store: Any) -> int:
        """Return the bytes of the table, as far as the server has written them to disk, and its indexes."""
        return self._size(store._place.keyspace, store._place.table)

    def _size(self, keyspace: str, table: str) -> int:
        found = self._session.execute(
            "SELECT mebibytes FROM system_views.disk_usage WHERE keyspace_name = %s AND table_name = %s",
            (keyspace, table),
        ).one()
        return max(1, int(found[0])) << 20

    def natural_bytes(self, documents: Sequence[Document], columns: Callable[[int], dict[str, Any]]) -> int:
        """Return the bytes of the table that one would make by hand for these documents."""
        dims = len(cast("Any", documents[0].vector))
        path = f"{_KEYSPACE}.natural_{uuid4().hex[:12]}"
        types = {
            "text": "text",
            "country": "text",
            "year": "bigint",
            "price": "double",
            "tags": "set<text>",
            "share": "bigint",
        }
        wanted = ", ".join(f"{name} {kind}" for name, kind in types.items())
        self._session.execute(f"CREATE TABLE {path} (id text PRIMARY KEY, {wanted}, v vector<float, {dims}>)")
        for name in (*(name for name in types if name != "text"), "v"):
            self._session.execute(f"CREATE INDEX ON {path} ({name}) USING 'sai'")
        rows = [
            (
                document.id,
                *({"text": document.text, **columns(number)}.get(name) for name in types),
                np.asarray(document.vector, dtype=np.float32).tolist(),
            )
            for number, document in enumerate(documents)
        ]
        marks = ", ".join("?" * (len(types) + 2))
        self._all(f"INSERT INTO {path} (id, {', '.join(types)}, v) VALUES ({marks})", rows)
        size = self._size(*path.split("."))
        self._session.execute(f"DROP TABLE {path}")
        return size

    def search(self, store: Any, query: Query) -> Callable[[], list[dict[str, Any]]]:
        """Return what asks for a search again, and makes dictionaries of the hits."""
        place = store._place
        (way,) = ways_of(query)
        limit = min(searching.MOST, max(100, 4 * query.k))
        nearest = self._session.prepare(
            f"{select(place, f'id, {place.similarity}(v, ?)', way)} ORDER BY v ANN OF ? LIMIT ?"
        )
        read = self._session.prepare(f"SELECT id, text, m FROM {place.path} WHERE id IN ?")
        vector: list[float] = [] if query.vector is None else query.vector.tolist()

        def ask() -> list[dict[str, Any]]:
            found = self._session.execute(nearest, (vector, *way.values, vector, limit)).all()
            best = {row[0]: row[1] for row in found[: query.k]}
            rows = {row[0]: row for row in self._session.execute(read, (list(best),))}
            return [
                {"id": name, "text": rows[name][1], "metadata": json.loads(rows[name][2]), "score": score}
                for name, score in best.items()
            ]

        return ask
