"""Documents in a real SQLite database, in the layout of `SqliteFilterConverter`."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

from entrepot.filters.sqlite import SCHEMA, element_rows

if TYPE_CHECKING:
    from collections.abc import Mapping


def load(documents: Mapping[str, Mapping[str, object]]) -> sqlite3.Connection:
    """Return a database in memory with these documents: metadata by id."""
    connection = sqlite3.connect(":memory:")
    connection.executescript(SCHEMA)
    for number, (id_, metadata) in enumerate(documents.items()):
        connection.execute("INSERT INTO document VALUES (?, ?)", (number, id_))
        connection.executemany(
            "INSERT INTO element VALUES (?, ?, ?, ?)", [(number, *row) for row in element_rows(metadata)]
        )
    return connection
