# pyright: reportPrivateUsage=false
"""URLs and options: E2, E5; and that no secret shows."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from entrepot import open_chat_memory, open_vector_store
from entrepot.errors import ConfigurationError, UnknownOptionError, UnreachableError
from entrepot.urls import parse_url
from entrepot_cassandra import (
    CassandraChatMemoryRepository,
    CassandraConfig,
    CassandraMemoryConfig,
    CassandraVectorStore,
)
from entrepot_cassandra.names import memory_table, new_table, quoted
from entrepot_cassandra.servers import PASSWORD
from entrepot_cassandra.sessions import Address

if TYPE_CHECKING:
    from pathlib import Path

SECRET = "hunter2"


def options(text: str) -> dict[str, Any]:
    return CassandraConfig.from_url(parse_url(text))


def test_the_parts_of_a_url() -> None:
    assert options(f"cassandra://me:{SECRET}@example.org:9043/shop/articles") == {
        "user": "me",
        "password": SECRET,
        "host": "example.org",
        "port": 9043,
        "keyspace": "shop",
        "collection": "articles",
    }
    assert options("cassandra:///Shop/a%20b") == {"keyspace": "Shop", "collection": "a b"}
    assert options("cassandra://h/articles") == {"host": "h", "collection": "articles"}
    assert CassandraMemoryConfig.from_url(parse_url("cassandra://h/shop/chat")) == {
        "host": "h",
        "keyspace": "shop",
        "memory": "chat",
    }


@pytest.mark.parametrize("url", ["cassandra://h/a/b/c", "cassandra://h//b", "cassandra://h/a/"])
def test_a_url_that_means_nothing_is_refused(url: str) -> None:
    with pytest.raises(ConfigurationError, match="hint"):
        options(url)


@pytest.mark.parametrize(
    "given",
    [
        {"port": 0},
        {"port": 65_536},
        {"port": True},
        {"replication": 0},
        {"concurrency": 0},
        {"concurrency": 2.0},
        {"slots": -1},
        {"slots": 33},
        {"consistency": "one"},
        {"keyspace": None},
        {"keyspace": "a b"},
        {"keyspace": 'a"; DROP KEYSPACE x'},
        {"keyspace": "x" * 49},
        {"ca_file": "ca.pem"},
        {"tls": True, "key_file": __file__},
        {"tls": True, "ca_file": "no such file"},
        {"user": "me"},
        {"password": SECRET},
        {"metric": "manhattan"},
        {"client": 5},
    ],
    ids=str,
)
def test_a_wrong_option_is_refused_before_anything_is_sent(given: dict[str, Any]) -> None:
    # E2
    options: dict[str, Any] = {"host": "127.0.0.1", "port": 1, "keyspace": "shop", **given}
    with pytest.raises(ConfigurationError) as caught:
        CassandraVectorStore(**options).connect()
    assert SECRET not in str(caught.value)


def test_unknown_options_are_named() -> None:
    with pytest.raises(UnknownOptionError, match="concurrency"):
        open_vector_store("cassandra://localhost/shop/articles?concurency=5")
    with pytest.raises(UnknownOptionError):
        open_chat_memory("cassandra://localhost/shop/chat?slots=5")


def test_secrets_never_show() -> None:
    # E2
    address = Address("h", 1, ("me", SECRET), None, False, None, None, None, True)
    assert SECRET not in repr(address) + str([address])
    for config in (CassandraConfig(password=SECRET), CassandraMemoryConfig(password=SECRET)):
        for text in (repr(config), str(config), str(config.__rich_repr__())):
            assert SECRET not in text
            assert "***" in text
    with pytest.raises(UnreachableError) as caught:
        open_vector_store(f"cassandra://me:{SECRET}@127.0.0.1:1/shop/articles")
    shown: BaseException | None = caught.value
    while shown is not None:
        assert SECRET not in str(shown)
        shown = shown.__cause__


def test_a_password_may_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PASSWORD, SECRET)
    assert CassandraVectorStore(user="me", keyspace="shop")._server._address.login == ("me", SECRET)
    assert CassandraVectorStore(user="me", password="x", keyspace="shop")._server._address.login == (
        "me",
        "x",
    )
    assert (
        CassandraVectorStore(keyspace="shop")._server._address.login is None
    )  # a password alone goes nowhere


def test_a_memory_needs_a_name() -> None:
    with pytest.raises(ConfigurationError):
        CassandraChatMemoryRepository(memory="", keyspace="shop")


def test_names_in_the_engine() -> None:
    # D5, M6, F10: a table's name tells what it holds, and no two names share one
    assert quoted("Shop_1") == '"Shop_1"'
    tables = [
        new_table("Articles of 2026"),
        new_table("Articles of 2026"),
        new_table("é"),
        new_table("x" * 512),
    ]
    assert len(set(tables)) == 4
    assert tables[0].startswith("e_articles_of_2026_")
    memories = [memory_table(name) for name in ("chat", "Chat", "chat ", "é", "x" * 512, "x" * 511)]
    assert len(set(memories)) == len(memories)
    assert memory_table("chat") == memory_table("chat")
    for table in (*tables, *memories):
        assert re.fullmatch(r"[a-z0-9_]{1,48}", table)
        quoted(table)


def test_listing_the_plugin_loads_no_driver(tmp_path: Path) -> None:
    code = (
        "import sys, entrepot_cassandra.plugin, entrepot_cassandra.config\n"
        "assert 'cassandra' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path)
