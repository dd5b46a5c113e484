"""URLs: what they may hold, and which of them name a file, a name in memory or nothing (E2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from entrepot import Document, open_chat_memory, open_vector_store
from entrepot.errors import ConfigurationError
from entrepot.opening import aopen_vector_store
from entrepot.urls import parse_url

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    "url",
    [
        "simple://articles.db",
        "simple://articles.sqlite?metric=dot",
        "simple://my%20articles",
        "simple://my articles",
        "simple:// ",
        "simple://folder%2Farticles",
    ],
)
def test_a_name_that_looks_like_a_file_is_refused(url: str) -> None:
    # E2: such documents would silently live in memory
    with pytest.raises(ConfigurationError, match=r"simple:///"):
        open_vector_store(url)


def test_the_hint_names_the_file_that_was_meant() -> None:
    with pytest.raises(ConfigurationError) as caught:
        open_vector_store("simple://articles.db")
    assert "simple:///articles.db" in caught.value.hint


@pytest.mark.parametrize(
    "url", ["simple:///", "simple:///?metric=dot", "simple://name/", "simple:////", "simple:///folder/"]
)
def test_slashes_with_nothing_behind_them_are_refused(url: str) -> None:
    with pytest.raises(ConfigurationError):
        open_vector_store(url)


async def test_the_twin_refuses_too() -> None:
    # E3
    with pytest.raises(ConfigurationError, match="empty"):
        await aopen_vector_store("simple:///")


@pytest.mark.parametrize(
    "url",
    [
        "simple://\n",
        "simple:///a\nb.db",
        "simple:///a\tb.db",
        "simple:///a\x1bb.db",
        "simple:///\ud800.db",
        "simple:///a%00b.db",
        "simple://?collection=a%00b",
        "simple:///caf%E9.db",
        "simple:///%ED%A0%80.db",
        "simple://?collection=caf%E9",
    ],
)
def test_what_no_name_can_hold_is_refused(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigurationError):
        open_vector_store(url)
    assert list(tmp_path.iterdir()) == []


def test_names_in_memory_and_files_with_spaces_stay(tmp_path: Path) -> None:
    with (
        open_vector_store("simple://test-urls_1", embedding="hash") as one,
        open_vector_store("simple://test-urls_1") as two,
    ):
        one.add([Document("a", id="a")])
        assert two.count() == 1
    with open_vector_store(f"simple:///{tmp_path}/caf%C3%A9 ole.db", embedding="hash") as store:
        store.add([Document("a", id="a")])
    assert (tmp_path / "caf\u00e9 ole.db").is_file()


@pytest.mark.parametrize("scheme", ["simple+x", "simple+sqlite", "SIMPLE+X"])
def test_only_plugins_that_say_so_take_a_driver(scheme: str) -> None:
    with pytest.raises(ConfigurationError, match="takes no driver"):
        open_vector_store(f"{scheme}://")
    with pytest.raises(ConfigurationError, match="takes no driver"):
        open_chat_memory(f"{scheme}://")


@pytest.mark.parametrize("number", ["dimension=-3", "dimension=0", "max_completion_rows=-1"])
def test_numbers_out_of_bounds_are_refused_before_io(number: str, tmp_path: Path) -> None:
    file = tmp_path / "a.db"
    with pytest.raises(ConfigurationError, match=number.partition("=")[0]):
        open_vector_store(f"simple:///{file}?{number}")
    assert not file.exists()


@pytest.mark.parametrize(
    "url",
    [
        "redis://user:s3cret@a\u2100b/c",  # the standard library's message quotes user and password
        "redis://user:s3cret/x@host/c",
    ],
)
def test_a_url_that_cannot_be_read_does_not_show_its_password(url: str) -> None:
    # E1
    with pytest.raises(ConfigurationError) as caught:
        parse_url(url)
    assert "s3cret" not in str(caught.value)
