"""`$vectorSearch` by scripts whose answers are written here: what is asked, and how long is waited. S4, S7."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from entrepot.capabilities import Metric
from entrepot.errors import BackendError, ConfigurationError, NotYetVisibleError, OperationTimeoutError
from entrepot.exchange import deadline
from entrepot.records import CollectionInfo
from entrepot.scripted import carry_out
from entrepot_mongodb import catalog, indexes
from entrepot_mongodb.catalog import Plan
from entrepot_mongodb.commands import Aggregate, Call, Pause
from entrepot_mongodb.faults import NoSearchError

if TYPE_CHECKING:
    from collections.abc import Callable

    from entrepot_mongodb.commands import Script

INFO = CollectionInfo(name="articles", dimension=3, metric=Metric.COSINE)


def answered(script: Script[Any], *answers: Any) -> tuple[Any, list[Any]]:
    """Carry out a script; return what it returns, and what it asked."""
    asked: list[Any] = []
    left = list(answers)

    def ask(step: Any) -> Any:
        if isinstance(step, Pause):
            return None
        asked.append(step)
        answer = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    return carry_out(script, ask), asked


def state(status: str) -> list[dict[str, Any]]:
    return [{"status": status, "queryable": status == "READY"}]


@pytest.mark.parametrize(
    ("metric", "similarity"),
    [(Metric.COSINE, "dotProduct"), (Metric.DOT, "dotProduct"), (Metric.EUCLIDEAN, "euclidean")],
)
def test_the_definition_has_three_fields_whatever_documents_bring(metric: Metric, similarity: str) -> None:
    fields = indexes.definition(CollectionInfo(name="a", dimension=3, metric=metric))["fields"]
    assert fields == [
        {
            "type": "vector",
            "path": "d.e",
            "numDimensions": 3,
            "similarity": similarity,
            "quantization": "none",
        },
        {"type": "filter", "path": "t"},
        {"type": "filter", "path": "v"},
    ]


def test_an_index_is_awaited() -> None:
    _, asked = answered(indexes.ready("a.1", 5.0), state("PENDING"), state("BUILDING"), state("READY"))
    assert asked == [Aggregate("a.1", [{"$listSearchIndexes": {"name": "entrepot"}}])] * 3


def test_an_index_that_takes_too_long_or_fails_is_told() -> None:
    with deadline(0.2), pytest.raises(OperationTimeoutError, match="BUILDING") as caught:
        answered(indexes.ready("a.1", 5.0), state("BUILDING"))
    assert caught.value.retryable
    for told in (state("FAILED"), []):
        with pytest.raises(BackendError, match=r"FAILED|MISSING"):
            answered(indexes.ready("a.1", 5.0), told)


def test_a_search_as_it_is_sent() -> None:
    found, (asked,) = answered(
        indexes.nearest("a.1", [1.0, 0.0, 0.0], 5, candidates=200, where={"t": {"$in": ["k\0"]}}),
        [{"_id": "x"}, {"_id": "y"}],
    )
    assert found == ["x", "y"]
    assert asked.pipeline == [
        {
            "$vectorSearch": {
                "index": "entrepot",
                "path": "d.e",
                "queryVector": [1.0, 0.0, 0.0],
                "limit": 5,
                "numCandidates": 200,
                "filter": {"t": {"$in": ["k\0"]}},
            }
        },
        {"$project": {"_id": 1}},
    ]
    _, (asked,) = answered(indexes.nearest("a.1", [1.0, 0.0, 0.0], 5, where={}), [])
    assert asked.pipeline[0]["$vectorSearch"]["exact"] is True
    assert "numCandidates" not in asked.pipeline[0]["$vectorSearch"]
    assert "filter" not in asked.pipeline[0]["$vectorSearch"]


def test_a_write_is_awaited_until_the_index_shows_all_of_it() -> None:
    # S7: by the name of the write
    two = [{"_id": "x"}, {"_id": "y"}]
    _, asked = answered(indexes.visible("a.1", INFO, "v1", 5.0), 2, [], 2, two[:1], 2, two)
    assert [type(one) for one in asked] == [Call, Aggregate] * 3
    assert asked[0].given == ({"v": "v1"},)
    stage = asked[1].pipeline[0]["$vectorSearch"]
    assert stage["filter"] == {"v": {"$eq": "v1"}}
    assert stage["exact"] is True
    assert stage["limit"] == 2


def test_what_others_replaced_meanwhile_is_not_awaited() -> None:
    _, asked = answered(indexes.visible("a.1", INFO, "v1", 5.0), 2, [], 0)
    assert len(asked) == 3


def test_a_write_that_the_index_does_not_show_in_time_is_told() -> None:
    # S7

    def ask(step: Any) -> Any:
        return [] if isinstance(step, Aggregate) else 1

    with deadline(0.2), pytest.raises(NotYetVisibleError):
        carry_out(indexes.visible("a.1", INFO, "v1", 5.0), ask)
    with pytest.raises(NotYetVisibleError):
        answered(indexes.visible("a.1", INFO, "v1", 5.0), OperationTimeoutError("late"))


def created(plan: Plan, search: Callable[[Any], Any], info: CollectionInfo = INFO) -> tuple[Any, list[Any]]:
    """Make a collection on a server that has none; `search` answers what goes to the search."""
    asked: list[Any] = []

    def ask(step: Any) -> Any:
        asked.append(step)
        if isinstance(step, Aggregate) or (isinstance(step, Call) and step.method == "create_search_index"):
            return search(step)
        if isinstance(step, Call) and step.method == "list_collection_names":
            return []
        if isinstance(step, Call) and step.method == "find_one":
            written = [one for one in asked if isinstance(one, Call) and one.method == "insert_one"]
            named = step.given[0]
            return written[0].given[0] if written and "dropped" not in named else None
        return {"logicalSessionTimeoutMinutes": 30}

    return carry_out(catalog.create(info, plan), ask), asked


def no_search(_: Any) -> Any:
    raise NoSearchError("no search")


def test_auto_takes_the_index_where_the_server_has_search_and_compares_elsewhere() -> None:
    place, asked = created(Plan("auto"), lambda _: state("READY"))
    assert (place.kind, place.ann, place.as_vector) == ("hnsw", True, True)
    assert sum(isinstance(one, Call) and one.method == "create_search_index" for one in asked) == 1
    assert isinstance(asked[-1], Aggregate)  # awaited, after the collection can be found
    place, _ = created(Plan("auto"), no_search)
    assert (place.kind, place.ann) == ("flat", False)
    place, asked = created(Plan("flat", "plain"), no_search)
    assert (place.kind, place.as_vector) == ("flat", False)
    assert not any(isinstance(one, Aggregate) for one in asked)


def test_what_was_asked_for_and_is_not_to_be_had_is_told() -> None:
    with pytest.raises(ConfigurationError, match=r"\$vectorSearch"):
        created(Plan("hnsw"), no_search)
    large = CollectionInfo(name="a", dimension=9000)
    with pytest.raises(ConfigurationError, match="8192"):
        created(Plan("hnsw"), lambda _: state("READY"), large)
    place, _ = created(Plan("auto"), lambda _: state("READY"), large)
    assert place.kind == "flat"
