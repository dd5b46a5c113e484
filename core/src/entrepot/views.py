# ruff: noqa: SLF001 - a view calls the hooks of the store that it stands for
"""Views: a store seen through a filter that nothing a request says can widen (T1, T2)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NoReturn

from entrepot.drafts import check_sizes
from entrepot.errors import MetadataError, OutsideViewError, UnsupportedError
from entrepot.filters import all_of, evaluate
from entrepot.guards import changed_inside, equalities, fits, refuse_outside
from entrepot.hooks import normal_of
from entrepot.metadata import Scalar, encode_metadata
from entrepot.steps import ask, tell, tell_once
from entrepot.vectorstore import VectorStore

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from entrepot.drafts import Drafts
    from entrepot.filters import AbstractFilterExpressionConverter, Leaf, Normal
    from entrepot.metadata import Metadata
    from entrepot.records import CollectionInfo, Hit, IfExists, Page, Query, Record, StoredRecord
    from entrepot.search import FilterLike
    from entrepot.steps import Steps

_METADATA: Final = ("metadata",)


class View(VectorStore):
    """A store through a filter; `VectorStore.where` makes it.

    Reads carry the filter ANDed with the request's own. Documents that are added get the filter's
    equality terms, where they lack the key, and must satisfy the filter; ids that lie outside are
    refused (`OutsideViewError`). Closing a view leaves the store open.
    """

    def __init__(self, root: VectorStore, scopes: tuple[FilterLike, ...]) -> None:
        self._root = root
        self._scopes = scopes
        super().__init__(
            collection=root.collection,
            embedding=root.embedding,
            timeout=root.timeout,
            batching=root.batching,
            max_completion_rows=root.max_completion_rows,
        )
        self._wanted_metric = root._wanted_metric
        self._wanted_dimension = root._wanted_dimension
        self._may_create = root._may_create
        self.backend = root.backend
        self.capabilities = root.capabilities
        self.writable = root.writable

    # --- the scope --------------------------------------------------------------------------------------

    def where(self, filter: FilterLike) -> View:  # noqa: A002 - the name users know
        """Return a view of this view: both filters hold."""
        if not callable(filter):
            normal_of(filter)
        return View(self._root, (*self._scopes, filter))

    def _scope(self) -> Normal:
        """Return the filters of the view ANDed; callables are asked now."""
        return all_of(*(normal_of(scope) for scope in self._scopes))

    def _admit(self, drafts: Drafts, scope: Normal) -> Drafts:
        """Stamp documents with the scope's equality terms, and refuse those that lie outside (T2)."""
        stamps = equalities(scope)
        metadata = [
            _admitted(name, given, scope, stamps)
            for name, given in zip(drafts.ids, drafts.metadata, strict=True)
        ]
        encoded = list(map(encode_metadata, metadata))
        limits = self.capabilities.limits
        for name, text, stamped, json in zip(drafts.ids, drafts.texts, metadata, encoded, strict=True):
            check_sizes(name, text, stamped, json, limits)
        stored = drafts._replace(metadata=metadata, encoded=encoded)
        self._root._check_drafts(stored)
        return stored

    # --- writes, guarded --------------------------------------------------------------------------------

    def _store_steps(self, records: Sequence[Record], if_exists: IfExists, scope: Normal) -> Steps[object]:
        root = self._root
        again = tell_once if if_exists == "error" else tell
        if self._atomic:
            return (yield from again(root._write_inside, root._awrite_inside, records, if_exists, scope))
        yield from self._refuse_outside_steps([record.id for record in records], scope)
        return (yield from again(root._write, root._awrite, records, if_exists))

    def _alter_steps(
        self, ids: Sequence[str], changes: Mapping[str, Any], unset: Sequence[str], scope: Normal
    ) -> Steps[list[str]]:
        root = self._root
        if self._atomic:
            return (yield from tell(root._update_inside, root._aupdate_inside, ids, changes, unset, scope))
        stored = yield from ask(root._fetch, root._afetch, ids, _METADATA)
        inside = changed_inside(stored, changes, unset, scope)
        there = [name for name in ids if name in inside]
        return (yield from tell(root._update, root._aupdate, there, changes, unset))

    def _discard_steps(self, ids: Sequence[str], scope: Normal) -> Steps[None]:
        root = self._root
        if self._atomic:
            return (yield from tell(root._delete_inside, root._adelete_inside, ids, scope))
        yield from self._refuse_outside_steps(ids, scope)
        return (yield from tell(root._delete, root._adelete, ids))

    @property
    def _atomic(self) -> bool:
        return self.capabilities.conditional_write == "atomic"

    def _refuse_outside_steps(self, ids: Sequence[str], scope: Normal) -> Steps[None]:
        stored = yield from ask(self._root._fetch, self._root._afetch, ids, _METADATA)
        refuse_outside(stored, scope)

    def _drop_steps(self) -> Steps[None]:
        yield from ()
        raise _refused("drop the collection")

    # --- what a view does not hand out ------------------------------------------------------------------

    @property
    def native_client(self) -> NoReturn:
        """Refused: the driver's client knows no view (T1)."""
        raise _refused("hand out the native client")

    def list_collections(self) -> NoReturn:
        """Refused: other collections lie outside."""
        raise _refused("list collections")

    async def alist_collections(self) -> NoReturn:
        """Refused: other collections lie outside."""
        raise _refused("list collections")

    # --- reads ------------------------------------------------------------------------------------------

    def _fetch(self, ids: Sequence[str], include: Sequence[str]) -> list[StoredRecord]:
        return self._root._fetch(ids, include)

    async def _afetch(self, ids: Sequence[str], include: Sequence[str]) -> list[StoredRecord]:
        return await self._root._afetch(ids, include)

    def _details(self) -> dict[str, Any]:
        return {}

    # --- everything else is the store's -----------------------------------------------------------------

    @property
    def _info(self) -> CollectionInfo | None:
        return self._root._info

    @_info.setter
    def _info(self, info: CollectionInfo | None) -> None:
        if info is not None:
            self._root._info = info

    def _check_usable(self) -> None:
        super()._check_usable()
        self._root._check_usable()

    def _accept(self, info: CollectionInfo) -> None:
        self._root._accept(info)

    def _converter(self) -> AbstractFilterExpressionConverter[Any] | None:
        return self._root._converter()

    def _close(self) -> None:
        """Leave the store open: it is not the view's."""

    def _describe(self) -> CollectionInfo | None:
        return self._root._describe()

    async def _adescribe(self) -> CollectionInfo | None:
        return await self._root._adescribe()

    def _create(self, info: CollectionInfo) -> None:
        self._root._create(info)

    async def _acreate(self, info: CollectionInfo) -> None:
        await self._root._acreate(info)

    def _drop(self) -> NoReturn:
        raise _refused("drop the collection")

    def _list_collections(self) -> NoReturn:
        raise _refused("list collections")

    def _write(self, records: Sequence[Record], if_exists: IfExists) -> NoReturn:
        raise _refused(f"write {len(records)} records unguarded ({if_exists})")

    def _update(self, ids: Sequence[str], changes: Mapping[str, Any], unset: Sequence[str]) -> NoReturn:
        raise _refused(f"update {len(ids)} documents unguarded ({len(changes)}, {len(unset)})")

    def _search(self, query: Query) -> list[Hit]:
        return self._root._search(query)

    async def _asearch(self, query: Query) -> list[Hit]:
        return await self._root._asearch(query)

    def _search_batch(self, queries: Sequence[Query]) -> list[list[Hit]]:
        return self._root._search_batch(queries)

    async def _asearch_batch(self, queries: Sequence[Query]) -> list[list[Hit]]:
        return await self._root._asearch_batch(queries)

    def _scan(self, query: Query, token: str | None, size: int) -> Page[StoredRecord]:
        return self._root._scan(query, token, size)

    async def _ascan(self, query: Query, token: str | None, size: int) -> Page[StoredRecord]:
        return await self._root._ascan(query, token, size)

    def _count(self, query: Query) -> int:
        return self._root._count(query)

    async def _acount(self, query: Query) -> int:
        return await self._root._acount(query)

    def _delete(self, target: Sequence[str] | Query) -> None:
        self._root._delete(target)

    async def _adelete(self, target: Sequence[str] | Query) -> None:
        await self._root._adelete(target)

    def _delete_unchanged(self, records: Sequence[StoredRecord]) -> None:
        self._root._delete_unchanged(records)

    async def _adelete_unchanged(self, records: Sequence[StoredRecord]) -> None:
        await self._root._adelete_unchanged(records)

    def _visible(self, marker: object) -> None:
        self._root._visible(marker)

    async def _avisible(self, marker: object) -> None:
        await self._root._avisible(marker)


def _admitted(name: str, given: Metadata, scope: Normal, stamps: Sequence[Leaf]) -> Metadata:
    metadata: Metadata = dict(given)
    for leaf in stamps:
        value = metadata.get(leaf.key)
        if value is None or value == []:
            metadata[leaf.key] = _scalar(leaf)
        elif type(value) is list or not evaluate(leaf, metadata):
            msg = f"document {name!r}: the view asks for another value of {leaf.key!r}"
            raise OutsideViewError(msg, hint=f"leave {leaf.key!r} out, the view fills it in")
    if not fits(metadata, scope):
        msg = f"document {name!r} does not satisfy the view's filter"
        raise OutsideViewError(msg, hint="change its metadata, or add it through the store itself")
    return metadata


def _scalar(leaf: Leaf) -> Scalar:
    value = leaf.value
    if value is None or isinstance(value, tuple):
        msg = f"{leaf.key!r} has no single value"
        raise MetadataError(msg, key=leaf.key)
    return value


def _refused(what: str) -> UnsupportedError:
    msg = f"a view does not {what}"
    return UnsupportedError(msg, capability="view", hint="use the store itself, where that is allowed")
