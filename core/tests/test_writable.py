"""A store that reads what other software made refuses every write, before any I/O (D5)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from entrepot import Document, F, FunctionEmbeddingModel
from entrepot.errors import UnsupportedError
from entrepot.stores.simple import SimpleVectorStore

if TYPE_CHECKING:
    from collections.abc import Callable

    from entrepot import VectorStore


def operations(store: VectorStore) -> list[Callable[[], object]]:
    return [
        lambda: store.add([Document("text", id="a")]),
        lambda: store.add([]),
        lambda: asyncio.run(store.aadd([Document("text", id="a")])),
        lambda: store.update(["a"], set={"n": 2}),
        lambda: store.delete(["a"]),
        lambda: store.delete(filter=F.n == 1),
        store.delete_all,
        store.create_collection,
        store.drop_collection,
    ]


def test_writes_are_refused_before_anything_is_embedded_or_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    # D5
    def embed(texts: Any) -> Any:
        raise AssertionError(texts)

    model = FunctionEmbeddingModel(embed, name="none", dimensions=2)
    with SimpleVectorStore(embedding=model, metric="euclidean", dimension=2) as store:
        store.add([Document(None, id="a", metadata={"n": 1}, vector=[1.0, 2.0])])
        assert store.writable
        store.writable = False
        before = list(store.scan())
        view = store.where(F.n == 1)
        assert not view.writable
        for name in ("describe", "create", "drop", "write", "update", "delete"):
            monkeypatch.setattr(store, f"_{name}", pytest.fail)
        for writer in (store, view):
            for operation in operations(writer):
                with pytest.raises(UnsupportedError) as caught:
                    operation()
                assert caught.value.capability in ("write", "view")
        assert list(store.scan()) == before
        assert view.get(["a"]) == before
