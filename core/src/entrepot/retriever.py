"""The read-only half of a store, as an object that has nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from entrepot.documents import Document
    from entrepot.search import SearchRequest
    from entrepot.vectorstore import VectorStore


class Retriever:
    """Searches a store and can do nothing else; made by `VectorStore.as_retriever`.

    Keyword options are those of `VectorStore.similarity_search`.
    """

    __slots__ = ("_asearch", "_search")

    def __init__(self, store: VectorStore) -> None:
        self._search = store.similarity_search
        self._asearch = store.asimilarity_search

    def similarity_search(self, query: str | SearchRequest, /, **options: Any) -> list[Document]:
        """Return the documents that are most like the query, best first."""
        return self._search(query, **options)

    async def asimilarity_search(self, query: str | SearchRequest, /, **options: Any) -> list[Document]:
        """As `similarity_search`."""
        return await self._asearch(query, **options)
