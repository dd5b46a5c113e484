"""URLs and options: E2, E5, api (URLs)."""

from __future__ import annotations

from typing import Any

import pytest

import entrepot as ep
from entrepot.errors import ConfigurationError, UnknownOptionError
from entrepot.plugins import VectorStoreSpec, plugin_manager
from entrepot.urls import parse_url
from entrepot_postgres import PostgresConfig, PostgresVectorStore


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("postgres://h/db/c", {"host": "h", "database": "db", "collection": "c"}),
        ("postgresql://u:p%40@h:1/db/c", {"host": "h", "port": 1, "user": "u", "password": "p@", "database": "db", "collection": "c"}),
        ("postgres://h/c", {"host": "h", "collection": "c"}),
        ("postgres:///c", {"collection": "c"}),
        ("postgres://", {}),
        ("postgres://%2Fvar%2Frun/db/c", {"host": "/var/run", "database": "db", "collection": "c"}),
    ],
)  # fmt: skip
def test_the_parts_of_a_url(url: str, expected: dict[str, Any]) -> None:
    assert PostgresConfig.from_url(parse_url(url)) == expected


@pytest.mark.parametrize("url", ["postgres://h/a/b/c", "postgres://h/a/", "postgres://h//a"])
def test_paths_that_mean_nothing(url: str) -> None:
    with pytest.raises(ConfigurationError, match="database/collection"):
        PostgresConfig.from_url(parse_url(url))


def test_both_schemes_open_the_store() -> None:
    for name in ("postgres", "postgresql"):
        spec = plugin_manager().spec(name, VectorStoreSpec)
        assert spec.factory == "entrepot_postgres.mapped_store:open_postgres"


def test_a_password_is_never_shown() -> None:
    # E1
    config = PostgresConfig(password="hunter2", host="h")
    assert "hunter2" not in repr(config) + str(config) + repr(config.__rich_repr__())
    store = PostgresVectorStore(host="h", password="hunter2")
    assert "hunter2" not in repr(store) + repr(vars(store).get("namespace"))
    store.close()


@pytest.mark.parametrize(
    "options",
    [
        {"pool_size": 0},
        {"pool_size": True},
        {"m": 1},
        {"m": 101},
        {"m": 40, "ef_construction": 64},
        {"ef_search": 1001},
        {"index": "ivfflat"},
        {"schema": ""},
        {"schema": "ä" * 32},
        {"collection": ""},
        {"collection": "a\0"},
        {"client": 5},
    ],
    ids=str,
)
def test_options_out_of_bounds_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        PostgresVectorStore(**options)


def test_what_is_not_there_yet_is_refused() -> None:
    # E1: refused, not ignored
    options: list[dict[str, Any]] = [{"fields": ["a"]}, {"ef_serach": 5}]
    for option in options:
        with pytest.raises(UnknownOptionError):
            ep.open_vector_store("postgres://127.0.0.1:1/db/c", **option)
