"""`MappedPostgresVectorStore`: reading a table that other software made (D5)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

import msgspec

from entrepot.capabilities import Metric
from entrepot_postgres import catalog, mapped_reading, mapped_table
from entrepot_postgres.mapping import check_table, table_mapping
from entrepot_postgres.names import Name
from entrepot_postgres.plugin import POSTGRES_CAPABILITIES
from entrepot_postgres.store import PostgresVectorStore

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from entrepot.capabilities import Capabilities
    from entrepot.records import Hit, Page, Query, StoredRecord
    from entrepot_postgres.catalog import Place
    from entrepot_postgres.mapped_table import Table
    from entrepot_postgres.scripts import Script

MAPPED_CAPABILITIES: Final = msgspec.structs.replace(
    POSTGRES_CAPABILITIES, fulltext=False, hybrid=False, ann=False, conditional_write=None
)


def open_postgres(*, mapping: Mapping[str, Any] | None = None, **options: Any) -> PostgresVectorStore:
    """Make a store of the fields of `PostgresConfig`; with a mapping, one that reads a table of others."""
    if mapping is None:
        return PostgresVectorStore(**options)
    return MappedPostgresVectorStore(mapping=mapping, **options)


class MappedPostgresVectorStore(PostgresVectorStore):
    """Documents in a table or view that other software made, to be read and not written.

    Args:
        mapping: Which columns hold what: `entrepot_postgres.mapping.table_mapping`.
        collection: The name of the table, as it stands.
        options: As `PostgresVectorStore`; `metric` says how vectors are compared, cosine unless given.

    Raises:
        ConfigurationError: The mapping or an option is none.
    """

    capabilities: Capabilities = MAPPED_CAPABILITIES
    writable = False

    def __init__(self, *, mapping: Mapping[str, Any], **options: Any) -> None:
        super().__init__(**options)
        check_table(self.collection)
        self._mapping = table_mapping(mapping)
        self._table_name = Name(self.schema, self.collection)

    # --- the table --------------------------------------------------------------------------------------

    def _read(self) -> Table:
        return cast("Table", self._here())

    def _describe_script(self) -> Script[Place | Table | None]:
        metric = self._wanted_metric or Metric.COSINE
        return mapped_table.describe(
            self._table_name, self.collection, self._mapping, metric, self._wanted_dimension
        )

    # --- reading ----------------------------------------------------------------------------------------

    def _converter(self) -> None:
        """Return nothing: the table's columns decide what becomes of a filter, and every one is exact."""
        return

    def _search_script(self, query: Query) -> Script[list[Hit]]:
        return mapped_reading.search(self._read(), query, self._ef_search)

    def _fetch_script(self, ids: Sequence[str], include: Sequence[str]) -> Script[list[StoredRecord]]:
        return mapped_reading.fetch(self._read(), ids, include)

    def _scan_script(self, query: Query, token: str | None, size: int) -> Script[Page[StoredRecord]]:
        return mapped_reading.scan(self._read(), query, token, size)

    def _count_script(self, query: Query) -> Script[int]:
        return mapped_reading.count(self._read(), query)

    def _details_script(self) -> Script[dict[str, Any]]:
        return catalog.details(self._table_name, indexed=self._read().indexed)
