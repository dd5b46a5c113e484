"""The plain side of PostgreSQL: psycopg by hand, on the table that the store made."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, cast

import psycopg
from psycopg import sql
from psycopg.rows import tuple_row

from entrepot_postgres import conversations
from entrepot_postgres.binary import register
from entrepot_postgres.conformance import SERVER, connect

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from entrepot import Document
    from entrepot.memory.repository import Entry
    from entrepot.records import Query

__all__ = ["OPTIONS", "SERVER", "Plain"]

OPTIONS: Final = "?m=8&ef_construction=32"
"""The index that both sides have: a small one, which is soon made."""


class Plain:
    """One connection of psycopg."""

    def __init__(self, url: str) -> None:
        self._connection = connect(url)
        register(self._connection)
        self._cursor: psycopg.Cursor[Any] = self._connection.cursor(binary=True, row_factory=tuple_row)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def rows(self, store: Any) -> bytes:
        """Return all rows as COPY writes them."""
        query = sql.SQL("COPY {} TO STDOUT (FORMAT BINARY)").format(store._names.table)
        with self._cursor.copy(query) as copy:
            return b"".join(map(bytes, copy))

    def load(self, store: Any, rows: bytes) -> None:
        """Put rows into the table, which is emptied first, by COPY: the fastest way that there is."""
        self._cursor.execute(sql.SQL("TRUNCATE {}").format(store._names.table))
        with self._cursor.copy(
            sql.SQL("COPY {} FROM STDIN (FORMAT BINARY)").format(store._names.table)
        ) as copy:
            copy.write(rows)

    def stored_bytes(self, store: Any) -> int:
        """Return the bytes of the store's table, its indexes and its long values."""
        return self._size(store._names.table)

    def _size(self, table: sql.Composable) -> int:
        name = table.as_string(self._connection)
        [size] = self._cursor.execute("SELECT pg_total_relation_size(%s::regclass)", (name,)).fetchone() or [
            0
        ]
        return int(size)

    def natural_bytes(self, documents: Sequence[Document], columns: Callable[[int], dict[str, Any]]) -> int:
        """Return the bytes of the table that one would make by hand for these documents.

        Typed columns with an index each, text with its words, and the same index of vectors.
        """
        execute: Any = self._cursor.execute
        execute("DROP TABLE IF EXISTS bench_natural")
        execute(
            "CREATE TABLE bench_natural (id text PRIMARY KEY, text text, country text, year int, price float8,"
            " tags text[], share int, words tsvector GENERATED ALWAYS AS (to_tsvector('simple', text)) STORED,"
            f" embedding vector({len(cast('Any', documents[0].vector))}))"
        )
        with self._cursor.copy(
            "COPY bench_natural (id, text, country, year, price, tags, share, embedding) FROM STDIN"
        ) as copy:
            for number, document in enumerate(documents):
                values = columns(number)
                vector = json.dumps(list(map(float, cast("Any", document.vector))))
                copy.write_row((document.id, document.text, *values.values(), vector))
        for column in ("country", "year", "price", "share"):
            execute(f"CREATE INDEX ON bench_natural ({column})")
        execute("CREATE INDEX ON bench_natural USING gin (tags)")
        execute("CREATE INDEX ON bench_natural USING gin (words)")
        execute(
            "CREATE INDEX ON bench_natural USING hnsw (embedding vector_cosine_ops)"
            " WITH (m = 8, ef_construction = 32)"
        )
        size = self._size(sql.Identifier("bench_natural"))
        execute("DROP TABLE bench_natural")
        return size

    def search(self, store: Any, query: Query) -> Callable[[], list[dict[str, Any]]]:
        """Return what sends the statements of a search again, and makes dictionaries of the rows."""
        script = store._search_script(query)
        sent: list[Any] = []
        try:
            step = next(script)
            while True:
                for name, value in step.settings.items():
                    self._cursor.execute("SELECT set_config(%s, %s, false)", (name, value))
                sent.append(step)
                step = script.send(self._cursor.execute(step.query, step.parameters).fetchall())
        except StopIteration:
            pass

        def ask() -> list[dict[str, Any]]:
            rows: list[tuple[Any, ...]] = []
            for step in sent:
                rows = self._cursor.execute(step.query, step.parameters, prepare=step.prepare).fetchall()
            return [
                {"id": row[0], "text": row[1], "metadata": json.loads(row[2]), "score": 1 - row[-1] / 2}
                for row in rows
            ]

        return ask

    def appends(self, memory: Any, name: str, entry: Callable[[], Entry]) -> Callable[[], None]:
        """Return what sends the statement of an append, each time for another message."""

        def append() -> None:
            batch = conversations.batch_of([entry()])
            step: Any = next(conversations.append(memory._statements, name.encode(), batch, None))
            self._cursor.execute(step.query, step.parameters, prepare=step.prepare).fetchall()

        return append
