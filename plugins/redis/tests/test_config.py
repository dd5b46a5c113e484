"""URLs and options: E2, E5; and that no secret shows."""

from __future__ import annotations

from typing import Any

import pytest
import redis

from entrepot import open_chat_memory, open_vector_store
from entrepot.errors import ConfigurationError, UnknownOptionError, UnreachableError
from entrepot.urls import parse_url
from entrepot_redis import RedisChatMemoryRepository, RedisConfig, RedisMemoryConfig, RedisVectorStore
from entrepot_redis.sessions import Address

SECRET = "hunter2"


def options(text: str) -> dict[str, Any]:
    return RedisConfig.from_url(parse_url(text))


def test_the_parts_of_a_url() -> None:
    assert options(f"redis://me:{SECRET}@example.org:7000/articles") == {
        "user": "me",
        "password": SECRET,
        "host": "example.org",
        "port": 7000,
        "collection": "articles",
    }
    assert options("redis:///articles") == {"collection": "articles"}
    assert options(f"redis://:{SECRET}@localhost") == {"password": SECRET, "host": "localhost"}
    assert options("rediss://localhost/a%20b") == {"tls": True, "host": "localhost", "collection": "a b"}
    memory = RedisMemoryConfig.from_url(parse_url("rediss://localhost/chat"))
    assert memory == {"tls": True, "host": "localhost", "memory": "chat"}


@pytest.mark.parametrize("path", ["0", "15", "a/b", "0/a"])
def test_a_path_that_may_be_a_database_is_refused(path: str) -> None:
    # elsewhere redis://localhost/0 names a database: here it would be a collection called 0
    with pytest.raises(ConfigurationError, match="hint"):
        options(f"redis://localhost/{path}")
    with pytest.raises(ConfigurationError, match="hint"):
        RedisMemoryConfig.from_url(parse_url(f"redis://localhost/{path}"))


def test_a_password_never_shows() -> None:
    # E2
    address = Address("localhost", 6379, 0, "me", SECRET, 3, None)
    assert SECRET not in repr(address) + str([address])
    for config in (RedisConfig(password=SECRET), RedisMemoryConfig(password=SECRET)):
        for text in (repr(config), str(config), str(config.__rich_repr__())):
            assert SECRET not in text
            assert "***" in text
    with pytest.raises(UnreachableError) as caught:
        open_vector_store(f"redis://me:{SECRET}@localhost:1/articles")
    shown: BaseException | None = caught.value
    while shown is not None:
        assert SECRET not in str(shown)
        shown = shown.__cause__


def test_unknown_options_name_the_nearest() -> None:
    with pytest.raises(UnknownOptionError, match="pool_size"):
        open_vector_store("redis://localhost/articles?poolsize=3")


@pytest.mark.parametrize(
    "wrong",
    [
        {"db": 1},
        {"db": -1},
        {"index": "ivf"},
        {"m": 1},
        {"ef_search": 0},
        {"ef_construction": 5000},
        {"max_columns": 1001},
        {"max_columns": -1},
        {"pool_size": 0},
        {"port": 0},
        {"protocol": 4},
        {"namespace": ""},
        {"namespace": "\0"},
        {"collection": ""},
        {"ca_file": "/x"},
        {"client": object()},
        {"client": redis.Redis(), "host": "localhost"},
        {"client": redis.Redis(db=3)},
    ],
    ids=" ".join,
)
def test_wrong_options_are_refused_before_any_io(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        RedisVectorStore(**wrong)


@pytest.mark.parametrize("wrong", [{"memory": ""}, {"db": -1}, {"pool_size": 1.5}, {"client": 5}], ids=str)
def test_wrong_options_of_a_memory_are_refused_before_any_io(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        RedisChatMemoryRepository(**wrong)


def test_the_password_of_the_environment(monkeypatch: pytest.MonkeyPatch, server: str) -> None:
    # E2: it is used where none is given
    parts = parse_url(server)
    monkeypatch.setenv("ENTREPOT_REDIS_PASSWORD", parts.password or "")
    with open_chat_memory(f"redis://{parts.host}:{parts.port}/environment") as memory:
        assert memory.messages("none") == []
