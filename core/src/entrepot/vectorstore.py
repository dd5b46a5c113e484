"""`VectorStore`, the public face of every backend, and `VectorStoreRetriever`, its read-only half.

The methods here are the same for all backends: they check, embed, batch, score and order. What
differs stands in the hooks of `entrepot.hooks`. Every operation has an async twin with the prefix
``a`` that behaves alike and never blocks the event loop (E3).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from entrepot.filters import FALSE, format_filter
from entrepot.hooks import normal_of
from entrepot.observation import note
from entrepot.scan import AsyncScan, Scan
from entrepot.search import DEFAULT_INCLUDE, SearchMode, SearchRequest, checked_timeout
from entrepot.searching import Searching, as_request, as_requests
from entrepot.steps import ask, tell
from entrepot.writing import Writing

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from entrepot.documents import Document
    from entrepot.records import IfExists, Page
    from entrepot.search import FilterLike, Part
    from entrepot.steps import Steps


class VectorStoreRetriever(Protocol):
    """The read-only half of a store: what code that only searches should ask for."""

    def similarity_search(  # noqa: PLR0913 - the options of a search
        self,
        query: str | SearchRequest,
        /,
        *,
        top_k: int = 4,
        threshold: float | None = None,
        filter: FilterLike | None = None,  # noqa: A002 - the name users know
        mode: SearchMode | str = SearchMode.SEMANTIC,
        exact: bool = False,
        include: Collection[Part] = DEFAULT_INCLUDE,
        timeout: float | None = None,
    ) -> list[Document]:
        """Return the documents that are most like the query, best first."""
        ...

    async def asimilarity_search(  # noqa: PLR0913 - the options of a search
        self,
        query: str | SearchRequest,
        /,
        *,
        top_k: int = 4,
        threshold: float | None = None,
        filter: FilterLike | None = None,  # noqa: A002 - the name users know
        mode: SearchMode | str = SearchMode.SEMANTIC,
        exact: bool = False,
        include: Collection[Part] = DEFAULT_INCLUDE,
        timeout: float | None = None,  # noqa: ASYNC109 - handed to the driver
    ) -> list[Document]:
        """As `similarity_search`."""
        ...


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """What a store does with a filter (F9).

    Attributes:
        filter: The normal form, as text.
        pushed: What the engine is asked, line by line.
        exact: Whether the engine takes all of it; otherwise the core completes the answer.
    """

    filter: str
    pushed: tuple[str, ...]
    exact: bool


class Stats(msgspec.Struct, frozen=True, kw_only=True):
    """Figures of a collection.

    Attributes:
        collection: Its name.
        backend: The kind of store.
        count: Documents in it.
        dimension: Components of a vector.
        metric: How vectors are compared.
        model: The embedding model that filled it, if it is known.
        details: What else the backend tells, such as bytes.
    """

    collection: str
    backend: str
    count: int
    dimension: int
    metric: str
    model: str | None
    details: dict[str, Any] = msgspec.field(default_factory=dict[str, Any])


class VectorStore(Searching, Writing):
    """Documents with their vectors, behind one contract on every backend.

    Open one with `open_vector_store`, use it as a context manager, and close it. Stores are
    thread-safe. They do not cross forks and are not pickled (E5).
    """

    # --- writing --------------------------------------------------------------------------------------

    def add(
        self,
        documents: Iterable[Document],
        *,
        if_exists: IfExists = "replace",
        wait: bool = True,
        timeout: float | None = None,
    ) -> list[str]:
        """Store documents, embedding the texts of those that bring no vector.

        The batch is checked whole before anything is sent, then embedded and written in order (D6).

        Args:
            documents: Documents; an id that exists is replaced whole (D2).
            if_exists: ``"replace"``, ``"skip"`` (keep the stored one) or ``"error"``.
            wait: Return only when searches see the documents (S7).
            timeout: Seconds for each exchange with the engine, instead of the store's own (E4).

        Returns:
            The ids, in the order of the documents.

        Raises:
            DocumentError: A document breaks a rule; nothing was sent.
            DuplicateIdError: One id twice, or an existing one under ``if_exists="error"``.
            CollectionMismatchError: The collection has another dimension, metric or model (D5).
            BatchError: The engine or the model failed midway.
            NotYetVisibleError: Written, but not searchable in time.
        """
        return self._run("add", self._add_steps(documents, if_exists, wait=wait), checked_timeout(timeout))

    async def aadd(
        self,
        documents: Iterable[Document],
        *,
        if_exists: IfExists = "replace",
        wait: bool = True,
        timeout: float | None = None,  # noqa: ASYNC109 - handed to the driver
    ) -> list[str]:
        """As `add`."""
        return await self._arun(
            "add", self._add_steps(documents, if_exists, wait=wait), checked_timeout(timeout)
        )

    def update(
        self,
        ids: Iterable[str],
        *,
        set: Mapping[str, Any] | None = None,  # noqa: A002 - the name of the contract
        unset: Iterable[str] | None = None,
    ) -> list[str]:
        """Change metadata of stored documents without embedding anything (D10).

        Args:
            ids: Documents to change; unknown ids are left out.
            set: Keys to set; a value of None unsets the key.
            unset: Keys to remove; a missing one is no error.

        Returns:
            The ids that were there, in the order given.
        """
        return self._run("update", self._update_steps(ids, set, unset))

    async def aupdate(
        self,
        ids: Iterable[str],
        *,
        set: Mapping[str, Any] | None = None,  # noqa: A002 - the name of the contract
        unset: Iterable[str] | None = None,
    ) -> list[str]:
        """As `update`."""
        return await self._arun("update", self._update_steps(ids, set, unset))

    def delete(self, ids: Iterable[str] | None = None, *, filter: FilterLike | None = None) -> None:  # noqa: A002
        """Delete documents by id, or all that match a filter (D7).

        Unknown ids are no error and an empty list deletes nothing. By filter, everything goes that
        matched at the start and has not changed since.

        Raises:
            ArgumentTypeError: Neither or both were given, or a bare string as ids.
        """
        self._run("delete", self._delete_steps(ids, filter))

    async def adelete(self, ids: Iterable[str] | None = None, *, filter: FilterLike | None = None) -> None:  # noqa: A002
        """As `delete`."""
        await self._arun("delete", self._delete_steps(ids, filter))

    def delete_all(self) -> None:
        """Delete every document; the collection stays (D7)."""
        self._run("delete_all", self._delete_all_steps())

    async def adelete_all(self) -> None:
        """As `delete_all`."""
        await self._arun("delete_all", self._delete_all_steps())

    # --- reading --------------------------------------------------------------------------------------

    def get(self, ids: Iterable[str], *, include: Collection[Part] = DEFAULT_INCLUDE) -> list[Document]:
        """Return documents in the order asked, leaving out unknown ids (D7).

        Raises:
            CollectionNotFoundError: There is no such collection.
            ArgumentTypeError: A bare string instead of a list of ids.
        """
        return self._run("get", self._get_steps(ids, include))

    async def aget(
        self, ids: Iterable[str], *, include: Collection[Part] = DEFAULT_INCLUDE
    ) -> list[Document]:
        """As `get`."""
        return await self._arun("get", self._get_steps(ids, include))

    def count(self, filter: FilterLike | None = None) -> int:  # noqa: A002 - the name users know
        """Return how many documents match, exactly (D7)."""
        return self._run("count", self._count_steps(filter))

    async def acount(self, filter: FilterLike | None = None) -> int:  # noqa: A002 - the name users know
        """As `count`."""
        return await self._arun("count", self._count_steps(filter))

    def scan(
        self,
        filter: FilterLike | None = None,  # noqa: A002 - the name users know
        *,
        batch_size: int = 1000,
        token: str | None = None,
        include: Collection[Part] = DEFAULT_INCLUDE,
    ) -> Scan:
        """Read all matching documents, in no promised order and without embedding anything (D7).

        Every document that is there throughout comes exactly once. The result is an iterator of
        documents; its `token`, given to a later scan with the same filter, goes on after the last
        whole batch.
        """
        wanted = self._scanned(filter, include, batch_size)
        return Scan(lambda at: self._run("scan", self._page_steps(wanted, at, batch_size)), token)

    def ascan(
        self,
        filter: FilterLike | None = None,  # noqa: A002 - the name users know
        *,
        batch_size: int = 1000,
        token: str | None = None,
        include: Collection[Part] = DEFAULT_INCLUDE,
    ) -> AsyncScan:
        """As `scan`, for ``async for``."""
        wanted = self._scanned(filter, include, batch_size)

        async def fetch(at: str | None) -> Page[Document]:
            return await self._arun("scan", self._page_steps(wanted, at, batch_size))

        return AsyncScan(fetch, token)

    # --- searching ------------------------------------------------------------------------------------

    def similarity_search(  # noqa: PLR0913 - the options of a search
        self,
        query: str | SearchRequest,
        /,
        *,
        top_k: int = 4,
        threshold: float | None = None,
        filter: FilterLike | None = None,  # noqa: A002 - the name users know
        mode: SearchMode | str = SearchMode.SEMANTIC,
        exact: bool = False,
        include: Collection[Part] = DEFAULT_INCLUDE,
        timeout: float | None = None,
    ) -> list[Document]:
        """Return the documents that are most like the query, best first.

        Args:
            query: A text, or a `SearchRequest`, which has its own options.
            top_k: Most hits, 0 to 10,000 (S5); fewer come only if fewer match (S4).
            threshold: Least score in [0, 1] (S3).
            filter: Only documents that match.
            mode: SEMANTIC, FULLTEXT or HYBRID (S9).
            exact: Search exactly even if there is an approximate index.
            include: Parts of the documents to return.
            timeout: Seconds for each exchange with the engine, instead of the store's own (E4).

        Returns:
            Documents with `score` in [0, 1], 1 is best (S2), equal scores by id (S1).

        Raises:
            RequestError: Out of bounds or contradictory; nothing was sent.
            FilterError: The filter cannot be used; nothing was sent.
            CollectionNotFoundError: There is no such collection.
            UnsupportedSearchModeError: The store lacks the mode and no fallback was named.
        """
        options = _options(top_k, threshold, filter, mode, exact, include, timeout)
        request = as_request(query, options)
        return self._run("similarity_search", self._search_one_steps(request), request.timeout, request)

    async def asimilarity_search(  # noqa: PLR0913 - the options of a search
        self,
        query: str | SearchRequest,
        /,
        *,
        top_k: int = 4,
        threshold: float | None = None,
        filter: FilterLike | None = None,  # noqa: A002 - the name users know
        mode: SearchMode | str = SearchMode.SEMANTIC,
        exact: bool = False,
        include: Collection[Part] = DEFAULT_INCLUDE,
        timeout: float | None = None,  # noqa: ASYNC109 - handed to the driver
    ) -> list[Document]:
        """As `similarity_search`."""
        options = _options(top_k, threshold, filter, mode, exact, include, timeout)
        request = as_request(query, options)
        return await self._arun(
            "similarity_search", self._search_one_steps(request), request.timeout, request
        )

    def similarity_search_batch(self, requests: Sequence[str | SearchRequest]) -> list[list[Document]]:
        """Answer several requests; their texts are embedded in one call, each distinct text once (S8)."""
        asked = as_requests(requests)
        return self._run("similarity_search_batch", self._find_steps(asked), _shortest(asked))

    async def asimilarity_search_batch(self, requests: Sequence[str | SearchRequest]) -> list[list[Document]]:
        """As `similarity_search_batch`."""
        asked = as_requests(requests)
        return await self._arun("similarity_search_batch", self._find_steps(asked), _shortest(asked))

    def as_retriever(self) -> VectorStoreRetriever:
        """Return the read-only half, to hand to code that must not write."""
        from entrepot.retriever import Retriever  # noqa: PLC0415 - made on demand

        return Retriever(self)

    def where(self, filter: FilterLike) -> VectorStore:  # noqa: A002 - the name users know
        """Return a view of the store: nothing that a request says can widen it (T1, T2).

        Every search, get, count, scan, update and delete carries the filter ANDed with its own.
        Documents that are added get the filter's equality terms where they lack the key; an id that
        belongs to a document outside is refused with `OutsideViewError`.

        Args:
            filter: A tree, a text, or a callable that is asked anew for each request, such as for
                the current tenant.
        """
        from entrepot.views import View  # noqa: PLC0415 - a view is a store itself

        self._check_usable()
        if not callable(filter):
            normal_of(filter)  # a faulty filter shows here, not at the first request
        return View(self, (filter,))

    def explain(self, filter: FilterLike | None) -> Explanation:  # noqa: A002 - the name users know
        """Tell what the engine is asked for a filter, without asking it (F9)."""
        self._check_usable()
        normal = self._within(self._scope(), filter)
        converter = self._converter()
        if converter is None or normal is FALSE:
            return Explanation(filter=format_filter(normal), pushed=(), exact=True)
        converted = converter.convert(normal)
        return Explanation(
            filter=format_filter(normal),
            pushed=tuple(str(converted.report).splitlines()),
            exact=converted.exact,
        )

    # --- collections ----------------------------------------------------------------------------------

    def create_collection(self, *, dimension: int | None = None) -> None:
        """Make the collection if it is not there; the first `add` does the same (D5).

        Args:
            dimension: Components of the vectors; by default those of the embedding model.

        Raises:
            CollectionMismatchError: It is there with another dimension, metric or model.
        """
        self._run("create_collection", self._create_steps(dimension))

    async def acreate_collection(self, *, dimension: int | None = None) -> None:
        """As `create_collection`."""
        await self._arun("create_collection", self._create_steps(dimension))

    def drop_collection(self) -> None:
        """Remove the collection with everything in it; a missing one is no error."""
        self._run("drop_collection", self._drop_steps())

    async def adrop_collection(self) -> None:
        """As `drop_collection`."""
        await self._arun("drop_collection", self._drop_steps())

    def collection_exists(self) -> bool:
        """Whether the collection is there."""
        return self._run("collection_exists", ask(self._describe, self._adescribe)) is not None

    async def acollection_exists(self) -> bool:
        """As `collection_exists`."""
        return await self._arun("collection_exists", ask(self._describe, self._adescribe)) is not None

    def list_collections(self) -> list[str]:
        """Return the names of this library's collections on the same endpoint, sorted."""
        return self._run("list_collections", ask(self._list_collections, self._alist_collections))

    async def alist_collections(self) -> list[str]:
        """As `list_collections`."""
        return await self._arun("list_collections", ask(self._list_collections, self._alist_collections))

    def stats(self) -> Stats:
        """Return figures of the collection."""
        return self._run("stats", self._stats_steps())

    async def astats(self) -> Stats:
        """As `stats`."""
        return await self._arun("stats", self._stats_steps())

    # --- how operations run ---------------------------------------------------------------------------

    def _search_one_steps(self, request: SearchRequest) -> Steps[list[Document]]:
        (documents,) = yield from self._find_steps([request])
        note(returned=len(documents))
        return documents

    def _delete_all_steps(self) -> Steps[None]:
        self._check_writable()
        yield from self._delete_matching_steps(self._scope())

    def _drop_steps(self) -> Steps[None]:
        self._check_writable()
        yield from tell(self._drop, self._adrop)
        self._info = None

    def _stats_steps(self) -> Steps[Stats]:
        info = yield from self._known_steps()
        count = yield from self._count_steps(None)
        details = yield from ask(self._details, self._adetails)
        return Stats(
            collection=info.name,
            backend=self.backend,
            count=count,
            dimension=info.dimension,
            metric=str(info.metric),
            model=info.model,
            details=details,
        )


def _options(  # noqa: PLR0913, PLR0917 - the options of a search
    top_k: int,
    threshold: float | None,
    given: FilterLike | None,
    mode: SearchMode | str,
    exact: bool,  # noqa: FBT001 - handed on
    include: Collection[Part],
    timeout: float | None,
) -> dict[str, object]:
    return {
        "top_k": top_k,
        "threshold": threshold,
        "filter": given,
        "mode": mode,
        "exact": exact,
        "include": include,
        "timeout": timeout,
    }


def _shortest(requests: Sequence[SearchRequest]) -> float | None:
    return min((request.timeout for request in requests if request.timeout is not None), default=None)
