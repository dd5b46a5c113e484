"""Tenants and views: T1, T2."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from typing import TYPE_CHECKING, Any

import pytest

from entrepot import F, SearchRequest
from entrepot.errors import (
    ClosedError,
    FilterSyntaxError,
    OutsideViewError,
    RequestError,
    UnsupportedError,
)
from entrepot_conformance.tests.store.data import declined, document

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np

    from entrepot import Expression, VectorStore
    from entrepot.records import IfExists
    from entrepot_conformance.endpoints import Stores

TENANTS = ("a", "b", "c")


def test_every_read_carries_the_filter(shared: VectorStore) -> None:
    # T1
    view = shared.where("tenant == 'a'")
    names = {f"a{n}" for n in range(5)}
    assert view.count() == 5
    assert {found.id for found in view.scan()} == names
    assert [found.id for found in view.get(["b1", "a1"])] == ["a1"]
    request = SearchRequest(vector=[1.0, 0.0], top_k=100)
    assert {hit.id for hit in view.similarity_search(request)} == names
    assert {hit.id for hit in view.similarity_search_batch([request])[0]} == names
    if not declined(shared, "fulltext"):
        assert {hit.id for hit in view.similarity_search("text", mode="fulltext", top_k=100)} == names
    assert view.similarity_search(request.replace(ids=["b1", "a2"]))[0].id == "a2"
    assert view.as_retriever().similarity_search(request.replace(filter="n >= 3"))[0].id == "a3"
    assert view.count("tenant == 'b' or n >= 0") == 5
    assert view.count("tenant == 'b'") == 0
    assert view.stats().count == 5
    assert view.stats().details == {}
    assert view.explain("n > 1").filter == "tenant == 'a' AND n > 1"


def test_a_foreign_document_cannot_be_searched_near(shared: VectorStore) -> None:
    # T1: the neighbours of a foreign document tell of its vector
    view = shared.where(F.tenant == "a")
    assert view.similarity_search(SearchRequest(near_id="a1", top_k=1))[0].id in {"a0", "a2"}
    with pytest.raises(RequestError, match="no document 'b1'"):
        view.similarity_search(SearchRequest(near_id="b1"))


def test_a_callable_is_asked_for_each_request(shared: VectorStore) -> None:
    # T1
    tenant = contextvars.ContextVar("tenant", default="a")
    view = shared.where(lambda: F.tenant == tenant.get())
    assert {found.id[0] for found in view.scan()} == {"a"}
    tenant.set("b")
    assert {found.id[0] for found in view.scan()} == {"b"}
    view.add([document("b9")])
    assert shared.get(["b9"])[0].metadata == {"tenant": "b"}


def test_a_view_hands_out_no_way_around(shared: VectorStore) -> None:
    # T1
    view = shared.where("tenant == 'a'")
    ways: list[Callable[[], object]] = [
        lambda: view.native_client,
        view.drop_collection,
        view.list_collections,
    ]
    for way in ways:
        with pytest.raises(UnsupportedError):
            way()
    assert shared.count() == 15
    with pytest.raises(FilterSyntaxError):
        shared.where("tenant ==")


def test_documents_are_stamped(shared: VectorStore) -> None:
    # T2
    view = shared.where("tenant == 'a' and region == 'eu' and n >= 0")
    view.add([document("new", n=7), document("own", n=7, tenant="a", region="eu")])
    for found in shared.get(["new", "own"]):
        assert found.metadata == {"tenant": "a", "region": "eu", "n": 7}
    assert view.count() == 2


@pytest.mark.parametrize(
    "metadata",
    [{"tenant": "b"}, {"tenant": ["a"]}, {"tenant": ["a", "b"]}, {"tenant": "A"}, {"tenant": 1}, {"n": -1}],
    ids=str,
)
def test_documents_outside_are_refused_whole(shared: VectorStore, metadata: dict[str, Any]) -> None:
    # T2
    view = shared.where("tenant == 'a' and (n >= 0 or n is null)")
    with pytest.raises(OutsideViewError, match="'bad'"):
        view.add([document("good"), document("bad", **metadata)])
    assert shared.get(["good", "bad"]) == []


def test_an_empty_list_is_absent_and_stamped(shared: VectorStore) -> None:
    # T2, F1
    shared.where("tenant == 'a'").add([document("new", tenant=[])])
    assert shared.get(["new"])[0].metadata == {"tenant": "a"}


def test_a_view_that_contradicts_itself_takes_nothing(shared: VectorStore) -> None:
    # T2
    view = shared.where("tenant == 'a'").where("tenant == 'b'")
    assert view.count() == 0
    with pytest.raises(OutsideViewError):
        view.add([document("new")])


def test_foreign_ids_are_neither_replaced_nor_deleted_nor_updated(shared: VectorStore) -> None:
    # T2
    view = shared.where("tenant == 'a'")
    before = shared.get(["b1", "b2"], include=["text", "metadata", "vector"])
    modes: list[IfExists] = ["replace", "skip", "error"]
    for mode in modes:
        with pytest.raises(OutsideViewError, match="'b1'"):
            view.add([document("new"), document("b1")], if_exists=mode)
    with pytest.raises(OutsideViewError, match="'b2'"):
        view.delete(["a1", "b2", "unknown"])
    assert view.update(["b1", "a1", "unknown"], set={"x": 1}) == ["a1"]
    view.delete(filter="tenant == 'b'")
    assert shared.get(["b1", "b2"], include=["text", "metadata", "vector"]) == before
    assert shared.get(["new"]) == []
    assert view.count("x == 1") == 1
    view.delete(["a1", "unknown"])
    view.delete(filter="n >= 3")
    assert {found.id for found in view.scan()} == {"a0", "a2"}
    view.delete_all()
    assert shared.count() == 10


def test_an_update_cannot_move_a_document_out(shared: VectorStore) -> None:
    # T2
    view = shared.where("tenant == 'a'")
    changes: list[dict[str, Any]] = [
        {"set": {"tenant": "b"}},
        {"unset": ["tenant"]},
        {"set": {"tenant": None}},
    ]
    changes += [{"set": {"tenant": ["a"]}}, {"set": {"tenant": ["a", "b"]}}]
    for change in changes:
        with pytest.raises(OutsideViewError):
            view.update(["a1"], **change)
    assert view.count() == 5
    assert view.update(["a1"], set={"tenant": "a", "more": 1}) == ["a1"]


def test_a_view_of_a_view_is_narrower(shared: VectorStore) -> None:
    # T1, T2
    view = shared.where("tenant == 'a'").where(lambda: "n > 2")
    assert {found.id for found in view.scan()} == {"a3", "a4"}
    with pytest.raises(OutsideViewError):
        view.add([document("a1", n=5)])
    view.add([document("a3", n=9)])
    assert view.count("n == 9") == 1


def test_the_first_add_through_a_view_makes_the_collection_as_the_store_would(stores: Stores) -> None:
    # D5
    store = stores(metric="euclidean", dimension=2)
    view = store.where("tenant == 'a'")
    view.add([document("1")])
    assert store.stats().metric == "euclidean"
    view.close()
    with pytest.raises(ClosedError):
        view.count()
    assert store.count() == 1
    other = store.where("tenant == 'a'")
    store.close()
    with pytest.raises(ClosedError):
        other.count()


def test_views_have_their_twins(shared: VectorStore) -> None:
    async def twins() -> None:
        # E3, T1, T2
        view = shared.where("tenant == 'a'")
        assert await view.acount() == 5
        assert [found.id for found in await view.aget(["a1", "b1"])] == ["a1"]
        assert len(await view.asimilarity_search(SearchRequest(vector=[1.0, 1.0], top_k=50))) == 5
        assert {found.id[0] async for found in view.ascan()} == {"a"}
        with pytest.raises(OutsideViewError):
            await view.aadd([document("b1")])
        with pytest.raises(OutsideViewError):
            await view.adelete(["b1"])
        assert await view.aupdate(["b1", "a1"], set={"x": 1}) == ["a1"]
        with pytest.raises(UnsupportedError):
            await view.adrop_collection()
        with pytest.raises(UnsupportedError):
            await view.alist_collections()

    asyncio.run(twins())


def test_a_filter_beyond_the_limits_of_one_may_stand_under_a_view(shared: VectorStore) -> None:
    # F6: limits are checked on what the caller gave, before the view's filter is ANDed
    view = shared.where(F.tenant.in_(["a", *(str(n) for n in range(9_000))]))
    assert view.count(F.n.in_(list(range(9_000)))) == 5


@pytest.mark.large
def test_a_thousand_random_requests_never_leave_their_tenant(  # noqa: PLR0915 - one action after the other
    stores: Stores, rng: np.random.Generator
) -> None:
    # T1, T2: a dict is the model of what there is; each tenant has a view, one of them nested
    store = stores(metric="euclidean", dimension=2)
    store.create_collection()
    views = {
        "a": store.where("tenant == 'a'"),
        "b": store.where(lambda: F.tenant == "b"),
        "c": store.where("tenant != 'a'").where("tenant == 'c'"),
    }
    model: dict[str, dict[str, Any]] = {}
    names = [f"d{n}" for n in range(40)]

    def mine(tenant: str) -> set[str]:
        return {name for name, metadata in model.items() if metadata["tenant"] == tenant}

    def pick(count: int) -> list[str]:
        return [names[n] for n in rng.choice(len(names), size=count, replace=False)]

    for step in range(1500):
        tenant = TENANTS[rng.integers(3)]
        view = views[tenant]
        action = rng.integers(9)
        number = int(rng.integers(6))
        chosen = pick(2)
        foreign = [name for name in chosen if name in model and name not in mine(tenant)]
        if action <= 2:
            given = [document(name, number, n=number) for name in chosen]
            if rng.integers(4) == 0:
                wrong = [TENANTS[(TENANTS.index(tenant) + 1) % 3], [tenant], tenant.upper()][rng.integers(3)]
                given[1].metadata["tenant"] = wrong
                with pytest.raises(OutsideViewError):
                    view.add(given)
            elif foreign:
                with pytest.raises(OutsideViewError):
                    view.add(given)
            else:
                view.add(given)
                model.update({name: {"n": number, "tenant": tenant} for name in chosen})
        elif action == 3:
            if foreign:
                with pytest.raises(OutsideViewError):
                    view.delete(chosen)
            else:
                view.delete(chosen)
                for name in chosen:
                    model.pop(name, None)
        elif action == 4:
            view.delete(filter=f"n == {number} or tenant == 'b'" if number % 2 else f"n == {number}")
            gone = {
                name
                for name in mine(tenant)
                if model[name]["n"] == number or (number % 2 and model[name]["tenant"] == "b")
            }
            for name in gone:
                del model[name]
        elif action == 5:
            changed = view.update(chosen, set={"n": number})
            assert set(changed) == set(chosen) & mine(tenant)
            for name in changed:
                model[name]["n"] = number
        elif action == 6:
            request = SearchRequest(
                vector=[1.0, float(number)], top_k=50, filter=f"n <= {number} or n > 0", include=["metadata"],
                ids=chosen if number == 0 else None,
            )  # fmt: skip
            hits = view.similarity_search(request)
            visible = {
                name
                for name in mine(tenant)
                if (model[name]["n"] <= number or model[name]["n"] > 0) and (number or name in chosen)
            }
            assert {hit.id for hit in hits} == visible
        elif action == 7:
            assert {found.id for found in view.get(names)} == mine(tenant)
            near = chosen[0]
            if near in model and near not in mine(tenant):
                with pytest.raises(RequestError):
                    view.similarity_search(SearchRequest(near_id=near))
        else:
            assert {found.id: found.metadata for found in view.scan(batch_size=3)} == {
                name: model[name] for name in mine(tenant)
            }
            assert view.count(f"n == {number}") == sum(model[name]["n"] == number for name in mine(tenant))
        if step % 50 == 0:
            assert {found.id: found.metadata for found in store.scan()} == model
    assert {found.id: found.metadata for found in store.scan()} == model


def test_guarded_writes_hold_against_concurrent_writers(stores: Stores) -> None:
    # T2: two tenants race for the same ids; nobody ever replaces the other's document
    store = stores(metric="euclidean", dimension=2)
    store.create_collection()
    owners: dict[str, list[str]] = {f"d{n}": [] for n in range(60)}
    lock = threading.Lock()
    start = threading.Barrier(2)

    def claim(tenant: str) -> Callable[[], None]:
        def job() -> None:
            view = store.where(F.tenant == tenant)
            start.wait()
            for name, owner in owners.items():
                try:
                    view.add([document(name)])
                except OutsideViewError:
                    continue
                with lock:
                    owner.append(tenant)

        return job

    threads = [threading.Thread(target=claim(tenant)) for tenant in ("a", "b")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    kept = {name: [found.metadata["tenant"] for found in store.get([name])] for name in owners}
    if store.capabilities.conditional_write == "atomic":
        assert kept == owners
        return
    # Checked and then written: both may have found an id free; the later one's document is there, and stays.
    assert all(len(kept[name]) == 1 and kept[name][0] in owners[name] for name in owners)
    for name, (owner,) in kept.items():
        other = store.where(F.tenant == ("b" if owner == "a" else "a"))
        with pytest.raises(OutsideViewError):
            other.add([document(name)])
    assert {name: [found.metadata["tenant"] for found in store.get([name])] for name in owners} == kept


def test_the_filter_of_an_operation_is_asked_once(stores: Stores) -> None:
    # T1: a tenant that changes while texts are embedded does not split the operation
    from entrepot import Document, FunctionEmbeddingModel

    tenant = ["a"]

    def embed(texts: Any) -> Any:
        tenant[0] = "b"
        return [[1.0, float(len(text))] for text in texts]

    store = stores(embedding=FunctionEmbeddingModel(embed, "switching", 2))
    store.add([Document("of b", id="1", metadata={"tenant": "b"}, vector=[1.0, 1.0])])
    view = store.where(lambda: F.tenant == tenant[0])
    tenant[0] = "a"
    with pytest.raises(OutsideViewError):
        view.add([Document("of a", id="1")])
    assert store.get(["1"])[0].text == "of b"
    tenant[0] = "a"
    assert view.similarity_search("x") == []
    tenant[0] = "a"
    asked: list[str] = []

    def current() -> Expression:
        asked.append("")
        return F.tenant == tenant[0]

    counted = store.where(current)
    for use in (
        counted.count,
        lambda: counted.get(["1"]),
        lambda: list(counted.scan(batch_size=1)),
        lambda: counted.similarity_search(SearchRequest(vector=[1.0, 1.0])),
        lambda: counted.update(["1"], set={"x": 1}),
        lambda: counted.delete(["2"]),
        counted.delete_all,
    ):
        asked.clear()
        use()
        assert asked == [""]
    assert store.count() == 1
