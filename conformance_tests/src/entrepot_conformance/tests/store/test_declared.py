"""What a store declares works, what it declines is refused, and what works is declared: S2, S9, T2, D5.

The plugin's own hooks are called here, past the core, which refuses what is declined before it comes to them.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from entrepot import Document, SearchRequest
from entrepot.capabilities import Metric
from entrepot.errors import ConfigurationError, UnsupportedError, UnsupportedSearchModeError
from entrepot.exchange import deadline
from entrepot.filters import TRUE
from entrepot.hooks import VectorStoreHooks
from entrepot.scripted import ScriptedVectorStore
from entrepot.search import SearchMode
from entrepot_conformance.tests.store.data import TEXTS, expected_scores

if TYPE_CHECKING:
    from entrepot import FunctionEmbeddingModel
    from entrepot_conformance.endpoints import Stores

PATIENCE = 10.0


def test_searching_by_words_is_declared_or_does_not_work(
    stores: Stores, model: FunctionEmbeddingModel
) -> None:
    # S9
    store = stores(embedding=model)
    store.add([Document(text, id=name) for name, text in TEXTS.items()])
    with_the_word = {"1", "2", "3"}
    if store.capabilities.fulltext:
        assert {hit.id for hit in store.similarity_search("wing", mode="fulltext", top_k=5)} == with_the_word
    else:
        with pytest.raises(UnsupportedSearchModeError):
            store.similarity_search("wing", mode="fulltext")
        assert words_found(store, "wing") != with_the_word, "it works: declare fulltext"
    if store.capabilities.hybrid:
        assert len(store.similarity_search("wing", mode="hybrid", top_k=5)) == 5
    else:
        with pytest.raises(UnsupportedSearchModeError):
            store.similarity_search("wing", mode="hybrid")
        # Fusing is the core's: what both of its lists can be had from can be HYBRID.
        assert words_found(store, "wing") != with_the_word, "it works: declare hybrid"


def words_found(hooks: Any, words: str) -> set[str]:
    """Return what the plugin's hooks find by words, whatever it declares; nothing if they fail."""
    query = hooks._query(TRUE, mode=SearchMode.FULLTEXT, words=words, k=5)
    with suppress(Exception), deadline(PATIENCE):
        return {hit.record.id for hit in hooks._search(query)}
    return set()


@pytest.mark.parametrize("metric", Metric)
def test_a_metric_is_declared_or_does_not_work(stores: Stores, metric: Metric) -> None:
    # S2, D5
    if metric in stores().capabilities.metrics:
        store = stores(metric=metric)
        vectors = [[3.0, 4.0], [4.0, 3.0], [-5.0, 0.0]]
        if metric is Metric.DOT:
            vectors = [[number / 5 for number in vector] for vector in vectors]
        store.add([Document("x", id=str(n), vector=vector) for n, vector in enumerate(vectors)])
        hits = store.similarity_search(SearchRequest(vector=vectors[1], top_k=3))
        expected = expected_scores(metric, vectors, vectors[1])
        assert {hit.id: hit.score for hit in hits} == {
            str(n): pytest.approx(score, abs=1e-4) for n, score in enumerate(expected)
        }
        return
    with pytest.raises(ConfigurationError):
        stores(metric=metric)


def test_exactness_is_declared_or_refused(stores: Stores) -> None:
    # S6
    store = stores()
    store.add([Document("x", id=str(n), vector=[1.0, n]) for n in range(5)])
    request = SearchRequest(vector=[1.0, 3.0], top_k=1, exact=True)
    if store.capabilities.exact:
        assert [hit.id for hit in store.similarity_search(request)] == ["3"]
    else:
        with pytest.raises(UnsupportedError):
            store.similarity_search(request)


def test_writes_that_depend_on_what_is_stored_are_declared(stores: Stores) -> None:
    # T2: the hooks that check and write in one step are there exactly where that is declared
    store = stores()
    for name in ("_write_inside", "_update_inside", "_delete_inside"):
        defined = getattr(type(store), name) is not getattr(VectorStoreHooks, name)
        # A store of scripts always has them; the core calls them where they are declared.
        atomic = store.capabilities.conditional_write == "atomic"
        scripted = isinstance(store, ScriptedVectorStore)
        assert defined is (atomic or scripted), (
            f"{name} is {'there' if defined else 'missing'}, and not so declared"
        )
