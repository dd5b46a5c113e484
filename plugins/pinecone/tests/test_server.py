"""What a server of Pinecone's API does with what this plugin sends. D2, D5, D7, S4, S6, S7, T2."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np
import pytest

from entrepot import Document, F, SearchRequest
from entrepot.errors import CollectionMismatchError, CollectionNotFoundError
from entrepot_pinecone.names import CATALOG

if TYPE_CHECKING:
    from plugins.pinecone.tests.conftest import Make

pytestmark = pytest.mark.slow  # there is no server but in a container


def test_namespaces_are_collections_of_their_own(make: Make) -> None:
    # D5, T1
    one, two = make(namespace="one"), make(namespace="two")
    one.add([Document("x", id=f"{n}", vector=[1.0, n], metadata={"n": n}) for n in range(5)])
    with pytest.raises(CollectionNotFoundError):
        two.count()
    two.add([Document("y", id="0", vector=[1.0, 0.0])])
    assert (one.count(), two.count()) == (5, 1)
    assert one.list_collections() == [one.collection]
    one.drop_collection()
    assert two.get(["0"])[0].text == "y"
    with pytest.raises(CollectionNotFoundError):
        one.count()


def test_another_dimension_in_another_namespace_is_refused(make: Make) -> None:
    # D5: the namespaces of an index share it
    make(namespace="one").add([Document("x", id="1", vector=[1.0, 2.0])])
    with pytest.raises(CollectionMismatchError, match="dimension 2"):
        make(namespace="two").add([Document("x", id="1", vector=[1.0, 2.0, 3.0])])


def test_exact_searches_are_those_of_numpy(make: Make) -> None:
    # S1, S2, S6: in float64, beside what the engine answers
    rng = np.random.default_rng(20261130)
    vectors = rng.normal(size=(300, 8)).astype(np.float32)
    store = make(metric="euclidean")
    store.add([Document(None, id=f"{n:03}", vector=row, metadata={"n": n}) for n, row in enumerate(vectors)])
    wanted = rng.normal(size=8).astype(np.float32)
    distance = ((vectors.astype(np.float64) - wanted.astype(np.float64)) ** 2).sum(axis=1)
    order = [f"{n:03}" for n in np.argsort(distance)]
    for exact in (True, False):
        found = store.similarity_search(SearchRequest(vector=wanted, top_k=10, exact=exact))
        assert [hit.id for hit in found] == order[:10]
        few = store.similarity_search(SearchRequest(vector=wanted, top_k=10, exact=exact, filter=F.n < 4))
        assert [hit.id for hit in few] == [name for name in order if name < "004"]
        assert few[0].score == pytest.approx(1 / (1 + distance[int(few[0].id)]), abs=1e-6)


def test_writers_of_one_document_leave_one_whole(make: Make) -> None:
    # D2
    store = make()
    store.create_collection(dimension=2)

    def write(n: int) -> None:
        for turn in range(5):
            key = f"k{n}"
            store.add([Document(f"{n}", id="d", vector=[1.0, float(n)], metadata={key: turn, "n": n})])

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(4)))
    (found,) = store.get(["d"])
    assert found.metadata == {f"k{found.text}": 4, "n": int(found.text or "")}
    assert store.count(F.n == int(found.text or "")) == 1


def test_a_filter_deletes_all_of_many(make: Make) -> None:
    # D7: a query of the engine would not enumerate them
    store = make()
    store.add(
        [Document(None, id=f"{n:04}", vector=[1.0, n], metadata={"n": n, "t": ["a"]}) for n in range(1200)]
    )
    store.delete(filter=(F.n >= 7) & (F.t != "b"))
    assert sorted(found.id for found in store.scan()) == [f"{n:04}" for n in range(7)]


def test_the_catalog_is_no_namespace_of_documents(make: Make) -> None:
    # D5
    store = make()
    store.add([Document("x", id="1", vector=[1.0, 2.0])])
    details = store.stats().details
    assert details["records"] == 1
    assert details["records_of_the_index"] == 3
    assert CATALOG not in str(details)
