"""What the suite does not see: this backend's URLs, logins and errors."""

from __future__ import annotations

import pytest
from entrepot import Document, open_vector_store
from entrepot.errors import AuthenticationError, UnreachableError


def test_documents_come_back_and_a_password_is_never_told(monkeypatch: pytest.MonkeyPatch) -> None:
    with open_vector_store("shelf://localhost:7000/books") as store:
        store.add([Document("a", id="1", metadata={"n": 1}, vector=[1.0, 0.0])])
        assert [found.text for found in store.get(["1"])] == ["a"]
        store.drop_collection()
    monkeypatch.setenv("SHELF_PASSWORD", "wrong")
    with pytest.raises(AuthenticationError) as caught:
        open_vector_store("shelf://localhost:7000/books")
    assert "wrong" not in str(caught.value)


def test_nobody_answers() -> None:
    # E2
    with pytest.raises(UnreachableError, match="localhost:1"):
        open_vector_store("shelf://localhost:1/books")
