"""The index for `$vectorSearch`: how it is made, asked, and waited for (S7). Scripts.

It is kept by another process than the database, which follows the database's changes some time behind. So hits are looked
up in the database before they count (`entrepot_mongodb.searching`), and a write waits until it is seen in the index.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pymongo.operations import SearchIndexModel

from entrepot.capabilities import Metric
from entrepot.errors import BackendError, NotYetVisibleError, OperationTimeoutError
from entrepot.exchange import remaining
from entrepot_mongodb.commands import Aggregate, Call, Pause
from entrepot_mongodb.fields import EMBEDDING, VERSION
from entrepot_mongodb.filters import TOKENS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from entrepot.records import CollectionInfo
    from entrepot_mongodb.commands import Script

NAME: Final = "entrepot"
"""The index's name; a collection of the engine has one."""
MOST_DIMENSIONS: Final = 8192
MOST: Final = 10_000
"""Most candidates, and most hits, of a search."""
_FIRST_PAUSE: Final = 0.05
_LONGEST_PAUSE: Final = 0.5
_LEAST: Final = 0.01


def definition(info: CollectionInfo) -> dict[str, Any]:
    """Return what the index holds; whatever keys documents bring, no more."""
    return {
        "fields": [
            {
                "type": "vector",
                "path": EMBEDDING,
                "numDimensions": info.dimension,
                # The core makes unit vectors under cosine, so both are the dot product.
                "similarity": "euclidean" if info.metric is Metric.EUCLIDEAN else "dotProduct",
                "quantization": "none",
            },
            {"type": "filter", "path": TOKENS},
            {"type": "filter", "path": VERSION},
        ]
    }


def make(name: str, info: CollectionInfo) -> Script[None]:
    """Begin to make the index of an engine's collection."""
    model = SearchIndexModel(definition=definition(info), name=NAME, type="vectorSearch")
    yield Call(name, "create_search_index", (model,), writes=True)


def status(name: str) -> Script[str]:
    """Return what the server says of the index: ``READY``, ``PENDING`` ..., or ``MISSING``."""
    found = yield Aggregate(name, [{"$listSearchIndexes": {"name": NAME}}])
    if not found:
        return "MISSING"
    return "READY" if found[0].get("queryable") else str(found[0].get("status", "PENDING"))


def ready(name: str, timeout: float) -> Script[None]:
    """Wait until the index can be asked.

    Raises:
        BackendError: It failed, or is not there.
        OperationTimeoutError: Not within the time that is left.
    """
    pause = _FIRST_PAUSE
    while True:
        state = yield from status(name)
        if state == "READY":
            return
        if state in {"FAILED", "DOES_NOT_EXIST", "MISSING", "DELETING"}:
            msg = f"the index for $vectorSearch is not to be had ({state})"
            raise BackendError(
                msg, hint="see the server's log, or make the collection anew with index='flat'"
            )
        if remaining(timeout) <= pause:
            msg = f"the collection is made, and its index for $vectorSearch is not ready yet ({state})"
            raise OperationTimeoutError(
                msg, hint="call again, or open the store with a longer timeout", outcome="unknown"
            )
        yield Pause(pause)
        pause = min(2 * pause, _LONGEST_PAUSE)


def nearest(
    name: str,
    vector: Sequence[float],
    limit: int,
    *,
    candidates: int | None = None,
    where: dict[str, Any] | None = None,
) -> Script[list[str]]:
    """Return the ids of the nearest documents as the index has them, best first.

    Args:
        name: The engine's collection.
        vector: What they are near to.
        limit: Most of them.
        candidates: How many the graph looks at; None for an exact search.
        where: What they satisfy.
    """
    stage: dict[str, Any] = {"index": NAME, "path": EMBEDDING, "queryVector": list(vector), "limit": limit}
    if candidates is None:
        stage["exact"] = True
    else:
        stage["numCandidates"] = candidates
    if where:
        stage["filter"] = where
    found = yield Aggregate(name, [{"$vectorSearch": stage}, {"$project": {"_id": 1}}])
    return [one["_id"] for one in found]


def visible(name: str, info: CollectionInfo, version: str, timeout: float) -> Script[None]:
    """Wait until the index has all that a write left in the database (S7).

    Raises:
        NotYetVisibleError: Not within the time that is left.
    """
    anywhere = [1.0] + [0.0] * (info.dimension - 1)
    pause = _FIRST_PAUSE
    try:
        while True:
            # What others have replaced or deleted meanwhile is not waited for.
            wanted = yield Call(name, "count_documents", ({VERSION: version},))
            if not wanted:
                return
            seen = yield from nearest(name, anywhere, min(wanted, MOST), where={VERSION: {"$eq": version}})
            if len(seen) >= wanted:
                return
            if remaining(timeout) <= pause + _LEAST:
                break
            yield Pause(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
    except OperationTimeoutError as error:
        raise _not_yet() from error
    raise _not_yet()


def _not_yet() -> NotYetVisibleError:
    return NotYetVisibleError("$vectorSearch does not show the documents yet")
