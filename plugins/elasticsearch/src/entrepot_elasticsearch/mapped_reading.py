"""What reads an index that other software made: looking at it, searches, pages, counts, by id. Scripts."""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, cast

import msgspec
import numpy as np

from entrepot.capabilities import Metric
from entrepot.errors import (
    AuthenticationError,
    BackendError,
    CollectionMismatchError,
    CollectionNotFoundError,
    RequestError,
)
from entrepot.filters import FALSE, TRUE
from entrepot.records import CollectionInfo, Hit, Page, Query, StoredRecord
from entrepot.scripted import work
from entrepot.search import raw_scores
from entrepot_elasticsearch.commands import Call, read
from entrepot_elasticsearch.faults import PointLostError
from entrepot_elasticsearch.mapped_fields import DATES, Field, MappedPlace, record_of, wanted
from entrepot_elasticsearch.names import quoted
from entrepot_elasticsearch.reading import checked

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from entrepot_elasticsearch.catalog import Version
    from entrepot_elasticsearch.commands import Script
    from entrepot_elasticsearch.mapping import IndexMapping

_NAME: Final = re.compile(r"[^A-Z\\/*?\"<>| ,#:]{1,255}")
_SIMILARITIES: Final = {
    "cosine": Metric.COSINE,
    "dot_product": Metric.DOT,
    "l2_norm": Metric.EUCLIDEAN,
}
_PAGE: Final = 1000
_MOST: Final = 10_000
_KEEP: Final = "5m"
_MORE: Final = 50
_HIDES_VECTORS: Final = (9, 2)


def describe(
    name: str,
    mapping: IndexMapping,
    metric: Metric | None,
    dimension: int | None,
    version: Version | None,
) -> Script[MappedPlace | None]:
    """Return an index, or None if there is none.

    Raises:
        CollectionMismatchError: It lacks a field, or one is of a type that cannot be what it is named for.
    """
    if not _NAME.fullmatch(name) or name.startswith(("_", "-", "+", ".")):
        return None
    try:
        answer = yield read(f"/{quoted(name)}/_mapping")
    except CollectionNotFoundError:
        return None
    if len(answer) != 1:
        msg = f"{name!r} names {len(answer)} indices"
        raise CollectionMismatchError(msg, hint="name one of them")
    mapped = next(iter(answer.values()))["mappings"]
    if mapped.get("_source", {}).get("enabled") is False:
        msg = f"the index {name!r} does not keep the sources of documents"
        raise CollectionMismatchError(msg, hint="index the documents again, with _source")
    found = dict(_fields(mapped.get("properties", {}), ""))
    vector = found.get(mapping.vector)
    if (
        vector is None
        or vector.get("type") != "dense_vector"
        or vector.get("element_type", "float") != "float"
    ):
        msg = f"the index {name!r} has no field {mapping.vector!r} of type dense_vector with floats"
        vectors = [path for path, one in found.items() if one.get("type") == "dense_vector"]
        raise CollectionMismatchError(msg, hint=f"it has {', '.join(sorted(vectors)) or 'none at all'}")
    indexed = bool(vector.get("index", True))
    own = _SIMILARITIES.get(str(vector.get("similarity", "cosine")))
    if metric is None:
        metric = own if indexed else Metric.COSINE
    if metric is None:
        msg = f"the vectors of {name!r} have the similarity {vector.get('similarity')!r}"
        raise CollectionMismatchError(
            msg, hint="say metric='cosine', 'dot' or 'euclidean': searches are then exact"
        )
    size = vector.get("dims") or dimension
    if size is None:
        msg = f"the index {name!r} does not say how many components its vectors have"
        raise CollectionMismatchError(msg, hint="open it with dimension=...")
    return MappedPlace(
        name=name,
        info=CollectionInfo(name=name, dimension=int(size), metric=metric),
        mapping=mapping,
        fields=_asked(found, mapping),
        dates=frozenset(path for path, one in found.items() if one.get("type") in DATES),
        # The graph of another similarity has other neighbours.
        indexed=indexed and own is metric,
        shows_vectors=version is not None and version >= _HIDES_VECTORS,
    )


def _fields(properties: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, one in properties.items():
        path = prefix + name
        if "properties" in one and one.get("type") != "nested":
            yield from _fields(one["properties"], path + ".")
        else:
            yield path, one


def _asked(found: Mapping[str, dict[str, Any]], mapping: IndexMapping) -> dict[str, Field]:
    """Return the fields that filters can ask, by metadata key."""
    asked: dict[str, Field] = {}
    if mapping.metadata is not None:
        root = mapping.metadata + "."
        for path, one in found.items():
            if path.startswith(root):
                _ask(asked, path.removeprefix(root), path, one)
    for key, path in mapping.fields.items():
        asked.pop(key, None)
        if path in found:
            _ask(asked, key, path, found[path])
    return asked


def _ask(asked: dict[str, Field], key: str, path: str, one: Mapping[str, Any]) -> None:
    source = path
    if one.get("type") == "text":
        for name, below in one.get("fields", {}).items():
            if below.get("type") == "keyword":
                path, one = f"{path}.{name}", below
                break
    if "normalizer" in one or "script" in one or one.get("type") in {None, "text"}:
        return
    has_values = bool(one.get("doc_values", True))
    asked[key] = Field(path, source, str(one["type"]), bool(one.get("index", True)), has_values)


def condition(place: MappedPlace, query: Query) -> list[dict[str, Any]]:
    """Return what a query's documents must satisfy; one without a vector is no document."""
    given: list[dict[str, Any]] = [{"exists": {"field": place.mapping.vector}}]
    given += [{"term": {field: value}} for field, value in place.mapping.only.items()]
    if query.ids is not None:
        names = list(dict.fromkeys(query.ids))
        parts = [{"ids": {"values": names[at : at + _MOST]}} for at in range(0, len(names), _MOST)]
        given.append({"bool": {"should": parts, "minimum_should_match": 1}})
    if query.filter is not TRUE:
        given.append(cast("dict[str, Any]", query.pushed.query))
    return given


def count(place: MappedPlace, query: Query) -> Script[int]:
    """Return how many documents match what the engine takes."""
    if query.filter is FALSE or query.ids == ():
        return 0
    asked = {"query": {"bool": {"filter": condition(place, query)}}}
    answer = yield read(f"/{quoted(place.name)}/_count", asked)
    return int(checked(answer)["count"])


def fetch(place: MappedPlace, ids: Sequence[str], include: Sequence[str]) -> Script[list[StoredRecord]]:
    """Return the documents with these ids that are there."""
    found: list[StoredRecord] = []
    for at in range(0, len(ids), _PAGE):
        part = Query(filter=TRUE, ids=tuple(ids[at : at + _PAGE]))
        body = {
            "query": {"bool": {"filter": condition(place, part)}},
            "size": _PAGE,
            "_source": wanted(place, include),
        }
        answer = yield read(f"/{quoted(place.name)}/_search?allow_partial_search_results=false", body)
        found += yield from _records(place, checked(answer)["hits"]["hits"], include)
    return found


def _records(place: MappedPlace, found: Sequence[Any], include: Sequence[str]) -> Script[list[StoredRecord]]:
    def made() -> list[StoredRecord]:
        return [record_of(one, place, include) for one in found]

    return (yield from work(made, at_once=len(found) <= 100))  # noqa: PLR2004 - some milliseconds


# --- pages ------------------------------------------------------------------------------------------------


def scan(place: MappedPlace, query: Query, token: str | None, size: int) -> Script[Page[StoredRecord]]:
    """Return a page of what was there when the scan began: a point in time, kept for five minutes (D7).

    Raises:
        RequestError: The token is none, or it is too old.
    """
    point, after = _opened(token)
    if query.filter is FALSE or query.ids == ():
        return Page([], None)
    if point is None:
        opened = yield read(f"/{quoted(place.name)}/_pit?keep_alive={_KEEP}", {})
        point = str(opened["id"])
    body: dict[str, Any] = {
        "pit": {"id": point, "keep_alive": _KEEP},
        "query": {"bool": {"filter": condition(place, query)}},
        "size": size,
        "sort": [{"_shard_doc": "asc"}],
        "_source": wanted(place, query.include),
        "track_total_hits": False,
    }
    if after is not None:
        body["search_after"] = after
    try:
        answer = yield read("/_search?allow_partial_search_results=false", body)
    except BackendError as error:
        is_over = (
            isinstance(error, PointLostError) or not error.retryable
        )  # what is no point is refused for good
        if token is None or isinstance(error, AuthenticationError) or not is_over:
            raise
        msg = "the scan that the token goes on with is over"
        raise RequestError(msg, hint="begin a new one; a token is kept for five minutes") from None
    found = checked(answer)["hits"]["hits"]
    records = yield from _records(place, found, query.include)
    point = str(answer.get("pit_id", point))
    if len(found) == size:
        return Page(records, _token(point, found[-1]["sort"]))
    with suppress(BackendError):  # it ends by itself
        yield Call("DELETE", "/_pit", msgspec.json.encode({"id": point}))
    return Page(records, None)


def _token(point: str, after: list[int]) -> str:
    return urlsafe_b64encode(msgspec.json.encode([point, after])).decode()


def _opened(token: str | None) -> tuple[str | None, list[int] | None]:
    if token is None:
        return None, None
    try:
        return msgspec.json.decode(urlsafe_b64decode(token), type=tuple[str, list[int]])
    except (ValueError, TypeError):
        msg = "the token is none of this store's"
        raise RequestError(msg, hint="pass the token of a scan or of one of its pages") from None


# --- searches ---------------------------------------------------------------------------------------------


def search(place: MappedPlace, query: Query, ef_search: int) -> Script[list[Hit]]:
    """Return the nearest documents; the scores are those of the vectors, however the engine keeps them."""
    if query.vector is None or query.filter is FALSE or query.ids == ():
        return []
    asked = max(2 * query.k, query.k + _MORE)  # an index with quantisation finds them in another order
    if query.exact or not place.indexed or asked > _MOST:
        return (yield from _exactly(place, query))
    body = {
        "knn": {
            "field": place.mapping.vector,
            "query_vector": query.vector.tolist(),
            "k": asked,
            "num_candidates": min(max(ef_search, 2 * asked), _MOST),
            "filter": condition(place, query),
        },
        "size": asked,
        "_source": wanted(place, query.include, vector=True),
        "track_total_hits": False,
    }
    answer = yield read(f"/{quoted(place.name)}/_search?allow_partial_search_results=false", body)
    found = checked(answer)["hits"]["hits"]
    if len(found) < query.k and (yield from count(place, query)) > len(found):
        return (yield from _exactly(place, query))
    records = yield from _records(place, found, (*query.include, "vector"))
    return _best(place, query, [], records)


def _exactly(place: MappedPlace, query: Query) -> Script[list[Hit]]:
    """Compare every document that matches, page by page."""
    best: list[Hit] = []
    token: str | None = None
    wide = msgspec.structs.replace(query, include=(*query.include, "vector"))
    while True:
        page = yield from scan(place, wide, token, _PAGE)
        best = _best(place, query, best, page.items)
        token = page.token
        if token is None:
            return best


def _best(
    place: MappedPlace, query: Query, best: Sequence[Hit], records: Sequence[StoredRecord]
) -> list[Hit]:
    """Return the best k of the hits so far and of more documents, equal ones by id (S1)."""
    compared = [record for record in records if record.vector is not None]
    hits = list(best)
    if compared and query.vector is not None:
        matrix = np.stack([cast("Any", record.vector) for record in compared])
        raw = raw_scores(place.info.metric, matrix, query.vector).tolist()
        hits += [
            Hit(number, record if "vector" in query.include else record._replace(vector=None))
            for number, record in zip(raw, compared, strict=True)
        ]
    sign = 1.0 if place.info.metric is Metric.EUCLIDEAN else -1.0
    hits.sort(key=lambda hit: (sign * hit.raw, hit.record.id))
    return hits[: query.k]
