# pyright: reportPrivateUsage=false
"""URLs and options: E2, E5; and that no secret shows."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from entrepot import open_vector_store
from entrepot.errors import ConfigurationError, UnknownOptionError, UnreachableError
from entrepot.urls import parse_url
from entrepot_elasticsearch import ElasticsearchConfig, ElasticsearchVectorStore
from entrepot_elasticsearch.names import document_key, index_name
from entrepot_elasticsearch.servers import API_KEY, PASSWORD
from entrepot_elasticsearch.sessions import Address

if TYPE_CHECKING:
    from pathlib import Path

SECRET = "hunter2"


def options(text: str) -> dict[str, Any]:
    return ElasticsearchConfig.from_url(parse_url(text))


def test_the_parts_of_a_url() -> None:
    assert options(f"elasticsearch://me:{SECRET}@example.org:9201/articles") == {
        "user": "me",
        "password": SECRET,
        "host": "example.org",
        "port": 9201,
        "collection": "articles",
    }
    assert options("elasticsearch:///articles") == {"collection": "articles"}
    assert options("elasticsearch+https://h/a%20b") == {"tls": True, "host": "h", "collection": "a b"}
    assert options("elasticsearch+http://h") == {"host": "h"}


@pytest.mark.parametrize("url", ["elasticsearch://h/a/b", "elasticsearch+ssh://h/a"])
def test_a_url_that_means_nothing_is_refused(url: str) -> None:
    with pytest.raises(ConfigurationError, match="hint"):
        options(url)


@pytest.mark.parametrize(
    "given",
    [
        {"port": 0},
        {"port": 65_536},
        {"port": True},
        {"pool_size": 0},
        {"m": 1},
        {"m": 2.5},
        {"ef_construction": 1},
        {"ef_search": 10_001},
        {"shards": 0},
        {"replicas": -1},
        {"index": "int8_hnsw"},
        {"ca_file": "ca.pem"},
        {"fingerprint": "ab"},
        {"tls": True, "key_file": __file__},
        {"api_key": "k", "user": "me", "password": SECRET},
        {"user": "me"},
        {"tls": True, "ca_file": "no such file"},
        {"metric": "manhattan"},
        {"client": 5},
    ],
    ids=str,
)
def test_a_wrong_option_is_refused_before_anything_is_sent(given: dict[str, Any]) -> None:
    # E2
    options: dict[str, Any] = {"host": "127.0.0.1", "port": 1, **given}
    with pytest.raises(ConfigurationError) as caught:
        ElasticsearchVectorStore(**options).connect()
    assert SECRET not in str(caught.value)


def test_unknown_options_are_named() -> None:
    with pytest.raises(UnknownOptionError, match="ef_search"):
        open_vector_store("elasticsearch://localhost/articles?ef_serch=5")


def test_secrets_never_show() -> None:
    # E2
    address = Address("h", 1, False, "", ("me", SECRET), SECRET, None, None, None, None, 1)
    assert SECRET not in repr(address) + str([address])
    config = ElasticsearchConfig(password=SECRET, api_key=SECRET)
    for text in (repr(config), str(config), str(config.__rich_repr__())):
        assert SECRET not in text
        assert "***" in text
    with pytest.raises(UnreachableError) as caught:
        open_vector_store(f"elasticsearch://me:{SECRET}@localhost:1/articles")
    shown: BaseException | None = caught.value
    while shown is not None:
        assert SECRET not in str(shown)
        shown = shown.__cause__


def test_environment_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PASSWORD, SECRET)
    monkeypatch.setenv(API_KEY, "a key")

    def told(**given: Any) -> dict[str, str]:
        with ElasticsearchVectorStore(**given) as store:
            client: Any = store.native_client
            return dict(client._headers)

    assert told(user="me")["authorization"] == "Basic bWU6aHVudGVyMg=="
    assert told()["authorization"] == "ApiKey a key"
    monkeypatch.delenv(API_KEY)
    assert "authorization" not in told()  # a password alone goes nowhere
    assert told(api_key="other")["authorization"] == "ApiKey other"


def test_names_in_the_engine() -> None:
    # D1, D5: an index keeps the name that the engine takes, all others are known by a digest
    assert index_name("articles-2026_x.y") == "articles-2026_x.y"
    names = ["Articles", "a b", "", "-a", "_a", ".a", "é", "a" * 101, "entrepot-x", "a/b", "*", "a,b", "<a>"]
    mapped = [index_name(name) for name in names]
    assert len(set(mapped)) == len(names)
    assert all(name.startswith("entrepot-") and name == name.lower() for name in mapped)
    assert len(document_key("é" * 512)) == 22
    assert document_key("1") != document_key("\uff11")


def test_listing_the_plugin_loads_no_driver(tmp_path: Path) -> None:
    code = (
        "import sys, entrepot_elasticsearch.plugin, entrepot_elasticsearch.config\n"
        "assert not {'elasticsearch', 'elastic_transport', 'aiohttp', 'urllib3'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path)
