"""`PineconeVectorStore`: documents in a namespace of an index of Pinecone."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar

from entrepot.filters import TRUE
from entrepot.records import Query
from entrepot.scripted import ScriptedVectorStore
from entrepot_pinecone import catalog, changing, reading, searching
from entrepot_pinecone.catalog import Place, Plan
from entrepot_pinecone.changing import Written
from entrepot_pinecone.fields import check_drafts
from entrepot_pinecone.filters import PineconeFilterConverter
from entrepot_pinecone.names import check_namespace
from entrepot_pinecone.plugin import CAPABILITIES
from entrepot_pinecone.servers import checked_url, server_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from entrepot.capabilities import Capabilities
    from entrepot.drafts import Drafts
    from entrepot.filters import Normal
    from entrepot.records import CollectionInfo, Hit, IfExists, Page, Record, StoredRecord
    from entrepot_pinecone.commands import Script

T = TypeVar("T")


class PineconeVectorStore(ScriptedVectorStore[Place]):
    """Documents in a namespace of an index of Pinecone, over its HTTP API in sync and async code.

    Searches are the service's own. What must be complete (counts, scans, deletions by filter, exact searches) lists the
    namespace and reads all of it, as a query enumerates nothing: 100 documents cost two requests. Exact searches, and counts
    by filter, read at most `max_completion_rows` documents.

    A document is written in one step; what depends on a stored document reads it before, so another writer can come between.

    Args:
        collection: Name of the collection, and of the index if an index can have it.
        api_key: The API key, by default that of PINECONE_API_KEY.
        namespace: The namespace of the documents; the default one if it is empty.
        control: The URL of the control plane, by default the service's.
        host: The URL of the index, if the control plane shall not be asked for it.
        cloud: Where a new index is made: ``aws``, ``gcp`` or ``azure``.
        region: The region of that cloud.
        pool_size: Most connections; for async use, in each event loop.
        client: An `httpx.Client` or `httpx.AsyncClient` to use, such as one with a proxy or other certificates; it stays
            open when the store closes (E5).
        options: What every store takes: embedding, metric, dimension, create, timeout, allow_other_model,
            batching, max_completion_rows (`VectorStoreHooks`).

    Raises:
        ConfigurationError: An option is out of bounds, or there is no API key.
    """

    backend = "pinecone"
    capabilities: Capabilities = CAPABILITIES

    def __init__(  # noqa: PLR0913 - the options of the backend
        self,
        *,
        collection: str = "default",
        api_key: str | None = None,
        namespace: str = "",
        control: str | None = None,
        host: str | None = None,
        cloud: str = "aws",
        region: str = "us-east-1",
        pool_size: int = 8,
        client: object = None,
        **options: Any,
    ) -> None:
        super().__init__(collection=collection, **options)
        check_namespace(namespace)
        self._server = server_of(
            api_key=api_key, control=control, pool_size=pool_size, timeout=self.timeout, client=client
        )
        scheme = self._server.address.scheme
        self._plan = Plan(
            namespace=namespace,
            host=None if host is None else checked_url("host", host, scheme),
            scheme=scheme,
            cloud=cloud,
            region=region,
            most_rows=self.max_completion_rows,
        )
        self.namespace = namespace or "__default__"

    # --- connecting -------------------------------------------------------------------------------------

    def _open(self) -> None:
        if self._server.has_sync:
            self._answer(catalog.check_server(self._plan, self.collection))

    async def _aopen(self) -> None:
        if self._server.has_async:
            await self._aanswer(catalog.check_server(self._plan, self.collection))
        else:
            await super()._aopen()

    def _close(self) -> None:
        self._server.close()

    async def _aclose(self) -> None:
        await self._server.aclose()

    @property
    def native_client(self) -> object:
        """The HTTP client: the one that was given, or an `httpx.Client`."""
        return self._server.native

    def _answer(self, script: Script[T]) -> T:
        return self._server.run(script, self.collection)

    async def _aanswer(self, script: Script[T]) -> T:
        if not self._server.has_async:
            return await asyncio.to_thread(self._answer, script)
        return await self._server.arun(script, self.collection)

    # --- collections ------------------------------------------------------------------------------------

    def _describe_script(self) -> Script[Place | None]:
        return catalog.describe(self.collection, self._plan)

    def _create_script(self, info: CollectionInfo) -> Script[Place]:
        return catalog.create(info, self._plan)

    def _drop_script(self) -> Script[None]:
        return catalog.drop(self.collection, self._plan)

    def _list_collections_script(self) -> Script[list[str]]:
        return catalog.list_collections(self._plan)

    def _details_script(self) -> Script[dict[str, Any]]:
        return catalog.details(self._here())

    # --- reading ----------------------------------------------------------------------------------------

    def _converter(self) -> PineconeFilterConverter:
        return PineconeFilterConverter()

    def _fetch_script(self, ids: Sequence[str], include: Sequence[str]) -> Script[list[StoredRecord]]:
        return reading.fetch(self._here(), ids, include)

    def _search_script(self, query: Query) -> Script[list[Hit]]:
        return searching.search(self._here(), query, self._plan.most_rows)

    def _scan_script(self, query: Query, token: str | None, size: int) -> Script[Page[StoredRecord]]:
        return reading.scan(self._here(), query, token, size)

    def _count_script(self, query: Query) -> Script[int]:
        return reading.count(self._here(), query, self._plan.most_rows)

    # --- changing ---------------------------------------------------------------------------------------

    def _check_drafts(self, drafts: Drafts) -> None:
        check_drafts(drafts)

    def _write_script(
        self,
        records: Sequence[Record],
        if_exists: IfExists,
        inside: Normal = TRUE,  # noqa: ARG002 - the core checks before, as conditional_write is "checked"
    ) -> Script[object]:
        return changing.write(self._here(), records, if_exists)

    def _update_script(
        self,
        ids: Sequence[str],
        changes: Mapping[str, Any],
        unset: Sequence[str],
        inside: Normal = TRUE,  # noqa: ARG002 - as above
    ) -> Script[list[str]]:
        return changing.update(self._here(), ids, changes, unset, self.capabilities.limits)

    def _delete_script(
        self,
        target: Sequence[str] | Query,
        inside: Normal = TRUE,  # noqa: ARG002 - as above
    ) -> Script[None]:
        if isinstance(target, Query):
            return changing.delete_matching(self._here(), target)
        return changing.delete_ids(self._here(), target)

    def _delete_unchanged_script(self, records: Sequence[StoredRecord]) -> Script[None]:
        return changing.delete_unchanged(self._here(), records)

    def _visible_script(self, marker: object) -> Script[None]:
        if isinstance(marker, Written):
            yield from changing.visible(self._here(), marker)
