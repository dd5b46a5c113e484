"""Filters on columns against the evaluator: F1 to F6, F9."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from entrepot import Document, F, SearchRequest, SimpleVectorStore
from entrepot.filters import evaluate

if TYPE_CHECKING:
    from collections.abc import Callable

    Make = Callable[..., SimpleVectorStore]


def filled(store: SimpleVectorStore, metadata: dict[str, dict[str, Any]]) -> SimpleVectorStore:
    store.add(
        [Document(None, id=name, metadata=value, vector=[1.0, 1.0]) for name, value in metadata.items()]
    )
    return store


def test_columns_grow_with_the_rows(make: Make) -> None:
    # F2: values, kinds and lists that come after a key's column was built, and rows that go
    store = make(dimension=2)
    store.create_collection()
    known: dict[str, dict[str, Any]] = {}
    values: list[Any] = [5, "5", True, 5.0, [1, 9], [], 2**53 + 1, float(2**53), -1, "é", ["x", "y"], 0.5]
    filters = [
        "k == 5",
        "k != 5",
        "k < 6",
        "k >= 5",
        "not (k > 4)",
        "k in [true, 'x', 5]",
        "k is null",
        "k > 'd'",
    ]
    for step in range(150):
        name = str(step % 90)
        known[name] = {"k": values[step % len(values)]} if step % 5 else {"other": step}
        if step > 60 and isinstance(known[name].get("k"), int):
            known[name]["k"] = step * 7 % 31  # more distinct numbers than wait unsorted
        store.add([Document(None, id=name, metadata=known[name], vector=[1.0, 1.0])])
        if step % 11 == 0:
            store.delete([name])
            del known[name]
        if step % 6 == 0:
            for text in filters:
                from entrepot import parse_filter

                expected = {
                    name for name, metadata in known.items() if evaluate(parse_filter(text), metadata)
                }
                assert {document.id for document in store.scan(text)} == expected, text
                assert store.count(text) == len(expected)


def test_keys_that_json_writes_differently_are_found(make: Make) -> None:
    # F1, D3: a column looks for its key in the JSON text before decoding it
    names = [
        'a"b',
        "a\\b",
        "ключ",
        "\u2028",
        "a/b",
        "\t",
        "é",
        "e\u0301",
        "</script>",
        "\x7f",
        "a",
        "\U0001f600",
    ]
    store = filled(make(), {str(n): {name: n, "shadow": f'"{name}":'} for n, name in enumerate(names)})
    for n, name in enumerate(names):
        assert [document.id for document in store.scan(F[name] == n)] == [str(n)]
        assert store.count(F[name].is_not_null()) == 1


def test_searches_are_filtered_before_they_are_cut(make: Make) -> None:
    # S4: one match among thousands is found with top_k = 1
    store = make()
    store.add([Document(None, id=str(n), metadata={"n": n}, vector=[1.0, n / 5000]) for n in range(5000)])
    (hit,) = store.similarity_search(SearchRequest(vector=[1.0, 0.0], top_k=1, filter="n == 4999"))
    assert hit.id == "4999"
    hits = store.similarity_search(SearchRequest(vector=[1.0, 0.0], top_k=7, filter="n >= 4997"))
    assert [hit.id for hit in hits] == ["4997", "4998", "4999"]
