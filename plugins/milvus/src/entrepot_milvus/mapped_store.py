"""`MappedMilvusVectorStore` and its twin in Milvus Lite: reading collections that other software made (D5)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from entrepot_milvus import mapped_reading
from entrepot_milvus.commands import change, read
from entrepot_milvus.faults import NotLoadedError
from entrepot_milvus.mapped_filters import MappedFilterConverter
from entrepot_milvus.mapping import collection_mapping
from entrepot_milvus.plugin import CAPABILITIES, LITE_CAPABILITIES
from entrepot_milvus.store import BaseStore, MilvusLiteVectorStore, MilvusVectorStore

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from entrepot.capabilities import Capabilities
    from entrepot.records import Hit, Page, Query, StoredRecord
    from entrepot.scripted import Script
    from entrepot_milvus.catalog import Place
    from entrepot_milvus.filters import LimitedConverter


def _reading_of(capabilities: Capabilities) -> Capabilities:
    return msgspec.structs.replace(capabilities, fulltext=False, hybrid=False, conditional_write=None)


def open_milvus(*, mapping: Mapping[str, Any] | None = None, **options: Any) -> MilvusVectorStore:
    """Make a store of the fields of `MilvusConfig`; with a mapping, one that reads a collection of others."""
    if mapping is None:
        return MilvusVectorStore(**options)
    return MappedMilvusVectorStore(mapping=mapping, **options)


def open_milvus_lite(*, mapping: Mapping[str, Any] | None = None, **options: Any) -> MilvusLiteVectorStore:
    """As `open_milvus`, of the fields of `MilvusLiteConfig`."""
    if mapping is None:
        return MilvusLiteVectorStore(**options)
    return MappedMilvusLiteVectorStore(mapping=mapping, **options)


class _Mapped(BaseStore):
    """What both stores do otherwise than those of this library's own collections."""

    writable = False

    def __init__(self, *, mapping: Mapping[str, Any], **options: Any) -> None:
        super().__init__(**options)
        self._mapping = collection_mapping(mapping)

    def _watched(self, script: Script[Any]) -> Script[Any]:
        """Load a collection that is no longer in memory; the core asks again."""
        try:
            return (yield from script)
        except NotLoadedError:
            yield change("load_collection", collection_name=self.collection)
            raise

    def _describe_script(self) -> Script[Place | None]:
        return mapped_reading.describe(self.collection, self._plan, self._mapping)

    def _details_script(self) -> Script[dict[str, Any]]:
        version = yield read("get_server_version")
        layout = self._here().layout
        return {
            "engine": str(version),
            "index": layout.index_type if layout else "",
            "partition": self._plan.partition,
        }

    def _converter(self) -> LimitedConverter:
        layout = None if self._place is None else self._place.layout
        return MappedFilterConverter(layout, served=self._plan.served)

    def _fetch_script(self, ids: Sequence[str], include: Sequence[str]) -> Script[list[StoredRecord]]:
        return mapped_reading.fetch(self._here(), ids, include, self._plan)

    def _search_script(self, query: Query) -> Script[list[Hit]]:
        return mapped_reading.search(self._here(), query, self._plan)

    def _search_batch_script(self, queries: Sequence[Query]) -> Script[list[list[Hit]]]:
        found: list[list[Hit]] = []
        for query in queries:
            hits = yield from mapped_reading.search(self._here(), query, self._plan)
            found.append(hits)
        return found

    def _scan_script(self, query: Query, token: str | None, size: int) -> Script[Page[StoredRecord]]:
        return mapped_reading.scan(self._here(), query, token, size, self._plan)

    def _count_script(self, query: Query) -> Script[int]:
        return mapped_reading.count(self._here(), query, self._plan)


class MappedMilvusVectorStore(_Mapped, MilvusVectorStore):
    """Documents in a collection on a server that other software made, to be read and not written.

    Args:
        mapping: Which fields hold what: `entrepot_milvus.mapping.collection_mapping`.
        collection: The name of the collection, as it stands, or an alias.
        partition: A partition of it, by its name there.
        options: As `MilvusVectorStore`. The metric and the index are the collection's.

    Raises:
        ConfigurationError: The mapping or an option is none.
    """

    capabilities: Capabilities = _reading_of(CAPABILITIES)

    def _meet(self, version: str) -> None:
        super()._meet(version)
        self.capabilities = _reading_of(self.capabilities)


class MappedMilvusLiteVectorStore(_Mapped, MilvusLiteVectorStore):
    """As `MappedMilvusVectorStore`, in Milvus Lite; options as `MilvusLiteVectorStore`."""

    capabilities: Capabilities = _reading_of(LITE_CAPABILITIES)
