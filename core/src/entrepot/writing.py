"""How documents get in: the bodies of add, update and delete, shared by sync and async (D1 to D10)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast

import numpy as np

from entrepot.capabilities import Metric
from entrepot.completion import is_partial, matching
from entrepot.drafts import Drafts, draft_all
from entrepot.embedding import aembed_texts, batching_for, embed_texts, model_dimensions, model_name
from entrepot.errors import (
    ArgumentTypeError,
    BatchError,
    CollectionMismatchError,
    CollectionNotFoundError,
    ConfigurationError,
    EntrepotError,
    MetadataError,
    RequestError,
)
from entrepot.filters import FALSE
from entrepot.hooks import VectorStoreHooks
from entrepot.metadata import clean_metadata, name_fault
from entrepot.observation import note
from entrepot.records import CollectionInfo, IfExists, Record
from entrepot.search import check_ids
from entrepot.steps import AT_ONCE, ask, call, tell, tell_once, work, work_on
from entrepot.vectors import as_vector, check_vectors, normalised

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from numpy.typing import ArrayLike, NDArray

    from entrepot.documents import Document
    from entrepot.filters import Normal
    from entrepot.search import FilterLike
    from entrepot.steps import Steps

T = TypeVar("T")
P = ParamSpec("P")


class Writing(VectorStoreHooks):
    """The writing half of `VectorStore`."""

    def _add_steps(
        self, documents: Iterable[Document], if_exists: IfExists, *, wait: bool
    ) -> Steps[list[str]]:
        self._check_writable()
        if if_exists not in ("replace", "skip", "error"):
            msg = f"if_exists must be 'replace', 'skip' or 'error', not {if_exists!r}"
            raise RequestError(msg)
        limits = self.capabilities.limits
        if isinstance(documents, list | tuple) and len(documents) <= AT_ONCE:
            drafts = draft_all(documents, limits)
        else:
            drafts = yield from work(draft_all, documents, limits)
        ids = drafts.ids
        if not ids:
            return []
        note(documents=len(ids))
        scope = self._scope()
        drafts = yield from work_on(len(ids), self._admit, drafts, scope)
        info, is_new = yield from self._destination_steps(drafts)
        own = yield from self._own_vector_steps(drafts, info)
        yield from self._text_steps(drafts)
        if is_new:
            yield from tell(self._create, self._acreate, info)
            self._info = info
        size = limits.write_batch
        marker: object = None
        for start in range(0, len(ids), size):
            part = drafts.part(start, start + size)
            try:
                embeddings = yield from self._embedding_steps(part, info)
                records = yield from work_on(len(part.ids), _records, part, own, embeddings, info)
                marker = yield from self._store_steps(records, if_exists, scope)
            except Exception as error:
                if isinstance(error, EntrepotError) and start == 0 and error.outcome == "not_done":
                    raise
                raise _batch_error(ids, start, size, error) from error
        if wait and marker is not None:
            yield from ask(self._visible, self._avisible, marker)
        return ids

    # What a view guards.

    def _admit(self, drafts: Drafts, scope: Normal) -> Drafts:  # noqa: ARG002 - a view looks at it
        """Return the drafts as they will be stored."""
        self._check_drafts(drafts)
        return drafts

    def _store_steps(
        self,
        records: Sequence[Record],
        if_exists: IfExists,
        scope: Normal,  # noqa: ARG002 - as above
    ) -> Steps[object]:
        # A second try under "error" would find what the first one may have written.
        again = tell_once if if_exists == "error" else tell
        return again(self._write, self._awrite, records, if_exists)

    def _alter_steps(
        self,
        ids: Sequence[str],
        changes: Mapping[str, Any],
        unset: Sequence[str],
        scope: Normal,  # noqa: ARG002 - as above
    ) -> Steps[list[str]]:
        return tell(self._update, self._aupdate, ids, changes, unset)

    def _discard_steps(self, ids: Sequence[str], scope: Normal) -> Steps[None]:  # noqa: ARG002 - as above
        return tell(self._delete, self._adelete, ids)

    def _destination_steps(self, drafts: Drafts) -> Steps[tuple[CollectionInfo, bool]]:
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
        given = next((vector for vector in drafts.vectors if vector is not None), None)
        dimension = yield from self._dimension_steps(given)
        return self._new_info(dimension), True

    def _dimension_steps(self, vector: ArrayLike | None) -> Steps[int]:
        if self._wanted_dimension is not None:
            return self._wanted_dimension
        model = self.embedding
        if model is not None:
            return (yield from work(model_dimensions, model))
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
        model = model_name(self.embedding) if self.embedding is not None else None
        metric = self._wanted_metric or Metric.COSINE
        return CollectionInfo(name=self.collection, dimension=dimension, metric=metric, model=model)

    def _own_vector_steps(self, drafts: Drafts, info: CollectionInfo) -> Steps[NDArray[np.float32] | None]:
        """Check the vectors that documents brought, all before anything is sent (D6).

        Returns:
            The vectors as they are stored, if one sub-batch holds all documents; else None, and
            each sub-batch normalises its own.
        """
        if all(vector is None for vector in drafts.vectors):
            return None
        once = len(drafts.ids) <= self.capabilities.limits.write_batch
        function = _own_vectors if once else _check_all
        return (yield from work_on(len(drafts.ids), function, drafts, info))

    def _text_steps(self, drafts: Drafts) -> Steps[None]:
        """Refuse texts that the model does not take, all before anything is sent (D6)."""
        rows = [row for row, text in enumerate(drafts.embed) if text is not None]
        if not rows:
            return
        model = self.embedding
        if model is None:
            msg = f"document {drafts.ids[rows[0]]!r} brings no vector, and the store has no embedding model"
            raise ConfigurationError(
                msg, hint="open the store with embedding=..., or give documents their vectors"
            )
        if len(rows) > self.capabilities.limits.write_batch:
            strategy = self.batching or batching_for(model)
            texts, labels = _texts(drafts)
            yield from work(strategy.batches, texts, labels)

    def _embedding_steps(self, part: Drafts, info: CollectionInfo) -> Steps[NDArray[np.float32] | None]:
        """Return the embeddings of the documents that brought no vector, in their order."""
        if self.embedding is None or all(text is None for text in part.embed):
            return None
        texts, labels = _texts(part)
        return (
            yield from call(
                embed_texts,
                aembed_texts,
                self.embedding,
                texts,
                labels=labels,
                batching=self.batching,
                dimensions=info.dimension,
            )
        )

    def _update_steps(
        self, ids: Iterable[str], changes: Mapping[str, Any] | None, unset: Iterable[str] | None
    ) -> Steps[list[str]]:
        self._check_writable()
        names = check_ids(ids)
        removed = check_keys(unset)
        if changes is not None and not isinstance(changes, dict):
            msg = f"set must be a dict of metadata, not {type(changes).__name__}"
            raise ArgumentTypeError(msg)
        scope = self._scope()
        clean = clean_metadata(dict(changes or {}))
        removed += tuple(key for key, value in (changes or {}).items() if value is None)
        both = sorted(set(clean) & set(removed))
        if both:
            msg = f"the key {both[0]!r} is to be set and unset at once"
            raise RequestError(msg)
        yield from self._known_steps()
        if not names or not (clean or removed):
            return []
        return (yield from self._alter_steps(names, clean, removed, scope))

    def _delete_steps(self, ids: Iterable[str] | None, given: FilterLike | None) -> Steps[None]:
        self._check_writable()
        if (ids is None) == (given is None):
            msg = "delete takes either ids or a filter"
            raise ArgumentTypeError(msg, hint="delete_all() empties the collection")
        scope = self._scope()
        if ids is not None:
            names = check_ids(ids)
            yield from self._known_steps()
            if names:
                yield from self._discard_steps(tuple(dict.fromkeys(names)), scope)
            return
        yield from self._delete_matching_steps(self._within(scope, given))

    def _delete_matching_steps(self, normal: Normal) -> Steps[None]:
        yield from self._known_steps()
        query = self._query(normal)
        if is_partial(query):
            found = yield from matching(query, self.max_completion_rows, self._scan_steps)
            yield from tell(self._delete_unchanged, self._adelete_unchanged, found)
        elif query.filter is not FALSE:
            yield from tell_once(self._delete, self._adelete, query)

    def _create_steps(self, dimension: int | None) -> Steps[None]:
        self._check_writable()
        info = yield from ask(self._describe, self._adescribe)
        if info is None:
            wanted = dimension if dimension is not None else (yield from self._dimension_steps(None))
            info = self._new_info(wanted)
            yield from tell(self._create, self._acreate, info)
        elif dimension is not None and dimension != info.dimension:
            msg = f"collection {info.name!r} has dimension {info.dimension}, not {dimension}"
            raise CollectionMismatchError(msg, hint="use another collection")
        self._accept(info)
        self._info = info


def check_keys(keys: Iterable[str] | None) -> tuple[str, ...]:
    """Return metadata keys as a tuple.

    Raises:
        ArgumentTypeError: A bare string, or no collection.
        MetadataError: A name that no key can have (D3).
    """
    if keys is None:
        return ()
    if isinstance(keys, str | bytes) or not hasattr(keys, "__iter__"):
        msg = f"unset must be a list of metadata keys, not {type(keys).__name__}"
        raise ArgumentTypeError(msg, hint="put a single key into a list")
    checked = tuple(keys)
    for key in checked:
        fault = name_fault(key)
        if fault is not None:
            msg = f"the metadata key {key!r} {fault}"
            raise MetadataError(msg, key=key)
    return checked


def _texts(drafts: Drafts) -> tuple[list[str], list[str]]:
    """Return the texts to embed, and what to call each in an error."""
    texts = [text for text in drafts.embed if text is not None]
    labels = [
        f"document {name!r}" for name, text in zip(drafts.ids, drafts.embed, strict=True) if text is not None
    ]
    return texts, labels


def _own_vectors(drafts: Drafts, info: CollectionInfo) -> NDArray[np.float32]:
    """Return the vectors that documents brought, as they are stored, in their order (D9)."""
    rows = [row for row, vector in enumerate(drafts.vectors) if vector is not None]
    given = drafts.vectors if len(rows) == len(drafts.ids) else [drafts.vectors[row] for row in rows]
    return normalised(
        info.metric,
        given,
        info.dimension,
        lambda place: f"the vector of document {drafts.ids[rows[place]]!r}",
    )


def _check_all(drafts: Drafts, info: CollectionInfo) -> None:
    rows = [row for row, vector in enumerate(drafts.vectors) if vector is not None]
    given = [drafts.vectors[row] for row in rows]
    check_vectors(
        info.metric,
        given,
        info.dimension,
        lambda place: f"the vector of document {drafts.ids[rows[place]]!r}",
    )


def _records(
    part: Drafts,
    own: NDArray[np.float32] | None,
    embeddings: NDArray[np.float32] | None,
    info: CollectionInfo,
) -> list[Record]:
    """Return documents with their vectors as they are stored."""
    if embeddings is None:
        matrix = _own_vectors(part, info) if own is None else own
    else:
        embedded = [row for row, text in enumerate(part.embed) if text is not None]
        matrix = normalised(
            info.metric,
            embeddings,
            info.dimension,
            lambda place: f"the embedding of document {part.ids[embedded[place]]!r}",
        )
        if len(embedded) < len(part.ids):
            both = np.empty((len(part.ids), info.dimension), dtype=np.float32)
            both[embedded] = matrix
            brought = [row for row, text in enumerate(part.embed) if text is None]
            both[brought] = _own_vectors(part, info) if own is None else own
            matrix = both
    columns = zip(part.ids, part.texts, part.metadata, part.encoded, matrix, strict=True)
    # What Record(*values) does in the end, without a call for each.
    new = cast("Callable[[type[Record], object], Record]", cast("Any", tuple).__new__)
    return [new(Record, values) for values in columns]


def _batch_error(ids: Sequence[str], start: int, size: int, error: Exception) -> BatchError:
    """Tell what became of each document when the sub-batch at `start` failed (D6)."""
    reason = error.message if isinstance(error, EntrepotError) else type(error).__name__
    unsure = isinstance(error, EntrepotError) and error.outcome == "unknown"
    sent, rest = ids[start : start + size], ids[start + size :]
    failed = dict.fromkeys(rest, "not sent, an earlier part of the batch failed")
    if not unsure:
        failed = dict.fromkeys(sent, reason) | failed
    msg = f"{start} of {len(ids)} documents were written, then the batch failed: {reason}"
    return BatchError(
        msg,
        written=ids[:start],
        failed=failed,
        unknown=sent if unsure else (),
        retryable=isinstance(error, EntrepotError) and error.retryable,
    )
