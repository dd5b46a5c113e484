# ruff: noqa: D102 - mutants do what their bases do, but for one thing within
"""Stores that break one rule each by what their hooks and methods do."""

from __future__ import annotations

import asyncio
import json
import time
import unicodedata
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from msgspec.structs import replace

from entrepot import Document, SimpleVectorStore
from entrepot.errors import DuplicateIdError, SizeLimitError
from entrepot.filters import TRUE
from entrepot.records import CollectionInfo, Hit, Page, Query, Record, StoredRecord
from entrepot.search import SearchMode, SearchRequest
from entrepot_conformance.mutants.model import breaks

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from entrepot.filters import Normal
    from entrepot.records import IfExists
    from entrepot.search import FilterLike, Part

_ALL: Final = ("text", "metadata", "vector")


# --- D: documents -----------------------------------------------------------------------------------------


@breaks("D1", "store")
class ShortIds(SimpleVectorStore):
    """Keeps 255 characters of an id."""

    def _write(self, records: Sequence[Record], if_exists: IfExists) -> object:
        return super()._write([record._replace(id=record.id[:255]) for record in records], if_exists)


@breaks("D1", "store")
class TrimmedIds(SimpleVectorStore):
    """Loses the white space at the end of ids."""

    def _write(self, records: Sequence[Record], if_exists: IfExists) -> object:
        return super()._write([record._replace(id=record.id.rstrip()) for record in records], if_exists)


@breaks("D2", "store")
class MergingUpserts(SimpleVectorStore):
    """Keeps those keys of the older version that the newer one lacks."""

    def _write(self, records: Sequence[Record], if_exists: IfExists) -> object:
        return super()._write([self._merged(record) for record in records], if_exists)

    def _merged(self, record: Record) -> Record:
        known = next(iter(self._fetch((record.id,), _ALL)), None)
        if known is None or not known.metadata:
            return record
        metadata = {**known.metadata, **record.metadata}
        return record._replace(metadata=metadata, metadata_json=_encoded(metadata))


def _encoded(metadata: Mapping[str, Any]) -> bytes:
    from entrepot.metadata import encode_metadata  # noqa: PLC0415 - used by few

    return encode_metadata(dict(metadata))


@breaks("D2", "store")
class ReplacingSkips(SimpleVectorStore):
    """Replaces also where it was told to skip."""

    def _write(self, records: Sequence[Record], if_exists: IfExists) -> object:
        return super()._write(records, "replace" if if_exists == "skip" else if_exists)


@breaks("D2", "store")
class PartialInserts(SimpleVectorStore):
    """Writes the new documents of a batch before it refuses the known ones."""

    def _write(self, records: Sequence[Record], if_exists: IfExists) -> object:
        if if_exists != "error":
            return super()._write(records, if_exists)
        known = {record.id for record in self._fetch([record.id for record in records], ())}
        super()._write([record for record in records if record.id not in known], "replace")
        if known:
            msg = "some ids exist"
            raise DuplicateIdError(msg, ids=sorted(known))
        return None


@breaks("D2", "store")
class TornUpserts(SimpleVectorStore):
    """Replaces documents one after the other, so that a reader sees half of a write."""

    def _write(self, records: Sequence[Record], if_exists: IfExists) -> object:
        for record in records:
            super()._write([record], if_exists)
        return None


@breaks("D2", "store")
class MixedUpserts(SimpleVectorStore):
    """Replaces metadata and vector first and the text after, so that a reader sees a document of two versions."""

    def _write(self, records: Sequence[Record], if_exists: IfExists) -> object:
        texts = {known.id: known.text for known in self._fetch([record.id for record in records], ("text",))}
        if texts and if_exists == "replace":
            super()._write([record._replace(text=texts.get(record.id)) for record in records], if_exists)
            time.sleep(0.001)
        return super()._write(records, if_exists)


@breaks("D4", "store")
class FloatingIntegers(SimpleVectorStore):
    """Returns whole numbers as floats, as JavaScript would."""

    def _fetch(self, ids: Sequence[str], include: Sequence[str]) -> list[StoredRecord]:
        return [_floating(record) for record in super()._fetch(ids, include)]


def _floating(record: StoredRecord) -> StoredRecord:
    def told(value: Any) -> Any:
        return float(value) if type(value) is int else value

    if record.metadata is None:
        return record
    return record._replace(metadata={key: told(value) for key, value in record.metadata.items()})


@breaks("D4", "store")
class UnsignedZeros(SimpleVectorStore):
    """Loses the sign of zero."""

    def _fetch(self, ids: Sequence[str], include: Sequence[str]) -> list[StoredRecord]:
        return [
            record._replace(
                metadata=record.metadata
                and {
                    key: 0.0 if type(value) is float and value == 0 else value
                    for key, value in record.metadata.items()
                }
            )
            for record in super()._fetch(ids, include)
        ]


@breaks("D4", "store")
class NormalisedTexts(SimpleVectorStore):
    """Normalises the Unicode of strings, and trims them."""

    def _write(self, records: Sequence[Record], if_exists: IfExists) -> object:
        return super()._write(
            [record._replace(text=record.text and _normalised(record.text)) for record in records], if_exists
        )


def _normalised(text: str) -> str:
    return unicodedata.normalize("NFC", text.strip())


@breaks("D4", "store")
class EmptyTexts(SimpleVectorStore):
    """Takes an empty text for none."""

    def _fetch(self, ids: Sequence[str], include: Sequence[str]) -> list[StoredRecord]:
        return [record._replace(text=record.text or None) for record in super()._fetch(ids, include)]


@breaks("D5", "store")
class CollectionsOutOfNothing(SimpleVectorStore):
    """Reads a collection that does not exist as an empty one."""

    def count(self, filter: FilterLike | None = None) -> int:  # noqa: A002
        return super().count(filter) if self.collection_exists() else 0


@breaks("D5", "store")
class AlwaysCreating(SimpleVectorStore):
    """Makes a collection although that was forbidden."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._may_create = True


@breaks("D5", "store")
class Forgetful(SimpleVectorStore):
    """Does not record which model filled a collection."""

    def _create(self, info: CollectionInfo) -> None:
        super()._create(replace(info, model=None))


@breaks("D6", "store")
class OneByOne(SimpleVectorStore):
    """Checks and writes the documents of a batch one by one."""

    def add(self, documents: Iterable[Document], **options: Any) -> list[str]:
        if isinstance(documents, Document | str):
            return super().add(documents, **options)
        return [name for document in documents for name in super(OneByOne, self).add([document], **options)]


@breaks("D7", "store")
class ApproximateCounts(SimpleVectorStore):
    """Counts as it estimates: to the next ten."""

    def _count(self, query: Query) -> int:
        count = super()._count(query)
        return count if count < 10 else round(count, -1)  # noqa: PLR2004


@breaks("D7", "store")
class UnorderedGets(SimpleVectorStore):
    """Returns documents in the order in which they are stored."""

    def get(self, ids: Iterable[str], *, include: Collection[Part] = ("text", "metadata")) -> list[Document]:
        found = {document.id: document for document in super().get(ids, include=include)}
        rows = self._collection().rows.row_of
        return sorted(found.values(), key=lambda document: rows[document.id])


@breaks("D7", "store")
class DeletingAllForNothing(SimpleVectorStore):
    """Takes an empty list of ids for all of them."""

    def delete(self, ids: Iterable[str] | None = None, *, filter: FilterLike | None = None) -> None:  # noqa: A002
        if ids == []:
            self.delete_all()
        else:
            super().delete(ids, filter=filter)


@breaks("D7", "store")
class ScanningByPlace(SimpleVectorStore):
    """Pages by position in the order of writing, so that a write moves documents across pages."""

    def _scan(self, query: Query, token: str | None, size: int) -> Page[StoredRecord]:
        rows = self._collection().rows.row_of
        found = sorted(super()._scan(query, None, 10**9).items, key=lambda record: rows[record.id])
        start = int(token or 0)
        more = len(found) > start + size
        return Page(found[start : start + size], str(start + size) if more else None)


@breaks("D8", "store")
class SmallTexts(SimpleVectorStore):
    """Takes texts of at most 8,191 bytes, without saying so."""

    def _write(self, records: Sequence[Record], if_exists: IfExists) -> object:
        for record in records:
            if record.text is not None and len(record.text.encode()) > 8191:  # noqa: PLR2004
                msg = "the text is too long"
                raise SizeLimitError(msg)
        return super()._write(records, if_exists)


@breaks("D8", "store")
class CutStrings(SimpleVectorStore):
    """Cuts strings of metadata at 1,024 characters."""

    def _write(self, records: Sequence[Record], if_exists: IfExists) -> object:
        return super()._write([_cut(record) for record in records], if_exists)


def _cut(record: Record) -> Record:
    metadata = {
        key: value[:1024] if isinstance(value, str) else value for key, value in record.metadata.items()
    }
    return record._replace(metadata=metadata, metadata_json=_encoded(metadata))


@breaks("D9", "store")
class RawVectors(SimpleVectorStore):
    """Returns vectors in half precision."""

    def _fetch(self, ids: Sequence[str], include: Sequence[str]) -> list[StoredRecord]:
        return [
            record._replace(
                vector=None if record.vector is None else record.vector.astype(np.float16).astype(np.float32)
            )
            for record in super()._fetch(ids, include)
        ]


@breaks("D9", "store")
class UnitVectors(SimpleVectorStore):
    """Normalises vectors whatever the metric."""

    def _write(self, records: Sequence[Record], if_exists: IfExists) -> object:
        return super()._write(
            [
                record._replace(vector=(record.vector / np.linalg.norm(record.vector)).astype(np.float32))
                for record in records
            ],
            if_exists,
        )


@breaks("D9", "store")
class EverythingIncluded(SimpleVectorStore):
    """Returns the metadata whatever was asked for."""

    def _search(self, query: Query) -> list[Hit]:
        return super()._search(replace(query, include=(*query.include, "metadata")))


@breaks("D10", "store")
class ReplacingUpdates(SimpleVectorStore):
    """Puts the changes in the place of all metadata."""

    def _update(self, ids: Sequence[str], changes: Mapping[str, Any], unset: Sequence[str]) -> list[str]:
        known = [key for record in self._fetch(ids, ("metadata",)) for key in record.metadata or {}]
        return super()._update(ids, changes, [*unset, *(key for key in known if key not in changes)])


@breaks("D10", "store")
class EmbeddingUpdates(SimpleVectorStore):
    """Embeds the text anew when only metadata changes."""

    def update(
        self,
        ids: Iterable[str],
        *,
        set: Mapping[str, Any] | None = None,  # noqa: A002
        unset: Iterable[str] | None = None,
    ) -> list[str]:
        changed = super().update(ids, set=set, unset=unset)
        if self.embedding is not None:
            for document in self.get(changed):
                self.add([document])
        return changed


@breaks("D10", "store")
class HalfUpdates(SimpleVectorStore):
    """Sets keys, and unsets none."""

    def _update(self, ids: Sequence[str], changes: Mapping[str, Any], unset: Sequence[str]) -> list[str]:
        return super()._update(ids, changes, unset[:0])


# --- S: search --------------------------------------------------------------------------------------------


@breaks("S4", "store")
class FilteringAfterwards(SimpleVectorStore):
    """Takes the best of all documents, and then those that match."""

    def _search(self, query: Query) -> list[Hit]:
        if query.mode is not SearchMode.SEMANTIC or (query.filter is TRUE and query.ids is None):
            return super()._search(query)
        best = super()._search(replace(query, filter=TRUE, ids=None))
        matching = {hit.record.id for hit in super()._search(replace(query, k=10**6))}
        return [hit for hit in best if hit.record.id in matching]


@breaks("S5", "store")
class FewHits(SimpleVectorStore):
    """Returns at most a thousand hits, whatever was asked for."""

    def _search(self, query: Query) -> list[Hit]:
        return super()._search(replace(query, k=min(query.k, 1000)))


@breaks("S5", "store")
class EagerSearches(SimpleVectorStore):
    """Asks the engine also for nothing."""

    def similarity_search(self, query: str | SearchRequest, /, **options: Any) -> list[Document]:
        self.stats()
        return super().similarity_search(query, **options)


@breaks("S6", "store", slow=True)
class PoorIndex(SimpleVectorStore):
    """Has an index that never looks at one document in four."""

    def _search(self, query: Query) -> list[Hit]:
        if query.exact or query.mode is not SearchMode.SEMANTIC:
            return super()._search(query)
        hits = super()._search(replace(query, k=query.k * 2))
        seen = [hit for hit in hits if int(hit.record.id) % 4] + [
            hit for hit in hits if not int(hit.record.id) % 4
        ]
        return seen[: query.k]


@breaks("S6", "store")
class RoughIndex(SimpleVectorStore):
    """Has an index that compares vectors by the signs of their components."""

    def _search(self, query: Query) -> list[Hit]:
        if query.exact or query.mode is not SearchMode.SEMANTIC or query.vector is None:
            return super()._search(query)
        hits = super()._search(replace(query, k=10**6, include=("vector", *query.include)))
        signs = np.sign(query.vector)

        def likeness(hit: Hit) -> float:
            vector = hit.record.vector
            return 0.0 if vector is None else -float(np.sign(vector) @ signs)

        hits.sort(key=likeness)
        return hits[: query.k]


@breaks("S7", "store")
class RefreshingIndex(SimpleVectorStore):
    """Shows documents to searches a moment after they were written."""

    written: Final[dict[str, float]] = {}

    def _write(self, records: Sequence[Record], if_exists: IfExists) -> object:
        marker = super()._write(records, if_exists)
        RefreshingIndex.written.update({record.id: time.monotonic() for record in records})
        return marker

    def _search(self, query: Query) -> list[Hit]:
        shown = time.monotonic() - 0.05
        return [
            hit for hit in super()._search(query) if RefreshingIndex.written.get(hit.record.id, 0) < shown
        ]


@breaks("S7", "store")
class CachedAnswers(SimpleVectorStore):
    """Answers searches by words from what it knew before."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._answers: dict[str, list[Hit]] = {}

    def _search(self, query: Query) -> list[Hit]:
        if query.words is None:
            return super()._search(query)
        return self._answers.setdefault(query.words, super()._search(query))


@breaks("S8", "store")
class IgnoredIds(SimpleVectorStore):
    """Searches everywhere although it was told where."""

    def _search(self, query: Query) -> list[Hit]:
        return super()._search(replace(query, ids=None))


@breaks("S8", "store")
class EmbeddingEach(SimpleVectorStore):
    """Embeds the texts of a batch one by one."""

    def similarity_search_batch(self, requests: Sequence[str | SearchRequest]) -> list[list[Document]]:
        if isinstance(requests, str) or not hasattr(requests, "__iter__"):
            return super().similarity_search_batch(requests)
        return [
            answer
            for each in requests
            for answer in super(EmbeddingEach, self).similarity_search_batch([each])
        ]


@breaks("S9", "store")
class AllWords(SimpleVectorStore):
    """Finds by words only what holds all of them."""

    def _search(self, query: Query) -> list[Hit]:
        hits = super()._search(query)
        if query.words is None:
            return hits
        for word in query.words.split():
            holding = {hit.record.id for hit in super()._search(replace(query, words=word))}
            hits = [hit for hit in hits if hit.record.id in holding]
        return hits


@breaks("S9", "store")
class Stemming(SimpleVectorStore):
    """Takes a word and its plural for the same."""

    def _search(self, query: Query) -> list[Hit]:
        if query.words is not None:
            query = replace(query, words=" ".join(word.rstrip("s") for word in query.words.split()))
        return super()._search(query)


@breaks("S9", "store")
class WordsAsSyntax(SimpleVectorStore):
    """Reads a query as the language of its engine: a minus forbids a word."""

    def _search(self, query: Query) -> list[Hit]:
        hits = super()._search(query)
        for word in (query.words or "").split():
            if word.startswith("-"):
                holding = {hit.record.id for hit in super()._search(replace(query, words=word))}
                hits = [hit for hit in hits if hit.record.id not in holding]
        return hits


# --- T: views ---------------------------------------------------------------------------------------------


@breaks("T2", "store")
class UnguardedWrites(SimpleVectorStore):
    """Replaces a document outside of a view."""

    def _write_inside(self, records: Sequence[Record], if_exists: IfExists, inside: Normal) -> object:  # noqa: ARG002
        return self._write(records, if_exists)


@breaks("T2", "store")
class UnguardedDeletes(SimpleVectorStore):
    """Deletes a document outside of a view."""

    def _delete_inside(self, ids: Sequence[str], inside: Normal) -> None:  # noqa: ARG002
        self._delete(ids)


@breaks("T2", "store")
class UnguardedUpdates(SimpleVectorStore):
    """Updates a document outside of a view."""

    def _update_inside(
        self,
        ids: Sequence[str],
        changes: Mapping[str, Any],
        unset: Sequence[str],
        inside: Normal,  # noqa: ARG002
    ) -> list[str]:
        return self._update(ids, changes, unset)


@breaks("T2", "store")
class RacingGuards(SimpleVectorStore):
    """Looks first and writes then, so that another writer comes between."""

    def _write_inside(self, records: Sequence[Record], if_exists: IfExists, inside: Normal) -> object:
        from entrepot.guards import refuse_outside  # noqa: PLC0415 - used here alone

        refuse_outside(self._fetch([record.id for record in records], ("metadata",)), inside)
        time.sleep(0.0005)
        return self._write(records, if_exists)


# --- E: errors and life cycle -----------------------------------------------------------------------------


@breaks("E1", "store")
class PlainErrors(SimpleVectorStore):
    """Refuses a bare string with an error that is none of the library's."""

    def get(self, ids: Iterable[str], *, include: Collection[Part] = ("text", "metadata")) -> list[Document]:
        if isinstance(ids, str):
            msg = "ids must be a list"
            raise TypeError(msg)
        return super().get(ids, include=include)


@breaks("E1", "store")
class BareDriverErrors(SimpleVectorStore):
    """Lets the exception of a broken driver through as it is."""

    def count(self, filter: FilterLike | None = None) -> int:  # noqa: A002
        try:
            return super().count(filter)
        except Exception as error:
            if isinstance(error.__cause__, OSError):
                raise error.__cause__ from None
            raise


@breaks("E2", "store")
class SilentErrors(SimpleVectorStore):
    """Says of a missing collection what is wrong, and not what to do."""

    def count(self, filter: FilterLike | None = None) -> int:  # noqa: A002
        try:
            return super().count(filter)
        except Exception as error:
            error.hint = ""  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
            raise


@breaks("E3", "store")
class BlockingTwins(SimpleVectorStore):
    """Works in the event loop."""

    async def _ascan(self, query: Query, token: str | None, size: int) -> Page[StoredRecord]:
        time.sleep(0.06)  # noqa: ASYNC251 - that is what is wrong
        return self._scan(query, token, size)


@breaks("E3", "store")
class UnlikeTwins(SimpleVectorStore):
    """Has an async twin that forgets what was asked."""

    async def _acount(self, query: Query) -> int:
        return await super()._acount(replace(query, filter=TRUE))


@breaks("E3", "store")
class UnlikeErrors(SimpleVectorStore):
    """Has an async twin that finds nothing where the other one refuses."""

    async def aget(
        self, ids: Iterable[str], *, include: Collection[Part] = ("text", "metadata")
    ) -> list[Document]:
        return [] if isinstance(ids, str) else await super().aget(ids, include=include)


@breaks("E4", "store")
class HalfBatches(SimpleVectorStore):
    """Leaves half of a sub-batch when it is cancelled."""

    async def _awrite(self, records: Sequence[Record], if_exists: IfExists) -> object:
        for record in records:
            self._write([record], if_exists)
            await asyncio.sleep(0)
        return None


@breaks("E5", "store")
class WorkingAfterClose(SimpleVectorStore):
    """Goes on after it was closed."""

    def close(self) -> None:
        """Leave everything open."""


@breaks("E5", "store")
class Pickling(SimpleVectorStore):
    """Lets itself be pickled, without its documents."""

    def __reduce__(self) -> Any:
        return json.dumps, ({},)
