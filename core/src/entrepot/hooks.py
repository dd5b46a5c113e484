"""`VectorStoreHooks`: what a plugin writes; everything else is the core's.

Each hook has an async twin with the prefix ``_a`` that runs the hook in a worker thread. A plugin
whose driver has an async client overrides the twin, sharing its pure functions.

Hooks raise the errors of `entrepot.errors`, with the driver's exception as the cause. They get
checked input only, and return plain records; scores, order, thresholds and completion are the
core's.
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar, cast

from entrepot.capabilities import Metric
from entrepot.completion import MAX_COMPLETION_ROWS
from entrepot.embedding import model_name
from entrepot.errors import (
    ArgumentTypeError,
    CollectionError,
    CollectionMismatchError,
    CollectionNotFoundError,
    ConfigurationError,
    PluginBrokenError,
    UnsupportedError,
)
from entrepot.exchange import DEFAULT_TIMEOUT
from entrepot.filters import TRUE, Expression, all_of, normalise, parse_filter
from entrepot.lifecycle import Resource
from entrepot.metadata import name_fault
from entrepot.records import Query, unchanged
from entrepot.steps import ask

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from entrepot.capabilities import Capabilities
    from entrepot.drafts import Drafts
    from entrepot.embedding import BatchingStrategy, EmbeddingModel
    from entrepot.filters import AbstractFilterExpressionConverter, Normal
    from entrepot.records import CollectionInfo, Hit, IfExists, Page, Record, StoredRecord
    from entrepot.search import FilterLike
    from entrepot.steps import Steps


T = TypeVar("T")

_HOOKS: Final = (
    "open",
    "close",
    "describe",
    "create",
    "drop",
    "list_collections",
    "write",
    "update",
    "fetch",
    "search",
    "search_batch",
    "scan",
    "count",
    "delete",
    "delete_unchanged",
    "write_inside",
    "update_inside",
    "delete_inside",
    "visible",
    "details",
)
HOOK_NAMES: Final = frozenset(
    {"_check_drafts", "_converter", *(f"{prefix}{name}" for name in _HOOKS for prefix in ("_", "_a"))}
)
"""Every hook of a vector store, with its async twin: the private names that a plugin may define."""


class VectorStoreHooks(Resource):
    """The state that every store has, and the hooks that a plugin fills.

    Attributes:
        writable: Whether it takes writes; a plugin says False where a `mapping` reads what other software
            made (D5). Writes are then refused before any I/O.

    Args:
        collection: Name of the collection.
        embedding: The model that embeds texts, or None if all vectors come from outside.
        metric: Metric of a collection that is made; an existing one must have it.
        dimension: Components of the vectors, if they are known before the first write.
        create: Whether the first `add` makes a missing collection (D5).
        timeout: Seconds for each exchange with the engine (E4).
        allow_other_model: Open a collection that was filled by another embedding model (D5).
        max_completion_rows: Most rows that one operation reads to complete a filter (F9).
        batching: How texts are cut into calls of the model; by default what fits the model.
    """

    writable: bool = True
    _plugin_names: ClassVar[frozenset[str]] = HOOK_NAMES

    def __init__(  # noqa: PLR0913 - what every store is told
        self,
        *,
        collection: str,
        embedding: EmbeddingModel | None = None,
        metric: Metric | str | None = None,
        dimension: int | None = None,
        create: bool = True,
        timeout: float = DEFAULT_TIMEOUT,
        allow_other_model: bool = False,
        batching: BatchingStrategy | None = None,
        max_completion_rows: int = MAX_COMPLETION_ROWS,
    ) -> None:
        super().__init__(timeout=timeout)
        if type(max_completion_rows) is not int or max_completion_rows < 0:
            msg = f"max_completion_rows must be an int of at least 0, not {max_completion_rows!r}"
            raise ConfigurationError(msg)
        self.max_completion_rows = max_completion_rows
        fault = name_fault(collection)
        if fault is not None:
            msg = f"the collection's name {collection!r} {fault}"
            raise ConfigurationError(msg)
        self.collection = collection
        self.embedding = embedding
        self.batching = batching
        self._wanted_metric = None if metric is None else _metric(metric, self.capabilities)
        self._wanted_dimension = dimension
        self._may_create = create
        self._allow_other_model = allow_other_model
        self._info: CollectionInfo | None = None

    def __init_subclass__(cls, **options: Any) -> None:
        """Refuse a plugin that would replace something of the core by accident, as private names can."""
        super().__init_subclass__(**options)
        if cls.__module__.partition(".")[0] == "entrepot":
            return
        for name in vars(cls):
            private = name.startswith("_") and not name.startswith("__") and name not in cls._plugin_names
            if private and any(
                name in vars(base) for base in cls.__mro__ if base.__module__.startswith("entrepot.")
            ):
                msg = f"{cls.__module__}.{cls.__qualname__} defines {name!r}, which the core uses for itself"
                raise PluginBrokenError(
                    msg, hint="rename it; the hooks that a plugin may define are in HOOK_NAMES"
                )

    # --- the hooks ------------------------------------------------------------------------------------

    @abstractmethod
    def _describe(self) -> CollectionInfo | None:
        """Return what the collection records about itself, or None if there is none (D5).

        Raises:
            CollectionMismatchError: Other software made it, or a newer layout.
        """

    @abstractmethod
    def _create(self, info: CollectionInfo) -> None:
        """Make the collection, with its indexes, ready to be written. It may exist by now: then do nothing."""

    @abstractmethod
    def _drop(self) -> None:
        """Remove the collection and everything in it; a missing one is no error."""

    @abstractmethod
    def _list_collections(self) -> list[str]:
        """Return the names of this library's collections on the endpoint, sorted."""

    @abstractmethod
    def _write(self, records: Sequence[Record], if_exists: IfExists) -> object:
        """Write at most `limits.write_batch` records, whole documents replacing whole documents (D2).

        Returns:
            A marker for `_visible`, or None.

        Raises:
            DuplicateIdError: Under ``if_exists="error"``, an id exists; nothing was written.
        """

    @abstractmethod
    def _update(self, ids: Sequence[str], changes: Mapping[str, Any], unset: Sequence[str]) -> list[str]:
        """Set and unset metadata keys of stored documents (D10); return the ids that were there."""

    @abstractmethod
    def _fetch(self, ids: Sequence[str], include: Sequence[str]) -> list[StoredRecord]:
        """Return the documents with these ids, in any order, without those that are not there (D7)."""

    @abstractmethod
    def _search(self, query: Query) -> list[Hit]:
        """Return at most `query.k` hits, best first.

        SEMANTIC hits must be the nearest of what matches `query.filter` (or `query.pushed`, where
        the converter's translation is a superset) and `query.ids`; FULLTEXT hits those with any of
        the words.
        """

    @abstractmethod
    def _scan(self, query: Query, token: str | None, size: int) -> Page[StoredRecord]:
        """Return about `size` matching documents and the token of the next page (D7)."""

    @abstractmethod
    def _count(self, query: Query) -> int:
        """Return how many documents match, exactly (D7)."""

    @abstractmethod
    def _delete(self, target: Sequence[str] | Query) -> None:
        """Delete documents by id, or all that match now and do not change before it comes to them (D7)."""

    def _delete_unchanged(self, records: Sequence[StoredRecord]) -> None:
        """Delete documents whose metadata is still what was read (D7).

        Used where the engine takes a filter only in part. The default reads once more and deletes;
        a plugin whose engine can compare and delete in one step overrides it.
        """
        now = self._fetch([record.id for record in records], ("metadata",))
        same = unchanged(records, now)
        if same:
            self._delete(same)

    def _write_inside(self, records: Sequence[Record], if_exists: IfExists, inside: Normal) -> object:
        """As `_write`, unless a stored document of one of the ids lies outside a filter (T2).

        Needed where ``conditional_write`` is ``"atomic"``: check and write are one step, for each document. An
        engine that compares one document at a time checks all before it writes any; if another writer takes one
        out in between, what was written stays, and the error's outcome is ``"unknown"``.

        Raises:
            OutsideViewError: A stored document lies outside; nothing was written, but for the case above.
        """
        raise NotImplementedError

    def _update_inside(
        self, ids: Sequence[str], changes: Mapping[str, Any], unset: Sequence[str], inside: Normal
    ) -> list[str]:
        """As `_update`, for documents inside a filter alone; needed where writes are conditional.

        Raises:
            OutsideViewError: A document would leave the filter; nothing was changed.
        """
        raise NotImplementedError

    def _delete_inside(self, ids: Sequence[str], inside: Normal) -> None:
        """As `_delete`, unless a document of the ids lies outside a filter; needed as above.

        Raises:
            OutsideViewError: A stored document lies outside; nothing was deleted.
        """
        raise NotImplementedError

    def _visible(self, marker: object) -> None:
        """Wait until searches see the write that returned `marker` (S7).

        Raises:
            NotYetVisibleError: Not within the seconds that `entrepot.exchange.remaining` tells.
        """

    def _check_drafts(self, drafts: Drafts) -> None:
        """Refuse documents that the engine cannot hold though no declared limit says so, as encoded ones.

        Called with a whole batch before anything is sent (D6); no I/O. A store that needs none has none.

        Raises:
            SizeLimitError: Names the first such document.
        """

    def _converter(self) -> AbstractFilterExpressionConverter[Any] | None:
        """Return the converter of this store, or None if it takes normal forms and is always exact."""
        return None

    def _search_batch(self, queries: Sequence[Query]) -> list[list[Hit]]:
        """Answer several queries; a plugin overrides it where its driver takes them in one call."""
        return [self._search(query) for query in queries]

    def _details(self) -> dict[str, Any]:
        """Return what else `stats` shall tell, such as bytes on disk; JSON values."""
        return {}

    # --- their async twins ------------------------------------------------------------------------------

    async def _adescribe(self) -> CollectionInfo | None:
        return await asyncio.to_thread(self._describe)

    async def _acreate(self, info: CollectionInfo) -> None:
        return await asyncio.to_thread(self._create, info)

    async def _adrop(self) -> None:
        return await asyncio.to_thread(self._drop)

    async def _alist_collections(self) -> list[str]:
        return await asyncio.to_thread(self._list_collections)

    async def _awrite(self, records: Sequence[Record], if_exists: IfExists) -> object:
        return await asyncio.to_thread(self._write, records, if_exists)

    async def _aupdate(
        self, ids: Sequence[str], changes: Mapping[str, Any], unset: Sequence[str]
    ) -> list[str]:
        return await asyncio.to_thread(self._update, ids, changes, unset)

    async def _afetch(self, ids: Sequence[str], include: Sequence[str]) -> list[StoredRecord]:
        return await asyncio.to_thread(self._fetch, ids, include)

    async def _asearch(self, query: Query) -> list[Hit]:
        return await asyncio.to_thread(self._search, query)

    async def _asearch_batch(self, queries: Sequence[Query]) -> list[list[Hit]]:
        return await asyncio.to_thread(self._search_batch, queries)

    async def _ascan(self, query: Query, token: str | None, size: int) -> Page[StoredRecord]:
        return await asyncio.to_thread(self._scan, query, token, size)

    async def _acount(self, query: Query) -> int:
        return await asyncio.to_thread(self._count, query)

    async def _adelete(self, target: Sequence[str] | Query) -> None:
        return await asyncio.to_thread(self._delete, target)

    async def _adelete_unchanged(self, records: Sequence[StoredRecord]) -> None:
        return await asyncio.to_thread(self._delete_unchanged, records)

    async def _awrite_inside(self, records: Sequence[Record], if_exists: IfExists, inside: Normal) -> object:
        return await asyncio.to_thread(self._write_inside, records, if_exists, inside)

    async def _aupdate_inside(
        self, ids: Sequence[str], changes: Mapping[str, Any], unset: Sequence[str], inside: Normal
    ) -> list[str]:
        return await asyncio.to_thread(self._update_inside, ids, changes, unset, inside)

    async def _adelete_inside(self, ids: Sequence[str], inside: Normal) -> None:
        return await asyncio.to_thread(self._delete_inside, ids, inside)

    async def _avisible(self, marker: object) -> None:
        return await asyncio.to_thread(self._visible, marker)

    async def _adetails(self) -> dict[str, Any]:
        return await asyncio.to_thread(self._details)

    # --- what the operations share ----------------------------------------------------------------------

    def _run(self, operation: str, steps: Steps[T], timeout: float | None = None, asked: object = None) -> T:
        try:
            return super()._run(operation, steps, timeout, asked)
        except CollectionError:
            self._info = None  # it may have been dropped, or made anew
            raise

    async def _arun(
        self,
        operation: str,
        steps: Steps[T],
        timeout: float | None = None,  # noqa: ASYNC109 - for each exchange, not for the whole
        asked: object = None,
    ) -> T:
        try:
            return await super()._arun(operation, steps, timeout, asked)
        except CollectionError:
            self._info = None
            raise

    @property
    def _target(self) -> str:
        return self.collection

    def _check_writable(self) -> None:
        if not self.writable:
            msg = f"the store of collection {self.collection!r} reads what other software made"
            raise UnsupportedError(msg, capability="write", hint="write with the software that made it")

    def _scope(self) -> Normal:
        """Return what every operation is restricted to; a view asks anew, once for each operation (T1)."""
        return TRUE

    def _within(self, scope: Normal, given: FilterLike | None) -> Normal:
        """Return a request's filter ANDed with the scope of its operation, in normal form."""
        if given is None:
            return scope
        return normal_of(given) if scope is TRUE else all_of(scope, normal_of(given))

    def _query(self, normal: Normal, **parts: Any) -> Query:
        """Return an engine's query: the filter, what the converter makes of it, and other parts."""
        converter = self._converter()
        return Query(filter=normal, pushed=None if converter is None else converter.convert(normal), **parts)

    def _scan_steps(self, query: Query, token: str | None, size: int) -> Steps[Page[StoredRecord]]:
        return ask(self._scan, self._ascan, query, token, size)

    def _known_steps(self) -> Steps[CollectionInfo]:
        """Return the collection's record, for reading."""
        if self._info is None:
            info = yield from ask(self._describe, self._adescribe)
            if info is None:
                msg = f"there is no collection {self.collection!r}"
                raise CollectionNotFoundError(msg)
            self._accept(info)
            self._info = info
        return self._info

    def _accept(self, info: CollectionInfo) -> None:
        """Refuse a collection of another metric, dimension or model than this store was told (D5)."""
        wanted = self._wanted_dimension
        if wanted is not None and wanted != info.dimension:
            msg = (
                f"collection {info.name!r} has dimension {info.dimension}, the store was opened for {wanted}"
            )
            raise CollectionMismatchError(
                msg, hint="use another collection, or the model that filled this one"
            )
        if self._wanted_metric is not None and self._wanted_metric is not info.metric:
            msg = (
                f"collection {info.name!r} has metric {info.metric}, the store asks for {self._wanted_metric}"
            )
            raise CollectionMismatchError(
                msg, hint="open it without naming a metric, or use another collection"
            )
        if self.embedding is None or info.model is None or self._allow_other_model:
            return
        name = model_name(self.embedding)
        if name != info.model:
            msg = f"collection {info.name!r} was filled by {info.model!r}, the store embeds with {name!r}"
            raise CollectionMismatchError(
                msg, hint="vectors of two models cannot be compared; allow_other_model=True if these two can"
            )


def normal_of(given: FilterLike) -> Normal:
    """Return the normal form of a filter: a tree, a text, or a callable, which is asked now.

    Raises:
        ArgumentTypeError: It is none of these, or the callable returned none of these. A callable that
            returns None is refused: what was meant to restrict a request must never open it.
    """
    asked = cast("object", given)
    if not isinstance(asked, Expression | str) and callable(asked):
        asked = asked()
    if isinstance(asked, str):
        return _normal_of_text(asked)
    if isinstance(asked, Expression):
        return normalise(asked)
    whose = "a filter" if asked is given else "what a filter's callable returns"
    msg = f"{whose} is an Expression or a text, not {type(asked).__name__}"
    raise ArgumentTypeError(msg, hint="leave the filter out to ask without one")


@lru_cache(maxsize=256)
def _normal_of_text(text: str) -> Normal:
    return normalise(parse_filter(text))


def _metric(metric: Metric | str, capabilities: Capabilities) -> Metric:
    try:
        known = Metric(metric)
    except ValueError:
        msg = f"there is no metric {metric!r}"
        raise ConfigurationError(msg, hint=f"metrics are {', '.join(Metric)}") from None
    if known not in capabilities.metrics:
        msg = f"this store does not offer the metric {known}"
        offered = ", ".join(sorted(capabilities.metrics))
        raise UnsupportedError(msg, capability="metrics", hint=f"it offers {offered}")
    return known
