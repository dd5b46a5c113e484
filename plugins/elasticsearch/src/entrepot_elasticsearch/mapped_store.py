"""`MappedElasticsearchVectorStore`: reading an index that other software made (D5)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

import msgspec

from entrepot_elasticsearch import mapped_reading
from entrepot_elasticsearch.mapped_filters import MappedFilterConverter
from entrepot_elasticsearch.mapping import index_mapping
from entrepot_elasticsearch.plugin import CAPABILITIES
from entrepot_elasticsearch.store import ElasticsearchVectorStore

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from entrepot.capabilities import Capabilities
    from entrepot.records import Hit, Page, Query, StoredRecord
    from entrepot_elasticsearch.commands import Script
    from entrepot_elasticsearch.mapped_fields import MappedPlace

MAPPED_CAPABILITIES: Final = msgspec.structs.replace(
    CAPABILITIES, fulltext=False, hybrid=False, conditional_write=None
)


def open_elasticsearch(
    *, mapping: Mapping[str, Any] | None = None, **options: Any
) -> ElasticsearchVectorStore:
    """Make a store of the fields of `ElasticsearchConfig`; with a mapping, one that reads an index of others."""
    if mapping is None:
        return ElasticsearchVectorStore(**options)
    return MappedElasticsearchVectorStore(mapping=mapping, **options)


class MappedElasticsearchVectorStore(ElasticsearchVectorStore):
    """Documents in an index that other software made, to be read and not written.

    A document's id is the engine's ``_id``. What is read is what stands in its source; filters are narrowed by the
    engine and decided by the core. A document without a vector is none.

    Args:
        mapping: Which fields hold what: `entrepot_elasticsearch.mapping.index_mapping`.
        collection: The name of the index, as it stands, or of an alias of one index.
        options: As `ElasticsearchVectorStore`; `metric` says how vectors are compared, as the index does unless given.

    Raises:
        ConfigurationError: The mapping or an option is none.
    """

    capabilities: Capabilities = MAPPED_CAPABILITIES
    writable = False

    def __init__(self, *, mapping: Mapping[str, Any], **options: Any) -> None:
        super().__init__(**options)
        self._mapping = index_mapping(mapping)

    def _read(self) -> MappedPlace:
        return cast("MappedPlace", cast("object", self._here()))

    def _describe_script(self) -> Script[Any]:
        return mapped_reading.describe(
            self.collection, self._mapping, self._wanted_metric, self._wanted_dimension, self._version
        )

    def _converter(self) -> MappedFilterConverter:
        return MappedFilterConverter({} if self._place is None else self._read().fields)

    def _search_script(self, query: Query) -> Script[list[Hit]]:
        return mapped_reading.search(self._read(), query, self._plan.ef_search)

    def _search_batch_script(self, queries: Sequence[Query]) -> Script[list[list[Hit]]]:
        found: list[list[Hit]] = []
        for query in queries:
            hits = yield from self._search_script(query)
            found.append(hits)
        return found

    def _fetch_script(self, ids: Sequence[str], include: Sequence[str]) -> Script[list[StoredRecord]]:
        return mapped_reading.fetch(self._read(), ids, include)

    def _scan_script(self, query: Query, token: str | None, size: int) -> Script[Page[StoredRecord]]:
        return mapped_reading.scan(self._read(), query, token, size)

    def _count_script(self, query: Query) -> Script[int]:
        return mapped_reading.count(self._read(), query)

    def _details_script(self) -> Script[dict[str, Any]]:
        yield from ()
        return {"index": "of other software", "fields": len(self._read().fields)}
