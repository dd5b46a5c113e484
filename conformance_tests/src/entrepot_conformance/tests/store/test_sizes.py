"""How large documents may be, and how large a batch: D6, D7, D8."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

from entrepot import Document, F, FunctionEmbeddingModel
from entrepot.capabilities import Limits
from entrepot.errors import BatchError, SizeLimitError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from entrepot import VectorStore
    from entrepot_conformance.endpoints import Stores

LEAST: Final = Limits()
"""What every backend takes, unless its engine cannot and it says so."""


def limit(store: VectorStore, name: str) -> int:
    """Return how much of something the store has to take: what the contract asks for, or what it declares."""
    least, declared = getattr(LEAST, name), getattr(store.capabilities.limits, name)
    return int(least) if declared is None else min(int(least), int(declared))


def text_limit(store: VectorStore) -> int:
    """Return how many bytes of text a document may have that has little else."""
    record = store.capabilities.limits.record_bytes
    size = limit(store, "text_bytes")
    return size if record is None else min(size, record - 100)


def test_every_backend_takes_texts_of_32_kib(stores: Stores) -> None:
    # D8, D4: bytes of UTF-8, not characters
    store = stores()
    size = text_limit(store)
    texts = ["x" * (size - 1) + "y", "é" * (size // 2), "😀" * (size // 4), " " * size]
    store.add([Document(text, id=str(n), vector=[1.0]) for n, text in enumerate(texts)])
    assert [found.text for found in store.get(["0", "1", "2", "3"])] == texts


def test_every_backend_takes_strings_of_8_kib(stores: Stores) -> None:
    # D8, F2, F4, F10: and tells them apart to the last character
    store = stores()
    size = limit(store, "string_bytes")
    one, two, wide = "x" * size, "x" * (size - 1) + "y", "é" * (size // 2)
    store.add(
        [
            Document(None, id=name, metadata={"k": value}, vector=[1.0])
            for name, value in (("one", one), ("two", two), ("wide", wide), ("list", [one[1:], two[1:]]))
        ]
    )
    assert [found.metadata["k"] for found in store.get(["one", "two", "wide"])] == [one, two, wide]
    for name, value in (("one", one), ("two", two), ("wide", wide), ("list", two[1:])):
        assert [found.id for found in store.scan(F.k == value)] == [name]
    assert {found.id for found in store.scan(F.k > one)} == {"two", "wide", "list"}
    assert {found.id for found in store.scan((F.k < two) & (F.k >= one))} == {"one", "list"}
    assert {found.id for found in store.scan(F.k >= two)} == {"two", "wide", "list"}


def test_every_backend_takes_100_keys_and_1000_elements(stores: Stores) -> None:
    # D8, F2
    store = stores()
    keys, elements = limit(store, "keys"), limit(store, "list_elements")
    many: dict[str, Any] = {f"k{n:02}": n for n in range(keys)}
    numbers = {"list": list(range(elements))}
    texts = {"list": [f"e{n}" for n in range(elements)]}
    store.add(
        [
            Document(None, id=name, metadata=metadata, vector=[1.0])
            for name, metadata in (("many", many), ("numbers", numbers), ("texts", texts))
        ]
    )
    assert [found.metadata for found in store.get(["many", "numbers", "texts"])] == [many, numbers, texts]
    for n in (0, 1, keys // 2, keys - 1):
        assert [found.id for found in store.scan(F[f"k{n:02}"] == n)] == ["many"]
    for n in (0, elements // 2, elements - 1):
        assert [found.id for found in store.scan(F.list == n)] == ["numbers"]
        assert [found.id for found in store.scan(F.list == f"e{n}")] == ["texts"]
    assert store.count(F.list > elements - 2) == 1
    assert store.count(F.list >= elements) == 0


def test_every_backend_takes_metadata_of_16_kib(stores: Stores) -> None:
    # D8
    store = stores()
    part = limit(store, "metadata_bytes") // 16
    metadata: dict[str, Any] = {f"k{n:x}": chr(97 + n) * (part - 2) for n in range(16)}
    store.add([Document(None, id="1", metadata=metadata, vector=[1.0])])
    assert store.get(["1"])[0].metadata == metadata
    assert store.count(F.kf == "p" * (part - 2)) == 1


def test_what_exceeds_a_declared_limit_is_refused_before_anything_is_sent(stores: Stores) -> None:
    # D8, D6: and where none is declared there is none
    store = stores()
    limits = store.capabilities.limits
    large: dict[str, Document] = {
        "text_bytes": Document("x" * ((limits.text_bytes or 2 * 32 * 1024) + 1), id="bad", vector=[1.0]),
        "string_bytes": metadata_of({"k": "x" * ((limits.string_bytes or 2 * 8 * 1024) + 1)}),
        "keys": metadata_of({f"k{n}": n for n in range((limits.keys or 200) + 1)}),
        "list_elements": metadata_of({"k": list(range((limits.list_elements or 2000) + 1))}),
        "metadata_bytes": metadata_of(
            {f"k{n}": "x" * 1000 for n in range((limits.metadata_bytes or 32 * 1024) // 1000 + 1)}
        ),
    }
    if limits.record_bytes is not None:
        large["record_bytes"] = Document("x" * (limits.record_bytes + 1), id="bad", vector=[1.0])
    for name, document in large.items():
        batch = [Document("fine", id="good", vector=[1.0]), document]
        if getattr(limits, name) is None:
            store.add(batch)
            assert store.get(["bad"])[0] == Document(document.text, id="bad", metadata=document.metadata)
            store.drop_collection()
        else:
            with pytest.raises(SizeLimitError, match="'bad'"):
                store.add(batch)
            assert not store.collection_exists()


def metadata_of(metadata: dict[str, Any]) -> Document:
    return Document(None, id="bad", metadata=metadata, vector=[1.0])


def test_a_batch_that_fails_midway_tells_what_became_of_each_document(stores: Stores) -> None:
    # D6, E1: the model fails for the second sub-batch; the first one is written
    def fail(_: Sequence[str]) -> Any:
        raise OSError("no model")

    store = stores(embedding=FunctionEmbeddingModel(fail, "broken", 2))
    size = store.capabilities.limits.write_batch
    documents = [Document(None, id=f"{n:05}", vector=[1.0, n]) for n in range(size)]
    with pytest.raises(BatchError) as caught:
        store.add([*documents, Document("text", id="last")])
    assert list(caught.value.written) == [document.id for document in documents]
    assert list(caught.value.failed) == ["last"]
    assert list(caught.value.unknown) == []
    assert caught.value.__cause__ is not None
    assert store.count() == size
    assert store.get(["last"]) == []


def test_more_documents_than_one_call_takes_are_written_in_order(stores: Stores) -> None:
    # D6
    store = stores(metric="euclidean")
    size = store.capabilities.limits.write_batch
    ids = store.add([Document(None, id=f"{n:05}", vector=[1.0, n]) for n in range(size + 7)])
    assert ids == [f"{n:05}" for n in range(size + 7)]
    assert store.count() == size + 7


def test_counts_are_exact(stores: Stores) -> None:
    # D7
    store = stores()
    store.add(
        [Document(None, id=f"{n:03}", metadata={"n": n, "odd": n % 2}, vector=[1.0]) for n in range(137)]
    )
    for n in (*range(0, 137, 9), 137):
        assert store.count(F.n < n) == n
        assert store.count((F.n < n) & (F.odd == 1)) == n // 2
    store.delete(filter=F.n >= 101)
    assert store.count() == 101
