"""URLs and options: E2, E5; and that no secret shows."""

# pyright: reportPrivateUsage=false

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from pymilvus import AsyncMilvusClient, MilvusClient  # type: ignore[import-untyped]

from entrepot import open_vector_store
from entrepot.errors import ConfigurationError, UnknownOptionError, UnreachableError
from entrepot.urls import parse_url
from entrepot_milvus import MilvusConfig, MilvusLiteConfig, MilvusLiteVectorStore, MilvusVectorStore
from entrepot_milvus.servers import server_of
from entrepot_milvus.sessions import Address

SECRET = "hunter2"


def options(text: str) -> dict[str, Any]:
    return MilvusConfig.from_url(parse_url(text))


def test_the_parts_of_a_url() -> None:
    assert options(f"milvus://me:{SECRET}@example.org:7000/articles") == {
        "user": "me",
        "password": SECRET,
        "host": "example.org",
        "port": 7000,
        "collection": "articles",
    }
    assert options("milvus:///articles") == {"collection": "articles"}
    assert options(f"milvus://:{SECRET}@localhost") == {"token": SECRET, "host": "localhost"}
    assert options("milvuss://localhost/a%20b") == {"tls": True, "host": "localhost", "collection": "a b"}
    assert MilvusLiteConfig.from_url(parse_url("milvus-lite:///a/b.db")) == {"path": "a/b.db"}
    assert MilvusLiteConfig.from_url(parse_url("milvus-lite:////a/b.db")) == {"path": "/a/b.db"}


@pytest.mark.parametrize("url", ["milvus://localhost/a/b", "milvus-lite://name", "milvus-lite:///"])
def test_urls_that_mean_nothing_are_refused(url: str) -> None:
    with pytest.raises(ConfigurationError, match="hint"):
        open_vector_store(url)


def test_a_secret_never_shows() -> None:
    # E2
    address = Address("localhost", 19530, f"me:{SECRET}", None, None)
    assert SECRET not in repr(address) + str([address])
    for config in (MilvusConfig(user="me", password=SECRET), MilvusConfig(token=SECRET)):
        for text in (repr(config), str(config), str(config.__rich_repr__())):
            assert SECRET not in text
            assert "***" in text
    with pytest.raises(UnreachableError) as caught:
        open_vector_store(f"milvus://me:{SECRET}@localhost:1/articles")
    shown: BaseException | None = caught.value
    seen: set[int] = set()
    while shown is not None and id(shown) not in seen:
        seen.add(id(shown))
        assert SECRET not in str(shown)
        shown = shown.__cause__


def test_unknown_options_name_the_nearest() -> None:
    with pytest.raises(UnknownOptionError, match="consistency"):
        open_vector_store("milvus://localhost/articles?consistensy=strong")


def given_client(kind: Any) -> Any:
    """Return a client that is connected to nothing."""
    return kind.__new__(kind)


@pytest.mark.parametrize(
    "wrong",
    [
        {"index": "ivf"},
        {"m": 3},
        {"m": True},
        {"ef_search": 0},
        {"ef_construction": 5000},
        {"shards": 0},
        {"replicas": 0},
        {"consistency": "weak"},
        {"consistency": "eventually", "replicas": 2},
        {"partition": ""},
        {"partition": "\0"},
        {"collection": ""},
        {"port": 0},
        {"user": "me"},
        {"password": "x"},
        {"user": "me", "password": "x", "token": "y"},
        {"ca_file": "/x"},
        {"server_name": "x"},
        {"tls": True, "cert_file": "/x"},
        {"tls": True, "cert_file": "/x", "key_file": "/y"},
        {"metric": "manhattan"},
        {"timeout": 0},
        {"client": object()},
        {"client": given_client(MilvusClient), "host": "localhost"},
        {"client": given_client(AsyncMilvusClient), "token": "x"},
    ],
    ids=" ".join,
)
def test_wrong_options_are_refused_before_any_io(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        MilvusVectorStore(**wrong)


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"path": "x.db", "client": given_client(MilvusClient)},
        {"client": object()},
        {"path": "x.db", "m": 100},
    ],
    ids=" ".join,
)
def test_wrong_options_of_lite_are_refused_before_any_io(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        MilvusLiteVectorStore(**wrong)


def test_what_the_driver_is_told() -> None:
    # E2: certificates go by the driver's names, which depend on whether the client has one of its own
    none: dict[str, Any] = dict.fromkeys(("host", "port", "user", "password", "token", "database", "client"))
    files: dict[str, Any] = dict.fromkeys(("ca_file", "cert_file", "key_file", "server_name"))
    own: dict[str, Any] = {
        **none,
        **files,
        "host": "::1",
        "user": "me",
        "password": "x",
        "database": "d",
        "tls": True,
    }
    one = server_of(**dict[str, Any](own, ca_file="/ca"), timeout=1.0)._address.keywords(2.0)
    assert one["uri"] == "https://[::1]:19530"
    assert (one["token"], one["db_name"], one["timeout"]) == ("me:x", "d", 2.0)
    assert (one["secure"], one["server_pem_path"]) == (True, "/ca")
    files = dict[str, Any](own, ca_file="/ca", cert_file="/c", key_file="/k")
    two = server_of(**files, timeout=1.0)._address.keywords(2.0)
    assert (two["ca_pem_path"], two["client_pem_path"], two["client_key_path"]) == ("/ca", "/c", "/k")
    assert "server_pem_path" not in two


def test_the_token_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    # E2: it is used where no login is given
    monkeypatch.setenv("MILVUS_TOKEN", SECRET)
    none: dict[str, Any] = dict.fromkeys(
        (
            "host",
            "port",
            "user",
            "password",
            "token",
            "database",
            "client",
            "ca_file",
            "cert_file",
            "key_file",
            "server_name",
        )
    )
    assert server_of(**dict[str, Any](none, tls=False, timeout=1.0))._address.token == SECRET
    assert server_of(**dict[str, Any](none, token="own", tls=False, timeout=1.0))._address.token == "own"


def test_the_plugin_loads_no_driver() -> None:
    code = (
        "import sys, entrepot_milvus, entrepot_milvus.plugin, entrepot_milvus.config;"
        "sys.exit('pymilvus' in sys.modules or 'grpc' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
