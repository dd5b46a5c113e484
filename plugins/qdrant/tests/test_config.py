"""URLs and options: E2, E5; and that no secret shows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from qdrant_client import AsyncQdrantClient, QdrantClient

from entrepot import open_vector_store
from entrepot.errors import ConfigurationError, UnknownOptionError, UnreachableError
from entrepot.urls import parse_url
from entrepot_qdrant import QdrantConfig, QdrantLocalConfig, QdrantLocalVectorStore, QdrantVectorStore
from entrepot_qdrant.sessions import Address

if TYPE_CHECKING:
    from plugins.qdrant.tests.emulator import Emulator

SECRET = "hunter2"


def options(text: str) -> dict[str, Any]:
    return QdrantConfig.from_url(parse_url(text))


def test_the_parts_of_a_url() -> None:
    assert options(f"qdrant://:{SECRET}@example.org:7000/articles") == {
        "api_key": SECRET,
        "host": "example.org",
        "port": 7000,
        "collection": "articles",
    }
    assert options("qdrant:///articles") == {"collection": "articles"}
    assert options("qdrants://localhost/a%20b") == {"tls": True, "host": "localhost", "collection": "a b"}


def test_the_parts_of_a_local_url() -> None:
    assert QdrantLocalConfig.from_url(parse_url("qdrant-local://")) == {}
    assert QdrantLocalConfig.from_url(parse_url("qdrant-local://shared?collection=a")) == {"memory": "shared"}
    assert QdrantLocalConfig.from_url(parse_url("qdrant-local:///some/folder")) == {"path": "some/folder"}
    assert QdrantLocalConfig.from_url(parse_url("qdrant-local:////some/folder")) == {"path": "/some/folder"}


@pytest.mark.parametrize("wrong", ["qdrant://me@host/articles", "qdrant://host/a/b"])
def test_urls_with_parts_that_mean_nothing_are_refused(wrong: str) -> None:
    with pytest.raises(ConfigurationError, match="hint"):
        options(wrong)


@pytest.mark.parametrize(
    "wrong", ["qdrant-local://name/folder", "qdrant-local://:1/", "qdrant-local://me@x", "qdrant-local:///"]
)
def test_local_urls_with_parts_that_mean_nothing_are_refused(wrong: str) -> None:
    with pytest.raises(ConfigurationError, match="hint"):
        QdrantLocalConfig.from_url(parse_url(wrong))


def test_a_key_never_shows() -> None:
    # E2
    address = Address("localhost", 6333, None, SECRET, False, None, None, 8)
    assert SECRET not in repr(address) + str([address])
    config = QdrantConfig(api_key=SECRET)
    for text in (repr(config), str(config), str(config.__rich_repr__())):
        assert SECRET not in text
        assert "***" in text
    with pytest.raises(UnreachableError) as caught:
        open_vector_store(f"qdrant://:{SECRET}@localhost:1/articles")
    shown: BaseException | None = caught.value
    while shown is not None:
        assert SECRET not in str(shown)
        shown = shown.__cause__


def test_unknown_options_name_the_nearest() -> None:
    with pytest.raises(UnknownOptionError, match="pool_size"):
        open_vector_store("qdrant://localhost/articles?poolsize=3")


@pytest.mark.parametrize(
    "wrong",
    [
        {"m": 1},
        {"ef_search": 0},
        {"ef_construction": 5000},
        {"max_indexes": -1},
        {"pool_size": 0},
        {"port": 0},
        {"grpc_port": 6334},
        {"grpc": True, "grpc_port": 70_000},
        {"grpc": True, "tls": True, "ca_file": "/x"},
        {"ca_file": "/x"},
        {"quantization": "scalar", "index": "flat"},
        {"oversampling": 0.5},
        {"average_words": 0.0},
        {"collection": ""},
        {"client": object()},
        {"client": QdrantClient(":memory:")},
        {"client": QdrantClient("localhost", check_compatibility=False), "host": "localhost"},
    ],
    ids=" ".join,
)
def test_wrong_options_are_refused_before_any_io(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        QdrantVectorStore(**wrong)


@pytest.mark.parametrize(
    "wrong",
    [
        {"path": "a", "memory": "b"},
        {"client": 5},
        {"client": QdrantClient("localhost", check_compatibility=False)},
        {"client": AsyncQdrantClient(":memory:")},
        {"path": "a\0b"},
        {"average_words": -1.0},
    ],
    ids=" ".join,
)
def test_wrong_options_of_the_local_mode_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        QdrantLocalVectorStore(**wrong)


def test_the_key_of_the_environment(monkeypatch: pytest.MonkeyPatch, server: Emulator) -> None:
    # E2: it is used where none is given
    server.key = SECRET
    monkeypatch.setenv("QDRANT_API_KEY", SECRET)
    with open_vector_store(f"qdrant://127.0.0.1:{server.port}/articles") as store:
        assert store.list_collections() == []
