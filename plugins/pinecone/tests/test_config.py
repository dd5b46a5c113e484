"""URLs and options. E2, F10."""

from __future__ import annotations

from typing import Any, cast

import httpx
import pytest

from entrepot import open_vector_store
from entrepot.errors import ConfigurationError
from entrepot.urls import parse_url
from entrepot_pinecone import PineconeConfig, PineconeVectorStore


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PINECONE_API_KEY", "PINECONE_CONTROLLER_HOST"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("pinecone://articles", {"collection": "articles"}),
        ("pinecone://:key@articles", {"collection": "articles", "api_key": "key"}),
        (
            "pinecone+http://:k@127.0.0.1:5080/a",
            {"collection": "a", "api_key": "k", "control": "http://127.0.0.1:5080"},
        ),
        ("pinecone+https://proxy.example.org/a", {"collection": "a", "control": "https://proxy.example.org"}),
        (
            "pinecone://proxy.example.org:444/a",
            {"collection": "a", "control": "https://proxy.example.org:444"},
        ),
        ("pinecone+http://[::1]:5080/a", {"collection": "a", "control": "http://[::1]:5080"}),
        ("pinecone:///a", {"collection": "a"}),
    ],
)
def test_what_a_url_says(url: str, expected: dict[str, Any]) -> None:
    assert PineconeConfig.from_url(parse_url(url)) == expected


@pytest.mark.parametrize(
    "url",
    ["pinecone://h:1/a/b", "pinecone://user:key@articles", "pinecone+grpc://h/a", "pinecone+http://articles"],
)
def test_urls_that_are_none(url: str) -> None:
    with pytest.raises(ConfigurationError):
        PineconeConfig.from_url(parse_url(url))


@pytest.mark.parametrize(
    "options",
    [
        {"pool_size": 0},
        {"namespace": "a b"},
        {"namespace": "é"},
        {"namespace": "x" * 513},
        {"namespace": "entrepot.catalog"},
        {"host": "ftp://x"},
        {"host": "https://user:pw@x"},
        {"control": "https://x:99999"},
        {"control": "https://"},
        {"api_key": "secret\n"},
        {"client": object()},
    ],
)
def test_options_out_of_bounds(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError) as caught:
        PineconeVectorStore(**cast("dict[str, Any]", {"api_key": "k", **options}))
    assert "secret" not in str(caught.value)
    assert "pw" not in str(caught.value)


def test_without_a_key_nothing_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    # E2
    with pytest.raises(ConfigurationError, match="PINECONE_API_KEY"):
        open_vector_store("pinecone://articles")
    monkeypatch.setenv("PINECONE_API_KEY", "from the environment".replace(" ", "-"))
    assert PineconeVectorStore()._server.address.api_key == "from-the-environment"  # pyright: ignore[reportPrivateUsage]
    assert PineconeVectorStore(api_key="given")._server.address.api_key == "given"  # pyright: ignore[reportPrivateUsage]


def test_the_key_never_shows() -> None:
    config = PineconeConfig(api_key="secret")
    assert "secret" not in repr(config)
    store = PineconeVectorStore(api_key="secret")
    assert "secret" not in repr(store)
    assert "secret" not in repr(store._server.address)  # pyright: ignore[reportPrivateUsage]


def test_a_client_of_the_users_stays_open() -> None:
    # E5
    with httpx.Client() as client:
        store = PineconeVectorStore(api_key="k", client=client)
        assert store.native_client is client
        store.close()
        assert not client.is_closed
