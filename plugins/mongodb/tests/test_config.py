# pyright: reportPrivateUsage=false
"""URLs and options: E2, E5; and that no secret shows."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from pymongo import MongoClient

from entrepot import open_chat_memory, open_vector_store
from entrepot.errors import ConfigurationError, UnknownOptionError, UnreachableError
from entrepot.urls import parse_url
from entrepot_mongodb import (
    MongoDBChatMemoryRepository,
    MongoDBConfig,
    MongoDBMemoryConfig,
    MongoDBVectorStore,
)
from entrepot_mongodb.names import CATALOG, engine_name, memory_names, new_generation, plain
from entrepot_mongodb.servers import PASSWORD, server_of
from entrepot_mongodb.sessions import Address, _within

if TYPE_CHECKING:
    from pathlib import Path

SECRET = "hunter2"


def options(text: str) -> dict[str, Any]:
    return MongoDBConfig.from_url(parse_url(text))


def test_the_parts_of_a_url() -> None:
    assert options(f"mongodb://me:{SECRET}@example.org:27018/app/articles") == {
        "user": "me",
        "password": SECRET,
        "host": "example.org",
        "port": 27018,
        "database": "app",
        "collection": "articles",
    }
    assert options("mongodb:///articles") == {"collection": "articles"}
    assert options("mongodb+srv://cluster.example.org/app/a%20b") == {
        "srv": True,
        "host": "cluster.example.org",
        "database": "app",
        "collection": "a b",
    }
    assert MongoDBMemoryConfig.from_url(parse_url("mongodb://h/app/talk")) == {
        "host": "h",
        "database": "app",
        "memory": "talk",
    }


@pytest.mark.parametrize(
    "url", ["mongodb://h/a/b/c", "mongodb://h/a/", "mongodb+ssh://h/a", "mongodb://h//a"]
)
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
        {"ef_search": 10_001},
        {"index": "ivf"},
        {"binary": "int8"},
        {"database": "a.b"},
        {"database": ""},
        {"database": "x" * 64},
        {"hosts": "b:27017,,c"},
        {"srv": True, "port": 27017},
        {"srv": True, "hosts": "b"},
        {"direct": True, "hosts": "b"},
        {"ca_file": "/nowhere.pem"},
        {"tls": True, "ca_file": "/nowhere.pem"},
        {"password": SECRET},
        {"client": object()},
    ],
)
def test_options_out_of_bounds_are_refused(given: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(PASSWORD, raising=False)
    with pytest.raises(ConfigurationError) as caught:
        MongoDBVectorStore(**given)
    assert SECRET not in str(caught.value)


def test_an_unknown_option_is_named() -> None:
    with pytest.raises(UnknownOptionError, match="timeout"):
        open_vector_store("mongodb://h/a?timeot=5")


def test_a_client_says_where_the_server_is() -> None:
    # E5
    with MongoClient[dict[str, Any]]("mongodb://127.0.0.1:1", connect=False) as client:
        with pytest.raises(ConfigurationError, match="client"):
            MongoDBVectorStore(client=client, host="h")
        with pytest.raises(ConfigurationError, match="client"):
            MongoDBChatMemoryRepository(client=client, replica_set="rs")
        with MongoDBVectorStore(client=client, database="app") as store:
            assert store.native_client is client


def test_the_password_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(PASSWORD, raising=False)
    with pytest.raises(ConfigurationError, match=PASSWORD):
        server_of(user="me", timeout=1.0)
    monkeypatch.setenv(PASSWORD, SECRET)
    server = server_of(user="me", timeout=1.0)
    assert server._address.login == ("me", SECRET)
    server_of(user="CN=me", auth_mechanism="MONGODB-X509", timeout=1.0)


def test_the_keywords_of_the_driver(tmp_path: Path) -> None:
    file = tmp_path / "ca.pem"
    file.write_text("")
    server = server_of(
        host="a.example.org",
        hosts="b.example.org:27018, c.example.org",
        replica_set="rs0",
        auth_source="app",
        tls=True,
        ca_file=str(file),
        check_hostname=False,
        user="me",
        password=SECRET,
        pool_size=3,
        timeout=2.5,
    )
    told = server._address.keywords(2.5)
    assert told["host"] == ["a.example.org:27017", "b.example.org:27018", "c.example.org"]
    assert (told["username"], told["password"]) == ("me", SECRET)
    assert (told["replicaSet"], told["authSource"], told["tls"]) == ("rs0", "app", True)
    assert (told["tlsCAFile"], told["tlsAllowInvalidHostnames"]) == (str(file), True)
    assert (told["maxPoolSize"], told["serverSelectionTimeoutMS"], told["connectTimeoutMS"]) == (
        3,
        2500,
        2500,
    )
    assert told["connect"] is False
    one = Address("::1", None, (), srv=False, database="x", options={}, login=None, pool_size=1)
    assert one.keywords(1.0)["host"] == ["[::1]:27017"]
    srv = Address("h", None, (), srv=True, database="x", options={}, login=("u", SECRET), pool_size=1)
    assert srv.keywords(1.0)["host"] == "mongodb+srv://h/"
    assert "27017" not in srv.where


def test_no_secret_shows() -> None:
    config = MongoDBConfig(user="me", password=SECRET)
    address = Address("h", 1, (), srv=False, database="x", options={}, login=("me", SECRET), pool_size=1)
    for shown in (repr(config), str(config), repr(address), address.where):
        assert SECRET not in shown


def test_listing_plugins_loads_no_driver() -> None:
    code = (
        "import sys, entrepot_mongodb.plugin as p; p.entrepot_vector_stores();"
        "p.entrepot_chat_memory_repositories(); p.entrepot_filter_converters();"
        "assert not {'pymongo', 'bson', 'numpy'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_server_that_is_not_there_is_told_in_time() -> None:
    # E2
    url = "mongodb://127.0.0.1:1"
    with pytest.raises(UnreachableError, match=r"127\.0\.0\.1:1") as caught:
        open_vector_store(f"{url}/a", timeout=0.3)
    assert caught.value.retryable
    assert caught.value.outcome == "not_done"
    with pytest.raises(UnreachableError, match=r"127\.0\.0\.1:1"):
        open_chat_memory(f"{url}/a", timeout=0.3)


def test_a_file_that_is_no_certificate_is_told(tmp_path: Path) -> None:
    file = tmp_path / "ca.pem"
    file.write_text("none")
    with pytest.raises(ConfigurationError, match="certificates"):
        open_vector_store(f"mongodb://127.0.0.1:1/a?tls=true&ca_file={file}", timeout=0.3)


def test_names_in_the_engine() -> None:
    # F10
    for name in ("articles", "a.b-c_d", "A1", "_x"):
        assert plain(name)
        assert engine_name(name) == name
    for name in ("", "a b", "ä", "a$b", "system.users", "system", "entrepot.collections", "entrepot", "x" * 101, "a.", ".a", "a\0b"):  # fmt: skip
        assert not plain(name)
    digests = [engine_name(name) for name in ("a b", "a  b", "ä", "system.users")]
    assert len(set(digests)) == 4
    assert all(name.startswith("entrepot-") and name.isascii() for name in digests)
    assert new_generation("articles").startswith("articles.")
    assert new_generation("articles") != new_generation("articles")
    assert memory_names("chat") == ("chat.log", "chat.heads")
    assert not plain(CATALOG)


def test_the_driver_logs_no_commands_of_ours(caplog: pytest.LogCaptureFixture) -> None:
    # O1: they hold texts and values; those of the user's own client are the user's business
    caplog.set_level(logging.DEBUG, logger="pymongo")
    log = logging.getLogger("pymongo.command")
    with _within(1.0):
        log.debug("a command of ours")
    log.debug("a command of the user's")
    assert [record.message for record in caplog.records] == ["a command of the user's"]

    async def both() -> None:
        with _within(1.0):
            await asyncio.create_task(said())
        log.debug("and another")

    async def said() -> None:
        log.debug("one more of ours")

    asyncio.run(both())
    assert [record.message for record in caplog.records] == ["a command of the user's", "and another"]
