# pyright: reportPrivateUsage=false
"""URLs and options: E2, E5; and that no secret shows."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from entrepot import open_chat_memory, open_vector_store
from entrepot.errors import ConfigurationError, UnknownOptionError, UnreachableError
from entrepot.urls import parse_url
from entrepot_neo4j import Neo4jChatMemoryRepository, Neo4jConfig, Neo4jMemoryConfig, Neo4jVectorStore
from entrepot_neo4j.servers import PASSWORD, server_of
from entrepot_neo4j.sessions import Address

if TYPE_CHECKING:
    from pathlib import Path

SECRET = "hunter2"


def options(text: str) -> dict[str, Any]:
    return Neo4jConfig.from_url(parse_url(text))


def test_the_parts_of_a_url() -> None:
    assert options(f"neo4j://me:{SECRET}@example.org:7688/app/articles") == {
        "user": "me",
        "password": SECRET,
        "host": "example.org",
        "port": 7688,
        "database": "app",
        "collection": "articles",
    }
    assert options("neo4j:///articles") == {"collection": "articles"}
    assert options("neo4j+s://h/a%20b") == {"tls": True, "host": "h", "collection": "a b"}
    assert options("bolt://h") == {"routing": False, "host": "h"}
    assert options("bolt+s://h/db/c") == {
        "routing": False, "tls": True, "host": "h", "database": "db", "collection": "c",
    }  # fmt: skip
    assert Neo4jMemoryConfig.from_url(parse_url("neo4j://h/db/chat")) == {
        "host": "h", "database": "db", "memory": "chat",
    }  # fmt: skip


@pytest.mark.parametrize("url", ["neo4j://h/a/b/c", "neo4j://h//b", "neo4j://h/a/", "neo4j+ssh://h/a"])
def test_a_url_that_means_nothing_is_refused(url: str) -> None:
    with pytest.raises(ConfigurationError, match="hint"):
        options(url)


@pytest.mark.parametrize("scheme", ["neo4j", "neo4j+s", "bolt", "bolt+s"])
def test_every_scheme_opens_stores_and_memories(scheme: str) -> None:
    # E2: nothing listens there, which is found out by connecting
    for opens in (open_vector_store, open_chat_memory):
        with pytest.raises(UnreachableError, match=r"127\.0\.0\.1:1"):
            opens(f"{scheme}://127.0.0.1:1/articles", timeout=2.0)


WRONG: list[dict[str, Any]] = [
    {"port": 0},
    {"port": 65_536},
    {"port": True},
    {"pool_size": 0},
    {"ca_file": "ca.pem"},
    {"tls": True, "ca_file": "no such file"},
    {"user": "me"},
    {"client": 5},
    {"client": "no client", "password": SECRET},
]


@pytest.mark.parametrize(
    "given",
    [
        *WRONG,
        {"m": 0},
        {"m": 2.5},
        {"ef_construction": 3201},
        {"ef_search": 0},
        {"index": "int8"},
        {"metric": "manhattan"},
    ],
    ids=str,
)
def test_a_wrong_option_is_refused_before_anything_is_sent(given: dict[str, Any]) -> None:
    # E2
    made: dict[str, Any] = {"host": "127.0.0.1", "port": 1, **given}
    with pytest.raises(ConfigurationError) as caught:
        Neo4jVectorStore(**made).connect()
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("given", [*WRONG, {"memory": ""}, {"memory": "a\0b"}, {"ttl": 0}], ids=str)
def test_a_wrong_option_of_a_memory_is_refused(given: dict[str, Any]) -> None:
    # E2
    made: dict[str, Any] = {"host": "127.0.0.1", "port": 1, **given}
    with pytest.raises(ConfigurationError):
        Neo4jChatMemoryRepository(**made).connect()


def test_unknown_options_are_named() -> None:
    with pytest.raises(UnknownOptionError, match="ef_search"):
        open_vector_store("neo4j://localhost/articles?ef_serch=5")


def test_secrets_never_show() -> None:
    # E2
    address = Address("h", 1, True, ("me", SECRET), None, False, None, 1)
    assert SECRET not in repr(address) + str([address]) + address.where
    config = Neo4jConfig(password=SECRET)
    for text in (repr(config), str(config), str(config.__rich_repr__())):
        assert SECRET not in text
        assert "***" in text
    with pytest.raises(UnreachableError) as caught:
        open_vector_store(f"neo4j://me:{SECRET}@127.0.0.1:1/articles", timeout=2.0)
    shown: BaseException | None = caught.value
    while shown is not None:
        assert SECRET not in str(shown)
        shown = shown.__cause__


def test_environment_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PASSWORD, SECRET)

    def login(**given: Any) -> tuple[str, str] | None:
        parts: dict[str, Any] = dict.fromkeys(("host", "port", "user", "password", "database", "ca_file"))
        more: dict[str, Any] = {"routing": True, "tls": False, "pool_size": 1, "timeout": 1.0, "client": None}
        asked: dict[str, Any] = {**parts, **more, **given}
        return server_of(**asked)._address.login

    assert login(user="me") == ("me", SECRET)
    assert login(user="me", password="other") == ("me", "other")
    assert login(password="other") == ("neo4j", "other")
    assert login() is None  # a password alone goes nowhere


def test_an_address_as_the_driver_takes_it() -> None:
    address = Address("::1", 7687, True, None, None, True, None, 3)
    assert address.uri == "neo4j://[::1]:7687"
    assert address._replace(host="h", routing=False).uri == "bolt://h:7687"
    keywords = address.keywords(2.0)
    assert keywords["encrypted"] is True
    assert keywords["connection_timeout"] == 2.0
    assert keywords["max_connection_pool_size"] == 3
    assert keywords["telemetry_disabled"] is True


def test_listing_the_plugin_loads_no_driver(tmp_path: Path) -> None:
    code = "import sys, entrepot_neo4j.plugin, entrepot_neo4j.config\nassert 'neo4j' not in sys.modules\n"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path)
