"""Words between signs: S9, D4."""

from __future__ import annotations

from typing import TYPE_CHECKING

from entrepot import Document
from entrepot_conformance.tests.store.data import declined, letter_model

if TYPE_CHECKING:
    from entrepot_conformance.endpoints import Stores

SIGNS = [chr(code) for code in range(1, 128) if not chr(code).isalnum()]
"""All of ASCII that is neither a letter nor a digit, but NUL."""
BETWEEN = [
    *SIGNS,
    *(f"\\{sign}" for sign in SIGNS),
    *(f"{sign}\\" for sign in SIGNS),
    *("\r\n", "\n\n", "\u00a0", "\u2014", "\u201c", "\u2028", "\u3000", "\U0001f600"),
]


def test_signs_cut_words_and_come_back(stores: Stores) -> None:
    # S9: no sign hides a word behind it, and none makes one word of two; D4: texts are as they were
    store = stores(embedding=letter_model())
    if declined(store, "fulltext"):
        return
    texts = {f"{number}": f"note{sign}book" for number, sign in enumerate(BETWEEN)}
    store.add([Document(text, id=name) for name, text in texts.items()])
    store.add([Document("a notebook", id="one")])
    for word, expected in (("note", set(texts)), ("BOOK", set(texts)), ("notebook", {"one"})):
        hits = store.similarity_search(word, mode="fulltext", top_k=len(texts) + 1)
        assert {hit.id for hit in hits} == expected, word
    assert {document.id: document.text for document in store.scan()} == {**texts, "one": "a notebook"}
