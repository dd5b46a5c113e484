"""`entrepot.memory.cursors`: the last name of a page, which never expires."""

from __future__ import annotations

import base64

import pytest

from entrepot.errors import RequestError
from entrepot.memory.cursors import name_behind, page_of


def test_a_page_has_a_cursor_if_more_names_came() -> None:  # M9
    names = [b"a", "ж".encode(), b"z\xc3\xa9"]
    page = page_of(names, 2)
    assert page.items == ["a", "ж"]
    assert page.token == base64.urlsafe_b64encode("ж".encode()).decode()
    assert name_behind(page.token) == "ж".encode()
    assert page_of(names, 3) == (["a", "ж", "zé"], None)
    assert page_of([], 5) == ([], None)
    assert name_behind(None) is None


@pytest.mark.parametrize("cursor", ["?", "YQ", "a", "gA==", "ж", b"\xff", 5])
def test_what_is_no_cursor_is_refused(cursor: str) -> None:  # E1
    with pytest.raises(RequestError, match="cursor"):
        name_behind(cursor)
