"""A small engine that answers filters by what a converter made of them, to put converters to the suite.

A `ConvertingStore` keeps documents as `SimpleVectorStore` does, but finds them by predicates over an index
of its own: what the converter's leaves become, joined by AND and OR. Its subclasses index as the plugins of
real engines do.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import defaultdict
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from msgspec.structs import replace

from entrepot import SimpleVectorStore
from entrepot.filters import TRUE, AbstractFilterExpressionConverter
from entrepot.records import Query

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from entrepot.filters import Converted
    from entrepot.metadata import Metadata
    from entrepot.records import Hit, IfExists, Page, Record, StoredRecord

    Predicate: TypeAlias = Callable[[Any], bool]
    """Whether a document matches, asked of what is indexed of it."""


class PredicateConverter(AbstractFilterExpressionConverter["Predicate"]):
    """Translates filters into predicates; subclasses say what a leaf becomes."""

    def and_(self, parts: Sequence[Predicate]) -> Predicate:
        """Join with AND."""
        return lambda index: all(part(index) for part in parts)

    def or_(self, parts: Sequence[Predicate]) -> Predicate:
        """Join with OR."""
        return lambda index: any(part(index) for part in parts)

    def true(self) -> Predicate:
        """Hold for every document."""
        return lambda _: True

    def false(self) -> Predicate:
        """Hold for no document."""
        return lambda _: False


class ConvertingStore(SimpleVectorStore):
    """Finds documents by its converter's translation alone."""

    indexes: ClassVar[dict[str, dict[str, Any]]] = defaultdict(dict[str, Any])
    """What is indexed of each document, by collection and id; objects of one collection share it."""

    @abstractmethod
    def index(self, metadata: Metadata) -> Any:
        """Return what the engine keeps of a document to filter by."""

    @abstractmethod
    def converter(self) -> Any:
        """Return the converter into predicates over that."""

    def select(self, query: Any) -> list[str]:
        """Return the ids of the documents that satisfy a translation, and perhaps of some that are gone."""
        index = self.indexes[self.collection]
        return [name for name, indexed in index.items() if query(indexed)]

    def indexed(self, ids: Sequence[str]) -> None:
        """Index documents as they are stored now."""
        for record in self._fetch(ids, ("metadata",)):
            self.indexes[self.collection][record.id] = self.index(record.metadata or {})

    def _converter(self) -> Any:
        return self.converter()

    def _write(self, records: Sequence[Record], if_exists: IfExists) -> object:
        marker = super()._write(records, if_exists)
        self.indexed([record.id for record in records])
        return marker

    def _update(self, ids: Sequence[str], changes: Mapping[str, Any], unset: Sequence[str]) -> list[str]:
        changed = super()._update(ids, changes, unset)
        self.indexed(changed)
        return changed

    def _narrowed(self, query: Query) -> Query:
        """Return the query with the ids that the engine found in the place of its filter."""
        pushed: Converted[Any] | None = query.pushed
        if pushed is None or query.filter is TRUE:
            return query
        found = self.select(pushed.query)
        if query.ids is not None:
            found = [name for name in query.ids if name in set(found)]
        return replace(query, filter=TRUE, ids=tuple(found), pushed=None)

    def _search(self, query: Query) -> list[Hit]:
        return super()._search(self._narrowed(query))

    def _search_batch(self, queries: Sequence[Query]) -> list[list[Hit]]:
        return [self._search(query) for query in queries]

    def _scan(self, query: Query, token: str | None, size: int) -> Page[StoredRecord]:
        return super()._scan(self._narrowed(query), token, size)

    def _count(self, query: Query) -> int:
        return super()._count(self._narrowed(query))

    def _delete(self, target: Sequence[str] | Query) -> None:
        super()._delete(self._narrowed(target) if isinstance(target, Query) else target)
