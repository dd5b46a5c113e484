"""How documents get in: the bodies of add, update and delete, shared by sync and async (D1 to D10)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from entrepot.capabilities import Limits, Metric
from entrepot.completion import is_partial, matching
from entrepot.documents import Document, MetadataMode
from entrepot.embedding import aembed_texts, batching_for, embed_texts
from entrepot.errors import (
    ArgumentTypeError,
    BatchError,
    CollectionNotFoundError,
    ConfigurationError,
    DocumentError,
    DuplicateIdError,
    EntrepotError,
    MetadataError,
    RequestError,
    SizeLimitError,
)
from entrepot.filters import FALSE
from entrepot.hooks import VectorStoreHooks
from entrepot.metadata import (
    clean_metadata,
    elements,
    encode_metadata,
    ill_formed,
    is_list,
    metadata_size,
    name_fault,
)
from entrepot.observation import note
from entrepot.records import CollectionInfo, IfExists, Record
from entrepot.search import check_ids
from entrepot.steps import ask, call, tell, tell_once, work
from entrepot.vectors import as_vector, normalised, stack_vectors

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    from entrepot.metadata import Metadata
    from entrepot.search import FilterLike
    from entrepot.steps import Steps

_AT_ONCE: Final = 200
"""Documents that an async caller may have checked on its event loop: well under a millisecond."""


class Draft(NamedTuple):
    """A checked document that lacks only its vector, if it brought none."""

    id: str
    text: str | None
    metadata: Metadata
    metadata_json: bytes
    embed: str | None
    vector: ArrayLike | None


def draft_all(documents: Iterable[Document], limits: Limits) -> list[Draft]:
    """Check a batch whole against D1, D3, D4 and D8; nothing has been sent (D6).

    Raises:
        ArgumentTypeError: Not documents.
        DocumentError: The first fault found; the message names the document.
    """
    if isinstance(documents, Document | str) or not hasattr(documents, "__iter__"):
        msg = f"documents must be a list of Document, not {type(documents).__name__}"
        raise ArgumentTypeError(msg, hint="put a single document into a list")
    drafts = [_draft(document, limits) for document in documents]
    if len({draft.id for draft in drafts}) != len(drafts):
        counts: dict[str, int] = {}
        for draft in drafts:
            counts[draft.id] = counts.get(draft.id, 0) + 1
        twice = [name for name, count in counts.items() if count > 1]
        msg = f"{len(twice)} ids stand twice in the batch, the first is {twice[0]!r}"
        raise DuplicateIdError(msg, ids=twice, hint="keep one document of each id")
    return drafts


def _draft(document: Document, limits: Limits) -> Draft:
    if type(document) is not Document:
        msg = f"documents must be Document, not {type(document).__name__}"
        raise ArgumentTypeError(msg)
    fault = name_fault(document.id)
    if fault is not None:
        msg = f"the document id {document.id!r} {fault}"
        raise DocumentError(msg)
    text = document.text
    if text is not None:
        fault = f"must be a str, not {type(text).__name__}" if type(text) is not str else ill_formed(text)
        if fault is not None:
            msg = f"document {document.id!r}: the text {fault}"
            raise DocumentError(msg)
    if document.media is not None:
        msg = f"document {document.id!r} holds media, which stores do not keep"
        raise DocumentError(msg, hint="store a text that describes it, and its URL as metadata")
    try:
        metadata = clean_metadata(document.metadata)
    except MetadataError as error:
        msg = f"document {document.id!r}: {error.message}"
        raise MetadataError(msg, key=error.key, hint=error.hint) from None
    encoded = encode_metadata(metadata)
    check_sizes(document.id, text, metadata, encoded, limits)
    embed = None
    if document.vector is None:
        embed = text if document.formatter is None else document.formatted(MetadataMode.EMBED)
        if embed is None:
            msg = f"document {document.id!r} has neither a text nor a vector"
            raise DocumentError(msg)
    return Draft(document.id, text, metadata, encoded, embed, document.vector)


def check_sizes(name: str, text: str | None, metadata: Metadata, encoded: bytes, limits: Limits) -> None:
    """Refuse what exceeds the declared limits (D8).

    Raises:
        SizeLimitError: Names the document, the part, its size and the limit.
    """
    text_bytes = 0
    if text is not None:
        text_bytes = len(text) if text.isascii() else len(text.encode())
        if limits.text_bytes is not None and text_bytes > limits.text_bytes:
            raise _too_large(name, "its text", text_bytes, limits.text_bytes, "bytes")
    if limits.keys is not None and len(metadata) > limits.keys:
        raise _too_large(name, "its metadata", len(metadata), limits.keys, "keys")
    if limits.list_elements is not None:
        lists = sum(len(value) for value in metadata.values() if is_list(value))
        if lists > limits.list_elements:
            raise _too_large(name, "its metadata", lists, limits.list_elements, "list elements")
    # JSON is never shorter than what it holds, so short JSON settles the matter.
    if limits.metadata_bytes is not None and len(encoded) > limits.metadata_bytes:
        size = metadata_size(metadata)
        if size > limits.metadata_bytes:
            raise _too_large(name, "its metadata", size, limits.metadata_bytes, "bytes")
    if limits.string_bytes is not None and len(encoded) > limits.string_bytes:
        for key, value in metadata.items():
            for element in elements(value):
                size = len(element.encode()) if type(element) is str else 0
                if size > limits.string_bytes:
                    raise _too_large(name, f"a string in {key!r}", size, limits.string_bytes, "bytes")
    total = text_bytes + len(encoded) + len(name.encode())
    if limits.record_bytes is not None and total > limits.record_bytes:
        raise _too_large(name, "the whole record", total, limits.record_bytes, "bytes")


def _too_large(name: str, part: str, size: int, limit: int, unit: str) -> SizeLimitError:
    return SizeLimitError(f"document {name!r}: {part} has {size} {unit}, this store takes {limit}")


class Writing(VectorStoreHooks):
    """The writing half of `VectorStore`."""

    def _add(self, documents: Iterable[Document], if_exists: IfExists, *, wait: bool) -> Steps[list[str]]:
        if if_exists not in ("replace", "skip", "error"):
            msg = f"if_exists must be 'replace', 'skip' or 'error', not {if_exists!r}"
            raise RequestError(msg)
        limits = self.capabilities.limits
        if isinstance(documents, list | tuple) and len(documents) <= _AT_ONCE:
            drafts = draft_all(documents, limits)
        else:
            drafts = yield from work(draft_all, documents, limits)
        if not drafts:
            return []
        note(documents=len(drafts))
        drafts = self._admit(drafts)
        info, is_new = yield from self._destination(drafts)
        own = yield from self._own_vectors(drafts, info)
        yield from self._check_texts(drafts)
        if is_new:
            yield from tell(self._create, self._acreate, info)
            self._info = info
        size = limits.write_batch
        marker: object = None
        for start in range(0, len(drafts), size):
            part = drafts[start : start + size]
            try:
                records = yield from self._records(part, own, start, info)
                marker = yield from self._store(records, if_exists)
            except Exception as error:
                if isinstance(error, EntrepotError) and start == 0 and error.outcome == "not_done":
                    raise
                raise _batch_error(drafts, start, size, error) from error
        if wait and marker is not None:
            yield from ask(self._visible, self._avisible, marker)
        return [draft.id for draft in drafts]

    # What a view guards.

    def _admit(self, drafts: list[Draft]) -> list[Draft]:
        """Return the drafts as they will be stored."""
        return drafts

    def _store(self, records: Sequence[Record], if_exists: IfExists) -> Steps[object]:
        # A second try under "error" would find what the first one may have written.
        again = tell_once if if_exists == "error" else tell
        return again(self._write, self._awrite, records, if_exists)

    def _alter(
        self, ids: Sequence[str], changes: Mapping[str, Any], unset: Sequence[str]
    ) -> Steps[list[str]]:
        return tell(self._update, self._aupdate, ids, changes, unset)

    def _discard(self, ids: Sequence[str]) -> Steps[None]:
        return tell(self._delete, self._adelete, ids)

    def _destination(self, drafts: Sequence[Draft]) -> Steps[tuple[CollectionInfo, bool]]:
        """Return the record of the collection to write to, and whether it is still to be made (D5)."""
        if self._info is not None:
            return self._info, False
        info = yield from ask(self._describe, self._adescribe)
        if info is not None:
            self._accept(info)
            self._info = info
            return info, False
        if not self._may_create:
            msg = f"there is no collection {self.collection!r}, and the store was opened with create=False"
            raise CollectionNotFoundError(msg)
        given = next((draft.vector for draft in drafts if draft.vector is not None), None)
        dimension = yield from self._new_dimension(given)
        return self._new_info(dimension), True

    def _new_dimension(self, vector: ArrayLike | None) -> Steps[int]:
        if self._wanted_dimension is not None:
            return self._wanted_dimension
        model = self.embedding
        if model is not None:
            return (yield from work(lambda: model.dimensions))
        if vector is None:
            msg = "the store has no embedding model, and no vector was given"
            raise ConfigurationError(
                msg, hint="open the store with embedding=..., or give documents their vectors"
            )
        return int(as_vector(vector, None, "the first vector").size)

    def _new_info(self, dimension: int) -> CollectionInfo:
        limit = self.capabilities.limits.dimension
        if limit is not None and dimension > limit:
            msg = f"vectors of {dimension} components; this store takes {limit}"
            raise ConfigurationError(msg, hint="use an embedding model with fewer dimensions")
        model = self.embedding.name if self.embedding is not None else None
        metric = self._wanted_metric or Metric.COSINE
        return CollectionInfo(name=self.collection, dimension=dimension, metric=metric, model=model)

    def _own_vectors(
        self, drafts: Sequence[Draft], info: CollectionInfo
    ) -> Steps[dict[int, NDArray[np.float32]]]:
        """Check and normalise the vectors that documents brought, all before anything is sent (D6)."""
        rows = [row for row, draft in enumerate(drafts) if draft.vector is not None]
        if not rows:
            return {}

        def checked() -> NDArray[np.float32]:
            def name(position: int) -> str:
                return f"the vector of document {drafts[rows[position]].id!r}"

            given = [cast("ArrayLike", drafts[row].vector) for row in rows]
            return normalised(info.metric, stack_vectors(given, info.dimension, name), name)

        matrix = checked() if len(rows) <= _AT_ONCE else (yield from work(checked))
        return dict(zip(rows, matrix, strict=True))

    def _check_texts(self, drafts: Sequence[Draft]) -> Steps[None]:
        """Refuse texts that the model does not take, all before anything is sent (D6)."""
        embed = [draft for draft in drafts if draft.embed is not None]
        if not embed:
            return
        model = self.embedding
        if model is None:
            msg = f"document {embed[0].id!r} brings no vector, and the store has no embedding model"
            raise ConfigurationError(
                msg, hint="open the store with embedding=..., or give documents their vectors"
            )
        if len(embed) > self.capabilities.limits.write_batch:
            strategy = self.batching or batching_for(model)
            texts, labels = [cast("str", draft.embed) for draft in embed], _labels(embed)
            yield from work(strategy.batches, texts, labels)

    def _records(
        self, part: Sequence[Draft], own: Mapping[int, NDArray[np.float32]], start: int, info: CollectionInfo
    ) -> Steps[list[Record]]:
        rows = [row for row, draft in enumerate(part) if draft.embed is not None]
        matrix: NDArray[np.float32] | None = None
        if rows and self.embedding is not None:
            drafts = [part[row] for row in rows]
            matrix = yield from call(
                embed_texts,
                aembed_texts,
                self.embedding,
                [cast("str", draft.embed) for draft in drafts],
                labels=_labels(drafts),
                batching=self.batching,
                dimensions=info.dimension,
            )

        def records() -> list[Record]:
            def name(position: int) -> str:
                return f"the embedding of document {part[rows[position]].id!r}"

            vectors = {}
            if matrix is not None:
                vectors = dict(zip(rows, normalised(info.metric, matrix, name), strict=True))
            return [
                Record(
                    draft.id,
                    draft.text,
                    draft.metadata,
                    draft.metadata_json,
                    vectors[row] if row in vectors else own[start + row],
                )
                for row, draft in enumerate(part)
            ]

        return records() if len(part) <= _AT_ONCE else (yield from work(records))

    def _change(
        self, ids: Iterable[str], changes: Mapping[str, Any] | None, unset: Iterable[str] | None
    ) -> Steps[list[str]]:
        names = check_ids(ids)
        removed = check_ids(unset or ())
        clean = clean_metadata(dict(changes or {}))
        removed += tuple(key for key, value in (changes or {}).items() if value is None)
        both = sorted(set(clean) & set(removed))
        if both:
            msg = f"the key {both[0]!r} is to be set and unset at once"
            raise RequestError(msg)
        yield from self._known()
        if not names or not (clean or removed):
            return []
        return (yield from self._alter(names, clean, removed))

    def _remove(self, ids: Iterable[str] | None, given: FilterLike | None) -> Steps[None]:
        if (ids is None) == (given is None):
            msg = "delete takes either ids or a filter"
            raise ArgumentTypeError(msg, hint="delete_all() empties the collection")
        if ids is not None:
            names = check_ids(ids)
            yield from self._known()
            if names:
                yield from self._discard(tuple(dict.fromkeys(names)))
            return
        query = self._query(self._normal(given))
        yield from self._known()
        if is_partial(query):
            found = yield from matching(query, self.max_completion_rows, self._scan_steps)
            yield from tell(self._delete_unchanged, self._adelete_unchanged, found)
        elif query.filter is not FALSE:
            yield from tell_once(self._delete, self._adelete, query)

    def _make(self, dimension: int | None) -> Steps[None]:
        info = yield from ask(self._describe, self._adescribe)
        if info is None:
            wanted = dimension if dimension is not None else (yield from self._new_dimension(None))
            info = self._new_info(wanted)
            yield from tell(self._create, self._acreate, info)
        self._accept(info)
        self._info = info


def _labels(drafts: Sequence[Draft]) -> list[str]:
    return [f"document {draft.id!r}" for draft in drafts]


def _batch_error(drafts: Sequence[Draft], start: int, size: int, error: Exception) -> BatchError:
    """Tell what became of each document when the sub-batch at `start` failed (D6)."""
    reason = error.message if isinstance(error, EntrepotError) else type(error).__name__
    unsure = isinstance(error, EntrepotError) and error.outcome == "unknown"
    sent = [draft.id for draft in drafts[start : start + size]]
    rest = [draft.id for draft in drafts[start + size :]]
    failed = dict.fromkeys(rest, "not sent, an earlier part of the batch failed")
    if not unsure:
        failed = dict.fromkeys(sent, reason) | failed
    msg = f"{start} of {len(drafts)} documents were written, then the batch failed: {reason}"
    return BatchError(
        msg,
        written=[draft.id for draft in drafts[:start]],
        failed=failed,
        unknown=sent if unsure else (),
        retryable=isinstance(error, EntrepotError) and error.retryable,
    )
